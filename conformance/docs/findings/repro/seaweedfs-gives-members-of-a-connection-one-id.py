import struct

from broker_requests import ask, connect, data, text


def join(client, group):
    """Error, generation and member id."""
    times = struct.pack(">ii", 10000, 10000)
    body = text(group) + times + text("") + text("consumer") + struct.pack(">i", 1) + text("range") + data(b"x")
    found, at = ask(client, 11, 3, body), 10
    for _ in range(3):
        (size,) = struct.unpack_from(">h", found, at)
        at, member = at + 2 + size, found[at + 2 : at + 2 + size].decode()
    return *struct.unpack_from(">hi", found, 4), member


shared, other = connect(), connect()
first, second, third = join(shared, "g"), join(shared, "g"), join(other, "g")
print(
    "two members join over one connection: error",
    second[0],
    "- generation",
    second[1],
    "- one id:",
    first[2] == second[2],
)
print(
    "another member joins over another one: error",
    third[0],
    "- generation",
    third[1],
    "- one id:",
    first[2] == third[2],
)
