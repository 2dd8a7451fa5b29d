from kafka.protocol.consumer.group import HeartbeatResponse

response = HeartbeatResponse.decode(bytes.fromhex("00000000000001070161"), version=4)
print(bytes(response.encode()).hex())
