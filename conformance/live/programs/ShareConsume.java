import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The share consumer of kafka-clients, any release from 4.2: consumes and acknowledges until SIGTERM, then closes. */
public final class ShareConsume {
    private static final Map<String, String> NAMES =
        Map.of("BOOTSTRAP", "bootstrap.servers", "GROUP", "group.id", "CLIENT_ID", "client.id");

    private static String given(String name) { return System.getenv().getOrDefault("KIPCHECK_" + name, ""); }

    private static void consume(KafkaShareConsumer<byte[], byte[]> consumer) throws Exception {
        consumer.subscribe(Arrays.asList(given("TOPICS").split(",")));
        while (true) {
            int read = 0;
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(100))) {
                System.out.println(each.topic() + " " + each.partition() + " " + each.offset());
                read++;
            }
            if (read == 0) continue;
            Thread.sleep(Long.parseLong("0" + given("PAUSE_MS")));
            if (given("COMMIT").equals("sync")) consumer.commitSync();
            if (given("COMMIT").equals("async")) consumer.commitAsync();
        }
    }

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        NAMES.forEach((name, key) -> { if (!given(name).isEmpty()) settings.put(key, given(name)); });
        if (!given("MAX_POLL_MS").isEmpty()) settings.put("max.poll.interval.ms", given("MAX_POLL_MS"));
        KafkaShareConsumer<byte[], byte[]> consumer =
            new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try { main.join(); } catch (InterruptedException ended) { Thread.currentThread().interrupt(); }
        }));
        try {
            consume(consumer);
        } catch (WakeupException stopped) {
            // closed below
        }
        consumer.close();
    }
}
