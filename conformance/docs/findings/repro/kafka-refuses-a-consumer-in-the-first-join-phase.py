import socket
import struct
import sys
import time

PORT = int(sys.argv[1]) if sys.argv[1:] else 9092


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def numbers(form, *values):
    return struct.pack(">" + form, *values)


def compact(value):
    return bytes([len(value) + 1]) + value.encode()


class Connection:
    def __init__(self):
        self.socket = socket.create_connection(("localhost", PORT), 30)

    def send(self, api, version, body):
        request = numbers("hhi", api, version, 0) + text("client") + body
        self.socket.sendall(numbers("i", len(request)) + request)

    def receive(self):
        (size,) = struct.unpack(">i", self.read(4))
        return self.read(size)[4:]

    def read(self, size):
        data = b""
        while len(data) < size:
            data += self.socket.recv(size - len(data))
        return data

    def ask(self, api, version, body):
        self.send(api, version, body)
        return self.receive()


def error_of(response, at):
    return struct.unpack_from(">h", response, at)[0]


client, member, consumer = Connection(), Connection(), Connection()
error = 15
while error in (14, 15, 16):  # until the coordinator is there
    client.ask(10, 1, text("g") + b"\0")
    error = error_of(client.ask(12, 1, text("g") + numbers("i", 0) + text("nobody")), 4)
topics = numbers("hi", 0, 1) + text("t") + numbers("i", -1)
body = text("g") + numbers("ii", 30000, 60000) + text("") + text("consumer")
member.send(11, 3, body + numbers("i", 1) + text("range") + numbers("i", len(topics)) + topics)
time.sleep(0.5)
heartbeat = b"\0" + compact("g") + compact("a") + numbers("i", 0) + b"\0\0" + numbers("i", 30000)
response = consumer.ask(68, 1, heartbeat + bytes([2]) + compact("t") + b"\0\0" + bytes([1, 0]))
print("ConsumerGroupHeartbeat of the consumer: error", error_of(response, 5))
print("JoinGroup of the classic member: error", error_of(member.receive(), 4))
