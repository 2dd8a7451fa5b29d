import struct
import time

from broker_requests import ask, connect, text

ALL = struct.pack(">i", -1)
print("OffsetFetch 5 of no topics:", len(ask(connect(), 9, 5, text("g") + struct.pack(">i", 0))), "bytes")
print("OffsetFetch 5 of all topics:", len(ask(connect(), 9, 5, text("g") + ALL)), "bytes")
time.sleep(1)
try:
    connect()
except ConnectionRefusedError:
    print("the gateway accepts no connection any more")
