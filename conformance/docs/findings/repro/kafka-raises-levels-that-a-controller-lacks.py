import socket
import struct
import sys
import time

PORT, OTHER = map(int, sys.argv[1:]) if sys.argv[2:] else (9092, 9093)


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


def update(name, level):
    """The top-level error of UpdateFeatures version 2."""
    body = numbers("ib", 60000, 2) + compact(name) + numbers("hb", level, 1) + b"\0"
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
    return found["metadata.version"]


def runs(port):
    try:
        socket.create_connection(("localhost", port), 5).close()
    except OSError:
        return False
    return True


connection = socket.create_connection(("localhost", PORT), 30)
before = after = finalized()
print("metadata.version", before, "and the controller of 3.6.2", "runs" if runs(OTHER) else "is down")
print("metadata.version 30: error", update("metadata.version", 30))
end = time.monotonic() + 60  # nodes learn levels from their logs
while (after == before or runs(OTHER)) and time.monotonic() < end:
    after = finalized()
    time.sleep(0.2)
print("metadata.version", after, "and the controller of 3.6.2", "runs" if runs(OTHER) else "is down")
