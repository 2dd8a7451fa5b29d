import struct
import time

from broker_requests import ask, connect, text


def commit(topic, version):
    body = (
        text("g")
        + (struct.pack(">i", -1) + text("m") if version else b"")
        + (struct.pack(">q", -1) if version == 2 else b"")
    )
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">iiq", 1, 0, 5)
    return ask(connect(), 8, version, body + (struct.pack(">q", -1) if version == 1 else b"") + text(""))


def committed(topic):
    found = ask(connect(), 9, 1, text("g") + struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, 0))
    return struct.unpack_from(">q", found, len(found) - 12)[0]


for version in (1, 2):
    commit("t", version)
    print(f"OffsetCommit {version} of t: the offset is", committed("t"))
print("OffsetCommit 1 of orders:", len(commit("orders", 1)), "bytes")
time.sleep(1)
try:
    connect()
except ConnectionRefusedError:
    print("the gateway accepts no connection any more")
