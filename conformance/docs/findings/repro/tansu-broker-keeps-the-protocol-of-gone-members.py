import struct

from broker_requests import Joined, answer, data, send, text


def join(group, member="", instance=None, version=5, protocol="range"):
    times = struct.pack(">ii", 10000, 10000)
    body = text(group) + times + text(member) + (text(instance) if version >= 5 else b"") + text("consumer")
    body += struct.pack(">i", 1) + text(protocol) + data(b"x")
    return Joined(version, answer(send(11, version, body)))


only = join("g9", join("g9").member).member
answer(send(13, 0, text("g9") + text(only)))
joined = join("g9", protocol="sticky")
print("the only member has left, and one with another protocol joins: error", joined.error)
