package kipcheck;

import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The JSON of two nodes in ZooKeeper, written and read by BrokerIdZNode and FeatureZNode of a release.
 *
 * <p>A decoded node has the keys that the release keeps: it skips the time of a registration, and the host and port of
 * one that has endpoints; from 3.3 on also the lowest levels of finalized features.
 */
final class ZooKeeperNodes implements Codec {
    static final String REGISTRATION = "BrokerIdZNode";
    static final String FEATURES = "FeatureZNode";
    private static final String LOWEST = "min_version_level";
    private static final String HIGHEST = "max_version_level";
    private static final String COMMON = "org.apache.kafka.common.";
    private static final Pattern ENDPOINT = Pattern.compile("([A-Z0-9_]+)://\\[?([0-9a-zA-Z\\-%._:]*)]?:(-?[0-9]+)");

    private final Release release;
    private final Scala scala;

    ZooKeeperNodes(Release release) {
        this.release = release;
        this.scala = new Scala(release);
    }

    @Override
    public int[] versions(String message) {
        if (!scala.available()) {
            throw new Release.Unsupported(release.name + " is not written in Scala 2.13");
        }
        if (message.equals(FEATURES)) {
            return new int[] {1, hasMaximaOnly() ? 2 : 1};
        }
        return new int[] {1, release.find(COMMON + "feature.SupportedVersionRange") == null ? 4 : 5};
    }

    /** Since 3.3 a feature has one finalized level in memory. */
    private boolean hasMaximaOnly() {
        return Release.widest(release.need("kafka.zk." + FEATURES)).getParameterCount() == 3;
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        require(message, version);
        byte[] written = message.equals(FEATURES) ? features(version, value) : registration(version, value);
        return ByteBuffer.wrap(written);
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        require(message, version);
        byte[] data = new byte[bytes.remaining()];
        bytes.get(data);
        return message.equals(FEATURES) ? features(data, version) : registration(data, version);
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        return encode(message, version, decode(message, version, bytes));
    }

    private void require(String message, int version) {
        int[] known = versions(message);
        if (version < known[0] || version > known[1]) {
            throw new Release.Unsupported(
                release.name + " has " + message + " in versions " + known[0] + " to " + known[1]);
        }
    }

    private static Release.Unsupported limited(String why) {
        return new Release.Unsupported(why, Claims.VALUES);
    }

    // Finalized features

    private byte[] features(int version, Map<String, Object> value) throws Throwable {
        Object status = scala.value(Scala.call(
            scala.singleton("kafka.zk.FeatureZNodeStatus$"), "withNameOpt", Values.int32(value.get("status"))));
        Map<String, Map<String, Short>> levels = levels(value.get("features"));
        Constructor<?> node = Release.widest(release.need("kafka.zk." + FEATURES));
        Object made;
        if (hasMaximaOnly()) {
            Map<String, Short> maxima = new LinkedHashMap<>();
            for (Map.Entry<String, Map<String, Short>> each : levels.entrySet()) {
                Short highest = each.getValue().get(HIGHEST);
                if (!highest.equals(each.getValue().getOrDefault(LOWEST, highest))) {
                    throw limited("since 3.3 a release writes the highest level as the lowest one, too");
                }
                maxima.put(each.getKey(), highest);
            }
            made = Release.create(node, version, status, scala.of(maxima));
        } else {
            Object ranges = Release.callStatic(
                release.need(COMMON + "feature.Features"), "fromFinalizedFeaturesMap", levels);
            made = Release.create(node, status, ranges);
        }
        return (byte[]) Scala.call(scala.singleton("kafka.zk." + FEATURES + "$"), "encode", made);
    }

    private Map<String, Object> features(byte[] data, int version) throws Throwable {
        Object node = Scala.call(scala.singleton("kafka.zk." + FEATURES + "$"), "decode", (Object) data);
        Object status = Scala.call(node, "status");
        Map<String, Object> value = new LinkedHashMap<>();
        // Up to 3.2 a release knows one version, and skips the number.
        value.put("version", hasMaximaOnly() ? ((Number) Scala.call(node, "version")).longValue() : (long) version);
        value.put("status", ((Number) Scala.call(status, "id")).longValue());
        Map<String, Object> features = new TreeMap<>();
        if (hasMaximaOnly()) {
            for (Map.Entry<?, ?> each : scala.map(Scala.call(node, "features")).entrySet()) {
                features.put((String) each.getKey(), Map.of(HIGHEST, ((Number) each.getValue()).longValue()));
            }
        } else {
            features.putAll(ranges(Scala.call(node, "features")));
        }
        value.put("features", features);
        return value;
    }

    private static Map<String, Map<String, Short>> levels(Object features) {
        Map<String, Map<String, Short>> levels = new LinkedHashMap<>();
        Values.object(features).forEach((name, entry) -> {
            Map<String, Short> range = new HashMap<>();
            Values.object(entry).forEach((label, level) -> range.put(
                label, (short) Values.integer(level, Short.MIN_VALUE, Short.MAX_VALUE)));
            levels.put(name, range);
        });
        return levels;
    }

    /** Of an object of the class Features. */
    private static Map<String, Object> ranges(Object features) throws Throwable {
        Map<String, Object> ranges = new TreeMap<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) Release.call(features, "toMap")).entrySet()) {
            Map<String, Object> range = new TreeMap<>();
            ((Map<?, ?>) each.getValue()).forEach((label, level) ->
                range.put((String) label, ((Number) level).longValue()));
            ranges.put((String) each.getKey(), range);
        }
        return ranges;
    }

    // Registrations

    private byte[] registration(int version, Map<String, Object> value) throws Throwable {
        List<Object> endpoints = new ArrayList<>();
        for (Object each : Values.list(value.getOrDefault("endpoints", List.of()))) {
            endpoints.add(endpoint(Values.text(each), value.get("listener_security_protocol_map")));
        }
        Object names = value.get("listener_security_protocol_map");
        if (names != null && Values.object(names).size() != endpoints.size()) {
            throw limited("a broker names the security of its own listeners only");
        }
        List<Object> given = new ArrayList<>(List.of(version));
        given.add(Values.text(value.get("host")));
        given.add(Values.int32(value.get("port")));
        given.add(scala.of(endpoints));
        given.add(Values.int32(value.get("jmx_port")));
        given.add(scala.option(Values.text(value.get("rack"))));
        if (release.find(COMMON + "feature.SupportedVersionRange") != null) {
            given.add(supported(value.getOrDefault("features", Map.of())));
        }
        return (byte[]) Scala.call(scala.singleton("kafka.zk." + REGISTRATION + "$"), "encode", given.toArray());
    }

    private Object endpoint(String text, Object names) throws Throwable {
        Matcher parts = ENDPOINT.matcher(text);
        Object security = !parts.matches() ? null
            : names == null ? parts.group(1) : Values.object(names).get(parts.group(1));
        if (security == null) {
            throw limited(text + " is not an endpoint with a known security");
        }
        Class<?> listener = release.need(COMMON + "network.ListenerName");
        Object protocol = Release.callStatic(
            release.need(COMMON + "security.auth.SecurityProtocol"), "forName", Values.text(security));
        String host = parts.group(2).isEmpty() ? null : parts.group(2);
        return Release.create(Release.widest(release.need("kafka.cluster.EndPoint")), host,
            Integer.parseInt(parts.group(3)), Release.create(listener, parts.group(1)), protocol);
    }

    /** The features of a broker, as the release has them; none where it has no such class. */
    Object supported(Object features) throws Throwable {
        return Release.callStatic(
            release.need(COMMON + "feature.Features"), "fromSupportedFeaturesMap", levels(features));
    }

    /** A broker at a port where nobody listens, with these features. */
    Object broker(int number, Object features) throws Throwable {
        List<Object> endpoints = List.of(endpoint("PLAINTEXT://127.0.0.1:1", null));
        Object made = Release.create(release.need("kafka.cluster.Broker"),
            number, scala.of(endpoints), scala.option(null), supported(features));
        return Release.create(Release.widest(release.need("kafka.zk.BrokerInfo")), made, 5, -1);
    }

    /** The bytes of the registration of such a broker. */
    byte[] registered(int number, Object features) throws Throwable {
        return (byte[]) Release.call(scala.singleton("kafka.zk." + REGISTRATION + "$"), "encode", broker(number, features));
    }

    /** The finalized features of a cache, sorted. */
    List<Object> finalized(Object features) throws Throwable {
        Map<String, Object> found = new TreeMap<>();
        if (Release.has(features.getClass(), "toMap") && !hasMaximaOnly()) {
            found.putAll(ranges(features));
        } else {
            Map<?, ?> maxima = features instanceof Map<?, ?> known ? known : scala.map(features);
            maxima.forEach((name, level) -> found.put((String) name,
                Map.of(LOWEST, ((Number) level).longValue(), HIGHEST, ((Number) level).longValue())));
        }
        List<Object> shown = new ArrayList<>();
        found.forEach((name, levels) -> shown.add(Map.of("feature", name,
            "low", Values.object(levels).get(LOWEST), "high", Values.object(levels).get(HIGHEST))));
        return shown;
    }

    private Map<String, Object> registration(byte[] data, int version) throws Throwable {
        Object read = Scala.call(scala.singleton("kafka.zk." + REGISTRATION + "$"), "decode", 0, data);
        Object broker = Scala.call(read, "broker");
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("version", ((Number) Scala.call(read, "version")).longValue());
        value.put("jmx_port", ((Number) Scala.call(read, "jmxPort")).longValue());
        List<Object> endpoints = new ArrayList<>();
        Map<String, Object> names = new TreeMap<>();
        for (Object each : scala.list(Scala.call(broker, "endPoints"))) {
            if (version == 1) {
                value.put("host", Scala.call(each, "host"));
                value.put("port", ((Number) Scala.call(each, "port")).longValue());
            }
            endpoints.add(Scala.call(each, "connectionString"));
            names.put((String) Release.get(Scala.call(each, "listenerName"), "value"),
                Release.get(Scala.call(each, "securityProtocol"), "name"));
        }
        if (version >= 2) {
            value.put("endpoints", endpoints);
        }
        if (version >= 3) {
            value.put("rack", scala.value(Scala.call(broker, "rack")));
        }
        if (version >= 4) {
            value.put("listener_security_protocol_map", names);
        }
        if (version >= 5) {
            value.put("features", ranges(Scala.call(broker, "features")));
        }
        return value;
    }
}
