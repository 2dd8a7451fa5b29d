package kipcheck;

import java.lang.invoke.MethodHandles;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * A class of a release, played by us: what {@link StandIn} is for an interface.
 *
 * <p>Of the class a subclass is made, in its own package and by its own loader, so that methods which only the package
 * sees are played too. Every method that can be overridden goes to the stand-in; no constructor runs, and fields are
 * zero until somebody sets them. The class is written here, as the machine reads it: nothing is compiled or kept.
 */
final class Understudy {
    private final Release release;
    private final Map<List<Object>, Class<?>> made = new HashMap<>();

    Understudy(Release release) {
        this.release = release;
    }

    /**
     * An object of a class below that one, all of whose methods are played by {@code how}: what it does not play gives
     * zero, false, an empty collection, or null. What is thrown goes to the caller as it is.
     *
     * @param className in full, as {@link Release#need} takes it; not final
     */
    Object of(String className, StandIn how) throws Throwable {
        Object one = bare(below(release.need(className), null));
        Understudy.set(one, ClassFile.PLAYED, (InvocationHandler) (self, method, arguments) -> {
            Object given = how.invoke(self, method, arguments);
            return given == null ? nothing(method.getReturnType()) : given;
        });
        return one;
    }

    /** A copy of an object, field by field, of a class below its own; of its methods only these are played. */
    Object over(Object real, StandIn how, String... methods) throws Throwable {
        Object one = bare(below(real.getClass(), Set.of(methods)));
        for (Class<?> type = real.getClass(); type != Object.class; type = type.getSuperclass()) {
            for (Field each : type.getDeclaredFields()) {
                if (!Modifier.isStatic(each.getModifiers())) {
                    each.setAccessible(true);
                    each.set(one, each.get(real));
                }
            }
        }
        Understudy.set(one, ClassFile.PLAYED, how);
        return one;
    }

    /** An object of the class itself, that no constructor has seen. */
    static Object bare(Class<?> type) throws Throwable {
        // Whoever reads serialised objects makes them so; it is public, in a module that is there for such needs.
        Class<?> factory = Class.forName("sun.reflect.ReflectionFactory");
        Object one = factory.getMethod("getReflectionFactory").invoke(null);
        Constructor<?> constructor = (Constructor<?>) factory
            .getMethod("newConstructorForSerialization", Class.class, Constructor.class)
            .invoke(one, type, Object.class.getDeclaredConstructor());
        return constructor.newInstance();
    }

    /** Sets a field, of the object's class or of one above it, whoever may see it and final or not. */
    static void set(Object on, String field, Object value) throws Throwable {
        for (Class<?> type = on.getClass(); type != null; type = type.getSuperclass()) {
            for (Field each : type.getDeclaredFields()) {
                if (each.getName().equals(field)) {
                    each.setAccessible(true);
                    each.set(on, value);
                    return;
                }
            }
        }
        throw new Release.Unsupported(on.getClass().getName() + " has no field " + field);
    }

    private Class<?> below(Class<?> type, Set<String> only) throws Throwable {
        List<Object> key = Arrays.asList(type, only);
        Class<?> known = made.get(key);
        if (known == null) {
            List<Method> methods = overridable(type);
            methods.removeIf(each -> only != null && !only.contains(each.getName()));
            known = MethodHandles.privateLookupIn(type, MethodHandles.lookup())
                .defineClass(ClassFile.below(type, made.size(), methods));
            Release.need(known, ClassFile.METHODS).set(null, methods.toArray(new Method[0]));
            made.put(key, known);
        }
        return known;
    }

    private static List<Method> overridable(Class<?> start) {
        List<Method> found = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        for (Class<?> type = start; type != Object.class; type = type.getSuperclass()) {
            for (Method each : type.getDeclaredMethods()) {
                int how = each.getModifiers();
                // The first one met is the one that counts: one that is final hides those above it.
                if (Modifier.isPrivate(how) || Modifier.isStatic(how) || each.isBridge()
                        || !seen.add(each.getName() + ClassFile.descriptor(each)) || Modifier.isFinal(how)) {
                    continue;
                }
                boolean shown = Modifier.isPublic(how) || Modifier.isProtected(how);
                if ((shown || type.getPackageName().equals(start.getPackageName())) && !ofObject(each)) {
                    found.add(each);
                }
            }
        }
        return found;
    }

    /** Collections and messages of errors count on these. */
    private static boolean ofObject(Method method) {
        switch (method.getName()) {
            case "equals":
                return method.getParameterCount() == 1;
            case "hashCode":
            case "finalize":
                return method.getParameterCount() == 0;
            default:
                return false;
        }
    }

    private static Object nothing(Class<?> type) {
        if (type.isPrimitive() && type != void.class) {
            return ClassFile.zero(type);
        }
        if (type == Set.class) {
            return Collections.emptySet();
        }
        if (type == Map.class) {
            return Collections.emptyMap();
        }
        if (type.isAssignableFrom(List.class) && type != Object.class) {
            return Collections.emptyList();
        }
        return type == Optional.class ? Optional.empty() : null;
    }
}
