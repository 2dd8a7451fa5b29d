import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.*;

public class Ghosts {
    static void assign(List<String> topics, Map<String, Subscription> group) {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = new ArrayList<>();
        topics.forEach(topic -> partitions.add(new PartitionInfo(topic, 0, node, nodes, nodes)));
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        try {
            new TreeMap<>(new CooperativeStickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment())
                .forEach((member, share) -> System.out.println(member + " " + share.partitions()));
        } catch (IllegalStateException trouble) {
            System.out.println(trouble.getMessage());
        }
    }

    static Subscription member(List<String> topics, TopicPartition... owned) {
        return new Subscription(topics, null, List.of(owned), owned.length == 0 ? -1 : 10, Optional.empty());
    }

    public static void main(String[] none) {
        TopicPartition gone = new TopicPartition("t0", 1);
        assign(List.of("t0"), new TreeMap<>(Map.of("a", member(List.of("t0"), gone))));
        assign(List.of("t0", "t1"), new TreeMap<>(Map.of(
            "a", member(List.of("t0", "t1", "t2"), new TopicPartition("t1", 0), gone),
            "b", member(List.of("t0", "t1")))));
    }
}
