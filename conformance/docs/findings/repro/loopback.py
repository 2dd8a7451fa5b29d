"""A broker on the loopback interface with one group and no records, for the scripts beside it."""

import socketserver
import struct
import threading

VERSIONS = {1: (4, 4), 2: (1, 1), 3: (1, 1), 8: (2, 2), 9: (1, 1), 10: (0, 0), 11: (2, 5), 12: (1, 3)}
VERSIONS |= {13: (0, 0), 14: (1, 3), 18: (0, 0), 29: (2, 2)}  # of each API; the answers are alike in all of them


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


class Broker(socketserver.ThreadingTCPServer):
    """The only broker of a cluster, and the coordinator of a group that someone else leads."""

    daemon_threads, joins, beats, given, protocol = True, 0, 0, [0], "range"

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Connection)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.address = f"127.0.0.1:{self.server_address[1]}"

    def heartbeat(self):
        return 0

    def join(self, request):
        self.joins += 1

    def sync(self, request):
        pass

    def answer(self, key, request):
        node = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">i", self.server_address[1])
        if key == 3:  # Metadata: this broker; t-0, which has no leader
            topic = struct.pack(">h", 0) + text("t") + struct.pack(">?ihiiii", False, 1, 5, 0, -1, 0, 0)
            return struct.pack(">i", 1) + node + struct.pack(">hii", -1, 1, 1) + topic
        if key == 10:  # FindCoordinator: this broker
            return struct.pack(">h", 0) + node
        if key == 11:  # JoinGroup: a follower
            self.join(request)
            ids = text(self.protocol) + text("leader") + text("follower")
            return struct.pack(">ihi", 0, 0, self.joins) + ids + struct.pack(">i", 0)
        if key == 14:  # SyncGroup: partitions of t
            self.sync(request)
            partitions = struct.pack(f">i{len(self.given)}ii", len(self.given), *self.given, -1)
            given = struct.pack(">hi", 0, 1) + text("t") + partitions
            return struct.pack(">ihi", 0, 0, len(given)) + given
        if key == 12:
            self.beats += 1
            return struct.pack(">ih", 0, self.heartbeat())
        return struct.pack(">h" if key == 13 else ">i", 0)  # LeaveGroup; OffsetCommit and OffsetFetch: no partitions


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        while size := self.rfile.read(4):
            request = self.rfile.read(*struct.unpack(">i", size))
            key, version, correlation, skipped = struct.unpack_from(">hhih", request)
            if key == 18:  # ApiVersions
                answer = struct.pack(">hi", 35 if version else 0, len(VERSIONS))
                answer += b"".join(struct.pack(">hhh", each, *span) for each, span in VERSIONS.items())
            else:
                answer = self.server.answer(key, request[10 + skipped :])
            self.wfile.write(struct.pack(">ii", 4 + len(answer), correlation) + answer)
