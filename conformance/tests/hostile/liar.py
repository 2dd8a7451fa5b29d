"""A broker that lies, on loopback: ``python liar.py KIND`` prints its port. It ends when it is killed."""

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Connection
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics

NAMED = "apache@3.9.2"
FIRST = {
    "drips": b"\0\0\1\0",
    "speaks HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "announces 2 GiB": b"\x7f\xff\xff\xff",
}


class SilentAfter(Broker):
    left = 0

    def received(self, request: Received, connection: Connection) -> None:
        self.left -= 1
        if self.left >= 0:
            super().received(request, connection)


async def main(kind: str) -> None:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            if kind == "closes":
                return writer.close()
            data = await reader.read(1 << 16)
            writer.write(data if kind == "echoes" else FIRST.get(kind, b""))
            while kind == "drips":
                await asyncio.sleep(0.2)
                writer.write(b"\0")
            await asyncio.sleep(3600)

    if kind.startswith("silent after "):
        broker = SilentAfter(edition(NAMED), Topics.of([("t", 3)]))
        broker.left = int(kind.split()[-1])
        _, port = await Front(broker, edition(NAMED)).listen("127.0.0.1", 0)
    else:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
    print(port, flush=True)
    await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
