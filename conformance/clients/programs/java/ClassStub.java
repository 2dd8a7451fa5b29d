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
 * Replaces a class of a release, as {@link InterfaceStub} replaces an interface.
 *
 * <p>The replacement is a subclass, in the class's package and loader, so that package-private methods are overridden
 * too. Every method that can be overridden calls the stub; no constructor runs, and fields are zero until they are
 * set. The bytecode is written here: nothing is compiled or kept.
 */
final class ClassStub {
    private final Release release;
    private final Map<List<Object>, Class<?>> made = new HashMap<>();

    ClassStub(Release release) {
        this.release = release;
    }

    /**
     * An object of a subclass whose methods are all implemented by {@code how}: methods without an implementation return
     * zero, false, an empty collection, or null. Exceptions are passed to the caller unchanged.
     *
     * @param className the full name, as {@link Release#need} takes it; not final
     */
    Object of(String className, InterfaceStub how) throws Throwable {
        Object one = bare(below(release.need(className), null));
        ClassStub.set(one, ClassFile.PLAYED, (InvocationHandler) (self, method, arguments) -> {
            Object given = how.invoke(self, method, arguments);
            return given == null ? nothing(method.getReturnType()) : given;
        });
        return one;
    }

    /** A copy of an object, field by field, as a subclass of its class; only these methods are replaced. */
    Object over(Object real, InterfaceStub how, String... methods) throws Throwable {
        Object one = bare(below(real.getClass(), Set.of(methods)));
        for (Class<?> type = real.getClass(); type != Object.class; type = type.getSuperclass()) {
            for (Field each : type.getDeclaredFields()) {
                if (!Modifier.isStatic(each.getModifiers())) {
                    each.setAccessible(true);
                    each.set(one, each.get(real));
                }
            }
        }
        ClassStub.set(one, ClassFile.PLAYED, how);
        return one;
    }

    /** An object of the class itself, without a constructor call. */
    static Object bare(Class<?> type) throws Throwable {
        // Deserialisation creates objects so; the API is public, in a module for such purposes.
        Class<?> factory = Class.forName("sun.reflect.ReflectionFactory");
        Object one = factory.getMethod("getReflectionFactory").invoke(null);
        Constructor<?> constructor = (Constructor<?>) factory
            .getMethod("newConstructorForSerialization", Class.class, Constructor.class)
            .invoke(one, type, Object.class.getDeclaredConstructor());
        return constructor.newInstance();
    }

    /** Sets a field of the object's class or a superclass, even a private or final one. */
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
                // The first method found counts: a final one hides those above it.
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

    /** Collections and messages of errors rely on these. */
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
