package kipcheck;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * The partition of a coordinator, in memory: appended records are committed at once, and can be read again.
 *
 * <p>It can be compacted in the meantime, as the cleaner of a broker may do it with a part of a log.
 */
final class CoordinatorLog {
    private static final long ALL = 100;

    private final CoordinatorParts parts;
    private List<Batch> batches = new ArrayList<>();
    private long end;
    private Throwable failing;
    private Object listener;
    private Object playback;
    private CompletableFuture<Object> loading;
    private String unread = "";

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

    /** Where the coordinator failed to read the log the last time, such as {@code ConsumerGroup.addPartitionEpochs}. */
    String unread() {
        return unread;
    }

    /**
     * Completes the loading that was requested, if any.
     *
     * <p>Before, {@code upto} percent of the log were compacted: each record goes that is followed by one with its key
     * there, and with {@code drops} each tombstone, too. The first {@code since} percent were read before that.
     */
    void read(long upto, long since, boolean drops) throws Throwable {
        if (loading == null) {
            return;
        }
        int dirty = (int) (batches.size() * since / ALL);
        List<Batch> seen = new ArrayList<>(batches.subList(0, dirty));
        compact((int) Math.min(batches.size() * upto / ALL, batches.size() - 1), drops);
        seen.addAll(batches.subList(dirty, batches.size()));
        CompletableFuture<Object> done = loading;
        loading = null;
        unread = "";
        try {
            for (Batch batch : seen) {
                for (Entry each : batch.entries) {
                    ByteBuffer value = each.value == null ? null : each.value.duplicate();
                    Object record = Release.call(parts.serde, "deserialize", each.key.duplicate(), value);
                    Release.call(playback, "replay", each.offset, -1L, (short) -1, record);
                }
            }
            if (end > 0) {
                Release.call(playback, "updateLastWrittenOffset", end);
                Release.call(playback, "updateLastCommittedOffset", end);
            }
            done.complete(Release.create(parts.runtime("CoordinatorLoader$LoadSummary"), 0L, 0L, 0L, 0L, 0L));
        } catch (Throwable thrown) {
            unread = place(thrown);
            done.completeExceptionally(thrown);
        }
    }

    /** The method of the coordinator that threw. */
    private static String place(Throwable thrown) {
        for (StackTraceElement frame : thrown.getStackTrace()) {
            String type = frame.getClassName();
            if (type.startsWith("org.apache.kafka.coordinator.")) {
                String method = frame.getMethodName().replaceAll("^lambda\\$(\\w+)\\$\\d+$", "$1");
                return type.substring(type.lastIndexOf('.') + 1) + "." + method;
            }
        }
        return thrown.getClass().getSimpleName();
    }

    /** Compacts the first batches, all but the last one at most, whose segment is written to. */
    private void compact(int upto, boolean drops) {
        Map<ByteBuffer, Long> last = new HashMap<>();
        for (Batch batch : batches.subList(0, Math.max(upto, 0))) {
            batch.entries.forEach(each -> last.put(each.key, each.offset));
        }
        List<Batch> compacted = new ArrayList<>();
        for (int at = 0; at < batches.size(); at++) {
            List<Entry> entries = new ArrayList<>(batches.get(at).entries);
            if (at < upto) {
                entries.removeIf(each -> last.get(each.key) > each.offset || drops && each.value == null);
            }
            compacted.add(new Batch(entries));
        }
        batches = compacted;
    }

    private Object append(Object partition, Object batch) throws Throwable {
        if (failing != null) {
            Throwable thrown = failing;
            failing = null;
            throw thrown;
        }
        List<Entry> entries = new ArrayList<>();
        for (Object each : (Iterable<?>) Release.call(batch, "records")) {
            entries.add(new Entry(
                end++, copy((ByteBuffer) Release.call(each, "key")), copy((ByteBuffer) Release.call(each, "value"))));
        }
        batches.add(new Batch(entries));
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

    private record Entry(long offset, ByteBuffer key, ByteBuffer value) {
    }

    /** What was appended at once: a part of a log that is read or compacted has all of it, or nothing. */
    private record Batch(List<Entry> entries) {
    }
}
