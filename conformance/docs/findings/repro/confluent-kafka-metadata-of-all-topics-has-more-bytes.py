import socketserver
import struct
import threading

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

found = threading.Event()


class Broker(socketserver.StreamRequestHandler):
    """Supports ApiVersions and Metadata; answers the first, and shows the second if it is for all topics."""

    def handle(self):
        while size := self.rfile.read(4):
            request = self.rfile.read(*struct.unpack(">i", size))
            key, version, correlation, skipped = struct.unpack_from(">hhih", request)
            body = request[10 + skipped + 1 :]
            if key == 18:
                apis = b"".join(struct.pack(">hhhb", *each, 0) for each in ((3, 0, 13), (18, 0, 3)))
                answer = struct.pack(">ihb", correlation, 0, 3) + apis + struct.pack(">ib", 0, 0)
                self.wfile.write(struct.pack(">i", len(answer)) + answer)
            elif body[0] == 0 and not found.is_set():
                print(f"Metadata v{version}", body.hex(" "))
                found.set()


server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Broker)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
client = AdminClient({"bootstrap.servers": f"127.0.0.1:{server.server_address[1]}", "log_level": 0})
try:
    client.list_topics(timeout=3)
except KafkaException:
    found.wait(5)
