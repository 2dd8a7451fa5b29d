package kipcheck;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Translates between the member ids that a coordinator assigned and the references of a conversation.
 *
 * <p>In a step {@code a} stands for the last id that client a received, {@code a-old} for the one before, {@code ?} for
 * an unknown id. In an answer {@code a.1}, {@code a.2} stand for the ids that client a was the first to receive.
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

    /** That many generations before the client's last one; null: none. */
    int generation(String client, Long behind) {
        return behind == null ? -1 : (int) (generations.getOrDefault(client, 0) - behind);
    }

    void generationOf(String client, int generation) {
        generations.put(client, generation);
    }

    /** Records an id that the client received, if it is one. */
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
