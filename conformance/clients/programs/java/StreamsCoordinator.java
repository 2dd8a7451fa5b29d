package kipcheck;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The coordinator of one streams group of KIP-1071 behind the operations of the testee protocol.
 *
 * <p>A client remembers its name, the last epoch and tasks it received, and the tasks before that; a heartbeat states
 * which of these it owns.
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
    private static final long NO_TASK = 99;

    private final Release release;
    private final Generated generated;
    private final Coordinator coordinator;
    private final KnownTopics topics;

    // State of one case.
    private Object held;
    private CoordinatorBroker broker;
    private final Map<String, Member> members = new HashMap<>();

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
            members.clear();
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
        Member member = members.computeIfAbsent(client, none -> new Member());
        String flaw = Values.text(order.get("flaw"));
        String owns = Values.text(order.get("owned"));
        Map<String, TreeSet<Long>> owned = member.active.owned(owns);
        if ("task".equals(flaw)) {
            owned = owned == null ? new TreeMap<>() : owned;
            owned.computeIfAbsent("t", none -> new TreeSet<>()).add(NO_TASK);
        }
        Map<String, TreeSet<Long>> standby = owned == null ? null : owns == null ? Map.of() : member.standby.owned(owns);
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("groupId", "group".equals(flaw) ? "" : ConsumerGroups.GROUP);
        fields.put("memberId", "member".equals(flaw) ? "" : client);
        fields.put("memberEpoch", member.known.epoch(order));
        fields.put("endpointInformationEpoch", 0L);
        fields.put("instanceId", "instance".equals(flaw) ? "" : order.get("instance"));
        fields.put("rackId", "rack".equals(flaw) ? "" : null);
        fields.put("rebalanceTimeoutMs", "timeout".equals(flaw) ? -1L : ConsumerGroups.PATIENCE);
        fields.put("topology", order.get("topology") == null ? null : StreamsSubtopologies.topology(order, flaw));
        fields.put("activeTasks", bySubtopology(owned));
        fields.put("standbyTasks", "standby".equals(flaw) ? null : bySubtopology(standby));
        fields.put("warmupTasks", owned == null ? null : List.of());
        fields.put("processId", client);
        Object context = coordinator.context("STREAMS_GROUP_HEARTBEAT", VERSION, client);
        Object request = coordinator.request(context, HEARTBEAT, VERSION, fields);
        Object made = broker.answer("streamsGroupHeartbeat", context, request);
        Object data = made instanceof Throwable ? made : Release.call(made, "data");
        Map<String, Object> found = coordinator.told(HEARTBEAT + "Response", VERSION, data);
        if (!found.get("error").equals("NONE")) {
            return GroupClient.refused(found.get("error"), found.get("errorMessage"));
        }
        int epoch = (Integer) found.get("memberEpoch");
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("epoch", epoch);
        result.put("tasks", rows(found.get("activeTasks")));
        result.put("standby", rows(found.get("standbyTasks")));
        result.put("warmup", rows(found.get("warmupTasks")));
        result.put("statuses", statuses(found.get("status")));
        result.put("created", created((Map<?, ?>) Release.call(made, "creatableTopics")));
        Map<GroupClient.Share, List<Object>> assigned = new HashMap<>();
        assigned.put(member.active, rows(found.get("activeTasks")));
        assigned.put(member.standby, rows(found.get("standbyTasks")));
        member.known.learn(epoch, assigned);
        return result;
    }

    /** The broker creates the topics that the response lists, with these numbers of partitions. */
    private List<Object> created(Map<?, ?> topics) throws Throwable {
        Map<String, Integer> sizes = new TreeMap<>();
        for (Object each : topics.values()) {
            sizes.put((String) Release.call(each, "name"), (Integer) Release.call(each, "numPartitions"));
        }
        if (!sizes.isEmpty()) {
            this.topics.add(broker, sizes);
        }
        List<Object> rows = new ArrayList<>();
        sizes.forEach((topic, size) -> rows.add(List.of(topic, size)));
        return rows;
    }

    private Map<String, Object> describe() throws Throwable {
        Object context = coordinator.context("STREAMS_GROUP_DESCRIBE", VERSION, "kipcheck");
        List<Object> arguments = new ArrayList<>(List.of(context, List.of(ConsumerGroups.GROUP)));
        if (release.find("org.apache.kafka.common.message.StreamsGroupTopologyDescriptionUpdateRequestData") != null) {
            arguments.add(false); // without the description of the topology
        }
        Object groups = broker.answer("streamsGroupDescribe", arguments.toArray());
        if (groups instanceof Throwable) {
            return GroupClient.refused(coordinator.told(DESCRIBE + "Response", VERSION, groups).get("error"), null);
        }
        Object response = Release.create(release.need(DESCRIBED));
        Release.call(response, "setGroups", groups);
        Map<String, Object> sent = generated.sent(DESCRIBE + "Response", VERSION, response);
        Map<String, Object> found = Values.object(Values.list(sent.get("groups")).get(0));
        String error = coordinator.error(found.get("errorCode"));
        if (!error.equals("NONE")) {
            return GroupClient.refused(error, found.get("errorMessage"));
        }
        Map<String, Object> topology = Values.object(found.get("topology"));
        TreeSet<Object> read = new TreeSet<>();
        for (Object each : Values.list(topology.get("subtopologies"))) {
            read.add(Values.object(each).get("subtopologyId"));
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
        Map<String, Object> assigned = Values.object(found.get("assignment"));
        Map<String, Object> target = Values.object(found.get("targetAssignment"));
        member.put("tasks", rows(assigned.get("activeTasks")));
        member.put("target", rows(target.get("activeTasks")));
        member.put("standby", rows(assigned.get("standbyTasks")));
        member.put("standby_target", rows(target.get("standbyTasks")));
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
        Object made = broker.answer("consumerGroupHeartbeat", context, coordinator.request(context, api, VERSION, fields));
        Map<String, Object> found = coordinator.told(api + "Response", VERSION, made);
        return found.get("error").equals("NONE") ? Map.of() : GroupClient.refused(found.get("error"), found.get("errorMessage"));
    }

    private static List<Object> bySubtopology(Map<String, TreeSet<Long>> tasks) {
        if (tasks == null) {
            return null;
        }
        List<Object> rows = new ArrayList<>();
        tasks.forEach((subtopology, numbers) -> rows.add(new LinkedHashMap<>(
            Map.of("subtopologyId", subtopology, "partitions", new ArrayList<>(numbers)))));
        return rows;
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

    /** Pairs of subtopology and partition, sorted; null if they are omitted. */
    private static List<Object> rows(Object found) {
        if (found == null) {
            return null;
        }
        TreeMap<String, TreeSet<Integer>> tasks = new TreeMap<>();
        for (Object each : Values.list(found)) {
            Map<String, Object> one = Values.object(each);
            for (Object number : Values.list(one.get("partitions"))) {
                tasks.computeIfAbsent((String) one.get("subtopologyId"), none -> new TreeSet<>())
                    .add(((Number) number).intValue());
            }
        }
        return GroupClient.rows(tasks);
    }

    private static final class Member {
        final GroupClient known = new GroupClient();
        final GroupClient.Share active = new GroupClient.Share();
        final GroupClient.Share standby = new GroupClient.Share();
    }
}
