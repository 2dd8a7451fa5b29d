from kafka.protocol.consumer.group import LeaveGroupRequest

print(LeaveGroupRequest.decode(bytes.fromhex("00000001"), version=0))
