package kipcheck;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

/**
 * The group coordinator of a release behind a door of bytes: requests go in as clients send them, with their headers,
 * and responses come out as brokers send them. Between them this class does what {@code KafkaApis} does in a broker.
 *
 * <p>Several conversations go on side by side, each with a number and a coordinator of its own.
 */
final class Coordinator {
    private static final String PREFIX = "coordinator-";
    private static final String COMMON = "org.apache.kafka.common.";
    private static final String REQUESTS = COMMON + "requests.";
    /** API -> the methods of the service for it, the first that a release has, where they have another name. */
    private static final Map<String, List<String>> METHODS = Map.of(
        "OffsetCommit", List.of("commitOffsets"),
        // Since 4.3 offsets of all topics are requested by the same method.
        "OffsetFetch", List.of("fetchAllOffsets", "fetchOffsets"));

    private final Release release;
    private final KnownTopics topics;
    private final Map<Object, Conversation> conversations = new HashMap<>();
    private CoordinatorParts parts;

    Coordinator(Release release, Generated generated) {
        this.release = release;
        this.topics = new KnownTopics(release, generated);
    }

    static boolean knows(String op) {
        return op.startsWith(PREFIX);
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

    /** Whether the release has consumer groups of KIP-848, not as a preview. */
    boolean hasConsumerGroups() {
        return release.find("org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime") != null;
    }

    /** Whether the release has streams groups, whose requests are stable. */
    boolean hasStreamsGroups() {
        return release.find(COMMON + "message.StreamsGroupDescribeResponseData") != null
            && hasStable("STREAMS_GROUP_HEARTBEAT", 0);
    }

    /** Whether the release serves the heartbeats of share groups, in the version that is no preview. */
    boolean hasShareGroups() {
        return hasStable("SHARE_GROUP_HEARTBEAT", 1);
    }

    private boolean hasStable(String api, int version) {
        try {
            return serves(Release.callStatic(release.need(COMMON + "protocol.ApiKeys"), "valueOf", api), version);
        } catch (Throwable unknown) {
            return false;
        }
    }

    /** The responses that an operation causes, and the topics that the broker creates after it. */
    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        CoordinatorParts parts = parts();
        String op = Values.text(order.get("op")).substring(PREFIX.length());
        Object number = order.get("conversation");
        if (op.equals("begin")) {
            conversations.put(number, new Conversation());
        }
        Conversation conversation = conversations.get(number);
        // Each conversation has random numbers of its own, always the same ones.
        long outside = SeededRandom.on(conversation.position);
        try {
            if (op.equals("begin")) {
                conversation.broker = new CoordinatorBroker(parts);
            }
            conversation.perform(op, order);
            return conversation.caused();
        } finally {
            conversation.position = SeededRandom.on(outside);
        }
    }

    private CoordinatorParts parts() throws Throwable {
        if (parts == null) {
            // Its configuration names classes.
            Thread.currentThread().setContextClassLoader(release.loader);
            SeededRandom.install();
            parts = new CoordinatorParts(release);
        }
        return parts;
    }

    /** Whether a broker of the release serves the request; with previews, if they were asked for. */
    private static boolean serves(Object api, int version) throws Throwable {
        boolean unstable = Boolean.getBoolean("kipcheck.preview");
        return (Boolean) Release.call(api, "isVersionEnabled", (short) version, unstable);
    }

    /** A request, with its context. */
    private Request request(ByteBuffer bytes) throws Throwable {
        int version = bytes.getShort(Short.BYTES);
        Object api = Release.callStatic(release.need(COMMON + "protocol.ApiKeys"), "forId", (int) bytes.getShort(0));
        if (!serves(api, version)) {
            throw new Release.Unsupported(release.name + " does not support " + api + " v" + version, Claims.VERSIONS);
        }
        Object header = Release.callStatic(release.need(REQUESTS + "RequestHeader"), "parse", bytes);
        Object listener = Release.create(release.need(COMMON + "network.ListenerName"), "PLAINTEXT");
        Object security = Release.need(release.need(COMMON + "security.auth.SecurityProtocol"), "PLAINTEXT").get(null);
        Object principal = Release.need(release.need(COMMON + "security.auth.KafkaPrincipal"), "ANONYMOUS").get(null);
        Object client = Release.need(release.need(COMMON + "network.ClientInformation"), "EMPTY").get(null);
        Object context = Release.create(release.need(REQUESTS + "RequestContext"),
            header, "0", InetAddress.getLoopbackAddress(), principal, listener, security, client, false);
        Object parsed = Release.get(Release.call(context, "parseRequest", bytes), "request");
        return new Request((String) Release.need(api.getClass(), "name").get(api), version, context, parsed);
    }

    private final class Request {
        final String api;
        final short version;
        final Object context;
        final Object parsed;
        /** What is passed to the coordinator. */
        final Object data;

        Request(String api, int version, Object context, Object parsed) throws Throwable {
            this.api = api;
            this.version = (short) version;
            this.context = context;
            this.parsed = parsed;
            String check = "areMandatoryProtocolTypeAndNamePresent";
            if (Release.has(parsed.getClass(), check) && !(Boolean) Release.call(parsed, check)) {
                throw new Release.Unsupported("a broker refuses that before it calls its coordinator", Claims.BROKER);
            }
            String form = Release.has(parsed.getClass(), "normalizedData") ? "normalizedData" : "data";
            this.data = Release.call(parsed, form);
        }

        /** Calls the service. */
        CompletableFuture<?> pass(CoordinatorBroker broker) throws Throwable {
            String own = Character.toLowerCase(api.charAt(0)) + api.substring(1);
            for (String name : METHODS.getOrDefault(api, List.of(own))) {
                Method method = broker.method(name);
                if (method != null) {
                    Object[] arguments = new Object[method.getParameterCount()];
                    for (int i = 0; i < arguments.length; i++) {
                        arguments[i] = argument(method.getParameterTypes()[i]);
                    }
                    return broker.ask(method, arguments);
                }
            }
            throw new Release.Unsupported(release.name + " has no method for " + api);
        }

        private Object argument(Class<?> type) throws Throwable {
            if (type.isInstance(context)) {
                return context;
            }
            if (type.isInstance(data)) {
                return data;
            }
            if (type == boolean.class) {
                return false; // neither stable offsets nor the description of a topology
            }
            if (type == List.class) {
                for (Field field : data.getClass().getDeclaredFields()) {
                    if (field.getType() == List.class && !field.getName().startsWith("_")) {
                        return Release.get(data, field.getName());
                    }
                }
            }
            if (api.equals("OffsetFetch")) {
                return ((List<?>) Release.call(parsed, "groups")).get(0);
            }
            return null; // a supplier of buffers, which none of these releases uses
        }

        /** The response to it, with its header. */
        ByteBuffer response(Object made, Throwable thrown) throws Throwable {
            return (ByteBuffer) Release.call(context, "buildResponseEnvelopePayload",
                thrown == null ? built(made) : Release.call(parsed, "getErrorResponse", thrown));
        }

        private Object built(Object made) throws Throwable {
            Class<?> type = release.need(REQUESTS + api + "Response");
            Class<?> form = release.need(COMMON + "message." + api + "ResponseData");
            if (api.equals("OffsetFetch")) {
                Class<?> builder = release.find(REQUESTS + "OffsetFetchResponse$Builder");
                return builder == null ? Release.create(type, List.of(made), version)
                    : Release.call(Release.create(builder, List.of(made)), "build", version);
            }
            Object data = form.isInstance(made) ? made : around(made, form);
            for (Constructor<?> constructor : type.getConstructors()) {
                // Brokers convert these to the form of the version.
                if (constructor.getParameterCount() == 2 && constructor.getParameterTypes()[0] == form) {
                    return Release.create(constructor, data, version);
                }
            }
            return Release.create(type, data);
        }

        /** The data of a response that consists of this part. */
        private Object around(Object part, Class<?> form) throws Throwable {
            for (Method setter : form.getMethods()) {
                Class<?>[] types = setter.getParameterTypes();
                if (setter.getReturnType() == form && types.length == 1 && types[0].isInstance(part)) {
                    return Release.invoke(setter, Release.create(form), part);
                }
            }
            throw new Release.Unsupported(form.getName() + " has no place for a " + part.getClass().getName());
        }
    }

    private final class Conversation {
        CoordinatorBroker broker;
        /** The position in the random numbers. */
        long position;
        private KnownTopics.Known known;
        private final List<Answer> answers = new ArrayList<>();

        void perform(String op, Map<String, Object> order) throws Throwable {
            switch (op) {
                case "begin":
                    know(Values.object(order.get("topics")));
                    break;
                case "request":
                    send(request(ByteBuffer.wrap(Values.bytes(order.get("hex")))));
                    break;
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
                case "create":
                    know(Values.object(order.get("topics")));
                    break;
                case "configure":
                    broker.configure(Values.text(order.get("group")), Values.object(order.get("settings")));
                    break;
                case "reload":
                    broker.unload();
                    broker.load();
                    loaded(order);
                    break;
                default:
                    loaded(order);
            }
        }

        private void loaded(Map<String, Object> order) throws Throwable {
            broker.loaded((Long) order.getOrDefault("compacted", 0L), (Long) order.getOrDefault("since", 0L),
                "gone".equals(order.get("tombstones")));
        }

        /** The responses by now, the topics that the broker creates after them, and where its log could not be read. */
        Map<String, Object> caused() throws Throwable {
            List<Object> responses = new ArrayList<>();
            Map<String, Object> created = new TreeMap<>();
            for (Answer answer : answers) {
                Object made = answer.made;
                if (made != null && Release.has(made.getClass(), "creatableTopics")) {
                    for (Object topic : ((Map<?, ?>) Release.call(made, "creatableTopics")).values()) {
                        Integer partitions = (Integer) Release.call(topic, "numPartitions");
                        created.put((String) Release.call(topic, "name"), partitions.longValue());
                    }
                    made = Release.call(made, "data");
                }
                responses.add(Values.hex(answer.request.response(made, answer.thrown)));
            }
            answers.clear();
            know(created);
            return Map.of("responses", responses, "created", created, "unread", broker.unread());
        }

        private void send(Request request) throws Throwable {
            request.pass(broker).whenComplete((made, thrown) -> answers.add(new Answer(request, made, thrown)));
            broker.work();
        }

        private void know(Map<String, Object> added) throws Throwable {
            if (!added.isEmpty()) {
                known = topics.added(known, added);
                broker.know(known.image(), known.delta());
            }
        }
    }

    /** What the coordinator made of a request, or the exception in its place. */
    private record Answer(Request request, Object made, Throwable thrown) {
    }
}
