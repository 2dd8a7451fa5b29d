import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;

public class ErrorVersion {
    static Subscription member(int number, int error) {
        ByteBuffer says = ByteBuffer.allocate(37).putInt(9).putInt(9).putLong(0).putLong(number);
        return new Subscription(List.of("t"), says.putInt(0).putInt(0).put((byte) 0).putInt(error).flip());
    }

    public static void main(String[] none) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("t");
        Properties config = new Properties();
        config.putAll(Map.of("application.id", "app", "bootstrap.servers", "localhost:1"));
        Clients clients = new Clients();
        KafkaStreams leader = new KafkaStreams(builder.build(), config, clients);
        GroupSubscription group = new GroupSubscription(Map.of("a", member(1, 0), "b", member(2, 4)));
        new TreeMap<>(clients.assignor.assign(Cluster.empty(), group).groupAssignment()).forEach((member, share) -> {
            ByteBuffer sent = share.userData();
            int error = sent.getInt(sent.limit() - 12);
            System.out.println(member + " speaks 9, is sent " + sent.getInt(0) + " with error " + error);
        });
        leader.close();
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
