"""The upgrade matrix: which releases of Kafka Streams can replace each other in a running group, and how."""
