package kipcheck;

import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** From JSON values to the kinds that Java wants, with the range checked; and bytes to and from hex. */
final class Values {
    private static final char[] DIGITS = "0123456789abcdef".toCharArray();

    private Values() {
    }

    static long integer(Object value, long low, long high) {
        if (!(value instanceof Long || value instanceof Integer)) {
            throw new IllegalArgumentException(value instanceof BigInteger ? value + " fits no int64" : "not an integer");
        }
        long number = ((Number) value).longValue();
        if (number < low || number > high) {
            throw new IllegalArgumentException(number + " is not in " + low + ".." + high);
        }
        return number;
    }

    static int int32(Object value) {
        return (int) integer(value, Integer.MIN_VALUE, Integer.MAX_VALUE);
    }

    static String text(Object value) {
        if (value == null || value instanceof String) {
            return (String) value;
        }
        throw new IllegalArgumentException("not a string");
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> object(Object value) {
        if (value instanceof Map) {
            return (Map<String, Object>) value;
        }
        throw new IllegalArgumentException("not an object");
    }

    @SuppressWarnings("unchecked")
    static List<Object> list(Object value) {
        if (value instanceof List) {
            return (List<Object>) value;
        }
        throw new IllegalArgumentException("not an array");
    }

    static byte[] bytes(Object value) {
        String hex = text(value);
        if (hex == null) {
            return null;
        }
        byte[] out = new byte[hex.length() / 2];
        for (int i = 0; i < out.length; i++) {
            int high = Character.digit(hex.charAt(2 * i), 16);
            int low = Character.digit(hex.charAt(2 * i + 1), 16);
            if (high < 0 || low < 0) {
                throw new IllegalArgumentException("not hex");
            }
            out[i] = (byte) (high << 4 | low);
        }
        if (hex.length() % 2 != 0) {
            throw new IllegalArgumentException("an odd number of hex digits");
        }
        return out;
    }

    static String hex(byte[] bytes) {
        return bytes == null ? null : hex(ByteBuffer.wrap(bytes));
    }

    static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        char[] out = new char[2 * buffer.remaining()];
        for (int i = 0; i < buffer.remaining(); i++) {
            byte each = buffer.get(buffer.position() + i);
            out[2 * i] = DIGITS[each >> 4 & 15];
            out[2 * i + 1] = DIGITS[each & 15];
        }
        return new String(out);
    }
}
