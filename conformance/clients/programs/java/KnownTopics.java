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
    private Object delta;
    private Object image;

    KnownTopics(Release release, Generated generated) {
        this.release = release;
        this.generated = generated;
    }

    static String id(String topic) {
        return new UUID(1, topic.charAt(0)).toString();
    }

    /** The broker learns of the topics. */
    void publish(CoordinatorBroker broker) throws Throwable {
        if (image == null) {
            build();
        }
        broker.know(image, delta);
    }

    private void build() throws Throwable {
        Object empty = Release.need(release.need(IMAGE + "MetadataImage"), "EMPTY").get(null);
        Object builder = Release.create(release.need(IMAGE + "MetadataDelta$Builder"));
        delta = Release.call(Release.call(builder, "setImage", empty), "build");
        for (Map.Entry<String, Integer> topic : TOPICS.entrySet()) {
            record("TopicRecord", Map.of("name", topic.getKey(), "topicId", id(topic.getKey())));
            for (long number = 0; number < topic.getValue(); number++) {
                record("PartitionRecord", Map.of(
                    "partitionId", number, "topicId", id(topic.getKey()), "replicas", List.of(0L), "isr", List.of(0L),
                    "leader", 0L, "leaderEpoch", 0L, "partitionEpoch", 0L));
            }
        }
        image = Release.call(delta, "apply", Release.need(release.need(IMAGE + "MetadataProvenance"), "EMPTY").get(null));
    }

    private void record(String name, Map<String, Object> fields) throws Throwable {
        Release.call(delta, "replay", generated.read(release.need(RECORDS + name), fields));
    }
}
