from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConfigurationError

both = [CooperativeStickyAssignor, RangePartitionAssignor]
try:
    KafkaConsumer(bootstrap_servers="127.0.0.1:1", api_version=(2, 5), group_id="g", partition_assignment_strategy=both)
    print("created")
except KafkaConfigurationError as refused:
    print(refused)
