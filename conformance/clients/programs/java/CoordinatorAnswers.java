package kipcheck;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The responses of a coordinator, decoded in the version of the request and converted to the protocol's form. */
final class CoordinatorAnswers {
    private static final String REQUESTS = "org.apache.kafka.common.requests.";
    private static final int FETCHED_BY_GROUP = 8;

    private final Release release;
    private final Generated generated;
    private final Class<?> errors;

    CoordinatorAnswers(Release release, Generated generated) {
        this.release = release;
        this.generated = generated;
        this.errors = release.need("org.apache.kafka.common.protocol.Errors");
    }

    /** The answer to a request of this verb and version, with ids unchanged. An exception becomes the broker's error. */
    Map<String, Object> of(String verb, int version, Object made, Throwable thrown) throws Throwable {
        switch (verb) {
            case "join":
                return joined(thrown == null ? read("JoinGroupResponse", version, made) : failed(thrown));
            case "sync":
                return synced(thrown == null ? read("SyncGroupResponse", version, made) : failed(thrown));
            case "heartbeat":
                return answer("beat", thrown == null ? read("HeartbeatResponse", version, made) : failed(thrown));
            case "leave":
                return left(thrown == null ? read("LeaveGroupResponse", version, made) : failed(thrown));
            case "commit":
                return committed(thrown == null ? printed(made, version) : null, thrown);
            case "fetch":
                return fetched(thrown == null ? printed(made, FETCHED_BY_GROUP) : failed(thrown));
            case "describe-group":
                return described(thrown == null ? printed(only(made), version) : failed(thrown));
            case "list-groups":
                return listed(thrown == null ? read("ListGroupsResponse", version, made) : failed(thrown));
            default:
                return answer("deleted", thrown == null ? printed(only(made), version) : failed(thrown));
        }
    }

    /** A response as its reader decodes it, or the exception in its place; and the error by name. */
    Map<String, Object> told(String message, int version, Object made) throws Throwable {
        Map<String, Object> found =
            made instanceof Throwable ? failed((Throwable) made) : generated.sent(message, version, made);
        found.put("error", error(found.get("errorCode")));
        return found;
    }

    private Map<String, Object> joined(Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = answer("joined", found);
        answer.put("generation", found.getOrDefault("generationId", -1));
        answer.put("protocol_type", found.get("protocolType"));
        answer.put("protocol", some(found.get("protocolName")));
        answer.put("leader", found.getOrDefault("leader", ""));
        answer.put("member", found.getOrDefault("memberId", ""));
        List<Object> members = new ArrayList<>();
        for (Object each : rows(found, "members")) {
            Map<String, Object> one = Values.object(each);
            members.add(Arrays.asList(one.get("memberId"), one.get("groupInstanceId"), text(one.get("metadata"))));
        }
        answer.put("members", members);
        answer.put("skip_assignment", found.getOrDefault("skipAssignment", false));
        return answer;
    }

    private Map<String, Object> synced(Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = answer("synced", found);
        answer.put("protocol_type", found.get("protocolType"));
        answer.put("protocol", found.get("protocolName"));
        answer.put("assignment", text(found.getOrDefault("assignment", "")));
        return answer;
    }

    private Map<String, Object> left(Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = answer("left", found);
        List<Object> members = new ArrayList<>();
        for (Object each : rows(found, "members")) {
            Map<String, Object> one = Values.object(each);
            members.add(Arrays.asList(one.get("memberId"), one.get("groupInstanceId"), error(one.get("errorCode"))));
        }
        answer.put("members", members);
        return answer;
    }

    /** The single error of all partitions. */
    private Map<String, Object> committed(Map<String, Object> found, Throwable thrown) throws Throwable {
        Map<String, Object> all = thrown == null ? new LinkedHashMap<>() : failed(thrown);
        for (Object topic : rows(found, "topics")) {
            for (Object each : Values.list(Values.object(topic).get("partitions"))) {
                Object error = Values.object(each).get("errorCode");
                Object before = all.put("errorCode", error);
                if (before != null && !before.equals(error)) {
                    throw new IllegalStateException("partitions have different errors: " + before + " and " + error);
                }
            }
        }
        return answer("committed", all);
    }

    private Map<String, Object> fetched(Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = answer("fetched", found);
        List<List<Object>> offsets = new ArrayList<>();
        for (Object topic : rows(found, "topics")) {
            Map<String, Object> one = Values.object(topic);
            for (Object each : Values.list(one.get("partitions"))) {
                Map<String, Object> partition = Values.object(each);
                offsets.add(Arrays.asList(
                    one.get("name"), partition.get("partitionIndex"), partition.get("committedOffset")));
            }
        }
        offsets.sort(Comparator.comparing((List<Object> each) -> (String) each.get(0))
            .thenComparing(each -> (Integer) each.get(1)));
        answer.put("offsets", offsets);
        return answer;
    }

    private Map<String, Object> described(Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = answer("described", found);
        answer.put("state", found.getOrDefault("groupState", ""));
        answer.put("protocol_type", found.getOrDefault("protocolType", ""));
        answer.put("protocol", found.getOrDefault("protocolData", ""));
        List<Object> members = new ArrayList<>();
        for (Object each : rows(found, "members")) {
            Map<String, Object> one = Values.object(each);
            members.add(Arrays.asList(one.get("memberId"), one.get("groupInstanceId"),
                text(one.get("memberMetadata")), text(one.get("memberAssignment"))));
        }
        answer.put("members", members);
        return answer;
    }

    private Map<String, Object> listed(Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = answer("listed", found);
        List<Object> groups = new ArrayList<>();
        for (Object each : rows(found, "groups")) {
            Map<String, Object> one = Values.object(each);
            groups.add(Arrays.asList(one.get("protocolType"), one.getOrDefault("groupState", "")));
        }
        answer.put("groups", groups);
        return answer;
    }

    /** Encoded in the version, and decoded again: fields that it lacks are lost, or cannot be encoded. */
    private Map<String, Object> read(String message, int version, Object made) throws Throwable {
        Object sent = made;
        Class<?> response = release.need(REQUESTS + message);
        if (message.equals("JoinGroupResponse") || message.equals("LeaveGroupResponse")) {
            // Brokers convert these to the form of the version.
            sent = Release.call(Release.create(response, made, (short) version), "data");
        }
        return generated.sent(message, version, sent);
    }

    private Map<String, Object> printed(Object made, int version) throws Throwable {
        return generated.print(made, version);
    }

    /** A response with an error and nothing else. */
    private Map<String, Object> failed(Throwable thrown) throws Throwable {
        Map<String, Object> found = new LinkedHashMap<>();
        Throwable cause = thrown instanceof java.util.concurrent.CompletionException ? thrown.getCause() : thrown;
        found.put("errorCode", Release.call(Release.callStatic(errors, "forException", cause), "code"));
        return found;
    }

    private Map<String, Object> answer(String name, Map<String, Object> found) throws Throwable {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("answer", name);
        answer.put("error", error(found.getOrDefault("errorCode", (short) 0)));
        return answer;
    }

    String error(Object code) throws Throwable {
        return ((Enum<?>) Release.callStatic(errors, "forCode", code)).name();
    }

    private static Object only(Object made) {
        return ((Iterable<?>) made).iterator().next();
    }

    private static List<Object> rows(Map<String, Object> found, String name) {
        return found == null || found.get(name) == null ? Collections.emptyList() : Values.list(found.get(name));
    }

    private static Object some(Object text) {
        return "".equals(text) ? null : text;
    }

    private static String text(Object hex) {
        return new String(Values.bytes(hex), StandardCharsets.UTF_8);
    }

    static String hex(String text) {
        return Values.hex(ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8)));
    }
}
