package kipcheck;

import java.nio.ByteBuffer;
import java.util.LinkedHashMap;
import java.util.Map;

/** Values of timestamped stores, from Streams 2.3 on. */
final class Stores implements Codec {
    private static final String PLACE = "org.apache.kafka.streams.state.";

    private final Release release;

    Stores(Release release) {
        this.release = release;
    }

    @Override
    public ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable {
        Object bytes = Values.bytes(value.getOrDefault("value", ""));
        Object stamped = Release.callStatic(release.need(PLACE + "ValueAndTimestamp"), "make", bytes,
            Values.integer(value.getOrDefault("timestamp", -1L), Long.MIN_VALUE, Long.MAX_VALUE));
        Object inner = Release.create(release.need("org.apache.kafka.common.serialization.ByteArraySerializer"));
        Object serializer = Release.create(release.need(PLACE + "internals.ValueAndTimestampSerializer"), inner);
        return ByteBuffer.wrap((byte[]) Release.call(serializer, "serialize", "a topic", stamped));
    }

    @Override
    public Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable {
        byte[] all = new byte[bytes.remaining()];
        bytes.get(all);
        Class<?> reader = release.need(PLACE + "internals.ValueAndTimestampDeserializer");
        Map<String, Object> value = new LinkedHashMap<>();
        value.put("timestamp", Release.callStatic(reader, "timestamp", (Object) all));
        value.put("value", Values.hex((byte[]) Release.callStatic(reader, "rawValue", (Object) all)));
        return value;
    }

    @Override
    public ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable {
        return encode(message, version, decode(message, version, bytes));
    }

    @Override
    public int[] versions(String message) {
        release.need(PLACE + "internals.ValueAndTimestampSerializer");
        return new int[] {0, 0};
    }
}
