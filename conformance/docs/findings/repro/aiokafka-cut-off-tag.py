from aiokafka.protocol.api import ResponseHeader_v1

header = ResponseHeader_v1.decode(bytes.fromhex("00000000010001"))
print(header.correlation_id, header.tags)
