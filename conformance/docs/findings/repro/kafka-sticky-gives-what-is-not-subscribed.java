import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.*;

public class NoLongerSubscribed {
    static TopicPartition[] partitions(String... names) {
        return Stream.of(names).map(each -> each.split("-"))
            .map(each -> new TopicPartition(each[0], Integer.parseInt(each[1]))).toArray(TopicPartition[]::new);
    }

    static Subscription member(List<String> topics, int generation, String... owned) {
        return new Subscription(topics, null, List.of(partitions(owned)), generation, Optional.empty());
    }

    static void assign(String[] known, Map<String, Subscription> group) {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = Stream.of(partitions(known))
            .map(each -> new PartitionInfo(each.topic(), each.partition(), node, nodes, nodes)).toList();
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        try {
            new TreeMap<>(new CooperativeStickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment())
                .forEach((member, share) -> System.out.println(member + " " + share.partitions()));
        } catch (NullPointerException trouble) {
            System.out.println("NullPointerException");
        }
    }

    public static void main(String[] none) {
        assign(new String[] {"t0-0", "t1-0"}, new TreeMap<>(Map.of(
            "a", member(List.of("t0", "t1"), -1),
            "b", member(List.of("t0", "t1"), 10, "t1-0", "t0-0"),
            "c", member(List.of("t1"), 9, "t0-0"))));
        assign(new String[] {"t0-0", "t0-1"}, new TreeMap<>(Map.of(
            "a", member(List.of("t0"), 10, "t0-0", "t0-1"),
            "b", member(List.of("t0"), -1),
            "c", member(List.of(), 9, "t0-0"))));
    }
}
