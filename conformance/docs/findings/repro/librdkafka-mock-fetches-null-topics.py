import struct

from mock_requests import answer, mock, send, text

owner, broker = mock()
body = answer(send(broker, 9, 5, text("g") + struct.pack(">i", -1)))
print("OffsetFetch 5 of all topics is answered with", *struct.unpack_from(">i", body, 4), "topics")
