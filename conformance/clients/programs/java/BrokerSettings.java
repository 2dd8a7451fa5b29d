package kipcheck;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * The settings that a release defines for its brokers, and for single groups: type, default and valid values.
 *
 * <p>Each class has its definition as a method or a field of another name or place, private in the oldest releases.
 */
final class BrokerSettings {
    private static final List<String> BROKER = List.of(
        "kafka.server.KafkaConfig$", "org.apache.kafka.server.config.KafkaConfig",
        "org.apache.kafka.server.config.AbstractKafkaConfig");
    private static final List<String> GROUP = List.of("org.apache.kafka.coordinator.group.GroupConfig");
    private static final List<String> MEMBERS = List.of("configDef", "CONFIG_DEF", "CONFIG");

    private final Release release;

    BrokerSettings(Release release) {
        this.release = release;
    }

    static boolean knows(String op) {
        return op.equals("broker-settings") || op.equals("group-settings");
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        boolean broker = Values.text(order.get("op")).equals("broker-settings");
        Object definition = definition(broker ? BROKER : GROUP);
        Map<String, Object> found = new LinkedHashMap<>();
        if (definition != null) {
            Object unset = Release.need(definition.getClass(), "NO_DEFAULT_VALUE").get(null);
            for (Map.Entry<?, ?> each : ((Map<?, ?>) read(definition, "configKeys")).entrySet()) {
                found.put(String.valueOf(each.getKey()), setting(each.getValue(), unset));
            }
        } else if (broker) {
            throw new Release.Unsupported(release.name + " has no definition of the settings of brokers");
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("value", found);
        return result;
    }

    /** Null where the release has none of these classes. */
    private Object definition(List<String> names) throws Throwable {
        for (String name : names) {
            Class<?> type = release.find(name);
            Object on = type != null && name.endsWith("$") ? type.getField("MODULE$").get(null) : null;
            Object found = type == null ? null : definition(type, on);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static Object definition(Class<?> type, Object on) throws Throwable {
        for (String member : MEMBERS) {
            for (Method each : type.getDeclaredMethods()) {
                boolean named = each.getName().equals(member) || each.getName().endsWith("$$" + member);
                if (named && each.getParameterCount() == 0) {
                    each.setAccessible(true);
                    return Release.invoke(each, on);
                }
            }
            for (Field each : type.getDeclaredFields()) {
                if (each.getName().equals(member)) {
                    each.setAccessible(true);
                    return each.get(on);
                }
            }
        }
        return null;
    }

    private static Map<String, Object> setting(Object key, Object unset) throws Throwable {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("type", String.valueOf(read(key, "type")).toLowerCase(Locale.ROOT));
        Object usual = read(key, "defaultValue");
        if (usual != unset) {
            found.put("default", plain(usual));
        }
        if (Release.has(key.getClass(), "internalConfig") && (Boolean) read(key, "internalConfig")) {
            found.put("internal", true);
        }
        validity(read(key, "validator"), found);
        return found;
    }

    /** The bounds and the values that a validator has. One of a list has another, of its elements. */
    private static void validity(Object validator, Map<String, Object> found) throws Throwable {
        if (validator == null) {
            return;
        }
        for (Field each : validator.getClass().getDeclaredFields()) {
            each.setAccessible(true);
            Object value = each.get(validator);
            switch (each.getName()) {
                case "min" -> put(found, "least", value);
                case "max" -> put(found, "most", value);
                case "validStrings" -> put(found, "values", value);
                case "validString" -> validity(value, found);
                default -> { }
            }
        }
    }

    private static void put(Map<String, Object> found, String name, Object value) {
        boolean none = value == null || value instanceof Collection<?> some && some.isEmpty();
        if (!none) {
            found.put(name, plain(value));
        }
    }

    private static Object read(Object on, String field) throws Throwable {
        return Release.need(on.getClass(), field).get(on);
    }

    /** A value of JSON. */
    private static Object plain(Object value) {
        if (value == null || value instanceof String || value instanceof Boolean) {
            return value;
        }
        if (value instanceof Collection<?> some) {
            List<Object> all = new ArrayList<>();
            some.forEach(each -> all.add(plain(each)));
            return all;
        }
        if (value instanceof Integer || value instanceof Long || value instanceof Short) {
            return ((Number) value).longValue();
        }
        return String.valueOf(value instanceof Class<?> type ? type.getName() : value);
    }
}
