package kipcheck;

import java.nio.ByteBuffer;
import java.util.Map;

/** Decodes and encodes messages as one release does. Refusals are the exceptions that the release throws. */
interface Codec {
    ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable;

    /** Bytes that are not read stay in the buffer. */
    Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable;

    ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable;

    /** The lowest and the highest version. */
    int[] versions(String message) throws Throwable;
}
