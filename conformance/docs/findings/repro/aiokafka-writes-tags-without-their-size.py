from aiokafka.protocol.api import ResponseHeader_v1

header = ResponseHeader_v1.decode(bytes.fromhex("00000000010601c8"))
print(header.tags)
print(header.encode().hex())
