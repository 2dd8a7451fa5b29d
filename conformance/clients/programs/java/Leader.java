package kipcheck;

import java.lang.reflect.Array;
import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * The leader of a consumer group: calls the assignors of a release as its ConsumerCoordinator does.
 *
 * <p>Each member's subscription is created by the classes of the same release, encoded and decoded, so that owned
 * partitions are in the fields that this release has. Each order creates new assignors.
 */
final class Leader {
    static final Map<String, String> ASSIGNORS = new LinkedHashMap<>();

    private static final String PLACE = "org.apache.kafka.clients.consumer.";
    private static final String COMMON = "org.apache.kafka.common.";

    static {
        ASSIGNORS.put("range", PLACE + "RangeAssignor");
        ASSIGNORS.put("roundrobin", PLACE + "RoundRobinAssignor");
        ASSIGNORS.put("sticky", PLACE + "StickyAssignor");
        ASSIGNORS.put("cooperative-sticky", PLACE + "CooperativeStickyAssignor");
    }

    private final Release release;
    private final Consumers consumers;

    Leader(Release release, Consumers consumers) {
        this.release = release;
        this.consumers = consumers;
    }

    /** The leader's assignment: {@code id}, {@code partitions} and {@code userData} of each member in it. */
    List<Object> assign(Map<String, Object> order) throws Throwable {
        Object assignor = assignor(order);
        boolean keeps = cooperative(assignor);
        // As in the coordinator of every release: the order of joins is lost.
        Map<String, Object> subscriptions = new HashMap<>();
        List<Object> members = Values.list(order.get("members"));
        for (Object each : members) {
            Map<String, Object> member = Values.object(each);
            byte[] given = Values.bytes(member.get("userData"));
            ByteBuffer data = given == null ? written(order, member) : ByteBuffer.wrap(given);
            // A member with an eager assignor has revoked its partitions before it joins.
            subscriptions.put(
                Values.text(member.get("id")), joined(member, data, keeps ? owned(member) : Collections.emptyList()));
        }
        return told(members, assigned(assignor, cluster(Values.list(order.get("topics"))), subscriptions));
    }

    /** The assignor's result, by member id, for subscriptions by member id. */
    Map<?, ?> assigned(Object assignor, Object cluster, Map<String, Object> subscriptions) throws Throwable {
        if (recent()) {
            Class<?> type = release.need(PLACE + "ConsumerPartitionAssignor$GroupSubscription");
            Object group = Release.create(type, subscriptions);
            Object answer = Release.call(assignor, "assign", cluster, group);
            return (Map<?, ?>) Release.call(answer, "groupAssignment");
        }
        return (Map<?, ?>) Release.call(assignor, "assign", cluster, subscriptions);
    }

    /** In the order of the members, then any others in the assignment. */
    static List<Object> told(List<Object> members, Map<?, ?> assigned) throws Throwable {
        Set<Object> ids = new LinkedHashSet<>();
        for (Object each : members) {
            ids.add(Values.object(each).get("id"));
        }
        ids.retainAll(assigned.keySet());
        ids.addAll(assigned.keySet());
        List<Object> told = new ArrayList<>();
        for (Object id : ids) {
            told.add(told(id, assigned.get(id)));
        }
        return told;
    }

    /** In hex, or null: the user data of a member of this release after it was assigned {@code owned}. */
    String userData(Map<String, Object> order) throws Throwable {
        assignor(order);
        return Values.hex(written(order, order));
    }

    private static Map<String, Object> told(Object id, Object assignment) throws Throwable {
        List<Object> partitions = new ArrayList<>();
        for (Object each : (Collection<?>) Release.call(assignment, "partitions")) {
            partitions.add(Arrays.asList(Release.call(each, "topic"), Release.call(each, "partition")));
        }
        Map<String, Object> one = new LinkedHashMap<>();
        one.put("id", id);
        one.put("partitions", partitions);
        one.put("userData", Values.hex((ByteBuffer) Release.call(assignment, "userData")));
        return one;
    }

    private Object assignor(Map<String, Object> order) throws Throwable {
        String name = Values.text(order.get("assignor"));
        Class<?> type = ASSIGNORS.containsKey(name) ? release.find(ASSIGNORS.get(name)) : null;
        if (type == null) {
            throw new Release.Unsupported(release.name + " has no assignor " + name);
        }
        return Release.create(type);
    }

    /** Since 2.4 assignors implement a public interface. */
    boolean recent() {
        return release.find(PLACE + "ConsumerPartitionAssignor") != null;
    }

    /** The subscription as the leader decodes it from the member's bytes, with the member's instance id. */
    Object joined(Map<String, Object> member, ByteBuffer data, List<Object> owned) throws Throwable {
        Object sent = consumers.subscription(
            Values.list(member.get("subscription")), data, owned, generation(member), Values.text(member.get("rack")));
        Class<?> protocol = release.need(PLACE + "internals.ConsumerProtocol");
        Object bytes = Release.callStatic(protocol, "serializeSubscription", sent);
        Object read = Release.callStatic(protocol, "deserializeSubscription", bytes);
        if (Release.has(read.getClass(), "setGroupInstanceId")) {
            Release.call(read, "setGroupInstanceId", Optional.ofNullable(Values.text(member.get("instance"))));
        }
        return read;
    }

    private boolean cooperative(Object assignor) throws Throwable {
        return recent() && String.valueOf(Release.call(assignor, "supportedProtocols")).contains("COOPERATIVE");
    }

    /** Written by an assignor of the member's own, which has received what it owns if it was ever assigned anything. */
    private ByteBuffer written(Map<String, Object> order, Map<String, Object> member) throws Throwable {
        Object assignor = assignor(order);
        List<Object> owned = owned(member);
        int generation = generation(member);
        if (generation >= 0 || !owned.isEmpty()) {
            Object assignment = Release.create(consumers.nested("Assignment"), owned, null);
            if (recent()) {
                Object group = Release.create(
                    release.need(PLACE + "ConsumerGroupMetadata"), "group", generation, "member", Optional.empty());
                Release.call(assignor, "onAssignment", assignment, group);
            } else if (Release.takes(consumers.nested("").getMethods(), "onAssignment", 2)) {
                Release.call(assignor, "onAssignment", assignment, generation);
            } else {
                Release.call(assignor, "onAssignment", assignment);
            }
        }
        Set<Object> topics = new LinkedHashSet<>(Values.list(member.get("subscription")));
        return (ByteBuffer) (recent()
            ? Release.call(assignor, "subscriptionUserData", topics)
            : Release.call(Release.call(assignor, "subscription", topics), "userData"));
    }

    private static int generation(Map<String, Object> member) {
        return Values.int32(member.getOrDefault("generation", -1L));
    }

    List<Object> owned(Map<String, Object> member) throws Throwable {
        return partitions(Values.list(member.getOrDefault("owned", Collections.emptyList())));
    }

    /** Pairs of a topic and a number, as the release's TopicPartition. */
    List<Object> partitions(List<Object> pairs) throws Throwable {
        List<Object> partitions = new ArrayList<>();
        for (Object each : pairs) {
            List<Object> one = Values.list(each);
            partitions.add(Release.create(
                release.need(COMMON + "TopicPartition"), Values.text(one.get(0)), Values.int32(one.get(1))));
        }
        return partitions;
    }

    /** The class of that name within the interface of assignors, wherever this release has it. */
    Class<?> nested(String name) {
        return consumers.nested(name);
    }

    // -- the cluster, with a broker for every rack

    /** Brokers with these topics: each has {@code name}, {@code partitions} and optionally {@code racks}. */
    Object cluster(List<Object> topics) throws Throwable {
        Map<List<Object>, Object> brokers = new LinkedHashMap<>();
        List<Object> partitions = new ArrayList<>();
        for (Object each : topics) {
            Map<String, Object> topic = Values.object(each);
            int count = Values.int32(topic.get("partitions"));
            List<Object> racks = topic.get("racks") == null ? null : Values.list(topic.get("racks"));
            for (int i = 0; i < count; i++) {
                List<Object> of = racks == null ? Collections.singletonList(null) : Values.list(racks.get(i));
                Object[] replicas = (Object[]) Array.newInstance(release.need(COMMON + "Node"), of.size());
                for (int k = 0; k < replicas.length; k++) {
                    // No two replicas of a partition are on one broker.
                    int already = Collections.frequency(of.subList(0, k), of.get(k));
                    replicas[k] = broker(brokers, of.get(k), already);
                }
                partitions.add(Release.create(release.need(COMMON + "PartitionInfo"), Values.text(topic.get("name")), i,
                    replicas.length == 0 ? null : replicas[0], replicas, replicas));
            }
        }
        Class<?> type = release.need(COMMON + "Cluster");
        Constructor<?> narrowest = null;
        for (Constructor<?> each : type.getConstructors()) {
            boolean fewer = narrowest == null || each.getParameterCount() < narrowest.getParameterCount();
            narrowest = fewer ? each : narrowest;
        }
        Object[] arguments = new Object[narrowest.getParameterCount()];
        for (int i = 0, lists = 0; i < arguments.length; i++) {
            switch (narrowest.getParameterTypes()[i].getSimpleName()) {
                case "String":
                    arguments[i] = "cluster";
                    break;
                case "Collection":
                    arguments[i] = lists++ == 0 ? new ArrayList<>(brokers.values()) : partitions;
                    break;
                default:
                    arguments[i] = Collections.emptySet();
            }
        }
        return Release.create(narrowest, arguments);
    }

    private Object broker(Map<List<Object>, Object> brokers, Object rack, int already) throws Throwable {
        List<Object> key = Arrays.asList(rack, already);
        Object found = brokers.get(key);
        if (found == null) {
            found = Release.create(
                release.need(COMMON + "Node"), brokers.size(), "broker" + brokers.size(), 9092, Values.text(rack));
            brokers.put(key, found);
        }
        return found;
    }
}
