"""Requests about feature versions, for the scripts beside it. The port is the first argument."""

import socket
import struct
import sys

connection = socket.create_connection(("localhost", int(sys.argv[1]) if sys.argv[1:] else 9092), 30)


def numbers(form, *values):
    return struct.pack(">" + form, *values)


def compact(value):
    return bytes([1 + len(value)]) + value.encode()


def ask(api, version, body):
    """The body of a response with header version 1, and of ApiVersions."""
    request = numbers("hhi", api, version, 0) + numbers("h", 4) + b"tool" + b"\0" + body
    connection.sendall(numbers("i", len(request)) + request)
    (size,) = struct.unpack(">i", read(4))
    return read(size)[4:]


def read(size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def update(*updates):
    """The top-level error of UpdateFeatures version 2."""
    body = numbers("ib", 60000, 1 + len(updates))
    for name, level in updates:
        body += compact(name) + numbers("hb", level, 1) + b"\0"
    return struct.unpack_from(">h", ask(57, 2, body + b"\0\0"), 5)[0]


def varint(data, at):
    value, shift = data[at] & 127, 7
    while data[at] > 127:
        at += 1
        value, shift = value | (data[at] & 127) << shift, shift + 7
    return value, at + 1


def finalized():
    """From the tagged field 2 of ApiVersions version 3."""
    body = ask(18, 3, compact("tool") + compact("1") + b"\0")
    count, at = varint(body, 2)
    fields, at = varint(body, at + 7 * (count - 1) + 4)
    for _ in range(fields):
        tag, at = varint(body, at)
        size, at = varint(body, at)
        if tag == 2:
            return levels(body[at:])
        at += size


def levels(content):
    found, at = {}, 1
    for _ in range(content[0] - 1):
        start, at = at + 1, at + content[at]
        found[content[start:at].decode()] = struct.unpack_from(">h", content, at)[0]
        at += 5
    return {name: found.get(name, 0) for name in ("metadata.version", "kraft.version")}
