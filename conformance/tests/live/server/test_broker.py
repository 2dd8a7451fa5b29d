"""The broker: every served API in every version, and conversations of members in real time."""

import asyncio
from importlib.resources import files
from typing import Any, Final

import pytest

from kipcheck.conformance.core.files.broker_settings import defaults, rows
from kipcheck.conformance.core.files.releases_table import named, patches
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.broker import OFFSETS, Broker, coordinator_of
from kipcheck.conformance.live.server.settings import FIXED, LARGEST, OWN, PROTOCOLS, SERVED, parse
from kipcheck.conformance.live.server.topics import Topics, one_record, parse_topic
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.tests.support.live import JOIN, QUICK, Client, World, joined, run
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire.framing import requests
from kipcheck.conformance.wire.record_batches import decode

EDITIONS = (f"apache@{NEWEST}", "apache@3.9.2", "apache@2.3.1", "apache@0.10.2.2", "apache", "kip-429")
IDS = {each.name: each.id for each in Topics.of([("t", 3), ("u", 2)]).by_name.values()}
SOFTWARE = {"clientSoftwareName": "kipcheck", "clientSoftwareVersion": "1"}


def asked(api: str, version: int) -> dict[str, Any]:
    """A request that is answered at once, with topics that exist and one that does not."""
    names = [{"topicId": IDS["t"]}] if version >= 10 else [{"name": "t"}, {"name": "nowhere"}]
    fetched = [{"topicId": IDS["t"]}] if version >= 13 else [{"topic": "t"}, {"topic": "nowhere"}]
    topics = [{**each, "partitionIndexes": [0, 9]} for each in names]
    match api:
        case "ApiVersions":
            return SOFTWARE if version >= 3 else {}
        case "Metadata":
            return {"topics": [{"name": "t"}, {"name": "nowhere"}]}
        case "FindCoordinator":
            return {"coordinatorKeys": ["g"]} if version >= 4 else {"key": "g"}
        case "JoinGroup":
            one = {key: value for key, value in JOIN.items() if version or key != "rebalanceTimeoutMs"}
            return {**one, "groupId": f"g{version}"}
        case "SyncGroup" | "Heartbeat":
            typed = {"protocolType": "consumer", "protocolName": "range"} if version >= 5 else {}
            return {"groupId": "g", "generationId": 1, "memberId": "m"} | typed
        case "LeaveGroup":
            return {"groupId": "g"} | ({"members": [{"memberId": "m"}]} if version >= 3 else {"memberId": "m"})
        case "OffsetCommit":
            parts = [{"partitionIndex": index, "committedOffset": 3} for index in (0, 9)]
            return {"groupId": "plain", "topics": [{**each, "partitions": parts} for each in names]}
        case "OffsetFetch" if version >= 8:
            return {"groups": [{"groupId": "plain", "topics": topics}, {"groupId": "other", "topics": None}]}
        case "OffsetFetch":
            return {"groupId": "plain", "topics": topics}
        case "ListOffsets":
            parts = [{"partitionIndex": index, "timestamp": time} for index, time in ((0, -1), (1, -2), (9, -1))]
            return {"replicaId": -1, "topics": [{"name": name, "partitions": parts} for name in ("t", "nowhere")]}
        case "Fetch":
            parts = [{"partition": index, "fetchOffset": 2, "partitionMaxBytes": 999} for index in (0, 9)]
            return {"maxWaitMs": 0, "minBytes": 1, "topics": [{**each, "partitions": parts} for each in fetched]}
        case "Produce":
            topic = {"topicId": IDS["t"]} if version >= 13 else {"name": "t"}
            written = [{"index": index, "records": one_record("t", 0)} for index in (0, 9)]
            return {"acks": 1, "timeoutMs": 1000, "topicData": [{**topic, "partitionData": written}]}
        case "DescribeGroups":
            return {"groups": ["g", "plain"]}
        case "DeleteGroups":
            return {"groupsNames": ["nowhere"]}
        case "ConsumerGroupHeartbeat":
            return {"groupId": "new", "memberId": "" if version == 0 else "x", "memberEpoch": 0,
                    "rebalanceTimeoutMs": 1000, "subscribedTopicNames": ["t"], "topicPartitions": []}  # fmt: skip
        case _:
            return {}


@for_each(EDITIONS)
def test_every_served_version_of_every_api_is_answered(named: str) -> None:
    """The response is decoded strictly. An API that is added to the broker needs a request above."""

    async def test(world: World) -> None:
        assert isinstance(world.script, Broker)
        for key, versions in world.script.versions.items():
            api = requests(world.front.edition)[key].name.removesuffix("Request")
            for version in versions:
                found = await (await world.connect()).ask(api, version, asked(api, version))
                assert found or api == "Heartbeat", (api, version)
        assert not world.findings
        assert world.counts["our bugs"] == 0

    run(test, named=named)


def test_advertised_versions_are_those_of_the_release() -> None:
    async def test(world: World) -> None:
        found = await (await world.connect()).ask("ApiVersions", 3, SOFTWARE)
        ranges = {each["apiKey"]: (each["minVersion"], each["maxVersion"]) for each in found["apiKeys"]}
        assert ranges[11] == (0, 9)
        assert ranges[14] == (0, 5)
        assert ranges[1] == (0, 17)
        assert 68 not in ranges
        assert found["finalizedFeatures"] == []

    run(test, named="apache@3.9.2")


def test_apiversions_with_a_bad_software_name_is_refused() -> None:
    async def test(world: World) -> None:
        found = await (await world.connect()).ask("ApiVersions", 3, {**SOFTWARE, "clientSoftwareName": "-"})
        assert (found["errorCode"], found["apiKeys"]) == (42, [])

    run(test)


def test_metadata_has_ids_and_one_node() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        found = await client.ask("Metadata", 12, {"topics": None})
        assert [(each["nodeId"], each["port"]) for each in found["brokers"]] == [(1, world.port)]
        sizes = {each["name"]: (each["topicId"], len(each["partitions"])) for each in found["topics"]}
        assert sizes == {"t": (IDS["t"], 3), "u": (IDS["u"], 2), OFFSETS.name: (OFFSETS.id, 50)}
        assert [each["name"] for each in found["topics"] if each["isInternal"]] == [OFFSETS.name]
        named = await client.ask("Metadata", 12, {"topics": [{"topicId": OFFSETS.id, "name": OFFSETS.name}]})
        assert [(each["errorCode"], each["isInternal"]) for each in named["topics"]] == [(0, True)]
        by_id = await client.ask("Metadata", 12, {"topics": [{"topicId": IDS["u"], "name": None}]})
        assert by_id["topics"][0]["name"] == "u"
        unknown = await client.ask("Metadata", 12, {"topics": [{"topicId": edition_id(), "name": None}]})
        assert unknown["topics"][0]["errorCode"] == 100

    run(test)


def edition_id() -> object:
    """An id of no topic."""
    return Topics.of([("nowhere", 1)]).by_name["nowhere"].id


async def synced(
    client: Client, found: dict[str, Any], assignments: dict[str, bytes], group: str = "g"
) -> dict[str, Any]:
    given = [{"memberId": id, "assignment": data} for id, data in assignments.items()]
    body = {"groupId": group, "generationId": found["generationId"], "memberId": found["memberId"]}
    return await client.ask("SyncGroup", 5, {**body, "protocolType": "consumer", "protocolName": "range",
                                             "assignments": given})  # fmt: skip


def test_member_ids_are_made_of_the_client_id_or_the_instance_id_and_a_uuid() -> None:
    async def test(world: World) -> None:
        one = await joined(await world.connect())
        assert one["memberId"].startswith("me-")
        assert len(one["memberId"]) == len("me-") + 36
        other = await (await world.connect()).ask("JoinGroup", 9, {**JOIN, "groupId": "s", "groupInstanceId": "i"})
        assert other["memberId"].startswith("i-")

    run(test)


def test_a_member_that_dies_is_replaced_after_its_session() -> None:
    """Two members share a group; the connection of one is closed; the other gets everything after 500 ms."""

    async def test(world: World) -> None:
        one, other = await world.connect(), await world.connect()
        first = await joined(one)
        second = asyncio.create_task(joined(other, sessionTimeoutMs=500))
        await asyncio.sleep(0.05)
        again = await joined(one, memberId=first["memberId"])
        await second
        assert len(again["members"]) == 2
        await synced(one, again, {first["memberId"]: b"x", second.result()["memberId"]: b"y"})
        assert (await synced(other, second.result(), {}))["assignment"] == b"y"
        other.writer.close()
        beat = {"groupId": "g", "generationId": again["generationId"], "memberId": first["memberId"]}
        async with asyncio.timeout(2):
            while (await one.ask("Heartbeat", 4, beat))["errorCode"] == 0:
                await asyncio.sleep(0.01)
        last = await joined(one, memberId=first["memberId"])
        assert (last["generationId"], len(last["members"])) == (3, 1)

    run(test)


def test_a_static_member_gets_its_assignment_back() -> None:
    async def test(world: World) -> None:
        one = await world.connect()
        first = await joined(one, groupInstanceId="i")
        await synced(one, first, {first["memberId"]: b"x"})
        one.writer.close()
        other = await world.connect()
        again = await joined(other, groupInstanceId="i")
        assert again["generationId"] == first["generationId"]
        assert again["memberId"] != first["memberId"]
        assert (await synced(other, again, {}))["assignment"] == b"x"

    run(test)


def test_several_groups_at_once_and_a_full_one() -> None:
    async def test(world: World) -> None:
        found = await asyncio.gather(*[joined(await world.connect(), groupId=f"g{n}") for n in range(20)])
        assert {each["generationId"] for each in found} == {1}
        client = await world.connect()
        listed = await client.ask("ListGroups", 5, {"typesFilter": ["classic"]})
        assert len(listed["groups"]) == 20
        full = await client.ask("JoinGroup", 9, {**JOIN, "groupId": "g1", "memberId": ""})
        assert full["errorCode"] == 81
        described = await client.ask("DescribeGroups", 5, {"groups": ["g1"]})
        (member,) = described["groups"][0]["members"]
        assert (member["clientId"], member["clientHost"]) == ("me", "/127.0.0.1")
        assert (await client.ask("DeleteGroups", 2, {"groupsNames": ["g1"]}))["results"][0]["errorCode"] == 68

    run(test, config=[*QUICK, "group.max.size=1"])


async def committed(client: Client, group: str, offset: int, **more: Any) -> list[int]:
    parts = [{"partitionIndex": 0, "committedOffset": offset, "committedLeaderEpoch": 0, "committedMetadata": "note"}]
    topics = [{"name": "t", "partitions": parts}, {"name": "nowhere", "partitions": parts}]
    found = await client.ask("OffsetCommit", 8, {"groupId": group, "topics": topics, **more})
    return [each["partitions"][0]["errorCode"] for each in found["topics"]]


async def fetched(client: Client, group: str) -> list[tuple[str, int, int, str]]:
    found = await client.ask("OffsetFetch", 5, {"groupId": group, "topics": None})
    return [
        (topic["name"], each["partitionIndex"], each["committedOffset"], each["metadata"])
        for topic in found["topics"]
        for each in topic["partitions"]
    ]


def test_offsets_are_kept_for_the_next_member() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        first = await joined(client)
        await synced(client, first, {first["memberId"]: b"x"})
        stale = {"generationIdOrMemberEpoch": 7, "memberId": first["memberId"]}
        assert await committed(client, "g", 4, **stale) == [22, 3]
        good = {"generationIdOrMemberEpoch": first["generationId"], "memberId": first["memberId"]}
        assert await committed(client, "g", 4, **good) == [0, 3]
        left = {"groupId": "g", "members": [{"memberId": first["memberId"], "groupInstanceId": None}]}
        assert (await client.ask("LeaveGroup", 5, left))["errorCode"] == 0
        other = await world.connect()
        assert await fetched(other, "g") == [("t", 0, 4, "note")]
        by_id = await other.ask("OffsetFetch", 10, {"groups": [{"groupId": "g", "topics": None}]})
        assert by_id["groups"][0]["topics"][0]["topicId"] == IDS["t"]
        assert (await other.ask("DeleteGroups", 2, {"groupsNames": ["g"]}))["results"][0]["errorCode"] == 0
        assert await fetched(other, "g") == []

    run(test)


async def read(client: Client, offset: int, wait_ms: int = 0) -> tuple[dict[str, Any], float]:
    """The partition in the response, and the time it took."""
    parts = [{"partition": 0, "fetchOffset": offset, "partitionMaxBytes": 1 << 20}]
    began = asyncio.get_running_loop().time()
    found = await client.ask("Fetch", 12, {"maxWaitMs": wait_ms, "minBytes": 1, "maxBytes": 1 << 20,
                                           "topics": [{"topic": "t", "partitions": parts}]})  # fmt: skip
    return found["responses"][0]["partitions"][0], asyncio.get_running_loop().time() - began


def test_fetch_returns_records_and_waits_at_the_end() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        some, at_once = await read(client, 8, 400)
        found = [(each.offset, each.value) for one in decode(some["records"]) for each in one.records]
        assert found == [(8, b"t 8"), (9, b"t 9")]
        assert some["highWatermark"] == 10
        assert at_once < 0.3
        none, waited = await read(client, 10, 100)
        assert not none["records"]
        assert 0.09 <= waited < 1
        assert (await read(client, 11))[0]["errorCode"] == 1

    run(test)


def test_a_fetch_that_waits_is_answered_when_its_topic_grows() -> None:
    async def test(world: World) -> None:
        assert isinstance(world.script, Broker)
        client = await world.connect()
        waiting = asyncio.ensure_future(read(client, 10, 60_000))
        await asyncio.sleep(0.05)
        world.script.topics.grow("t")
        world.script.log.grew()
        some, waited = await waiting
        assert [(each.offset, each.value) for one in decode(some["records"]) for each in one.records] == [(10, b"t 10")]
        assert waited < 5
        assert world.script.topics.by_id[IDS["t"]].end == world.script.topics.by_name["t"].end == 11

    run(test)


# KIP-848


async def beaten(
    client: Client, member: str, epoch: int, owned: list[int] | None = None, **more: Any
) -> dict[str, Any]:
    parts = None if owned is None else [{"topicId": IDS["t"], "partitions": owned}] if owned else []
    body = {"groupId": "c", "memberId": member, "memberEpoch": epoch, "rebalanceTimeoutMs": 500,
            "subscribedTopicNames": ["t"] if epoch == 0 else None, "topicPartitions": parts}  # fmt: skip
    return await client.ask("ConsumerGroupHeartbeat", 1, {**body, **more})


def given(found: dict[str, Any]) -> list[int]:
    """The partitions of an answer; the null assignment is no assignment."""
    return [index for each in found["assignment"]["topicPartitions"] for index in each["partitions"]]


def test_consumer_groups_reconcile_and_fence_who_is_silent() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        first = await beaten(client, "a", 0, [])
        assert (first["errorCode"], given(first)) == (0, [0, 1, 2])
        second = await beaten(client, "b", 0, [])
        assert given(second) == []
        revoked = await beaten(client, "a", first["memberEpoch"], [0, 1, 2])
        assert len(given(revoked)) == 2
        kept = given(revoked)
        await beaten(client, "a", revoked["memberEpoch"], kept)
        taken = await beaten(client, "b", second["memberEpoch"], [])
        assert sorted(kept + given(taken)) == [0, 1, 2]
        assert (await beaten(client, "a", 99, kept))["errorCode"] == 110
        epoch = taken["memberEpoch"]
        async with asyncio.timeout(3):
            while (again := await beaten(client, "b", epoch, given(taken)))["assignment"] is None:
                await asyncio.sleep(0.02)
        assert sorted(given(again)) == [0, 1, 2]
        assert (await beaten(client, "b", -1))["memberEpoch"] == -1

    run(test)


def test_a_group_keeps_its_offsets_when_its_members_use_the_classic_protocol_again() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        first = await beaten(client, "a", 0, [])
        about = {"memberId": "a", "generationIdOrMemberEpoch": first["memberEpoch"]}
        assert await committed(client, "c", 4, **about) == [0, 3]
        await beaten(client, "a", -1)
        member = await joined(client, groupId="c")
        assert await fetched(client, "c") == [("t", 0, 4, "note")]
        await synced(client, member, {member["memberId"]: b"x"}, "c")
        about = {"memberId": member["memberId"], "generationIdOrMemberEpoch": member["generationId"]}
        assert await committed(client, "c", 5, **about) == [0, 3]

    run(test)


def test_a_consumer_group_checks_its_requests() -> None:
    async def test(world: World) -> None:
        client = await world.connect()
        assert (await beaten(client, "", 0, []))["errorCode"] == 42
        assert (await beaten(client, "a", 3, []))["errorCode"] == 69
        assert (await beaten(client, "a", 0, [], serverAssignor="mine"))["errorCode"] == 112
        assert (await beaten(client, "a", 0, [], subscribedTopicRegex="("))["errorCode"] == 128
        matched = await beaten(client, "a", 0, [], subscribedTopicNames=None, subscribedTopicRegex="[t]")
        assert given(matched) == [0, 1, 2]
        assert (await client.ask("JoinGroup", 9, {**JOIN, "groupId": "c"}))["errorCode"] == 23
        assert await committed(client, "c", 4, generationIdOrMemberEpoch=9, memberId="a") == [113, 3]
        good = {"generationIdOrMemberEpoch": matched["memberEpoch"], "memberId": "a"}
        assert await committed(client, "c", 4, **good) == [0, 3]
        assert await fetched(client, "c") == [("t", 0, 4, "note")]
        classic = await joined(client)
        assert classic["generationId"] == 1
        assert (await beaten(client, "a", 0, [], groupId="g"))["errorCode"] == 69

    run(test)


PREVIEW: Final = "group.coordinator.rebalance.protocols=classic,consumer"


async def versions(world: World) -> dict[int, int]:
    """The highest version by API key."""
    found = await (await world.connect()).ask("ApiVersions", 0, {})
    return {each["apiKey"]: each["maxVersion"] for each in found["apiKeys"]}


def test_the_preview_of_consumer_groups_is_served_if_it_is_switched_on() -> None:
    """In version 0 alone, in which the coordinator makes the member ids."""

    async def test(world: World) -> None:
        assert (await versions(world))[68] == 0
        body = {"groupId": "c", "memberId": "", "memberEpoch": 0, "rebalanceTimeoutMs": 1000,
                "subscribedTopicNames": ["t"], "topicPartitions": []}  # fmt: skip
        found = await (await world.connect()).ask("ConsumerGroupHeartbeat", 0, body)
        assert found["errorCode"] == 0 and found["memberId"] and given(found) == [0, 1, 2]

    run(test, named="apache@3.9.2", config=[PREVIEW])

    async def lacks(world: World) -> None:
        assert 68 not in await versions(world)

    run(lacks, named="apache@3.9.2")
    run(lacks, config=["group.coordinator.rebalance.protocols=classic"])
    with pytest.raises(ValueError, match=r"3\.6\.2 has no setting group\.coordinator.*: it is in 3\.7\.0\+"):
        run(lacks, named="apache@3.6.2", config=[PREVIEW])


# Settings


@for_each(patches())
def test_settings_have_the_defaults_of_the_release(release: str) -> None:
    """But for those that the output of ``serve`` names."""
    usual, served = defaults(release), parse([], release)
    group, consumer = served.group, served.consumer
    bounds = (group.min_session_ms, group.max_session_ms)
    assert bounds == (usual["group.min.session.timeout.ms"], usual["group.max.session.timeout.ms"])
    assert group.max_size == usual.get("group.max.size", LARGEST)
    assert served.most_metadata == usual["offset.metadata.max.bytes"]
    assert served.has_consumer_groups is ("consumer" in str(usual.get(PROTOCOLS)))
    if "group.consumer.session.timeout.ms" in usual:
        assert consumer.session_ms == usual["group.consumer.session.timeout.ms"]
        assert consumer.max_size == usual["group.consumer.max.size"]
        assert served.consumer_heartbeat_ms == usual["group.consumer.heartbeat.interval.ms"]
    assert consumer.interval_ms == 0
    assert group.initial_delay_ms == 0 or "group.initial.rebalance.delay.ms" not in usual
    differ = {each.partition("=")[0] for each in served.differences}
    assert differ <= {*OWN, PROTOCOLS}
    assert {name for name, each in served.values.items() if each != usual[name]} == differ
    assert {*served.values} == {*usual} & {*SERVED, *OWN}


def test_the_docs_have_the_defaults_of_all_releases() -> None:
    page = (files("kipcheck.conformance") / "docs" / "groups.md").read_text("utf-8")
    for name in (*SERVED, *FIXED):
        found = dict[object, str]()
        for _, row in (each for each in rows() if each[0] == name and not each[1].internal):
            found.setdefault(row.default, row.releases.partition("-")[0].removesuffix("+"))
        texts = [
            ("" if since == patches()[0] else f"from {since} on ")
            + (",".join(value) if isinstance(value, tuple) else str(value))
            for value, since in found.items()
        ]
        own = f"| {OWN[name]} |" if name in OWN and name not in FIXED else f"| always {OWN.get(name)} |"
        expected = f"| `{name}` | {', '.join(texts)} "
        assert expected + (own if name in OWN else "|") in page, name


def test_values_that_are_given_replace_the_defaults() -> None:
    given = ["group.consumer.session.timeout.ms=7", "group.consumer.assignment.interval.ms=1000", "group.max.size=2"]
    found = parse([*given, "group.coordinator.rebalance.protocols=classic"], NEWEST)
    assert (found.consumer.session_ms, found.consumer.interval_ms, found.group.max_size) == (7, 1000, 2)
    assert not found.has_consumer_groups
    assert found.differences == [
        "group.max.size=2 (default 2147483647)",
        "group.initial.rebalance.delay.ms=0 (default 3000)",
        "group.consumer.session.timeout.ms=7 (default 45000)",
        "group.coordinator.rebalance.protocols=classic (default classic,consumer,streams)",
        "group.consumer.migration.policy=disabled (default bidirectional)",
        "offsets.retention.minutes=unlimited (default 10080)",
        "group.consumer.session.timeout.ms=7 is below group.consumer.min.session.timeout.ms=45000",
    ]


@for_each(
    [
        (NEWEST, "group.max.siz=3", "the nearest: group.max.size"),
        (NEWEST, "group.max.size=0", "invalid value of group.max.size: '0'; use an integer from 1 to 2147483647"),
        (NEWEST, "group.max.size", "invalid value"),
        (NEWEST, "group.max.size=2147483648", "use an integer from 1 to 2147483647"),
        (NEWEST, "group.min.session.timeout.ms=1_0", "use an integer from -2147483648"),
        (NEWEST, f"{PROTOCOLS}=streams", "use classic or classic,consumer"),
        (NEWEST, f"{PROTOCOLS}=consumer", "use classic or classic,consumer"),
        ("3.9.2", f"{PROTOCOLS}=streams", "use one of classic, consumer, share, unknown or several"),
        ("2.1.1", "group.max.size=3", r"2.1.1 has no setting group.max.size: it is in 2.2.0\+$"),
        ("3.6.2", "group.consumer.max.size=3", r"3.6.2 has no setting group.consumer.max.size: it is in 3.7.0\+$"),
        ("0.10.2.2", "group.initial.rebalance.delay.ms=3", r"it is in 0.11.0.0\+"),
        (NEWEST, "offsets.commit.required.acks=1", "it is in 0.10.0.0-3.9.2, and it is not served"),
        ("2.3.1", "offsets.retention.minutes=1", "a setting of 2.3.1 that is not served; served: group.max.size, "),
        (NEWEST, "group.consumer.migration.policy=upgrade", "a setting of .* that is not served"),
        (NEWEST, "group.share.max.size=3", "a setting of .* that is not served"),
        ("3.6.2", "consumer.session.timeout.ms=3", r"a setting of single groups \(in 4.0.0\+\), which is not served$"),
        (NEWEST, "consumer.session.timeout.ms=3", "use that of the broker, group.consumer.session.timeout.ms$"),
        (NEWEST, "log.dirs=x", "unknown setting 'log.dirs'; served: group.max.size, "),
    ]
)
def test_wrong_settings_are_refused(release: str, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse([text], release)


@for_each([("t:0", "number of partitions"), ("t:x", "number of partitions"), ("a b:1", "invalid topic"),
           (":3", "invalid topic"), ("..", "invalid topic")])  # fmt: skip
def test_wrong_topics_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_topic(text)
    assert parse_topic("a.b:7") == ("a.b", 7)


def test_editions_have_their_coordinators() -> None:
    draft, settings = coordinator_of(edition("kip-429"), ())
    assert isinstance(draft, DraftCoordinator)
    assert (settings.release, settings.group.max_session_ms) == (named("kip-429-base"), 300_000)
    assert not coordinator_of(edition("apache@2.3.1"), ())[0].rules.java
    for each in ("kip-584", "maven:4.0.0"):
        with pytest.raises(LookupError, match="no group coordinator"):
            coordinator_of(edition(each), ())


def test_a_request_is_identified_by_itself() -> None:
    """Two equal requests of a connection are two keys."""
    one, other = (Received("HeartbeatRequest", 0, 1, None, {}, 1, "", 0.0) for _ in range(2))
    assert len({one, other}) == 2
    assert (one.api, one.response) == ("Heartbeat", "HeartbeatResponse")
