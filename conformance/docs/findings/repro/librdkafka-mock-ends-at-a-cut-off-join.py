import os
import socket
import struct
import sys

from confluent_kafka import Producer


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def serve_and_send():
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=30).brokers.values()
    for count in (3, 100, 1000) * 100:
        body = text("g") + struct.pack(">i", 10000) + text("") + text("consumer") + struct.pack(">i", count)
        request = struct.pack(">hhi", 11, 0, 1) + text("client") + body + text("range")
        client = socket.create_connection((broker.host, broker.port), 10)
        client.sendall(struct.pack(">i", len(request)) + request)
        client.recv(1)


child = os.fork()
if not child:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    serve_and_send()
    sys.exit()
_, status = os.waitpid(child, 0)
print("the process of the mock cluster was ended by a signal:", os.WIFSIGNALED(status))
