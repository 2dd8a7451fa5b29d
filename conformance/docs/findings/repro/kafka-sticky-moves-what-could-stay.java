import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.*;

public class Needless {
    public static void main(String[] none) {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = new ArrayList<>();
        List<TopicPartition> owned = List.of(new TopicPartition("t", 0), new TopicPartition("t", 1),
            new TopicPartition("t", 2), new TopicPartition("u", 0));
        owned.forEach(each -> partitions.add(new PartitionInfo(each.topic(), each.partition(), node, nodes, nodes)));
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        StickyAssignor member = new StickyAssignor();
        member.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("g", 10, "a", Optional.empty()));
        Map<String, Subscription> group = new TreeMap<>();
        group.put("a", new Subscription(List.of("t", "u"), member.subscriptionUserData(Set.of("t", "u"))));
        group.put("b", new Subscription(List.of("t", "u")));
        group.put("c", new Subscription(List.of("u")));
        new TreeMap<>(new StickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment())
            .forEach((name, share) -> System.out.println(name + " " + share.partitions()));
    }
}
