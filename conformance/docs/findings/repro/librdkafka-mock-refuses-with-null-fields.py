import struct

from mock_requests import answer, mock, send, text

owner, broker = mock()
body = answer(send(broker, 14, 0, text("g") + struct.pack(">i", 1) + text("member") + struct.pack(">i", 0)))
error, size = struct.unpack(">hi", body)
print("SyncGroup 0 is refused with error", error, "and an assignment of", size, "bytes")
