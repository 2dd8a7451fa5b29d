from kio.schema.heartbeat.v4.response import HeartbeatResponse
from kio.serial import entity_reader

try:
    print(entity_reader(HeartbeatResponse)(bytes.fromhex("00000000000001070161"), 0))
except KeyError as trouble:
    print(repr(trouble))
