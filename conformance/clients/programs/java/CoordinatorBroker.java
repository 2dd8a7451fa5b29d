package kipcheck;

import java.lang.reflect.Method;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * The group coordinator of a release as its brokers run it, GroupCoordinatorService over CoordinatorRuntime, with one
 * partition.
 *
 * <p>Only its environment is replaced: the clock, the log, and the thread. All pending work is done, in order, before a
 * call returns.
 */
final class CoordinatorBroker {
    private static final String KRAFT = "org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadata";
    private static final int PARTITION = 0;
    private static final int BUFFER = 1 << 20;

    private final CoordinatorParts parts;
    private final CoordinatorClock clock;
    private final CoordinatorLog log;
    private final ArrayDeque<Object> events = new ArrayDeque<>();
    private final Object service;
    private int epoch;

    CoordinatorBroker(CoordinatorParts parts) throws Throwable {
        this.parts = parts;
        this.clock = new CoordinatorClock(parts.release);
        this.log = new CoordinatorLog(parts);
        this.service = service();
        IntSupplier partitions = () -> 1;
        Release.call(service, "startup", partitions);
        load();
        if (!log.reading()) {
            // The runtime logs the reason and continues.
            throw new Release.Unsupported("the group coordinator of " + parts.release.name + " does not start");
        }
        loaded(0, 0, false);
    }

    /** The method of the service of that name, or null. */
    Method method(String name) {
        for (Method method : service.getClass().getMethods()) {
            if (method.getName().equals(name) && !method.isBridge()) {
                return method;
            }
        }
        return null;
    }

    /** Calls the service; the result comes now, or in a later call. */
    CompletableFuture<?> ask(Method method, Object... arguments) throws Throwable {
        return (CompletableFuture<?>) Release.invoke(method, service, arguments);
    }

    /** Runs pending work until none is left. */
    void work() throws Throwable {
        while (!events.isEmpty()) {
            Object event = events.poll();
            if (event instanceof Runnable) {
                ((Runnable) event).run();
                continue;
            }
            try {
                Release.call(event, "run");
            } catch (Throwable thrown) {
                Release.call(event, "complete", thrown);
            }
        }
    }

    void elapse(long milliseconds) throws Throwable {
        long until = clock.now() + milliseconds;
        for (Runnable task = clock.next(until); task != null; task = clock.next(until)) {
            task.run();
            work();
        }
    }

    /** Metadata of topics. */
    void know(Object image, Object delta) throws Throwable {
        if (method("onMetadataUpdate") != null) {
            Release.call(service, "onMetadataUpdate", delta, image);
        } else if (parts.release.find(KRAFT + "Image") == null) {
            Release.call(service, "onNewMetadataImage", image, delta);
        } else {
            Release.call(service, "onNewMetadataImage", Release.create(parts.release.need(KRAFT + "Image"), image),
                Release.create(parts.release.need(KRAFT + "Delta"), delta));
        }
        work();
    }

    /** The settings of one group, in place of all that it had. */
    void configure(String group, Map<String, Object> settings) throws Throwable {
        Properties found = new Properties();
        found.putAll(settings);
        Release.call(service, "updateGroupConfig", group, found);
        work();
    }

    void failWrite(Throwable with) {
        log.fail(with);
    }

    void unload() throws Throwable {
        Release.call(service, "onResignation", PARTITION, OptionalInt.of(++epoch));
        work();
    }

    void load() throws Throwable {
        Release.call(service, "onElection", PARTITION, ++epoch);
        work();
    }

    /** With a log that was compacted: see {@code CoordinatorLog.read}. */
    void loaded(long compacted, long since, boolean drops) throws Throwable {
        log.read(compacted, since, drops);
        work();
    }

    /** See {@code CoordinatorLog.unread}. */
    String unread() {
        return log.unread();
    }

    private Object service() throws Throwable {
        Release release = parts.release;
        Map<String, Object> ours = new HashMap<>();
        ours.put("time", clock.time(release));
        ours.put("timer", clock.timer(release));
        Object settings = parts.groupSettings();
        if (settings != null) {
            ours.put("settings", settings);
        }
        ours.put("runtime", runtime(ours));
        return parts.make(release.need(CoordinatorParts.GROUP + "GroupCoordinatorService"), ours);
    }

    private Object runtime(Map<String, Object> ours) throws Throwable {
        Class<?> shard = parts.release.need(CoordinatorParts.GROUP + "GroupCoordinatorShard$Builder");
        Object processor = new InterfaceStub()
            .plays("enqueueLast", event -> events.add(event[0]))
            .plays("enqueueFirst", event -> {
                events.addFirst(event[0]);
                return null;
            })
            .as(parts.runtime("CoordinatorEventProcessor"));
        Object shards = new InterfaceStub()
            .plays("get", nothing -> {
                Object made = parts.make(shard, ours);
                set(made, shard, "withAuthorizer", Optional.empty());
                set(made, shard, "withAuthorizerPlugin", Optional.empty());
                return made;
            })
            .as(parts.runtime("CoordinatorShardBuilderSupplier"));
        Object aside = new InterfaceStub()
            .plays("submit", task -> {
                events.add(task[0]);
                return null; // nobody waits for it
            })
            .plays("execute", task -> events.add(task[0]))
            .as(ExecutorService.class);
        Class<?> type = parts.runtime("CoordinatorRuntime$Builder");
        Object builder = Release.create(type);
        Release.call(builder, "withEventProcessor", processor);
        Release.call(builder, "withPartitionWriter", log.writer());
        Release.call(builder, "withLoader", log.loader());
        Release.call(builder, "withCoordinatorShardBuilderSupplier", shards);
        Release.call(builder, "withTime", ours.get("time"));
        Release.call(builder, "withTimer", ours.get("timer"));
        Release.call(builder, "withCoordinatorRuntimeMetrics", parts.runtimeMetrics);
        Release.call(builder, "withCoordinatorMetrics", parts.metrics);
        Release.call(builder, "withSerializer", parts.serde);
        set(builder, type, "withDefaultWriteTimeOut", Duration.ofSeconds(5));
        set(builder, type, "withWriteTimeout", Duration.ofSeconds(5));
        set(builder, type, "withExecutorService", aside);
        Supplier<Integer> buffer = () -> BUFFER;
        set(builder, type, "withCachedBufferMaxBytesSupplier", buffer);
        return Release.call(builder, "build");
    }

    private static void set(Object builder, Class<?> type, String method, Object value) throws Throwable {
        if (Release.has(type, method)) {
            Release.call(builder, method, value);
        }
    }
}
