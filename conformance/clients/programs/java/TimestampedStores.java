package kipcheck;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.Stream;

/**
 * The persistent key-value store of a release behind the operations of the testee protocol: RocksDB in a directory.
 *
 * <p>A crash leaves the files as they are at that moment: they are copied, and the store continues in the copy. What the
 * process had in memory alone is lost, as the write-ahead log is off in Streams.
 */
final class TimestampedStores {
    private static final String STATE = "org.apache.kafka.streams.state.";
    private static final String NAME = "store";
    private static final String HEADERS = STATE + "HeadersBytesStore";
    private static final Map<String, String> SUPPLIERS = Map.of(
        "plain", "persistentKeyValueStore", "timestamped", "persistentTimestampedKeyValueStore",
        "headers", "persistentTimestampedKeyValueStoreWithHeaders");
    private static final long NO_TIMESTAMP = -1;
    private static final int COPIES = 100;
    private static final List<String> KNOWN = List.of(
        "store-open", "store-put", "store-put-if-absent", "store-delete", "store-get", "store-range", "store-count",
        "store-restore", "store-flush", "store-close", "store-crash");

    private final Release release;
    private final Path kept;

    // State of one case.
    private Object held;
    private Path root;
    private int lives;
    private long flushes;
    private Object store;
    private StoreContext context;

    TimestampedStores(Release release) {
        this(release, null);
    }

    /** Keeps the store in a directory that stays, whatever the case is; null: a new one for each case. */
    TimestampedStores(Release release, Path kept) {
        this.release = release;
        this.kept = kept;
        this.root = kept;
    }

    static boolean knows(String op) {
        return KNOWN.contains(op);
    }

    /** Whether this release has timestamped stores, and RocksDB is there. */
    boolean available() {
        return release.find(STATE + "TimestampedBytesStore") != null && release.find("org.rocksdb.RocksDB") != null;
    }

    /** Whether this release has stores that keep the headers of a record. */
    boolean haveHeaders() {
        return release.find(HEADERS) != null;
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        if (kept == null && (root == null || !order.get("case").equals(held))) {
            forget();
            held = order.get("case");
            root = Temporary.folder("store");
        }
        String op = Values.text(order.get("op"));
        if (op.equals("store-open")) {
            return open(Values.text(order.get("format")));
        }
        if (store == null) {
            throw new IllegalStateException("the store is not open");
        }
        byte[] key = order.get("key") == null ? null : Values.bytes(order.get("key"));
        switch (op) {
            case "store-put":
                Release.call(store, "put", bytes(key), stored(order));
                return Map.of();
            case "store-put-if-absent":
                return found(Release.call(store, "putIfAbsent", bytes(key), stored(order)));
            case "store-delete":
                return found(Release.call(store, "delete", bytes(key)));
            case "store-get":
                return found(Release.call(store, "get", bytes(key)));
            case "store-range":
                return range(order.get("first"), order.get("last"));
            case "store-count":
                return Map.of("count", Release.call(store, "approximateNumEntries"));
            case "store-restore":
                restore(key, order);
                return Map.of();
            case "store-flush":
                flush();
                return Map.of();
            case "store-close":
                close();
                return Map.of();
            default:
                return crash(Boolean.TRUE.equals(order.get("flushing")));
        }
    }

    /** Ends the store of the last case, and deletes its directory. */
    void forget() {
        try {
            close();
        } catch (Throwable broken) {
            store = null;
        }
        if (root != null) {
            delete(root);
            root = null;
        }
        lives = 0;
        flushes = 0;
    }

    private File directory() {
        if (kept != null) {
            return kept.toFile();
        }
        return root.resolve(Integer.toString(lives)).toFile();
    }

    private Map<String, Object> open(String format) throws Throwable {
        if (format.equals("headers") && !haveHeaders()) {
            throw new Release.Unsupported("a store of " + release.name + " has no headers", Claims.STORE_HEADERS);
        }
        Object made = Release.call(
            Release.callStatic(release.need(STATE + "Stores"), SUPPLIERS.get(format), NAME), "get");
        StoreContext wanted = new StoreContext(release, directory());
        Files.createDirectories(directory().toPath());
        Release.call(made, "init", wanted.proxy(), made);
        store = made;
        context = wanted;
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("both", both());
        answer.put("flushes", kept());
        return answer;
    }

    /** Whether the store looks for values in both formats. */
    private boolean both() throws Throwable {
        if (release.find(STATE + "TimestampedBytesStore") == null) {
            return false;
        }
        Class<?> rocks = release.need(STATE + "internals.RocksDBStore");
        String field = Release.has(rocks, "cfAccessor") ? "cfAccessor" : "dbAccessor";
        return Release.need(rocks, field).get(store).getClass().getSimpleName().startsWith("Dual");
    }

    private boolean timestamped() {
        return marked(STATE + "TimestampedBytesStore");
    }

    private boolean withHeaders() {
        return marked(HEADERS);
    }

    private boolean marked(String name) {
        Class<?> marker = release.find(name);
        return marker != null && marker.isInstance(store);
    }

    private Object bytes(byte[] key) throws Throwable {
        return Release.create(release.need("org.apache.kafka.common.utils.Bytes"), (Object) key);
    }

    /** The bytes that a value has in the store; of a plain one, the value alone. */
    private byte[] stored(Map<String, Object> order) throws Throwable {
        if (order.get("value") == null) {
            return null;
        }
        byte[] value = Values.bytes(order.get("value"));
        if (withHeaders()) {
            return serialized("ValueTimestampHeaders", value, order.get("timestamp"), headers(order.get("headers")));
        }
        return timestamped() ? serialized("ValueAndTimestamp", value, order.get("timestamp")) : value;
    }

    /** What the serializer of this class makes of a value and what belongs to it. */
    private byte[] serialized(String name, Object... parts) throws Throwable {
        Object inner = Release.create(release.need("org.apache.kafka.common.serialization.ByteArraySerializer"));
        Object serializer = Release.create(release.need(STATE + "internals." + name + "Serializer"), inner);
        Object whole = Release.callStatic(release.need(STATE + name), "make", parts);
        return (byte[]) Release.call(serializer, "serialize", "changelog", whole);
    }

    /** {@code NAME=HEX} or {@code NAME}, separated by commas; the latter has a null value. */
    private Object headers(Object text) throws Throwable {
        Object made = Release.create(release.need("org.apache.kafka.common.header.internals.RecordHeaders"));
        if (text == null || text.equals("")) {
            return made;
        }
        for (String each : Values.text(text).split(",")) {
            String[] parts = each.split("=", 2);
            Release.call(made, "add", parts[0], parts.length == 1 ? null : Values.bytes(parts[1]));
        }
        return made;
    }

    private static String text(Object headers) throws Throwable {
        StringBuilder text = new StringBuilder();
        for (Object each : (Iterable<?>) headers) {
            text.append(text.length() == 0 ? "" : ",").append(Release.call(each, "key"));
            Object value = Release.call(each, "value");
            text.append(value == null ? "" : "=" + Values.hex((byte[]) value));
        }
        return text.toString();
    }

    private Map<String, Object> found(Object stored) throws Throwable {
        Map<String, Object> answer = new LinkedHashMap<>();
        if (stored == null) {
            answer.put("value", null);
            answer.put("timestamp", null);
            return answer;
        }
        byte[] all = (byte[]) stored;
        if (withHeaders()) {
            Object inner = Release.create(release.need("org.apache.kafka.common.serialization.ByteArrayDeserializer"));
            Object whole = Release.call(
                Release.create(release.need(STATE + "internals.ValueTimestampHeadersDeserializer"), inner),
                "deserialize", "changelog", all);
            answer.put("value", Values.hex((byte[]) Release.call(whole, "value")));
            answer.put("timestamp", Release.call(whole, "timestamp"));
            answer.put("headers", text(Release.call(whole, "headers")));
        } else if (timestamped()) {
            Class<?> reader = release.need(STATE + "internals.ValueAndTimestampDeserializer");
            answer.put("value", Values.hex((byte[]) Release.callStatic(reader, "rawValue", (Object) all)));
            answer.put("timestamp", Release.callStatic(reader, "timestamp", (Object) all));
        } else {
            answer.put("value", Values.hex(all));
            answer.put("timestamp", NO_TIMESTAMP);
        }
        return answer;
    }

    private Map<String, Object> range(Object first, Object last) throws Throwable {
        Object rows = first == null ? Release.call(store, "all")
            : Release.call(store, "range", bytes(Values.bytes(first)), bytes(Values.bytes(last)));
        List<Object> found = new ArrayList<>();
        while ((Boolean) Release.call(rows, "hasNext")) {
            Object row = Release.call(rows, "next");
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("key", Values.hex((byte[]) Release.call(Release.get(row, "key"), "get")));
            one.putAll(found(Release.get(row, "value")));
            found.add(one);
        }
        Release.call(rows, "close");
        return Map.of("rows", found);
    }

    /** A record of the changelog, converted as Streams does it for this kind of store. */
    private void restore(byte[] key, Map<String, Object> order) throws Throwable {
        byte[] value = order.get("value") == null ? null : Values.bytes(order.get("value"));
        Class<?> type = release.need("org.apache.kafka.common.record.TimestampType");
        Object created = Release.need(type, "CREATE_TIME").get(null);
        Object headers = headers(order.get("headers"));
        if (order.get("version") != null) {
            Release.call(headers, "add", "v", Values.bytes(order.get("version")));
        }
        Object record = record(key, value, (Long) order.get("timestamp"), created, headers);
        Class<?> converters = release.need(STATE + "internals.RecordConverters");
        Object converter = Release.callStatic(converters, withHeaders() ? "rawValueToHeadersValue"
            : timestamped() ? "rawValueToTimestampedValue" : "identity");
        record = Release.call(converter, "convert", record);
        Object callback = context.callback();
        if (Release.has(callback.getClass(), "restoreBatch")) {
            Release.call(callback, "restoreBatch", List.of(record));
        } else if (Release.has(callback.getClass(), "restoreAll")) {
            Object pair = Release.create(release.need("org.apache.kafka.streams.KeyValue"),
                Release.call(record, "key"), Release.call(record, "value"));
            Release.call(callback, "restoreAll", List.of(pair));
        } else {
            Release.call(callback, "restore", Release.call(record, "key"), Release.call(record, "value"));
        }
    }

    /** A record with a timestamp, which few constructors take: those of 3.0 on, and those with a checksum before. */
    private Object record(byte[] key, byte[] value, long timestamp, Object created, Object headers) throws Throwable {
        Class<?> type = release.need("org.apache.kafka.clients.consumer.ConsumerRecord");
        try {
            return Release.create(
                type, "changelog", 0, 0L, timestamp, created, 0, 0, key, value, headers, Optional.empty());
        } catch (Release.Unsupported earlier) {
            return Release.create(type, "changelog", 0, 0L, timestamp, created, 0L, 0, 0, key, value, headers);
        }
    }

    /** From 4.3 on, flush() does nothing: a task commits its stores instead, with the offsets of their changelogs. */
    private void flush() throws Throwable {
        flushes++;
        if (managesOffsets()) {
            Release.call(store, "commit", Map.of(changelog(), flushes));
        } else {
            Release.call(store, "flush");
        }
    }

    /** The number of flushes is used as the offset; null for a store without offsets. */
    private Object kept() throws Throwable {
        if (!managesOffsets()) {
            return null;
        }
        Object offset = Release.call(store, "committedOffset", changelog());
        return offset == null ? 0L : offset;
    }

    private boolean managesOffsets() throws Throwable {
        Class<?> type = release.need("org.apache.kafka.streams.processor.StateStore");
        return Release.has(type, "managesOffsets") && (Boolean) Release.call(store, "managesOffsets");
    }

    private Object changelog() throws Throwable {
        return Release.create(release.need("org.apache.kafka.common.TopicPartition"), "changelog", 0);
    }

    private void close() throws Throwable {
        if (store != null) {
            Object ended = store;
            store = null;
            Release.call(ended, "close");
        }
    }

    private Map<String, Object> crash(boolean flushing) throws Throwable {
        Class<?> watch = release.find(StoreContext.WATCH);
        if (flushing && watch == null) {
            throw new Release.Unsupported("the RocksDB of " + release.name + " reports no flushes", Claims.FLUSHES);
        }
        Path before = directory().toPath();
        lives++;
        Path after = directory().toPath();
        if (flushing) {
            Release.need(watch, "flushed").set(null, (Runnable) () -> left(before, after));
            flush();
            flushes--;
            Release.need(watch, "flushed").set(null, null);
        }
        left(before, after);
        close();
        delete(before);
        return Map.of();
    }

    /** Keeps the files as they are now, if they were not kept yet; a thread of RocksDB may be about it. */
    private static synchronized void left(Path before, Path after) {
        try {
            if (!Files.exists(after)) {
                keep(before, after);
            }
        } catch (IOException broken) {
            throw new UncheckedIOException(broken);
        }
    }

    /**
     * Copies the files as they are at one moment. RocksDB compacts in the background: when a file came, grew or went
     * meanwhile, the copy belongs to no moment, and is made again.
     */
    private static void keep(Path before, Path after) throws IOException {
        for (int tries = 0; tries < COPIES; tries++) {
            try {
                Map<Path, String> seen = listing(before);
                for (Path each : seen.keySet()) {
                    Files.copy(before.resolve(each), after.resolve(each));
                }
                if (seen.equals(listing(before))) {
                    return;
                }
            } catch (NoSuchFileException gone) {
                // Compacted away between the listing and its copy.
            }
            delete(after);
        }
        throw new IOException(before + " changed during each of " + COPIES + " copies");
    }

    /** Every path below the directory, parents first, with what changes when the file does. */
    private static Map<Path, String> listing(Path directory) throws IOException {
        Map<Path, String> seen = new TreeMap<>();
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path each : (Iterable<Path>) files::iterator) {
                BasicFileAttributes now = Files.readAttributes(each, BasicFileAttributes.class);
                String state = now.isDirectory() ? "directory" : now.size() + " bytes, " + now.lastModifiedTime();
                seen.put(directory.relativize(each), state);
            }
        } catch (UncheckedIOException walking) {
            throw walking.getCause();
        }
        return seen;
    }

    private static void delete(Path directory) {
        if (!Files.exists(directory)) {
            return;
        }
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        } catch (IOException left) {
            System.err.println(directory + " was not deleted: " + left);
        }
    }
}
