import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consumer of kafka-clients, any release from 2.0: consumes and commits until SIGTERM, then closes. */
public final class Consume {
    private static final String[][] NAMES = {
        {"BOOTSTRAP", "bootstrap.servers"}, {"GROUP", "group.id"}, {"INSTANCE", "group.instance.id"},
        {"CLIENT_ID", "client.id"}, {"PROTOCOL", "group.protocol"}, {"REBALANCE_MS", "max.poll.interval.ms"}};
    /** Refused with the protocol "consumer". */
    private static final String[][] CLASSIC = {
        {"SESSION_MS", "session.timeout.ms"}, {"HEARTBEAT_MS", "heartbeat.interval.ms"}};
    private static final List<String> ASSIGNORS = List.of(
        "range", "Range", "roundrobin", "RoundRobin", "sticky", "Sticky", "cooperative-sticky", "CooperativeSticky");

    private static String given(String name) {
        return System.getenv().getOrDefault("KIPCHECK_" + name, "");
    }

    private static void put(Properties into, String[][] names) {
        for (String[] each : names) if (!given(each[0]).isEmpty()) into.put(each[1], given(each[0]));
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        put(settings, NAMES);
        if (!given("PROTOCOL").equals("consumer")) {
            put(settings, CLASSIC);
            StringBuilder classes = new StringBuilder();
            for (String each : given("ASSIGNORS").split(","))
                if (!each.isEmpty()) classes.append(classes.length() == 0 ? "" : ",").append(
                    "org.apache.kafka.clients.consumer." + ASSIGNORS.get(ASSIGNORS.indexOf(each) + 1) + "Assignor");
            if (classes.length() > 0) settings.put("partition.assignment.strategy", classes.toString());
        }
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", "100");
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try { main.join(); } catch (InterruptedException ended) { Thread.currentThread().interrupt(); }
        }));
        consumer.subscribe(Arrays.asList(given("TOPICS").split(",")));
        try {
            while (true)
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(100)))
                    System.out.println(each.topic() + " " + each.partition() + " " + each.offset());
        } catch (WakeupException ended) {
            consumer.close();
        }
    }
}
