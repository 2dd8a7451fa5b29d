"""Connections to a broker: which response belongs to a request."""

import asyncio
import struct
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

import pytest

from kipcheck.conformance.live.connections import connections as module
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.tests.support.live import serving
from kipcheck.conformance.tests.support.loops import for_each

HEARTBEAT = 12
TO_FIRST = struct.pack(">ih", 1, 25)
TO_SECOND = struct.pack(">ih", 2, 27)


async def asked(*responses: bytes) -> tuple[list[bytes], int]:
    """What two requests get on one connection, if the broker sends these after the first; and the repeated ones."""

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        for each in responses:
            writer.write(struct.pack(">i", len(each)) + each)
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        connections = Connections("127.0.0.1", server.sockets[0].getsockname()[1])
        try:
            found = [await connections.ask_plain(HEARTBEAT, 0, b"") for _ in range(2)]
        finally:
            await connections.close()
        return found, connections.repeated


def test_a_second_response_is_not_taken_for_the_one_to_the_next_request() -> None:
    both = [TO_FIRST[4:], TO_SECOND[4:]]
    assert asyncio.run(asked(TO_FIRST, TO_SECOND)) == (both, 0)
    assert asyncio.run(asked(TO_FIRST, TO_FIRST, TO_SECOND)) == (both, 1)


def test_a_response_to_a_request_that_was_not_sent_is_garbled() -> None:
    with pytest.raises(Garbled, match="correlation id 2 in place of 1"):
        asyncio.run(asked(TO_SECOND, TO_FIRST))


async def lied_to(kind: str) -> str:
    """Why a request to a broker that lies in this way has no answer."""

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.read(1)
            writer.write(LIES[kind])
            if kind == "closes":
                writer.close()
            while kind == "a byte now and then":
                await asyncio.sleep(0.02)
                writer.write(b"\0")

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        connections = Connections("127.0.0.1", server.sockets[0].getsockname()[1], answered_s=0.3)
        try:
            async with asyncio.timeout(20):
                await versions_of(connections)
        except (Closed, Garbled) as why:
            return str(why)
        finally:
            await connections.close()
        return ""


SILENCE = "no whole answer to API 18 v0 came within 0.3 s"
LIES = {
    "silent": b"",
    "a byte now and then": b"\0\0\1\0",
    "closes": b"",
    "speaks HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "announces 2 GiB": b"\x7f\xff\xff\xff",
    "announces 5 MiB": (5 << 20).to_bytes(4, "big"),
    "an answer to another request": b"\0\0\0\x0a\0\0\0\x09" + bytes(6),
    "too short an answer": b"\0\0\0\x06\0\0\0\1\0\0",
    "fewer versions than it announces": b"\0\0\0\x0a\0\0\0\1\0\0\x7f\xff\xff\xff",
}
WHY = {
    "silent": SILENCE,
    "a byte now and then": SILENCE,
    "closes": "closed the connection instead of answering",
    "speaks HTTP": "announces a size",
    "announces 2 GiB": "announces a size",
    "announces 5 MiB": "announces a size",
    "an answer to another request": "correlation id 9 in place of 1",
    "too short an answer": "it is cut off",
    "fewer versions than it announces": "it is cut off",
}


@for_each(LIES)
def test_a_broker_that_lies_is_named_in_time(kind: str) -> None:
    assert WHY[kind] in asyncio.run(lied_to(kind))


def test_an_answer_with_too_many_entries_is_garbled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ENTRIES", 100)

    async def test() -> None:
        async with serving("apache@3.9.2") as world:
            connections = Connections("127.0.0.1", world.port)
            groups = [str(each) for each in range(101)]
            await connections.ask("DescribeGroups", 0, "me", {"groups": groups[1:]})
            with pytest.raises(Garbled, match="more than 100 entries"):
                await connections.ask("DescribeGroups", 0, "me", {"groups": groups})
            await connections.close()

    asyncio.run(test())
