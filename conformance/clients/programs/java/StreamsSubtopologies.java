package kipcheck;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The topologies of conversations about streams groups, by the names of their subtopologies.
 *
 * <p>A subtopology reads the topic of its name. {@code s} and {@code w} read topic t; {@code s} has a changelog, and
 * {@code w} takes topic u for one. {@code r} reads a repartition topic, which all others write.
 */
final class StreamsSubtopologies {
    private static final String REPARTITIONED = "r";
    private static final Map<String, String> READ = Map.of("s", "t", "w", "t");
    private static final Map<String, String> CHANGELOGS = Map.of("s", "s-changelog", "w", "u");

    private StreamsSubtopologies() {
    }

    static Map<String, Object> topology(Map<String, Object> order, String flaw) {
        List<Object> names = Values.list(order.get("topology"));
        boolean repartitions = names.contains(REPARTITIONED) && names.size() > 1;
        List<Object> subtopologies = new ArrayList<>();
        for (Object each : names) {
            String name = (String) each;
            boolean reads = repartitions && name.equals(REPARTITIONED);
            String changelog = CHANGELOGS.get(name);
            Map<String, Object> one = new LinkedHashMap<>();
            one.put("subtopologyId", name);
            one.put("sourceTopics", reads ? List.of() : List.of(READ.getOrDefault(name, name)));
            one.put("sourceTopicRegex", "regex".equals(flaw) ? List.of("x.*") : List.of());
            one.put("stateChangelogTopics", "changelog".equals(flaw) ? List.of(internal("changelog", 1L))
                : changelog == null ? List.of() : List.of(internal(changelog, 0L)));
            one.put("repartitionSinkTopics", repartitions && !reads ? List.of(REPARTITIONED) : List.of());
            one.put("repartitionSourceTopics", reads ? List.of(internal(REPARTITIONED, 0L)) : List.of());
            one.put("copartitionGroups", List.of());
            subtopologies.add(one);
        }
        Map<String, Object> topology = new LinkedHashMap<>();
        topology.put("epoch", order.get("topology_epoch"));
        topology.put("subtopologies", subtopologies);
        return topology;
    }

    /** {@code partitions}: 0 where the coordinator decides. */
    private static Map<String, Object> internal(String name, long partitions) {
        Map<String, Object> topic = new LinkedHashMap<>();
        topic.put("name", name);
        topic.put("partitions", partitions);
        topic.put("replicationFactor", 0L);
        topic.put("topicConfigs", List.of());
        return topic;
    }
}
