import struct

from mock_requests import answer, mock, send


def compact(value):
    return bytes([len(value) + 1]) + value


owner, broker = mock()
stream = send(broker, 18, 0, b"").makefile("rb")
(size,) = struct.unpack(">i", stream.read(4))
announced = stream.read(size)
versions = {key: most for key, _, most in struct.iter_unpack(">hhh", announced[10:])}
print("JoinGroup is announced up to version", versions[11])
body = b"\0" + compact(b"g") + struct.pack(">ii", 10000, 10000) + compact(b"") + b"\0" + compact(b"consumer")
body += bytes([2]) + compact(b"range") + compact(b"x") + b"\0\0"
print("JoinGroup 6 is answered with", len(answer(send(broker, 11, 6, body))), "bytes")
