import struct

from broker_requests import answer, send, text

body = answer(send(13, 1, text("g12") + text("a-stranger")))
print("LeaveGroup 1 of a stranger: error", *struct.unpack(">h", body[-2:]))
