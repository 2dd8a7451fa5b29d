package kipcheck;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Testee protocol 1 over standard input and output, for the codecs in released jars. */
public final class Testee {
    private final Map<String, Library> libraries = new HashMap<>();
    private final Watchdog watchdog = new Watchdog();
    private String usual;

    public static void main(String[] arguments) throws IOException {
        // Whatever a jar prints must not garble the protocol.
        PrintStream out = new PrintStream(System.out, false, "US-ASCII");
        System.setOut(System.err);
        Testee testee = new Testee();
        testee.watchdog.start();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Map<String, Object> answer = testee.answer(Values.object(Json.parse(line)));
            out.print(Json.print(answer));
            out.print('\n');
            out.flush();
            if (answer.get("type").equals("bye")) {
                // Threads of the jars must not keep the process.
                Runtime.getRuntime().halt(0);
            }
        }
    }

    private Map<String, Object> answer(Map<String, Object> order) {
        Map<String, Object> answer = new LinkedHashMap<>();
        String type = String.valueOf(order.get("type"));
        answer.put("type", type.equals("batch") ? "results" : type);
        switch (type) {
            case "hello":
                answer.put("protocol", 1);
                answer.put("name", "kafka-jars");
                answer.put("version", "1");
                answer.put("language", "java " + System.getProperty("java.version"));
                answer.put("roles", Collections.singletonList("codec"));
                // Known once a release is chosen: the op "versions" tells them.
                answer.put("capabilities", Collections.emptyMap());
                break;
            case "configure":
                configure(order, answer);
                break;
            case "batch":
                answer.put("id", order.get("id"));
                List<Object> results = new ArrayList<>();
                Object deadline = order.get("deadline_ms");
                for (Object each : Values.list(order.get("cases"))) {
                    watchdog.begin(deadline instanceof Long ? (Long) deadline : 30_000);
                    results.add(result(Values.object(each)));
                    watchdog.end();
                }
                answer.put("results", results);
                break;
            case "bye":
                break;
            default:
                answer.put("type", "unsupported");
                answer.put("message", "no such order");
        }
        return answer;
    }

    private void configure(Map<String, Object> order, Map<String, Object> answer) {
        try {
            if (!"codec".equals(order.get("role"))) {
                throw new Release.Unsupported("only the role codec is played");
            }
            for (Map.Entry<String, Object> each : Values.object(order.get("releases")).entrySet()) {
                List<String> jars = new ArrayList<>();
                for (Object jar : Values.list(each.getValue())) {
                    jars.add(Values.text(jar));
                }
                libraries.put(each.getKey(), new Library(new Release(each.getKey(), jars)));
                usual = usual == null ? each.getKey() : usual;
            }
            if (order.get("default") != null) {
                usual = Values.text(order.get("default"));
            }
            answer.put("ok", true);
        } catch (Release.Unsupported | IOException | IllegalArgumentException wrong) {
            answer.put("unsupported", String.valueOf(wrong.getMessage()));
        }
    }

    private Map<String, Object> result(Map<String, Object> order) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("n", order.get("n"));
        try {
            String name = order.get("release") == null ? usual : Values.text(order.get("release"));
            Library library = libraries.get(name);
            if (library == null) {
                throw new Release.Unsupported("no release " + name + " is configured");
            }
            Thread.currentThread().setContextClassLoader(library.release.loader);
            perform(order, library, result);
            result.put("status", "accepted");
        } catch (Release.Unsupported cannot) {
            result.put("status", "unsupported");
            result.put("message", cannot.getMessage());
        } catch (Throwable thrown) {
            // An Error says that the machine gave up, not that the bytes were judged.
            result.put("status", thrown instanceof Error ? "internal" : "rejected");
            result.put("class", thrown.getClass().getName());
            result.put("message", String.valueOf(thrown.getMessage()));
        }
        return result;
    }

    private static void perform(Map<String, Object> order, Library library, Map<String, Object> result) throws Throwable {
        String message = Values.text(order.get("message"));
        boolean assembled = "public".equals(order.get("through"));
        Codec codec = library.codec(message, assembled);
        String op = String.valueOf(order.get("op"));
        if (op.equals("versions")) {
            int[] versions = codec.versions(message);
            result.put("versions", List.of(versions[0], versions[1]));
            return;
        }
        int version = Values.int32(order.get("version"));
        if (op.equals("encode")) {
            result.put("hex", Values.hex(codec.encode(message, version, Values.object(order.get("value")))));
            return;
        }
        byte[] given = Values.bytes(order.get("hex"));
        ByteBuffer bytes = ByteBuffer.wrap(given);
        if (op.equals("decode")) {
            result.put("value", codec.decode(message, version, bytes));
            if (bytes.hasRemaining()) {
                result.put("left", bytes.remaining());
            }
        } else if (op.equals("recode")) {
            result.put("hex", Values.hex(codec.recode(message, version, bytes)));
        } else {
            throw new Release.Unsupported("no operation " + op);
        }
    }

    /** Ends the process, with the stacks on standard error, when one case takes too long: nothing else stops a loop. */
    private static final class Watchdog extends Thread {
        private volatile long until = Long.MAX_VALUE;

        Watchdog() {
            super("watchdog");
            setDaemon(true);
        }

        void begin(long milliseconds) {
            until = System.nanoTime() / 1_000_000 + milliseconds;
        }

        void end() {
            until = Long.MAX_VALUE;
        }

        @Override
        public void run() {
            while (true) {
                if (System.nanoTime() / 1_000_000 > until) {
                    System.err.println("a case passed its deadline");
                    Thread.getAllStackTraces().forEach((thread, stack) -> {
                        System.err.println(thread);
                        for (StackTraceElement each : stack) {
                            System.err.println("    at " + each);
                        }
                    });
                    System.err.flush();
                    Runtime.getRuntime().halt(86);
                }
                try {
                    Thread.sleep(50);
                } catch (InterruptedException stop) {
                    return;
                }
            }
        }
    }
}
