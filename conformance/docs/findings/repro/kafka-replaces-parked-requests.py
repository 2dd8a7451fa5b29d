import time

from waiting_members import Connection, join, joined, lead

a, b, another = Connection(), Connection(), Connection()
leader = lead(a)
join(b, "")
error, _, follower = joined(b.receive())  # MEMBER_ID_REQUIRED
join(b, follower)
time.sleep(1)  # parked, since the leader has not joined again
join(another, follower)
time.sleep(1)
join(a, leader)
print("second answered:", another.is_answered())
print("first answered:", b.is_answered())
