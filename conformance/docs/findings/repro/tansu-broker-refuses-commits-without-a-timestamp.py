import struct

from broker_requests import answer, send, text

create = struct.pack(">i", 1) + text("topic") + struct.pack(">ihiiib", 1, 1, 0, 0, 10000, 0)
answer(send(19, 1, create))
for timestamp in (1000, -1):
    commit = text("g13") + struct.pack(">i", -1) + text("")
    commit += struct.pack(">i", 1) + text("topic") + struct.pack(">iiqq", 1, 0, 5, timestamp) + text("")
    body = answer(send(8, 1, commit))
    print(f"OffsetCommit 1 with timestamp {timestamp}: error", *struct.unpack(">h", body[-2:]))
