"""Measures the broker of ``kipcheck serve``: requests a second, and the time until a member has its assignment.

``python -m kipcheck.conformance.benchmarks.front [HOST:PORT]``; an address is that of another broker, with a topic t,
which is measured in turns with kipcheck's own, and their ratios are printed. It should have
group.initial.rebalance.delay.ms=0, as kipcheck's own has.

``python -m kipcheck.conformance.benchmarks.front --hostile [COMMAND]`` prints what one hostile connection costs a good
one: beside each attack of ``attacks``, how long a well-behaved client waits for ApiVersions, and how much memory the
broker takes. The processor time of the broker within a wait says how long it would be on a quiet machine. COMMAND
starts another broker, such as that of an earlier commit; then both are measured in turns.
"""

import asyncio
import math
import shlex
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.benchmarks import attacks
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.wire.framing import decode_response, encode_request, frame

SECONDS = 2.0
PIPELINED = 64
"""Requests in one segment."""
MEMBERS = 100
COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR = 14, 16
BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}
JOIN = {"sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 10_000, "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b"\0\1"}]}  # fmt: skip


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def payload(self) -> bytes:
        return await self.reader.readexactly(int.from_bytes(await self.reader.readexactly(4), "big"))

    async def ask(self, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
        self.writer.write(frame(encode_request("apache", f"{api}Request", version, 1, "bench", body)))
        return decode_response(await self.payload(), "apache", f"{api}Response", version).body


async def beats_a_second(host: str, port: int, connections: int, pipelined: int) -> float:
    """Heartbeats answered a second, each connection with so many requests in flight."""
    data = frame(encode_request("apache", "HeartbeatRequest", 4, 1, "bench", BEAT)) * pipelined
    until = time.monotonic() + SECONDS

    async def one() -> int:
        client, count = Client(*await asyncio.open_connection(host, port)), 0
        while time.monotonic() < until:
            client.writer.write(data)
            for _ in range(pipelined):
                await client.payload()
            count += pipelined
        client.writer.close()
        return count

    began = time.monotonic()
    return sum(await asyncio.gather(*[one() for _ in range(connections)])) / (time.monotonic() - began)


async def first_assignment(host: str, port: int, group: str) -> float:
    """Seconds from the connection of a single member to its SyncGroup response, once there is a coordinator."""
    while True:
        began = time.monotonic()
        client = Client(*await asyncio.open_connection(host, port))
        found = await client.ask("FindCoordinator", 3, {"key": group, "keyType": 0})
        if not found["errorCode"]:
            beaten = await client.ask("Heartbeat", 4, {**BEAT, "groupId": group})
            if beaten["errorCode"] not in (COORDINATOR_LOAD_IN_PROGRESS, NOT_COORDINATOR):
                break
        client.writer.close()
        await asyncio.sleep(0.1)
    found = await client.ask("JoinGroup", 7, {**JOIN, "groupId": group, "memberId": ""})
    found = await client.ask("JoinGroup", 7, {**JOIN, "groupId": group, "memberId": found["memberId"]})
    me = {"groupId": group, "generationId": found["generationId"], "memberId": found["memberId"]}
    given = [{"memberId": found["memberId"], "assignment": b"x"}]
    synced = await client.ask("SyncGroup", 3, {**me, "assignments": given})
    assert synced["assignment"] == b"x", synced
    client.writer.close()
    return time.monotonic() - began


async def measured(brokers: list[tuple[str, int]]) -> None:
    """The brokers in turns; of two, the first one's rate as a part of the second one's."""
    for connections, pipelined in ((1, 1), (10, 1), (1, PIPELINED), (10, PIPELINED)):
        rates = [await beats_a_second(*each, connections, pipelined) for each in brokers]
        shown = ", ".join(f"{each:8.0f}" for each in rates)
        ratio = f", ratio {rates[0] / rates[1]:.2f}" if len(rates) > 1 else ""
        print(f"{connections:3} connections, {pipelined:3} in flight: {shown} heartbeats/s{ratio}", flush=True)
    medians = []
    for host, port in brokers:
        times = sorted([await first_assignment(host, port, f"b{time.time_ns()}") for _ in range(MEMBERS)])
        medians.append(times[len(times) // 2] * 1000)
    ratio = f", ratio {medians[0] / medians[1]:.2f}" if len(medians) > 1 else ""
    print(f"first assignment of a new group: median {', '.join(f'{each:.1f} ms' for each in medians)}{ratio}")


# ---- what one hostile connection costs a good one

ATTACKED_S: Final = 8.0
ASKS_S: Final = 0.05
"""Between two requests of the good client."""
PATIENCE_S: Final = 60.0
OWN: Final = f"{shlex.quote(str(Path(sys.executable).with_name('kipcheck')))} serve"


async def waits(port: int, pid: int, until: float) -> list[tuple[float, float]]:
    """How long each ApiVersions of a well-behaved client took, and the broker's processor time meanwhile, in seconds;
    infinite if there was no answer."""
    client, found = None, []
    while (begun := time.monotonic()) < until:
        busy = busy_s(pid)
        try:
            async with asyncio.timeout(PATIENCE_S):
                client = client or Client(*await asyncio.open_connection(attacks.HOST, port))
                await client.ask("ApiVersions", 3, attacks.SOFTWARE)
                found.append((time.monotonic() - begun, busy_s(pid) - busy))
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            client = None
            found.append((math.inf, math.inf))
        await asyncio.sleep(ASKS_S)
    return found


def busy_s(pid: int) -> float:
    """The time of its first thread on a processor. 0 where there is no /proc."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def resident_mib(pid: int, key: str = "VmRSS") -> int:
    """Memory of a process: now, or with ``VmHWM`` at most. 0 where there is no /proc."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) >> 10 for line in lines if line.startswith(f"{key}:")), 0)
    return 0


async def attacked(command: str, name: str) -> str:
    """A row of the table, for one broker."""
    pipe, null = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(*shlex.split(command), stdout=pipe, stderr=null)
    try:
        assert server.stdout is not None
        port = int((await server.stdout.readline()).rpartition(b":")[2])
        before = resident_mib(server.pid)
        arguments = ("-m", attacks.__name__, name, str(port), str(ATTACKED_S))
        harm = await asyncio.create_subprocess_exec(sys.executable, *arguments)
        found = await waits(port, server.pid, time.monotonic() + ATTACKED_S)
        with suppress(ProcessLookupError):
            harm.kill()
        await harm.wait()
        await asyncio.sleep(2)
        peak, after = resident_mib(server.pid, "VmHWM"), resident_mib(server.pid)
    finally:
        with suppress(ProcessLookupError):
            server.kill()
        await server.wait()
    columns = [sorted(each) for each in zip(*found, strict=True)]
    walls, busy = ((each[len(each) * 99 // 100] * 1000, each[-1] * 1000) for each in columns)
    shown = f"{walls[0]:6.0f} {walls[1]:6.0f} | {busy[0]:6.0f} {busy[1]:6.0f} ms"
    return f"{shown} | {before:3} {peak:5} {after:5} MiB"


async def hostile(commands: list[str]) -> None:
    print("wait of a good client in ms: p99, longest | processor time of the broker in it: p99, longest")
    print("| memory of the broker in MiB: at first, at most, 2 s after the attack", flush=True)
    for name in attacks.ATTACKS:
        shown = [await attacked(command, name) for command in commands]
        print(f"{name:36} {'   ||   '.join(shown)}", flush=True)


async def main(address: str) -> None:
    host, _, port = address.rpartition(":")
    found = edition(f"apache@{NEWEST}")
    broker = Broker(found, Topics.of([("t", 3)]))
    front = Front(broker, found)
    await measured([await front.listen("127.0.0.1", 0), *([(host, int(port))] if address else [])])
    await front.close()
    broker.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hostile"]:
        asyncio.run(hostile([OWN, *sys.argv[2:3]]))
    else:
        asyncio.run(main("".join(sys.argv[1:2])))
