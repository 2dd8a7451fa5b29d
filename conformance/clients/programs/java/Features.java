package kipcheck;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The FeatureControlManager of a release behind the operations of the testee protocol: controller 0 of a KRaft quorum.
 *
 * <p>Updates are judged by the released class. What surrounds it is played here as QuorumController has it: the raw
 * upgrade type of a request is used in every version, records are replayed, and kraft.version is raised in the quorum.
 */
final class Features {
    private static final String CONTROLLER = "org.apache.kafka.controller.";
    private static final String MANAGER = CONTROLLER + "FeatureControlManager";
    private static final String RANGE = "org.apache.kafka.metadata.VersionRange";
    private static final String UPGRADE_TYPE = "org.apache.kafka.clients.admin.FeatureUpdate$UpgradeType";
    private static final String METADATA = "metadata.version";
    private static final String KRAFT = "kraft.version";
    private static final String NONE = "NONE";
    private static final int WITHOUT_RESULTS = 2;
    private static final List<String> KNOWN = 
        List.of("kraft-format", "kraft-node", "kraft-update", "kraft-levels", "kraft-fail-over");

    private final Release release;
    private Map<String, Object> local;

    // State of one case.
    private Object held;
    private Object manager;
    private Object apiVersions;
    private short kraft;
    private long records;
    private List<Object> quorum;
    private final List<Map.Entry<String, Short>> log = new ArrayList<>();
    private final Map<Integer, Object> brokers = new TreeMap<>();
    private final Map<Integer, Object> controllers = new TreeMap<>();

    Features(Release release) {
        this.release = release;
    }

    static boolean knows(String op) {
        return KNOWN.contains(op);
    }

    /** Whether this release has a controller that can be run, with everything that is needed here. */
    boolean available() {
        try {
            format(newest(), List.of(), List.of());
            return true;
        } catch (Throwable lacking) {
            return false;
        }
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        if (manager == null || !order.get("case").equals(held)) {
            held = order.get("case");
            format(newest(), List.of(), List.of());
        }
        switch (Values.text(order.get("op"))) {
            case "kraft-format":
                format((short) Values.int32(order.get("level")), Values.list(order.get("levels")),
                    Values.list(order.get("controllers")));
                return Map.of();
            case "kraft-node":
                node(order);
                return Map.of();
            case "kraft-update":
                return update(order);
            case "kraft-fail-over":
                return failOver();
            default:
                return levels();
        }
    }

    private Map<String, Object> local() throws Throwable {
        if (local == null) {
            Class<?> quorum = release.need(CONTROLLER + "QuorumFeatures");
            Object found = Release.takes(quorum.getDeclaredMethods(), "defaultFeatureMap", 0)
                ? Release.callStatic(quorum, "defaultFeatureMap")
                : Release.callStatic(quorum, Release.has(quorum, "defaultFeatureMap")
                    ? "defaultFeatureMap" : "defaultSupportedFeatureMap", false);
            local = new TreeMap<>();
            ((Map<?, ?>) found).forEach((name, range) -> local.put((String) name, range));
        }
        return local;
    }

    private short newest() throws Throwable {
        return (Short) Release.get(local().get(METADATA), "max");
    }

    private Object range(Object low, Object high) throws Throwable {
        return Release.create(release.need(RANGE), (short) Values.int32(low), (short) Values.int32(high));
    }

    /** A new cluster, whose log begins with these levels; controller 0 leads. */
    private void format(short level, List<Object> others, List<Object> members) throws Throwable {
        brokers.clear();
        controllers.clear();
        records = 0;
        kraft = 0;
        quorum = members;
        log.clear();
        build();
        replay(METADATA, level);
        for (Object each : others) {
            Map<String, Object> one = Values.object(each);
            short wanted = (short) Values.int32(one.get("level"));
            if (one.get("feature").equals(KRAFT)) {
                kraft = wanted; // the quorum has it; up to 4.0 the manager does not look there
                records++;
            } else {
                replay(Values.text(one.get("feature")), wanted);
            }
        }
    }

    /** A new manager with an empty log, and what nodes declared. */
    private void build() throws Throwable {
        Object builder = Release.create(release.need(MANAGER + "$Builder"));
        List<Integer> ids = new ArrayList<>(List.of(0));
        for (Object each : quorum) {
            ids.add(Values.int32(each));
        }
        Class<?> features = release.need(CONTROLLER + "QuorumFeatures");
        Class<?> describer = release.find(CONTROLLER + "ClusterFeatureSupportDescriber");
        if (describer == null) {
            apiVersions = Release.create(release.need("org.apache.kafka.clients.ApiVersions"));
            Release.call(builder, "setQuorumFeatures", Release.create(features, 0, apiVersions, local(), ids));
        } else {
            Release.call(builder, "setQuorumFeatures", Release.create(features, 0, local(), ids));
            Release.call(builder, "setClusterFeatureSupportDescriber", Proxy.newProxyInstance(
                release.loader, new Class<?>[] {describer}, (self, method, arguments) -> nodes(method.getName())));
        }
        Class<?> accessor = release.find(CONTROLLER + "KRaftVersionAccessor");
        if (accessor != null) {
            Release.call(builder, "setKRaftVersionAccessor", Proxy.newProxyInstance(
                release.loader, new Class<?>[] {accessor}, (self, method, arguments) -> quorum(arguments)));
        }
        manager = Release.call(builder, "build");
    }

    /** Another manager reads the whole log. */
    private Map<String, Object> failOver() throws Throwable {
        long before = records;
        List<Map.Entry<String, Short>> read = new ArrayList<>(log);
        log.clear();
        build();
        for (Map.Entry<String, Short> each : read) {
            replay(each.getKey(), each.getValue());
        }
        records = before; // some records are no levels
        if (apiVersions != null) {
            for (Map.Entry<Integer, Object> each : controllers.entrySet()) {
                learn(each.getKey(), ranges(each.getValue()));
            }
        }
        return Map.of("controller", 0);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> ranges(Object declared) {
        return (Map<String, Object>) declared;
    }

    private Object nodes(String method) {
        return (method.equals("brokerSupported") ? brokers : controllers).entrySet().iterator();
    }

    /** kraftVersion(), or upgradeKRaftVersion(epoch, version, validateOnly). */
    private Object quorum(Object[] arguments) throws Throwable {
        if (arguments == null || arguments.length == 0) {
            return Release.callStatic(
                release.need("org.apache.kafka.server.common.KRaftVersion"), "fromFeatureLevel", kraft);
        }
        if (!(Boolean) arguments[2]) {
            kraft = (Short) Release.call(arguments[1], "featureLevel");
        }
        return null;
    }

    private void replay(String name, short level) throws Throwable {
        records++;
        log.add(Map.entry(name, level));
        Object record = Release.create(release.need("org.apache.kafka.common.metadata.FeatureLevelRecord"));
        Release.call(record, "setName", name);
        Release.call(record, "setFeatureLevel", level);
        Release.call(manager, "replay", record);
    }

    private void node(Map<String, Object> order) throws Throwable {
        int number = Values.int32(order.get("node"));
        boolean broker = order.get("kind").equals("broker");
        Map<Integer, Object> known = broker ? brokers : controllers;
        known.remove(number);
        Map<String, Object> supported = null;
        if (order.get("supported") != null) {
            supported = new HashMap<>();
            for (Object each : Values.list(order.get("supported"))) {
                Map<String, Object> one = Values.object(each);
                supported.put(Values.text(one.get("feature")), range(one.get("low"), one.get("high")));
            }
            known.put(number, supported);
        }
        if (!broker && apiVersions != null) {
            learn(number, supported);
        }
    }

    /** Up to 3.6 a controller learns what the others support from their ApiVersions responses. */
    private void learn(int number, Map<String, Object> supported) throws Throwable {
        String id = Integer.toString(number);
        if (supported == null) {
            Release.call(apiVersions, "remove", id);
            return;
        }
        List<Object> keys = new ArrayList<>();
        for (Map.Entry<String, Object> each : supported.entrySet()) {
            Object key = Release.create(release.need(
                "org.apache.kafka.common.message.ApiVersionsResponseData$SupportedFeatureKey"));
            Release.call(key, "setName", each.getKey());
            Release.call(key, "setMinVersion", Release.get(each.getValue(), "min"));
            Release.call(key, "setMaxVersion", Release.get(each.getValue(), "max"));
            keys.add(key);
        }
        Class<?> type = release.need("org.apache.kafka.clients.NodeApiVersions");
        Object versions = Release.widest(type).getParameterCount() == 2
            ? Release.create(Release.widest(type), List.of(), keys)
            : Release.create(Release.widest(type), List.of(), keys, false);
        Release.call(apiVersions, "update", id, versions);
    }

    private Map<String, Object> update(Map<String, Object> order) throws Throwable {
        // The order of a HashMap is that in which QuorumController has updates judged.
        Map<String, Short> updates = new HashMap<>();
        Map<String, Object> types = new HashMap<>();
        boolean typed = Values.int32(order.get("version")) > 0;
        for (Object each : Values.list(order.get("updates"))) {
            Map<String, Object> one = Values.object(each);
            String name = Values.text(one.get("feature"));
            updates.put(name, (short) Values.int32(one.get("level")));
            // A request of version 0 has no type, which is then read as its default.
            int type = typed ? Values.int32(one.get("upgrade_type")) : 1;
            types.put(name, Release.callStatic(release.need(UPGRADE_TYPE), "fromCode", type));
        }
        boolean validates = typed && (Boolean) order.get("validate_only");
        Object result = judged(updates, types, validates);
        for (Object each : (List<?>) Release.get(result, "records")) {
            Object message = Release.get(each, "message");
            if (message.getClass().getSimpleName().equals("FeatureLevelRecord")) {
                replay((String) Release.call(message, "name"), (Short) Release.call(message, "featureLevel"));
            } else {
                records++;
            }
        }
        Object response = Release.get(result, "response");
        return response instanceof Map
            ? byFeature((Map<?, ?>) response)
            : response(error(response), order);
    }

    private Object judged(Map<String, Short> updates, Map<String, Object> types, boolean validates) throws Throwable {
        Class<?> type = manager.getClass();
        if (Release.takes(type.getDeclaredMethods(), "updateFeatures", 3)) {
            return Release.call(manager, "updateFeatures", updates, types, validates);
        }
        return apiVersions != null
            ? Release.call(manager, "updateFeatures", updates, types, brokers, validates)
            : Release.call(manager, "updateFeatures", updates, types, validates, 1);
    }

    private static String error(Object apiError) throws Throwable {
        return ((Enum<?>) Release.call(apiError, "error")).name();
    }

    private static Map<String, Object> byFeature(Map<?, ?> errors) throws Throwable {
        List<Object> results = new ArrayList<>();
        for (Object name : new TreeSet<>(errors.keySet())) {
            results.add(result((String) name, error(errors.get(name))));
        }
        return Map.of("results", results);
    }

    /** Of releases in which all updates succeed or fail together. */
    private static Map<String, Object> response(String error, Map<String, Object> order) {
        if (!error.equals(NONE)) {
            return Map.of("status", "rejected", "class", error, "message", "the update failed for all features");
        }
        List<Object> results = new ArrayList<>();
        if (Values.int32(order.get("version")) < WITHOUT_RESULTS) {
            // QuorumController lists each update of the request, repeated ones too; here they are sorted by name.
            List<String> names = new ArrayList<>();
            for (Object each : Values.list(order.get("updates"))) {
                names.add(Values.text(Values.object(each).get("feature")));
            }
            Collections.sort(names);
            for (String name : names) {
                results.add(result(name, NONE));
            }
        }
        return Map.of("results", results);
    }

    private static Map<String, Object> result(String feature, String error) {
        return Map.of("feature", feature, "error", error);
    }

    private Map<String, Object> levels() throws Throwable {
        Object found = Release.call(manager, "finalizedFeatures", Long.MAX_VALUE);
        Map<String, Integer> levels = new TreeMap<>();
        for (Object name : (java.util.Set<?>) Release.call(found, "featureNames")) {
            Object level = ((java.util.Optional<?>) Release.call(found, "get", name)).orElse(null);
            if (level != null && (Short) level != 0) {
                levels.put((String) name, ((Short) level).intValue());
            }
        }
        if (kraft > 0) {
            levels.merge(KRAFT, (int) kraft, Math::max);
        }
        List<Object> listed = new ArrayList<>();
        levels.forEach((name, level) -> listed.add(Map.of("feature", name, "level", level)));
        Map<String, Object> answer = new TreeMap<>();
        answer.put("epoch", records);
        answer.put("levels", listed);
        return answer;
    }
}
