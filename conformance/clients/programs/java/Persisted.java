package kipcheck;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/**
 * What the group coordinator of a release writes into __consumer_offsets, and what it can load from there.
 *
 * <p>The coordinator in Scala chooses the version of a record by the inter-broker version (up to 2.0 by itself), the one
 * in Java, which only KRaft has, by itself.
 */
final class Persisted {
    private static final String SCALA = "kafka.coordinator.group.";
    private static final String JAVA = "org.apache.kafka.coordinator.group.";
    private static final String GROUP = "g";
    private static final long COMMITTED = 42;
    private static final long TIMESTAMP = 1000;

    private final Release release;

    Persisted(Release release) {
        this.release = release;
    }

    static boolean knows(String op) {
        return op.equals("write-record") || op.equals("read-record")
            || op.equals("inter-broker-versions") || op.equals("transaction-versions");
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        Map<String, Object> result = new LinkedHashMap<>();
        if (order.get("op").equals("inter-broker-versions")) {
            result.put("value", interBrokerVersions());
            return result;
        }
        if (order.get("op").equals("transaction-versions")) {
            result.put("value", transactionVersions());
            return result;
        }
        String message = Values.text(order.get("message"));
        if (order.get("op").equals("read-record")) {
            load(message, ByteBuffer.wrap(Values.bytes(order.get("hex"))));
            return result;
        }
        Map<String, Object> value = Values.object(order.get("value"));
        boolean expires = Boolean.TRUE.equals(value.get("expires"));
        String version = Values.text(value.get("inter_broker"));
        byte[] written = inScala() ? writeInScala(message, version, expires) : writeInJava(message, expires);
        result.put("hex", Values.hex(written));
        return result;
    }

    private boolean inScala() {
        return release.find(SCALA + "GroupMetadataManager$") != null;
    }

    // In Scala

    private List<Object> interBrokerVersions() throws Throwable {
        List<Object> names = new ArrayList<>();
        Class<?> now = release.find("org.apache.kafka.server.common.MetadataVersion");
        if (now != null && release.find("kafka.api.ApiVersion$") == null) {
            for (Object each : now.getEnumConstants()) {
                names.add(Release.call(each, "version"));
            }
            return names;
        }
        Object every = Release.call(singleton("kafka.api.ApiVersion$"), "allVersions");
        Object iterator = scala(every, "iterator");
        while ((Boolean) scala(iterator, "hasNext")) {
            Object each = scala(iterator, "next");
            names.add(scala(each, "version"));
        }
        return names;
    }

    /** By level of transaction.version: the version of the values in __transaction_state. */
    private List<Object> transactionVersions() throws Throwable {
        List<Object> versions = new ArrayList<>();
        for (Object each : release.need("org.apache.kafka.server.common.TransactionVersion").getEnumConstants()) {
            versions.add(((Short) Release.call(each, "transactionLogValueVersion")).longValue());
        }
        return versions;
    }

    private byte[] writeInScala(String message, String version, boolean expires) throws Throwable {
        Object manager = singleton(SCALA + "GroupMetadataManager$");
        boolean offset = message.equals("OffsetCommitValue");
        Method write = named(manager.getClass(), offset ? "offsetCommitValue" : "groupMetadataValue");
        List<Object> given = new ArrayList<>();
        given.add(offset ? offsetInScala(expires) : groupInScala());
        if (!offset) {
            given.add(scala(singleton("scala.collection.immutable.Map$"), "empty"));
        }
        if (write.getParameterCount() > given.size()) {
            Class<?> chosen = write.getParameterTypes()[given.size()];
            given.add(chosen == short.class
                ? newestInScala(manager) : interBroker(chosen, version));
        }
        return (byte[]) Release.invoke(write, manager, given.toArray());
    }

    /** What the callers pass up to 2.0, for each inter-broker version from 0.10.1 on. */
    private static Object newestInScala(Object manager) throws IllegalAccessException {
        for (Field each : manager.getClass().getDeclaredFields()) {
            if (each.getName().endsWith("CURRENT_GROUP_VALUE_SCHEMA_VERSION")) {
                each.setAccessible(true);
                return each.get(manager);
            }
        }
        throw new Release.Unsupported(manager.getClass().getName() + " has no newest version");
    }

    private Object interBroker(Class<?> type, String version) throws Throwable {
        return type.getName().equals("kafka.api.ApiVersion")
            ? scala(singleton("kafka.api.ApiVersion$"), "apply", version)
            : Release.callStatic(type, "fromVersionString", version);
    }

    private Object offsetInScala(boolean expires) throws Throwable {
        Class<?> type = release.need("kafka.common.OffsetAndMetadata");
        Class<?> old = release.find("kafka.common.OffsetMetadata");
        if (old != null) {
            // Up to 2.0 a record has an expiry in any case.
            return Release.create(type, Release.create(old, COMMITTED, ""), TIMESTAMP, TIMESTAMP + 1);
        }
        Object none = singleton("scala.None$");
        Object expiry = expires ? scala(singleton("scala.Some$"), "apply", (Object) (TIMESTAMP + 1)) : none;
        return Release.create(type, COMMITTED, Optional.of(7), "", TIMESTAMP, expiry);
    }

    private Object groupInScala() throws Throwable {
        Class<?> type = release.need(SCALA + "GroupMetadata");
        Object empty = singleton(SCALA + "Empty$");
        return Release.widest(type).getParameterCount() == 2
            ? Release.create(type, GROUP, empty) : Release.create(type, GROUP, empty, time());
    }

    private Object time() throws Throwable {
        return release.need("org.apache.kafka.common.utils.Time").getField("SYSTEM").get(null);
    }

    private void load(String message, ByteBuffer bytes) throws Throwable {
        if (!inScala()) {
            loadInJava(message, bytes);
            return;
        }
        Object manager = singleton(SCALA + "GroupMetadataManager$");
        if (message.endsWith("Key")) {
            scala(manager, "readMessageKey", bytes);
        } else if (message.equals("OffsetCommitValue")) {
            scala(manager, "readOffsetMessageValue", bytes);
        } else {
            Method read = named(manager.getClass(), "readGroupMessageValue");
            Release.invoke(read, manager, read.getParameterCount() == 2
                ? new Object[] {GROUP, bytes} : new Object[] {GROUP, bytes, time()});
        }
    }

    private Object singleton(String name) throws Throwable {
        Field field = release.need(name).getField("MODULE$");
        return field.get(null);
    }

    /** The public method of that name: the classes of collections implement it where programs cannot call it. */
    private static Object scala(Object on, String name, Object... given) throws Throwable {
        Method found = named(on.getClass(), name);
        found.setAccessible(true);
        return Release.invoke(found, on, given);
    }

    private static Method named(Class<?> type, String name) {
        for (Method each : type.getMethods()) {
            if (each.getName().equals(name) && !each.isBridge()) {
                return each;
            }
        }
        throw new Release.Unsupported(type.getName() + " has no method " + name);
    }

    // In Java

    private Object serde() throws Throwable {
        return Release.create(release.need(JAVA + "GroupCoordinatorRecordSerde"));
    }

    private byte[] writeInJava(String message, boolean expires) throws Throwable {
        Class<?> helpers = release.need(JAVA + "GroupCoordinatorRecordHelpers");
        Object record = message.equals("OffsetCommitValue")
            ? Release.callStatic(helpers, "newOffsetCommitRecord", GROUP, "t", 0, offsetInJava(expires))
            : Release.callStatic(helpers, "newEmptyGroupMetadataRecord", groupInJava());
        return (byte[]) Release.call(serde(), "serializeValue", record);
    }

    private Object offsetInJava(boolean expires) throws Throwable {
        OptionalLong expiry = expires ? OptionalLong.of(TIMESTAMP + 1) : OptionalLong.empty();
        Class<?> type = release.need(JAVA + "OffsetAndMetadata");
        Object none = release.need("org.apache.kafka.common.Uuid").getField("ZERO_UUID").get(null);
        for (var each : type.getConstructors()) {
            if (each.getParameterCount() == 5) {
                return Release.create(each, COMMITTED, OptionalInt.of(7), "", TIMESTAMP, expiry);
            }
        }
        return Release.create(type, COMMITTED, OptionalInt.of(7), "", TIMESTAMP, expiry, none);
    }

    private Object groupInJava() throws Throwable {
        Class<?> context = release.find("org.apache.kafka.common.utils.LogContext");
        context = context != null ? context : release.need("org.apache.kafka.common.utils.internals.LogContext");
        Object empty = release.need(JAVA + "classic.ClassicGroupState").getField("EMPTY").get(null);
        Class<?> type = release.need(JAVA + "classic.ClassicGroup");
        return Release.create(type, Release.create(context), GROUP, empty, time());
    }

    private void loadInJava(String message, ByteBuffer bytes) throws Throwable {
        boolean key = message.endsWith("Key");
        // A record with a key alone is a tombstone.
        ByteBuffer before = key ? bytes : keyOf(message);
        Release.call(serde(), "deserialize", before, key ? null : bytes);
    }

    private static ByteBuffer keyOf(String message) {
        byte[] group = GROUP.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        ByteBuffer made = ByteBuffer.allocate(64);
        boolean offset = message.equals("OffsetCommitValue");
        made.putShort((short) (offset ? 1 : 2)).putShort((short) group.length).put(group);
        if (offset) {
            made.putShort((short) 1).put((byte) 't').putInt(0);
        }
        made.flip();
        return made;
    }
}
