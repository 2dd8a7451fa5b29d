import java.util.*;
import java.util.stream.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.common.*;

public class Endless {
    static Subscription member(List<String> topics, String topic, int... owned) {
        List<TopicPartition> partitions = IntStream.of(owned).mapToObj(n -> new TopicPartition(topic, n)).toList();
        return new Subscription(topics, null, partitions, owned.length == 0 ? -1 : 1, Optional.empty());
    }

    public static void main(String[] none) throws InterruptedException {
        Node node = new Node(0, "h", 1);
        Node[] nodes = {node};
        List<PartitionInfo> partitions = new ArrayList<>();
        Map.of("t0", 6, "t1", 5, "t2", 1, "t3", 8).forEach((topic, size) -> IntStream.range(0, size).forEach(
            n -> partitions.add(new PartitionInfo(topic, n, node, nodes, nodes))));
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        Map<String, Subscription> group = new TreeMap<>();
        group.put("c0", member(List.of("t1"), "t1", 0, 1, 2, 3));
        group.put("c1", member(List.of("t0", "t1"), "t0", 0, 2, 3, 5));
        group.put("c2", member(List.of("t2", "t3"), "t3", 0, 2, 3, 4, 5, 6, 7));
        group.put("c3", member(List.of("t0", "t1"), ""));
        group.put("c4", member(List.of("t0", "t3"), ""));
        Thread leader = new Thread(() -> System.out.println(
            new CooperativeStickyAssignor().assign(cluster, new GroupSubscription(group)).groupAssignment()));
        leader.setDaemon(true);
        leader.start();
        leader.join(3000);
        System.out.println(leader.isAlive() ? "no assignment after 3 s" : "done");
    }
}
