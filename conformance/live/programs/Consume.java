import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consumer of kafka-clients, any release from 1.0: consumes and commits until SIGTERM, then closes. */
public final class Consume {
    private static final Map<String, String> NAMES = Map.of(
        "BOOTSTRAP", "bootstrap.servers", "GROUP", "group.id", "INSTANCE", "group.instance.id", "CLIENT_ID", "client.id",
        "PROTOCOL", "group.protocol", "REBALANCE_MS", "max.poll.interval.ms");
    /** Refused with the protocol "consumer". */
    private static final Map<String, String> CLASSIC = Map.of("ASSIGNORS", "partition.assignment.strategy",
        "SESSION_MS", "session.timeout.ms", "HEARTBEAT_MS", "heartbeat.interval.ms");
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "Range", "roundrobin", "RoundRobin", "sticky", "Sticky", "cooperative-sticky", "CooperativeSticky");

    private static String given(String name) { return System.getenv().getOrDefault("KIPCHECK_" + name, ""); }

    private static String value(String name) {
        return !name.equals("ASSIGNORS") ? given(name) : Arrays.stream(given(name).split(",")).map(each ->
            "org.apache.kafka.clients.consumer." + ASSIGNORS.get(each) + "Assignor").collect(Collectors.joining(","));
    }

    public static void main(String[] arguments) throws Throwable {
        Properties settings = new Properties();
        NAMES.forEach((name, key) -> { if (!given(name).isEmpty()) settings.put(key, value(name)); });
        if (!given("PROTOCOL").equals("consumer"))
            CLASSIC.forEach((name, key) -> { if (!given(name).isEmpty()) settings.put(key, value(name)); });
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", "100");
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try { main.join(); } catch (InterruptedException ended) { Thread.currentThread().interrupt(); }
        }));
        consumer.subscribe(Arrays.asList(given("TOPICS").split(",")));
        boolean early = Arrays.stream(KafkaConsumer.class.getMethods()).noneMatch(each ->
            each.getName().equals("poll") && each.getParameterTypes()[0] == Duration.class);  // before 2.0
        Method poll = KafkaConsumer.class.getMethod("poll", early ? long.class : Duration.class);
        Object pause = early ? (Object) 100L : Duration.ofMillis(100);
        try {
            while (true)
                for (ConsumerRecord<?, ?> each : (ConsumerRecords<?, ?>) poll.invoke(consumer, pause))
                    System.out.println(each.topic() + " " + each.partition() + " " + each.offset());
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof WakeupException)) throw thrown.getCause();
            consumer.close();
        }
    }
}
