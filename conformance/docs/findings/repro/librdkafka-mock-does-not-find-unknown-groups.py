import struct

from mock_requests import answer, mock, send, text

owner, broker = mock()
body = answer(send(broker, 12, 1, text("g") + struct.pack(">i", 1) + text("member")))
print("Heartbeat to a group that does not exist: error", *struct.unpack_from(">h", body, 4))
