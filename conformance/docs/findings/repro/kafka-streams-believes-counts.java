import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;

public class Counts {
    public static void main(String[] none) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("t");
        Properties config = new Properties();
        config.putAll(Map.of("application.id", "app", "bootstrap.servers", "localhost:1"));
        Clients clients = new Clients();
        KafkaStreams member = new KafkaStreams(builder.build(), config, clients);
        for (int count : new int[] {3, Integer.MAX_VALUE}) {
            ByteBuffer sent = ByteBuffer.allocate(12).putInt(11).putInt(11).putInt(count).flip();
            try {
                clients.assignor.onAssignment(new Assignment(List.of(), sent), null);
            } catch (Throwable why) {
                System.out.println(count + " active tasks: " + why.getClass().getName());
            }
        }
        member.close();
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
