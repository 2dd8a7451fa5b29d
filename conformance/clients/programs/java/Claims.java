package kipcheck;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** The capabilities of the first jar of a release: messages with their versions, and assignors. */
final class Claims {
    private static final String[] HAND_WRITTEN = {
        "SubscriptionInfo", "org/apache/kafka/streams/processor/internals/assignment/SubscriptionInfo",
        "AssignmentInfo", "org/apache/kafka/streams/processor/internals/assignment/AssignmentInfo",
        "ValueAndTimestamp", "org/apache/kafka/streams/state/internals/ValueAndTimestampSerializer",
        "ConsumerProtocolSubscription", "org/apache/kafka/clients/consumer/internals/ConsumerProtocol",
        "ConsumerProtocolAssignment", "org/apache/kafka/clients/consumer/internals/ConsumerProtocol",
        "StickyAssignorUserData", "org/apache/kafka/clients/consumer/StickyAssignor",
        "CooperativeStickyAssignorUserData", "org/apache/kafka/clients/consumer/CooperativeStickyAssignor",
        ZooKeeperNodes.REGISTRATION, "kafka/zk/BrokerIdZNode",
        ZooKeeperNodes.FEATURES, "kafka/zk/FeatureZNode",
    };

    /** The limits, as a result names them. */
    static final String FIELDS = "fields";
    static final String VALUES = "values";
    static final String VERSIONS = "versions";
    static final String BROKER = "broker";
    static final String FLUSHES = "flushes";
    static final String STORE_HEADERS = "store-headers";
    static final String RECORDS = "records";

    private final Map<String, Integer> stable;
    private final Map<String, Object> messages = new TreeMap<>();
    private final Map<String, Object> missing = new TreeMap<>();
    private final List<String> assignors = new ArrayList<>();
    private final boolean coordinates;
    private final boolean groups;
    private final boolean streamsGroups;
    private final boolean shareGroups;
    private final boolean controls;
    private final boolean stores;
    private final boolean storesHeaders;
    private final boolean persists;
    private final boolean controlsZooKeeper;

    Claims(Library library) {
        Set<String> classes = library.release.classes();
        stable = stable(library.release);
        Set<String> named = new TreeSet<>();
        for (String each : classes) {
            String message = library.rows.used() ? null : Generated.message(each);
            if (message != null) {
                named.add(message);
            }
        }
        for (int i = 0; i < HAND_WRITTEN.length; i += 2) {
            if (classes.contains(HAND_WRITTEN[i + 1])) {
                named.add(HAND_WRITTEN[i]);
            }
        }
        LogFiles.CLASSES.forEach((file, names) -> {
            if (names.stream().anyMatch(each -> classes.contains(each.replace('.', '/')))) {
                named.add(file);
            }
        });
        if (library.rows.used() && classes.contains("org/apache/kafka/common/protocol/ApiKeys")) {
            rows(library);
        }
        for (String each : named) {
            claim(library, each);
        }
        for (String each : Leader.ASSIGNORS.keySet()) {
            if (classes.contains(Leader.ASSIGNORS.get(each).replace('.', '/'))) {
                assignors.add(each);
            }
        }
        if (StreamsGroups.CLASSES.stream().anyMatch(each -> classes.contains(each.replace('.', '/')))) {
            assignors.add(StreamsGroups.ASSIGNOR);
        }
        coordinates = classes.contains("org/apache/kafka/coordinator/group/GroupCoordinatorService")
            && library.coordinator.available();
        groups = coordinates && library.coordinator.hasConsumerGroups();
        streamsGroups = groups && library.coordinator.hasStreamsGroups();
        shareGroups = groups && library.coordinator.hasShareGroups();
        controls = classes.contains("org/apache/kafka/controller/FeatureControlManager")
            && library.features.available();
        stores = library.stores.available();
        storesHeaders = library.stores.haveHeaders();
        persists = library.persisted.available(classes);
        controlsZooKeeper = classes.contains("kafka/zk/FeatureZNode") && library.zooKeeperFeatures.available();
    }

    /** The newest stable version of requests and responses; an unstable one may follow it. */
    private static Map<String, Integer> stable(Release release) {
        Map<String, Integer> found = new TreeMap<>();
        Class<?> apis = release.find("org.apache.kafka.common.message.ApiMessageType");
        if (apis == null || !Release.has(apis, "latestVersionUnstable")) {
            return found;
        }
        try {
            for (Object api : apis.getEnumConstants()) {
                String name = (String) Release.need(apis, "name").get(api);
                int highest = (Short) Release.call(api, "highestSupportedVersion", false);
                found.put(name + "Request", highest);
                found.put(name + "Response", highest);
            }
        } catch (Throwable unlike) {
            throw new IllegalStateException(release.name + " stores its versions in an unknown place", unlike);
        }
        return found;
    }

    private void rows(Library library) {
        try {
            for (String each : library.rows.schemas().keySet()) {
                int[] versions = library.rows.versions(each);
                messages.put(each, List.of(versions[0], versions[1]));
                List<Integer> gaps = new ArrayList<>();
                for (int version = versions[0]; version < versions[1]; version++) {
                    if (!library.rows.schemas().get(each).containsKey(version)) {
                        gaps.add(version);
                    }
                }
                if (!gaps.isEmpty()) {
                    missing.put(each, gaps);
                }
            }
        } catch (Throwable unlike) {
            throw new IllegalStateException(library.release.name + " stores its schemas in an unknown place", unlike);
        }
    }

    private void claim(Library library, String message) {
        try {
            int[] versions = library.codec(message, false).versions(message);
            int high = Math.min(versions[1], stable.getOrDefault(message, versions[1]));
            if (versions[0] <= high) {
                messages.put(message, List.of(versions[0], high));
            }
        } catch (Throwable none) {
            // A class that is not a message with versions, or a removed message.
            return;
        }
    }

    Map<String, Object> messages() {
        return messages;
    }

    Map<String, String> limits() {
        Map<String, String> limits = new TreeMap<>();
        limits.put(FIELDS, "its classes cannot represent fields that this release does not know");
        limits.put(VALUES, "sets, maps and strings lose the order, repeated elements and invalid text");
        if (coordinates) {
            limits.put(VERSIONS, "a broker closes the connection at a request in a version that it does not support");
            limits.put(BROKER, "requests that the broker itself refuses do not reach its coordinator");
        }
        if (controlsZooKeeper) {
            limits.put(VERSIONS, "a broker closes the connection at a request in a version that it does not support");
            limits.put(ZooKeeperFeatures.API, "what the server of a broker does by itself is not played");
        }
        if (stores) {
            limits.put(FLUSHES, "up to 2.8 RocksDB reports no flushes, so no process can be killed within one");
        }
        if (stores && !storesHeaders) {
            limits.put(STORE_HEADERS, "before 4.3 no store has headers");
        }
        if (persists) {
            limits.put(RECORDS, "requests that a broker refuses by the level of a feature do not reach its coordinator");
        }
        return limits;
    }

    /** For some messages, the versions missing within their range. */
    Map<String, Object> missing() {
        return missing;
    }

    List<String> assignors() {
        return assignors;
    }

    List<String> machines() {
        List<String> machines = new ArrayList<>();
        if (coordinates) {
            machines.add("group");
        }
        if (groups) {
            machines.add("consumer-group");
            machines.add("migration");
        }
        if (streamsGroups) {
            machines.add("streams-group");
        }
        if (shareGroups) {
            machines.add("share-group");
        }
        if (controls) {
            machines.add("kraft-features");
        }
        if (controlsZooKeeper) {
            machines.add("zookeeper-features");
        }
        if (stores) {
            machines.add("timestamped-store");
        }
        if (persists) {
            machines.add("stored-records");
        }
        return machines;
    }

    List<String> roles() {
        List<String> roles = new ArrayList<>();
        if (!messages.isEmpty()) {
            roles.add("codec");
        }
        if (!assignors.isEmpty()) {
            roles.add("leader");
        }
        if (assignors.contains(StreamsGroups.ASSIGNOR)) {
            roles.add("member");
        }
        if (coordinates) {
            roles.add("coordinator");
        }
        if (controls || controlsZooKeeper) {
            roles.add("controller");
        }
        if (stores) {
            roles.add("store");
        }
        if (persists) {
            roles.add("broker");
        }
        return roles;
    }
}
