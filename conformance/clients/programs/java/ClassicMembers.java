package kipcheck;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;

/** Clients of the classic protocol in the group of {@link ConsumerGroups}, each with at most one unanswered request. */
final class ClassicMembers {
    private static final Map<String, String> REQUESTS = Map.of(
        "classic-join", "JoinGroup", "classic-sync", "SyncGroup", "classic-heartbeat", "Heartbeat",
        "classic-leave", "LeaveGroup", "classic-remove", "LeaveGroup");
    private static final List<String> LEAVES = List.of("classic-leave", "classic-remove");
    private static final String RECEIVE = "classic-receive";
    private static final String OPERATOR = "";
    /** Errors of a JoinGroup whose answer has an id for the next one. */
    private static final List<String> GIVING_IDS = List.of("REBALANCE_IN_PROGRESS", "MEMBER_ID_REQUIRED");
    private static final long SESSION = 20_000;
    private static final int VERSION = 3;
    /** Of a JoinGroup with an instance id. */
    private static final int STATIC_VERSION = 5;

    private final Coordinator coordinator;
    private final CoordinatorBroker broker;
    private final Map<String, Integer> topics;
    private final Map<String, Client> clients = new HashMap<>();

    ClassicMembers(Coordinator coordinator, CoordinatorBroker broker, Map<String, Integer> topics) {
        this.coordinator = coordinator;
        this.broker = broker;
        this.topics = topics;
    }

    static boolean knows(String op) {
        return REQUESTS.containsKey(op) || op.equals(RECEIVE);
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        String op = Values.text(order.get("op"));
        String name = Objects.requireNonNullElse(Values.text(order.get("client")), OPERATOR);
        Client client = clients.computeIfAbsent(name, none -> new Client());
        if (op.equals(RECEIVE)) {
            return received(client, client.asked == null ? "nothing" : "parked");
        }
        if (client.asked != null) {
            return told("busy", null, client);
        }
        send(op, name, client, order);
        return received(client, "parked");
    }

    private void send(String op, String name, Client client, Map<String, Object> order) throws Throwable {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("groupId", ConsumerGroups.GROUP);
        boolean joins = op.equals("classic-join");
        if (joins) {
            client.instance = (String) order.get("instance");
        }
        int version = !joins ? VERSION
            : client.instance == null ? ((Long) order.getOrDefault("version", (long) VERSION)).intValue()
            : STATIC_VERSION;
        String id = client.id.isEmpty() && !joins ? "?" : client.id;
        boolean leaves = LEAVES.contains(op);
        if (leaves) {
            boolean removes = order.containsKey("instance");
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("memberId", removes ? "" : id);
            one.put("groupInstanceId", removes ? order.get("instance") : client.instance);
            fields.put("members", List.of(one));
        } else {
            fields.put("memberId", id);
            if (!joins || version >= STATIC_VERSION) {
                fields.put("groupInstanceId", client.instance);
            }
        }
        if (joins) {
            join(client, fields, order);
        } else if (!leaves) {
            fields.put("generationId", client.generation - (Long) order.getOrDefault("behind", 0L));
        }
        if (op.equals("classic-sync")) {
            fields.put("assignments", shares(order));
        }
        String message = REQUESTS.get(op);
        String api = message.replaceAll("(.)([A-Z])", "$1_$2").toUpperCase(java.util.Locale.ROOT);
        Object context = coordinator.context(api, version, name);
        Object request = coordinator.request(context, message, version, fields);
        String method = message.substring(0, 1).toLowerCase(java.util.Locale.ROOT) + message.substring(1);
        client.asked = op;
        client.made = null;
        java.util.concurrent.CompletableFuture<?> future = joins || op.equals("classic-sync")
            ? broker.ask(method, context, request, null)
            : broker.ask(method, context, request);
        future.whenComplete((made, thrown) -> client.made = thrown == null ? made : thrown);
        broker.work();
    }

    private void join(Client client, Map<String, Object> fields, Map<String, Object> order) {
        fields.put("sessionTimeoutMs", SESSION);
        fields.put("rebalanceTimeoutMs", ConsumerGroups.PATIENCE);
        fields.put("protocolType", "consumer");
        ByteBuffer metadata = ByteBuffer.allocate(1024);
        metadata.putShort((short) 1);
        List<Object> subscribed = Values.list(order.get("topics"));
        metadata.putInt(subscribed.size());
        subscribed.forEach(each -> put(metadata, (String) each));
        metadata.putInt(-1);
        put(metadata, "told".equals(order.get("owned")) ? client.given : Map.of());
        metadata.flip();
        List<Object> protocols = new ArrayList<>();
        for (Object each : Values.list(order.getOrDefault("protocols", List.of("range")))) {
            protocols.add(new LinkedHashMap<>(Map.of("name", each, "metadata", Values.hex(metadata.duplicate()))));
        }
        fields.put("protocols", protocols);
    }

    /** Partitions of these topics, dealt to clients in turn. */
    private List<Object> shares(Map<String, Object> order) {
        List<Object> over = Values.list(order.getOrDefault("over", List.of()));
        Map<Object, Map<String, TreeSet<Integer>>> dealt = new LinkedHashMap<>();
        int at = 0;
        for (Map.Entry<String, Integer> topic : topics.entrySet()) {
            boolean assigned = Values.list(order.get("topics")).contains(topic.getKey()) && !over.isEmpty();
            for (int number = 0; assigned && number < topic.getValue(); number++) {
                dealt.computeIfAbsent(over.get(at++ % over.size()), none -> new TreeMap<>())
                    .computeIfAbsent(topic.getKey(), none -> new TreeSet<>()).add(number);
            }
        }
        List<Object> shares = new ArrayList<>();
        for (Object each : over) {
            ByteBuffer bytes = ByteBuffer.allocate(1024);
            bytes.putShort((short) 0);
            put(bytes, dealt.getOrDefault(each, Map.of()));
            bytes.putInt(-1);
            bytes.flip();
            Client client = clients.computeIfAbsent((String) each, name -> new Client());
            shares.add(new LinkedHashMap<>(Map.of("memberId", client.id, "assignment", Values.hex(bytes))));
        }
        return shares;
    }

    private static void put(ByteBuffer bytes, String text) {
        bytes.putShort((short) text.length());
        bytes.put(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void put(ByteBuffer bytes, Map<String, TreeSet<Integer>> partitions) {
        bytes.putInt(partitions.size());
        partitions.forEach((topic, numbers) -> {
            put(bytes, topic);
            bytes.putInt(numbers.size());
            numbers.forEach(bytes::putInt);
        });
    }

    private Map<String, Object> received(Client client, String none) throws Throwable {
        if (client.made == null) {
            return told(none, null, client);
        }
        String op = client.asked;
        Throwable thrown = client.made instanceof Throwable ? (Throwable) client.made : null;
        Map<String, Object> found = op.equals("classic-sync")
            ? coordinator.told("SyncGroupResponse", VERSION, client.made)
            : coordinator.answered(LEAVES.contains(op) ? "leave" : op.substring("classic-".length()), VERSION,
                client.made, thrown);
        client.asked = null;
        client.made = null;
        String error = (String) found.get("error");
        if (LEAVES.contains(op) && error.equals("NONE")) {
            error = (String) Values.list(Values.list(found.get("members")).get(0)).get(2);
        }
        learn(op, error, client, found);
        return told(error, found, client);
    }

    private static void learn(String op, String error, Client client, Map<String, Object> found) {
        if (error.equals("UNKNOWN_MEMBER_ID") || error.equals("FENCED_INSTANCE_ID") || op.equals("classic-leave")) {
            client.id = "";
            client.given = new TreeMap<>();
        }
        if (op.equals("classic-join") && GIVING_IDS.contains(error)) {
            client.id = (String) found.get("member");
        }
        if (!error.equals("NONE")) {
            return;
        }
        if (op.equals("classic-join")) {
            client.id = (String) found.get("member");
            client.generation = (Integer) found.get("generation");
        } else if (op.equals("classic-sync")) {
            client.given = assignment(ByteBuffer.wrap(Values.bytes(found.get("assignment"))));
        }
    }

    /** Empty for no bytes. */
    private static Map<String, TreeSet<Integer>> assignment(ByteBuffer bytes) {
        Map<String, TreeSet<Integer>> given = new TreeMap<>();
        if (bytes.remaining() < Short.BYTES) {
            return given;
        }
        bytes.getShort();
        for (int topics = bytes.getInt(); topics > 0; topics--) {
            byte[] name = new byte[bytes.getShort()];
            bytes.get(name);
            TreeSet<Integer> numbers = new TreeSet<>();
            for (int count = bytes.getInt(); count > 0; count--) {
                numbers.add(bytes.getInt());
            }
            given.put(new String(name, StandardCharsets.UTF_8), numbers);
        }
        return given;
    }

    private static Map<String, Object> told(String error, Map<String, Object> found, Client client) {
        boolean done = error.equals("NONE");
        boolean joined = done && found.containsKey("leader");
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("received", error);
        result.put("generation", joined ? found.get("generation") : null);
        result.put("led", joined && !"".equals(found.get("leader")));
        result.put("leads", joined && client.id.equals(found.get("leader")));
        List<Object> assignment = new ArrayList<>();
        client.given.forEach((topic, numbers) -> numbers.forEach(each -> assignment.add(List.of(topic, each))));
        result.put("assignment", done && found.containsKey("assignment") ? assignment : null);
        return result;
    }

    /** State of a client. */
    private static final class Client {
        String id = "";
        /** In its last JoinGroup; null: none. */
        String instance;
        int generation;
        Map<String, TreeSet<Integer>> given = new TreeMap<>();
        /** The verb of the request that is not answered yet. */
        String asked;
        /** The response or the exception, once there is one. */
        volatile Object made;
    }
}
