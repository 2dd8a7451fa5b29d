from kafka.protocol.admin import ListGroupsRequest

print(ListGroupsRequest.decode(bytes.fromhex("010001"), version=3))
