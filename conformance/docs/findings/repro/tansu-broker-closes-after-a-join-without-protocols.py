import struct

from broker_requests import answer, send, text

body = text("g6") + struct.pack(">ii", 10000, 10000) + text("") + text(None) + text("consumer") + struct.pack(">i", 0)
found = answer(send(11, 5, body))
print("JoinGroup without protocols:", f"{len(found)} bytes" if found else "the connection was closed")
