package kipcheck;

import java.lang.reflect.Constructor;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/**
 * The classic group coordinator of a release behind the operations of the testee protocol: one group, whose clients are
 * distinguished by their names.
 *
 * <p>Requests are encoded in their version and parsed as brokers parse them. A response belongs to the operation that
 * caused it, which may be a later one than its request.
 */
final class Coordinator {
    private static final String GROUP = "group";
    private static final String REQUESTS = "org.apache.kafka.common.requests.";
    private static final String COMMON = "org.apache.kafka.common.";
    private static final int BATCHES = 3;
    private static final int TOPIC_IDS = 10;

    /** Verb -> the name of the API in the release, its message, and the method of the service. */
    private static final Map<String, String[]> ASKED = Map.of(
        "join", new String[] {"JOIN_GROUP", "JoinGroup", "joinGroup"},
        "sync", new String[] {"SYNC_GROUP", "SyncGroup", "syncGroup"},
        "heartbeat", new String[] {"HEARTBEAT", "Heartbeat", "heartbeat"},
        "leave", new String[] {"LEAVE_GROUP", "LeaveGroup", "leaveGroup"},
        "commit", new String[] {"OFFSET_COMMIT", "OffsetCommit", "commitOffsets"},
        "fetch", new String[] {"OFFSET_FETCH", "OffsetFetch", "fetchAllOffsets"},
        "describe-group", new String[] {"DESCRIBE_GROUPS", "DescribeGroups", "describeGroups"},
        "list-groups", new String[] {"LIST_GROUPS", "ListGroups", "listGroups"},
        "delete-group", new String[] {"DELETE_GROUPS", "DeleteGroups", "deleteGroups"});
    private static final List<String> HAPPENS = List.of("elapse", "fail-write", "unload", "load", "loaded");

    private final Release release;
    private final Generated generated;
    private CoordinatorParts parts;
    private CoordinatorAnswers answers;

    // State of one case.
    private Object held;
    private CoordinatorBroker broker;
    private CoordinatorNames names;
    private int steps;
    private List<Answer> given;

    Coordinator(Release release, Generated generated) {
        this.release = release;
        this.generated = generated;
    }

    static boolean knows(String op) {
        return ASKED.containsKey(op) || HAPPENS.contains(op);
    }

    /** Whether this release has a coordinator that can be run, with everything that is needed here. */
    boolean available() {
        try {
            new CoordinatorBroker(parts());
            return true;
        } catch (Throwable lacking) {
            return false;
        }
    }

    /** All responses that this operation causes. */
    List<Object> answer(Map<String, Object> order) throws Throwable {
        if (broker == null || !order.get("case").equals(held)) {
            held = order.get("case");
            broker = broker();
            names = new CoordinatorNames();
            steps = 0;
        }
        int step = steps++;
        given = new ArrayList<>();
        String op = Values.text(order.get("op"));
        if (ASKED.containsKey(op)) {
            ask(step, op, order);
        } else {
            happen(op, order);
        }
        return told();
    }

    /** A coordinator without groups, with the same random numbers as the one before. */
    CoordinatorBroker broker() throws Throwable {
        parts();
        Luck.again();
        return new CoordinatorBroker(parts);
    }

    private CoordinatorParts parts() throws Throwable {
        if (parts == null) {
            // Its configuration names classes.
            Thread.currentThread().setContextClassLoader(release.loader);
            Luck.install();
            parts = new CoordinatorParts(release);
            answers = new CoordinatorAnswers(release, generated);
        }
        return parts;
    }

    private void happen(String op, Map<String, Object> order) throws Throwable {
        switch (op) {
            case "elapse":
                broker.elapse((Long) order.get("ms"));
                break;
            case "fail-write":
                Class<?> errors = release.need(COMMON + "protocol.Errors");
                Object error = Release.callStatic(errors, "valueOf", Values.text(order.get("error")));
                broker.failWrite((Throwable) Release.call(error, "exception"));
                break;
            case "unload":
                broker.unload();
                break;
            case "load":
                broker.load();
                break;
            default:
                broker.loaded();
        }
    }

    // -- requests of clients

    private void ask(int step, String verb, Map<String, Object> order) throws Throwable {
        String[] asked = ASKED.get(verb);
        int version = Values.int32(order.get("version"));
        String actor = Values.text(order.get("actor"));
        Object context = context(asked[0], version, actor);
        String group = Boolean.TRUE.equals(order.get("nameless")) ? "" : GROUP;
        // Since 4.3 offsets of all topics are requested by the same method.
        String method = broker.has(asked[2]) ? asked[2] : "fetchOffsets";
        CompletableFuture<?> future = broker.ask(method, arguments(verb, version, context, asked[1], group, order));
        future.whenComplete((made, thrown) -> given.add(new Answer(step, verb, version, actor, made, thrown)));
        broker.work();
    }

    /** The context of a request of that API, by its name in the release. */
    Object context(String name, int version, String actor) throws Throwable {
        Object api = Release.callStatic(release.need(COMMON + "protocol.ApiKeys"), "valueOf", name);
        if (!(Boolean) Release.call(api, "isVersionEnabled", (short) version, false)) {
            throw new Release.Unsupported(release.name + " does not support " + name + " v" + version, Claims.VERSIONS);
        }
        Object header = Release.create(release.need(REQUESTS + "RequestHeader"), api, (short) version, actor, 0);
        Class<?> type = release.need(REQUESTS + "RequestContext");
        Object listener = Release.create(release.need(COMMON + "network.ListenerName"), "PLAINTEXT");
        Object security = Release.need(release.need(COMMON + "security.auth.SecurityProtocol"), "PLAINTEXT").get(null);
        Object principal = Release.need(release.need(COMMON + "security.auth.KafkaPrincipal"), "ANONYMOUS").get(null);
        Object client = Release.need(release.need(COMMON + "network.ClientInformation"), "EMPTY").get(null);
        for (Constructor<?> each : type.getConstructors()) {
            if (each.getParameterCount() == 8) {
                return Release.create(
                    each, header, "0", InetAddress.getLoopbackAddress(), principal, listener, security, client, false);
            }
        }
        throw new Release.Unsupported(release.name + " has other request contexts");
    }

    /** Calls the service's method. */
    private Object[] arguments(
            String verb, int version, Object context, String message, String group, Map<String, Object> order)
            throws Throwable {
        Object buffers = null; // none of these releases uses it
        switch (verb) {
            case "fetch":
                Map<String, Object> all = new TreeMap<>();
                all.put("groupId", group);
                all.put("topics", null);
                Class<?> type = release.need(COMMON + "message.OffsetFetchRequestData$OffsetFetchRequestGroup");
                return new Object[] {context, generated.read(type, all), false};
            case "describe-group":
                return new Object[] {context, Collections.singletonList(group)};
            case "delete-group":
                return new Object[] {context, Collections.singletonList(group), buffers};
            case "heartbeat":
            case "leave":
            case "list-groups":
                return new Object[] {context, request(context, message, version, fields(verb, version, group, order))};
            default:
                return new Object[] {
                    context, request(context, message, version, fields(verb, version, group, order)), buffers};
        }
    }

    /** The request as it is parsed from its encoded form. */
    Object request(Object context, String message, int version, Map<String, Object> fields) throws Throwable {
        if (message.equals("OffsetCommit") && version >= TOPIC_IDS) {
            // There topics have ids, which brokers resolve to names before they call the coordinator.
            return generated.read(release.need(COMMON + "message.OffsetCommitRequestData"), fields);
        }
        ByteBuffer bytes;
        try {
            bytes = generated.encode(message + "Request", version, fields);
        } catch (RuntimeException thrown) {
            if (thrown.getClass().getSimpleName().equals("UnsupportedVersionException")) {
                throw new Release.Unsupported(thrown.getMessage(), Claims.FIELDS);
            }
            throw thrown;
        }
        Object parsed = Release.get(Release.call(context, "parseRequest", bytes), "request");
        if (message.equals("SyncGroup") && !(Boolean) Release.call(parsed, "areMandatoryProtocolTypeAndNamePresent")) {
            throw new Release.Unsupported("a broker refuses that before it calls its coordinator", Claims.BROKER);
        }
        return Release.call(parsed, message.equals("LeaveGroup") ? "normalizedData" : "data");
    }

    private Map<String, Object> fields(String verb, int version, String group, Map<String, Object> order) {
        Map<String, Object> fields = new LinkedHashMap<>();
        if (verb.equals("list-groups")) {
            return fields;
        }
        fields.put("groupId", group);
        if (verb.equals("leave")) {
            leaving(version, fields, Values.list(order.get("members")));
            return fields;
        }
        fields.put("memberId", names.resolved(Values.text(order.get("member"))));
        fields.put("groupInstanceId", order.get("instance"));
        switch (verb) {
            case "join":
                fields.put("sessionTimeoutMs", order.getOrDefault("session_ms", 10_000L));
                if (version > 0) {
                    fields.put("rebalanceTimeoutMs", order.getOrDefault("rebalance_ms", 30_000L));
                }
                fields.put("protocolType", order.get("protocol_type"));
                fields.put("protocols", rows(order.get("protocols"), "name", "metadata"));
                break;
            case "sync":
                fields.put("generationId", generation(order));
                fields.put("protocolType", order.get("protocol_type"));
                fields.put("protocolName", order.get("protocol"));
                List<Object> assigned = rows(order.getOrDefault("assignments", List.of()), "memberId", "assignment");
                for (Object each : assigned) {
                    Values.object(each).computeIfPresent("memberId", (key, id) -> names.resolved((String) id));
                }
                fields.put("assignments", assigned);
                break;
            case "heartbeat":
                fields.put("generationId", generation(order));
                break;
            default:
                fields.put("generationIdOrMemberEpoch", generation(order));
                fields.put("topics", topics(Values.list(order.get("offsets"))));
        }
        return fields;
    }

    private long generation(Map<String, Object> order) {
        return names.generation(Values.text(order.get("actor")), (Long) order.getOrDefault("behind", 0L));
    }

    private void leaving(int version, Map<String, Object> fields, List<Object> members) {
        List<Object> leaving = new ArrayList<>();
        for (Object each : members) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("memberId", names.resolved(Values.text(Values.list(each).get(0))));
            one.put("groupInstanceId", Values.list(each).get(1));
            leaving.add(one);
        }
        if (version >= BATCHES) {
            fields.put("members", leaving);
            return;
        }
        if (leaving.size() != 1 || Values.object(leaving.get(0)).get("groupInstanceId") != null) {
            throw new Release.Unsupported("in this version only one member can leave, by its id", Claims.FIELDS);
        }
        fields.put("memberId", Values.object(leaving.get(0)).get("memberId"));
    }

    /** Pairs of a name and a text as bytes. */
    private static List<Object> rows(Object pairs, String name, String bytes) {
        List<Object> rows = new ArrayList<>();
        for (Object each : Values.list(pairs)) {
            List<Object> pair = Values.list(each);
            Map<String, Object> one = new LinkedHashMap<>();
            one.put(name, pair.get(0));
            one.put(bytes, CoordinatorAnswers.hex(Values.text(pair.get(1))));
            rows.add(one);
        }
        return rows;
    }

    private static List<Object> topics(List<Object> offsets) {
        Map<Object, List<Object>> topics = new LinkedHashMap<>();
        for (Object each : offsets) {
            List<Object> row = Values.list(each);
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("partitionIndex", row.get(1));
            one.put("committedOffset", row.get(2));
            topics.computeIfAbsent(row.get(0), none -> new ArrayList<>()).add(one);
        }
        List<Object> told = new ArrayList<>();
        topics.forEach((topic, partitions) -> told.add(new LinkedHashMap<>(
            Map.of("name", topic, "partitions", partitions))));
        return told;
    }

    // -- responses to clients

    /** A response as its reader decodes it, and the name of its error. */
    Map<String, Object> told(String message, int version, Object made) throws Throwable {
        return answers.told(message, version, made);
    }

    /** The name of an error. */
    String error(Object code) throws Throwable {
        return answers.error(code);
    }

    /** The answer to a request of this verb, with ids unchanged. */
    Map<String, Object> answered(String verb, int version, Object made, Throwable thrown) throws Throwable {
        return answers.of(verb, version, made, thrown);
    }

    /** In the order of requests: the order of responses in the coordinator is that of a hash map. */
    private List<Object> told() throws Throwable {
        given.sort((one, other) -> one.step - other.step);
        List<Object> told = new ArrayList<>();
        for (Answer each : given) {
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("to", each.step);
            one.putAll(answers.of(each.verb, each.version, each.made, each.thrown));
            learn(each, one);
            told.add(one);
        }
        for (Object each : told) {
            show(Values.object(each));
        }
        return told;
    }

    private void learn(Answer answer, Map<String, Object> made) {
        boolean joined = made.get("error").equals("NONE");
        if (!answer.verb.equals("join") || !(joined || made.get("error").equals("MEMBER_ID_REQUIRED"))) {
            return;
        }
        if (joined) {
            names.generationOf(answer.actor, (Integer) made.get("generation"));
        }
        names.idOf(answer.actor, (String) made.get("member"));
    }

    private void show(Map<String, Object> answer) {
        for (String each : List.of("leader", "member")) {
            answer.computeIfPresent(each, (key, id) -> names.shown((String) id));
        }
        if (answer.get("members") == null) {
            return;
        }
        List<Object> members = Values.list(answer.get("members"));
        for (Object each : members) {
            Values.list(each).set(0, names.shown((String) Values.list(each).get(0)));
        }
        if (!answer.get("answer").equals("left")) {
            members.sort(Comparator.comparing(Object::toString));
        }
    }

    /** The completed response, if it has come. */
    private static final class Answer {
        final int step;
        final String verb;
        final int version;
        final String actor;
        final Object made;
        final Throwable thrown;

        Answer(int step, String verb, int version, String actor, Object made, Throwable thrown) {
            this.step = step;
            this.verb = verb;
            this.version = version;
            this.actor = actor;
            this.made = made;
            this.thrown = thrown;
        }
    }
}
