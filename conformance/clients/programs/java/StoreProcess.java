package kipcheck;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Stores of one release in directories that stay: operations of the role store, one JSON object in a line each.
 *
 * <p>Arguments: {@code RELEASE=JAR:JAR} and a directory; an operation may name another one. Beside the operations of the testee protocol there are
 * {@code fill} and {@code convert}, for stores that are too large for one operation per record.
 */
public final class StoreProcess {
    private static final int PROGRESS = 50_000;
    private static final int FLUSH = 100_000;

    private StoreProcess() {
    }

    public static void main(String[] arguments) throws IOException {
        // Output of a jar, and of RocksDB, must not garble the answers.
        MessageStream messages = new MessageStream(System.in, System.out);
        System.setOut(System.err);
        int at = arguments[0].indexOf('=');
        List<String> jars = Arrays.asList(arguments[0].substring(at + 1).split(java.io.File.pathSeparator));
        Path directory = Paths.get(arguments[1]);
        Release release = new Release(arguments[0].substring(0, at), jars);
        Thread.currentThread().setContextClassLoader(release.loader);
        Map<Path, TimestampedStores> all = new LinkedHashMap<>();
        for (String text = messages.receive(); text != null; text = messages.receive()) {
            Map<String, Object> order = Values.object(Json.parse(text));
            Path own = order.get("directory") == null ? directory : Paths.get(Values.text(order.get("directory")));
            TimestampedStores stores = all.computeIfAbsent(own, each -> new TimestampedStores(release, each));
            messages.send(Json.print(answer(stores, order, messages)));
        }
        // Threads of the jars must not keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private static Map<String, Object> answer(TimestampedStores stores, Map<String, Object> order, MessageStream messages) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            String op = Values.text(order.get("op"));
            answer.put("status", "accepted");
            if (op.equals("fill") || op.equals("convert")) {
                answer.putAll(many(stores, op, (Long) order.get("count"), messages));
            } else {
                answer.putAll(stores.answer(order));
            }
        } catch (Throwable thrown) {
            Throwable cause = thrown;
            StringBuilder why = new StringBuilder();
            for (; cause != null; cause = cause.getCause()) {
                why.append(why.length() == 0 ? "" : ": ").append(cause.getMessage());
            }
            answer.clear();
            answer.put("status", "rejected");
            answer.put("class", thrown.getClass().getSimpleName());
            answer.put("message", why.toString());
        }
        return answer;
    }

    /** Puts, or reads and so converts, so many records, and prints the progress. */
    private static Map<String, Object> many(TimestampedStores stores, String op, long count, MessageStream messages)
            throws Throwable {
        long started = System.nanoTime();
        long wrong = 0;
        for (long each = 0; each < count; each++) {
            String key = hex("k" + each);
            String value = hex("value " + each);
            Map<String, Object> order = new LinkedHashMap<>();
            order.put("key", key);
            if (op.equals("fill")) {
                order.put("op", "store-put");
                order.put("value", value);
                order.put("timestamp", each);
                stores.answer(order);
            } else {
                order.put("op", "store-get");
                wrong += value.equals(stores.answer(order).get("value")) ? 0 : 1;
            }
            if ((each + 1) % FLUSH == 0) {
                stores.answer(Map.of("op", "store-flush"));
            }
            if ((each + 1) % PROGRESS == 0) {
                messages.send(Json.print(Map.of("status", "progress", "done", each + 1)));
            }
        }
        stores.answer(Map.of("op", "store-flush"));
        return Map.of("done", count, "wrong", wrong, "nanoseconds", System.nanoTime() - started);
    }

    private static String hex(String text) {
        return Values.hex(text.getBytes(StandardCharsets.UTF_8));
    }
}
