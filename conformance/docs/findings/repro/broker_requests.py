"""Requests to a broker of this machine whose port is the argument, for the scripts beside it."""

import socket
import struct
import sys


def text(value):
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def data(value):
    return struct.pack(">i", len(value)) + value


def send(key, version, body):
    """The connection after a request."""
    client = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
    request = struct.pack(">hhi", key, version, 1) + text("client") + body
    client.sendall(data(request))
    return client.makefile("rb")


def answer(stream):
    """The body of the response; empty if the connection was closed."""
    size = stream.read(4)
    return stream.read(*struct.unpack(">i", size))[4:] if size else b""


class Joined:
    """A response to JoinGroup."""

    def __init__(self, version, body):
        self.at, self.body = 4 if version >= 2 else 0, body
        self.error, self.generation = self.number("h"), self.number("i")
        self.protocol, self.leader, self.member = self.text(), self.text(), self.text()
        self.members = self.number("i")

    def number(self, form):
        (found,) = struct.unpack_from(">" + form, self.body, self.at)
        self.at += struct.calcsize(">" + form)
        return found

    def text(self):
        size = self.number("h")
        self.at += size
        return self.body[self.at - size : self.at].decode()


def join(group, member="", instance=None, version=5):
    times = struct.pack(">ii", 10000, 10000)
    body = text(group) + times + text(member) + (text(instance) if version >= 5 else b"") + text("consumer")
    body += struct.pack(">i", 1) + text("range") + data(b"x")
    return Joined(version, answer(send(11, version, body)))


def connect():
    return socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)


def ask(client, key, version, body):
    """The body of the response; empty if the connection was closed."""
    client.sendall(data(struct.pack(">hhi", key, version, 1) + text("client") + body))
    stream = client.makefile("rb")
    size = stream.read(4)
    return stream.read(*struct.unpack(">i", size))[4:] if size else b""
