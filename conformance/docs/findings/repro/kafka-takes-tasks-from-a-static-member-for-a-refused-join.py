import socket
import struct
import sys
import time

PORT = int(sys.argv[1]) if sys.argv[1:] else 9092


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def numbers(form, *values):
    return struct.pack(">" + form, *values)


def compact(value):
    return bytes([0 if value is None else len(value) + 1]) + (value or "").encode()


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("localhost", PORT), 30)

    def ask(self, api, version, body):
        request = numbers("hhi", api, version, 0) + text("client") + body
        self.socket.sendall(numbers("i", len(request)) + request)
        (size,) = struct.unpack(">i", self.read(4))
        return self.read(size)[4:]

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.socket.recv(size - len(data))
        return data


class Member:
    """A member of the streams group g, whose topology reads topic t."""

    def __init__(self, id, instance):
        self.id, self.instance, self.epoch, self.tasks = id, instance, 0, ()

    def beat(self):
        topology = b"\xff"
        if not self.epoch:
            topology = b"\1" + numbers("i", 0) + bytes([2]) + compact("s") + bytes([2]) + compact("t")
            topology += bytes([1, 1, 1, 1, 1, 0, 0])
        owned = bytes([1])
        if self.tasks:
            owned = bytes([2]) + compact("s") + bytes([len(self.tasks) + 1])
            owned += numbers(f"{len(self.tasks)}i", *self.tasks) + b"\0"
        body = compact("g") + compact(self.id) + numbers("ii", self.epoch, -1) + compact(self.instance) + compact(None)
        body += numbers("i", 60000) + topology + owned + bytes([1, 1]) + compact(self.id) + b"\xff\0\0\0\0\0"
        found = connection.ask(88, 0, b"\0" + body)
        error, at = struct.unpack_from(">h", found, 5)[0], 7
        for _ in range(2):  # message, member id
            at += max(found[at], 1)
        if error:
            return error
        self.epoch, at = struct.unpack_from(">i", found, at)[0], at + 16
        statuses, at = found[at], at + 1
        for _ in range(statuses - 1):
            at += 1 + found[at + 1] + 1
        if found[at] == 1:
            self.tasks = ()
        elif found[at] == 2:
            at += 1 + found[at + 1]
            self.tasks = tuple(sorted(struct.unpack_from(f">{found[at] - 1}i", found, at + 1)))
        return 0


connection = Connection()
row = text("t") + numbers("ihii", 3, 1, 0, 0)
connection.ask(19, 2, numbers("i", 1) + row + numbers("ib", 15000, 0))
connection.ask(10, 1, text("g") + b"\0")
a, b, c = Member("a", "i"), Member("b", None), Member("c", "i")
while len(a.tasks) < 3:
    a.beat()
    time.sleep(0.2)
print("a joins as instance i, and runs", a.tasks)
for _ in range(15):
    b.beat()
    time.sleep(0.2)
print("b joins: one task of a shall be its own")
print("c joins as instance i: error", c.beat())
a.beat()
print("a may go on with", a.tasks)
