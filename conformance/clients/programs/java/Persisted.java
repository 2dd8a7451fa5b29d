package kipcheck;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;

/**
 * What the coordinators of a release write into __consumer_offsets and __transaction_state, and load from there.
 *
 * <p>The group coordinator in Scala chooses the version of a record by the inter-broker version (up to 2.0 by itself),
 * the one in Java, which only KRaft has, by itself. From 4.0 on brokers use no other, though 4.0 has both.
 */
final class Persisted {
    private static final String SCALA = "kafka.coordinator.group.";
    private static final String JAVA = "org.apache.kafka.coordinator.group.";
    private static final String TRANSACTIONS = "coordinator.transaction.";
    private static final String SERVER = "org.apache.kafka.server.common.";
    private static final String OFFSET = "OffsetCommitValue";
    private static final String CLASSIC = "GroupMetadataValue";
    private static final String TRANSACTION = "TransactionLogValue";
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

    /** Whether a jar with these classes has the coordinator of groups that brokers of this release use. */
    boolean available(Set<String> classes) {
        String used = inJava() ? JAVA + "GroupCoordinatorRecordSerde" : SCALA + "GroupMetadataManager";
        return classes.contains(used.replace('.', '/'));
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        Map<String, Object> result = new LinkedHashMap<>();
        String message = Values.text(order.get("message"));
        switch (Values.text(order.get("op"))) {
            case "inter-broker-versions" -> result.put("value", interBrokerVersions());
            case "transaction-versions" -> result.put("value", transactionVersions());
            case "read-record" -> result.put("loaded", load(message, ByteBuffer.wrap(Values.bytes(order.get("hex")))));
            default -> result.put("hex", Values.hex(write(message, order)));
        }
        return result;
    }

    private byte[] write(String message, Map<String, Object> order) throws Throwable {
        boolean expires = Boolean.TRUE.equals(order.get("expires"));
        String version = Values.text(order.get("inter_broker"));
        Object level = order.get("level");
        if (!inJava() && level != null) {
            throw new IllegalArgumentException("before 4.0 no feature selects records");
        }
        if (message.equals(TRANSACTION)) {
            return transaction(level);
        }
        if (!inJava()) {
            if (!message.equals(OFFSET) && !message.equals(CLASSIC)) {
                throw new IllegalArgumentException("the coordinator in Scala has no such record");
            }
            return writeInScala(message, version == null ? line() : version, expires);
        }
        // What refuses unknown settings is the broker; neither selects anything here.
        if (level != null) {
            featureLevel("GroupVersion", level);
        }
        if (version != null) {
            metadataVersion(version);
        }
        boolean gated = !message.equals(OFFSET) && !message.equals(CLASSIC);
        if (gated && level != null && Values.int32(level) == 0) {
            throw limited("the broker refuses requests of consumer groups at this level, and is not in this jar");
        }
        return writeInJava(message, expires);
    }

    private static Release.Unsupported limited(String why) {
        return new Release.Unsupported(why, Claims.RECORDS);
    }

    /** Up to 3.9 the coordinator in Java is a preview. */
    private boolean inJava() {
        return Integer.parseInt(release.name.substring(0, release.name.indexOf('.'))) >= 4;
    }

    /** The newest inter-broker version of the release. */
    private String line() {
        return release.name.substring(0, release.name.lastIndexOf('.'));
    }

    private Object metadataVersion(String version) throws Throwable {
        Class<?> type = release.need(SERVER + "MetadataVersion");
        for (Method each : type.getDeclaredMethods()) {
            if (each.getName().equals("fromVersionString")) {
                return Release.invoke(each, null, each.getParameterCount() == 1
                    ? new Object[] {version} : new Object[] {version, true});
            }
        }
        throw new Release.Unsupported(release.name + " does not parse a metadata.version");
    }

    private Object featureLevel(String feature, Object level) throws Throwable {
        Class<?> type = release.need(SERVER + feature);
        return Release.callStatic(type, "fromFeatureLevel", (short) Values.int32(level));
    }

    // Transactions

    private byte[] transaction(Object level) throws Throwable {
        Class<?> scala = release.find("kafka." + TRANSACTIONS + "TransactionLog$");
        Class<?> java = release.find("org.apache.kafka." + TRANSACTIONS + "TransactionLog");
        if (scala == null && java == null) {
            throw limited("the coordinator of transactions is in another jar");
        }
        Object on = scala == null ? null : scala.getField("MODULE$").get(null);
        Method write = named(scala == null ? java : scala, "valueToBytes");
        Class<?>[] taken = write.getParameterTypes();
        Object metadata = transit(taken[0]);
        if (taken.length == 1 || taken[1] == boolean.class) {
            // 3.9 asks for the flexible version where the cluster has finalized a feature that no release has there.
            return (byte[]) Release.invoke(write, on, taken.length == 1
                ? new Object[] {metadata} : new Object[] {metadata, false});
        }
        Object chosen = level == null
            ? release.need(SERVER + "TransactionVersion").getField("LATEST_PRODUCTION").get(null)
            : featureLevel("TransactionVersion", level);
        return (byte[]) Release.invoke(write, on, metadata, chosen);
    }

    /** A transactional id without a transaction: the state is empty, and so are the partitions. */
    private Object transit(Class<?> type) throws Throwable {
        Constructor<?> made = Release.widest(type);
        List<Object> given = new ArrayList<>();
        for (Class<?> each : made.getParameterTypes()) {
            if (each == long.class) {
                given.add(COMMITTED);
            } else if (each == short.class) {
                given.add((short) 0);
            } else if (each == int.class) {
                given.add((int) TIMESTAMP);
            } else if (each.getName().endsWith("TransactionState")) {
                given.add(each.isEnum() ? each.getField("EMPTY").get(null)
                    : singleton("kafka." + TRANSACTIONS + "Empty$"));
            } else if (each.getName().endsWith("TransactionVersion")) {
                given.add(each.getField("TV_0").get(null));
            } else {
                given.add(each.isAssignableFrom(HashSet.class) ? new HashSet<>()
                    : scala(singleton("scala.collection.immutable.Set$"), "empty"));
            }
        }
        return Release.create(made, given.toArray());
    }

    private boolean loadTransaction(ByteBuffer bytes) throws Throwable {
        Class<?> scala = release.find("kafka." + TRANSACTIONS + "TransactionLog$");
        if (scala != null) {
            scala(scala.getField("MODULE$").get(null), "readTxnRecordValue", GROUP, bytes);
            return true;
        }
        Class<?> java = release.find("org.apache.kafka." + TRANSACTIONS + "TransactionLog");
        if (java == null) {
            throw limited("the coordinator of transactions is in another jar");
        }
        if (Release.has(java, "readTxnRecordValue")) {
            Release.invoke(named(java, "readTxnRecordValue"), null, GROUP, bytes);
            return true;
        }
        ByteBuffer key = ByteBuffer.wrap((byte[]) Release.callStatic(java, "keyToBytes", GROUP));
        return !Release.callStatic(java, "read", key, bytes).getClass().getSimpleName().startsWith("Unknown");
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
        if (release.find("kafka.api.ApiVersion$") != null) {
            // The configuration of a broker does so, up to 2.0 without a use of it here.
            scala(singleton("kafka.api.ApiVersion$"), "apply", version);
        }
        Object manager = singleton(SCALA + "GroupMetadataManager$");
        boolean offset = message.equals(OFFSET);
        Method write = named(manager.getClass(), offset ? "offsetCommitValue" : "groupMetadataValue");
        List<Object> given = new ArrayList<>();
        given.add(offset ? offsetInScala(expires) : groupInScala());
        if (!offset) {
            given.add(scala(singleton("scala.collection.immutable.Map$"), "empty"));
        }
        if (write.getParameterCount() > given.size()) {
            Class<?> chosen = write.getParameterTypes()[given.size()];
            if (chosen == short.class && version.matches("0\\.([89]|10\\.0).*")) {
                throw limited("up to 2.0 the version of a group below 0.10.1 is chosen where no program can call");
            }
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

    /** False for a record that the coordinator skips, since it does not know its kind. */
    private boolean load(String message, ByteBuffer bytes) throws Throwable {
        if (message.equals(TRANSACTION)) {
            return loadTransaction(bytes);
        }
        if (inJava()) {
            return loadInJava(message, bytes);
        }
        Object manager = singleton(SCALA + "GroupMetadataManager$");
        if (message.endsWith("Key")) {
            // From 3.4.1 on it returns what it does not know, and its caller skips that.
            return !scala(manager, "readMessageKey", bytes).getClass().getSimpleName().equals("UnknownKey");
        }
        if (message.equals(OFFSET)) {
            scala(manager, "readOffsetMessageValue", bytes);
            return true;
        }
        Method read = named(manager.getClass(), "readGroupMessageValue");
        Release.invoke(read, manager, read.getParameterCount() == 2
            ? new Object[] {GROUP, bytes} : new Object[] {GROUP, bytes, time()});
        return true;
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
        Object record = message.equals(OFFSET)
            ? Release.callStatic(helpers, "newOffsetCommitRecord", GROUP, "t", 0, offsetInJava(expires))
            : message.equals(CLASSIC) ? Release.callStatic(helpers, "newEmptyGroupMetadataRecord", groupInJava())
            : groupEpoch(named(helpers, "newConsumerGroupEpochRecord"));
        return (byte[]) Release.call(serde(), "serializeValue", record);
    }

    private static Object groupEpoch(Method make) throws Throwable {
        return Release.invoke(make, null, make.getParameterCount() == 2
            ? new Object[] {GROUP, 1} : new Object[] {GROUP, 1, COMMITTED});
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

    private boolean loadInJava(String message, ByteBuffer bytes) throws Throwable {
        boolean key = message.endsWith("Key");
        // A record with a key alone is a tombstone.
        ByteBuffer before = key ? bytes : keyOf(message);
        try {
            Release.call(serde(), "deserialize", before, key ? null : bytes);
            return true;
        } catch (RuntimeException thrown) {
            if (thrown.getClass().getSimpleName().equals("UnknownRecordTypeException")) {
                return false;  // the loader skips it
            }
            throw thrown;
        }
    }

    private static ByteBuffer keyOf(String message) {
        byte[] group = GROUP.getBytes(java.nio.charset.StandardCharsets.UTF_8);
        ByteBuffer made = ByteBuffer.allocate(64);
        boolean offset = message.equals(OFFSET);
        made.putShort((short) (offset ? 1 : 2)).putShort((short) group.length).put(group);
        if (offset) {
            made.putShort((short) 1).put((byte) 't').putInt(0);
        }
        made.flip();
        return made;
    }
}
