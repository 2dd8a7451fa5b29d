import os
import struct
import sys

from mock_requests import answer, data, mock, send, text


def serve_and_send():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    owner, broker = mock()
    members = []
    for names in (["range", "roundrobin"], ["roundrobin", "range"]):
        body = text("g") + struct.pack(">i", 10000) + text("") + text("consumer") + struct.pack(">i", len(names))
        members.append(send(broker, 11, 0, body + b"".join(text(name) + data(b"x") for name in names)))
    for each in members:
        answer(each)


child = os.fork()
if not child:
    serve_and_send()
    sys.exit()
_, status = os.waitpid(child, 0)
print("the process of the mock cluster was ended by a signal:", os.WIFSIGNALED(status))
