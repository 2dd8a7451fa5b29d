package kipcheck;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;

/** What a client of a group of KIP-848 or KIP-1071 knows of its membership, which its heartbeats state. */
final class GroupClient {
    private static final int LEAVING = -1;
    private static final int AWAY = -2;

    private int epoch;

    /** The epoch that a heartbeat states. */
    long epoch(Map<String, Object> order) {
        switch (Values.text(order.get("says"))) {
            case "join":
                return 0;
            case "leave":
                return LEAVING;
            case "away":
                return AWAY;
            default:
                return epoch - (Long) order.getOrDefault("behind", 0L);
        }
    }

    /** The epoch of a response, and what it assigns. */
    void learn(int received, Map<Share, List<Object>> assigned) {
        epoch = Math.max(received, 0);
        assigned.forEach((share, rows) -> share.learn(received < 0 ? List.of() : rows, received < 0));
    }

    static Map<String, Object> refused(Object error, Object message) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("status", "rejected");
        result.put("class", error);
        result.put("message", Objects.toString(message, ""));
        return result;
    }

    /** The partitions or tasks of a client: those of the last assignment, and those of the one before. */
    static final class Share {
        private List<Object> given = List.of();
        private List<Object> before = List.of();

        /** Null: the response omits them. */
        private void learn(List<Object> rows, boolean left) {
            before = left ? List.of() : rows == null ? before : given;
            given = rows == null ? given : rows;
        }

        /** Numbers by name; null where the heartbeat omits them. */
        Map<String, TreeSet<Long>> owned(String owned) {
            if (owned == null) {
                return null;
            }
            Map<String, TreeSet<Long>> found = new TreeMap<>();
            if (!owned.equals("none")) {
                add(found, given);
            }
            if (owned.equals("before")) {
                add(found, before);
            }
            return found;
        }

        private static void add(Map<String, TreeSet<Long>> found, Collection<?> rows) {
            for (Object each : rows) {
                List<Object> row = Values.list(each);
                found.computeIfAbsent((String) row.get(0), none -> new TreeSet<>()).add(((Number) row.get(1)).longValue());
            }
        }
    }

    /** Names and numbers, sorted. */
    static List<Object> rows(Map<String, ? extends Collection<?>> numbers) {
        List<Object> rows = new ArrayList<>();
        new TreeMap<>(numbers).forEach((name, each) -> each.forEach(number -> rows.add(List.of(name, number))));
        return rows;
    }
}
