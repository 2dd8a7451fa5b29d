import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.*;

public class EmptyFirst {
    public static void main(String[] none) {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = List.of(
            new PartitionInfo("t", 0, node, nodes, nodes), new PartitionInfo("t", 1, node, nodes, nodes));
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        Map<String, Subscription> group = new TreeMap<>();
        group.put("a", new Subscription(List.of()));
        group.put("b", new Subscription(List.of("t")));
        new TreeMap<>(new StickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment())
            .forEach((member, share) -> System.out.println(member + " " + share.partitions()));
    }
}
