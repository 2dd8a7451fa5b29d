package kipcheck;

import java.lang.reflect.Field;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** A thread of a release up to 2.3. */
final class StreamsOldMember extends StreamsMember {
    /** The flag that the thread finds after version probing; from 2.1 on it is one of the errors. */
    private static final int VERSION_PROBING = 2;
    private static final String[] USED = {"usedSubscriptionMetadataVersion", "userMetadataVersion"};

    /** In 2.0. */
    final AtomicBoolean probing = new AtomicBoolean();
    /** From 2.1 on. */
    final AtomicInteger error = new AtomicInteger();
    private final int only;

    /** The version of releases without a choice: up to 0.10.2.1, 0.11.0.2, 1.0.1, 1.1.0. */
    StreamsOldMember(Release release, StreamsOrder order, Object assignor, int only) {
        super(release, order, assignor);
        this.only = only;
    }

    @Override
    int used() throws Throwable {
        Field field = field();
        return field == null ? only : field.getInt(assignor);
    }

    void use(int version) throws Throwable {
        Field field = field();
        if (field != null) {
            field.setInt(assignor, version);
        } else if (version != only) {
            throw new Release.Unsupported(release.name + " subscribes in version " + only + " and in no other");
        }
    }

    private Field field() throws Throwable {
        for (String each : USED) {
            if (Release.has(assignor.getClass(), each)) {
                return Release.need(assignor.getClass(), each);
            }
        }
        return null;
    }

    @Override
    int unique() {
        return 0;
    }

    @Override
    void clear() {
        probing.set(false);
        error.set(0);
    }

    @Override
    int error() {
        return error.get() == VERSION_PROBING ? 0 : error.get();
    }

    @Override
    Map<String, Object> rejoin() {
        return Map.of("rejoin", probing.get() || error.get() == VERSION_PROBING ? "again" : "never");
    }

    @Override
    void heard() throws Throwable {
        Class<?> type = assignor.getClass();
        if (Release.has(type, "taskManager")) {
            return;
        }
        // Up to 1.0 the thread is not called: it reads the tasks itself.
        Set<Object> active = new HashSet<>();
        if (Release.has(type, "activeTasks")) {
            active.addAll(((Map<?, ?>) Release.call(assignor, "activeTasks")).keySet());
        } else {
            Map<?, ?> byPartition = (Map<?, ?>) Release.need(type, "partitionToTaskIds").get(assignor);
            for (Object each : byPartition.values()) {
                active.addAll((Collection<?>) each);
            }
        }
        told(active, ((Map<?, ?>) Release.call(assignor, "standbyTasks")).keySet());
    }
}
