"""The proxy: what it changes, what it passes as it is, and what it bears."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.watch import proxy as proxies, rewrite
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.live.watch.watcher import Watcher
from kipcheck.conformance.tests.support.live import Client, World, serving
from kipcheck.conformance.wire.describe import describe
from kipcheck.conformance.wire.framing import encode_response, frame
from kipcheck.conformance.wire.schema import messages, spec

UNKNOWN = bytes.fromhex("03e70001 0000002a".replace(" ", ""))
"""Key 999, version 1, correlation id 42."""


@asynccontextmanager
async def proxied(port: int) -> AsyncIterator[tuple[Proxy, int, list[str]]]:
    stated: list[str] = []
    proxy = Proxy(("127.0.0.1", port), Watcher(APACHE, stated.append))
    _, own = await proxy.listen("127.0.0.1", 0)
    try:
        yield proxy, own, stated
    finally:
        await proxy.close()


@asynccontextmanager
async def echoing(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """A server that sends the same after each frame, and the frames that it got."""
    got: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                got.append(await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big")))
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], got
    finally:
        server.close()


async def connected(port: int) -> Client:
    return Client("apache", *await asyncio.open_connection("127.0.0.1", port))


def through(test: Callable[[World, Client, Proxy, list[str]], Awaitable[None]]) -> None:
    async def main() -> None:
        async with serving() as world, proxied(world.port) as (proxy, port, stated):
            client = await connected(port)
            await asyncio.wait_for(test(world, client, proxy, stated), 20)
            client.writer.close()

    asyncio.run(main())


def test_every_answer_with_an_address_has_that_of_the_proxy() -> None:
    async def test(world: World, client: Client, proxy: Proxy, stated: list[str]) -> None:
        metadata = await client.ask("Metadata", 12, {"topics": None})
        one = await client.ask("FindCoordinator", 2, {"key": "g"})
        several = await client.ask("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]})
        ports = {metadata["brokers"][0]["port"], one["port"], several["coordinators"][0]["port"]}
        assert len(ports) == 1
        assert world.port not in ports
        other = await connected(ports.pop())
        assert (await other.ask("Heartbeat", 4, {"groupId": "g", "generationId": 1, "memberId": "m"}))[
            "errorCode"
        ] == 25
        other.writer.close()
        assert len([each for each in stated if each.startswith("broker ")]) == 1

    through(test)


def test_endpoints_of_produce_and_brokers_of_describe_cluster_are_changed() -> None:
    node = {"nodeId": 1, "host": "far", "port": 9092, "rack": None}
    body = {"responses": [], "nodeEndpoints": [node]}
    assert rewrite.addresses(rewrite.PRODUCE, body) == {("far", 9092)}
    assert rewrite.readdress(rewrite.PRODUCE, body, lambda _: ("near", 1))
    made = encode_response(APACHE, "ProduceResponse", 12, 7, body)
    assert rewrite.decoded(made, rewrite.PRODUCE, 12)[2]["nodeEndpoints"][0]["host"] == "near"
    for key in (rewrite.SHARE_FETCH, rewrite.SHARE_ACKNOWLEDGE):
        shared = {"errorCode": 0, "responses": [], "nodeEndpoints": [{**node, "host": "far", "port": 9092}]}
        assert rewrite.readdress(key, shared, lambda _: ("near", 1))
        made = encode_response(APACHE, f"{rewrite.NAMES[key]}Response", 2, 7, shared)
        assert rewrite.decoded(made, key, 2)[2]["nodeEndpoints"] == [{**node, "host": "near", "port": 1}]
        assert rewrite.is_rewritten(key, 1)
    listeners = [{"name": each, "host": "far", "port": port} for each, port in (("CONTROLLER", 9093), ("SASL", 9094))]
    quorum = {"nodes": [{"nodeId": 1, "listeners": listeners}]}
    assert rewrite.addresses(rewrite.DESCRIBE_QUORUM, quorum) == {("far", 9093), ("far", 9094)}
    assert rewrite.is_rewritten(rewrite.DESCRIBE_QUORUM, 2)
    assert not rewrite.is_rewritten(rewrite.DESCRIBE_QUORUM, 1)
    cluster = {"brokers": [{"brokerId": 1, "host": "", "port": -1}]}
    assert not rewrite.readdress(rewrite.DESCRIBE_CLUSTER, cluster, lambda _: ("near", 1))
    assert rewrite.is_rewritten(rewrite.PRODUCE, 10)
    assert not rewrite.is_rewritten(rewrite.PRODUCE, 9)
    assert not rewrite.is_rewritten(rewrite.METADATA, 99)


def test_versions_that_it_cannot_change_are_not_offered() -> None:
    def offered(key: int, low: int, high: int) -> dict[str, int]:
        return {"apiKey": key, "minVersion": low, "maxVersion": high}

    body = {
        "apiKeys": [offered(3, 0, 99), offered(1, 4, 18), offered(17, 0, 1), offered(999, 0, 5), offered(60, 50, 60)]
    }
    body["apiKeys"] += [offered(78, 0, 3), offered(79, 1, 2)]
    stated = rewrite.narrow(body, rewrite.ranges())
    assert body["apiKeys"] == [
        offered(3, 0, 13), offered(1, 4, 15), offered(17, 1, 1), offered(999, 0, 5), offered(78, 1, 2),
        offered(79, 1, 2),
    ]  # fmt: skip
    assert stated[-2:] == ["DescribeCluster (none of 50 to 60)", "ShareFetch 1 to 2 (of 0 to 3)"]


def test_no_other_answer_to_clients_has_an_address() -> None:
    """Of all messages with a layout; endpoints of streams groups are those of applications."""
    newest = [spec(APACHE, each).at(spec(APACHE, each).versions.high or 0) for each in messages(APACHE)]
    named = {
        each.message for each in newest
        if each.message.endswith("Response") and any(row.path.rpartition(".")[2] == "port" for row in describe(each))
    }  # fmt: skip
    rewritten = {f"{name}Response" for name in rewrite.NAMES.values()}
    assert named - rewritten == {"FetchResponse", "StreamsGroupDescribeResponse", "StreamsGroupHeartbeatResponse"}
    assert rewritten - named == {"ApiVersionsResponse"}


def test_what_is_not_known_passes_unchanged_and_large_answers_are_not_held() -> None:
    size = 20 << 20
    answer = (size + 4).to_bytes(4, "big") + UNKNOWN[4:8] + b"\x07" * size

    async def main() -> None:
        async with echoing(answer) as (broker, got), proxied(broker) as (proxy, port, stated):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            request = UNKNOWN + b"whatever" * 1000
            writer.write(frame(request))
            found = await asyncio.wait_for(reader.readexactly(len(answer)), 30)
            assert found == answer
            assert got == [request]
            assert not stated
            assert proxy._held.total == 0
            writer.close()

    asyncio.run(main())


def test_a_frame_that_no_broker_takes_ends_its_connection_only() -> None:
    async def test(world: World, client: Client, proxy: Proxy, stated: list[str]) -> None:
        for start, why in ((b"\x7f\xff\xff\xff", "announced a request of 2147483647 bytes"),
                           (b"\xff\xff\xff\xff", "announced a request of -1 bytes"),
                           (b"\x16\x03\x01\x02", "a listener of the broker without TLS")):  # fmt: skip
            other = await connected(proxy._servers[0].sockets[0].getsockname()[1])
            other.writer.write(start)
            assert await other.is_closed()
            assert why in stated[-1]
        assert "errorCode" in await client.ask("ApiVersions", 0, {})

    through(test)


def test_a_broker_that_is_gone_closes_the_connection_with_a_line() -> None:
    async def main() -> None:
        async with echoing(b"") as (broker, _):
            pass
        async with proxied(broker) as (_, port, stated):
            client = await connected(port)
            assert await client.is_closed()
            assert f"was closed: 127.0.0.1:{broker} accepts no connection" in stated[0]
            assert "start the broker" in stated[0]

    asyncio.run(main())


def test_requests_that_are_too_large_to_be_read_pass() -> None:
    async def main() -> None:
        answer = frame((42).to_bytes(4, "big") + b"x")
        async with echoing(answer) as (broker, got), proxied(broker) as (_, port, stated):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            request = bytes.fromhex("000b00050000002a") + bytes(proxies.LARGEST_READ)
            writer.write(frame(request))
            assert await asyncio.wait_for(reader.readexactly(len(answer)), 30) == answer
            assert len(got[0]) == len(request)
            assert stated == ["requests above 8 MiB pass, and are not judged"]
            writer.close()

    asyncio.run(main())


def test_a_name_gives_one_address_for_all_listeners() -> None:
    async def main() -> None:
        async with serving() as world:
            proxy = Proxy(("localhost", world.port), Watcher(APACHE, lambda line: None))
            host, port = await proxy.listen("localhost", 0)
            client = Client("apache", *await asyncio.open_connection(host, port))
            found = await client.ask("Metadata", 12, {"topics": None})
            other = await asyncio.open_connection(found["brokers"][0]["host"], found["brokers"][0]["port"])
            assert found["brokers"][0]["host"] == host
            for writer in (client.writer, other[1]):
                writer.close()
            await proxy.close()

    asyncio.run(main())


def test_a_defect_of_ours_is_shown_and_what_passes_passes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*arguments: object) -> None:
        raise ZeroDivisionError("planted")

    async def test(world: World, client: Client, proxy: Proxy, stated: list[str]) -> None:
        monkeypatch.setattr(proxy.watcher._contents, "asked", wrong)
        body = {"groupId": "g", "generationId": 1, "memberId": "m"}
        for _ in range(2):
            assert (await client.ask("Heartbeat", 4, body))["errorCode"] == 25
        assert proxy.watcher.counts["our bugs"] == 2

    through(test)
    assert "ZeroDivisionError: planted" in capsys.readouterr().err
