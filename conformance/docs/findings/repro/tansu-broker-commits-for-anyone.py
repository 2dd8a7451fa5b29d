import struct

from broker_requests import answer, join, send, text

group = "g4"
create = struct.pack(">i", 1) + text("topic") + struct.pack(">ihiiib", 1, 1, 0, 0, 10000, 0)
answer(send(19, 1, create))
join(group, join(group).member)
commit = text(group) + struct.pack(">i", 77) + text("a-stranger") + text(None)
commit += struct.pack(">i", 1) + text("topic") + struct.pack(">iiqi", 1, 0, 5, -1) + text(None)
body = answer(send(8, 7, commit))
print("OffsetCommit of a stranger in generation 77: error", *struct.unpack(">h", body[-2:]))
fetch = text(group) + struct.pack(">i", 1) + text("topic") + struct.pack(">ii", 1, 0)
body = answer(send(9, 5, fetch))
at = 4 + 4 + 2 + len("topic") + 4 + 4
print("the offset of the group:", *struct.unpack_from(">q", body, at))
