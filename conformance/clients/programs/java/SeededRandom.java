package kipcheck;

import java.nio.ByteBuffer;
import java.security.Provider;
import java.security.SecureRandomSpi;
import java.security.Security;

/** The random numbers of this process, which are the same at every start, so that a conversation can be repeated. */
public final class SeededRandom extends SecureRandomSpi {
    private static final long serialVersionUID = 1L;
    private static final long STEP = 0x9e3779b97f4a7c15L;
    private static long drawn;

    /** Replaces the JVM's source of random numbers for everything that requests one after this call. */
    static void install() {
        Security.insertProviderAt(new Given(), 1);
    }

    /** Restarts from the first number. Returns a function that restores the previous position ({@link #on}). */
    static long again() {
        return on(0);
    }

    /** Continues from a position. Returns the previous one. */
    static synchronized long on(long place) {
        long before = drawn;
        drawn = place;
        return before;
    }

    private static synchronized long next() {
        drawn += STEP;
        long mixed = (drawn ^ (drawn >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        return mixed ^ (mixed >>> 31);
    }

    @Override
    protected void engineSetSeed(byte[] seed) {
    }

    @Override
    protected void engineNextBytes(byte[] bytes) {
        ByteBuffer out = ByteBuffer.wrap(bytes);
        while (out.hasRemaining()) {
            byte[] some = ByteBuffer.allocate(Long.BYTES).putLong(next()).array();
            out.put(some, 0, Math.min(some.length, out.remaining()));
        }
    }

    @Override
    protected byte[] engineGenerateSeed(int length) {
        byte[] seed = new byte[length];
        engineNextBytes(seed);
        return seed;
    }

    private static final class Given extends Provider {
        private static final long serialVersionUID = 1L;

        Given() {
            super("kipcheck", "1", "the same random numbers at every start");
            put("SecureRandom.Given", SeededRandom.class.getName());
        }
    }
}
