package kipcheck;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Assignors from 0.10.0 to 2.3, which only Kafka's own consumers use.
 *
 * <p>They call the stream thread (up to 0.11), its data provider (1.0), or its task manager. All three have similar
 * methods with distinct names, so that one stub implements them.
 */
final class StreamsOld implements StreamsEra {
    private static final String STREAMS = "org.apache.kafka.streams.";
    private static final String INTERNALS = STREAMS + "processor.internals.";
    private static final String THREAD = "__stream.thread.instance__";
    private static final String TASK_MANAGER = "__task.manager.instance__";
    private static final String PROBING = "__version.probing.flag__";
    private static final String ERROR = "__assignment.error.code__";

    private final Release release;
    private final ClassStub stub;
    private final StreamsTopology topology;
    private final Codec codec;

    StreamsOld(Release release) {
        this.release = release;
        this.stub = new ClassStub(release);
        this.topology = new StreamsTopology(release, stub);
        this.codec = new Streams(release, new Generated(release), false);
    }

    @Override
    public int latest() throws Throwable {
        return codec.versions("SubscriptionInfo")[1];
    }

    @Override
    public StreamsMember member(StreamsOrder order) throws Throwable {
        // The configuration refuses invalid values of a user.
        Object config = Release.create(release.need(STREAMS + "StreamsConfig"), order.configuration());
        Map<String, Object> consumer = consumer(config);
        Object assignor = Release.create(release.need((String) consumer.get("partition.assignment.strategy")));
        StreamsOldMember member = new StreamsOldMember(release, order, assignor, latest());
        StreamsOldTopics topics = new StreamsOldTopics(release);
        Object builder = builder(order, config);
        Object host = host(member, config, builder, topics);
        consumer.put(THREAD, host);
        consumer.put(TASK_MANAGER, host);
        consumer.put(PROBING, member.probing);
        consumer.put(ERROR, member.error);
        Release.call(assignor, "configure", consumer);
        install(assignor, topics);
        if (order.used != null) {
            member.use(order.used);
        }
        return member;
    }

    private Object builder(StreamsOrder order, Object config) throws Throwable {
        Map<String, Object> builders = topology.builders(order, builder -> {
            if (Release.has(builder.getClass(), "rewriteTopology")) {
                Release.call(builder, "rewriteTopology", config);
            } else if (Release.has(builder.getClass(), "setApplicationId")) {
                Release.call(builder, "setApplicationId", StreamsTopology.APPLICATION);
            }
        });
        Object builder = builders.values().iterator().next();
        return stub.over(builder, new InterfaceStub().plays("topicGroups", asked -> {
            return new Groups((Map<?, ?>) Release.call(builder, "topicGroups", asked));
        }), "topicGroups");
    }

    /** The configuration that the thread passes to its consumer, and the consumer to the assignor. */
    private Map<String, Object> consumer(Object config) throws Throwable {
        boolean threaded = Release.takes(config.getClass().getMethods(), "getConsumerConfigs", 3);
        Object consumer = threaded
            ? Release.call(config, "getConsumerConfigs", null, StreamsTopology.APPLICATION, "member")
            : Release.call(config, "getConsumerConfigs", StreamsTopology.APPLICATION, "member");
        return new HashMap<>(Values.object(consumer));
    }

    private Object host(StreamsOldMember member, Object config, Object builder, StreamsOldTopics topics)
            throws Throwable {
        StreamsOrder order = member.order;
        Object grouper = Release.call(
            config, "getConfiguredInstance", "partition.grouper", release.need(STREAMS + "processor.PartitionGrouper"));
        InterfaceStub host = new InterfaceStub()
            .plays("processId", none -> order.process)
            .plays("builder", none -> builder)
            .plays("config", none -> config)
            .plays("partitionGrouper", none -> grouper)
            .plays("name", none -> "thread")
            .plays("setAssignmentMetadata", tasks -> {
                member.told(((Map<?, ?>) tasks[0]).keySet(), ((Map<?, ?>) tasks[1]).keySet());
                return null;
            });
        for (String each : List.of("prevTasks", "prevActiveTasks", "prevActiveTaskIds")) {
            host.plays(each, none -> member.tasks(member.active()));
        }
        for (String each : List.of("cachedTasks", "cachedTasksIds")) {
            host.plays(each, none -> member.tasks(member.kept()));
        }
        Class<?> type = host(member.assignor.getClass()).getType();
        if (type.isInterface()) {
            return host.as(type);
        }
        Object played = stub.of(type.getName(), host);
        if (Thread.class.isAssignableFrom(type)) {
            ClassStub.set(played, "processId", order.process);
            ClassStub.set(played, "applicationId", StreamsTopology.APPLICATION);
            ClassStub.set(played, "builder", builder);
            ClassStub.set(played, "partitionGrouper", grouper);
            ClassStub.set(played, "config", config);
            ClassStub.set(played, "restoreConsumer", topics.consumer());
        }
        return played;
    }

    /** The object that the assignor calls. */
    private static Field host(Class<?> assignor) throws NoSuchFieldException {
        String name = Release.has(assignor, "taskManager") ? "taskManager"
            : Release.has(assignor, "threadDataProvider") ? "threadDataProvider" : "streamThread";
        return Release.need(assignor, name);
    }

    /** Replaces the object that creates topics at the brokers. */
    private void install(Object assignor, StreamsOldTopics topics) throws Throwable {
        Object made = Release.need(assignor.getClass(), "internalTopicManager").get(assignor);
        if (made != null && Release.has(made.getClass(), "close")) {
            // For a client whose sockets can be polled, though it is not connected.
            Release.call(made, "close");
        }
        Release.call(assignor, "setInternalTopicManager",
            stub.of(INTERNALS + "InternalTopicManager", topics.manager()));
    }

    /** The loop of an assignor up to 2.0 that may be infinite. */
    private static final class Groups extends LinkedHashMap<Object, Object> {
        private static final long serialVersionUID = 1L;

        Groups(Map<?, ?> groups) {
            super(groups);
        }

        @Override
        public Collection<Object> values() {
            StreamsOldTopics.carryOn();
            return super.values();
        }
    }
}
