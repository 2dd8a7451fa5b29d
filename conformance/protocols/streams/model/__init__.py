"""Kafka Streams groups: rebalance metadata, leaders and members, in KIP-268's draft and in each release."""
