from kafka.protocol.admin import ListGroupsRequest

print(ListGroupsRequest.decode(bytes.fromhex("81808080800000"), version=4))
