package kipcheck;

import java.io.File;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;

/** The files beside a log: a release reads one with its own classes, and writes what it read. */
final class LogFiles {
    private static final String[] SNAPSHOTS = {
        "org.apache.kafka.storage.internals.log.ProducerStateManager", "kafka.log.ProducerStateManager$"};
    private static final String[] EPOCHS = {
        "org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile",
        "kafka.server.checkpoints.LeaderEpochCheckpointFile"};
    private static final String[] OFFSETS = {
        "org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile",
        "kafka.server.checkpoints.OffsetCheckpointFile"};
    private static final String[] METADATA = {
        "org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile", "kafka.server.PartitionMetadataFile"};
    private static final String[] FAILURES = {
        "org.apache.kafka.storage.internals.log.LogDirFailureChannel", "kafka.server.LogDirFailureChannel"};

    private final Release release;

    LogFiles(Release release) {
        this.release = release;
    }

    static boolean knows(String op) {
        return op.equals("recode-file");
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        Path folder = Files.createTempDirectory("kipcheck-file-");
        try {
            File from = folder.resolve("from").toFile();
            File to = folder.resolve("to").toFile();
            Files.write(from.toPath(), Values.bytes(order.get("hex")));
            switch (Values.text(order.get("message"))) {
                case "ProducerSnapshot" -> snapshot(from, to);
                case "LeaderEpochCheckpoint" -> checkpoint(EPOCHS, from, to);
                case "CleanerCheckpoint" -> checkpoint(OFFSETS, from, to);
                case "PartitionMetadata" -> metadata(from, to);
                default -> throw new Release.Unsupported("no such file");
            }
            Map<String, Object> result = new LinkedHashMap<>();
            result.put("hex", Values.hex(Files.readAllBytes(to.toPath())));
            return result;
        } finally {
            try (Stream<Path> left = Files.list(folder)) {
                left.forEach(each -> each.toFile().delete());
            }
            folder.toFile().delete();
        }
    }

    private Class<?> any(String[] names) {
        for (String each : names) {
            Class<?> found = release.find(each);
            if (found != null) {
                return found;
            }
        }
        throw new Release.Unsupported(release.name + " has no class " + names[names.length - 1]);
    }

    private void snapshot(File from, File to) throws Throwable {
        Class<?> type = any(SNAPSHOTS);
        boolean scala = type.getName().endsWith("$");
        Object on = scala ? type.getField("MODULE$").get(null) : null;
        Object entries = Release.invoke(named(type, "readSnapshot", 1), on, from);
        Object byProducer = new LinkedHashMap<Object, Object>();
        if (scala) {
            Field maps = release.need("scala.collection.mutable.Map$").getField("MODULE$");
            byProducer = call(maps.get(null), "empty");
            Object iterator = call(entries, "iterator");
            while ((Boolean) call(iterator, "hasNext")) {
                put(byProducer, call(iterator, "next"));
            }
        } else {
            for (Object each : (Collection<?>) entries) {
                put(byProducer, each);
            }
        }
        Method write = named(type, "writeSnapshot", -1);
        Object[] given = write.getParameterCount() == 2
            ? new Object[] {to, byProducer} : new Object[] {to, byProducer, false};
        Release.invoke(write, on, given);
    }

    private static void put(Object map, Object entry) throws Throwable {
        Method put = named(map.getClass(), "put", 2);
        Release.invoke(put, map, call(entry, "producerId"), entry);
    }

    private void checkpoint(String[] names, File from, File to) throws Throwable {
        Class<?> type = any(names);
        Object found = call(opened(type, from), "read");
        Release.invoke(named(type, "write", 1), opened(type, to), found);
    }

    private void metadata(File from, File to) throws Throwable {
        Class<?> type = any(METADATA);
        Object found = call(opened(type, from), "read");
        Object written = opened(type, to);
        Release.invoke(named(type, "record", 1), written, call(found, "topicId"));
        Release.invoke(named(type, "maybeFlush", 0), written);
    }

    private Object opened(Class<?> type, File file) throws Throwable {
        Constructor<?> made = Release.widest(type);
        return made.getParameterCount() == 1
            ? Release.create(made, file) : Release.create(made, file, Release.create(any(FAILURES), 1));
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
