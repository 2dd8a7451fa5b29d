import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Prints the records that a share consumer gets, until it has so many: bootstrap servers, group, number. */
public final class ShareApp {
    public static void main(String[] args) {
        Map<String, Object> settings = Map.of("bootstrap.servers", args[0], "group.id", args[1]);
        var text = new StringDeserializer();
        int left = Integer.parseInt(args[2]);
        try (var consumer = new KafkaShareConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of("t"));
            while (left > 0) {
                for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(each.partition() + " " + each.offset() + " " + each.value());
                    left--;
                }
                consumer.commitSync();
            }
        }
    }
}
