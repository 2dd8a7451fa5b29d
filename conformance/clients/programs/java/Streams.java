package kipcheck;

import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/**
 * SubscriptionInfo and AssignmentInfo of Kafka Streams, from 0.10.0 on.
 *
 * <p>These classes contain sets and maps: decoded values have lost the order of elements, and encoded ones have the order
 * of the given sets, unless the release copies them. The subscription of 2.5 and later contains a generated object, which
 * keeps the order; it is used where it exists.
 */
final class Streams implements Codec {
    private static final String PLACE = "org.apache.kafka.streams.processor.internals.assignment.";
    private static final int FLAT_SUMS = 10;

    private final Release release;
    private final Generated generated;
    private final boolean assembled;

    /** With {@code assembled}, subscriptions too are created from sets and maps by the public constructor. */
    Streams(Release release, Generated generated, boolean assembled) {
        this.release = release;
        this.generated = generated;
        this.assembled = assembled;
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        int named = Values.int32(value.getOrDefault("version", (long) version));
        if (named != version) {
            throw new IllegalArgumentException("the value has version " + named);
        }
        Object info = message.equals("AssignmentInfo") ? assignment(version, value) : subscription(version, value);
        return written(info);
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        Object info = read(message, version, bytes);
        bytes.position(bytes.limit());
        return message.equals("AssignmentInfo") ? printAssignment(info) : printSubscription(info);
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        return written(read(message, version, bytes));
    }

    @Override
    public int[] versions(String message) throws Throwable {
        Class<?> known = release.find(PLACE + "StreamsAssignmentProtocolVersions");
        for (Class<?> type : new Class<?>[] {known, release.need(PLACE + "SubscriptionInfo")}) {
            for (String name : new String[] {"LATEST_SUPPORTED_VERSION", "CURRENT_VERSION"}) {
                if (type != null && Release.has(type, name)) {
                    return new int[] {1, (Integer) Release.need(type, name).get(null)};
                }
            }
        }
        throw new Release.Unsupported(release.name + " does not reveal its versions");
    }

    private Object read(String message, int version, ByteBuffer bytes) throws Throwable {
        if (bytes.remaining() >= 4 && bytes.getInt(bytes.position()) != version) {
            throw new IllegalArgumentException("the bytes start with version " + bytes.getInt(bytes.position()));
        }
        return Release.callStatic(release.need(PLACE + message), "decode", bytes);
    }

    private static ByteBuffer written(Object info) throws Throwable {
        ByteBuffer out = (ByteBuffer) Release.call(info, "encode");
        out.rewind();
        return out;
    }

    // -- subscription

    private Object subscription(int version, Map<String, Object> value) throws Throwable {
        Class<?> type = release.need(PLACE + "SubscriptionInfo");
        Class<?> data = release.find("org.apache.kafka.streams.internals.generated.SubscriptionInfoData");
        if (data != null && !assembled) {
            Map<String, Object> whole = new LinkedHashMap<>(value);
            whole.put("version", (long) version);
            if (version >= FLAT_SUMS) {
                // The class's own default is the empty name, which no release writes for a task without a name.
                for (Object sum : Values.list(whole.getOrDefault("taskOffsetSums", Collections.emptyList()))) {
                    Values.object(sum).putIfAbsent("namedTopology", null);
                }
            }
            return Release.create(type, generated.read(data, whole));
        }
        Constructor<?> constructor = Release.widest(type);
        Object[] arguments = new Object[constructor.getParameterCount()];
        int ints = 0;
        int sets = 0;
        int maps = 0;
        boolean bounded = constructor.getParameterCount() > 1 && constructor.getParameterTypes()[1] == int.class;
        for (int i = 0; i < arguments.length; i++) {
            switch (constructor.getParameterTypes()[i].getSimpleName()) {
                case "int":
                    ints++;
                    arguments[i] = ints == 1 ? version : ints == 2 && bounded
                        ? Values.int32(value.getOrDefault("latestSupportedVersion", -1L))
                        : Values.int32(value.getOrDefault("errorCode", 0L));
                    break;
                case "UUID":
                    arguments[i] = process(value);
                    break;
                case "ProcessId":
                    arguments[i] = Release.create(constructor.getParameterTypes()[i], process(value));
                    break;
                case "Set":
                    arguments[i] = tasks(value.get(++sets == 1 ? "prevTasks" : "standbyTasks"));
                    break;
                case "String":
                    arguments[i] = utf8(value.getOrDefault("userEndPoint", ""), true);
                    break;
                case "Map":
                    arguments[i] = ++maps == 1 ? sums(version, value) : tags(value);
                    break;
                case "byte":
                    arguments[i] = (byte) Values.integer(value.getOrDefault("uniqueField", 0L), -128, 127);
                    break;
                default:
                    throw new Release.Unsupported(release.name + " creates subscriptions with " + constructor);
            }
        }
        return Release.create(constructor, arguments);
    }

    private Map<String, Object> printSubscription(Object info) throws Throwable {
        int version = (Integer) Release.get(info, "version");
        if (Release.has(info.getClass(), "data")) {
            Object data = Release.get(info, "data");
            return version > versions("SubscriptionInfo")[1] ? future(data) : generated.print(data, version);
        }
        Map<String, Object> value = new LinkedHashMap<>();
        if (version > versions("SubscriptionInfo")[1] || version < 1) {
            // From 2.0 to 2.4 any unknown version counts as a later one, and leaves all other fields null.
            return future(info);
        }
        value.put("version", version);
        if (version >= 3) {
            value.put("latestSupportedVersion", Release.get(info, "latestSupportedVersion"));
        }
        value.put("processId", String.valueOf(Release.get(info, "processId")));
        value.put("prevTasks", printTasks((Collection<?>) Release.get(info, "prevTasks"), version));
        value.put("standbyTasks", printTasks((Collection<?>) Release.get(info, "standbyTasks"), version));
        if (Release.has(info.getClass(), "userEndPoint")) {
            String endPoint = (String) Release.get(info, "userEndPoint");
            if (version >= 2 || endPoint != null) {
                value.put("userEndPoint", endPoint == null ? "" : Values.hex(endPoint.getBytes(StandardCharsets.UTF_8)));
            }
        }
        return value;
    }

    /** For a version above its own a release keeps two numbers. */
    private static Map<String, Object> future(Object info) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("version", Release.get(info, "version"));
        value.put("latestSupportedVersion", Release.get(info, "latestSupportedVersion"));
        return value;
    }

    private static UUID process(Map<String, Object> value) {
        return UUID.fromString(Values.text(value.getOrDefault("processId", new UUID(0, 0).toString())));
    }

    private Map<Object, Object> sums(int version, Map<String, Object> value) throws Throwable {
        Map<Object, Object> sums = new LinkedHashMap<>();
        if (version < 7) {
            // The old form of such a map: -2 is an active task here, anything else a standby.
            for (Object task : tasks(value.get("prevTasks"))) {
                sums.put(task, -2L);
            }
            for (Object task : tasks(value.get("standbyTasks"))) {
                once(sums.put(task, -3L));
            }
            return sums;
        }
        for (Object each : Values.list(value.getOrDefault("taskOffsetSums", Collections.emptyList()))) {
            Map<String, Object> sum = Values.object(each);
            if (version >= FLAT_SUMS) {
                once(sums.put(task(sum), sum.get("offsetSum")));
                continue;
            }
            for (Object inner : Values.list(sum.get("partitionToOffsetSum"))) {
                Map<String, Object> one = Values.object(inner);
                once(sums.put(task(sum.get("topicGroupId"), one.get("partition"), null), one.get("offsetSum")));
            }
        }
        return sums;
    }

    private static Map<String, String> tags(Map<String, Object> value) {
        Map<String, String> tags = new LinkedHashMap<>();
        for (Object each : Values.list(value.getOrDefault("clientTags", Collections.emptyList()))) {
            Map<String, Object> tag = Values.object(each);
            once(tags.put(utf8(tag.get("key"), false), utf8(tag.get("value"), false)));
        }
        return tags;
    }

    // -- assignment

    private Object assignment(int version, Map<String, Object> value) throws Throwable {
        Constructor<?> constructor = Release.widest(release.need(PLACE + "AssignmentInfo"));
        Class<?>[] types = constructor.getParameterTypes();
        Object[] arguments = new Object[types.length];
        int maps = 0;
        Map<Long, String> topics = new LinkedHashMap<>();
        for (Object each : Values.list(value.getOrDefault("topics", Collections.emptyList()))) {
            Map<String, Object> topic = Values.object(each);
            topics.put((Long) topic.get("index"), Values.text(topic.get("topic")));
        }
        for (int i = 0; i < types.length; i++) {
            switch (types[i].getSimpleName()) {
                case "int":
                    arguments[i] = i == 0 ? version : i == 1
                        ? Values.int32(value.getOrDefault("commonlySupportedVersion", -1L))
                        : Values.int32(value.getOrDefault("errCode", 0L));
                    break;
                case "List":
                    List<Object> active = new ArrayList<>();
                    for (Object each : Values.list(value.getOrDefault("activeTasks", Collections.emptyList()))) {
                        active.add(task(Values.object(each)));
                    }
                    arguments[i] = active;
                    break;
                case "Map":
                    maps++;
                    arguments[i] = maps == 1 ? standby(value)
                        : hosts(value.get(maps == 2 ? "partitionsByHost" : "standbyPartitionsByHost"), topics);
                    break;
                default:
                    throw new Release.Unsupported(release.name + " creates assignments with " + constructor);
            }
        }
        Object info = Release.create(constructor, arguments);
        if (value.containsKey("nextRebalanceMs")) {
            Release.call(info, "setNextRebalanceTime", value.get("nextRebalanceMs"));
        }
        return info;
    }

    private Map<Object, Object> standby(Map<String, Object> value) throws Throwable {
        Map<Object, Object> standby = new LinkedHashMap<>();
        for (Object each : Values.list(value.getOrDefault("standbyTasks", Collections.emptyList()))) {
            Map<String, Object> one = Values.object(each);
            once(standby.put(task(one), partitions(one.get("partitions"), null)));
        }
        return standby;
    }

    private Map<Object, Object> hosts(Object value, Map<Long, String> topics) throws Throwable {
        Map<Object, Object> hosts = new LinkedHashMap<>();
        for (Object each : value == null ? Collections.emptyList() : Values.list(value)) {
            Map<String, Object> one = Values.object(each);
            Object host = Release.create(release.need("org.apache.kafka.streams.state.HostInfo"),
                Values.text(one.get("host")), Values.int32(one.get("port")));
            once(hosts.put(host, partitions(one.get("partitions"), topics)));
        }
        return hosts;
    }

    private Set<Object> partitions(Object value, Map<Long, String> topics) throws Throwable {
        Set<Object> partitions = new LinkedHashSet<>();
        for (Object each : Values.list(value)) {
            Map<String, Object> one = Values.object(each);
            String topic = one.containsKey("topicIndex") ? topics.get(one.get("topicIndex")) : Values.text(one.get("topic"));
            if (topic == null) {
                throw new Release.Unsupported("a topic that is not among the topics", Claims.VALUES);
            }
            Object partition = Release.create(release.need("org.apache.kafka.common.TopicPartition"),
                topic, Values.int32(one.get("partition")));
            once(partitions.add(partition) ? null : partition);
        }
        return partitions;
    }

    private Map<String, Object> printAssignment(Object info) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        int version = (Integer) Release.get(info, "version");
        value.put("version", version);
        if (version >= 3) {
            value.put("commonlySupportedVersion", Release.get(info, "commonlySupportedVersion", "latestSupportedVersion"));
        }
        value.put("activeTasks", printTasks((Collection<?>) Release.get(info, "activeTasks"), version));
        List<Object> standby = new ArrayList<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) Release.get(info, "standbyTasks")).entrySet()) {
            Map<String, Object> one = printTask(each.getKey(), version);
            one.put("partitions", printPartitions(each.getValue()));
            standby.add(one);
        }
        value.put("standbyTasks", standby);
        if (Release.widest(info.getClass()).getParameterCount() > 3) {
            List<Object> hosts = printHosts(Release.get(info, "partitionsByHost", "partitionsByHostState"));
            if (version >= 2 || !hosts.isEmpty()) {
                value.put("partitionsByHost", hosts);
            }
        }
        if (version >= 6) {
            value.put("standbyPartitionsByHost", printHosts(Release.get(info, "standbyPartitionByHost")));
        }
        if (version >= 4) {
            value.put("errCode", Release.get(info, "errCode"));
        }
        if (version >= 7) {
            value.put("nextRebalanceMs", Release.get(info, "nextRebalanceMs"));
        }
        return value;
    }

    private static List<Object> printHosts(Object hosts) throws Throwable {
        List<Object> out = new ArrayList<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) hosts).entrySet()) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("host", Release.get(each.getKey(), "host"));
            one.put("port", Release.get(each.getKey(), "port"));
            one.put("partitions", printPartitions(each.getValue()));
            out.add(one);
        }
        return out;
    }

    private static List<Object> printPartitions(Object partitions) throws Throwable {
        List<Object> out = new ArrayList<>();
        for (Object each : (Collection<?>) partitions) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("topic", Release.get(each, "topic"));
            one.put("partition", Release.get(each, "partition"));
            out.add(one);
        }
        return out;
    }

    // -- parts of both

    private Set<Object> tasks(Object value) throws Throwable {
        Set<Object> tasks = new LinkedHashSet<>();
        for (Object each : value == null ? Collections.emptyList() : Values.list(value)) {
            Object task = task(Values.object(each));
            once(tasks.add(task) ? null : task);
        }
        return tasks;
    }

    private Object task(Map<String, Object> value) throws Throwable {
        return task(value.get("topicGroupId"), value.get("partition"), Values.text(value.get("namedTopology")));
    }

    private Object task(Object group, Object partition, String topology) throws Throwable {
        Class<?> type = release.need("org.apache.kafka.streams.processor.TaskId");
        if (topology != null && !topology.isEmpty() && !Release.has(type, "topologyName")) {
            throw new Release.Unsupported("TaskId has no field namedTopology", Claims.FIELDS);
        }
        return topology == null || topology.isEmpty()
            ? Release.create(type, Values.int32(group), Values.int32(partition))
            : Release.create(type, Values.int32(group), Values.int32(partition), topology);
    }

    private static List<Object> printTasks(Collection<?> tasks, int version) throws Throwable {
        List<Object> out = new ArrayList<>();
        for (Object each : tasks) {
            out.add(printTask(each, version));
        }
        return out;
    }

    private static Map<String, Object> printTask(Object task, int version) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("topicGroupId", Release.get(task, "subtopology", "topicGroupId"));
        value.put("partition", Release.get(task, "partition"));
        if (version >= FLAT_SUMS) {
            Object name = Release.get(task, "topologyName");
            value.put("namedTopology", name == null ? "" : name);
        }
        return value;
    }

    private static String utf8(Object hex, boolean emptyIsNull) {
        byte[] bytes = Values.bytes(hex);
        if (bytes.length == 0 && emptyIsNull) {
            return null;
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (CharacterCodingException wrong) {
            throw new Release.Unsupported("these classes cannot represent bytes that are not UTF-8", Claims.VALUES);
        }
    }

    private static void once(Object before) {
        if (before != null) {
            throw new Release.Unsupported("a set cannot contain an element twice", Claims.VALUES);
        }
    }
}
