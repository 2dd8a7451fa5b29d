package kipcheck;

import java.lang.reflect.Field;
import java.util.PriorityQueue;

/** The clock and timers of a coordinator. Time advances only on request. */
final class CoordinatorClock {
    private static final String TIMERS = "org.apache.kafka.server.util.timer.";
    private static final long BEGIN = 1_700_000_000_000L;

    private final Class<?> entry;
    private final Field delay;
    private final PriorityQueue<Due> due = new PriorityQueue<>();
    private long now = BEGIN;
    private long added;

    CoordinatorClock(Release release) throws NoSuchFieldException {
        entry = release.need(TIMERS + "TimerTaskEntry");
        delay = Release.need(release.need(TIMERS + "TimerTask"), "delayMs");
    }

    /** Implements the release's Time. */
    Object time(Release release) {
        return new InterfaceStub()
            .plays("milliseconds", nothing -> now)
            .plays("hiResClockMs", nothing -> now)
            .plays("nanoseconds", nothing -> now * 1_000_000)
            .as(release.need("org.apache.kafka.common.utils.Time"));
    }

    /** Implements the release's Timer. */
    Object timer(Release release) {
        return new InterfaceStub()
            .plays("add", task -> due.add(new Due(task[0])))
            .plays("size", nothing -> due.size())
            .as(release.need(TIMERS + "Timer"));
    }

    /** Advances to the next deadline, but not past that time; returns the task that is due, or null. */
    Runnable next(long until) throws Throwable {
        while (!due.isEmpty() && due.peek().at <= until) {
            Due found = due.poll();
            if (!(Boolean) Release.call(found.entry, "cancelled")) {
                now = Math.max(now, found.at);
                return (Runnable) found.task;
            }
        }
        now = until;
        return null;
    }

    long now() {
        return now;
    }

    /** A task and its deadline; of two with the same deadline the one added first comes first. */
    private final class Due implements Comparable<Due> {
        final Object task;
        final Object entry;
        final long at;
        final long order = added++;

        Due(Object task) throws Throwable {
            this.task = task;
            this.at = now + delay.getLong(task);
            // Registers with the task, which is cancelled through it.
            this.entry = Release.create(CoordinatorClock.this.entry, task, at);
        }

        @Override
        public int compareTo(Due other) {
            return at != other.at ? Long.compare(at, other.at) : Long.compare(order, other.order);
        }
    }
}
