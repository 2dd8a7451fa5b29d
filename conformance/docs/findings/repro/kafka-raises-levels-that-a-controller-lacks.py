import socket
import sys
import time

from feature_requests import finalized, update

OTHER = int(sys.argv[2]) if sys.argv[2:] else 9093


def runs(port):
    try:
        socket.create_connection(("localhost", port), 5).close()
    except OSError:
        return False
    return True


before = after = finalized()["metadata.version"]
print("metadata.version", before, "and the controller of 3.6.2", "runs" if runs(OTHER) else "is down")
print("metadata.version 30: error", update(("metadata.version", 30)))
end = time.monotonic() + 60  # nodes learn levels from their logs
while (after == before or runs(OTHER)) and time.monotonic() < end:
    after = finalized()["metadata.version"]
    time.sleep(0.2)
print("metadata.version", after, "and the controller of 3.6.2", "runs" if runs(OTHER) else "is down")
