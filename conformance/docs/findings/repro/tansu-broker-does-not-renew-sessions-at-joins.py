import struct
import time

from broker_requests import Joined, answer, data, send, text


def join(group, member="", instance=None, version=5):
    times = struct.pack(">ii", 3000, 10000)
    body = text(group) + times + text(member) + (text(instance) if version >= 5 else b"") + text("consumer")
    body += struct.pack(">i", 1) + text("range") + data(b"x")
    return Joined(version, answer(send(11, version, body)))


asked = join("g10")
time.sleep(2)
joined = join("g10", asked.member)
print("a member with a session of 3 s joins: error", joined.error)
time.sleep(2)
sync = text("g10") + struct.pack(">i", joined.generation) + text(joined.member) + text(None)
sync += struct.pack(">i", 1) + text(joined.member) + data(b"x")
body = answer(send(14, 3, sync))
print("2 s later it sends a SyncGroup: error", *struct.unpack_from(">h", body, 4))
