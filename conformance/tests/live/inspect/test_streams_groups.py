"""Streams groups and share groups in ``kipcheck inspect``: each law is broken by a group, and text and JSON have all
that a coordinator describes, also that of a released broker whose members are heartbeats of this test."""

import asyncio
import json
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import kafka  # type: ignore[import-untyped]
import pytest
from kafka.admin import NewTopic  # type: ignore[import-untyped]

from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.inspect.cluster import CONTEXT
from kipcheck.conformance.live.inspect.group import ShareGroup, StreamsGroup, StreamsMember, Subtopology, TaskSet
from kipcheck.conformance.live.inspect.inspection import Inspected
from kipcheck.conformance.live.inspect.report import lines, plain
from kipcheck.conformance.live.inspect.verdicts import (
    OF_SHARE_GROUPS,
    OF_STREAMS_GROUPS,
    WITH_ALL_TASKS,
    judged,
    topics_of,
)
from kipcheck.conformance.matrix.group_advice import advice
from kipcheck.conformance.tests.support.kafka_broker import running
from kipcheck.conformance.wire.bodies import read_body

Group = TypeVar("Group", StreamsGroup, ShareGroup)
PLACE: Final = ("127.0.0.1", 9092)
TOPICS: Final = {"t": [frozenset[str]()] * 3, "u": [frozenset[str]()] * 2, "r": [frozenset[str]()] * 2}
NEWEST: Final = "4.4.0"
SETTINGS: Final = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.assignor.offload.enable": "false",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def active(*names: str) -> TaskSet:
    return TaskSet(tuple((each.split("_")[0], int(each.split("_")[1])) for each in names), (), ())


def member(id: str, *names: str) -> StreamsMember:
    return StreamsMember(id, None, "c", "h", None, 4, 1, "p", None, (), (), (), active(*names), active(*names), False)


def group(*members: StreamsMember) -> StreamsGroup:
    """Subtopology 0 reads topics of 3 and 2 partitions, subtopology 1 what it writes."""
    topology = (Subtopology("0", ("t", "u"), ("r",), ()), Subtopology("1", (), (), ("s",), ("r",)))
    return StreamsGroup("g", PLACE, "Stable", 4, 4, 1, topology, "sticky", members)


SOUND: Final = group(member("a", "0_0", "0_2", "1_1"), member("b", "0_1", "1_0"))


def broken(found: StreamsGroup) -> set[str]:
    return {each.law.id for each in judged(found, TOPICS).broken}


def test_each_law_of_streams_groups_is_broken_by_a_group() -> None:
    a, b = SOUND.members
    assert topics_of(SOUND) == ["r", "t", "u"]
    assert broken(SOUND) == set()
    twice = replace(b, assigned=active("0_1", "0_2", "1_0"), target=active("0_1", "0_2", "1_0"))
    strange = replace(b, assigned=active("0_1", "0_3", "1_0", "2_0"), target=active("0_1", "0_3", "1_0", "2_0"))
    waits = replace(b, assigned=active("0_1"), epoch=3)
    idle = replace(b, assigned=active("1_0"), target=active("1_0"))
    broken_by = {
        "streams-group/one-owner": broken(replace(SOUND, members=(a, twice), state="Reconciling")),
        "streams-group/group-epoch-rises": broken(replace(SOUND, assignment_epoch=5, state="Reconciling")),
        "streams-group/empty-without-members": broken(replace(SOUND, members=(a, b), state="Empty")),
        "streams-group/known-tasks": broken(replace(SOUND, members=(a, strange), state="Reconciling")),
        "streams-group/stable-is-complete": broken(replace(SOUND, members=(a, waits))),
    }
    assert broken(replace(SOUND, members=(a, idle))) == {"streams-group/stable-is-complete"}
    assert broken_by.keys() == {*OF_STREAMS_GROUPS, *WITH_ALL_TASKS}
    assert {law: found for law, found in broken_by.items() if found != {law}} == {}


def test_topics_that_may_be_new_or_gone_break_nothing() -> None:
    """The coordinator learns of both with a later heartbeat."""
    found = judged(SOUND, {**TOPICS, "t": [frozenset[str]()] * 5})
    assert not found.broken and found.laws[-1].id == "streams-group/stable-is-complete"
    assert found.notes == ("tasks that no member has: 0_3 0_4. If their partitions are new, they are assigned soon",)
    gone = judged(SOUND, {name: racks for name, racks in TOPICS.items() if name != "r"})
    assert not gone.broken and [each.id for each in gone.laws] == [*OF_STREAMS_GROUPS]
    assert gone.notes == ("r: read, and not there, or the user may not describe it",)


def test_a_group_that_reconciles_is_noted() -> None:
    a, b = SOUND.members
    moving = replace(a, target=active("0_0", "1_1"), topology_epoch=0)
    waiting = replace(b, target=active("0_1", "0_2", "1_0"), epoch=3)
    found = judged(replace(SOUND, members=(moving, waiting), state="Reconciling", epoch=5), TOPICS)
    assert not found.broken and found.notes == (
        "a has to give up active tasks 0_2", "a has topology epoch 0, the group 1", "b waits for active tasks 0_2",
    )  # fmt: skip


def tasks(*names: str) -> list[dict[str, Any]]:
    return [{"subtopologyId": each.split("_")[0], "partitions": [int(each.split("_")[1])]} for each in names]


def all_of(active: Sequence[str], standby: Sequence[str] = (), warm_up: Sequence[str] = ()) -> dict[str, Any]:
    return {"activeTasks": tasks(*active), "standbyTasks": tasks(*standby), "warmupTasks": tasks(*warm_up)}


def described(kind: type[Group], row: Mapping[str, Any]) -> Group:
    return read_body(kind, 1, {"groups": [{"groupId": "g", "errorCode": 0, **row}]}, CONTEXT, coordinator=PLACE)


ROW: Final[Mapping[str, Any]] = {
    "groupState": "Reconciling", "groupEpoch": 5, "assignmentEpoch": 4, "assignorName": "sticky",
    "topology": {"epoch": 1, "subtopologies": [
        {"subtopologyId": "0", "sourceTopics": ["t"], "repartitionSinkTopics": ["r"], "repartitionSourceTopics": [],
         "stateChangelogTopics": []},
        {"subtopologyId": "1", "sourceTopics": [], "repartitionSinkTopics": [], "repartitionSourceTopics":
         [{"name": "r"}], "stateChangelogTopics": [{"name": "s"}]},
    ]},
    "members": [{
        "memberId": "a", "memberEpoch": 4, "instanceId": "i", "rackId": "x", "clientId": "c", "clientHost": "/10.0.0.1",
        "topologyEpoch": 1, "processId": "p", "userEndpoint": {"host": "app", "port": 8000},
        "clientTags": [{"key": "zone", "value": "z"}],
        "taskOffsets": [{"subtopologyId": "1", "partition": 0, "offset": 7}],
        "taskEndOffsets": [{"subtopologyId": "1", "partition": 0, "offset": 9}],
        "assignment": all_of(["0_0"], ["1_0"]), "targetAssignment": all_of(["0_0", "0_1"], [], ["1_0"]),
        "isClassic": True,
    }],
}  # fmt: skip


def test_all_that_is_described_of_a_streams_group_is_shown() -> None:
    found = described(StreamsGroup, ROW)
    inspected = Inspected(found, judged(found, {"t": TOPICS["t"], "r": TOPICS["r"]}))
    text = [*lines(inspected, [*advice(inspected)])]
    assert text[:7] == [
        "group g: Reconciling, streams group (KIP-1071), assignor sticky, group epoch 5, assignment epoch 4, "
        + "topology epoch 1, 1 member, coordinator 127.0.0.1:9092",
        "  subtopology 0: reads t; writes r",
        "  subtopology 1: reads r; keeps its state in s",
        "  member a, instance i (client id c, 10.0.0.1, rack x), classic protocol, epoch 4, topology epoch 1, "
        + "process p",
        "    end point app:8000, tags zone=z",
        "    active tasks 0_0, standby tasks 1_0; target: active tasks 0_0 0_1, warm-up tasks 1_0",
        "    offsets 1_0=7 of 9",
    ]
    assert "  note: a waits for active tasks 0_1" in text
    assert text[-1] == "  upgrade to be finished: a still use the classic protocol; restart them with " \
                       "group.protocol=streams (KIP-1071)"  # fmt: skip
    shown = plain(inspected, [*advice(inspected)])
    assert (shown["type"], shown["epoch"], shown["assignmentEpoch"], shown["topology"]["epoch"]) == ("streams", 5, 4, 1)
    (one,) = shown["members"]
    assert one["assigned"] == {"active": ["0_0"], "standby": ["1_0"], "warmup": []}
    assert (one["tags"], one["offsets"], one["endOffsets"]) == ({"zone": "z"}, {"1_0": 7}, {"1_0": 9})


def test_a_group_without_a_topology_is_shown() -> None:
    found = described(StreamsGroup, {**ROW, "topology": None, "members": [], "groupState": "Empty"})
    inspected = Inspected(found, judged(found, {}))
    assert len([*lines(inspected)]) == 1 and plain(inspected)["topology"] is None


def share_group(*subscribed: str, epoch: int = 2, state: str = "Stable") -> ShareGroup:
    """Of one member, which has two of the three partitions of ``t``."""
    row = {
        "groupState": state, "groupEpoch": 2, "assignmentEpoch": 2, "assignorName": "simple", "members": [
            {"memberId": "a", "rackId": None, "memberEpoch": epoch, "clientId": "c", "clientHost": "/10.0.0.1",
             "subscribedTopicNames": [*subscribed],
             "assignment": {"topicPartitions": [{"topicName": "t", "partitions": [1, 0]}]}},
        ],
    }  # fmt: skip
    found = described(ShareGroup, row)
    assert isinstance(found, ShareGroup)
    return found


def test_share_groups_are_shown_and_judged() -> None:
    found = share_group("t")
    assert topics_of(found) == ["t"]
    inspected = Inspected(found, judged(found, TOPICS))
    assert [*lines(inspected)] == [
        "group g: Stable, share group (KIP-932), assignor simple, group epoch 2, assignment epoch 2, 1 member, "
        + "coordinator 127.0.0.1:9092",
        "  member a (client id c, 10.0.0.1), epoch 2",
        "    subscription: t",
        "    assignment: t-0, t-1",
        "  judged by share-group/epochs-rise, share-group/co-subscription",
        "  note: no member has t-2. New partitions are assigned soon",
    ]
    shown = plain(inspected)
    assert (shown["type"], shown["members"][0]["assigned"]) == ("share", [["t", 0], ["t", 1]])


@pytest.mark.parametrize(
    ("found", "laws"),
    [
        (share_group("u"), {"share-group/co-subscription"}),
        (share_group("u", state="Assigning"), set()),
        (share_group("t", epoch=0), {"share-group/epochs-rise"}),
    ],
)
def test_what_a_share_group_breaks(found: ShareGroup, laws: set[str]) -> None:
    assert {each.law.id for each in judged(found, TOPICS).broken} == laws


def test_a_topic_of_a_share_group_that_is_not_there_is_a_note() -> None:
    (missing,) = judged(share_group("t", "gone"), {"t": TOPICS["t"][:2]}).notes
    assert missing == "gone: subscribed to, and not there, or the user may not describe it"


# A released broker


async def answered(over: Connections, api: str, version: int, body: dict[str, Any]) -> dict[str, Any]:
    """The answer without an error. A broker that has just started may answer with UNKNOWN_SERVER_ERROR for a while."""
    for _ in range(100):
        found = await over.ask(api, version, "me", body)
        if not found["errorCode"]:
            return found
        await asyncio.sleep(0.1)
    raise AssertionError(found)


async def beat(port: int, streams: Mapping[str, int], share: str) -> None:
    """Members of the streams group ``app`` join and take what they are given, and one of the share group ``share``.

    ``streams``: how often each member sends a heartbeat.
    """
    over = Connections("127.0.0.1", port)
    topology = {"epoch": 0, "subtopologies": [{
        "subtopologyId": "0", "sourceTopics": ["t"], "sourceTopicRegex": [], "stateChangelogTopics": [],
        "repartitionSinkTopics": [], "repartitionSourceTopics": [], "copartitionGroups": [],
    }]}  # fmt: skip
    epochs, owned = dict.fromkeys(streams, 0), dict[str, Any]()
    try:
        for turn in range(max(streams.values())):
            for id in [each for each, times in streams.items() if turn < times]:
                joins = epochs[id] == 0
                found = await answered(over, "StreamsGroupHeartbeat", 0, {
                    "groupId": "app", "memberId": id, "memberEpoch": epochs[id], "endpointInformationEpoch": 0,
                    "instanceId": None, "rackId": "x", "rebalanceTimeoutMs": 60_000 if joins else -1,
                    "topology": topology if joins else None, "activeTasks": [] if joins else owned[id],
                    "standbyTasks": [], "warmupTasks": [], "processId": id if joins else None,
                    "userEndpoint": {"host": "app", "port": 8000} if joins else None,
                    "clientTags": [{"key": "zone", "value": id}] if joins else None, "taskOffsets": None,
                    "taskEndOffsets": None, "shutdownApplication": False,
                })  # fmt: skip
                epochs[id] = found["memberEpoch"]
                owned[id] = owned.get(id, []) if found["activeTasks"] is None else found["activeTasks"]
        joining = {
            "groupId": "share",
            "memberId": share,
            "memberEpoch": 0,
            "rackId": None,
            "subscribedTopicNames": ["t"],
        }
        await answered(over, "ShareGroupHeartbeat", 1, joining)
    finally:
        await over.close()


@pytest.mark.integration
@pytest.mark.jars
@pytest.mark.timeout(200)
def test_a_released_broker_describes_both() -> None:
    with running(NEWEST, settings=SETTINGS) as port:
        admin: Any = kafka.KafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}")
        admin.create_topics([NewTopic("t", 3, 1)])
        admin.close()
        asyncio.run(beat(port, {"a": 8, "b": 8}, str(uuid.uuid4())))
        argv = [sys.executable, "-m", "kipcheck", "inspect", f"broker:127.0.0.1:{port}", "--json"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    found = {each["group"]: each for each in json.loads(done.stdout)["groups"]}
    app, share = found["app"], found["share"]
    assert (app["type"], app["state"], app["broken"], app["unjudged"]) == ("streams", "Stable", [], None), app
    assert app["laws"] == [*OF_STREAMS_GROUPS, *WITH_ALL_TASKS]
    assert app["topology"]["subtopologies"] == [{"id": "0", "sources": ["t"], "sinks": [], "changelogs": []}]
    assert sorted(task for each in app["members"] for task in each["assigned"]["active"]) == ["0_0", "0_1", "0_2"]
    assert {each["id"]: each["tags"]["zone"] for each in app["members"]} == {"a": "a", "b": "b"}
    assert {(each["endPoint"], each["rack"], each["process"]) for each in app["members"]} == {
        ("app:8000", "x", "a"), ("app:8000", "x", "b"),
    }  # fmt: skip
    assert (share["type"], share["broken"], share["unjudged"]) == ("share", [], None)
    assert share["laws"] == [*OF_SHARE_GROUPS]
    assert [each["topics"] for each in share["members"]] == [["t"]]
    assert done.returncode == 0, done.stderr
