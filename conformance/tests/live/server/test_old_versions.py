"""Versions that Kafka 4 removed: ListOffsets 0, Fetch 0 to 3, Produce 0 to 2, offsets in ZooKeeper."""

import asyncio
from typing import Any

import pytest

from kipcheck.conformance.core.files.releases_table import named, patches
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import NEWEST, releases
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator.admin import partitions_of, versions_of
from kipcheck.conformance.live.server import produce_api
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.topics import RECORD_MS, Topics, one_record
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.kafka_broker import running
from kipcheck.conformance.tests.support.live import JOIN, Client, World, joined, run, serving
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire.framing import requests
from kipcheck.conformance.wire.message_sets import decode, encode
from kipcheck.conformance.wire.record_batches import Record, batch, decode as decode_batches, encode as encode_batch
from kipcheck.conformance.wire.schema import stable_versions

OLD = f"apache@{named('last-before-4')}"
RECORDS = 4
"""Of partition 0, in a topic with three partitions and nothing in the others."""
Asked = tuple[str, int, dict[str, Any]]


def produce(version: int, records: bytes, index: int = 0, acks: int = 1) -> Asked:
    data = [{"name": "t", "partitionData": [{"index": index, "records": records}]}]
    return "Produce", version, {"acks": acks, "timeoutMs": 1000, "topicData": data}


def list_offsets(timestamp: int, most: int, index: int = 0, topic: str = "t") -> Asked:
    part = {"partitionIndex": index, "timestamp": timestamp, "maxNumOffsets": most}
    return "ListOffsets", 0, {"replicaId": -1, "topics": [{"name": topic, "partitions": [part]}]}


def fetch(version: int, offset: int, index: int = 0, size: int = 10_000) -> Asked:
    part = {"partition": index, "fetchOffset": offset, "partitionMaxBytes": size}
    topics = [{"topic": "t", "partitions": [part]}]
    return "Fetch", version, {"replicaId": -1, "maxWaitMs": 0, "minBytes": 1, "topics": topics}


def commit(version: int, offset: int, group: str, index: int = 0, metadata: str | None = "m") -> Asked:
    part = {"partitionIndex": index, "committedOffset": offset, "committedMetadata": metadata}
    member = {"generationIdOrMemberEpoch": -1, "memberId": ""} if version else {}
    return "OffsetCommit", version, {"groupId": group, "topics": [{"name": "t", "partitions": [part]}], **member}


def fetch_offsets(version: int, group: str, topic: str = "t") -> Asked:
    return "OffsetFetch", version, {"groupId": group, "topics": [{"name": topic, "partitionIndexes": [0, 1, 9]}]}


MESSAGE = Record(0, 5, b"k", b"v")
DAMAGED = encode([MESSAGE], 0)[:-1] + b"w"
WRITTEN = (
    produce(3, one_record("t", 0)), produce(0, encode([MESSAGE], 0)), produce(1, encode([MESSAGE, MESSAGE], 0)),
    produce(2, encode([MESSAGE, Record(1, 77, b"k", None)], 1)), produce(0, encode([MESSAGE], 1)),
    produce(2, encode([MESSAGE], 0)), produce(2, one_record("t", 0)), produce(1, DAMAGED), produce(1, b""),
    produce(1, encode([MESSAGE], 0)[:-2]), produce(1, encode([MESSAGE], 0), index=9),
    produce(1, encode([MESSAGE], 0), acks=2), produce(3, encode([MESSAGE], 0)),
    produce(3, one_record("t", 0)[:-1] + b"\1"), produce(3, one_record("t", 0) + one_record("t", 1)), produce(3, b""),
)  # fmt: skip
LISTED = (
    *(list_offsets(time, most) for time in (-1, -2, 0, 10**13) for most in (-1, 0, 1, 2, 5)),
    list_offsets(-1, 1, 9), list_offsets(-1, 1, 0, "nowhere"), list_offsets(-1, 2, 1), list_offsets(-2, 2, 1),
)  # fmt: skip
FETCHED = tuple(
    each
    for version in range(5)
    for each in (
        *(fetch(version, offset) for offset in (0, 3, 99, -1)), fetch(version, 0, 9), fetch(version, 0, 1),
    )
)  # fmt: skip
COMMITTED = (
    fetch_offsets(0, "a"), commit(0, 2, "a"), fetch_offsets(0, "a"), fetch_offsets(1, "a"), commit(0, 2, "a", 9),
    commit(0, 2, "a", 0, "x" * 4097), commit(0, 2, ""), commit(0, 2, "a", 1, None), fetch_offsets(0, "a"),
    fetch_offsets(0, "a", "nowhere"), fetch_offsets(0, ""), commit(1, 3, "a"), commit(1, 3, "a", 1, None),
    commit(1, 3, "a", 9), commit(1, 3, "a", 0, "x" * 4097), fetch_offsets(1, "a"), fetch_offsets(0, "a"),
)  # fmt: skip
DESCRIBED: tuple[Asked, ...] = (("Metadata", 0, {"topics": [{"name": "t"}]}), ("Metadata", 1, {"topics": []}))
OF_MEMBERS = (commit(0, 7, "g"), commit(1, 8, "g"), fetch_offsets(0, "g"), fetch_offsets(1, "g"))
"""Sent while the group has a member."""


async def answers(connect: Any) -> list[Any]:
    """To all requests, in order; of brokers the parts that are the same in each."""
    client: Client = await connect()
    found = [await client.ask(*each) for each in (*WRITTEN, *LISTED, *FETCHED, *COMMITTED, *DESCRIBED)]
    join = {key: value for key, value in JOIN.items() if key != "rebalanceTimeoutMs"}
    await client.ask("JoinGroup", 0, join)
    found += [await client.ask(*each) for each in OF_MEMBERS]
    return [_plain(each) for each in found]


def _plain(body: dict[str, Any]) -> dict[str, Any]:
    """Without addresses, and partitions in order."""
    brokers = {"brokers": len(body["brokers"])} if "brokers" in body else {}
    topics = [
        {**topic, "partitions": sorted(topic["partitions"], key=lambda part: part["partitionIndex"])}
        for topic in body.get("topics", ()) if topic["name"] != "__consumer_offsets"
    ]  # fmt: skip
    return {**body, **brokers, **({"topics": topics} if "topics" in body else {})}


async def of_serve(named: str) -> list[Any]:
    topics = Topics.of([("t", 3)], 0)
    broker = Broker(edition(named), topics)
    async with serving(named=named, script=broker) as world:
        return await answers(world.connect)


async def of_a_broker(port: int, named: str) -> list[Any]:
    connections = Connections("127.0.0.1", port)
    versions = await versions_of(connections)
    while not await partitions_of("t", connections, versions, creates=True):
        await asyncio.sleep(0.2)

    async def connect() -> Client:
        return Client(named, *await asyncio.open_connection("127.0.0.1", port))

    return await answers(connect)


@pytest.mark.integration
@pytest.mark.jars
@pytest.mark.timeout(240)
@for_each(("2.8.2", OLD.removeprefix("apache@")))
def test_a_broker_of_the_release_answers_the_same(release: str) -> None:
    """Both run beside ZooKeeper, as 3.9 can; in KRaft mode it refuses version 0 of both requests about offsets."""
    named = f"apache@{release}"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kafka_broker, "KRAFT", releases("4.0.0+"))
        with running(release, settings={"num.partitions": "3", "log.retention.ms": "-1"}) as port:
            real = asyncio.run(of_a_broker(port, named))
    ours = asyncio.run(of_serve(named))
    asked = (*WRITTEN, *LISTED, *FETCHED, *COMMITTED, *DESCRIBED, *OF_MEMBERS)
    for request, theirs, mine in zip(asked, real, ours, strict=True):
        assert _read(mine) == _read(theirs), request


def _read(body: dict[str, Any]) -> dict[str, Any]:
    """Aborted transactions that are absent are null or none, by release."""
    responses = [
        {**topic, "partitions": [
            {**part, "abortedTransactions": part.get("abortedTransactions") or None} for part in topic["partitions"]
        ]} if "partitions" in topic else topic
        for topic in body.get("responses", ())
    ]  # fmt: skip
    return {**body, **({"responses": responses} if "responses" in body else {})}


@for_each(patches())
def test_what_is_offered_is_what_the_release_serves(release: str) -> None:
    """Of each API that is served, exactly the versions of the release; JoinGroup 0 without ListOffsets 0 is that of
    4.0.1 and later."""
    found = Broker(edition(f"apache@{release}"), Topics())
    for key, versions in found.versions.items():
        api = requests(found.edition)[key].name.removesuffix("Request")
        stable = stable_versions(api, release)
        assert stable is not None
        assert (versions.start, versions.stop - 1) == (stable.low, stable.high), api
    offered = {requests(found.edition)[key].name.removesuffix("Request") for key in found.versions}
    assert offered >= {"Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch", "JoinGroup"}


def test_records_are_converted_to_the_format_of_the_version() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        for version in range(4):
            found = await client.ask(*fetch(version, 2))
            (part,) = found["responses"][0]["partitions"]
            records = decode(part["records"])
            assert [(each.offset, each.value) for each in records][:2] == [(2, b"t 2"), (3, b"t 3")]
            assert {part["records"][16]} == {0 if version < 2 else 1}
            assert {each.timestamp for each in records} == {-1 if version < 2 else RECORD_MS}
        found = await client.ask(*fetch(4, 2))
        assert decode_batches(found["responses"][0]["partitions"][0]["records"])[0].base_offset == 2

    run(test, named=OLD)


def test_an_answer_with_converted_records_is_as_long_as_what_was_converted() -> None:
    """From 2.0 on; the rest of it looks like a message that is cut off."""

    async def sizes(named: str) -> list[int]:
        async with serving(named=named) as world:
            client = await world.connect()
            found = [await client.ask(*fetch(version, 0)) for version in (0, 2)]
            return [len(each["responses"][0]["partitions"][0]["records"]) for each in found]

    whole = sum(len(one_record("t", offset)) for offset in range(10))
    assert asyncio.run(sizes(OLD)) == asyncio.run(sizes("apache@2.0.0")) == [whole, whole]
    assert asyncio.run(sizes("apache@1.1.1")) == [10 * 29, 10 * 37]


def test_a_fetch_before_version_3_gets_no_batch_that_is_larger_than_it_allows() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        for version, number in ((0, 0), (2, 0), (3, 1), (4, 1)):
            found = await client.ask(*fetch(version, 0, size=20))
            (part,) = found["responses"][0]["partitions"]
            assert (part["errorCode"], bool(part["records"])) == (0, bool(number)), version

    run(test, named=OLD)


def test_list_offsets_0_has_several_offsets() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        late: tuple[int, int, list[int]] = (RECORD_MS + 1, 9, [10, 0])
        early: tuple[int, int, list[int]] = (RECORD_MS, 9, [])
        for time, most, offsets in ((-1, 1, [10]), (-1, 9, [10, 0]), (-2, 9, [0]), early, late):
            found = await client.ask(*list_offsets(time, most))
            assert found["topics"][0]["partitions"][0]["oldStyleOffsets"] == offsets, (time, most)

    run(test, named=OLD)


def test_offsets_in_zookeeper_are_apart_and_of_no_member() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        await joined(client, 5)
        refused = await client.ask(*commit(1, 3, "g"))
        accepted = await client.ask(*commit(0, 4, "g"))
        errors = [each["topics"][0]["partitions"][0]["errorCode"] for each in (refused, accepted)]
        assert errors == [25, 0]
        old = (await client.ask(*fetch_offsets(0, "g")))["topics"][0]["partitions"]
        assert [(each["committedOffset"], each["errorCode"]) for each in old] == [(4, 0), (-1, 3), (-1, 3)]
        new = (await client.ask(*fetch_offsets(1, "g")))["topics"][0]["partitions"]
        assert [(each["committedOffset"], each["errorCode"]) for each in new] == [(-1, 0)] * 3

    run(test, named=OLD)


# -- writing


def test_what_a_client_writes_is_read_from_its_partition_alone() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        waiting = await world.connect()
        body = fetch(11, 10, index=1)[2]
        waiting.send("Fetch", 11, {**body, "maxWaitMs": 4000})
        await asyncio.sleep(0.05)
        written = await client.ask(*produce(2, encode([MESSAGE, Record(1, 6, None, b"w")], 1), index=1))
        assert written["responses"][0]["partitionResponses"][0]["baseOffset"] == 10
        (part,) = (await waiting.receive("Fetch", 11))["responses"][0]["partitions"]
        (found,) = decode_batches(part["records"])
        assert [(each.offset, each.timestamp, each.value) for each in found.records] == [(10, 5, b"v"), (11, 6, b"w")]
        ends = [await client.ask(*list_offsets(-1, 1, index)) for index in (0, 1)]
        assert [each["topics"][0]["partitions"][0]["oldStyleOffsets"] for each in ends] == [[10], [12]]
        assert isinstance(world.script, Broker)
        world.script.topics.grow("t")
        assert world.script.topics.by_name["t"].log_of(1).end == 13

    run(test, named=OLD)


def test_a_produce_without_acks_is_answered_by_nothing_or_by_the_end() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        client.send(*produce(3, one_record("t", 0), acks=0))
        assert (await client.ask(*list_offsets(-1, 1)))["topics"][0]["partitions"][0]["oldStyleOffsets"] == [11]
        client.send(*produce(3, one_record("t", 0), index=9, acks=0))
        assert await client.is_closed()

    run(test, named=OLD)


def test_a_batch_that_lies_about_its_records_is_refused() -> None:
    """Its offsets would go back, or jump."""
    two = batch(0, [b"a", b"b"])
    for last in (-1, 0, 5):
        assert refused_by(encode_batch(two.__class__(**{**_fields(two), "last_offset": last}))) == 87
    assert refused_by(encode_batch(two.__class__(**{**_fields(two), "attributes": 1 << 5}))) == 87


def _fields(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__slots__}


def refused_by(records: bytes, named: str = OLD) -> int:
    async def main() -> int:
        async with serving(named=named) as world:
            answer = await (await world.connect()).ask(*produce(3, records))
            return int(answer["responses"][0]["partitionResponses"][0]["errorCode"])

    return asyncio.run(main())


def test_what_clients_write_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        large, one = produce(3, encode_batch(batch(0, [b"x" * produce_api.MOST_BYTES]))), produce(3, one_record("t", 0))
        several = produce(2, encode([MESSAGE] * 3, 0))
        errors = [await client.ask(*each) for each in (large, several, one, one, one)]
        found = [each["responses"][0]["partitionResponses"][0]["errorCode"] for each in errors]
        assert found == [10, 10, 0, 0, 56]

    monkeypatch.setattr(produce_api, "MOST_WRITTEN", 2 * len(one_record("t", 0)))
    monkeypatch.setattr(produce_api, "MOST_RECORDS", 2)
    run(test, named=OLD)


def test_a_batch_that_is_larger_than_what_is_converted_at_once_is_read() -> None:
    """Else a consumer would never pass it."""

    async def test(world: World) -> None:
        client = await world.connect()
        await client.ask(*produce(3, encode_batch(batch(0, [b"x" * (100 << 10)]))))
        for version, size, number in ((0, 1 << 20, 1), (0, 1 << 10, 0), (3, 1 << 20, 1), (3, 1 << 10, 1)):
            found = await client.ask(*fetch(version, 10, size=size))
            assert len(decode(found["responses"][0]["partitions"][0]["records"])) == number, (version, size)

    run(test, named=OLD)


def test_compressed_records_are_kept_and_not_converted() -> None:
    """Nothing here decompresses."""

    async def test(world: World) -> None:
        client = await world.connect()
        compressed = bytearray(encode_batch(batch(0, [b"a"])))
        compressed[22] = 1
        from kipcheck.conformance.wire.record_batches import crc32c

        compressed[17:21] = crc32c(bytes(compressed[21:])).to_bytes(4, "big")
        await client.ask(*produce(3, bytes(compressed)))
        for version, error in ((4, 0), (3, 76)):
            found = await client.ask(*fetch(version, 10))
            assert found["responses"][0]["partitions"][0]["errorCode"] == error

    run(test, named=OLD)


def test_the_newest_release_serves_none_of_them() -> None:
    found = Broker(edition(f"apache@{NEWEST}"), Topics())
    assert [found.versions[key].start for key in (0, 1, 2, 8, 9)] == [3, 4, 1, 2, 1]
