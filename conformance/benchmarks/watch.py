"""Measures ``kipcheck watch``: what the proxy adds to the time of a heartbeat, and how fast a capture is read.

``python -m kipcheck.conformance.benchmarks.watch [HOST:PORT]``; an address is that of another broker. Direct
and proxied requests alternate in one run, so that their ratio does not depend on what else the machine does.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kipcheck.conformance.benchmarks.front import BEAT, Client
from kipcheck.conformance.core.edition import APACHE, edition
from kipcheck.conformance.core.release import NEWEST
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.front import Front
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.live.watch.capture_input import watch_capture
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.wire.framing import encode_request, encode_response, frame
from kipcheck.conformance.wire.pcap import Conversation, Sent, file_header, record

REQUESTS = 3000
CAPTURED = 20_000
"""Heartbeats of the capture; each exchange is four packets."""


async def latencies(host: str, port: int) -> tuple[list[float], list[float]]:
    """Seconds of each heartbeat, direct and through a proxy, in turns."""
    proxy = Proxy((host, port), Watcher(APACHE, lambda line: None))
    own = await proxy.listen("127.0.0.1", 0)
    clients = [Client(*await asyncio.open_connection(*where)) for where in ((host, port), own)]
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(REQUESTS):
        for client, times in zip(clients, found, strict=True):
            began = time.perf_counter()
            await client.ask("Heartbeat", 4, BEAT)
            times.append(time.perf_counter() - began)
    for client in clients:
        client.writer.close()
    await proxy.close()
    return found


def packets_a_second() -> tuple[float, float]:
    """Packets and mebibytes of a capture that are read and judged in a second."""
    beat = frame(encode_request("apache", "HeartbeatRequest", 4, 1, "bench", BEAT))
    answer = frame(encode_response("apache", "HeartbeatResponse", 4, 1, {"errorCode": 0}))
    conversation = Conversation()
    made = [*conversation.opened()]
    for _ in range(CAPTURED):
        made += [*conversation.sent(Sent(beat, True)), *conversation.sent(Sent(answer, False))]
    data = file_header() + b"".join(record(each, at * 1000) for at, each in enumerate(made))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "beats.pcap"
        path.write_bytes(data)
        began = time.perf_counter()
        watch_capture(str(path), APACHE, lambda line: None)
        seconds = time.perf_counter() - began
    return len(made) / seconds, len(data) / seconds / (1 << 20)


async def measure(address: str) -> tuple[list[float], list[float]]:
    if address:
        host, _, port = address.rpartition(":")
        return await latencies(host, int(port))
    found = edition(f"apache@{NEWEST}")
    broker = Broker(found, Topics.of([("t", 3)]))
    front = Front(broker, found)
    times = await latencies(*await front.listen("127.0.0.1", 0))
    await front.close()
    broker.close()
    return times


def main(address: str = "") -> None:
    direct, proxied = map(statistics.median, asyncio.run(measure(address)))
    print(f"heartbeat, median: direct {direct * 1e6:.0f} us, through the proxy {proxied * 1e6:.0f} us, "
          f"added {(proxied - direct) * 1e6:.0f} us, ratio {proxied / direct:.2f}")  # fmt: skip
    packets, mebibytes = packets_a_second()
    print(f"capture: {packets:.0f} packets a second, {mebibytes:.1f} MiB a second")


if __name__ == "__main__":
    main(*sys.argv[1:])
