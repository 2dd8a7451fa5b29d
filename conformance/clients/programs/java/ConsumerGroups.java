package kipcheck;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The coordinator of one consumer group of KIP-848 behind the operations of the testee protocol.
 *
 * <p>A client remembers its name, the last epoch and assignment it received, and the assignment before that; a heartbeat
 * states which of these it owns.
 */
final class ConsumerGroups {
    static final String GROUP = "group";
    static final long PATIENCE = 30_000;
    private static final List<String> BEATS = List.of("consumer-heartbeat", "mixed-heartbeat");
    private static final List<String> PASSES = List.of("consumer-elapse", "mixed-elapse");
    private static final int VERSION = 1;

    private final Coordinator coordinator;
    private final Release release;
    private final KnownTopics topics;

    // State of one case.
    private Object held;
    private CoordinatorBroker broker;
    private ClassicMembers classic;
    private final Map<String, Member> members = new HashMap<>();

    ConsumerGroups(Release release, Coordinator coordinator, KnownTopics topics) {
        this.coordinator = coordinator;
        this.release = release;
        this.topics = topics;
    }

    static boolean knows(String op) {
        return BEATS.contains(op) || PASSES.contains(op) || ClassicMembers.knows(op);
    }

    /** Whether this release has such a coordinator, not as a preview, with everything that is needed here. */
    boolean available() {
        boolean released = release.find("org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime") != null;
        return released && coordinator.available();
    }

    /** The result of an operation. */
    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        if (broker == null || !order.get("case").equals(held)) {
            held = order.get("case");
            broker = coordinator.broker();
            topics.publish(broker);
            members.clear();
            classic = new ClassicMembers(coordinator, broker, KnownTopics.TOPICS);
        }
        String op = Values.text(order.get("op"));
        if (PASSES.contains(op)) {
            broker.elapse((Long) order.get("ms"));
            return Map.of();
        }
        if (ClassicMembers.knows(op)) {
            return classic.answer(order);
        }
        return beat(order);
    }

    private Map<String, Object> beat(Map<String, Object> order) throws Throwable {
        String client = Values.text(order.get("client"));
        Member member = members.computeIfAbsent(client, none -> new Member());
        Map<String, Object> fields = new LinkedHashMap<>();
        String lacks = Values.text(order.get("lacks"));
        fields.put("groupId", "group".equals(lacks) ? "" : GROUP);
        fields.put("memberId", "member".equals(lacks) ? "" : client);
        fields.put("memberEpoch", member.known.epoch(order));
        fields.put("instanceId", "instance".equals(lacks) ? "" : order.get("instance"));
        fields.put("rackId", "rack".equals(lacks) ? "" : null);
        fields.put("rebalanceTimeoutMs", "timeout".equals(lacks) ? -1L : PATIENCE);
        fields.put("subscribedTopicNames", order.get("topics"));
        fields.put("subscribedTopicRegex", order.get("regex"));
        fields.put("serverAssignor", order.get("assignor"));
        fields.put("topicPartitions", byId(member.partitions.owned(Values.text(order.get("owned")))));
        Object context = coordinator.context("CONSUMER_GROUP_HEARTBEAT", VERSION, client);
        Object request = coordinator.request(context, "ConsumerGroupHeartbeat", VERSION, fields);
        Object made = broker.answer("consumerGroupHeartbeat", context, request);
        Map<String, Object> told = coordinator.told("ConsumerGroupHeartbeatResponse", VERSION, made);
        if (!told.get("error").equals("NONE")) {
            return GroupClient.refused(told.get("error"), told.get("errorMessage"));
        }
        int epoch = (Integer) told.get("memberEpoch");
        List<Object> assignment = told.get("assignment") == null ? null : assignment(Values.object(told.get("assignment")));
        member.known.learn(epoch, Collections.singletonMap(member.partitions, assignment));
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("epoch", epoch);
        result.put("assignment", assignment);
        return result;
    }

    private static List<Object> byId(Map<String, TreeSet<Long>> owned) {
        if (owned == null) {
            return null;
        }
        List<Object> rows = new ArrayList<>();
        owned.forEach((topic, numbers) -> rows.add(new LinkedHashMap<>(
            Map.of("topicId", KnownTopics.id(topic), "partitions", new ArrayList<>(numbers)))));
        return rows;
    }

    /** Sorted by topic and number. */
    private static List<Object> assignment(Map<String, Object> told) {
        Map<String, TreeSet<Object>> topics = new TreeMap<>();
        for (Object each : Values.list(told.get("topicPartitions"))) {
            Map<String, Object> one = Values.object(each);
            for (String topic : KnownTopics.TOPICS.keySet()) {
                if (KnownTopics.id(topic).equals(one.get("topicId"))) {
                    topics.computeIfAbsent(topic, none -> new TreeSet<>()).addAll(Values.list(one.get("partitions")));
                }
            }
        }
        return GroupClient.rows(topics);
    }

    private static final class Member {
        final GroupClient known = new GroupClient();
        final GroupClient.Share partitions = new GroupClient.Share();
    }
}
