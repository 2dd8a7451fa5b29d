"""Kafka Streams groups: rebalance metadata, who leads and who follows, in KIP-268's draft and release by release."""
