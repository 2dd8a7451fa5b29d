import java.time.Duration;
import java.util.*;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.TopologyException;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;

public class Uneven {
    static final Serde<String> TEXT = Serdes.String();

    static StreamsBuilder joined() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders", Consumed.with(TEXT, TEXT)).join(
            builder.stream("payments", Consumed.with(TEXT, TEXT)), (order, payment) -> order + payment,
            JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofHours(1)),
            StreamJoined.with(TEXT, TEXT, TEXT).withLoggingDisabled()
                .withDslStoreSuppliers(new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers()));
        return builder;
    }

    static void assign(String what, StreamsBuilder builder) {
        Node[] nodes = {new Node(0, "h", 1)};
        List<PartitionInfo> partitions = new ArrayList<>();
        Map.of("orders", 3, "payments", 2, "others", 1).forEach((topic, size) -> IntStream.range(0, size).forEach(
            n -> partitions.add(new PartitionInfo(topic, n, nodes[0], nodes, nodes))));
        Cluster cluster = new Cluster("c", List.of(nodes), partitions, Set.of(), Set.of());
        Properties config = new Properties();
        config.putAll(Map.of("application.id", "app", "client.id", "a", "bootstrap.servers", "localhost:1"));
        Clients clients = new Clients();
        try (KafkaStreams leader = new KafkaStreams(builder.build(), config, clients)) {
            Set<String> topics = cluster.topics();
            Subscription own = new Subscription(List.copyOf(topics), clients.assignor.subscriptionUserData(topics));
            GroupSubscription group = new GroupSubscription(Map.of("a", own));
            Assignment share = clients.assignor.assign(cluster, group).groupAssignment().get("a");
            System.out.println(what + ": " + new TreeSet<>(share.partitions().stream().map(Object::toString).toList()));
        } catch (TopologyException why) {
            System.out.println(what + ": " + why.getMessage());
        }
    }

    public static void main(String[] none) {
        assign("a join", joined());
        StreamsBuilder more = joined();
        more.stream("others", Consumed.with(TEXT, TEXT)).repartition(Repartitioned.as("anew"));
        assign("a join, and a repartition topic elsewhere", more);
    }
}

/** The clients of a stream thread; none of them connects. */
class Clients implements KafkaClientSupplier {
    ConsumerPartitionAssignor assignor;

    public Admin getAdmin(Map<String, Object> config) {
        return Admin.create(config);
    }

    public Producer<byte[], byte[]> getProducer(Map<String, Object> config) {
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    public Consumer<byte[], byte[]> getConsumer(Map<String, Object> config) {
        String name = config.get("partition.assignment.strategy").toString();
        assignor = ConsumerPartitionAssignor.getAssignorInstances(List.of(name), config).get(0);
        return getRestoreConsumer(config);
    }

    public Consumer<byte[], byte[]> getRestoreConsumer(Map<String, Object> config) {
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    public Consumer<byte[], byte[]> getGlobalConsumer(Map<String, Object> config) {
        return getRestoreConsumer(config);
    }
}
