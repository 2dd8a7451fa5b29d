import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A consumer of kafka-clients, from 1.0 on, that prints its callbacks, each with the time at which it begins. */
public final class Member implements ConsumerRebalanceListener {
    private static final Map<String, String> NAMES = Map.of("BOOTSTRAP", "bootstrap.servers", "GROUP", "group.id",
        "CLIENT_ID", "client.id", "SESSION_MS", "session.timeout.ms", "HEARTBEAT_MS", "heartbeat.interval.ms",
        "REBALANCE_MS", "max.poll.interval.ms");
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "Range", "roundrobin", "RoundRobin", "sticky", "Sticky", "cooperative-sticky", "CooperativeSticky");

    private static String given(String name) { return System.getenv().getOrDefault("KIPCHECK_" + name, ""); }

    private static synchronized void print(String what, long at, String rest) {
        System.out.println(what + " " + at + " " + rest);
        System.out.flush();
    }

    private static String names(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).collect(Collectors.joining(","));
    }

    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        print("assigned", System.nanoTime(), names(partitions));
    }

    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        print("revoked", System.nanoTime(), names(partitions));
    }

    /** Called from 2.4 on. */
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        print("lost", System.nanoTime(), names(partitions));
    }

    public static void main(String[] arguments) throws Throwable {
        Properties settings = new Properties();
        NAMES.forEach((name, key) -> { if (!given(name).isEmpty()) settings.put(key, given(name)); });
        settings.put("partition.assignment.strategy", Arrays.stream(given("ASSIGNORS").split(",")).map(each ->
            "org.apache.kafka.clients.consumer." + ASSIGNORS.get(each) + "Assignor").collect(Collectors.joining(",")));
        settings.put("auto.offset.reset", "earliest");
        settings.put("auto.commit.interval.ms", "100");
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            consumer.wakeup();
            try { main.join(); } catch (InterruptedException ended) { Thread.currentThread().interrupt(); }
        }));
        consumer.subscribe(Arrays.asList(given("TOPICS").split(",")), new Member());
        boolean early = Arrays.stream(KafkaConsumer.class.getMethods()).noneMatch(each ->
            each.getName().equals("poll") && each.getParameterTypes()[0] == Duration.class);  // before 2.0
        Method poll = KafkaConsumer.class.getMethod("poll", early ? long.class : Duration.class);
        Object pause = early ? (Object) 100L : Duration.ofMillis(100);
        try {
            while (true)
                for (ConsumerRecord<?, ?> each : (ConsumerRecords<?, ?>) poll.invoke(consumer, pause))
                    print("read", System.nanoTime(), each.topic() + "-" + each.partition());
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof WakeupException)) throw thrown.getCause();
            print("metrics", System.nanoTime(), consumer.metrics().keySet().stream()
                .filter(each -> each.group().equals("consumer-coordinator-metrics"))
                .map(MetricName::name).distinct().sorted().collect(Collectors.joining(",")));
            print("closing", System.nanoTime(), "");
            consumer.close();
        }
    }
}
