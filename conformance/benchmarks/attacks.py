"""Clients of a listening broker that do harm: each is bounded, and connects to loopback only.

``python -m kipcheck.conformance.benchmarks.attacks NAME PORT SECONDS`` runs one; ``front`` measures its cost to others.
"""

import asyncio
import random
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final, TypeAlias

from kipcheck.conformance.wire.framing import encode_request, frame

HOST: Final = "127.0.0.1"
MIB: Final = 1 << 20
LARGE: Final = 7 * MIB
"""Bytes of a large frame."""
Attack: TypeAlias = Callable[[int, float], Awaitable[None]]
"""Attacks a port until a time of ``time.monotonic``."""
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]

SOFTWARE: Final = {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
MEMBER: Final = {"groupId": "g", "generationId": 1, "memberId": "m"}
JOIN: Final = {
    "groupId": "g", "sessionTimeoutMs": 30_000, "rebalanceTimeoutMs": 30_000, "memberId": "",
    "protocolType": "consumer", "protocols": [{"name": "range", "metadata": b"\0\1"}],
}  # fmt: skip


def request(api: str, version: int, body: Mapping[str, object]) -> bytes:
    return frame(encode_request("apache", f"{api}Request", version, 1, "attack", body))


REQUESTS: Final = (
    request("ApiVersions", 3, SOFTWARE), request("Metadata", 12, {"topics": [{"name": "t"}]}),
    request("Heartbeat", 4, MEMBER), request("JoinGroup", 9, JOIN),
    request("SyncGroup", 3, {**MEMBER, "assignments": []}),
    request("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": [{"name": "t", "partitionIndexes": [0]}]}]}),
    request("FindCoordinator", 4, {"coordinatorKeys": ["g"]}), request("DescribeGroups", 5, {"groups": ["g"]}),
)  # fmt: skip


def mutated(number: int) -> bytes:
    """A request with some bytes of another value, or cut off, in a frame of the right size. ``number`` decides."""
    draw = random.Random(number)
    data = bytearray(draw.choice(REQUESTS)[4:])
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
    return frame(bytes(data[: draw.randint(0, len(data))] if draw.random() < 0.2 else data))


def counted(key: int, version: int, before: bytes, element: bytes, elements: int | None = None) -> bytes:
    """A frame whose body has an array with an int32 count of equal elements; default: as many as are a large frame."""
    count = LARGE // len(element) if elements is None else elements
    head = struct.pack(">hhih", key, version, 1, -1)
    return frame(head + before + struct.pack(">i", count) + element * count)


def flexible(key: int, version: int, before: bytes, element: bytes, elements: int | None, tags: bool) -> bytes:
    """The same in a flexible version. ``tags``: the elements are the tags at its end."""
    count = LARGE // len(element) if elements is None else elements
    head, number = struct.pack(">hhih", key, version, 1, -1) + b"\0", count + (not tags)
    varint = bytearray()
    while number > 127:
        varint.append(number & 127 | 128)
        number >>= 7
    varint.append(number)
    return frame(head + before + bytes(varint) + element * count + b"\0" * (not tags))


def many(elements: int | None = None) -> dict[str, bytes]:
    """Frames with many elements, by what they have; default: as many as are a large frame."""
    text = b"\0\1g"
    return {
        "names in Metadata 0": counted(3, 0, b"", b"\0\0", elements),
        "keys in FindCoordinator 4": flexible(10, 4, b"\0", b"\1", elements, tags=False),
        "groups in DescribeGroups 0": counted(15, 0, b"", b"\0\0", elements),
        "groups in DeleteGroups 0": counted(42, 0, b"", b"\0\0", elements),
        "topics in OffsetFetch 1": counted(9, 1, text, b"\0\0\0\0\0\0", elements),
        "members in LeaveGroup 3": counted(13, 3, text, b"\0\0\xff\xff", elements),
        "protocols in JoinGroup 0": counted(11, 0, text + b"\0\0\x75\x30" + b"\0\0" + text, b"\0\0\0\0\0\0", elements),
        "tags in ApiVersions 3": flexible(18, 3, b"\2a\2a", b"\0\0", elements, tags=True),
    }


async def opened(port: int) -> Streams:
    return await asyncio.open_connection(HOST, port)


async def sent(port: int, data: bytes, read: bool = True, wait_s: float = 1.0) -> None:
    """Sends data over a connection of its own, and reads what comes for a while."""
    with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        reader, writer = await opened(port)
        try:
            writer.write(data)
            async with asyncio.timeout(wait_s):
                await writer.drain()
                while read and await reader.read(1 << 16):
                    pass
        finally:
            writer.transport.abort()


async def again(until: float, act: Callable[[], Awaitable[None]], together: int = 1) -> None:
    """Repeats an act until then, so many side by side."""

    async def one() -> None:
        while time.monotonic() < until:
            await act()

    await asyncio.gather(*(one() for _ in range(together)))


async def mutated_frames(port: int, until: float) -> None:
    """Eight mutated frames on each connection, 20 connections at a time."""
    numbers = iter(range(1 << 30))

    async def one() -> None:
        await sent(port, b"".join(mutated(next(numbers)) for _ in range(8)), wait_s=0.2)

    await again(until, one, 20)


async def connections(port: int, until: float) -> None:
    """2,000 connections at once, which send nothing, again and again."""

    async def one() -> None:
        await sent(port, b"", wait_s=0.5)

    await again(until, one, 900)


async def halves(port: int, until: float) -> None:
    """50 connections, each with half of a large frame."""
    await again(until, lambda: sent(port, counted(3, 0, b"", b"\0\0")[: LARGE // 2], wait_s=3), 50)


async def single_bytes(port: int, until: float) -> None:
    """200 connections that send a request byte by byte."""

    async def one() -> None:
        with suppress(OSError):
            _, writer = await opened(port)
            for each in REQUESTS[0] * 20:
                writer.write(bytes([each]))
                await asyncio.sleep(0)
            writer.transport.abort()

    await again(until, one, 200)


async def unread(port: int, until: float) -> None:
    """20 connections that send requests and read no answer, and leave."""

    async def one() -> None:
        with suppress(OSError, TimeoutError):
            reader, writer = await opened(port)
            reader._transport.pause_reading()  # type: ignore[attr-defined]
            data = REQUESTS[0] * 40_000
            with suppress(TimeoutError):
                async with asyncio.timeout(2):
                    writer.write(data)
                    await writer.drain()
            writer.transport.abort()

    await again(until, one, 20)


async def pipelined(port: int, until: float) -> None:
    """10,000 requests at once on one connection, whose answers are read."""
    await again(until, lambda: sent(port, b"".join(each for each in REQUESTS if each != REQUESTS[3]) * 1500, wait_s=5))


def large(name: str) -> Attack:
    """Frames of 7 MiB, one after the other."""

    async def attack(port: int, until: float) -> None:
        data = many()[name]
        await again(until, lambda: sent(port, data, wait_s=max(0.1, until - time.monotonic())))

    return attack


async def at_the_limit(port: int, until: float) -> None:
    """20 connections with each of the frames in turn, and as many elements as are accepted."""
    frames = [*many(19_000).values()]
    turns = iter(range(1 << 30))
    await again(until, lambda: sent(port, frames[next(turns) % len(frames)], wait_s=0.5), 20)


async def large_members(port: int, until: float) -> None:
    """400 members with 1 MiB of metadata each."""
    data = request("JoinGroup", 3, {**JOIN, "protocols": [{"name": "range", "metadata": bytes(MIB)}]})
    left = iter(range(400))

    async def one() -> None:
        for _ in left:
            if time.monotonic() > until:
                return
            await sent(port, data, wait_s=0.3)

    await asyncio.gather(*(one() for _ in range(20)))


async def nothing(port: int, until: float) -> None:
    """No attack, for comparison."""
    await asyncio.sleep(until - time.monotonic())


ATTACKS: Final[Mapping[str, Attack]] = {
    "no attack": nothing,
    "mutated frames": mutated_frames,
    "900 connections at a time": connections,
    "50 halves of large frames": halves,
    "200 connections, byte by byte": single_bytes,
    "20 connections that never read": unread,
    "10,000 pipelined requests": pipelined,
    **{name: large(name) for name in many(1)},
    "20 connections with 19,000 elements": at_the_limit,
    "400 members with 1 MiB each": large_members,
}


def main(name: str, port: int, seconds: float) -> None:
    asyncio.run(ATTACKS[name](port, time.monotonic() + seconds))  # type: ignore[arg-type]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
