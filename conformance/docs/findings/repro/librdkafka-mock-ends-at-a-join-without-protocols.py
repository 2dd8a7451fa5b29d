import os
import struct
import sys

from mock_requests import answer, mock, send, text


def serve_and_send():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    owner, broker = mock()
    body = text("g") + struct.pack(">i", 10000) + text("") + text("consumer") + struct.pack(">i", 0)
    answer(send(broker, 11, 0, body))


child = os.fork()
if not child:
    serve_and_send()
    sys.exit()
_, status = os.waitpid(child, 0)
print("the process of the mock cluster was ended by a signal:", os.WIFSIGNALED(status))
