"""What scripts do to answers takes a bounded time."""

import asyncio
from typing import Any, cast

from kipcheck.conformance.live.client.disturbances import PIECES, InPieces


async def _pieces(data: bytes) -> tuple[int, bytes]:
    """How many bytes came alone, and all that came."""
    written: list[bytes] = []
    done = asyncio.Event()

    class Connection:
        def write(self, data: bytes) -> None:
            written.append(data)

        def answer_bytes(self, request: Any, data: bytes) -> None:
            written.append(data)
            done.set()

    InPieces()._write(cast(Any, Connection()), cast(Any, None), data)
    await asyncio.wait_for(done.wait(), 10)
    return sum(len(each) == 1 for each in written), b"".join(written)


def test_an_answer_in_pieces_takes_no_more_time_the_longer_it_is() -> None:
    """Java 3.9.2: 3400 bytes of a Fetch, one after the other on a busy machine, let a close wait for 11 s."""
    for data, alone in ((b"abc", 3), (bytes(3400), PIECES)):
        assert asyncio.run(_pieces(data)) == (alone, data)
