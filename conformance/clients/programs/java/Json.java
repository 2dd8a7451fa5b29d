package kipcheck;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Converts JSON text to maps, lists, strings, longs, doubles, booleans and null, and back.
 *
 * <p>Integers stay exact: a long, or a BigInteger where a long is too small. Output is ASCII, so that unpaired
 * surrogates, which Java's modified UTF-8 can contain, survive the pipe.
 */
final class Json {
    private static final int DEEPEST = 500;

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json json = new Json(text);
        Object value = json.value(0);
        json.space();
        if (json.at < text.length()) {
            throw json.wrong("the end");
        }
        return value;
    }

    static String print(Object value) {
        StringBuilder out = new StringBuilder(256);
        print(value, out);
        return out.toString();
    }

    private Object value(int depth) {
        if (depth > DEEPEST) {
            throw wrong("fewer than " + DEEPEST + " levels");
        }
        space();
        if (at >= text.length()) {
            throw wrong("a value");
        }
        char first = text.charAt(at);
        switch (first) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            case 'N':
                return word("NaN", Double.NaN);
            case 'I':
                return word("Infinity", Double.POSITIVE_INFINITY);
            default:
                return number();
        }
    }

    private Map<String, Object> object(int depth) {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        if (next('}')) {
            return members;
        }
        do {
            space();
            String key = string();
            if (!next(':')) {
                throw wrong("a colon");
            }
            members.put(key, value(depth + 1));
        } while (next(','));
        if (!next('}')) {
            throw wrong("} or a comma");
        }
        return members;
    }

    private List<Object> array(int depth) {
        List<Object> elements = new ArrayList<>();
        at++;
        if (next(']')) {
            return elements;
        }
        do {
            elements.add(value(depth + 1));
        } while (next(','));
        if (!next(']')) {
            throw wrong("] or a comma");
        }
        return elements;
    }

    private String string() {
        if (at >= text.length() || text.charAt(at) != '"') {
            throw wrong("a string");
        }
        at++;
        StringBuilder out = null;
        int from = at;
        while (at < text.length()) {
            char each = text.charAt(at);
            if (each == '"') {
                String tail = text.substring(from, at++);
                return out == null ? tail : out.append(tail).toString();
            }
            if (each == '\\') {
                out = out == null ? new StringBuilder() : out;
                out.append(text, from, at);
                out.append(escaped());
                from = at;
            } else {
                at++;
            }
        }
        throw wrong("the end of a string");
    }

    private char escaped() {
        if (at + 1 >= text.length()) {
            throw wrong("an escape");
        }
        char kind = text.charAt(at + 1);
        at += 2;
        switch (kind) {
            case 'n':
                return '\n';
            case 't':
                return '\t';
            case 'r':
                return '\r';
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'u':
                at += 4;
                if (at > text.length()) {
                    throw wrong("four hex digits");
                }
                return (char) Integer.parseInt(text.substring(at - 4, at), 16);
            default:
                return kind;
        }
    }

    private Object number() {
        int from = at;
        boolean whole = true;
        while (at < text.length() && "+-.eE0123456789Infity".indexOf(text.charAt(at)) >= 0) {
            char each = text.charAt(at++);
            whole &= each == '-' || (each >= '0' && each <= '9');
        }
        String found = text.substring(from, at);
        try {
            if (!whole) {
                return Double.valueOf(found);
            }
            return found.length() < 19 ? (Object) Long.valueOf(found) : exact(new BigInteger(found));
        } catch (NumberFormatException none) {
            at = from;
            throw wrong("a value");
        }
    }

    private static Object exact(BigInteger number) {
        return number.bitLength() < 64 ? (Object) number.longValue() : number;
    }

    private Object word(String word, Object meaning) {
        if (!text.startsWith(word, at)) {
            throw wrong("a value");
        }
        at += word.length();
        return meaning;
    }

    private boolean next(char wanted) {
        space();
        if (at < text.length() && text.charAt(at) == wanted) {
            at++;
            return true;
        }
        return false;
    }

    private void space() {
        while (at < text.length() && text.charAt(at) <= ' ') {
            at++;
        }
    }

    private IllegalArgumentException wrong(String wanted) {
        return new IllegalArgumentException("JSON: at " + at + " " + wanted + " is wanted");
    }

    private static void print(Object value, StringBuilder out) {
        if (value instanceof String) {
            quote((String) value, out);
        } else if (value instanceof Map) {
            String before = "{";
            for (Map.Entry<?, ?> member : ((Map<?, ?>) value).entrySet()) {
                out.append(before);
                quote((String) member.getKey(), out);
                out.append(':');
                print(member.getValue(), out);
                before = ",";
            }
            out.append(before.equals("{") ? "{}" : "}");
        } else if (value instanceof Iterable) {
            String before = "[";
            for (Object element : (Iterable<?>) value) {
                out.append(before);
                print(element, out);
                before = ",";
            }
            out.append(before.equals("[") ? "[]" : "]");
        } else {
            out.append(value);
        }
    }

    private static void quote(String text, StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char each = text.charAt(i);
            if (each == '"' || each == '\\') {
                out.append('\\').append(each);
            } else if (each >= ' ' && each < 127) {
                out.append(each);
            } else {
                out.append("\\u").append(Character.forDigit(each >> 12, 16)).append(Character.forDigit(each >> 8 & 15, 16))
                    .append(Character.forDigit(each >> 4 & 15, 16)).append(Character.forDigit(each & 15, 16));
            }
        }
        out.append('"');
    }
}
