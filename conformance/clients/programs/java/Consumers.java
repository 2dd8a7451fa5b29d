package kipcheck;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Encodes subscriptions and assignments of the consumer protocol with the classes that clients use, from 0.10.0 on, and
 * the user data of the sticky assignors.
 *
 * <p>Owned and assigned partitions are flat lists there: the order of topics, and topics without partitions, are lost.
 */
final class Consumers implements Codec {
    private static final String PLACE = "org.apache.kafka.clients.consumer.";

    private final Release release;

    Consumers(Release release) {
        this.release = release;
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        switch (message) {
            case "StickyAssignorUserData":
                return serialized(release.need(PLACE + "StickyAssignor"), "serializeTopicPartitionAssignment",
                    sticky(version, value));
            case "CooperativeStickyAssignorUserData":
                Object assignor = cooperative();
                Release.need(assignor.getClass(), "generation").set(assignor, generation(value));
                return (ByteBuffer) Release.call(assignor, "subscriptionUserData", Collections.emptySet());
            case "ConsumerProtocolSubscription":
                return written("serializeSubscription", version, subscription(value));
            default:
                return written("serializeAssignment", version, Release.create(Release.widest(nested("Assignment")),
                    partitions(value.get("assignedPartitions")), data(value)));
        }
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        Map<String, Object> value = new LinkedHashMap<>();
        switch (message) {
            case "StickyAssignorUserData":
                Object read = Release.callStatic(
                    release.need(PLACE + "StickyAssignor"), "deserializeTopicPartitionAssignment", bytes);
                boolean bare = read instanceof List;
                value.put("previousAssignment", print((Collection<?>) (bare ? read : Release.get(read, "partitions"))));
                if (version >= 1) {
                    value.put("generation", ((Optional<?>) Release.get(read, "generation")).orElse(null));
                }
                return value;
            case "CooperativeStickyAssignorUserData":
                Object member = Release.call(cooperative(), "memberData", Release.create(nested("Subscription"),
                    Collections.emptyList(), bytes));
                value.put("generation", ((Optional<?>) Release.get(member, "generation")).orElse(null));
                return value;
            case "ConsumerProtocolSubscription":
                Object subscription = read(message, version, bytes);
                value.put("topics", Release.get(subscription, "topics"));
                value.put("userData", Values.hex((ByteBuffer) Release.get(subscription, "userData")));
                if (version >= 1) {
                    value.put("ownedPartitions", print((Collection<?>) Release.get(subscription, "ownedPartitions")));
                }
                if (version >= 2 && Release.has(subscription.getClass(), "generationId")) {
                    value.put("generationId", ((Optional<?>) Release.call(subscription, "generationId")).orElse(null));
                }
                if (version >= 3 && Release.has(subscription.getClass(), "rackId")) {
                    value.put("rackId", ((Optional<?>) Release.call(subscription, "rackId")).orElse(null));
                }
                return value;
            default:
                Object assignment = read(message, version, bytes);
                value.put("assignedPartitions", print((Collection<?>) Release.get(assignment, "partitions")));
                value.put("userData", Values.hex((ByteBuffer) Release.get(assignment, "userData")));
                return value;
        }
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        return encode(message, version, decode(message, version, bytes));
    }

    @Override
    public int[] versions(String message) throws Throwable {
        switch (message) {
            case "StickyAssignorUserData":
                release.need(PLACE + "StickyAssignor");
                return flat() ? new int[] {0, 0} : new int[] {1, 1};
            case "CooperativeStickyAssignorUserData":
                cooperative();
                return new int[] {0, 0};
            default:
                int newest = 0;
                Class<?> type = release.find(PLACE + "ConsumerPartitionAssignor");
                if (type != null) {
                    newest = Release.has(nested("Subscription"), "rackId") ? 3 : 1;
                }
                return new int[] {0, newest};
        }
    }

    private Object read(String message, int version, ByteBuffer bytes) throws Throwable {
        int found = bytes.remaining() >= 2 ? bytes.getShort(bytes.position()) : version;
        if (found != version && !(found > version && version == versions(message)[1])) {
            throw new IllegalArgumentException("the bytes start with version " + found);
        }
        String kind = message.substring("ConsumerProtocol".length());
        return Release.callStatic(release.need(PLACE + "internals.ConsumerProtocol"), "deserialize" + kind, bytes);
    }

    private ByteBuffer written(String method, int version, Object made) throws Throwable {
        Class<?> type = release.need(PLACE + "internals.ConsumerProtocol");
        if (version > versions("")[1]) {
            throw new Release.Unsupported(release.name + " writes no version " + version);
        }
        // Up to 2.3 there is one version, which cannot be chosen.
        return versions("")[1] > 0
            ? serialized(type, method, made, (short) version)
            : serialized(type, method, made);
    }

    private static ByteBuffer serialized(Class<?> type, String method, Object... arguments) throws Throwable {
        return (ByteBuffer) Release.callStatic(type, method, arguments);
    }

    /** The interface of assignors, or its inner class of that name; it moved in 2.4. */
    Class<?> nested(String name) {
        String inner = name.isEmpty() ? "" : "$" + name;
        Class<?> recent = release.find(PLACE + "ConsumerPartitionAssignor" + inner);
        return recent != null ? recent : release.need(PLACE + "internals.PartitionAssignor" + inner);
    }

    private Object subscription(Map<String, Object> value) throws Throwable {
        List<Object> topics = value.containsKey("topics") ? Values.list(value.get("topics")) : Collections.emptyList();
        return subscription(topics, data(value), partitions(value.get("ownedPartitions")), generationId(value),
            Values.text(value.get("rackId")));
    }

    /** With as many of the fields as this release has. */
    Object subscription(List<Object> topics, ByteBuffer data, List<Object> owned, int generation, String rack)
            throws Throwable {
        Class<?> type = nested("Subscription");
        switch (Release.widest(type).getParameterCount()) {
            case 2:
                return Release.create(type, topics, data);
            case 3:
                return Release.create(type, topics, data, owned);
            case 5:
                return Release.create(type, topics, data, owned, generation, Optional.ofNullable(rack));
            default:
                throw new Release.Unsupported(release.name + " creates subscriptions in an unsupported way");
        }
    }

    private static int generationId(Map<String, Object> value) {
        Object id = value.get("generationId");
        return id == null ? -1 : Values.int32(id);
    }

    private static int generation(Map<String, Object> value) {
        Object generation = value.get("generation");
        return generation == null ? -1 : Values.int32(generation);
    }

    private static ByteBuffer data(Map<String, Object> value) {
        byte[] bytes = Values.bytes(value.get("userData"));
        return bytes == null ? null : ByteBuffer.wrap(bytes);
    }

    private Object sticky(int version, Map<String, Object> value) throws Throwable {
        List<Object> partitions = partitions(value.get("previousAssignment"));
        if (flat() != (version == 0)) {
            throw new Release.Unsupported(release.name + " writes another version of sticky user data");
        }
        if (flat()) {
            return partitions;
        }
        Class<?> recent = release.find(PLACE + "internals.AbstractStickyAssignor$MemberData");
        return Release.create(recent != null ? recent : release.need(PLACE + "StickyAssignor$ConsumerUserData"),
            partitions, Optional.of(generation(value)));
    }

    /** Whether the user data of this release's sticky assignor is a bare list (up to 2.2). */
    private boolean flat() {
        return release.find(PLACE + "internals.AbstractStickyAssignor$MemberData") == null
            && release.find(PLACE + "StickyAssignor$ConsumerUserData") == null;
    }

    private Object cooperative() throws Throwable {
        Class<?> type = release.need(PLACE + "CooperativeStickyAssignor");
        if (!Release.has(type, "generation")) {
            throw new Release.Unsupported(release.name + " writes no user data for its cooperative assignor");
        }
        return Release.create(type);
    }

    private List<Object> partitions(Object value) throws Throwable {
        List<Object> out = new ArrayList<>();
        for (Object each : value == null ? Collections.emptyList() : Values.list(value)) {
            Map<String, Object> one = Values.object(each);
            for (Object partition : Values.list(one.get("partitions"))) {
                out.add(Release.create(release.need("org.apache.kafka.common.TopicPartition"),
                    Values.text(one.get("topic")), Values.int32(partition)));
            }
        }
        return out;
    }

    private static List<Object> print(Collection<?> partitions) throws Throwable {
        Map<Object, List<Object>> byTopic = new LinkedHashMap<>();
        for (Object each : partitions) {
            byTopic.computeIfAbsent(Release.get(each, "topic"), topic -> new ArrayList<>())
                .add(Release.get(each, "partition"));
        }
        List<Object> out = new ArrayList<>();
        byTopic.forEach((topic, numbers) -> {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("topic", topic);
            one.put("partitions", numbers);
            out.add(one);
        });
        return out;
    }
}
