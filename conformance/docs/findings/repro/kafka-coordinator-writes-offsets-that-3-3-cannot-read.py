import struct
import time

from feature_requests import connection, finalized, numbers, read, varint

TOPIC = "__consumer_offsets"
GROUP = "g"  # its partition is 103 % partitions


def text(value):
    return numbers("h", len(value)) + value.encode()


def ask(api, version, body):
    """The body of a response; of ApiVersions version 3 too."""
    request = numbers("hhi", api, version, 0) + text("tool") + body
    connection.sendall(numbers("i", len(request)) + request)
    (size,) = struct.unpack(">i", read(4))
    return read(size)[4:]


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


print("metadata.version", finalized()["metadata.version"])
end = time.monotonic() + 60  # the coordinator creates its topic, and loads it
while (error := struct.unpack_from(">h", ask(10, 0, text(GROUP)))[0] or commit()) and time.monotonic() < end:
    time.sleep(0.2)
print("commit: error", error)
batch = records(103 % 50) or records(0)  # the usual number of partitions, or 1
print("the offset is stored in version", version(batch))
