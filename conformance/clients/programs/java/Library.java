package kipcheck;

import java.util.Map;

/** The codecs of one release: selects the codec for a message. */
final class Library {
    final Release release;
    private final Generated generated;
    private final Codec streams;
    private final Consumers consumers;
    final Rows rows;
    final Leader leader;
    final Coordinator coordinator;
    final StreamsGroups streamsGroups;
    final Features features;
    final Persisted persisted;
    final BrokerSettings settings;
    private final LogFiles files;
    final TimestampedStores stores;
    private final ZooKeeperNodes nodes;
    final ZooKeeperFeatures zooKeeperFeatures;

    Library(Release release, Map<String, Object> names) {
        this.release = release;
        this.generated = new Generated(release);
        this.streams = new Streams(release, generated, false);
        this.consumers = new Consumers(release);
        this.rows = new Rows(release, names);
        this.leader = new Leader(release, consumers);
        this.coordinator = new Coordinator(release, generated);
        this.streamsGroups = new StreamsGroups(release, leader);
        this.features = new Features(release);
        this.persisted = new Persisted(release);
        this.settings = new BrokerSettings(release);
        this.files = new LogFiles(release);
        this.stores = new TimestampedStores(release);
        this.nodes = new ZooKeeperNodes(release);
        this.zooKeeperFeatures = new ZooKeeperFeatures(release, generated, nodes);
    }

    /**
     * The codec for a message.
     *
     * @param assembled use the classes that applications use, which contain sets and maps, even
     *     where a generated class would keep the order of elements
     */
    Codec codec(String message, boolean assembled) {
        switch (message) {
            case "SubscriptionInfo":
            case "AssignmentInfo":
                return assembled ? new Streams(release, generated, true) : streams;
            case "ConsumerProtocolSubscription":
            case "ConsumerProtocolAssignment":
                return assembled || !generated.knows(message) ? consumers : generated;
            case "StickyAssignorUserData":
            case "CooperativeStickyAssignorUserData":
                return consumers;
            case "ValueAndTimestamp":
                return new Stores(release);
            case "ProducerSnapshot":
            case "LeaderEpochCheckpoint":
            case "CleanerCheckpoint":
            case "PartitionMetadata":
                return files;
            case ZooKeeperNodes.REGISTRATION:
            case ZooKeeperNodes.FEATURES:
                return nodes;
            default:
                if (rows.used() && rows.knows(message)) {
                    return rows;
                }
                if (!generated.knows(message)) {
                    throw new Release.Unsupported(release.name + " has no " + message + " with a codec of its own");
                }
                return generated;
        }
    }
}
