import struct

from broker_requests import answer, join, send, text

join("g7", join("g7").member)
body = answer(send(42, 0, struct.pack(">i", 1) + text("g7")))
print("DeleteGroups of a group with a member: error", *struct.unpack(">h", body[-2:]))
