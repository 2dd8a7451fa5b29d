"""Measures ``kipcheck watch``: what the proxy adds to the time of a heartbeat, and how fast a capture is read.

``python -m kipcheck.conformance.benchmarks.watch [HOST:PORT]``; an address is that of another broker. Direct
and proxied requests alternate in one run, so that their ratio does not depend on what else the machine does.

``python -m kipcheck.conformance.benchmarks.watch --capture MEBIBYTES`` writes drawn conversations into a temporary
file of that size, and one of a sixteenth of it, and reads both: memory is bounded if it does not grow with the file.
"""

import asyncio
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kipcheck.conformance.benchmarks.front import BEAT, Client
from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.live.watch.capture_input import watch_capture
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.wire.framing import encode_request, encode_response, frame
from kipcheck.conformance.wire.pcap import Conversation, Sent, file_header, record

REQUESTS = 3000
CAPTURED = 20_000
"""Heartbeats of the capture; each exchange is four packets."""

SUBSCRIPTION = bytes.fromhex("00000000000100017400000000")
ASSIGNMENT = bytes.fromhex("000000000001000174000000010000000000000000")
AT_ONCE = 50
"""Connections whose packets alternate."""
SPACING_US = 200
LOST_OF = 5000
"""One packet of so many is missing."""
SMALLER = 16


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


def drawn(number: int, luck: random.Random) -> Iterator[bytes]:
    """The packets of a member that joins its group, beats and commits, among fetches that pass unread."""
    group, member, correlation = f"group-{number % 700}", f"member-{number}", 0
    made = Conversation(1024 + number % 60_000)
    yield from made.opened()

    def exchange(api: str, version: int, asked: dict[str, object], told: dict[str, object]) -> Iterator[bytes]:
        nonlocal correlation
        correlation += 1
        request = encode_request("apache", f"{api}Request", version, correlation, "bench", asked)
        answer = encode_response("apache", f"{api}Response", version, correlation, told)
        yield from made.sent(Sent(frame(request), True))
        yield from made.sent(Sent(frame(answer), False))

    join = {"groupId": group, "sessionTimeoutMs": 6000, "rebalanceTimeoutMs": 6000, "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": SUBSCRIPTION}]}  # fmt: skip
    joined = {"errorCode": 79, "generationId": 1, "protocolName": "range", "leader": "x", "memberId": member,
              "members": []}  # fmt: skip
    yield from exchange("JoinGroup", 5, join, joined)
    yield from exchange("JoinGroup", 5, {**join, "memberId": member}, {**joined, "errorCode": 0})
    named: dict[str, object] = {"groupId": group, "memberId": member, "generationId": 1}
    yield from exchange("SyncGroup", 3, {**named, "assignments": []}, {"assignment": ASSIGNMENT})
    for _ in range(luck.randrange(10, 40)):
        yield from exchange("Heartbeat", 3, named, {"errorCode": 0})
        correlation += 1
        fetch, records = (0x0001_000B).to_bytes(4, "big"), luck.randbytes(luck.randrange(64, 48 << 10))
        yield from made.sent(Sent(frame(fetch + correlation.to_bytes(4, "big") + b"\xff\xff" + bytes(60)), True))
        yield from made.sent(Sent(frame(correlation.to_bytes(4, "big") + records), False))
    if number % 4:
        yield from made.closed()


def write_capture(path: Path, size: int) -> int:
    """A capture of at least ``size`` bytes; gives the number of its packets."""
    luck, begun, packets = random.Random(1), 0, 0
    open_: list[Iterator[bytes]] = []
    with path.open("wb") as file:
        file.write(file_header())
        while file.tell() < size:
            while len(open_) < AT_ONCE:
                open_.append(drawn(begun, luck))
                begun += 1
            place = luck.randrange(len(open_))
            packet = next(open_[place], None)
            if packet is None:
                del open_[place]
                continue
            packets += 1
            if packets % LOST_OF:
                file.write(record(packet, packets * SPACING_US))
    return packets


def large_capture(mebibytes: int) -> None:
    """Prints rate and peak memory of ``kipcheck watch --pcap``, each in a process of its own."""
    for size in (mebibytes // SMALLER, mebibytes):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "drawn.pcap"
            packets = write_capture(path, size << 20)
            argv = [sys.executable, "-m", "kipcheck", "watch", "--pcap", str(path), "--out", str(Path(folder) / "out")]
            began = time.perf_counter()
            done = subprocess.run(argv, capture_output=True, text=True, check=False)
            seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        print(f"capture of {size} MiB, {packets} packets: {seconds:.1f} s, {size / seconds:.1f} MiB a second, "
              f"{packets / seconds:.0f} packets a second, peak memory {peak} MiB, exit {done.returncode}")  # fmt: skip
        print(f"  {done.stderr.strip()}")


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


def main(address: str = "", mebibytes: str = "1024") -> None:
    if address == "--capture":
        return large_capture(int(mebibytes))
    direct, proxied = map(statistics.median, asyncio.run(measure(address)))
    print(f"heartbeat, median: direct {direct * 1e6:.0f} us, through the proxy {proxied * 1e6:.0f} us, "
          f"added {(proxied - direct) * 1e6:.0f} us, ratio {proxied / direct:.2f}")  # fmt: skip
    packets, read = packets_a_second()
    print(f"capture: {packets:.0f} packets a second, {read:.1f} MiB a second")


if __name__ == "__main__":
    main(*sys.argv[1:])
