import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The consumer of kafka-clients, any release from 1.0: consumes and commits until SIGTERM, then closes. */
public final class Consume implements ConsumerRebalanceListener {
    private static final Map<String, String> NAMES = Map.of(
        "BOOTSTRAP", "bootstrap.servers", "GROUP", "group.id", "INSTANCE", "group.instance.id", "CLIENT_ID", "client.id",
        "PROTOCOL", "group.protocol");
    /** Refused with the protocol "consumer". */
    private static final Map<String, String> CLASSIC = Map.of("ASSIGNORS", "partition.assignment.strategy",
        "SESSION_MS", "session.timeout.ms", "HEARTBEAT_MS", "heartbeat.interval.ms");
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "Range", "roundrobin", "RoundRobin", "sticky", "Sticky", "cooperative-sticky", "CooperativeSticky");

    private final KafkaConsumer<byte[], byte[]> consumer;
    /** The next offsets of records that were read, and that a program that commits late has committed. */
    private final Map<TopicPartition, Long> held = new HashMap<>(), done = new HashMap<>();
    private boolean rebalanced, busy;

    private Consume(Properties settings) {
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static String given(String name) { return System.getenv().getOrDefault("KIPCHECK_" + name, ""); }

    private static String value(String name) {
        return !name.equals("ASSIGNORS") ? given(name) : Arrays.stream(given(name).split(",")).map(each ->
            "org.apache.kafka.clients.consumer." + ASSIGNORS.get(each) + "Assignor").collect(Collectors.joining(","));
    }

    private static Properties settings() {
        Properties found = new Properties();
        NAMES.forEach((name, key) -> { if (!given(name).isEmpty()) found.put(key, value(name)); });
        if (!given("PROTOCOL").equals("consumer"))
            CLASSIC.forEach((name, key) -> { if (!given(name).isEmpty()) found.put(key, value(name)); });
        for (String name : new String[] {"REBALANCE_MS", "MAX_POLL_MS"})
            if (!given(name).isEmpty()) found.put("max.poll.interval.ms", given(name));
        found.put("auto.offset.reset", given("OFFSET_RESET").isEmpty() ? "earliest" : given("OFFSET_RESET"));
        found.put("auto.commit.interval.ms", given("COMMIT_MS").isEmpty() ? "100" : given("COMMIT_MS"));
        found.put("enable.auto.commit", String.valueOf(given("COMMIT").isEmpty() || given("COMMIT").equals("auto")));
        return found;
    }

    /** Finishes its work, and commits what was read of these partitions. */
    @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        if (!given("COMMIT").equals("revoked")) return;
        Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
        for (TopicPartition each : partitions)
            if (held.containsKey(each)) read.put(each, new OffsetAndMetadata(held.remove(each)));
        if (!read.isEmpty()) work();
        if (!read.isEmpty()) attempt(() -> consumer.commitSync(read));
    }
    /** From 2.4 on. */
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        if (given("COMMIT").equals("revoked")) held.keySet().removeAll(partitions);
    }
    @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) { rebalanced = true; }

    private void subscribe() throws Throwable {
        if (given("PATTERN").isEmpty()) {
            consumer.subscribe(Arrays.asList(given("TOPICS").split(",")), this);
        } else if (given("PROTOCOL").equals("consumer") && Arrays.stream(KafkaConsumer.class.getMethods()).anyMatch(each ->
            each.getParameterCount() > 0 && each.getParameterTypes()[0].getSimpleName().equals("SubscriptionPattern"))) {
            Class<?> pattern = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");  // from 4.0 on
            KafkaConsumer.class.getMethod("subscribe", pattern, ConsumerRebalanceListener.class).invoke(
                consumer, pattern.getConstructor(String.class).newInstance(given("PATTERN")), this);
        } else {
            consumer.subscribe(Pattern.compile(given("PATTERN")), this);
        }
    }

    private void run() throws Throwable {
        subscribe();
        boolean early = Arrays.stream(KafkaConsumer.class.getMethods()).noneMatch(each ->
            each.getName().equals("poll") && each.getParameterTypes()[0] == Duration.class);  // before 2.0
        Method poll = KafkaConsumer.class.getMethod("poll", early ? long.class : Duration.class);
        long waitMs = given("POLL_MS").isEmpty() ? 100 : Long.parseLong(given("POLL_MS"));
        Object patience = early ? (Object) waitMs : Duration.ofMillis(waitMs);
        while (true) {
            Map<TopicPartition, Long> read = new HashMap<>();
            if (!given("RESUME").isEmpty()) consumer.resume(consumer.assignment());
            for (ConsumerRecord<?, ?> each : (ConsumerRecords<?, ?>) poll.invoke(consumer, patience)) {
                System.out.println(each.topic() + " " + each.partition() + " " + each.offset());
                read.put(new TopicPartition(each.topic(), each.partition()), each.offset() + 1);
            }
            busy |= !read.isEmpty();
            if (waitMs == 0) rest(20);
            if (busy) work();
            attempt(() -> commit(read));
        }
    }

    private static void work() { rest(Long.parseLong("0" + given("PAUSE_MS"))); }

    private static void rest(long ms) {
        try { Thread.sleep(ms); } catch (InterruptedException ended) { }
    }

    private void commit(Map<TopicPartition, Long> read) {
        String how = given("COMMIT");
        if (how.equals("sync") && !read.isEmpty()) consumer.commitSync();
        if (how.equals("async") && !read.isEmpty()) consumer.commitAsync();
        if (how.equals("late")) commitLate(read);
        if (how.equals("revoked")) held.putAll(read);
    }

    /** What can be tried again is, after the next poll. */
    private static void attempt(Runnable commit) {
        try {
            commit.run();
        } catch (CommitFailedException | RetriableException refused) {
            System.err.println(refused);
        } catch (RuntimeException refused) {
            if (!refused.getClass().getSimpleName().equals("RebalanceInProgressException")) throw refused;
            System.err.println(refused);
        }
    }

    /** After a rebalance: what was read before, of the partitions that the consumer still has. */
    private void commitLate(Map<TopicPartition, Long> read) {
        Map<TopicPartition, OffsetAndMetadata> late = new HashMap<>();
        if (rebalanced) {
            held.forEach((at, offset) -> {
                if (consumer.assignment().contains(at) && offset > done.getOrDefault(at, 0L))
                    late.put(at, new OffsetAndMetadata(offset));
            });
            held.clear();
            rebalanced = false;
        }
        held.putAll(read);
        late.forEach((at, offset) -> done.put(at, offset.offset()));
        if (!late.isEmpty()) consumer.commitSync(late);
    }

    public static void main(String[] arguments) throws Throwable {
        Consume program = new Consume(settings());
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            program.consumer.wakeup();
            try { main.join(); } catch (InterruptedException ended) { Thread.currentThread().interrupt(); }
        }));
        try {
            program.run();
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof WakeupException)) throw thrown.getCause();
        } catch (WakeupException stopped) {
            // closed below
        }
        program.consumer.close();
    }
}
