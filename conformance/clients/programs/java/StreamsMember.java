package kipcheck;

import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * One thread of a Streams application, as far as its assignor goes: an assignor, configured, that remembers what the
 * order says, between stand-ins of ours that note what it tells them.
 *
 * <p>Each order makes a new one. What differs between releases is in the classes below.
 */
abstract class StreamsMember {
    final Release release;
    final StreamsOrder order;
    /** An object of the release's StreamPartitionAssignor or StreamsPartitionAssignor. */
    final Object assignor;
    /** Was the task manager (up to 1.0: the thread) told of tasks since? */
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

    /** The version that it subscribes with. */
    abstract int used() throws Throwable;

    /** The last byte of the last subscription; 0 where subscriptions have none. */
    abstract int unique() throws Throwable;

    /** The thread has done what it was told to do, and seen the errors that there were. */
    abstract void clear() throws Throwable;

    /** onAssignment has come back: for members whose thread is told nothing, and looks for itself. */
    void heard() throws Throwable {
    }

    /** The error that onAssignment left for the thread to find; 0 where there is none. */
    abstract int error() throws Throwable;

    /**
     * When the thread joins again of its own accord after an assignment: {@code {"rejoin": "never"}}, {@code "again"}
     * (it unsubscribes, and subscribes anew), {@code "now"}, or {@code "later"} with {@code "atMs"}.
     */
    abstract Map<String, Object> rejoin() throws Throwable;

    /** TaskIds, as a set that its asker may change. */
    final Set<Object> tasks(Collection<String> texts) throws Throwable {
        Set<Object> tasks = new HashSet<>();
        for (String each : texts) {
            tasks.add(StreamsOrder.task(release, each));
        }
        return tasks;
    }

    /** The task manager was told of these TaskIds: whoever plays it says so. */
    final void told(Collection<?> activeTasks, Collection<?> standbyTasks) throws Throwable {
        applied = true;
        active = StreamsOrder.texts(activeTasks);
        standby = StreamsOrder.texts(standbyTasks);
    }

    /** The tasks of which there is state on the disk. */
    final Set<String> kept() {
        Set<String> kept = new LinkedHashSet<>(standby);
        active.stream().filter(order::stateful).forEach(kept::add);
        return kept;
    }

    /** An assignment is about to come: what was noted of another one is past. */
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
