import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.*;

public class HandOver {
    public static void main(String[] none) {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = List.of(
            new PartitionInfo("t0", 0, node, nodes, nodes), new PartitionInfo("t1", 0, node, nodes, nodes));
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        List<TopicPartition> owned = List.of(new TopicPartition("t0", 0));
        Map<String, Subscription> group = new TreeMap<>();
        group.put("new", new Subscription(List.of("t0", "t1"), null, owned, 10, Optional.empty()));
        group.put("old", new Subscription(List.of("t0"), null, owned, 9, Optional.empty()));
        new TreeMap<>(new CooperativeStickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment())
            .forEach((member, share) -> System.out.println(member + " " + share.partitions()));
    }
}
