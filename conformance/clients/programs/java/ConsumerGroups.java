package kipcheck;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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
    private static final int LEAVING = -1;
    private static final int AWAY = -2;

    private final Coordinator coordinator;
    private final Release release;
    private final KnownTopics topics;

    // State of one case.
    private Object held;
    private CoordinatorBroker broker;
    private ClassicMembers classic;
    private final Map<String, Memory> memories = new HashMap<>();

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
            memories.clear();
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
        Memory memory = memories.computeIfAbsent(client, none -> new Memory());
        Map<String, Object> fields = new LinkedHashMap<>();
        String lacks = Values.text(order.get("lacks"));
        fields.put("groupId", "group".equals(lacks) ? "" : GROUP);
        fields.put("memberId", "member".equals(lacks) ? "" : client);
        fields.put("memberEpoch", epoch(memory, order));
        fields.put("instanceId", "instance".equals(lacks) ? "" : order.get("instance"));
        fields.put("rackId", "rack".equals(lacks) ? "" : null);
        fields.put("rebalanceTimeoutMs", "timeout".equals(lacks) ? -1L : PATIENCE);
        fields.put("subscribedTopicNames", order.get("topics"));
        fields.put("subscribedTopicRegex", order.get("regex"));
        fields.put("serverAssignor", order.get("assignor"));
        fields.put("topicPartitions", owned(memory, Values.text(order.get("owned"))));
        Object context = coordinator.context("CONSUMER_GROUP_HEARTBEAT", VERSION, client);
        Object request = coordinator.request(context, "ConsumerGroupHeartbeat", VERSION, fields);
        List<Object> made = new ArrayList<>();
        broker.ask("consumerGroupHeartbeat", context, request)
            .whenComplete((told, thrown) -> made.add(thrown == null ? told : thrown));
        broker.work();
        if (made.isEmpty()) {
            throw new IllegalStateException("a heartbeat is not answered");
        }
        Map<String, Object> told = coordinator.told("ConsumerGroupHeartbeatResponse", VERSION, made.get(0));
        Map<String, Object> result = new LinkedHashMap<>();
        if (!told.get("error").equals("NONE")) {
            result.put("status", "rejected");
            result.put("class", told.get("error"));
            result.put("message", Objects.toString(told.get("errorMessage"), ""));
            return result;
        }
        int epoch = (Integer) told.get("memberEpoch");
        List<Object> assignment = told.get("assignment") == null ? null : assignment(Values.object(told.get("assignment")));
        memory.learn(epoch, assignment);
        result.put("epoch", epoch);
        result.put("assignment", assignment);
        return result;
    }

    private static long epoch(Memory memory, Map<String, Object> order) {
        switch (Values.text(order.get("says"))) {
            case "join":
                return 0;
            case "leave":
                return LEAVING;
            case "away":
                return AWAY;
            default:
                return memory.epoch - (Long) order.getOrDefault("behind", 0L);
        }
    }

    /** Null where the heartbeat omits it. */
    private static List<Object> owned(Memory memory, String owned) {
        if (owned == null) {
            return null;
        }
        Map<String, List<Object>> topics = new TreeMap<>();
        if (!owned.equals("none")) {
            add(topics, memory.given);
        }
        if (owned.equals("before")) {
            add(topics, memory.before);
        }
        List<Object> told = new ArrayList<>();
        topics.forEach((topic, partitions) -> told.add(new LinkedHashMap<>(
            Map.of("topicId", KnownTopics.id(topic), "partitions", new ArrayList<>(new TreeSet<>(partitions))))));
        return told;
    }

    private static void add(Map<String, List<Object>> topics, Collection<?> partitions) {
        for (Object each : partitions) {
            List<Object> one = Values.list(each);
            topics.computeIfAbsent((String) one.get(0), none -> new ArrayList<>()).add(one.get(1));
        }
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
        List<Object> assignment = new ArrayList<>();
        topics.forEach((topic, numbers) -> numbers.forEach(number -> assignment.add(List.of(topic, number))));
        return assignment;
    }

    /** State of a client. */
    private static final class Memory {
        int epoch;
        List<Object> given = List.of();
        List<Object> before = List.of();

        void learn(int epoch, List<Object> assignment) {
            this.epoch = Math.max(epoch, 0);
            if (epoch == LEAVING || epoch == AWAY) {
                given = List.of();
                before = List.of();
            } else if (assignment != null) {
                before = given;
                given = assignment;
            }
        }
    }
}
