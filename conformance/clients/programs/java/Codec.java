package kipcheck;

import java.nio.ByteBuffer;
import java.util.Map;

/** Bytes to values and back, as one release does it. What a release refuses comes out as the exception that it throws. */
interface Codec {
    ByteBuffer encode(String message, int version, Map<String, Object> value) throws Throwable;

    /** The bytes that are not read stay in the buffer. */
    Map<String, Object> decode(String message, int version, ByteBuffer bytes) throws Throwable;

    ByteBuffer recode(String message, int version, ByteBuffer bytes) throws Throwable;

    /** The lowest and the highest. */
    int[] versions(String message) throws Throwable;
}
