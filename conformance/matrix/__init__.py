"""The matrix of upgrades: which release of Kafka Streams can take another's place in a group that goes on, and how."""
