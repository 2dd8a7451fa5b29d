import struct

from mock_requests import answer, mock, send, text

owner, broker = mock()
body = answer(send(broker, 13, 3, text("g") + struct.pack(">i", 1) + text("member") + text(None)))
print("LeaveGroup 3:", len(body), "bytes, where throttle time, error and count take 10")
