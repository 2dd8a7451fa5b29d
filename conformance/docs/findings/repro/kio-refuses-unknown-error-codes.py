from kio.schema.heartbeat.v0.response import HeartbeatResponse
from kio.serial import entity_reader

try:
    print(entity_reader(HeartbeatResponse)(bytes.fromhex("0086"), 0))
except ValueError as trouble:
    print(trouble)
