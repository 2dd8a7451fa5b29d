package kipcheck;

import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Encodes requests, responses and headers of releases up to 2.3 with the schema objects of their clients.
 *
 * <p>Those name fields differently from later definitions. So the caller supplies the names in wire order: message,
 * version, and for each field its name, its default and, for structs, their fields. Without names a message is not
 * supported.
 */
final class Rows implements Codec {
    private static final String REQUESTS = "org.apache.kafka.common.requests.";
    private static final int FIND_COORDINATOR = 10;

    private final Map<String, Object> names;
    private final Release release;
    private final Map<Object, List<Object>> types = new IdentityHashMap<>();
    private Map<String, Map<Integer, Object>> schemas;

    Rows(Release release, Map<String, Object> names) {
        this.release = release;
        this.names = names;
    }

    /** Since 2.4 generated classes replace them. */
    boolean used() {
        return release.find("org.apache.kafka.common.protocol.ObjectSerializationCache") == null
            && release.find("org.apache.kafka.common.protocol.ApiKeys") != null;
    }

    boolean knows(String message) {
        return names.containsKey(message);
    }

    /** Message, version, schema. */
    Map<String, Map<Integer, Object>> schemas() throws Throwable {
        if (schemas == null) {
            Map<String, Map<Integer, Object>> found = new TreeMap<>();
            for (Object api : release.need("org.apache.kafka.common.protocol.ApiKeys").getEnumConstants()) {
                int key = ((Number) Release.get(api, "id")).intValue();
                for (String side : new String[] {"request", "response"}) {
                    String suffix = side.equals("request") ? "Request" : "Response";
                    Object[] versions = Schemas.schemas(release, api, key, side);
                    for (int version = 0; version < versions.length; version++) {
                        if (versions[version] != null) {
                            String message = name(((Enum<?>) api).name(), key) + suffix;
                            found.computeIfAbsent(message, each -> new TreeMap<>()).put(version, versions[version]);
                        }
                    }
                }
            }
            // These have no number on the wire: the first one is for a request without a client id.
            header(found, "RequestHeader", "REQUEST_HEADER", 1);
            header(found, "ResponseHeader", "RESPONSE_HEADER", 0);
            found.keySet().retainAll(names.keySet());
            found.forEach((message, versions) -> versions.keySet().removeIf(
                each -> !Values.object(names.get(message)).containsKey(String.valueOf(each))));
            schemas = found;
        }
        return schemas;
    }

    private void header(Map<String, Map<Integer, Object>> found, String message, String constant, int version)
            throws Throwable {
        Class<?> later = release.find(REQUESTS + message);
        Field field = later != null && Release.has(later, "SCHEMA") ? Release.need(later, "SCHEMA")
            : Release.need(release.need("org.apache.kafka.common.protocol.Protocol"), constant);
        found.put(message, new TreeMap<>(Collections.singletonMap(version, field.get(null))));
    }

    /** The name in definitions: JOIN_GROUP is JoinGroup. */
    private static String name(String constant, int key) {
        if (key == FIND_COORDINATOR) {
            return "FindCoordinator";
        }
        StringBuilder out = new StringBuilder();
        for (String word : constant.replaceFirst("_KEY$", "").split("_")) {
            out.append(word.charAt(0)).append(word.substring(1).toLowerCase(Locale.ROOT));
        }
        return out.toString();
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        List<Object> row = new ArrayList<>();
        spread(fields(message, version), value, row);
        Iterator<Object> waiting = row.iterator();
        Object struct = read(schema(message, version), waiting);
        if (waiting.hasNext()) {
            throw new Release.Unsupported(release.name + " has fewer fields in " + message + " v" + version);
        }
        return written(struct);
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        List<Object> row = new ArrayList<>();
        print(Release.call(schema(message, version), "read", bytes), row);
        Iterator<Object> waiting = row.iterator();
        Map<String, Object> value = gather(fields(message, version), waiting);
        if (waiting.hasNext()) {
            throw new Release.Unsupported(release.name + " has more fields in " + message + " v" + version);
        }
        return value;
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        return written(Release.call(schema(message, version), "read", bytes));
    }

    @Override
    public int[] versions(String message) throws Throwable {
        Map<Integer, Object> found = schemas().getOrDefault(message, Collections.emptyMap());
        if (found.isEmpty()) {
            throw new Release.Unsupported(release.name + " has no " + message);
        }
        return new int[] {Collections.min(found.keySet()), Collections.max(found.keySet())};
    }

    private Object schema(String message, int version) throws Throwable {
        Object found = schemas().getOrDefault(message, Collections.emptyMap()).get(version);
        if (found == null) {
            throw new Release.Unsupported(release.name + " has no " + message + " v" + version);
        }
        return found;
    }

    // -- names: converts a value to its leaves and lists, and back

    private List<Object> fields(String message, int version) {
        Object found = Values.object(names.getOrDefault(message, Collections.emptyMap())).get(String.valueOf(version));
        if (found == null) {
            throw new Release.Unsupported("the fields of " + message + " v" + version + " have no names");
        }
        return Values.list(found);
    }

    private static void spread(List<Object> fields, Map<String, Object> value, List<Object> row) {
        int known = 0;
        for (Object each : fields) {
            Map<String, Object> field = Values.object(each);
            String name = Values.text(field.get("name"));
            known += value.containsKey(name) ? 1 : 0;
            Object given = value.getOrDefault(name, field.get("default"));
            List<Object> inner = field.get("fields") == null ? null : Values.list(field.get("fields"));
            if (field.get("array").equals(true) && given != null) {
                List<Object> elements = new ArrayList<>();
                for (Object element : Values.list(given)) {
                    List<Object> one = new ArrayList<>();
                    if (inner == null) {
                        one.add(element);
                    } else {
                        spread(inner, Values.object(element), one);
                    }
                    elements.add(one);
                }
                row.add(elements);
            } else if (inner != null && field.get("array").equals(false)) {
                spread(inner, Values.object(given), row);
            } else {
                row.add(given);
            }
        }
        if (known < value.size()) {
            throw new Release.Unsupported("the number of fields in this version is " + fields.size(), Claims.FIELDS);
        }
    }

    private static Map<String, Object> gather(List<Object> fields, Iterator<Object> row) {
        Map<String, Object> value = new LinkedHashMap<>();
        for (Object each : fields) {
            Map<String, Object> field = Values.object(each);
            List<Object> inner = field.get("fields") == null ? null : Values.list(field.get("fields"));
            Object found;
            if (inner != null && field.get("array").equals(false)) {
                found = gather(inner, row);
            } else if (!row.hasNext()) {
                throw new Release.Unsupported("its schema has fewer fields than " + fields.size());
            } else {
                found = row.next();
            }
            if (field.get("array").equals(true) && found != null) {
                List<Object> elements = new ArrayList<>();
                for (Object element : Values.list(found)) {
                    Iterator<Object> one = Values.list(element).iterator();
                    elements.add(inner == null ? one.next() : gather(inner, one));
                }
                found = elements;
            }
            value.put(Values.text(field.get("name")), found);
        }
        return value;
    }

    // -- rows: converts leaves in wire order to the release's structs, and back; a list is a list of rows

    private static ByteBuffer written(Object struct) throws Throwable {
        ByteBuffer out = ByteBuffer.allocate((Integer) Release.call(struct, "sizeOf"));
        Release.call(struct, "writeTo", out);
        out.flip();
        return out;
    }

    private Object read(Object schema, Iterator<Object> row) throws Throwable {
        Object struct = Release.create(release.need("org.apache.kafka.common.protocol.types.Struct"), schema);
        Object[] values = values(struct);
        List<Object> types = types(schema);
        for (int i = 0; i < values.length; i++) {
            values[i] = readOne(types.get(i), row);
        }
        return struct;
    }

    private Object readOne(Object type, Iterator<Object> row) throws Throwable {
        String kind = type.getClass().getSimpleName();
        if (kind.equals("Schema")) {
            return read(type, row);
        }
        if (!row.hasNext()) {
            throw new Release.Unsupported(release.name + " has more fields here");
        }
        Object given = row.next();
        if (given == null) {
            return null;
        }
        if (kind.equals("ArrayOf")) {
            List<Object> elements = new ArrayList<>();
            for (Object each : Values.list(given)) {
                elements.add(readOne(Release.get(type, "type"), Values.list(each).iterator()));
            }
            return elements.toArray();
        }
        switch (type.toString()) {
            case "BOOLEAN":
                return given;
            case "INT8":
                return (byte) Values.integer(given, Byte.MIN_VALUE, Byte.MAX_VALUE);
            case "INT16":
                return (short) Values.integer(given, Short.MIN_VALUE, Short.MAX_VALUE);
            case "INT32":
                return Values.int32(given);
            case "INT64":
                return Values.integer(given, Long.MIN_VALUE, Long.MAX_VALUE);
            case "STRING":
            case "NULLABLE_STRING":
                return Values.text(given);
            case "BYTES":
            case "NULLABLE_BYTES":
                return ByteBuffer.wrap(Values.bytes(given));
            default:
                throw new Release.Unsupported("values of type " + type + " are not supported");
        }
    }

    private void print(Object struct, List<Object> row) throws Throwable {
        Object[] values = values(struct);
        List<Object> types = types(Release.call(struct, "schema"));
        for (int i = 0; i < values.length; i++) {
            printOne(types.get(i), values[i], row);
        }
    }

    private void printOne(Object type, Object made, List<Object> row) throws Throwable {
        if (type.getClass().getSimpleName().equals("Schema")) {
            print(made, row);
        } else if (made instanceof Object[]) {
            List<Object> elements = new ArrayList<>();
            for (Object each : (Object[]) made) {
                List<Object> inner = new ArrayList<>();
                printOne(Release.get(type, "type"), each, inner);
                elements.add(inner);
            }
            row.add(elements);
        } else {
            row.add(made instanceof ByteBuffer ? Values.hex((ByteBuffer) made) : made);
        }
    }

    private static Object[] values(Object struct) throws Throwable {
        return (Object[]) Release.need(struct.getClass(), "values").get(struct);
    }

    private List<Object> types(Object schema) throws Throwable {
        List<Object> found = types.get(schema);
        if (found == null) {
            found = new ArrayList<>();
            Object fields = Release.get(schema, "fields");
            for (int i = 0; i < Array.getLength(fields); i++) {
                Object field = Array.get(fields, i);
                Object def = Release.has(field.getClass(), "def") ? Release.get(field, "def") : field;
                found.add(Release.get(def, "type"));
            }
            types.put(schema, found);
        }
        return found;
    }
}
