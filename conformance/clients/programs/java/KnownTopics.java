package kipcheck;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;

/** The metadata of the topics that a broker has in conversations about consumer groups and streams groups. */
final class KnownTopics {
    static final Map<String, Integer> TOPICS = new TreeMap<>(Map.of("t", 3, "u", 2));
    private static final String IMAGE = "org.apache.kafka.image.";
    private static final String RECORDS = "org.apache.kafka.common.metadata.";

    private final Release release;
    private final Generated generated;
    /** With {@code TOPICS}. */
    private Known begun;
    private Known last;

    KnownTopics(Release release, Generated generated) {
        this.release = release;
        this.generated = generated;
    }

    static String id(String topic) {
        return new UUID(1, topic.charAt(0)).toString();
    }

    /** The broker learns of the topics. */
    void publish(CoordinatorBroker broker) throws Throwable {
        if (begun == null) {
            begun = known(Release.need(release.need(IMAGE + "MetadataImage"), "EMPTY").get(null), TOPICS);
        }
        last = begun;
        broker.know(last.image, last.delta);
    }

    /** The broker learns of further topics, with their numbers of partitions. */
    void add(CoordinatorBroker broker, Map<String, Integer> topics) throws Throwable {
        last = known(last.image, topics);
        broker.know(last.image, last.delta);
    }

    private Known known(Object image, Map<String, Integer> topics) throws Throwable {
        Object builder = Release.create(release.need(IMAGE + "MetadataDelta$Builder"));
        Object delta = Release.call(Release.call(builder, "setImage", image), "build");
        for (Map.Entry<String, Integer> topic : topics.entrySet()) {
            replay(delta, "TopicRecord", Map.of("name", topic.getKey(), "topicId", id(topic.getKey())));
            for (long number = 0; number < topic.getValue(); number++) {
                replay(delta, "PartitionRecord", Map.of(
                    "partitionId", number, "topicId", id(topic.getKey()), "replicas", List.of(0L), "isr", List.of(0L),
                    "leader", 0L, "leaderEpoch", 0L, "partitionEpoch", 0L));
            }
        }
        Object provenance = Release.need(release.need(IMAGE + "MetadataProvenance"), "EMPTY").get(null);
        return new Known(Release.call(delta, "apply", provenance), delta);
    }

    private void replay(Object delta, String name, Map<String, Object> fields) throws Throwable {
        Release.call(delta, "replay", generated.read(release.need(RECORDS + name), fields));
    }

    /** The metadata of a broker, and what changed last. */
    private static final class Known {
        final Object image;
        final Object delta;

        Known(Object image, Object delta) {
            this.image = image;
            this.delta = delta;
        }
    }
}
