"""The front: frames, versions, the order of answers, and limits that cost one connection only."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

import pytest

from kipcheck.conformance.live.recording.capture import Capture
from kipcheck.conformance.live.recording.log import Log
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server import groups
from kipcheck.conformance.live.server.connection import Connection, Limits
from kipcheck.conformance.tests.support.live import JOIN, Client, World, joined, run
from kipcheck.conformance.wire.framing import encode_request, frame
from kipcheck.conformance.wire.pcap import file_header

BEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}


async def others_are_served(world: World) -> bool:
    """Whether a new connection is answered."""
    found = await (await world.connect()).ask(
        "ApiVersions", 4, {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
    )
    return bool(found["errorCode"] == 0)


def closes(send: Callable[[Client], object], why: str, limits: Limits | None = None) -> None:
    """The connection is closed after what ``send`` writes, for this reason, and others are served."""

    async def test(world: World) -> None:
        bystander, client = await world.connect(), await world.connect()
        made = send(client)
        if isinstance(made, Awaitable):
            await made
        assert await client.is_closed()
        assert world.counts[f"closed: {why}"] == 1, world.counts
        assert (await bystander.ask("ListGroups", 0, {}))["errorCode"] == 0
        assert await others_are_served(world)

    run(test, limits=limits)


def test_an_unknown_key_closes_the_connection() -> None:
    closes(lambda client: client.writer.write(frame(b"\x02\x00\x00\x00\x00\x00\x00\x01\xff\xff")),
           "key 512 version 0 is not served")  # fmt: skip


def test_an_unserved_version_closes_the_connection() -> None:
    payload = encode_request("apache", "HeartbeatRequest", 4, 1, "me", BEAT)
    closes(lambda client: client.writer.write(frame(payload[:2] + b"\x00\x63" + payload[4:])),
           "key 12 version 99 is not served")  # fmt: skip


def test_produce_is_advertised_and_closes_the_connection() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        found = await client.ask("ApiVersions", 0, {})
        assert 0 in {each["apiKey"] for each in found["apiKeys"]}
        client.writer.write(frame(b"\x00\x00\x00\x09\x00\x00\x00\x02\xff\xff\x00"))
        assert await client.is_closed()

    run(test)


def test_apiversions_in_an_unsupported_version_is_answered_in_version_0() -> None:
    """KIP-511: with the range of ApiVersions alone; also for a negative version."""

    async def test(world: World) -> None:
        client = await world.connect()
        for number, version in enumerate((b"\x00\x63", b"\xff\xff"), 1):
            head = b"\x00\x12" + version + number.to_bytes(4, "big")
            client.writer.write(frame(head + b"\xff\xff\x00"))
            found = await client.receive("ApiVersions", 0, number)
            assert found["errorCode"] == 35
            assert [(each["apiKey"], each["minVersion"]) for each in found["apiKeys"]] == [(18, 0)]
        client.sent = 2
        assert (await client.ask("ApiVersions", 0, {}))["errorCode"] == 0

    run(test)


def test_apiversions_of_2_3_has_no_range_in_its_error() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        client.writer.write(frame(b"\x00\x12\x00\x03\x00\x00\x00\x01\xff\xff"))
        assert await client.receive("ApiVersions", 0, 1) == {"errorCode": 35, "apiKeys": []}

    run(test, named="apache@2.3.1")


def test_a_negative_size_closes_the_connection() -> None:
    closes(lambda client: client.writer.write(b"\xff\xff\xff\xff"), "announced size below 0")


def test_an_announced_size_above_the_limit_closes_the_connection_before_the_bytes_come() -> None:
    closes(lambda client: client.writer.write((1001).to_bytes(4, "big")), "announced size above the limit",
           Limits(frame_bytes=1000))  # fmt: skip


def test_a_truncated_body_is_a_finding_and_closes_the_connection() -> None:
    payload = encode_request("apache", "HeartbeatRequest", 4, 1, "me", BEAT)[:-2]

    async def test(world: World) -> None:
        client = await world.connect()
        client.writer.write(frame(payload))
        assert await client.is_closed()
        (finding,) = world.findings
        assert (finding.refused.kind, finding.answered, finding.payload) == ("truncated", False, payload)

    run(test)


def test_a_body_that_only_kafka_reads_is_a_finding_and_is_answered() -> None:
    lines: list[str] = []

    async def test(world: World) -> None:
        client = await world.connect()
        client.writer.write(frame(encode_request("apache", "HeartbeatRequest", 0, 1, "me", BEAT) + b"\xaa"))
        client.sent = 1
        assert (await client.receive("Heartbeat", 0))["errorCode"] == 25
        (finding,) = world.findings
        assert (finding.refused.kind, finding.answered) == ("trailing", True)

    run(test, observers=(Log("apache", lines.append),))
    (at,) = (number for number, line in enumerate(lines) if " ! " in line)
    assert "trailing" in lines[at] or "after the end" in lines[at]
    assert any("memberId" in line for line in lines[at:])


def test_a_header_with_an_unknown_tag_is_read() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        payload = encode_request("apache", "HeartbeatRequest", 4, 1, "me", BEAT)
        head = len(b"\0\x0c\0\4\0\0\0\1\0\2me")
        client.writer.write(frame(payload[:head] + b"\x01\x07\x01\xaa" + payload[head + 1 :]))
        client.sent = 1
        assert (await client.receive("Heartbeat", 4))["errorCode"] == 25
        assert not world.findings

    run(test)


def test_a_request_may_come_in_single_bytes_and_several_in_one_piece() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        data = frame(encode_request("apache", "HeartbeatRequest", 4, 1, "me", BEAT))
        for each in data:
            client.writer.write(bytes([each]))
            await asyncio.sleep(0)
        client.sent = 1
        await client.receive("Heartbeat", 4)
        client.writer.write(
            b"".join(frame(encode_request("apache", "HeartbeatRequest", 4, n, "me", BEAT)) for n in range(2, 200))
        )
        for number in range(2, 200):
            await client.receive("Heartbeat", 4, number)

    run(test)


def test_a_parked_request_holds_back_those_behind_it_on_its_connection_only() -> None:
    """The second member's join ends the first one's rebalance; its heartbeat is answered after its join."""

    async def test(world: World) -> None:
        one, other = await world.connect(), await world.connect()
        first = await joined(one)
        waits = await other.ask("JoinGroup", 9, JOIN)
        other.send("JoinGroup", 9, {**JOIN, "memberId": waits["memberId"]})
        other.send("Heartbeat", 4, BEAT)
        await asyncio.sleep(0.05)
        me = {"groupId": "g", "generationId": first["generationId"], "memberId": first["memberId"]}
        assert (await one.ask("Heartbeat", 4, me))["errorCode"] == 27
        again = await joined(one, memberId=first["memberId"])
        assert (await other.receive("JoinGroup", 9, 2))["generationId"] == again["generationId"] == 2
        assert (await other.receive("Heartbeat", 4, 3))["errorCode"] == 25

    run(test)


def test_connections_above_the_limit_are_closed() -> None:
    async def test(world: World) -> None:
        kept = [await world.connect() for _ in range(3)]
        for client in kept:
            await client.ask("ListGroups", 0, {})
        assert await (await world.connect()).is_closed()
        assert world.counts["closed: too many connections"] == 1
        kept[0].writer.close()
        await kept[0].writer.wait_closed()
        await asyncio.sleep(0.02)
        assert await others_are_served(world)

    run(test, limits=Limits(connections=3))


def test_an_idle_connection_and_a_frame_that_is_never_completed_are_closed() -> None:
    async def test(world: World) -> None:
        silent, half = await world.connect(), await world.connect()
        half.writer.write(b"\0\0\0\x20abc")
        assert await silent.is_closed(2)
        assert await half.is_closed(2)
        assert world.counts["closed: idle"] == 2
        assert world.front.input_bytes == 0
        assert await others_are_served(world)

    run(test, limits=Limits(idle_s=0.15))


def test_a_parked_request_is_not_idle() -> None:
    async def test(world: World) -> None:
        one, other = await world.connect(), await world.connect()
        await joined(one)
        given = await other.ask("JoinGroup", 9, JOIN)
        other.send("JoinGroup", 9, {**JOIN, "memberId": given["memberId"]})
        assert not await other.is_closed(0.5)

    run(test, limits=Limits(idle_s=0.15))


def test_received_bytes_of_all_connections_are_limited() -> None:
    async def test(world: World) -> None:
        clients = [await world.connect() for _ in range(4)]
        for client in clients:
            client.writer.write((90_000).to_bytes(4, "big") + bytes(40_000))
        await asyncio.sleep(0.1)
        assert world.counts["closed: too many bytes received and not handled"] >= 1
        assert world.front.input_bytes <= 100_000
        assert await others_are_served(world)

    run(test, limits=Limits(frame_bytes=100_000, input_bytes=100_000))


def small_buffers(client: Client) -> None:
    client.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)


class Large:
    """A script whose answers are large."""

    versions: ClassVar = {12: range(5)}

    def opened(self, connection: Connection) -> None: ...
    def closed(self, connection: Connection) -> None: ...
    def received(self, request: Received, connection: Connection) -> None:
        connection.answer_bytes(request, bytes(50_000))


def test_a_client_that_reads_nothing_is_closed_and_a_flood_stays_in_its_buffers() -> None:
    """Requests are sent until the client's own buffers are full."""

    async def test(world: World) -> None:
        client = await world.connect()
        small_buffers(client)
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]
        client.writer.write(frame(encode_request(client.edition, "HeartbeatRequest", 4, 1, "me", BEAT)) * 200_000)
        await asyncio.sleep(0.2)
        assert 0 < world.counts["requests"] < 1_000
        (connection,) = world.front.connections
        assert world.front.input_bytes < 1 << 20
        assert connection.transport.get_write_buffer_size() < 1 << 20
        assert await others_close(world)
        async with asyncio.timeout(5):
            while not world.counts["closed: the client reads nothing"]:
                await asyncio.sleep(0.05)

    run(test, script=Large(), limits=Limits(stalled_s=0.5))


async def others_close(world: World) -> bool:
    """Whether a new connection is accepted, and closed for its own reasons only."""
    client = await world.connect()
    client.writer.write(b"\xff\xff\xff\xff")
    return await client.is_closed()


class Loud(Large):
    """A script that writes more than fits."""

    def received(self, request: Received, connection: Connection) -> None:
        for _ in range(100):
            connection.write(bytes(100_000))


def test_unsent_bytes_are_limited() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        small_buffers(client)
        client.send("Heartbeat", 4, BEAT)
        async with asyncio.timeout(5):
            while not world.counts["closed: too many unsent bytes"]:
                await asyncio.sleep(0.01)
        assert await others_close(world)

    run(test, script=Loud(), limits=Limits(output_bytes=500_000))


class Odd(Large):
    """A script that takes two requests at a time, answers the later one first, and fails at a third."""

    def __init__(self) -> None:
        self.waiting: list[Received] = []

    def opened(self, connection: Connection) -> None:
        connection.window = 3

    def received(self, request: Received, connection: Connection) -> None:
        self.waiting.append(request)
        if len(self.waiting) == 2:
            for error, each in enumerate(reversed(self.waiting)):
                connection.answer(each, {"errorCode": error})
        if len(self.waiting) == 3:
            raise ValueError("a script that fails")


def test_a_script_may_receive_requests_before_it_answers_and_answers_keep_their_order() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        client.send("Heartbeat", 4, BEAT)
        client.send("Heartbeat", 4, BEAT)
        assert (await client.receive("Heartbeat", 4, 1))["errorCode"] == 1
        assert (await client.receive("Heartbeat", 4, 2))["errorCode"] == 0
        client.send("Heartbeat", 4, BEAT)
        assert await client.is_closed()
        assert world.counts["our bugs"] == 1

    run(test, script=Odd())


def test_a_capture_has_every_connection(tmp_path: Path) -> None:
    capture = Capture(tmp_path / "all.pcap")

    async def test(world: World) -> None:
        one, other = await world.connect(), await world.connect()
        for client in (one, other):
            await client.ask("Heartbeat", 4, BEAT)
            client.writer.close()
        await asyncio.sleep(0.05)

    run(test, observers=(capture,))
    capture.close()
    data = (tmp_path / "all.pcap").read_bytes()
    assert data.startswith(file_header())
    sizes, at = [], len(file_header())
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        sizes.append(size)
        at += 16 + size
    assert at == len(data)
    assert len(sizes) == 2 * (3 + 2 + 2 + 3)


def test_a_flood_of_joins_costs_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids that are given out, and groups, are limited."""
    monkeypatch.setattr(groups, "MOST_MEMBERS", 20)
    monkeypatch.setattr(groups, "MOST_GROUPS", 21)

    async def test(world: World) -> None:
        for name, why in (("g", "too many members"), ("g{}", "too many groups")):
            client = await world.connect()
            for number in range(20):
                await client.ask("JoinGroup", 9, {**JOIN, "groupId": name.format(number)})
            client.send("JoinGroup", 9, {**JOIN, "groupId": name.format(20)})
            assert await client.is_closed()
            assert world.counts[f"closed: {why}"] == 1
        assert await others_are_served(world)

    run(test)


class Nodes(Large):
    """A script that answers with the port that was reached, and resets connections to ApiVersions requests."""

    versions: ClassVar = {12: range(5), 18: range(1)}

    def received(self, request: Received, connection: Connection) -> None:
        if request.api == "ApiVersions":
            return connection.reset()
        for each in request.reached[1].to_bytes(2, "big"):
            connection.write(bytes([each]))
        connection.answer_bytes(request, b"!")


def test_a_front_listens_at_several_addresses_writes_in_pieces_and_resets() -> None:
    async def test(world: World) -> None:
        _, port = await world.front.listen("127.0.0.1", 0)
        for each in (world.port, port):
            world.port = each
            client = await world.connect()
            client.send("Heartbeat", 4, BEAT)
            assert await client.reader.readexactly(3) == each.to_bytes(2, "big") + b"!"
            client.send("ApiVersions", 0, {})
            with pytest.raises(ConnectionResetError):
                await client.payload()

    run(test, script=Nodes())
