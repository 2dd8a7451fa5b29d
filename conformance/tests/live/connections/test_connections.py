"""Connections to a broker: which response belongs to a request."""

import asyncio
import struct
from asyncio import StreamReader, StreamWriter

import pytest

from kipcheck.conformance.live.connections.connections import Connections, Garbled

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
