import struct
import time

from waiting_members import Connection, join, joined, lead, sync, text

a, b, another = Connection(), Connection(), Connection()
leader = lead(a)
join(b, "")
error, _, follower = joined(b.receive())  # MEMBER_ID_REQUIRED
join(b, follower)
time.sleep(1)
join(a, leader)
_, generation, _ = joined(a.receive())
b.receive()
sync(b, generation, follower)
time.sleep(1)  # parked, since the leader has sent no assignment
response = another.ask(13, 0, text("g") + text(follower))
print("LeaveGroup answered: error", struct.unpack(">h", response)[0])
print("SyncGroup answered:", b.is_answered())
