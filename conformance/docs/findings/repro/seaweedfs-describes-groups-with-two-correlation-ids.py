import struct

from broker_requests import ask, connect, data, text

times = struct.pack(">ii", 10000, 10000)
body = text("g") + times + text("") + text("consumer") + struct.pack(">i", 1) + text("range") + data(b"x")
print("a member joins: error", *struct.unpack_from(">h", ask(connect(), 11, 3, body), 4))
listed = ask(connect(), 16, 2, b"")
print(
    "ListGroups 2: throttle time", *struct.unpack_from(">i", listed), "- groups", *struct.unpack_from(">i", listed, 6)
)
described = ask(connect(), 15, 0, struct.pack(">i", 1) + text("g"))
print("DescribeGroups 0 of one group: groups", *struct.unpack_from(">i", described), "- then", described[4:8].hex())
