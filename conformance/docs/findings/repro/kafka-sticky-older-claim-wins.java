import java.util.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.*;

public class Older {
    static Subscription member(List<String> topics, int generation, TopicPartition... owned) {
        StickyAssignor before = new StickyAssignor();
        before.onAssignment(
            new Assignment(List.of(owned)), new ConsumerGroupMetadata("g", generation, "m", Optional.empty()));
        return new Subscription(topics, before.subscriptionUserData(Set.copyOf(topics)));
    }

    public static void main(String[] none) {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = new ArrayList<>();
        List.of("t0-0", "t1-0", "t2-0", "t2-1", "t2-2").forEach(each -> partitions.add(new PartitionInfo(
            each.substring(0, 2), Integer.parseInt(each.substring(3)), node, nodes, nodes)));
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        TopicPartition contested = new TopicPartition("t0", 0);
        Map<String, Subscription> group = new TreeMap<>();
        group.put("a", member(List.of("t0", "t2"), 10, contested, new TopicPartition("t2", 0)));
        group.put("b", member(List.of("t0", "t1", "t2"), 10, new TopicPartition("t2", 1), new TopicPartition("t2", 2)));
        group.put("c", member(List.of("t0", "t2"), 9, contested));
        new TreeMap<>(new StickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment())
            .forEach((name, share) -> System.out.println(name + " " + share.partitions()));
    }
}
