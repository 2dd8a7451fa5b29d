package kipcheck;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * The members of a Streams group, one order at a time: a new assignor gets the state in the order and is called as its
 * consumer calls it. No state is kept for the next order.
 *
 * <ul>
 *   <li>{@code stream-configure}: the version that it uses, the newest one, and the rebalance protocols it offers;
 *   <li>{@code stream-subscribe}: the user data of its subscription;
 *   <li>{@code stream-assign}: its assignment for each member, as leader;
 *   <li>{@code stream-assigned}: its state after an assignment;
 *   <li>{@code stream-live}: several of these, in {@code steps}, with one assignor that lives on. Fields that all steps
 *       have in common are beside the steps.
 * </ul>
 */
final class StreamsGroups {
    static final String ASSIGNOR = "stream";
    /** The name of the assignor, which was once spelled with one s less. */
    static final List<String> CLASSES = Collections.unmodifiableList(Arrays.asList(
        "org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor",
        "org.apache.kafka.streams.processor.internals.StreamPartitionAssignor"));

    private static final String CONSUMER = "org.apache.kafka.clients.consumer.";
    private static final String PREFIX = "stream-";
    private static final String LIVE = PREFIX + "live";

    private final Release release;
    private final Leader leader;
    private StreamsEra era;

    StreamsGroups(Release release, Leader leader) {
        this.release = release;
        this.leader = leader;
    }

    static boolean knows(String op) {
        return op.startsWith(PREFIX);
    }

    Map<String, Object> answer(Map<String, Object> order) throws Throwable {
        SeededRandom.install();
        // Since 2.4 members of the future are kept under a random id: the same one each time, even of the class's own.
        long before = SeededRandom.again();
        try {
            return answer(new StreamsOrder(order), order);
        } finally {
            // Everything else in this process continues with its own numbers.
            SeededRandom.on(before);
        }
    }

    private Map<String, Object> answer(StreamsOrder told, Map<String, Object> order) throws Throwable {
        StreamsEra era = era();
        // The class has drawn its own number by now.
        SeededRandom.again();
        StreamsMember member = era.member(told);
        if (!order.get("op").equals(LIVE)) {
            return answer(member, order);
        }
        List<Object> answers = new ArrayList<>();
        for (Object each : Values.list(order.get("steps"))) {
            Map<String, Object> step = new HashMap<>(order);
            step.putAll(Values.object(each));
            answers.add(answer(member, step));
        }
        return Map.of("answers", answers);
    }

    private Map<String, Object> answer(StreamsMember member, Map<String, Object> order) throws Throwable {
        switch (String.valueOf(order.get("op")).substring(PREFIX.length())) {
            case "configure":
                return configured(member);
            case "subscribe":
                return subscribed(member, StreamsOrder.texts(order, "topics"));
            case "assign":
                return led(member, order);
            case "assigned":
                return assigned(member, order);
            default:
                throw new Release.Unsupported("no operation " + order.get("op"));
        }
    }

    private Map<String, Object> configured(StreamsMember member) throws Throwable {
        List<String> protocols = new ArrayList<>();
        if (leader.recent()) {
            for (Object each : (Collection<?>) Release.call(member.assignor, "supportedProtocols")) {
                protocols.add(String.valueOf(each).toLowerCase(Locale.ROOT));
            }
        } else {
            protocols.add("eager");
        }
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("used", member.used());
        answer.put("latest", era().latest());
        answer.put("protocols", protocols);
        return answer;
    }

    private Map<String, Object> subscribed(StreamsMember member, List<String> topics) throws Throwable {
        LinkedHashSet<Object> wanted = new LinkedHashSet<>(topics);
        ByteBuffer data = (ByteBuffer) (leader.recent()
            ? Release.call(member.assignor, "subscriptionUserData", wanted)
            : Release.call(Release.call(member.assignor, "subscription", wanted), "userData"));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("hex", Values.hex(data));
        answer.put("memory", memory(member));
        return answer;
    }

    private Map<String, Object> led(StreamsMember member, Map<String, Object> order) throws Throwable {
        Map<String, Object> subscriptions = new HashMap<>();
        List<Object> members = Values.list(order.get("members"));
        for (Object each : members) {
            Map<String, Object> one = Values.object(each);
            byte[] data = Values.bytes(one.get("userData"));
            subscriptions.put(
                Values.text(one.get("id")),
                leader.joined(one, data == null ? null : ByteBuffer.wrap(data), leader.owned(one)));
        }
        Map<?, ?> assigned = leader.assigned(member.assignor, leader.cluster(Values.list(order.get("topics"))), subscriptions);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("assignment", Leader.told(members, assigned));
        answer.put("memory", memory(member));
        return answer;
    }

    private Map<String, Object> assigned(StreamsMember member, Map<String, Object> order) throws Throwable {
        byte[] data = Values.bytes(order.get("userData"));
        Object assignment = Release.create(
            leader.nested("Assignment"), leader.partitions(Values.list(order.get("partitions"))),
            data == null ? null : ByteBuffer.wrap(data));
        member.listen();
        if (leader.recent()) {
            Object group = Release.create(
                release.need(CONSUMER + "ConsumerGroupMetadata"), "group", 1, "member", Optional.empty());
            Release.call(member.assignor, "onAssignment", assignment, group);
        } else {
            Release.call(member.assignor, "onAssignment", assignment);
        }
        member.heard();
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("memory", memory(member));
        answer.putAll(member.rejoin());
        answer.put("applied", member.applied());
        answer.put("error", member.error());
        return answer;
    }

    private static Map<String, Object> memory(StreamsMember member) throws Throwable {
        Map<String, Object> memory = new LinkedHashMap<>();
        memory.put("used", member.used());
        memory.put("unique", member.unique());
        memory.put("active", member.active());
        memory.put("standby", member.standby());
        memory.put("sums", member.order.sums);
        memory.put("error", member.order.error);
        return memory;
    }

    private StreamsEra era() {
        if (era == null) {
            // This loads the assignor's class, which draws a number at once.
            if (CLASSES.stream().allMatch(each -> release.find(each) == null)) {
                throw new Release.Unsupported(release.name + " has no assignor " + ASSIGNOR);
            }
            era = leader.recent() ? new StreamsRecent(release) : new StreamsOld(release);
        }
        return era;
    }
}
