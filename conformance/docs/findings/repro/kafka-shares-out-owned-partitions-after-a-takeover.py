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
    return bytes([len(value) + 1]) + value.encode()


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


def error_of(response, at):
    return struct.unpack_from(">h", response, at)[0]


def join(version, instance):
    stated = b"" if version < 5 else text(instance)
    topics = numbers("hi", 1, 1) + text("t") + numbers("ii", -1, 0)
    body = text("g") + numbers("ii", 30000, 60000) + text("") + stated + text("consumer")
    found = classic.ask(11, version, body + numbers("i", 1) + text("range") + numbers("i", len(topics)) + topics)
    generation, at = struct.unpack_from(">i", found, 6)[0], 10
    for _ in range(3):  # protocol, leader, own id
        size = error_of(found, at)
        value, at = found[at + 2 : at + 2 + size].decode(), at + 2 + size
    return generation, value


def sync(generation, id, instance, assigned):
    body = text("g") + numbers("i", generation) + text(id) + instance
    given = numbers("hi", 0, 1) + text("t") + numbers("i", len(assigned)) + numbers(f"{len(assigned)}i", *assigned)
    given += numbers("i", -1)
    shares = numbers("i", 1) + text(id) + numbers("i", len(given)) + given if assigned else numbers("i", 0)
    found = classic.ask(14, 3, body + shares)
    count = struct.unpack_from(">i", found, 10 + 2 + 4 + 2 + 1)[0]
    return struct.unpack_from(f">{count}i", found, 10 + 2 + 4 + 2 + 1 + 4)


def heartbeat(epoch, topics):
    body = compact("g") + compact("a") + numbers("i", epoch) + compact("i") + b"\0" + numbers("i", 30000)
    found = consumer.ask(68, 1, b"\0" + body + topics + b"\0\0" + bytes([1, 0]))
    return struct.unpack_from(">i", found, 8 + found[8])[0]


classic, consumer = Connection(), Connection()
row = text("t") + numbers("ihii", 3, 1, 0, 0)
classic.ask(19, 2, numbers("i", 1) + row + numbers("ib", 15000, 0))
error = 15
while error in (14, 15, 16):  # until the coordinator is there
    classic.ask(10, 1, text("g") + b"\0")
    error = error_of(classic.ask(12, 1, text("g") + numbers("i", 0) + text("nobody")), 4)
no_instance = numbers("h", -1)
generation, x = join(3, "")
print("x, classic, is assigned", sync(generation, x, no_instance, (0, 1, 2)))
epoch = heartbeat(0, bytes([2]) + compact("t"))
time.sleep(1.5)
heartbeat(epoch, b"\0")
print("a joins as instance i, with the consumer protocol: all partitions are still those of x")
again, y = join(5, "i")
print("y joins as instance i, with the classic protocol, and is assigned", sync(again, y, text("i"), ()))
found = classic.ask(12, 3, text("g") + numbers("i", generation) + text(x) + no_instance)
print("x learns that its assignment is no longer valid by a Heartbeat after that: error", error_of(found, 4))
