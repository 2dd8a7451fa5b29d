import struct

from broker_requests import answer, join, send, text

print("a static member joins: error", join("g5", instance="i").error)
leave = text("g5") + struct.pack(">i", 1) + text("") + text("i")
body = answer(send(13, 3, leave))
print("LeaveGroup of its instance id: error", *struct.unpack(">h", body[-2:]))
