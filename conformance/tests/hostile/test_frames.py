"""20,000 mutated frames at each part that listens, with a good client beside, which is answered all the time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from kipcheck.conformance.benchmarks.attacks import SOFTWARE, many, mutated
from kipcheck.conformance.core.values.edition import APACHE, Edition
from kipcheck.conformance.live.client.scripted import ScriptedBroker
from kipcheck.conformance.live.server.connection import Script
from kipcheck.conformance.live.server.feature_broker import FeatureBroker
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.tests.support.live import Client, World, serving

pytestmark = [pytest.mark.hostile]
FRAMES = 20_000
ON_EACH = 40
NAMED = "apache@3.9.2"
PARTS = ("serve", "serve features", "the broker of scripts", "watch")


@asynccontextmanager
async def listening(part: str) -> AsyncIterator[tuple[World, int, Watcher | None]]:
    """The front, the port to attack, and the watcher in front of it if there is one."""
    scripts: dict[str, Callable[[Edition], Script]]
    scripts = {"serve features": FeatureBroker, "the broker of scripts": ScriptedBroker}
    made = scripts.get(part)
    async with serving(NAMED) as world:
        if made is not None:
            async with serving(NAMED, script=made(world.front.edition)) as other:
                yield other, other.port, None
        elif part == "watch":
            watcher = Watcher(APACHE, lambda line: None)
            proxy = Proxy(("127.0.0.1", world.port), watcher)
            _, port = await proxy.listen("127.0.0.1", 0)
            yield world, port, watcher
            await proxy.close()
        else:
            yield world, world.port, None


async def connected(port: int) -> Client:
    return Client(NAMED, *await asyncio.open_connection("127.0.0.1", port))


@pytest.mark.parametrize("part", PARTS)
def test_a_good_client_is_answered_beside_mutated_frames(part: str) -> None:
    async def test() -> None:
        async with listening(part) as (world, port, watcher):
            good = await connected(port)
            large = [*many(30_000).values()]
            for begin in range(0, FRAMES, ON_EACH):
                client = await connected(port)
                client.writer.write(b"".join(map(mutated, range(begin, begin + ON_EACH))))
                client.writer.write(large[begin // ON_EACH % len(large)])
                assert (await good.ask("ApiVersions", 3, SOFTWARE))["errorCode"] == 0
                with suppress(ConnectionError, TimeoutError):
                    async with asyncio.timeout(0.02):
                        while await client.reader.read(1 << 16):
                            pass
                client.writer.transport.abort()
            assert world.counts["our bugs"] == 0
            assert world.counts["connections"] > FRAMES // ON_EACH // 2
            assert watcher is None or not watcher.counts["our bugs"]

    asyncio.run(test())
