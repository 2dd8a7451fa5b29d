package kipcheck;

import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Replaces the creator of internal topics, up to 2.3: requested topics exist at once. */
final class StreamsOldTopics {
    private static final String COMMON = "org.apache.kafka.common.";

    private final Release release;
    private final Map<Object, Integer> made = new HashMap<>();

    StreamsOldTopics(Release release) {
        this.release = release;
    }

    /** InternalTopicManager. */
    InterfaceStub manager() {
        return new InterfaceStub()
            .plays("makeReady", this::make)
            .plays("getNumPartitions", none -> made);
    }

    /** The consumer that threads up to 0.10.1 query until a topic exists. */
    Object consumer() {
        return new InterfaceStub()
            .plays("partitionsFor", topic -> partitions((String) topic[0]))
            .as(release.need("org.apache.kafka.clients.consumer.Consumer"));
    }

    /** Ends an infinite loop once its thread is interrupted. */
    static void carryOn() {
        if (Thread.currentThread().isInterrupted()) {
            throw new Error("given up");
        }
    }

    private Object make(Object[] told) throws Throwable {
        if (told.length == 1) {
            // From 0.10.2 on: configurations with counts; from 1.1 on names with configurations, which are not read here.
            for (Map.Entry<?, ?> each : ((Map<?, ?>) told[0]).entrySet()) {
                if (each.getValue() instanceof Integer) {
                    made.put(Release.call(each.getKey(), "name"), (Integer) each.getValue());
                }
            }
        } else {
            Object name = told[0] instanceof String ? told[0] : Release.call(told[0], "name");
            made.put(name, (Integer) told[1]);
        }
        return null;
    }

    private List<Object> partitions(String topic) throws Throwable {
        carryOn();
        Object none = Array.newInstance(release.need(COMMON + "Node"), 0);
        List<Object> partitions = new ArrayList<>();
        for (int i = 0; i < made.getOrDefault(topic, 0); i++) {
            partitions.add(Release.create(release.need(COMMON + "PartitionInfo"), topic, i, null, none, none));
        }
        return partitions;
    }
}
