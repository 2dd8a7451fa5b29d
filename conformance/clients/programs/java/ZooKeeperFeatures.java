package kipcheck;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * Controllers and brokers of feature versions with ZooKeeper: a KafkaController of a release, and the listeners and
 * caches of brokers, with a real ZooKeeper in this process.
 *
 * <p>A conversation has its nodes below a path of its own. What a KafkaServer does around these classes is done here:
 * it reads /feature before its controller starts, and not at all below the migration version. Features, which no
 * release declares, are declared in BrokerFeatures.
 */
final class ZooKeeperFeatures {
    static final String API = "broker-api";
    private static final String SERVER = "kafka.server.";
    private static final String COMMON = "org.apache.kafka.common.";
    private static final String LISTENER = SERVER + "FinalizedFeatureChangeListener";
    private static final String STOPS = "FEATURE_CACHE_UPDATE";
    private static final long ANSWERS_MS = 8_000;
    private static final long NOTIFIED_MS = 3_000;
    private static final int OWN = 0;
    private static final List<String> KNOWN = List.of(
        "zk-controller", "zk-update", "zk-delete-node", "zk-read", "zk-features", "zk-node", "zk-write-node",
        "zk-declare", "zk-registration");

    private final Release release;
    private final Scala scala;
    private final Generated generated;
    private final ZooKeeperNodes nodes;
    private final ClassStub stubs;
    private ZooKeeperServer server;
    private int conversations;

    // State of one case.
    private Object held;
    private String root;
    private Object client;
    private Object controller;
    private Object cache;
    private Object listener;
    private Object config;
    private final Map<Integer, Map<String, Object>> declared = new TreeMap<>();
    private final Map<Integer, Object> caches = new TreeMap<>();
    private volatile boolean exited;

    ZooKeeperFeatures(Release release, Generated generated, ZooKeeperNodes nodes) {
        this.release = release;
        this.scala = new Scala(release);
        this.generated = generated;
        this.nodes = nodes;
        this.stubs = new ClassStub(release);
    }

    static boolean knows(String op) {
        return KNOWN.contains(op);
    }

    /** Whether this release has the classes; ZooKeeper starts with the first conversation. */
    boolean available() {
        return release.find("kafka.zk.FeatureZNode") != null && release.find(LISTENER) != null
            && release.find("org.apache.zookeeper.server.NIOServerCnxnFactory") != null;
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        if (root == null || !order.get("case").equals(held)) {
            begin();
            held = order.get("case");
        }
        switch (Values.text(order.get("op"))) {
            case "zk-controller":
                return start(Values.text(order.get("inter_broker")));
            case "zk-update":
                return update(order);
            case "zk-delete-node":
                server.delete(root + "/feature");
                return settled();
            case "zk-write-node":
                server.put(root + "/feature", written(order));
                return settled();
            case "zk-read":
                return read(Values.int32(order.get("broker")));
            case "zk-features":
                return features(Values.int32(order.get("broker")));
            case "zk-node":
                return node();
            case "zk-declare":
                declare(Values.int32(order.get("broker")), spans(order.get("supported"), "min_version", "max_version"));
                return Map.of();
            default:
                throw new Release.Unsupported("registrations are written by the server of a broker", API);
        }
    }

    private void begin() throws Throwable {
        if (server == null) {
            server = new ZooKeeperServer(release);
            Class<?> procedure = release.need(COMMON + "utils.Exit$Procedure");
            Release.callStatic(release.need(COMMON + "utils.Exit"), "setExitProcedure",
                new InterfaceStub().plays("execute", arguments -> {
                    exited = true;
                    throw new IllegalStateException("the broker exits with " + arguments[0]);
                }).as(procedure));
        }
        stop();
        declared.clear();
        caches.clear();
        config = null;
        root = "/c" + ++conversations;
        for (String each : List.of("", "/brokers", "/brokers/ids")) {
            server.put(root + each, new byte[0]);
        }
    }

    private void stop() throws Throwable {
        if (controller != null) {
            Release.call(controller, "shutdown");
        }
        if (listener != null) {
            Release.call(listener, "close");
        }
        if (client != null) {
            Release.call(client, "close");
        }
        controller = null;
        listener = null;
        client = null;
        cache = null;
        exited = false;
    }

    private static Map<String, Object> stops(int broker) {
        return Map.of("status", "rejected", "class", STOPS, "message", "broker " + broker + " has to stop");
    }

    private static boolean holds(BooleanSupplier wanted, long withinMs) throws InterruptedException {
        long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(withinMs);
        while (!wanted.getAsBoolean()) {
            if (System.nanoTime() > until) {
                return false;
            }
            Thread.sleep(1);
        }
        return true;
    }

    // Parts of a broker

    private Object config(String interBroker) throws Throwable {
        Properties settings = new Properties();
        settings.put("zookeeper.connect", server.address() + root);
        settings.put("broker.id", Integer.toString(OWN));
        settings.put("inter.broker.protocol.version", interBroker);
        settings.put("auto.leader.rebalance.enable", "false");
        settings.put("listeners", "PLAINTEXT://127.0.0.1:1");
        return Release.callStatic(release.need(SERVER + "KafkaConfig"), "fromProps", settings);
    }

    private Object time() throws Throwable {
        return release.need(COMMON + "utils.Time").getField("SYSTEM").get(null);
    }

    /** The parameters have other places in older releases, and further ones in newer. */
    private Object client() throws Throwable {
        Object companion = scala.singleton("kafka.zk.KafkaZkClient$");
        for (var each : companion.getClass().getMethods()) {
            if (!each.getName().equals("apply") || each.isBridge()) {
                continue;
            }
            List<Object> given = new ArrayList<>();
            int numbers = 0;
            for (Class<?> type : each.getParameterTypes()) {
                given.add(type == String.class ? (given.isEmpty() ? server.address() + root : "kipcheck")
                    : type == boolean.class ? (Object) false
                    : type == int.class ? (Object) (numbers++ == 2 ? 10 : (int) ANSWERS_MS)
                    : type.getName().endsWith("Option") ? scala.option(null)
                    : type.getName().endsWith("ZKClientConfig") ? Release.create(type) : time());
            }
            return Release.invoke(each, companion, given.toArray());
        }
        throw new Release.Unsupported(release.name + " has no client of ZooKeeper");
    }

    /** BrokerFeatures with these levels. */
    private Object supported(int broker) throws Throwable {
        return Release.create(release.need(SERVER + "BrokerFeatures"), levels(broker));
    }

    private Object levels(int broker) throws Throwable {
        return nodes.supported(declared.getOrDefault(broker, Map.of()));
    }

    private Object cache(int broker) throws Throwable {
        Class<?> old = release.find(SERVER + "FinalizedFeatureCache");
        if (old != null) {
            return Release.create(old, supported(broker));
        }
        List<Object> given = new ArrayList<>();
        var made = Release.widest(release.need(SERVER + "metadata.ZkMetadataCache"));
        for (Class<?> type : made.getParameterTypes()) {
            given.add(type == int.class ? (Object) broker : type == boolean.class ? (Object) false
                : type.getName().endsWith("BrokerFeatures") ? supported(broker)
                : type.getName().endsWith("Seq") ? scala.of(List.of())
                : Release.call(config("2.7"), "interBrokerProtocolVersion"));
        }
        return Release.create(made, given.toArray());
    }

    private Object listener(Object of, Object through) throws Throwable {
        return Release.create(Release.widest(release.need(LISTENER)), of, through);
    }

    /** Reads /feature into a cache, as a broker does that is notified. False: the broker exits. */
    private boolean reads(Object of, Object through) throws Throwable {
        Object outer = listener(of, through);
        Object updater = Release.create(release.need(LISTENER + "$FeatureCacheUpdater"), outer, "/feature");
        try {
            Release.call(updater, "updateLatestOrThrow");
            return true;
        } catch (RuntimeException thrown) {
            if (thrown.getClass().getSimpleName().equals("FeatureCacheUpdateException")) {
                return false;
            }
            throw thrown;
        }
    }

    private boolean versioned(Object of) throws Throwable {
        return (Boolean) Release.call(of, "isFeatureVersioningSupported");
    }

    // The controller

    private Map<String, Object> start(String interBroker) throws Throwable {
        stop();
        try {
            config = config(interBroker);
        } catch (IllegalArgumentException | IllegalStateException unknown) {
            throw new Release.Unsupported(release.name + " has no inter-broker version " + interBroker, Claims.VERSIONS);
        }
        client = client();
        Release.call(client, "createTopLevelPaths");
        cache = cache(OWN);
        if (versioned(config)) {
            if (!reads(cache, client)) {
                stop();
                return stops(OWN);
            }
            listener = listener(cache, client);
            Release.call(listener, "initOrThrow", ANSWERS_MS);
        }
        Object metrics = Release.create(release.need(COMMON + "metrics.Metrics"));
        controller = Release.create(Release.widest(release.need("kafka.controller.KafkaController")),
            config, client, time(), metrics, nodes.broker(OWN, Map.of()), 0L, null, supported(OWN), cache,
            scala.option(null));
        // Brokers are registered, and do not exist: nothing is sent to them.
        ClassStub.set(controller, "controllerChannelManager",
            stubs.of("kafka.controller.ControllerChannelManager", new InterfaceStub()));
        Release.call(controller, "startup");
        processed();
        Object active = controller;
        if (!holds(() -> isActive(active), ANSWERS_MS)) {
            throw new IllegalStateException("the controller is not elected");
        }
        return settled();
    }

    private static boolean isActive(Object controller) {
        try {
            return (Boolean) Release.call(controller, "isActive");
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    /** Until the controller has processed what happened: its events are in one queue, behind those of ZooKeeper. */
    private void processed() throws Throwable {
        if (controller != null) {
            Release.call(client, "getDataAndVersion", "/controller_epoch");
            requested((short) 0, List.of());
        }
    }

    /**
     * Until the controller's broker has read /feature, or exits because of it. A broker that has read that the node is
     * gone does neither: it set no watch then.
     */
    private Map<String, Object> settled() throws Throwable {
        if (listener == null) {
            return Map.of();
        }
        Map<String, Object> wanted = node();
        long epoch = Boolean.TRUE.equals(wanted.get("enabled")) ? (Long) wanted.get("epoch") : -1;
        Object of = cache;
        holds(() -> exited || epochOf(of) == epoch, NOTIFIED_MS);
        if (exited) {
            stop();
            return stops(OWN);
        }
        return Map.of();
    }

    private Map<String, Object> update(Map<String, Object> order) throws Throwable {
        if (controller == null || listener == null) {
            throw new Release.Unsupported("a request that the broker refuses does not reach its controller", API);
        }
        short version = (short) Values.int32(order.get("version"));
        Object decided = requested(version, Values.list(order.get("updates")));
        if ((Boolean) Scala.call(decided, "isLeft")) {
            Object error = Release.call(Scala.call(Scala.call(decided, "left"), "get"), "error");
            return Map.of("status", "rejected", "class", ((Enum<?>) error).name());
        }
        List<Object> results = new ArrayList<>();
        Map<String, String> errors = new TreeMap<>();
        for (Map.Entry<?, ?> each : scala.map(Scala.call(Scala.call(decided, "right"), "get")).entrySet()) {
            errors.put((String) each.getKey(), ((Enum<?>) Release.call(each.getValue(), "error")).name());
        }
        errors.forEach((feature, error) -> results.add(Map.of("feature", feature, "error", error)));
        return Map.of("results", results);
    }

    /** The Either that the controller calls back with. */
    private Object requested(short version, List<Object> updates) throws Throwable {
        List<Object> rows = new ArrayList<>();
        for (Object each : updates) {
            Map<String, Object> one = Values.object(each);
            long type = Values.int32(one.get("upgrade_type"));
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("feature", one.get("feature"));
            row.put("maxVersionLevel", one.get("level"));
            row.put(version == 0 ? "allowDowngrade" : "upgradeType", version == 0 ? (Object) (type == 2 || type == 3) : type);
            rows.add(row);
        }
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("timeoutMs", NOTIFIED_MS);
        value.put("featureUpdates", rows);
        if (version > 0) {
            value.put("validateOnly", false);
        }
        ByteBuffer bytes;
        try {
            bytes = generated.encode("UpdateFeaturesRequest", version, value);
        } catch (Release.Unsupported unknown) {
            throw new Release.Unsupported(unknown.getMessage(), Claims.VERSIONS);
        }
        Object request = Release.callStatic(
            release.need(COMMON + "requests.UpdateFeaturesRequest"), "parse", bytes, version);
        CompletableFuture<Object> decided = new CompletableFuture<>();
        Object callback = new InterfaceStub().plays("apply", arguments -> {
            decided.complete(arguments[0]);
            return null;
        }).as(release.need("scala.Function1"));
        Release.call(controller, "updateFeatures", request, callback);
        return decided.get(ANSWERS_MS, TimeUnit.MILLISECONDS);
    }

    // Brokers

    private Map<String, Object> read(int broker) throws Throwable {
        Object through = client == null ? client() : client;
        try {
            // A broker below the migration version has begun again, and reads nothing.
            if (config != null && controller != null && !versioned(config)) {
                caches.put(broker, cache(broker));
                return Map.of();
            }
            Object own = caches.get(broker);
            if (own == null) {
                own = cache(broker);
                caches.put(broker, own);
            }
            // Its release is that of its registration.
            ClassStub.set(own, "brokerFeatures", supported(broker));
            if (reads(own, through)) {
                return Map.of();
            }
            caches.remove(broker);
            return stops(broker);
        } finally {
            if (client == null) {
                Release.call(through, "close");
            }
        }
    }

    private Map<String, Object> features(int broker) throws Throwable {
        Object own = caches.get(broker);
        Map<String, Object> shown = new LinkedHashMap<>();
        Object known = own == null ? null : known(own);
        shown.put("epoch", known == null ? -1L : epochOf(own));
        shown.put("finalized", known == null ? List.of() : nodes.finalized(
            Release.get(known, "finalizedFeatures", "features")));
        return shown;
    }

    /** What a cache has; null if it is empty. */
    private Object known(Object of) throws Throwable {
        return scala.value(Scala.call(of, Release.has(of.getClass(), "getFeatureOption") ? "getFeatureOption" : "get"));
    }

    private long epochOf(Object of) {
        try {
            Object known = known(of);
            return known == null ? -1
                : ((Number) Release.get(known, "finalizedFeaturesEpoch", "epoch")).longValue();
        } catch (Throwable thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    /** A registration in place of another: the controller sees that the first one goes. */
    private void declare(int broker, Map<String, Object> features) throws Throwable {
        String path = root + "/brokers/ids/" + broker;
        declared.put(broker, features);
        server.delete(path);
        processed();
        server.put(path, nodes.registered(broker, features));
        processed();
    }

    // The node

    private Map<String, Object> node() throws Throwable {
        ZooKeeperServer.Node found = server.get(root + "/feature");
        Map<String, Object> shown = new LinkedHashMap<>();
        Map<String, Object> value = found == null ? Map.of()
            : Values.object(Json.parse(new String(found.data(), StandardCharsets.UTF_8)));
        shown.put("exists", found != null);
        shown.put("version", value.getOrDefault("version", 0L));
        shown.put("enabled", Long.valueOf(1).equals(value.get("status")));
        shown.put("epoch", found == null ? -1L : (long) found.version());
        List<Object> finalized = new ArrayList<>();
        new TreeMap<>(Values.object(value.getOrDefault("features", Map.of()))).forEach((name, entry) -> {
            Map<String, Object> levels = Values.object(entry);
            Object high = levels.get("max_version_level");
            finalized.add(Map.of("feature", name, "low", levels.getOrDefault("min_version_level", high), "high", high));
        });
        shown.put("finalized", finalized);
        return shown;
    }

    private static byte[] written(Map<String, Object> order) {
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("version", 1L);
        value.put("status", Boolean.TRUE.equals(order.get("disabled")) ? 0L : 1L);
        value.put("features", spans(order.get("features"), "min_version_level", "max_version_level"));
        return Json.print(value).getBytes(StandardCharsets.UTF_8);
    }

    private static Map<String, Object> spans(Object given, String low, String high) {
        Map<String, Object> spans = new TreeMap<>();
        for (Object each : given == null ? List.of() : Values.list(given)) {
            Map<String, Object> one = Values.object(each);
            spans.put(Values.text(one.get("feature")), new TreeMap<>(Map.of(low, one.get("low"), high, one.get("high"))));
        }
        return spans;
    }
}
