import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.streams.KafkaStreams;

/**
 * An application of kafka-streams, any release, with a task for each partition of a topic. It prints when a processor of a
 * task is opened and closed, what its assignor supports, and the metadata version that it uses, each with the time.
 */
public final class StreamsMember {
    private static final String PACKAGE = "org.apache.kafka.streams.";
    private static final Map<String, String> NAMES = Map.of("BOOTSTRAP", "bootstrap.servers", "GROUP", "application.id",
        "CLIENT_ID", "client.id", "SESSION_MS", "session.timeout.ms", "HEARTBEAT_MS", "heartbeat.interval.ms",
        "REBALANCE_MS", "max.poll.interval.ms", "STATE", "state.dir", "UPGRADE_FROM", "upgrade.from",
        "PROTOCOL", "group.protocol");
    private static final List<String> WAY =
        List.of("threads", "consumer", "mainConsumer", "delegate", "coordinator", "assignors");
    private static volatile boolean closing;
    private static boolean known;

    private static String given(String name) { return System.getenv().getOrDefault("KIPCHECK_" + name, ""); }

    private static synchronized void print(String what, Object rest) {
        System.out.println(what + " " + System.nanoTime() + " " + rest);
        System.out.flush();
    }

    private static Class<?> first(String... names) {
        for (String each : names)
            try { return Class.forName(PACKAGE + each); } catch (ClassNotFoundException older) { continue; }
        throw new IllegalStateException(names[0]);
    }

    /** An object with one interface. Methods of Object are those of any object. */
    private static Object made(Class<?> type, InvocationHandler handler) {
        return Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
            switch (method.getName()) {
                case "equals": return self == arguments[0];
                case "hashCode": return System.identityHashCode(self);
                case "toString": return type.getSimpleName();
                default: return handler.invoke(self, method, arguments);
            }
        });
    }

    private static Object processor(Class<?> type, Method taskId) {
        String[] task = new String[1];
        return made(type, (self, method, arguments) -> {
            if (method.getName().equals("init")) print("opened", task[0] = taskId.invoke(arguments[0]).toString());
            if (method.getName().equals("close") && task[0] != null) print("closed", task[0]);
            return null;
        });
    }

    private static Object topology() throws Exception {
        String api = "processor.api.";
        Class<?> supplier = first(api + "ProcessorSupplier", "processor.ProcessorSupplier");
        Class<?> type = first(api + "Processor", "processor.Processor");
        Method taskId = first(api + "ProcessorContext", "processor.ProcessorContext").getMethod("taskId");
        Class<?> builder = first("Topology", "processor.TopologyBuilder");
        Object found = builder.getConstructor().newInstance();
        builder.getMethod("addSource", String.class, String[].class).invoke(found, "source", given("TOPICS").split(","));
        Object each = made(supplier, (self, method, arguments) ->
            method.getName().equals("get") ? processor(type, taskId) : null);
        builder.getMethod("addProcessor", String.class, supplier, String[].class)
            .invoke(found, "processor", each, new String[] {"source"});
        return found;
    }

    /** The version that the assignor of a thread uses; null before there is one, and in releases without probing. */
    private static Object used(Object from) throws Exception {
        if (from == null) return null;
        if (from instanceof Object[]) return used(List.of((Object[]) from));
        if (from instanceof Collection) {
            for (Object each : (Collection<?>) from) {
                Object found = used(each);
                if (found != null) return found;
            }
            return null;
        }
        boolean there = from.getClass().getSimpleName().equals("StreamsPartitionAssignor");
        if (there && !known)
            for (Method each : from.getClass().getMethods())  // from 2.4 on
                if (each.getName().equals("supportedProtocols")) {
                    known = true;
                    print("protocols", each.invoke(from));
                }
        for (Class<?> type = from.getClass(); type != null && type.getName().startsWith("org.apache"); type = type.getSuperclass())
            for (Field each : type.getDeclaredFields()) {
                if (!(there ? each.getName().equals("usedSubscriptionMetadataVersion") : WAY.contains(each.getName())))
                    continue;
                each.setAccessible(true);
                Object found = there ? each.get(from) : used(each.get(from));
                if (found != null) return found;
            }
        return null;
    }

    private static boolean runs() {
        return Thread.getAllStackTraces().keySet().stream().anyMatch(each -> each.getName().contains("StreamThread-"));
    }

    /** Ends the process, whatever threads the client has left. */
    public static void main(String[] arguments) {
        try {
            consume();
        } catch (Throwable thrown) {
            thrown.printStackTrace();
        }
        if (!closing) Runtime.getRuntime().halt(1);
    }

    private static void consume() throws Exception {
        Properties settings = new Properties();
        NAMES.forEach((name, key) -> { if (!given(name).isEmpty()) settings.put(key, given(name)); });
        settings.put("auto.offset.reset", "earliest");
        for (String each : List.of("key.serde", "value.serde"))
            for (String name : List.of(each, "default." + each))  // the first up to 0.10.2
                settings.put(name, "org.apache.kafka.common.serialization.Serdes$ByteArraySerde");
        Thread.setDefaultUncaughtExceptionHandler((thread, thrown) -> thrown.printStackTrace());
        Object topology = topology();
        Class<?> type = first("Topology", "processor.TopologyBuilder");
        KafkaStreams streams = KafkaStreams.class.getConstructor(type, Properties.class).newInstance(topology, settings);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            closing = true;
            print("closing", "");
            streams.close();
        }));
        streams.start();
        Object last = null;
        boolean ran = false;
        while (!closing) {
            Object now = null;
            try { now = used(streams); } catch (Exception changing) { now = null; }
            if (now != null && !now.equals(last)) print("used", last = now);
            boolean runs = runs();
            if (ran && !runs && !closing) {
                print("died", "");
                return;
            }
            ran |= runs;
            Thread.sleep(50);
        }
    }
}
