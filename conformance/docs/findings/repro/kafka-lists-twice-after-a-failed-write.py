import socket
import struct
import sys

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


def commit(offset):
    body = text("lags") + numbers("i", -1) + text("") + numbers("qi", -1, 1)
    response = client.ask(8, 2, body + text("t") + numbers("iiq", 1, 0, offset) + text(""))
    return struct.unpack(">h", response[-2:])[0]


def set_largest_batch(operation, value):
    body = numbers("ib", 1, 2) + text("__consumer_offsets") + numbers("i", 1) + text("max.message.bytes")
    client.ask(44, 0, body + bytes([operation]) + value + b"\0")


def show_offsets():
    response = client.ask(9, 2, text("lags") + numbers("i", -1))
    (count,) = struct.unpack_from(">i", response, 7)  # after one topic, t
    for at in range(11, 11 + 16 * count, 16):
        partition, offset = struct.unpack_from(">iq", response, at)
        print(f"  t-{partition} at {offset}")


client = Connection()
client.ask(19, 2, numbers("i", 1) + text("t") + numbers("ihiii?", 1, 1, 0, 0, 30000, False))
error = 15
while error in (3, 14, 15, 16):  # until the coordinator is there
    client.ask(10, 1, text("lags") + b"\0")
    error = commit(8)
print("commit of 8: error", error)
show_offsets()
set_largest_batch(0, text("0"))
print("commit of 9: error", commit(9))
show_offsets()
set_largest_batch(1, numbers("h", -1))
