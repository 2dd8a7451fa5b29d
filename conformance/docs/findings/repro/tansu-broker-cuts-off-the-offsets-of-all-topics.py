import struct

from broker_requests import answer, send, text

body = answer(send(9, 5, text("g8") + struct.pack(">i", -1)))
print("OffsetFetch 5 of all topics:", len(body), "bytes, where throttle time, count and error take 10")
