package kipcheck;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Creates the objects that the coordinators of a release need: configuration, and everything without group state. */
final class CoordinatorParts {
    static final String GROUP = "org.apache.kafka.coordinator.group.";
    private static final String[] RUNTIMES = {"org.apache.kafka.coordinator.common.runtime.", GROUP + "runtime."};
    private static final String[] SERDES = {GROUP + "GroupCoordinatorRecordSerde", GROUP + "CoordinatorRecordSerde"};
    private static final String OWN = "kipcheck.broker.";
    private static final Map<String, Object> CONFIGURED = Map.ofEntries(
        Map.entry("group.max.size", 4),
        Map.entry("group.initial.rebalance.delay.ms", 3_000),
        Map.entry("group.min.session.timeout.ms", 6_000),
        Map.entry("group.max.session.timeout.ms", 1_800_000),
        // Records are written to the log at once.
        Map.entry("group.coordinator.append.linger.ms", 0),
        // Assignments that a heartbeat requires are computed before its response.
        Map.entry("group.consumer.assignor.offload.enable", false),
        Map.entry("group.consumer.max.size", 3),
        Map.entry("group.share.max.size", 3),
        Map.entry("group.streams.max.size", 3),
        Map.entry("group.share.assignor.offload.enable", false),
        Map.entry("group.streams.assignor.offload.enable", false),
        Map.entry("group.streams.num.standby.replicas", 1),
        Map.entry("group.streams.initial.rebalance.delay.ms", 0),
        Map.entry("group.streams.assignment.interval.ms", 0),
        // No group and no offset expires.
        Map.entry("offsets.retention.check.interval.ms", 1L << 50));

    final Release release;
    final Object serde;
    final Object logConfig;
    final Object metrics;
    final Object runtimeMetrics;
    private final Map<Class<?>, Object> made = new HashMap<>();

    CoordinatorParts(Release release) throws Throwable {
        this.release = release;
        this.serde = Release.create(first(SERDES));
        this.logConfig = Release.create(release.need("org.apache.kafka.storage.internals.log.LogConfig"), Map.of());
        Class<?> group = release.need(GROUP + "GroupCoordinatorConfig");
        Class<?> share = release.find(GROUP + "modern.share.ShareGroupConfig");
        keep(configured(group, group));
        if (share != null) {
            keep(configured(share, share, group));
        }
        this.metrics = Release.create(release.need(GROUP + "metrics.GroupCoordinatorMetrics"));
        this.runtimeMetrics = new InterfaceStub().as(
            first(RUNTIMES[0] + "CoordinatorRuntimeMetrics", GROUP + "metrics.CoordinatorRuntimeMetrics"));
        keep(metrics);
        // Keeps no state of share partitions, and answers that it does.
        Class<?> persister = release.find("org.apache.kafka.server.share.persister.NoOpStatePersister");
        if (persister != null) {
            keep(Release.create(persister));
        }
    }

    /** Those of the groups of one coordinator, or null. What a group does not set, the broker does. */
    Object groupSettings() throws Throwable {
        Class<?> type = release.find(GROUP + "GroupConfigManager");
        if (type == null) {
            return null;
        }
        Map<String, Object> given = new HashMap<>();
        Object config = made.get(release.need(GROUP + "GroupCoordinatorConfig"));
        for (Method method : config.getClass().getMethods()) {
            if (method.getName().equals("extractGroupConfigMap")) {
                Object[] arguments = new Object[method.getParameterCount()];
                for (int i = 0; i < arguments.length; i++) {
                    arguments[i] = argument(method.getParameterTypes()[i], Map.of());
                }
                given.put("defaults", Release.invoke(method, config, arguments));
            }
        }
        return make(type, given);
    }

    /** A class of the package that runs coordinators, which has moved. */
    Class<?> runtime(String name) {
        return first(RUNTIMES[0] + name, RUNTIMES[1] + name);
    }

    /** By the widest constructor; arguments are found by type, among these and the objects of this class. */
    Object make(Class<?> type, Map<String, Object> given) throws Throwable {
        Constructor<?> constructor = Release.widest(type);
        Object[] arguments = new Object[constructor.getParameterCount()];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = argument(constructor.getParameterTypes()[i], given);
        }
        return Release.create(constructor, arguments);
    }

    private Object argument(Class<?> type, Map<String, Object> given) throws Throwable {
        for (Object each : given.values()) {
            if (type.isInstance(each)) {
                return each;
            }
        }
        for (Object each : made.values()) {
            if (type.isInstance(each)) {
                return each;
            }
        }
        if (type == Map.class) {
            return Map.of();
        }
        if (type == Optional.class) {
            return Optional.empty();
        }
        return type.isInterface() ? new InterfaceStub().as(type) : Release.create(type);
    }

    private void keep(Object part) {
        made.put(part.getClass(), part);
    }

    /** Configuration of a class of the release, over all definitions in these classes. */
    private Object configured(Class<?> type, Class<?>... defining) throws Throwable {
        Class<?> definition = release.need("org.apache.kafka.common.config.ConfigDef");
        Object all = Release.create(definition);
        Map<Object, Object> keys = values(Map.class, Release.call(all, "configKeys"));
        for (Class<?> each : defining) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getType() == definition && Modifier.isStatic(field.getModifiers())) {
                    field.setAccessible(true);
                    keys.putAll(values(Map.class, Release.call(field.get(null), "configKeys")));
                }
            }
        }
        Class<?> config = release.need("org.apache.kafka.common.config.AbstractConfig");
        return Release.create(type, Release.create(config, all, settings(), false));
    }

    /** With those of system properties that begin with {@code OWN}. */
    private Map<String, Object> settings() {
        Map<String, Object> found = new HashMap<>(CONFIGURED);
        if (release.find(RUNTIMES[0] + "CoordinatorRuntime") == null) {
            // The preview of share groups in 3.9 takes no limit below 10.
            found.remove("group.share.max.size");
        }
        for (String name : System.getProperties().stringPropertyNames()) {
            if (name.startsWith(OWN)) {
                found.put(name.substring(OWN.length()), System.getProperty(name));
            }
        }
        return found;
    }

    @SuppressWarnings("unchecked")
    private static Map<Object, Object> values(Class<?> kind, Object map) {
        return (Map<Object, Object>) kind.cast(map);
    }

    private Class<?> first(String... names) {
        for (String each : names) {
            Class<?> found = release.find(each);
            if (found != null) {
                return found;
            }
        }
        throw new Release.Unsupported(release.name + " has no class " + String.join(" nor ", List.of(names)));
    }
}
