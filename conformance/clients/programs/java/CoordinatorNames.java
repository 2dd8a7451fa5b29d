package kipcheck;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The member ids that a coordinator gave out, and how a conversation calls them.
 *
 * <p>A step says {@code a} for the id that client a was told last, {@code a-old} for the one before, {@code ?} for one
 * that nobody has. An answer shows {@code a.1}, {@code a.2} for the ids that client a was the first to be told.
 */
final class CoordinatorNames {
    private static final String NOBODY = "?";
    private static final String OLD = "-old";
    private static final String UNTOLD = "untold";

    private final Map<String, List<String>> told = new HashMap<>();
    private final Map<String, Integer> generations = new HashMap<>();
    private final Map<String, String> shown = new HashMap<>();
    private final Map<String, Integer> first = new HashMap<>();

    String resolved(String reference) {
        if (reference.isEmpty() || reference.equals(NOBODY)) {
            return reference;
        }
        boolean old = reference.endsWith(OLD);
        String client = old ? reference.substring(0, reference.length() - OLD.length()) : reference;
        List<String> ids = told.getOrDefault(client, List.of());
        int at = ids.size() - (old ? 2 : 1);
        return at >= 0 ? ids.get(at) : client + ".0";
    }

    String shown(String id) {
        boolean sent = id.isEmpty() || id.equals(NOBODY) || id.endsWith(".0");
        return sent ? id : shown.getOrDefault(id, UNTOLD);
    }

    /** So many before the one that the client was told last; null: none. */
    int generation(String client, Long behind) {
        return behind == null ? -1 : (int) (generations.getOrDefault(client, 0) - behind);
    }

    void generationOf(String client, int generation) {
        generations.put(client, generation);
    }

    /** The client knows this id from now on, if it is one. */
    void idOf(String client, String id) {
        if (id.isEmpty()) {
            return;
        }
        List<String> ids = told.computeIfAbsent(client, none -> new ArrayList<>());
        ids.remove(id);
        ids.add(id);
        if (!shown.containsKey(id)) {
            shown.put(id, client + "." + first.merge(client, 1, Integer::sum));
        }
    }
}
