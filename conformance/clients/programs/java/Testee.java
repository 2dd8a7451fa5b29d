package kipcheck;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Testee protocol 1 over standard input and output, for released jars.
 *
 * <p>Each argument is {@code RELEASE=JAR:JAR}. The first release is the default: its first jar is the target, as hello
 * reports; an order may name another release.
 */
public final class Testee {
    private static final long USUAL_DEADLINE = 30_000;
    private static final int WORDS = 500;

    private final Map<String, Library> libraries = new LinkedHashMap<>();
    private final Bounded bounded = new Bounded();
    private final Library usual;
    private Claims claims;

    private Testee(String[] releases) throws IOException {
        String lent = System.getProperty("kipcheck.names");
        Map<String, Object> names = lent == null ? Map.of()
            : Values.object(Json.parse(Files.readString(Paths.get(lent), StandardCharsets.UTF_8)));
        for (String each : releases) {
            int at = each.indexOf('=');
            List<String> jars = Arrays.asList(each.substring(at + 1).split(File.pathSeparator));
            libraries.put(each.substring(0, at), new Library(new Release(each.substring(0, at), jars), names));
        }
        usual = libraries.values().iterator().next();
    }

    public static void main(String[] releases) throws IOException {
        // Output of a jar must not garble the protocol.
        MessageStream messages = new MessageStream(System.in, System.out);
        System.setOut(System.err);
        Testee testee = new Testee(releases);
        for (String text = messages.receive(); text != null; text = messages.receive()) {
            Map<String, Object> order = Values.object(Json.parse(text));
            Map<String, Object> answer = testee.answer(order);
            messages.send(Json.print(answer));
            if (answer.get("type").equals("bye")) {
                break;
            }
            if (answer.containsKey("ok")) {
                messages.framed("frames".equals(order.get("framing")));
            }
        }
        testee.libraries.values().forEach(each -> each.stores.forget());
        // Threads of the jars must not keep the process alive.
        Runtime.getRuntime().halt(0);
    }

    private Map<String, Object> answer(Map<String, Object> order) {
        Map<String, Object> answer = new LinkedHashMap<>();
        String type = String.valueOf(order.get("type"));
        answer.put("type", type.equals("batch") ? "results" : type);
        switch (type) {
            case "hello":
                hello(answer);
                break;
            case "configure":
                String why = cannot(String.valueOf(order.get("role")), String.valueOf(order.get("edition")));
                answer.put(why == null ? "ok" : "unsupported", why == null ? true : why);
                break;
            case "batch":
                answer.put("id", order.get("id"));
                long deadline = number(order.get("deadline_ms"), USUAL_DEADLINE);
                // A case that waits, without processor time, may take half of the batch's deadline.
                long cpu = number(order.get("cpu_ms"), deadline);
                answer.put("results", bounded.results(
                    Values.list(order.get("cases")), this::result, cpu, deadline / 2));
                break;
            case "bye":
                break;
            default:
                answer.put("type", "unsupported");
                answer.put("message", "unknown message type " + type);
        }
        return answer;
    }

    private static long number(Object given, long usual) {
        return given instanceof Long && (Long) given > 0 ? (Long) given : usual;
    }

    private void hello(Map<String, Object> answer) {
        Claims claims = claims();
        answer.put("protocol", 1);
        answer.put("name", System.getProperty("kipcheck.name", "kafka-jars"));
        answer.put("version", usual.release.name);
        answer.put("language", "java " + System.getProperty("java.version"));
        answer.put("issues", "https://issues.apache.org/jira/projects/KAFKA");
        answer.put("roles", claims.roles());
        answer.put("capabilities", claims.messages());
        answer.put("missing", claims.missing());
        answer.put("assignors", claims.assignors());
        answer.put("machines", claims.machines());
        answer.put("limits", claims.limits());
        answer.put("framing", List.of("frames", "lines"));
        answer.put("dump_signal", "SIGQUIT");
    }

    private Claims claims() {
        claims = claims == null ? new Claims(usual) : claims;
        return claims;
    }

    /** Why this role or edition is not supported; null where it is. */
    private String cannot(String role, String edition) {
        if (!claims().roles().contains(role)) {
            return "the jar of " + usual.release.name + " does not play the role " + role;
        }
        String kind = edition.split("[@:]", 2)[0];
        boolean released = kind.equals("apache") || kind.equals("maven") || kind.equals("jar");
        return released ? null : edition + " is a draft, but a jar contains a release";
    }

    private Map<String, Object> result(Map<String, Object> order) {
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("n", order.get("n"));
        try {
            Library library = order.get("release") == null ? usual : libraries.get(Values.text(order.get("release")));
            if (library == null) {
                throw new Release.Unsupported("release " + order.get("release") + " was not loaded");
            }
            Thread.currentThread().setContextClassLoader(library.release.loader);
            perform(order, library, result);
            result.putIfAbsent("status", "accepted");
        } catch (Release.Unsupported cannot) {
            result.put("status", "unsupported");
            result.put("message", cannot.getMessage());
            if (cannot.limit != null) {
                result.put("capability", cannot.limit);
            }
        } catch (OutOfMemoryError exhausted) {
            result.put("status", "internal");
            // The protocol's name, independent of the language.
            result.put("class", "MemoryError");
            result.put("thrown", exhausted.getClass().getName());
            result.put("message", brief(exhausted.toString()));
        } catch (Throwable thrown) {
            // An Error means that the JVM gave up, not that the input was refused.
            result.put("status", thrown instanceof Error ? "internal" : "rejected");
            result.put("class", thrown.getClass().getName());
            result.put("message", brief(String.valueOf(thrown.getMessage())));
            String at = innermost(thrown);
            if (at != null) {
                result.put("at", at);
            }
        }
        return result;
    }

    /** File and line of the innermost frame in Kafka; null if there is none, as after many equal exceptions. */
    private static String innermost(Throwable thrown) {
        for (StackTraceElement frame : thrown.getStackTrace()) {
            String name = frame.getClassName();
            if (name.startsWith("org.apache.kafka.")) {
                String folder = name.substring(0, name.lastIndexOf('.') + 1).replace('.', '/');
                return folder + frame.getFileName() + ":" + frame.getLineNumber();
            }
        }
        return null;
    }

    private static String brief(String text) {
        return text.length() > WORDS ? text.substring(0, WORDS) : text;
    }

    private static void perform(Map<String, Object> order, Library library, Map<String, Object> result)
            throws Throwable {
        String op = String.valueOf(order.get("op"));
        if (op.equals("assign")) {
            result.put("assignment", library.leader.assign(order));
            return;
        }
        if (op.equals("user-data")) {
            result.put("hex", library.leader.userData(order));
            return;
        }
        if (Coordinator.knows(op)) {
            result.putAll(library.coordinator.answer(order));
            return;
        }
        if (StreamsGroups.knows(op)) {
            result.putAll(library.streamsGroups.answer(order));
            return;
        }
        if (Features.knows(op)) {
            result.putAll(library.features.answer(order));
            return;
        }
        if (TimestampedStores.knows(op)) {
            result.putAll(library.stores.answer(order));
            return;
        }
        if (Persisted.knows(op)) {
            result.putAll(library.persisted.answer(order));
            return;
        }
        if (ZooKeeperFeatures.knows(op)) {
            result.putAll(library.zooKeeperFeatures.answer(order));
            return;
        }
        if (BrokerSettings.knows(op)) {
            result.putAll(library.settings.answer(order));
            return;
        }
        String message = Values.text(order.get("message"));
        Codec codec = library.codec(message, "public".equals(order.get("through")));
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
        ByteBuffer bytes = ByteBuffer.wrap(Values.bytes(order.get("hex")));
        if (op.equals("decode")) {
            result.put("value", codec.decode(message, version, bytes));
            if (bytes.hasRemaining()) {
                result.put("left", bytes.remaining());
            }
        } else if (op.equals("recode")) {
            result.put("hex", Values.hex(codec.recode(message, version, bytes)));
        } else {
            throw new Release.Unsupported("unknown operation " + op);
        }
    }
}
