import socket
import struct
import sys
import time

PORT = int(sys.argv[1]) if sys.argv[1:] else 9092


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def numbers(form, *values):
    return struct.pack(">" + form, *values)


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("localhost", PORT), 30)

    def send(self, api, version, body):
        request = numbers("hhi", api, version, 0) + text("client") + body
        self.socket.sendall(numbers("i", len(request)) + request)

    def receive(self):
        (size,) = struct.unpack(">i", self.read(4))
        return self.read(size)[4:]

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.socket.recv(size - len(data))
        return data

    def ask(self, api, version, body):
        self.send(api, version, body)
        return self.receive()


def join(connection, session_ms, version):
    body = text("g") + numbers("ii", session_ms, 60000) + text("") + text("consumer")
    connection.send(11, version, body + numbers("i", 1) + text("range") + numbers("i", 0))


a, b = Connection(), Connection()
error = 15
while error in (14, 15, 16):  # until the coordinator is there
    a.ask(10, 1, text("g") + b"\0")
    join(a, 6000, version=4)
    (error,) = struct.unpack_from(">h", a.receive(), 4)
print("JoinGroup of a answered: error", error)  # 79, MEMBER_ID_REQUIRED; a does not use the id
time.sleep(5)
begun = time.monotonic()
join(b, 30000, version=3)
b.receive()
print(f"JoinGroup of b answered after {time.monotonic() - begun:.0f} s")
