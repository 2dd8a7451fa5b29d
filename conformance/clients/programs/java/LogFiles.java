package kipcheck;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.stream.Stream;

/** The files beside a log, which a release reads and writes with its own classes. In Scala they lose the order of maps. */
final class LogFiles implements Codec {
    static final Map<String, List<String>> CLASSES = Map.of(
        "ProducerSnapshot", List.of(
            "org.apache.kafka.storage.internals.log.ProducerStateManager", "kafka.log.ProducerStateManager"),
        "LeaderEpochCheckpoint", List.of(
            "org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile",
            "kafka.server.checkpoints.LeaderEpochCheckpointFile"),
        "CleanerCheckpoint", List.of(
            "org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile",
            "kafka.server.checkpoints.OffsetCheckpointFile"),
        "PartitionMetadata", List.of(
            "org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile",
            "kafka.server.PartitionMetadataFile"));
    private static final List<String> FAILURES = List.of(
        "org.apache.kafka.storage.internals.log.LogDirFailureChannel", "kafka.server.LogDirFailureChannel");
    private static final List<String> EPOCHS = List.of(
        "org.apache.kafka.storage.internals.log.EpochEntry", "kafka.server.epoch.EpochEntry");
    private static final List<String> PRODUCERS = List.of(
        "org.apache.kafka.storage.internals.log.ProducerStateEntry", "kafka.log.ProducerStateEntry",
        "kafka.log.ProducerIdEntry");
    private static final List<String> BATCHES = List.of(
        "org.apache.kafka.storage.internals.log.BatchMetadata", "kafka.log.BatchMetadata");
    private static final long NO_TRANSACTION = -1;

    private final Release release;

    LogFiles(Release release) {
        this.release = release;
    }

    private interface Work<T> {
        T on(File file) throws Throwable;
    }

    private static <T> T inFile(byte[] content, Work<T> work) throws Throwable {
        Path folder = Temporary.folder("file");
        try {
            File file = folder.resolve("file").toFile();
            if (content != null) {
                Files.write(file.toPath(), content);
            }
            return work.on(file);
        } finally {
            try (Stream<Path> left = Files.list(folder)) {
                left.forEach(each -> each.toFile().delete());
            }
            folder.toFile().delete();
        }
    }

    @Override
    public int[] versions(String message) {
        any(CLASSES.get(message));
        int only = message.equals("ProducerSnapshot") ? 1 : 0;
        return new int[] {only, only};
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        require(message, version);
        return written(message, switch (message) {
            case "ProducerSnapshot" -> producers(value);
            case "LeaderEpochCheckpoint" -> epochs(value);
            case "CleanerCheckpoint" -> offsets(value);
            default -> Release.callStatic(
                release.need("org.apache.kafka.common.Uuid"), "fromString", Values.text(value.get("topicId")));
        });
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        require(message, version);
        Object found = read(message, bytes);
        return written(message, message.equals("PartitionMetadata") ? call(found, "topicId") : found);
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        require(message, version);
        Object found = read(message, bytes);
        Map<String, Object> value = new LinkedHashMap<>();
        if (message.equals("PartitionMetadata")) {
            value.put("version", ((Number) call(found, "version")).longValue());
            value.put("topicId", String.valueOf(call(found, "topicId")));
            return value;
        }
        boolean snapshot = message.equals("ProducerSnapshot");
        List<Object> entries = new ArrayList<>();
        for (Object each : elements(found)) {
            entries.add(snapshot ? producer(each) : message.equals("CleanerCheckpoint") ? offset(each) : epoch(each));
        }
        value.put("version", (long) version);
        value.put(snapshot ? "producerEntries" : "entries", entries);
        return value;
    }

    private void require(String message, int version) {
        if (version != versions(message)[0]) {
            throw new Release.Unsupported(release.name + " has " + message + " as " + versions(message)[0] + " only");
        }
    }

    private Class<?> any(List<String> names) {
        for (String each : names) {
            Class<?> found = release.find(each);
            if (found != null) {
                return found;
            }
        }
        throw new Release.Unsupported(release.name + " has no class " + names.get(names.size() - 1));
    }

    // Files

    private Object read(String message, ByteBuffer bytes) throws Throwable {
        byte[] content = new byte[bytes.remaining()];
        bytes.get(content);
        Class<?> type = any(CLASSES.get(message));
        return inFile(content, file -> message.equals("ProducerSnapshot")
            ? Release.invoke(named(snapshots(type), "readSnapshot", 1), scalaObject(type), file)
            : call(opened(type, file), "read"));
    }

    /** A snapshot takes a map by id of the producer, from an iterable too; the others take what they have read. */
    private ByteBuffer written(String message, Object value) throws Throwable {
        Class<?> type = any(CLASSES.get(message));
        return inFile(null, file -> {
            if (message.equals("ProducerSnapshot")) {
                Method write = named(snapshots(type), "writeSnapshot", -1);
                Object byId = byId(write.getParameterTypes()[1], value);
                Release.invoke(write, scalaObject(type), write.getParameterCount() == 2
                    ? new Object[] {file, byId} : new Object[] {file, byId, false});
            } else if (message.equals("PartitionMetadata")) {
                Object into = opened(type, file);
                Release.invoke(named(type, "record", 1), into, value);
                Release.invoke(named(type, "maybeFlush", 0), into);
            } else {
                Release.invoke(named(type, "write", 1), opened(type, file), value);
            }
            return ByteBuffer.wrap(Files.readAllBytes(file.toPath()));
        });
    }

    private Class<?> snapshots(Class<?> type) {
        return type.getName().startsWith("kafka.") ? release.need(type.getName() + "$") : type;
    }

    private Object scalaObject(Class<?> type) throws Throwable {
        return type.getName().startsWith("kafka.") ? singleton(type.getName() + "$") : null;
    }

    private Object opened(Class<?> type, File file) throws Throwable {
        Constructor<?> made = Release.widest(type);
        return made.getParameterCount() == 1
            ? Release.create(made, file) : Release.create(made, file, Release.create(any(FAILURES), 1));
    }

    // Values

    private Object producers(Map<String, Object> value) throws Throwable {
        List<Object> entries = new ArrayList<>();
        for (Object each : Values.list(value.get("producerEntries"))) {
            entries.add(producer(Values.object(each)));
        }
        return entries;
    }

    private Object producer(Map<String, Object> value) throws Throwable {
        long timestamp = number(value, "timestamp");
        Object batch = Release.create(Release.widest(any(BATCHES)), Values.int32(value.get("lastSequence")),
            number(value, "lastOffset"), Values.int32(value.get("offsetDelta")), timestamp);
        long first = number(value, "currentTxnFirstOffset");
        Constructor<?> made = Release.widest(any(PRODUCERS));
        List<Object> given = new ArrayList<>();
        boolean added = false;
        for (Class<?> each : made.getParameterTypes()) {
            if (each == long.class) {
                given.add(given.isEmpty() ? number(value, "producerId") : timestamp);
            } else if (each == short.class) {
                given.add((short) Values.integer(value.get("epoch"), Short.MIN_VALUE, Short.MAX_VALUE));
            } else if (each == int.class) {
                given.add(Values.int32(value.get("coordinatorEpoch")));
            } else if (each == OptionalLong.class) {
                given.add(first == NO_TRANSACTION ? OptionalLong.empty() : OptionalLong.of(first));
            } else if (each == Optional.class) {
                given.add(Optional.of(batch));
                added = true;
            } else if (each.getName().equals("scala.Option")) {
                given.add(first == NO_TRANSACTION ? singleton("scala.None$") : some(first));
            } else {
                Object queue = call(singleton("scala.collection.mutable.Queue$"), "empty");
                given.add(Release.invoke(named(queue.getClass(), "$plus$eq", 1), queue, batch));
                added = true;
            }
        }
        Object entry = Release.create(made, given.toArray());
        if (!added) {
            Release.invoke(named(entry.getClass(), "addBatchMetadata", 1), entry, batch);
        }
        return entry;
    }

    private Map<String, Object> producer(Object entry) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("producerId", call(entry, "producerId"));
        value.put("epoch", ((Number) call(entry, "producerEpoch")).longValue());
        value.put("lastSequence", ((Number) call(entry, "lastSeq")).longValue());
        value.put("lastOffset", call(entry, "lastDataOffset"));
        value.put("offsetDelta", ((Number) call(entry, "lastOffsetDelta")).longValue());
        value.put("timestamp", call(entry, "lastTimestamp"));
        value.put("coordinatorEpoch", ((Number) call(entry, "coordinatorEpoch")).longValue());
        Object first = call(entry, "currentTxnFirstOffset");
        boolean none = first instanceof OptionalLong given ? given.isEmpty() : (Boolean) call(first, "isEmpty");
        value.put("currentTxnFirstOffset", none ? NO_TRANSACTION
            : first instanceof OptionalLong given ? given.getAsLong() : call(first, "get"));
        return value;
    }

    private Object epochs(Map<String, Object> value) throws Throwable {
        List<Object> entries = new ArrayList<>();
        for (Object each : Values.list(value.get("entries"))) {
            Map<String, Object> entry = Values.object(each);
            entries.add(Release.create(Release.widest(any(EPOCHS)), Values.int32(entry.get("epoch")),
                number(entry, "startOffset")));
        }
        Class<?> wanted = named(any(CLASSES.get("LeaderEpochCheckpoint")), "write", 1).getParameterTypes()[0];
        if (wanted.isInstance(entries)) {
            return entries;
        }
        Object made = singleton("scala.collection.immutable.Nil$");
        Collections.reverse(entries);
        for (Object each : entries) {
            made = Release.invoke(named(made.getClass(), "$colon$colon", 1), made, each);
        }
        return made;
    }

    private static Map<String, Object> epoch(Object entry) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("epoch", ((Number) field(entry, "epoch")).longValue());
        value.put("startOffset", field(entry, "startOffset"));
        return value;
    }

    private Object offsets(Map<String, Object> value) throws Throwable {
        Map<Object, Object> entries = new LinkedHashMap<>();
        Class<?> partition = release.need("org.apache.kafka.common.TopicPartition");
        for (Object each : Values.list(value.get("entries"))) {
            Map<String, Object> entry = Values.object(each);
            entries.put(Release.create(partition, Values.text(entry.get("topic")),
                Values.int32(entry.get("partition"))), number(entry, "offset"));
        }
        Class<?> wanted = named(any(CLASSES.get("CleanerCheckpoint")), "write", 1).getParameterTypes()[0];
        return wanted.isInstance(entries) ? entries : scalaMap(entries);
    }

    private static Map<String, Object> offset(Object entry) throws Throwable {
        boolean java = entry instanceof Map.Entry;
        Object partition = java ? ((Map.Entry<?, ?>) entry).getKey() : call(entry, "_1");
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("topic", call(partition, "topic"));
        value.put("partition", ((Number) call(partition, "partition")).longValue());
        value.put("offset", java ? ((Map.Entry<?, ?>) entry).getValue() : call(entry, "_2"));
        return value;
    }

    // Collections

    private Object byId(Class<?> wanted, Object entries) throws Throwable {
        Map<Object, Object> found = new LinkedHashMap<>();
        for (Object each : elements(entries)) {
            found.put(call(each, "producerId"), each);
        }
        return wanted.isInstance(found) ? found : scalaMap(found);
    }

    private Object scalaMap(Map<Object, Object> entries) throws Throwable {
        Object made = call(singleton("scala.collection.mutable.LinkedHashMap$"), "empty");
        for (Map.Entry<Object, Object> each : entries.entrySet()) {
            Release.invoke(named(made.getClass(), "put", 2), made, each.getKey(), each.getValue());
        }
        return made;
    }

    private static List<Object> elements(Object collection) throws Throwable {
        if (collection instanceof Map<?, ?> map) {
            return new ArrayList<>(map.entrySet());
        }
        if (collection instanceof Collection<?> some) {
            return new ArrayList<>(some);
        }
        List<Object> found = new ArrayList<>();
        Object iterator = call(collection, "iterator");
        while ((Boolean) call(iterator, "hasNext")) {
            found.add(call(iterator, "next"));
        }
        return found;
    }

    private Object some(long value) throws Throwable {
        return Release.create(release.need("scala.Some"), (Object) value);
    }

    private Object singleton(String name) throws Throwable {
        return release.need(name).getField("MODULE$").get(null);
    }

    private static long number(Map<String, Object> value, String name) {
        return Values.integer(value.get(name), Long.MIN_VALUE, Long.MAX_VALUE);
    }

    private static Object field(Object on, String name) throws Throwable {
        return Release.get(on, name);
    }

    private static Object call(Object on, String name) throws Throwable {
        return Release.invoke(named(on.getClass(), name, 0), on);
    }

    /** The method whose name is, or in Scala ends in, that one. */
    private static Method named(Class<?> type, String name, int parameters) {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Method one : each.getDeclaredMethods()) {
                boolean fits = parameters < 0 || one.getParameterCount() == parameters;
                boolean named = one.getName().equals(name) || one.getName().endsWith("$$" + name);
                if (fits && named && !one.isBridge() && !one.getName().startsWith("$anonfun")) {
                    one.setAccessible(true);
                    return one;
                }
            }
        }
        for (Method one : type.getMethods()) {
            if (one.getName().equals(name) && one.getParameterCount() == parameters) {
                one.setAccessible(true);
                return one;
            }
        }
        throw new Release.Unsupported(type.getName() + " has no method " + name);
    }
}
