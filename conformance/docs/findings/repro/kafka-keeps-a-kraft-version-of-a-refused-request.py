import time

from feature_requests import finalized, update

before = after = finalized()
print("before:", before)
print("kraft.version 1 and x 1: error", update(("kraft.version", 1), ("x", 1)))
end = time.monotonic() + 10  # a broker learns levels from its log
while after == before and time.monotonic() < end:
    after = finalized()
print("after:", after)
