from kafka.protocol.consumer.group import SyncGroupResponse

print(SyncGroupResponse.decode(bytes.fromhex("000000000001"), version=0))
