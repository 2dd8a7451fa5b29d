package kipcheck;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.jar.JarFile;
import java.util.stream.Stream;

/** The classes of one release: its jars in a class loader of their own, so that several releases run in one process. */
final class Release {
    // The JVM copies the members of a class at each request.
    private static final ClassValue<Map<String, List<Method>>> METHODS = new ClassValue<>() {
        @Override
        protected Map<String, List<Method>> computeValue(Class<?> start) {
            Map<String, List<Method>> found = new HashMap<>();
            for (Class<?> type = start; type != null; type = type.getSuperclass()) {
                for (Method each : type.getDeclaredMethods()) {
                    found.computeIfAbsent(each.getName(), none -> new ArrayList<>()).add(each);
                }
            }
            return found;
        }
    };
    private static final ClassValue<Constructor<?>[]> CONSTRUCTORS = new ClassValue<>() {
        @Override
        protected Constructor<?>[] computeValue(Class<?> type) {
            return type.getDeclaredConstructors();
        }
    };

    final String name;
    final ClassLoader loader;
    private final Path first;
    private final Map<String, Optional<Class<?>>> classes = new HashMap<>();

    Release(String name, List<String> jars) throws MalformedURLException {
        this.name = name;
        this.first = Paths.get(jars.get(0));
        URL[] urls = new URL[jars.size()];
        for (int i = 0; i < urls.length; i++) {
            urls[i] = Paths.get(jars.get(i)).toUri().toURL();
        }
        this.loader = new URLClassLoader(urls, parent());
    }

    /** The native part of RocksDB, if that is there, finds classes in the class path of the JVM alone. */
    private static ClassLoader parent() {
        boolean stores = Release.class.getResource("/org/rocksdb/RocksDB.class") != null;
        return stores ? Release.class.getClassLoader() : ClassLoader.getPlatformClassLoader();
    }

    /** The classes in the first jar, or folder, by path; without inner classes. */
    Set<String> classes() {
        Set<String> found = new HashSet<>();
        try {
            if (Files.isDirectory(first)) {
                try (Stream<Path> files = Files.walk(first)) {
                    files.forEach(each -> take(first.relativize(each).toString(), found));
                }
            } else {
                try (JarFile jar = new JarFile(first.toFile())) {
                    jar.stream().forEach(each -> take(each.getName(), found));
                }
            }
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
        return found;
    }

    private static void take(String file, Set<String> classes) {
        if (file.endsWith(".class") && file.indexOf('$') < 0) {
            classes.add(file.substring(0, file.length() - ".class".length()));
        }
    }

    /** The class, or null where this release has none of that name. */
    Class<?> find(String className) {
        return classes.computeIfAbsent(className, key -> {
            try {
                return Optional.of(Class.forName(key, true, loader));
            } catch (ClassNotFoundException none) {
                return Optional.empty();
            }
        }).orElse(null);
    }

    Class<?> need(String className) {
        Class<?> found = find(className);
        if (found == null) {
            throw new Unsupported(name + " has no class " + className);
        }
        return found;
    }

    static Field need(Class<?> type, String field) throws NoSuchFieldException {
        Field found = type.getDeclaredField(field);
        found.setAccessible(true);
        return found;
    }

    /** The declared constructor with the most parameters. */
    static Constructor<?> widest(Class<?> type) {
        Constructor<?> best = null;
        for (Constructor<?> each : type.getDeclaredConstructors()) {
            if (!each.isSynthetic() && (best == null || each.getParameterCount() > best.getParameterCount())) {
                best = each;
            }
        }
        best.setAccessible(true);
        return best;
    }

    static Object create(Class<?> type, Object... arguments) throws Throwable {
        for (Constructor<?> each : CONSTRUCTORS.get(type)) {
            if (fits(each.getParameterTypes(), arguments)) {
                each.setAccessible(true);
                return create(each, arguments);
            }
        }
        throw new Unsupported(type.getName() + " has no constructor of " + arguments.length + " such parameters");
    }

    static Object create(Constructor<?> constructor, Object... arguments) throws Throwable {
        try {
            return constructor.newInstance(arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    /** Calls the static method of that name whose parameters match. */
    static Object callStatic(Class<?> type, String name, Object... arguments) throws Throwable {
        return invoke(method(type, name, arguments), null, arguments);
    }

    static Object call(Object on, String name, Object... arguments) throws Throwable {
        return invoke(method(on.getClass(), name, arguments), on, arguments);
    }

    /** Calls the no-argument method of the first of these names that exists, else reads the field. */
    static Object get(Object on, String... names) throws Throwable {
        for (String name : names) {
            for (Class<?> type = on.getClass(); type != null; type = type.getSuperclass()) {
                for (Method each : type.getDeclaredMethods()) {
                    if (each.getName().equals(name) && each.getParameterCount() == 0 && !each.isSynthetic()) {
                        each.setAccessible(true);
                        return invoke(each, on);
                    }
                }
                for (Field each : type.getDeclaredFields()) {
                    if (each.getName().equals(name)) {
                        each.setAccessible(true);
                        return each.get(on);
                    }
                }
            }
        }
        throw new Unsupported(on.getClass().getName() + " has no " + String.join(" nor ", names));
    }

    static boolean has(Class<?> type, String member) {
        for (Method each : type.getDeclaredMethods()) {
            if (each.getName().equals(member)) {
                return true;
            }
        }
        for (Field each : type.getDeclaredFields()) {
            if (each.getName().equals(member)) {
                return true;
            }
        }
        return false;
    }

    static boolean takes(Method[] methods, String name, int parameters) {
        for (Method each : methods) {
            if (each.getName().equals(name) && each.getParameterCount() == parameters) {
                return true;
            }
        }
        return false;
    }

    static Object invoke(Method method, Object on, Object... arguments) throws Throwable {
        try {
            return method.invoke(on, arguments);
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }

    private static Method method(Class<?> start, String name, Object... arguments) {
        for (Method each : METHODS.get(start).getOrDefault(name, List.of())) {
            if (!each.isBridge() && fits(each.getParameterTypes(), arguments)) {
                each.setAccessible(true);
                return each;
            }
        }
        // A default method of an interface.
        for (Method each : start.getMethods()) {
            if (each.getName().equals(name) && each.isDefault() && fits(each.getParameterTypes(), arguments)) {
                return each;
            }
        }
        throw new Unsupported(start.getName() + " has no method " + name + " of " + arguments.length + " such parameters");
    }

    private static boolean fits(Class<?>[] wanted, Object[] given) {
        if (wanted.length != given.length) {
            return false;
        }
        for (int i = 0; i < wanted.length; i++) {
            Class<?> type = wanted[i];
            Object value = given[i];
            boolean fits = type.isPrimitive()
                ? (type == int.class && value instanceof Integer) || (type == short.class && value instanceof Short)
                    || (type == byte.class && value instanceof Byte) || (type == long.class && value instanceof Long)
                    || (type == boolean.class && value instanceof Boolean)
                : value == null || type.isInstance(value);
            if (!fits) {
                return false;
            }
        }
        return true;
    }

    /** The release cannot do that. */
    static final class Unsupported extends RuntimeException {
        private static final long serialVersionUID = 1L;

        /** The limit, of those in hello; null where nothing was claimed. */
        final String limit;

        Unsupported(String why) {
            this(why, null);
        }

        Unsupported(String why, String limit) {
            super(why);
            this.limit = limit;
        }
    }
}
