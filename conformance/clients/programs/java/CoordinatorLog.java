package kipcheck;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The partition of a coordinator, in memory: appended records are committed at once, and can be read again. */
final class CoordinatorLog {
    private final CoordinatorParts parts;
    private final List<ByteBuffer[]> records = new ArrayList<>();
    private Throwable failing;
    private Object listener;
    private Object playback;
    private CompletableFuture<Object> loading;

    CoordinatorLog(CoordinatorParts parts) {
        this.parts = parts;
    }

    /** The error of the next append. */
    void fail(Throwable failing) {
        this.failing = failing;
    }

    /** Implements the release's PartitionWriter. */
    Object writer() {
        return new InterfaceStub()
            .plays("registerListener", given -> listener = given[1])
            .plays("deregisterListener", given -> listener = null)
            .plays("config", given -> parts.logConfig)
            .plays("append", given -> append(given[0], given[2]))
            .as(parts.runtime("PartitionWriter"));
    }

    /** Implements the release's CoordinatorLoader, which loads on request. */
    Object loader() {
        return new InterfaceStub()
            .plays("load", given -> {
                playback = given[1];
                loading = new CompletableFuture<>();
                return loading;
            })
            .as(parts.runtime("CoordinatorLoader"));
    }

    /** Whether loading has been requested. */
    boolean reading() {
        return loading != null;
    }

    /** Completes the loading that was requested, if any. */
    void read() throws Throwable {
        if (loading == null) {
            return;
        }
        CompletableFuture<Object> done = loading;
        loading = null;
        try {
            for (int at = 0; at < records.size(); at++) {
                ByteBuffer[] each = records.get(at);
                ByteBuffer value = each[1] == null ? null : each[1].duplicate();
                Object record = Release.call(parts.serde, "deserialize", each[0].duplicate(), value);
                Release.call(playback, "replay", (long) at, -1L, (short) -1, record);
            }
            if (!records.isEmpty()) {
                Release.call(playback, "updateLastWrittenOffset", (long) records.size());
                Release.call(playback, "updateLastCommittedOffset", (long) records.size());
            }
            done.complete(Release.create(parts.runtime("CoordinatorLoader$LoadSummary"), 0L, 0L, 0L, 0L, 0L));
        } catch (Throwable thrown) {
            done.completeExceptionally(thrown);
        }
    }

    private Object append(Object partition, Object batch) throws Throwable {
        if (failing != null) {
            Throwable thrown = failing;
            failing = null;
            throw thrown;
        }
        for (Object each : (Iterable<?>) Release.call(batch, "records")) {
            records.add(new ByteBuffer[] {
                copy((ByteBuffer) Release.call(each, "key")), copy((ByteBuffer) Release.call(each, "value"))});
        }
        long end = records.size();
        if (listener != null) {
            // It only notes that work is pending.
            Release.call(listener, "onHighWatermarkUpdated", partition, end);
        }
        return end;
    }

    private static ByteBuffer copy(ByteBuffer bytes) {
        if (bytes == null) {
            return null;
        }
        ByteBuffer copy = ByteBuffer.allocate(bytes.remaining());
        copy.put(bytes.duplicate()).flip();
        return copy;
    }
}
