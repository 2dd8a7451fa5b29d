"""Requests to the mock cluster of librdkafka, for the scripts beside it."""

import socket
import struct

from confluent_kafka import Producer


def text(value):
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def data(value):
    return struct.pack(">i", len(value)) + value


def send(broker, key, version, body):
    """The connection after a request."""
    client = socket.create_connection((broker.host, broker.port), 10)
    client.sendall(data(struct.pack(">hhi", key, version, 1) + text("client") + body))
    return client


def answer(client):
    """The body of the response; empty if the connection was closed."""
    stream = client.makefile("rb")
    size = stream.read(4)
    return stream.read(*struct.unpack(">i", size))[4:] if size else b""


def mock():
    owner = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = owner.list_topics(timeout=30).brokers.values()
    return owner, broker
