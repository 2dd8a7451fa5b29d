package kipcheck;

import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Writes and reads record batches with the classes of a release: {@code RELEASE=JAR:JAR}. Each line of the input is a
 * batch, with its fields as in the answers to bytes, or {@code {"hex": ...}}; the answer to a batch is its bytes, that to
 * bytes is a list of batches, or {@code {"thrown": CLASS}}.
 */
final class Batches {
    private static final String PACKAGE = "org.apache.kafka.common.record.";

    private final Release release;

    private Batches(Release release) {
        this.release = release;
    }

    public static void main(String[] arguments) throws Throwable {
        int at = arguments[0].indexOf('=');
        List<String> jars = Arrays.asList(arguments[0].substring(at + 1).split(File.pathSeparator));
        Batches batches = new Batches(new Release(arguments[0].substring(0, at), jars));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, Object> asked = Values.object(Json.parse(line));
            Object answer;
            try {
                answer = asked.containsKey("hex") ? batches.read(Values.bytes(asked.get("hex"))) : batches.write(asked);
            } catch (Exception thrown) {
                answer = Map.of("thrown", thrown.getClass().getName());
            }
            System.out.println(Json.print(answer));
        }
    }

    private String write(Map<String, Object> batch) throws Throwable {
        Class<?> type = need("MemoryRecords");
        long offset = number(batch, "baseOffset");
        long producer = number(batch, "producerId");
        short epoch = (short) number(batch, "producerEpoch");
        int leader = (int) number(batch, "leaderEpoch");
        Object made;
        if (Boolean.TRUE.equals(batch.get("control"))) {
            Object commit = constant(need("ControlRecordType"), "COMMIT");
            Object marker = Release.create(need("EndTransactionMarker"), commit, 7);
            made = Release.callStatic(type, "withEndTransactionMarker", offset, number(batch, "baseTimestamp"), leader,
                producer, epoch, marker);
        } else {
            made = Release.callStatic(type, "withRecords", (byte) number(batch, "magic"), offset, compression(),
                constant(need("TimestampType"), "CREATE_TIME"), producer, epoch,
                (int) number(batch, "baseSequence"), leader, batch.get("transactional"), simple(batch));
        }
        return Values.hex((ByteBuffer) Release.call(made, "buffer"));
    }

    private Object simple(Map<String, Object> batch) throws Throwable {
        Class<?> type = need("SimpleRecord");
        Class<?> interfaced = release.need("org.apache.kafka.common.header.Header");
        List<?> given = (List<?>) batch.get("records");
        Object made = Array.newInstance(type, given.size());
        for (int i = 0; i < given.size(); i++) {
            Map<String, Object> each = Values.object(given.get(i));
            List<?> named = (List<?>) each.get("headers");
            Object headers = Array.newInstance(interfaced, named.size());
            for (int j = 0; j < named.size(); j++) {
                Map<String, Object> header = Values.object(named.get(j));
                Class<?> implemented = release.need("org.apache.kafka.common.header.internals.RecordHeader");
                Array.set(headers, j, implemented.getConstructor(String.class, byte[].class)
                    .newInstance(header.get("key"), bytes(header.get("value"))));
            }
            Array.set(made, i, type.getConstructor(long.class, byte[].class, byte[].class, headers.getClass())
                .newInstance(number(each, "timestamp"), bytes(each.get("key")), bytes(each.get("value")), headers));
        }
        return made;
    }

    private Object compression() throws Throwable {
        Class<?> type = release.find("org.apache.kafka.common.compress.Compression");
        return type != null && Release.has(type, "NONE") ? Release.need(type, "NONE").get(null)
            : constant(need("CompressionType"), "NONE");
    }

    /** Newer releases have most of the classes in a package of internals. */
    private Class<?> need(String name) throws Throwable {
        Class<?> found = release.find(PACKAGE + name);
        return found == null ? release.need(PACKAGE + "internal." + name) : found;
    }

    private List<Object> read(byte[] given) throws Throwable {
        Class<?> type = need("MemoryRecords");
        Object read = Release.callStatic(type, "readableRecords", ByteBuffer.wrap(given));
        List<Object> found = new ArrayList<>();
        for (Object each : (Iterable<?>) Release.call(read, "batches")) {
            Release.call(each, "ensureValid");
            Map<String, Object> batch = new LinkedHashMap<>();
            batch.put("magic", (long) (Byte) Release.call(each, "magic"));
            for (String name : new String[] {"baseOffset", "lastOffset", "maxTimestamp", "producerId", "producerEpoch",
                "baseSequence"}) {
                batch.put(name, ((Number) Release.call(each, name)).longValue());
            }
            batch.put("leaderEpoch", ((Number) Release.call(each, "partitionLeaderEpoch")).longValue());
            batch.put("transactional", Release.call(each, "isTransactional"));
            batch.put("control", Release.call(each, "isControlBatch"));
            List<Object> all = new ArrayList<>();
            for (Object record : (Iterable<?>) each) {
                all.add(printed(record));
            }
            batch.put("records", all);
            found.add(batch);
        }
        return found;
    }

    private static Map<String, Object> printed(Object record) throws Throwable {
        Map<String, Object> printed = new LinkedHashMap<>();
        printed.put("offset", Release.call(record, "offset"));
        printed.put("timestamp", Release.call(record, "timestamp"));
        printed.put("key", hex((ByteBuffer) Release.call(record, "key")));
        printed.put("value", hex((ByteBuffer) Release.call(record, "value")));
        List<Object> headers = new ArrayList<>();
        Object all = Release.call(record, "headers");
        for (int i = 0; i < Array.getLength(all); i++) {
            Map<String, Object> header = new LinkedHashMap<>();
            header.put("key", Release.call(Array.get(all, i), "key"));
            byte[] value = (byte[]) Release.call(Array.get(all, i), "value");
            header.put("value", value == null ? null : Values.hex(value));
            headers.add(header);
        }
        printed.put("headers", headers);
        return printed;
    }

    private static Object constant(Class<?> type, String name) {
        for (Object each : type.getEnumConstants()) {
            if (((Enum<?>) each).name().equals(name)) {
                return each;
            }
        }
        throw new Release.Unsupported(type + " has no " + name);
    }

    private static long number(Map<String, Object> from, String name) {
        return ((Number) from.get(name)).longValue();
    }

    private static byte[] bytes(Object value) {
        return value == null ? null : Values.bytes(value);
    }

    private static String hex(ByteBuffer value) {
        return value == null ? null : Values.hex(value);
    }
}
