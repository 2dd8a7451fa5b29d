package kipcheck;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Assignors since 2.4: those of the public interface.
 *
 * <p>The objects that they call are values of the configuration: one by one at first, since 2.8 in a container.
 */
final class StreamsRecent implements StreamsEra {
    private static final String STREAMS = "org.apache.kafka.streams.";
    private static final String INTERNALS = STREAMS + "processor.internals.";
    private static final String CLIENTS = "org.apache.kafka.clients.";
    private static final int VERSION_PROBING = 2;
    private static final long RUNS_HERE = -2;
    /** The offset sum of a task that does not run, where the order does not contain one. */
    private static final long SOMEWHERE = 0;

    private final Release release;
    private final ClassStub stub;
    private final StreamsTopology topologies;

    StreamsRecent(Release release) {
        this.release = release;
        this.stub = new ClassStub(release);
        this.topologies = new StreamsTopology(release, stub);
    }

    @Override
    public int latest() throws Throwable {
        Class<?> versions = release.need(INTERNALS + "assignment.StreamsAssignmentProtocolVersions");
        return (Integer) Release.need(versions, "LATEST_SUPPORTED_VERSION").get(null);
    }

    @Override
    public StreamsMember member(StreamsOrder order) throws Throwable {
        Object assignor = Release.create(release.need(StreamsGroups.CLASSES.get(0)));
        Member member = new Member(order, assignor);
        member.configure();
        return member;
    }

    private final class Member extends StreamsMember {
        private final AtomicInteger error;
        private final AtomicLong next = new AtomicLong(Long.MAX_VALUE);

        Member(StreamsOrder order, Object assignor) {
            super(StreamsRecent.this.release, order, assignor);
            error = new AtomicInteger(order.error);
        }

        void configure() throws Throwable {
            // The configuration refuses invalid values of a user.
            Object config = Release.create(release.need(STREAMS + "StreamsConfig"), order.configuration());
            Map<String, Object> builders = topologies.builders(order, builder -> {
                Release.call(builder, "rewriteTopology", config);
                if (Release.takes(builder.getClass().getMethods(), "buildTopology", 0)) {
                    Release.call(builder, "buildTopology");
                }
            });
            Map<String, Object> parts = new HashMap<>();
            parts.put("taskManager", taskManager(builders, config));
            parts.put("streamsMetadataState", stub.of(INTERNALS + "StreamsMetadataState", new InterfaceStub()));
            parts.put("adminClient", admin());
            parts.put("mainConsumer", consumer());
            parts.put("time", new InterfaceStub().plays("milliseconds", none -> order.nowMs)
                .as(release.need("org.apache.kafka.common.utils.Time")));
            parts.put("assignmentErrorCode", error);
            parts.put("nextScheduledRebalanceMs", next);
            // The configuration that the thread passes to its consumer, and the consumer to the assignor.
            Map<String, Object> given = new HashMap<>(Values.object(
                Release.call(config, "getMainConsumerConfigs", StreamsTopology.APPLICATION, "member", 0)));
            hand(given, parts, config);
            Release.call(assignor, "configure", given);
            ClassStub.set(assignor, "internalTopicManager", topicManager());
            if (order.used != null) {
                ClassStub.set(assignor, "usedSubscriptionMetadataVersion", order.used);
            }
            if (Release.has(assignor.getClass(), "uniqueField")) {
                ClassStub.set(assignor, "uniqueField", order.unique);
            }
        }

        private void hand(Map<String, Object> given, Map<String, Object> parts, Object config) throws Throwable {
            Class<?> container = release.find(INTERNALS + "assignment.ReferenceContainer");
            if (container == null) {
                given.put("__task.manager.instance__", parts.get("taskManager"));
                given.put("__streams.metadata.state.instance__", parts.get("streamsMetadataState"));
                given.put("__streams.admin.client.instance__", parts.get("adminClient"));
                given.put("__assignment.error.code__", error);
                given.put("__next.probing.rebalance.ms__", next);
                given.put("__time__", parts.get("time"));
                return;
            }
            Object whole = Release.create(container);
            for (Map.Entry<String, Object> each : parts.entrySet()) {
                ClassStub.set(whole, each.getKey(), each.getValue());
            }
            if (Release.has(container, "clientTags")) {
                ClassStub.set(whole, "clientTags", Release.call(config, "getClientTags"));
            }
            given.put("__reference.container.instance__", whole);
        }

        private Object taskManager(Map<String, Object> builders, Object config) throws Throwable {
            Object process = order.process;
            Class<?> named = release.find(STREAMS + "processor.assignment.ProcessId");
            Object id = named == null ? process : Release.create(named, process);
            Object consumer = consumer();
            InterfaceStub how = new InterfaceStub()
                .plays("processId", none -> id)
                .plays("mainConsumer", none -> consumer)
                .plays("previousRunningTaskIds", none -> tasks(active()))
                .plays("activeTaskIds", none -> tasks(active()))
                .plays("cachedTasksIds", none -> tasks(kept()))
                .plays("getTaskOffsetSums", none -> sums())
                .plays("taskOffsetSums", none -> sums());
            for (String told : new String[] {"setAssignmentMetadata", "handleAssignment"}) {
                how.plays(told, given -> {
                    told(((Map<?, ?>) given[0]).keySet(), ((Map<?, ?>) given[1]).keySet());
                    return null;
                });
            }
            if (Release.has(release.need(INTERNALS + "TaskManager"), "topologyMetadata")) {
                Class<?> metadata = release.need(INTERNALS + "TopologyMetadata");
                ConcurrentSkipListMap<String, Object> sorted = new ConcurrentSkipListMap<>();
                builders.forEach((name, builder) -> sorted.put(name.isEmpty() ? "__UNNAMED_TOPOLOGY__" : name, builder));
                Object all = Release.create(metadata, sorted, config);
                how.plays("topologyMetadata", none -> all);
            } else if (builders.size() > 1) {
                throw new Release.Unsupported(release.name + " runs one topology, not " + builders.size());
            } else {
                Object only = builders.values().iterator().next();
                how.plays("builder", none -> only);
            }
            return stub.of(INTERNALS + "TaskManager", how);
        }

        /**
         * As the task manager reports them: without tasks that have no state. Tasks that it ran have offsets if they were
         * revoked before the member joins, as in the eager protocol.
         */
        private Map<Object, Object> sums() throws Throwable {
            boolean runs = Release.call(assignor, "supportedProtocols").toString().contains("COOPERATIVE");
            Map<String, Long> told = new LinkedHashMap<>();
            standby().stream().filter(order::stateful).forEach(task -> told.put(task, SOMEWHERE));
            active().stream().filter(order::stateful).forEach(task -> told.put(task, runs ? RUNS_HERE : SOMEWHERE));
            told.putAll(order.sums);
            Map<Object, Object> sums = new HashMap<>();
            for (Map.Entry<String, Long> each : told.entrySet()) {
                sums.put(StreamsOrder.task(release, each.getKey()), each.getValue());
            }
            return sums;
        }

        /** Creates missing topics, and returns their names. */
        private Object topicManager() throws Throwable {
            return stub.of(INTERNALS + "InternalTopicManager", new InterfaceStub().plays("makeReady", given -> {
                Set<Object> made = new HashSet<>(((Map<?, ?>) given[0]).keySet());
                made.removeAll(order.topics);
                made.removeAll(order.offsets.keySet());
                return made;
            }));
        }

        private Object admin() {
            return new InterfaceStub().plays("listOffsets", given -> {
                Class<?> result = release.need(CLIENTS + "admin.ListOffsetsResult");
                Class<?> info = release.need(result.getName() + "$ListOffsetsResultInfo");
                Map<Object, Object> offsets = new HashMap<>();
                for (Object partition : ((Map<?, ?>) given[0]).keySet()) {
                    long end = order.offsets.getOrDefault(Release.get(partition, "topic"), 0L);
                    Object found = Release.create(info, end, -1L, Optional.empty());
                    Class<?> future = release.need("org.apache.kafka.common.KafkaFuture");
                    offsets.put(partition, Release.callStatic(future, "completedFuture", found));
                }
                return Release.create(result, offsets);
            }).as(release.need(CLIENTS + "admin.Admin"));
        }

        /** No offset was committed. */
        private Object consumer() {
            return new InterfaceStub().plays("committed", none -> Collections.emptyMap())
                .as(release.need(CLIENTS + "consumer.Consumer"));
        }

        // -- observable state

        @Override
        int used() throws Throwable {
            return (Integer) Release.need(assignor.getClass(), "usedSubscriptionMetadataVersion").get(assignor);
        }

        @Override
        int unique() throws Throwable {
            return Release.has(assignor.getClass(), "uniqueField") ? (Byte) Release.get(assignor, "uniqueField") : 0;
        }

        @Override
        void clear() {
            error.set(0);
            next.set(Long.MAX_VALUE);
        }

        @Override
        int error() {
            return flagged() ? 0 : error.get();
        }

        /** Before 2.6 the thread found a flag among the errors. */
        private boolean flagged() {
            return !Release.has(assignor.getClass(), "nextScheduledRebalanceMs") && error.get() == VERSION_PROBING;
        }

        @Override
        Map<String, Object> rejoin() {
            Map<String, Object> answer = new LinkedHashMap<>();
            long at = next.get();
            answer.put("rejoin", flagged() ? "again" : at == Long.MAX_VALUE ? "never" : at == 0 ? "now" : "later");
            if (at != 0 && at != Long.MAX_VALUE) {
                answer.put("atMs", at);
            }
            return answer;
        }
    }
}
