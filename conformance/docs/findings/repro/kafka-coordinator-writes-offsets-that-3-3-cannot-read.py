import socket
import struct
import sys
import time

PORT = int(sys.argv[1]) if sys.argv[1:] else 9092
TOPIC = "__consumer_offsets"
GROUP = "g"  # its partition is 103 % partitions


def numbers(form, *values):
    return struct.pack(">" + form, *values)


def text(value):
    return numbers("h", len(value)) + value.encode()


def ask(api, version, body):
    """The body of a response; of ApiVersions version 3 too."""
    request = numbers("hhi", api, version, 0) + text("tool") + body
    connection.sendall(numbers("i", len(request)) + request)
    (size,) = struct.unpack(">i", read(4))
    return read(size)[4:]


def read(size):
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def varint(data, at, shift=0, value=0):
    while True:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def finalized():
    """The level of metadata.version, from the tagged field 2 of ApiVersions version 3."""
    body = ask(18, 3, b"\0" + b"\5tool" + b"\2" + b"1" + b"\0")
    count, at = varint(body, 2)
    at += 7 * (count - 1) + 4
    fields, at = varint(body, at)
    for _ in range(fields):
        tag, at = varint(body, at)
        size, at = varint(body, at)
        if tag == 2:
            name = body.index(b"metadata.version", at) + len("metadata.version")
            return struct.unpack_from(">h", body, name)[0]
        at += size


def commit():
    """The error of an OffsetCommit version 2: partition 0 of the offsets topic itself, offset 5."""
    row = numbers("iiqh", 1, 0, 5, 0)
    body = text(GROUP) + numbers("i", -1) + text("") + numbers("q", -1) + numbers("i", 1) + text(TOPIC) + row
    return struct.unpack_from(">h", ask(8, 2, body), 4 + 2 + len(TOPIC) + 4 + 4)[0]


def records(partition):
    """The first batch of a partition, by Fetch version 4."""
    body = numbers("iiiibi", -1, 1000, 1, 1 << 20, 0, 1) + text(TOPIC) + numbers("iiqi", 1, partition, 0, 1 << 20)
    found = ask(1, 4, body)
    at = 4 + 4 + 2 + len(TOPIC) + 4 + 4 + 2 + 8 + 8
    (aborted,) = struct.unpack_from(">i", found, at)
    return found[at + 4 + 16 * max(aborted, 0) + 4 :]


def version(batch):
    """That of the value of its first record: 61 bytes of header, and varints in zigzag."""
    _, at = varint(batch, 61)
    at += 1  # attributes
    for _ in range(2):  # timestamp, offset
        _, at = varint(batch, at)
    key, at = varint(batch, at)
    _, at = varint(batch, at + key // 2)
    return struct.unpack_from(">h", batch, at)[0]


connection = socket.create_connection(("localhost", PORT), 30)
print("metadata.version", finalized())
end = time.monotonic() + 60  # the coordinator creates its topic, and loads it
while (error := struct.unpack_from(">h", ask(10, 0, text(GROUP)))[0] or commit()) and time.monotonic() < end:
    time.sleep(0.2)
print("commit: error", error)
batch = records(103 % 50) or records(0)  # the usual number of partitions, or 1
print("the offset is stored in version", version(batch))
