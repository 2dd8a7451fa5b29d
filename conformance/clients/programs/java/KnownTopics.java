package kipcheck;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** The metadata of the topics that the broker of a coordinator has. */
final class KnownTopics {
    private static final String IMAGE = "org.apache.kafka.image.";
    private static final String RECORDS = "org.apache.kafka.common.metadata.";

    private final Release release;
    private final Generated generated;
    private final Map<Map<String, Object>, Known> begun = new HashMap<>();

    KnownTopics(Release release, Generated generated) {
        this.release = release;
        this.generated = generated;
    }

    /** These topics, with their numbers of partitions, in addition to those that are known, or to none. */
    Known added(Known known, Map<String, Object> topics) throws Throwable {
        if (known != null) {
            return after(known.image, known.version + 1, topics);
        }
        if (!begun.containsKey(topics)) {
            begun.put(topics, after(
                Release.need(release.need(IMAGE + "MetadataImage"), "EMPTY").get(null), 1, topics));
        }
        return begun.get(topics);
    }

    /** {@code version}: of the image, by which coordinators find out that there are new topics. */
    private Known after(Object image, long version, Map<String, Object> topics) throws Throwable {
        Object builder = Release.create(release.need(IMAGE + "MetadataDelta$Builder"));
        Object delta = Release.call(Release.call(builder, "setImage", image), "build");
        for (Map.Entry<String, Object> topic : new TreeMap<>(topics).entrySet()) {
            String id = new UUID(1, topic.getKey().charAt(0)).toString();
            replay(delta, "TopicRecord", Map.of("name", topic.getKey(), "topicId", id));
            for (long number = 0; number < (Long) topic.getValue(); number++) {
                replay(delta, "PartitionRecord", Map.of(
                    "partitionId", number, "topicId", id, "replicas", List.of(0L), "isr", List.of(0L),
                    "leader", 0L, "leaderEpoch", 0L, "partitionEpoch", 0L));
            }
        }
        Class<?> type = release.need(IMAGE + "MetadataProvenance");
        Object provenance = Release.widest(type).getParameterCount() == 3 ? Release.create(type, version, 0, 0L)
            : Release.create(type, version, 0, 0L, true);
        return new Known(Release.call(delta, "apply", provenance), delta, version);
    }

    private void replay(Object delta, String name, Map<String, Object> fields) throws Throwable {
        Release.call(delta, "replay", generated.read(release.need(RECORDS + name), fields));
    }

    /** The metadata of a broker, and what changed last. */
    record Known(Object image, Object delta, long version) {
    }
}
