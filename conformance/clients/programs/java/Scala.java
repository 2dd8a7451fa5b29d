package kipcheck;

import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.Map;

/** The collections and options of Scala 2.13, as the classes of a release take and return them. */
final class Scala {
    private final Release release;

    Scala(Release release) {
        this.release = release;
    }

    /** Whether this release has these collections. */
    boolean available() {
        return release.find("scala.jdk.javaapi.CollectionConverters") != null;
    }

    /** A {@code scala.collection.Map} or {@code Seq}. */
    Object of(Object collection) throws Throwable {
        Class<?> type = collection instanceof Map ? Map.class : collection instanceof List ? List.class : Collection.class;
        return Release.invoke(converters().getMethod("asScala", type), null, collection);
    }

    /** A {@code scala.collection.immutable.Map}. */
    Object immutable(Map<?, ?> map) throws Throwable {
        Object refl = release.need("scala.$less$colon$less").getMethod("refl").invoke(null);
        return call(of(map), "toMap", refl);
    }

    Map<?, ?> map(Object map) throws Throwable {
        return (Map<?, ?>) Release.invoke(
            converters().getMethod("asJava", release.need("scala.collection.Map")), null, map);
    }

    List<?> list(Object seq) throws Throwable {
        return (List<?>) Release.invoke(
            converters().getMethod("asJava", release.need("scala.collection.Seq")), null, seq);
    }

    /** Some, or None for null. */
    Object option(Object value) throws Throwable {
        return call(singleton("scala.Option$"), "apply", value);
    }

    /** The value of an option; null for None. */
    Object value(Object option) throws Throwable {
        return (Boolean) call(option, "isDefined") ? call(option, "get") : null;
    }

    /** A Scala object; its name ends with a dollar. */
    Object singleton(String name) throws Throwable {
        return release.need(name).getField("MODULE$").get(null);
    }

    /** Calls the public method of that name: the classes of collections implement it where programs cannot call it. */
    static Object call(Object on, String name, Object... given) throws Throwable {
        for (Method each : on.getClass().getMethods()) {
            if (each.getName().equals(name) && !each.isBridge() && each.getParameterCount() == given.length) {
                each.setAccessible(true);
                return Release.invoke(each, on, given);
            }
        }
        throw new Release.Unsupported(on.getClass().getName() + " has no method " + name);
    }

    private Class<?> converters() {
        return release.need("scala.jdk.javaapi.CollectionConverters");
    }
}
