package kipcheck;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;

/** The member of a Streams group in an order: its configuration and its state. */
final class StreamsOrder {
    /** As in the order: {@code id}, {@code sources}, {@code repartition}, {@code stores}, ... of each. */
    final List<Map<String, Object>> subtopologies = new ArrayList<>();
    final int standbys;
    /** The instance that the thread belongs to. */
    final UUID process;
    final String upgradeFrom;
    final String userEndPoint;
    final Map<String, String> clientTags = new LinkedHashMap<>();
    final List<String> tagKeys = new ArrayList<>();

    /** The version of its subscription; null: the configured one. */
    final Integer used;
    /** The last byte of its last subscription. */
    final byte unique;
    /** Tasks, as {@code 0_1}. */
    final List<String> active;
    final List<String> standby;
    /** For some tasks the sum of the offsets of their state. */
    final Map<String, Long> sums = new LinkedHashMap<>();
    final int error;

    /** The names of existing topics, as far as the order lists them. */
    final Set<String> topics = new HashSet<>();
    /** The end offsets of changelogs that are not 0. */
    final Map<String, Long> offsets = new LinkedHashMap<>();
    final long nowMs;
    /** Whether the order contains state; if not, the member is new. */
    final boolean remembers;

    StreamsOrder(Map<String, Object> order) {
        Map<String, Object> settings = Values.object(order.get("settings"));
        Map<String, Object> topology = Values.object(settings.get("topology"));
        for (Object each : Values.list(topology.get("subtopologies"))) {
            subtopologies.add(Values.object(each));
        }
        standbys = Values.int32(topology.getOrDefault("standbys", 0L));
        process = UUID.fromString(Values.text(settings.get("process")));
        upgradeFrom = Values.text(settings.get("upgradeFrom"));
        userEndPoint = Values.text(settings.get("userEndPoint"));
        some(settings, "clientTags").forEach((key, value) -> clientTags.put(key, Values.text(value)));
        tagKeys.addAll(texts(settings, "tagKeys"));
        remembers = order.get("memory") != null;
        Map<String, Object> memory = some(order, "memory");
        used = memory.get("used") == null ? null : (Integer) Values.int32(memory.get("used"));
        unique = (byte) Values.integer(memory.getOrDefault("unique", 0L), -128, 127);
        active = texts(memory, "active");
        standby = texts(memory, "standby");
        some(memory, "sums").forEach((task, sum) -> sums.put(task, Values.integer(sum, Long.MIN_VALUE, Long.MAX_VALUE)));
        error = Values.int32(memory.getOrDefault("error", 0L));
        some(order, "offsets").forEach((topic, end) -> offsets.put(topic, Values.integer(end, 0, Long.MAX_VALUE)));
        for (Object each : order.get("topics") == null ? Collections.emptyList() : Values.list(order.get("topics"))) {
            topics.add(Values.text(each instanceof Map ? Values.object(each).get("name") : each));
        }
        nowMs = Values.integer(order.getOrDefault("nowMs", 0L), Long.MIN_VALUE, Long.MAX_VALUE);
    }

    /** The configuration as applications write it. */
    Map<String, Object> configuration() {
        Map<String, Object> given = new HashMap<>();
        given.put("application.id", StreamsTopology.APPLICATION);
        given.put("bootstrap.servers", "127.0.0.1:9092");
        given.put("client.id", "member");
        given.put("num.standby.replicas", standbys);
        if (upgradeFrom != null) {
            given.put("upgrade.from", upgradeFrom);
        }
        if (userEndPoint != null) {
            given.put("application.server", userEndPoint);
        }
        clientTags.forEach((key, value) -> given.put("client.tag." + key, value));
        if (!tagKeys.isEmpty()) {
            given.put("rack.aware.assignment.tags", tagKeys);
        }
        return given;
    }

    /** Whether the task has a changelog. */
    boolean stateful(String task) {
        int named = task.lastIndexOf("__");
        String name = named < 0 ? null : task.substring(0, named);
        long id = Long.parseLong(task.substring(named < 0 ? 0 : named + 2, task.lastIndexOf('_')));
        for (Map<String, Object> each : subtopologies) {
            if (each.get("id").equals(id) && Objects.equals(each.get("topology"), name) && each.get("stores") != null) {
                for (Object store : Values.list(each.get("stores"))) {
                    if (!Boolean.FALSE.equals(Values.object(store).get("logged"))) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    /** The strings in an array that may be missing. */
    static List<String> texts(Map<String, Object> from, String key) {
        List<String> texts = new ArrayList<>();
        for (Object each : from.get(key) == null ? Collections.emptyList() : Values.list(from.get(key))) {
            texts.add(Values.text(each));
        }
        return texts;
    }

    private static Map<String, Object> some(Map<String, Object> from, String key) {
        return from.get(key) == null ? Collections.emptyMap() : Values.object(from.get(key));
    }

    /** {@code topology__0_1}, as the release's TaskId. */
    static Object task(Release release, String text) throws Throwable {
        Class<?> type = release.need("org.apache.kafka.streams.processor.TaskId");
        int named = text.lastIndexOf("__");
        String[] numbers = text.substring(named < 0 ? 0 : named + 2).split("_");
        int group = Integer.parseInt(numbers[0]);
        int partition = Integer.parseInt(numbers[1]);
        return named < 0 ? Release.create(type, group, partition)
            : Release.create(type, group, partition, text.substring(0, named));
    }

    /** The text of a TaskId. */
    static String text(Object task) throws Throwable {
        // Fields up to 2.8, with two names; methods later.
        String text = Release.get(task, "subtopology", "topicGroupId") + "_" + Release.get(task, "partition");
        Object name = Release.has(task.getClass(), "topologyName") ? Release.get(task, "topologyName")
            : Release.has(task.getClass(), "namedTopology") ? Release.get(task, "namedTopology") : null;
        return name == null ? text : name + "__" + text;
    }

    /** The texts of TaskIds, each once, ordered by topology, number and partition. */
    static List<String> texts(Collection<?> tasks) throws Throwable {
        List<Object> sorted = new ArrayList<>(new TreeSet<>(tasks));
        List<String> texts = new ArrayList<>();
        for (Object each : sorted) {
            texts.add(text(each));
        }
        return texts;
    }
}
