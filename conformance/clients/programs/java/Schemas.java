package kipcheck;

import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Prints the schema objects that releases have instead of definitions, as JSON Lines: of the APIs up to 2.1, of headers,
 * consumer protocol and sticky user data up to 2.6, of the coordinators' records up to 2.7, where the jar of the broker
 * and the Scala libraries are among the jars. Each argument is {@code RELEASE=JAR:JAR}.
 */
final class Schemas {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";
    private static final String[] HOLDERS = {
        "org.apache.kafka.common.protocol.Protocol",
        "org.apache.kafka.common.requests.RequestHeader",
        "org.apache.kafka.common.requests.ResponseHeader",
        "org.apache.kafka.clients.consumer.internals.ConsumerProtocol",
        "org.apache.kafka.clients.consumer.StickyAssignor",
        "kafka.coordinator.GroupMetadataManager$",
        "kafka.coordinator.group.GroupMetadataManager$",
        "kafka.coordinator.transaction.TransactionLog$KeySchema$",
        "kafka.coordinator.transaction.TransactionLog$ValueSchema$",
    };

    private Schemas() {
    }

    public static void main(String[] releases) throws Throwable {
        for (String each : releases) {
            int at = each.indexOf('=');
            List<String> jars = Arrays.asList(each.substring(at + 1).split(File.pathSeparator));
            Release release = new Release(each.substring(0, at), jars);
            if (release.loader.getResource("common/message/JoinGroupRequest.json") == null) {
                apis(release);
            }
            constants(release);
        }
    }

    private static void apis(Release release) throws Throwable {
        for (Object api : release.need(PROTOCOL + "ApiKeys").getEnumConstants()) {
            // For an enum constant, get would find the method name() first, and id is only a field.
            int key = ((Number) Release.get(api, "id")).intValue();
            for (String side : new String[] {"request", "response"}) {
                Object[] schemas = schemas(release, api, key, side);
                for (int version = 0; version < schemas.length; version++) {
                    if (schemas[version] != null) {
                        print(release, "\"key\": " + key + ", \"side\": \"" + side + "\", \"version\": " + version,
                            schemas[version]);
                    }
                }
            }
        }
    }

    /** By version. Until 0.11 the schemas are in tables by the number of the API. */
    static Object[] schemas(Release release, Object api, int key, String side) throws Throwable {
        if (Release.has(release.need(PROTOCOL + "ApiKeys"), side + "Schemas")) {
            return (Object[]) Release.get(api, side + "Schemas");
        }
        Field table = Release.need(release.need(PROTOCOL + "Protocol"), side.equals("request") ? "REQUESTS" : "RESPONSES");
        Object[] found = (Object[]) Array.get(table.get(null), key);
        return found == null ? new Object[0] : found;
    }

    private static void constants(Release release) throws Throwable {
        for (String holder : HOLDERS) {
            Class<?> type = release.find(holder);
            // The singleton of a Scala object of that name.
            Object on = type != null && holder.endsWith("$") ? Release.need(type, "MODULE$").get(null) : null;
            for (Field each : type == null ? new Field[0] : type.getDeclaredFields()) {
                if (each.getType().getSimpleName().equals("Schema")) {
                    each.setAccessible(true);
                    String name = holder.substring(holder.lastIndexOf('.') + 1) + "." + each.getName();
                    print(release, "\"constant\": \"" + name + "\"", each.get(on));
                }
            }
        }
    }

    private static void print(Release release, String what, Object schema) throws Throwable {
        System.out.println("{\"release\": \"" + release.name + "\", " + what + ", \"fields\": " + type(schema) + "}");
    }

    /** A schema is a list of [name, type], an array {"array": type, "nullable": ...}, anything else a word. */
    private static String type(Object type) throws Throwable {
        String kind = type.getClass().getSimpleName();
        if (kind.equals("Schema")) {
            List<String> told = new ArrayList<>();
            Object fields = Release.get(type, "fields");
            for (int i = 0; i < Array.getLength(fields); i++) {
                Object field = Array.get(fields, i);
                Object def = Release.has(field.getClass(), "def") ? Release.get(field, "def") : field;
                told.add("[\"" + Release.get(def, "name") + "\", " + type(Release.get(def, "type")) + "]");
            }
            return "[" + String.join(", ", told) + "]";
        }
        if (kind.equals("ArrayOf")) {
            return "{\"array\": " + type(Release.get(type, "type")) + ", \"nullable\": "
                + Release.get(type, "isNullable") + "}";
        }
        return "\"" + type + "\"";
    }
}
