package kipcheck;

import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One thread of a Streams application, from the view of its assignor: a configured assignor with the state in the order,
 * and stubs that record the calls it makes.
 *
 * <p>Each order creates a new one. Differences between releases are in the subclasses.
 */
abstract class StreamsMember {
    final Release release;
    final StreamsOrder order;
    /** An object of the release's StreamPartitionAssignor or StreamsPartitionAssignor. */
    final Object assignor;
    /** Whether the task manager (up to 1.0: the thread) has received tasks since. */
    private boolean applied;
    private List<String> active;
    private List<String> standby;

    StreamsMember(Release release, StreamsOrder order, Object assignor) {
        this.release = release;
        this.order = order;
        this.assignor = assignor;
        this.active = order.active;
        this.standby = order.standby;
    }

    /** The version of its subscription. */
    abstract int used() throws Throwable;

    /** The last byte of the last subscription; 0 where subscriptions have none. */
    abstract int unique() throws Throwable;

    /** Lets the thread do its work and observe errors. */
    abstract void clear() throws Throwable;

    /** Called after onAssignment: for members whose thread is not called, and checks for itself. */
    void heard() throws Throwable {
    }

    /** The error that onAssignment left for the thread; 0 for none. */
    abstract int error() throws Throwable;

    /**
     * When the thread rejoins by itself after an assignment: {@code {"rejoin": "never"}}, {@code "again"} (it
     * unsubscribes and subscribes again), {@code "now"}, or {@code "later"} with {@code "atMs"}.
     */
    abstract Map<String, Object> rejoin() throws Throwable;

    /** TaskIds, as a set that the caller may change. */
    final Set<Object> tasks(Collection<String> texts) throws Throwable {
        Set<Object> tasks = new HashSet<>();
        for (String each : texts) {
            tasks.add(StreamsOrder.task(release, each));
        }
        return tasks;
    }

    /** Records that the task manager received these TaskIds. */
    final void told(Collection<?> activeTasks, Collection<?> standbyTasks) throws Throwable {
        applied = true;
        active = StreamsOrder.texts(activeTasks);
        standby = StreamsOrder.texts(standbyTasks);
    }

    /** The tasks with state on disk. */
    final Set<String> kept() {
        Set<String> kept = new LinkedHashSet<>(standby);
        active.stream().filter(order::stateful).forEach(kept::add);
        return kept;
    }

    /** Resets what was recorded before the next assignment. */
    final void listen() throws Throwable {
        applied = false;
        clear();
    }

    final boolean applied() {
        return applied;
    }

    final List<String> active() {
        return active;
    }

    final List<String> standby() {
        return standby;
    }
}
