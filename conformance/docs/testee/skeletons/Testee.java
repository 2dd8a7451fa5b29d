// The shortest testee in Java, of HeartbeatResponse v0, for Java from 17 on. It needs no jar, so it reads JSON itself;
// with a JSON library the last part of this file is not needed.
//   kipcheck doctor --target "cmd:java Testee.java"
import java.io.*;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.*;

public class Testee {

    // ---- call your library here; throw what it throws

    static Map<String, Object> decode(byte[] bytes) {
        if (bytes.length != 2) throw new IllegalArgumentException(bytes.length + " bytes");
        return Map.of("errorCode", ByteBuffer.wrap(bytes).getShort());
    }

    static byte[] encode(Map<?, ?> value) {
        Object code = value.get("errorCode"); // a field that is left out has its default
        return ByteBuffer.allocate(2).putShort(code == null ? 0 : Short.parseShort("" + code)).array();
    }

    // ---- the testee protocol

    static Map<String, Object> run(Map<?, ?> step) {
        if (!"HeartbeatResponse".equals(step.get("message")) || !"0".equals(String.valueOf(step.get("version"))))
            return Map.of("status", "unsupported");
        return switch ((String) step.get("op")) {
            case "decode" -> Map.of("status", "accepted", "value", decode(bytes(step)));
            case "encode" -> Map.of("status", "accepted", "hex", hex(encode((Map<?, ?>) step.get("value"))));
            case "recode" -> Map.of("status", "accepted", "hex", hex(encode(decode(bytes(step)))));
            default -> Map.of("status", "unsupported");
        };
    }

    static byte[] bytes(Map<?, ?> step) { return HexFormat.of().parseHex((String) step.get("hex")); }

    static String hex(byte[] bytes) { return HexFormat.of().formatHex(bytes); }

    static Map<String, Object> result(Map<?, ?> step) {
        Map<String, Object> found = new HashMap<>();
        try {
            found.putAll(run(step));
        } catch (RuntimeException thrown) {
            String kind = thrown.getClass().getName();
            found.putAll(Map.of("status", "rejected", "class", kind, "message", "" + thrown.getMessage()));
        }
        found.put("n", step.get("n"));
        return found;
    }

    static Map<String, Object> answer(Map<?, ?> request) {
        return switch ((String) request.get("type")) {
            case "hello" -> Map.of("type", "hello", "protocol", 1, "name", "skeleton-java", "version", "1",
                "language", "java", "roles", List.of("codec"),
                "capabilities", Map.of("HeartbeatResponse", List.of(0, 0)));
            case "configure" -> "codec".equals(request.get("role"))
                && ("" + request.get("edition")).startsWith("apache")
                ? Map.of("type", "configure", "ok", true)
                : Map.of("type", "configure", "unsupported", "only the role codec, of apache");
            case "batch" -> Map.of("type", "results", "id", request.get("id"),
                "results", ((List<?>) request.get("cases")).stream().map(step -> result((Map<?, ?>) step)).toList());
            case "bye" -> Map.of("type", "bye");
            default -> Map.of("type", "unsupported");
        };
    }

    public static void main(String[] arguments) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err); // what the library prints must not mix with the protocol
        for (String line; (line = in.readLine()) != null; ) {
            var request = (Map<?, ?>) new Json(line).value();
            out.print(written(answer(request)) + "\n");
            out.flush();
            if ("bye".equals(request.get("type"))) return;
        }
    }

    // ---- JSON: objects are maps, numbers stay text

    static String written(Object value) {
        if (value instanceof Map<?, ?> map) {
            var fields = map.entrySet().stream().map(each -> written(each.getKey()) + ":" + written(each.getValue()));
            return "{" + String.join(",", fields.toList()) + "}";
        }
        if (value instanceof List<?> list)
            return "[" + String.join(",", list.stream().map(Testee::written).toList()) + "]";
        if (!(value instanceof String text)) return String.valueOf(value);
        var out = new StringBuilder("\"");
        for (char letter : text.toCharArray())
            if (letter < ' ' || letter == '"' || letter == '\\') out.append(String.format("\\u%04x", (int) letter));
            else out.append(letter);
        return out.append('"').toString();
    }

    /** A number as it was written. */
    record Number(String digits) {
        @Override public String toString() { return digits; }
    }

    static class Json {
        final String text;
        int at;

        Json(String text) { this.text = text; }

        char peek() {
            while (Character.isWhitespace(text.charAt(at))) at++;
            return text.charAt(at);
        }

        Object value() {
            switch (peek()) {
                case '"': return string();
                case '[':
                    var list = new ArrayList<>();
                    for (at++; peek() != ']'; ) {
                        list.add(value());
                        if (peek() == ',') at++;
                    }
                    at++;
                    return list;
                case '{':
                    var map = new HashMap<String, Object>();
                    for (at++; peek() != '}'; ) {
                        String key = string();
                        if (peek() != ':') throw new IllegalArgumentException("no : at " + at);
                        at++;
                        map.put(key, value());
                        if (peek() == ',') at++;
                    }
                    at++;
                    return map;
                default:
                    int start = at;
                    while (at < text.length() && ",]} ".indexOf(text.charAt(at)) < 0) at++;
                    String word = text.substring(start, at);
                    return switch (word) {
                        case "null" -> null;
                        case "true", "false" -> Boolean.valueOf(word);
                        default -> new Number(word);
                    };
            }
        }

        String string() {
            var out = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char letter = text.charAt(at);
                if (letter == '\\')
                    switch (letter = text.charAt(++at)) {
                        case 'u' -> { letter = (char) Integer.parseInt(text.substring(at + 1, at + 5), 16); at += 4; }
                        case 'n' -> letter = '\n';
                        case 't' -> letter = '\t';
                        case 'r' -> letter = '\r';
                        case 'b' -> letter = '\b';
                        case 'f' -> letter = '\f';
                        default -> { }
                    }
                out.append(letter);
            }
            at++;
            return out.toString();
        }
    }
}
