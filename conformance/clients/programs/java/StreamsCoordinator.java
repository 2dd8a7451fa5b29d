package kipcheck;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The coordinator of one streams group of KIP-1071 behind the operations of the testee protocol.
 *
 * <p>Each subtopology reads one topic, and has its name. A client remembers its name, the last epoch and tasks it
 * received, and the tasks before that; a heartbeat states which of these it owns.
 */
final class StreamsCoordinator {
    private static final String VERB = "streams-group-";
    private static final String HEARTBEAT = "StreamsGroupHeartbeat";
    private static final String DESCRIBE = "StreamsGroupDescribe";
    private static final String DESCRIBED = "org.apache.kafka.common.message.StreamsGroupDescribeResponseData";
    private static final List<String> STATUSES = List.of(
        "STALE_TOPOLOGY", "MISSING_SOURCE_TOPICS", "INCORRECTLY_PARTITIONED_TOPICS", "MISSING_INTERNAL_TOPICS",
        "SHUTDOWN_APPLICATION", "ASSIGNMENT_DELAYED", "MISSING_CLIENT_TAGS");
    private static final int VERSION = 0;
    private static final int LEAVING = -1;
    private static final int AWAY = -2;
    private static final long NO_TASK = 99;

    private final Release release;
    private final Generated generated;
    private final Coordinator coordinator;
    private final KnownTopics topics;

    // State of one case.
    private Object held;
    private CoordinatorBroker broker;
    private final Map<String, Memory> memories = new HashMap<>();

    StreamsCoordinator(Release release, Generated generated, Coordinator coordinator, KnownTopics topics) {
        this.release = release;
        this.generated = generated;
        this.coordinator = coordinator;
        this.topics = topics;
    }

    static boolean knows(String op) {
        return op.startsWith(VERB);
    }

    /** Whether this release has such a coordinator, whose requests are stable. */
    boolean available() {
        if (release.find(DESCRIBED) == null) {
            return false;
        }
        try {
            coordinator.context("STREAMS_GROUP_HEARTBEAT", VERSION, "");
            return true;
        } catch (Throwable unstable) {
            return false;
        }
    }

    /** The result of an operation. */
    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        if (broker == null || !order.get("case").equals(held)) {
            held = order.get("case");
            broker = coordinator.broker();
            topics.publish(broker);
            memories.clear();
        }
        switch (Values.text(order.get("op")).substring(VERB.length())) {
            case "heartbeat":
                return beat(order);
            case "describe":
                return describe();
            case "consume":
                return consume();
            default:
                broker.elapse((Long) order.get("ms"));
                return Map.of();
        }
    }

    private Map<String, Object> beat(Map<String, Object> order) throws Throwable {
        String client = Values.text(order.get("client"));
        Memory memory = memories.computeIfAbsent(client, none -> new Memory());
        String flaw = Values.text(order.get("flaw"));
        List<Object> owned = owned(memory, Values.text(order.get("owned")), "task".equals(flaw));
        List<Object> others = owned == null ? null : List.of();
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("groupId", "group".equals(flaw) ? "" : ConsumerGroups.GROUP);
        fields.put("memberId", "member".equals(flaw) ? "" : client);
        fields.put("memberEpoch", epoch(memory, order));
        fields.put("endpointInformationEpoch", 0L);
        fields.put("instanceId", "instance".equals(flaw) ? "" : null);
        fields.put("rackId", "rack".equals(flaw) ? "" : null);
        fields.put("rebalanceTimeoutMs", "timeout".equals(flaw) ? -1L : ConsumerGroups.PATIENCE);
        fields.put("topology", order.get("topology") == null ? null : topology(order, flaw));
        fields.put("activeTasks", owned);
        fields.put("standbyTasks", "standby".equals(flaw) ? null : others);
        fields.put("warmupTasks", others);
        fields.put("processId", client);
        Object context = coordinator.context("STREAMS_GROUP_HEARTBEAT", VERSION, client);
        Object made = asked("streamsGroupHeartbeat", context, coordinator.request(context, HEARTBEAT, VERSION, fields));
        Object data = made instanceof Throwable ? made : Release.call(made, "data");
        Map<String, Object> found = coordinator.told(HEARTBEAT + "Response", VERSION, data);
        if (!found.get("error").equals("NONE")) {
            return refused(found.get("error"), found.get("errorMessage"));
        }
        int epoch = (Integer) found.get("memberEpoch");
        List<Object> tasks = found.get("activeTasks") == null ? null : rows(found.get("activeTasks"));
        memory.learn(epoch, tasks);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("epoch", epoch);
        result.put("tasks", tasks);
        result.put("statuses", statuses(found.get("status")));
        return result;
    }

    private Map<String, Object> describe() throws Throwable {
        Object context = coordinator.context("STREAMS_GROUP_DESCRIBE", VERSION, "kipcheck");
        List<Object> arguments = new ArrayList<>(List.of(context, List.of(ConsumerGroups.GROUP)));
        if (release.find("org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData") != null) {
            arguments.add(false); // without the description of the topology
        }
        Object groups = asked("streamsGroupDescribe", arguments.toArray());
        if (groups instanceof Throwable) {
            return refused(coordinator.told(DESCRIBE + "Response", VERSION, groups).get("error"), null);
        }
        Object response = Release.create(release.need(DESCRIBED));
        Release.call(response, "setGroups", groups);
        Map<String, Object> sent = generated.sent(DESCRIBE + "Response", VERSION, response);
        Map<String, Object> found = Values.object(Values.list(sent.get("groups")).get(0));
        String error = coordinator.error(found.get("errorCode"));
        if (!error.equals("NONE")) {
            return refused(error, found.get("errorMessage"));
        }
        Map<String, Object> topology = Values.object(found.get("topology"));
        TreeSet<Object> read = new TreeSet<>();
        for (Object each : Values.list(topology.get("subtopologies"))) {
            read.addAll(Values.list(Values.object(each).get("sourceTopics")));
        }
        List<Object> members = new ArrayList<>();
        for (Object each : Values.list(found.get("members"))) {
            members.add(member(Values.object(each)));
        }
        members.sort(Comparator.comparing(each -> (String) Values.object(each).get("client")));
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("state", found.get("groupState"));
        result.put("epoch", found.get("groupEpoch"));
        result.put("assignment_epoch", found.get("assignmentEpoch"));
        result.put("topology_epoch", topology.get("epoch"));
        result.put("topology", new ArrayList<>(read));
        result.put("members", members);
        return result;
    }

    private static Map<String, Object> member(Map<String, Object> found) {
        Map<String, Object> member = new LinkedHashMap<>();
        member.put("client", found.get("memberId"));
        member.put("epoch", found.get("memberEpoch"));
        member.put("topology_epoch", found.get("topologyEpoch"));
        member.put("tasks", rows(Values.object(found.get("assignment")).get("activeTasks")));
        member.put("target", rows(Values.object(found.get("targetAssignment")).get("activeTasks")));
        return member;
    }

    /** A consumer joins the group. */
    private Map<String, Object> consume() throws Throwable {
        String api = "ConsumerGroupHeartbeat";
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("groupId", ConsumerGroups.GROUP);
        fields.put("memberId", "consumer");
        fields.put("memberEpoch", 0L);
        fields.put("rebalanceTimeoutMs", ConsumerGroups.PATIENCE);
        fields.put("subscribedTopicNames", List.of("t"));
        fields.put("topicPartitions", List.of());
        Object context = coordinator.context("CONSUMER_GROUP_HEARTBEAT", VERSION, "consumer");
        Object made = asked("consumerGroupHeartbeat", context, coordinator.request(context, api, VERSION, fields));
        Map<String, Object> found = coordinator.told(api + "Response", VERSION, made);
        return found.get("error").equals("NONE") ? Map.of() : refused(found.get("error"), found.get("errorMessage"));
    }

    /** The result of the service, or the exception in its place. */
    private Object asked(String method, Object... arguments) throws Throwable {
        List<Object> made = new ArrayList<>();
        broker.ask(method, arguments).whenComplete((found, thrown) -> made.add(thrown == null ? found : thrown));
        broker.work();
        if (made.isEmpty()) {
            throw new IllegalStateException(method + " is not answered");
        }
        return made.get(0);
    }

    private static Map<String, Object> refused(Object error, Object message) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("status", "rejected");
        result.put("class", error);
        result.put("message", Objects.toString(message, ""));
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

    /** Null where the heartbeat omits them. */
    private static List<Object> owned(Memory memory, String owned, boolean another) {
        Map<String, Collection<Object>> found = new TreeMap<>();
        if ("told".equals(owned) || "before".equals(owned)) {
            add(found, memory.given);
        }
        if ("before".equals(owned)) {
            add(found, memory.before);
        }
        if (another) {
            found.computeIfAbsent("t", none -> new TreeSet<>(Comparator.comparing(Object::toString))).add(NO_TASK);
        }
        if (owned == null && !another) {
            return null;
        }
        List<Object> rows = new ArrayList<>();
        found.forEach((subtopology, partitions) -> rows.add(new LinkedHashMap<>(
            Map.of("subtopologyId", subtopology, "partitions", new ArrayList<>(partitions)))));
        return rows;
    }

    private static void add(Map<String, Collection<Object>> found, List<Object> tasks) {
        for (Object each : tasks) {
            List<Object> task = Values.list(each);
            found.computeIfAbsent((String) task.get(0), none -> new TreeSet<>(Comparator.comparing(Object::toString)))
                .add(((Number) task.get(1)).longValue());
        }
    }

    private static Map<String, Object> topology(Map<String, Object> order, String flaw) {
        List<Object> subtopologies = new ArrayList<>();
        for (Object each : Values.list(order.get("topology"))) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("subtopologyId", each);
            one.put("sourceTopics", List.of(each));
            one.put("sourceTopicRegex", "regex".equals(flaw) ? List.of("x.*") : List.of());
            one.put("stateChangelogTopics", "changelog".equals(flaw) ? List.of(changelog()) : List.of());
            one.put("repartitionSinkTopics", List.of());
            one.put("repartitionSourceTopics", List.of());
            one.put("copartitionGroups", List.of());
            subtopologies.add(one);
        }
        Map<String, Object> topology = new LinkedHashMap<>();
        topology.put("epoch", order.get("topology_epoch"));
        topology.put("subtopologies", subtopologies);
        return topology;
    }

    private static Map<String, Object> changelog() {
        Map<String, Object> changelog = new LinkedHashMap<>();
        changelog.put("name", "changelog");
        changelog.put("partitions", 1L);
        changelog.put("replicationFactor", 0L);
        changelog.put("topicConfigs", List.of());
        return changelog;
    }

    /** Sorted by name. */
    private static List<Object> statuses(Object found) {
        List<Object> names = new ArrayList<>();
        for (Object each : found == null ? List.of() : Values.list(found)) {
            int code = ((Number) Values.object(each).get("statusCode")).intValue();
            names.add(code >= 0 && code < STATUSES.size() ? STATUSES.get(code) : "status " + code);
        }
        names.sort(Comparator.comparing(Object::toString));
        return names;
    }

    /** Pairs of subtopology and partition, sorted. */
    private static List<Object> rows(Object found) {
        TreeMap<String, TreeSet<Integer>> tasks = new TreeMap<>();
        for (Object each : Values.list(found)) {
            Map<String, Object> one = Values.object(each);
            for (Object number : Values.list(one.get("partitions"))) {
                tasks.computeIfAbsent((String) one.get("subtopologyId"), none -> new TreeSet<>())
                    .add(((Number) number).intValue());
            }
        }
        List<Object> rows = new ArrayList<>();
        tasks.forEach((subtopology, numbers) -> numbers.forEach(each -> rows.add(Arrays.asList(subtopology, each))));
        return rows;
    }

    /** State of a client. */
    private static final class Memory {
        int epoch;
        List<Object> given = List.of();
        List<Object> before = List.of();

        void learn(int epoch, List<Object> tasks) {
            this.epoch = Math.max(epoch, 0);
            if (epoch == LEAVING) {
                given = List.of();
                before = List.of();
            } else if (tasks != null) {
                before = given;
                given = tasks;
            }
        }
    }
}
