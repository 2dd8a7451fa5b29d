"""Members of a group whose requests wait for their answers, for the scripts beside it. The port is the argument."""

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

    def is_answered(self):
        self.socket.settimeout(5)
        try:
            return bool(self.receive())
        except TimeoutError:
            return False


def join(connection, member, version=4):
    body = text("g") + numbers("ii", 30000, 60000) + text(member) + text("consumer")
    connection.send(11, version, body + numbers("i", 1) + text("range") + numbers("i", 0))


def joined(response):
    """The error, the generation and the id of the member."""
    error, generation = struct.unpack_from(">hi", response, 4)
    at, values = 10, []
    for _ in range(3):  # the protocol, the leader, the member
        (size,) = struct.unpack_from(">h", response, at)
        values.append(response[at + 2 : at + 2 + size].decode())
        at += 2 + size
    return error, generation, values[2]


def sync(connection, generation, member):
    connection.send(14, 0, text("g") + numbers("i", generation) + text(member) + numbers("i", 0))


def lead(connection):
    """Joins the group alone, and returns the id of the member."""
    error = 15
    while error in (14, 15, 16):  # until the coordinator is there
        connection.ask(10, 1, text("g") + b"\0")
        join(connection, "", version=3)
        error, generation, leader = joined(connection.receive())
    sync(connection, generation, leader)
    connection.receive()
    return leader
