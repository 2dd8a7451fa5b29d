import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public final class Consume {
    public static void main(String[] arguments) {
        var consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", arguments[0], "group.id", "g",
            "auto.offset.reset", "earliest", "auto.commit.interval.ms", "100", "session.timeout.ms", "3000",
            "heartbeat.interval.ms", "300"), new ByteArrayDeserializer(), new ByteArrayDeserializer());
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try { main.join(); } catch (InterruptedException ended) { }
        }));
        consumer.subscribe(List.of("t"));
        try {
            while (true) consumer.poll(Duration.ofMillis(100));
        } catch (WakeupException ended) {
            consumer.close();
        }
    }
}
