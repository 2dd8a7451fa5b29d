package kipcheck;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * The topology of an order, built with the API that a release has for applications.
 *
 * <p>Each subtopology has a source for each topic that it reads, one processor with all stores, and a sink for each topic
 * that another one reads. Nodes are created and named in the order of subtopologies, because releases number these by
 * the order of their nodes. Repartition topics have the names in the order, without the prefix of the application id that
 * the release would add.
 */
final class StreamsTopology {
    static final String APPLICATION = "app";

    private static final String STREAMS = "org.apache.kafka.streams.";
    private static final String INTERNALS = STREAMS + "processor.internals.";

    private final Release release;
    private final ClassStub stub;

    StreamsTopology(Release release, ClassStub stub) {
        this.release = release;
        this.stub = stub;
    }

    /** A preparation of a builder, which sets the application id for example. */
    interface Finish {
        void with(Object builder) throws Throwable;
    }

    /**
     * By name of the topology ("" where it has none), the builder of its members: an InternalTopologyBuilder, or up to
     * 0.11 a TopologyBuilder.
     *
     * @throws Release.Unsupported where the release does not support it, or numbers subtopologies differently
     */
    Map<String, Object> builders(StreamsOrder order, Finish finish) throws Throwable {
        Map<String, Map<Integer, Map<String, Object>>> named = new TreeMap<>();
        Set<String> written = new HashSet<>();
        for (Map<String, Object> each : order.subtopologies) {
            String name = Values.text(each.get("topology"));
            Object twin = named.computeIfAbsent(name == null ? "" : name, key -> new TreeMap<>())
                .put(Values.int32(each.get("id")), each);
            if (twin != null) {
                throw new Release.Unsupported("two subtopologies have the id " + each.get("id"));
            }
            written.addAll(StreamsOrder.texts(each, "repartition"));
        }
        if (named.size() > 1 && named.containsKey("")) {
            throw new Release.Unsupported("some topologies have names, and others have none");
        }
        Map<String, Object> builders = new TreeMap<>();
        for (Map.Entry<String, Map<Integer, Map<String, Object>>> each : named.entrySet()) {
            Object builder = built(each.getKey(), each.getValue(), written);
            finish.with(builder);
            Map<String, String> names = new HashMap<>();
            for (String topic : written) {
                names.put(decorated(builder, topic), topic);
            }
            numbered(builder, names, each.getValue());
            builders.put(each.getKey(), renamed(builder, names));
        }
        return builders;
    }

    private Object built(String name, Map<Integer, Map<String, Object>> subtopologies, Set<String> written)
            throws Throwable {
        Class<?> type = release.find(STREAMS + "Topology");
        boolean inner = type != null;
        Object outer = Release.create(inner ? type : release.need(STREAMS + "processor.TopologyBuilder"));
        Object builder = inner ? Release.get(outer, "internalTopologyBuilder") : outer;
        if (!name.isEmpty()) {
            named(builder, name);
        }
        for (String each : written) {
            internal(builder, each);
        }
        for (Map.Entry<Integer, Map<String, Object>> each : subtopologies.entrySet()) {
            // Releases up to 0.11 sort nodes by name.
            add(outer, builder, String.format("%04d-", each.getKey()), each.getValue());
        }
        return builder;
    }

    private void add(Object outer, Object builder, String prefix, Map<String, Object> subtopology) throws Throwable {
        Map<String, String> sources = new HashMap<>();
        List<String> parents = new ArrayList<>();
        for (String topic : StreamsOrder.texts(subtopology, "sources")) {
            String node = prefix + String.format("source-%04d", parents.size());
            Release.call(outer, "addSource", node, new String[] {topic});
            sources.put(topic, node);
            parents.add(node);
        }
        if (parents.isEmpty()) {
            throw new Release.Unsupported("subtopology " + subtopology.get("id") + " reads nothing");
        }
        String processor = prefix + "task";
        Release.call(outer, "addProcessor", processor, processors(), parents.toArray(new String[0]));
        List<Object> stores = subtopology.get("stores") == null ? List.of() : Values.list(subtopology.get("stores"));
        for (Object each : stores) {
            Map<String, Object> store = Values.object(each);
            Object made = store(Values.text(store.get("name")), !Boolean.FALSE.equals(store.get("logged")));
            Release.call(outer, "addStateStore", made, new String[] {processor});
        }
        int sinks = 0;
        for (String topic : StreamsOrder.texts(subtopology, "repartition")) {
            String node = prefix + String.format("to-%04d", sinks++);
            Release.call(outer, "addSink", node, topic, new String[] {processor});
        }
        List<Object> groups =
            subtopology.get("copartition") == null ? List.of() : Values.list(subtopology.get("copartition"));
        for (Object group : groups) {
            Set<String> nodes = new HashSet<>();
            for (Object topic : Values.list(group)) {
                if (!sources.containsKey(topic)) {
                    throw new Release.Unsupported(topic + " is co-partitioned but not read");
                }
                nodes.add(sources.get(topic));
            }
            Release.call(builder, "copartitionSources", nodes);
        }
    }

    /** A supplier of processors that do nothing: a new one each time, as releases check. */
    private Object processors() {
        String place = release.find(STREAMS + "processor.api.ProcessorSupplier") == null ? "processor." : "processor.api.";
        Class<?> processor = release.need(STREAMS + place + "Processor");
        return new InterfaceStub().plays("get", none -> new InterfaceStub().as(processor))
            .as(release.need(STREAMS + place + "ProcessorSupplier"));
    }

    /** In memory, so that no native library is needed. */
    private Object store(String name, boolean logged) throws Throwable {
        if (release.find(STREAMS + "state.StoreBuilder") == null) {
            Class<?> stores = release.need(STREAMS + "state.Stores");
            Object made = Release.call(Release.call(Release.call(Release.callStatic(stores, "create", name),
                "withStringKeys"), "withStringValues"), "inMemory");
            // In 0.10.0 all are.
            boolean always = !Release.has(made.getClass(), "disableLogging");
            return Release.call(logged || always ? made : Release.call(made, "disableLogging"), "build");
        }
        Class<?> stores = release.need(STREAMS + "state.Stores");
        Object serde = Release.callStatic(release.need("org.apache.kafka.common.serialization.Serdes"), "String");
        Object made = Release.callStatic(
            stores, "keyValueStoreBuilder", Release.callStatic(stores, "inMemoryKeyValueStore", name), serde, serde);
        return logged ? Release.call(made, "withLoggingEnabled", new HashMap<>()) : Release.call(made, "withLoggingDisabled");
    }

    private void internal(Object builder, String topic) throws Throwable {
        Class<?> properties = release.find(INTERNALS + "InternalTopicProperties");
        if (properties == null) {
            Release.call(builder, "addInternalTopic", topic);
        } else {
            Release.call(builder, "addInternalTopic", topic, Release.callStatic(properties, "empty"));
        }
    }

    /** A topology may have a name since 3.0. */
    private void named(Object builder, String name) throws Throwable {
        for (String field : new String[] {"topologyName", "namedTopology"}) {
            if (Release.has(builder.getClass(), field) && Release.need(builder.getClass(), field).getType() == String.class) {
                ClassStub.set(builder, field, name);
                return;
            }
        }
        throw new Release.Unsupported("topologies of " + release.name + " have no names");
    }

    // -- the built topology

    private void numbered(
            Object builder, Map<String, String> names, Map<Integer, Map<String, Object>> subtopologies) throws Throwable {
        Map<Integer, Set<String>> found = new TreeMap<>();
        Object[] asked = nameless(builder) ? new Object[] {APPLICATION} : new Object[0];
        for (Map.Entry<?, ?> each : ((Map<?, ?>) Release.call(builder, groups(builder), asked)).entrySet()) {
            Object key = each.getKey();
            int id = key instanceof Integer ? (Integer) key : (Integer) Release.get(key, "nodeGroupId");
            found.put(id, renamed((Collection<?>) Release.get(each.getValue(), "sourceTopics"), names));
        }
        for (Map.Entry<Integer, Map<String, Object>> each : subtopologies.entrySet()) {
            Set<String> wanted = new HashSet<>(StreamsOrder.texts(each.getValue(), "sources"));
            if (!wanted.equals(found.get(each.getKey()))) {
                throw new Release.Unsupported(
                    release.name + " assigns an id other than " + each.getKey() + " to the subtopology that reads "
                        + String.join(", ", new TreeSet<>(wanted)));
            }
        }
    }

    private static String decorated(Object builder, String topic) throws Throwable {
        return nameless(builder) ? APPLICATION + "-" + topic : (String) Release.call(builder, "decorateTopic", topic);
    }

    /** In 0.10.0 a builder has no application id, and gets it with each call for topics. */
    private static boolean nameless(Object builder) {
        return Release.takes(builder.getClass().getMethods(), "topicGroups", 1);
    }

    /** The builder's method that is called when tasks are created. */
    private static String groups(Object builder) {
        return Release.has(builder.getClass(), "topicGroups") ? "topicGroups" : "subtopologyToTopicsInfo";
    }

    /** The builder, without the prefix in names of repartition topics. */
    private Object renamed(Object builder, Map<String, String> names) throws Throwable {
        if (names.isEmpty()) {
            return builder;
        }
        String groups = groups(builder);
        // 0.10.0 does not add the prefix here that it adds elsewhere, so that the topic is not found.
        Map<String, String> decorated = new HashMap<>();
        names.forEach((made, topic) -> decorated.put(topic, made));
        InterfaceStub how = new InterfaceStub();
        how.plays(groups, arguments -> {
            Map<?, ?> found = (Map<?, ?>) Release.call(builder, groups, arguments);
            for (Object each : found.values()) {
                for (String field : new String[] {"sourceTopics", "sinkTopics"}) {
                    ClassStub.set(each, field, renamed((Collection<?>) Release.get(each, field), names));
                }
                topics(each, names);
            }
            return found;
        });
        how.plays("copartitionGroups", arguments -> {
            Set<Set<String>> found = new HashSet<>();
            for (Object each : (Collection<?>) Release.call(builder, "copartitionGroups", arguments)) {
                found.add(renamed((Collection<?>) each, nameless(builder) ? decorated : names));
            }
            return new ArrayList<>(found);
        });
        return stub.over(builder, how, groups, "copartitionGroups");
    }

    private static Set<String> renamed(Collection<?> topics, Map<String, String> names) {
        Set<String> renamed = new HashSet<>();
        for (Object each : topics) {
            renamed.add(names.getOrDefault(each, (String) each));
        }
        return renamed;
    }

    /** Each repartition topic that is read has its configuration, which contains the name too (0.10.0: only the name). */
    private static void topics(Object group, Map<String, String> names) throws Throwable {
        String field = Release.has(group.getClass(), "repartitionSourceTopics")
            ? "repartitionSourceTopics" : "interSourceTopics";
        if (Release.get(group, field) instanceof Set) {
            ClassStub.set(group, field, renamed((Collection<?>) Release.get(group, field), names));
            return;
        }
        Map<String, Object> renamed = new HashMap<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) Release.get(group, field)).entrySet()) {
            String name = names.getOrDefault(each.getKey(), (String) each.getKey());
            ClassStub.set(each.getValue(), "name", name);
            renamed.put(name, each.getValue());
        }
        ClassStub.set(group, field, renamed);
    }
}
