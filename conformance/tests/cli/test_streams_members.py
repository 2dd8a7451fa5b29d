"""``kipcheck subscribe`` and ``kipcheck assign --assignor stream``: what they read, refuse and print."""

import io
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.clients.java import user_data
from kipcheck.conformance.clients.java.streams_members import Unanswerable
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.blobs import read_assignment, read_subscription
from kipcheck.conformance.protocols.streams.group_files import application
from kipcheck.conformance.protocols.streams.model.members import (
    Endless,
    Fatal,
    Joining,
    Memory,
    Misconfigured,
    Settings,
    Share,
    Store,
    Subtopology,
    TaskId,
    Topology,
)
from kipcheck.conformance.protocols.streams.ops import TOPOLOGY
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.wire.workbench import Unreadable

PLAIN: dict[str, Any] = {
    "topics": {"t": 3},
    "members": {"c1": {"subscription": ["t"]}, "c2": {"subscription": ["t"]}},
}
SAID_BY_C1 = "228d908cab8a59bcbc4caa566ad9c188"
"""The processId that is made of the name."""


def asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str, given: object
) -> tuple[int, Any]:
    """Exit code, and the JSON on stdout, or else what is on stderr."""
    text = given if isinstance(given, str) else json.dumps(given)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code = run([*words])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else err


def merged(given: Mapping[str, Any], stated: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {**given, "members": {id: {**each, **stated[id]} for id, each in given["members"].items()}}


@pytest.mark.parametrize(
    ("edition", "stated", "sent"),
    [
        ("apache@0.10.0.1", f"00000001{SAID_BY_C1}0000000000000000", "00000001"),
        ("apache@2.0.1", f"0000000300000003{SAID_BY_C1}000000000000000000000000", "0000000300000003"),
        ("kip-268", f"0000000300000003{SAID_BY_C1}000000000000000000000000", "0000000300000003"),
        ("apache@3.9.2", f"0000000b0000000b{SAID_BY_C1}0000000000000000010000000000000000", "0000000b0000000b"),
        ("apache", f"0000000b0000000b{SAID_BY_C1}0000000000000000010000000000000000", "0000000b0000000b"),
    ],
)
def test_what_is_said_is_what_an_assignment_is_made_of(
    edition: str, stated: str, sent: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, subscribed = asked(capsys, monkeypatch, "subscribe", "--edition", edition, given=PLAIN)
    assert code == 0 and list(subscribed) == ["c1", "c2"] and subscribed["c1"] == {"userData": stated}
    words = "assign", "--target", "reference", "--assignor", "stream", "--edition", edition
    code, assigned = asked(capsys, monkeypatch, *words, given=merged(PLAIN, subscribed))
    assert code == 0 and list(assigned) == ["c1", "c2"]
    shares = [each["partitions"] for each in assigned.values()]
    assert sorted(map(len, shares)) == [1, 2] and sorted(each for some in shares for each in some) == [
        ["t", 0],
        ["t", 1],
        ["t", 2],
    ]
    for each in assigned.values():
        info = read_assignment(bytes.fromhex(each["userData"]))
        assert [[*each] for each in (("t", task.partition) for task in info.active)] == sorted(each["partitions"])
        assert each["userData"].startswith(sent)


def test_what_a_member_remembers_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    process = "01020304-0506-0708-090a-0b0c0d0e0f10"
    given = {
        "topics": {"t": 11},
        "topology": {"subtopologies": [{"id": 0, "sources": ["t"], "stores": [{"name": "s"}]}]},
        "members": {
            "c1": {
                "processId": process, "previousTasks": ["0_10", "0_9"], "standbyTasks": ["0_1"],
                "offsetSums": {"0_2": 77}, "userEndPoint": "h:09092", "clientTags": {"zone": "b", "rack": "a"},
            },
        },
    }  # fmt: skip
    _, stated = asked(capsys, monkeypatch, "subscribe", "--edition", "apache@3.9.2", given=given)
    found = read_subscription(bytes.fromhex(stated["c1"]["userData"]))
    assert (found.process, found.end_point, found.tags) == (process, "h:9092", (("rack", "a"), ("zone", "b")))
    assert dict(found.sums) == {TaskId(0, 1): 0, TaskId(0, 2): 77, TaskId(0, 9): -2, TaskId(0, 10): -2}
    _, stated = asked(capsys, monkeypatch, "subscribe", "--edition", "apache@2.0.1", given=given)
    found = read_subscription(bytes.fromhex(stated["c1"]["userData"]))
    assert (found.active, found.standby) == ((TaskId(0, 9), TaskId(0, 10)), (TaskId(0, 1),))


def test_upgrade_from_is_heeded_or_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"topics": {"t": 1}, "members": {"c1": {"upgradeFrom": "0.10.0"}}}
    _, stated = asked(capsys, monkeypatch, "subscribe", "--edition", "apache@2.0.1", given=given)
    assert stated == {"c1": {"userData": f"00000001{SAID_BY_C1}0000000000000000"}}
    given = {"topics": {"t": 1}, "members": {"c0": {}, "c1": {"upgradeFrom": "2.0"}}}
    code, stated = asked(capsys, monkeypatch, "subscribe", "--edition", "apache@2.0.1", given=given)
    assert code == 1 and stated["error"]["class"].endswith("ConfigException")
    assert stated["error"]["message"].startswith("c1: ") and "2.0" in stated["error"]["message"]


def test_defaults() -> None:
    found = application('{"topics": {"u": 1, "t": {"partitions": 3}}, "members": {"é": {}}}')
    assert found.topics == (Topic("u", 1), Topic("t", 3))
    assert found.topology == Topology((Subtopology(0, ("u", "t")),))
    (member,) = found.members
    assert member.process == str(uuid.uuid5(uuid.NAMESPACE_OID, "é")) and member.topics == ("t", "u")
    assert found.settings(member, "2.0.1") == Settings("2.0.1", found.topology, member.process)
    assert member.remembers(Memory(3)) == Memory(3)


def test_a_topology_as_a_whole() -> None:
    given = {
        "topics": {"t": 3, "u": 3},
        "topology": {
            "subtopologies": [
                {"id": 0, "sources": ["t", "u"], "repartition": ["r"], "copartition": [["t", "u"]], "topology": "n"},
                {"id": 1, "sources": ["r"], "stores": [{"name": "s", "logged": False}, {"name": "z"}]},
            ],
            "standbys": 1,
        },
        "members": {"a": {"clientTags": {"rack": "1"}}, "b": {"clientTags": {"zone": "2"}, "owned": [["t", 1]]}},
    }
    found = application(json.dumps(given))
    assert found.topology == Topology(
        (
            Subtopology(0, ("t", "u"), ("r",), (), (("t", "u"),), "n"),
            Subtopology(1, ("r",), (), (Store("s", False), Store("z")), ()),
        ),
        1,
    )
    assert found.settings(found.members[0], "3.9.2").tag_keys == ("rack", "zone")
    assert found.members[1].owned == (("t", 1),) and found.members[0].topics == ("r", "t", "u")
    assert TOPOLOGY.read(TOPOLOGY.plain(found.topology)) == found.topology


def member(**keys: object) -> dict[str, Any]:
    return {"topics": {"t": 1}, "members": {"c 1": keys}}


def subtopology(**keys: object) -> dict[str, Any]:
    return {"topology": {"subtopologies": [{"id": 0, "sources": ["t"], **keys}]}, "members": {"c": {}}}


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "object"),
        ({}, "topics: must not be empty without a topology"),
        ({"topics": {"t": 1}}, "members: must not be empty"),
        ({"topics": {"t": 1}, "members": {"c": {}}, "leader": "c"}, "leader: unknown key"),
        ({"topics": {"t": -1}, "members": {"c": {}}}, "topics.t: must be from 0"),
        ({"topics": {"t": {"racks": []}}, "members": {"c": {}}}, "topics.t.racks: unknown key"),
        ({"topics": {"t": 1}, "members": {"c": 1}}, "members.c: must be an object, got 1"),
        (member(previous=[]), 'members["c 1"].previous: unknown key: use one of subscription, upgradeFrom'),
        (member(previousTasks=["0-0"]), "previousTasks[0]: invalid task id '0-0': 0_2 is the third task"),
        (member(previousTasks=["0_0", "0_0"]), 'previousTasks[1]: duplicate value "0_0"'),
        (member(standbyTasks=["0_2147483648"]), "standbyTasks[0]: must be from 0 to 2147483647"),
        (member(offsetSums={"0_0": "1"}), 'offsetSums.0_0: must be an integer, got "1"'),
        (member(offsetSums={"0_0": 1 << 63}), "must be from -9223372036854775808"),
        (member(processId="1"), 'processId: must be a UUID, got "1"'),
        (member(userEndPoint="host"), 'userEndPoint: must be host:port, got "host"'),
        (member(userEndPoint="h:65536"), "userEndPoint: must be host:port"),
        (member(clientTags={"rack": 1}), "clientTags.rack: must be a string, got 1"),
        (member(userData="0g"), 'userData: must be hexadecimal, got "0g"'),
        (member(upgradeFrom=2.0), "upgradeFrom: must be a string, got 2.0"),
        (member(owned=[["t"]]), 'owned[0]: must be a partition as ["topic", number]'),
        ({"topology": {}, "members": {"c": {}}}, "topology.subtopologies: must be a list, got null"),
        ({"topology": {"subtopologies": []}, "members": {"c": {}}}, "topology.subtopologies: must not be empty"),
        (subtopology(standbys=1), "topology.subtopologies[0].standbys: unknown key"),
        (subtopology(id="0"), "subtopologies[0].id: must be an integer"),
        (subtopology(sources=[]), "subtopologies[0].sources: must name at least one topic"),
        (subtopology(stores=[{"logged": True}]), "stores[0].name: must be a string, got null"),
        (subtopology(stores=[{"name": "s"}, {"name": "s"}]), "stores[1].name: duplicate store name 's'"),
        (subtopology(stores=[{"name": "s", "logged": 1}]), "stores[0].logged: must be true or false"),
        (subtopology(copartition=[["t", "u"]]), "copartition[0][1]: 'u' must be one of the sources"),
        ({"topology": {"subtopologies": [{"sources": ["t"]}]}, "members": {"c": {}}}, "'id', the number"),
        (
            {"topology": {"subtopologies": [{"id": 0, "sources": ["t"]}] * 2}, "members": {"c": {}}},
            "topology.subtopologies[1].id: duplicate subtopology id 0",
        ),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(given: object, why: str) -> None:
    with pytest.raises(Unreadable) as wrong:
        application(json.dumps(given))
    assert why in str(wrong.value)


def test_an_assignment_wants_what_everybody_says(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "assign", "--target", "reference", "--assignor", "stream"
    code, printed = asked(capsys, monkeypatch, *words, given=PLAIN)
    assert code == 2 and "members.c1.userData: " in printed and "kipcheck subscribe" in printed


def test_lines_fail_each_for_itself(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    c1 = {"userData": f"0000000300000003{SAID_BY_C1}000000000000000000000000"}
    lines = ["{", json.dumps(PLAIN), json.dumps({"topics": {"t": 1}, "members": {"c1": c1}}),
             json.dumps({"topics": {"t": 1}, "members": {"c1": {"userData": "00"}}})]  # fmt: skip
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    words = ["assign", "--target", "reference", "--edition", "apache@2.0.1", "--assignor", "stream", "--batch"]
    assert run(words) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["error"]["class"] for each in (*found[:2], found[3])] == [
        "not-json", "bad-group", "java.nio.BufferUnderflowException",
    ]  # fmt: skip
    assert found[2]["c1"]["partitions"] == [["t", 0]]


@pytest.mark.parametrize("words", [("subscribe",), ("assign", "--assignor", "stream")])
@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            ("--target", "kafka-python"),
            "kafka-python does not support Streams groups: use reference or java:kafka-streams",
        ),
        (("--target", "reference", "--edition", "kip-584"), "kip-584 does not specify Streams groups"),
    ],
)
def test_who_has_no_streams_says_who_has(
    words: Sequence[str], more: Sequence[str], why: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    given = {"topics": {"t": 1}, "members": {"c1": {"userData": "00"}}}
    code, stated = asked(capsys, monkeypatch, *words, *more, given=given)
    assert code == 1 and stated["error"]["class"] == "Unsupported" and stated["error"]["message"].startswith(why)


# A jar in whose place something else answers


class Fake:
    latest = 3
    supports = ("eager",)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def initial(self) -> Memory:
        if self.settings.upgrade_from:
            raise Misconfigured("nobody knows it", "x.ConfigException")
        return Memory(3)

    def subscribe(self, memory: Memory, topics: tuple[str, ...], /) -> tuple[Memory, bytes]:
        match topics[0]:
            case "spins":
                raise Endless("timeout", "more than 10000 ms of processor time")
            case "throws":
                raise Fatal("x.Exception", "no")
            case "cannot":
                raise Unanswerable("no words for that")
        return memory, b"\x01\x02"

    def lead(
        self, memory: Memory, topics: tuple[Topic, ...], members: tuple[Joining, ...], /
    ) -> tuple[Memory, Mapping[str, Share]]:
        return memory, {"c2": Share((("t", 10), ("t", 9)), b"\x03")}


class FakeJars:
    def binary(self, settings: Settings) -> Fake:
        assert settings.release == "2.0.1"
        return Fake(settings)


class Named:
    name = "java:kafka-streams:2.0.1"


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch) -> Any:
    @contextmanager
    def opened(releases: Sequence[str]) -> Iterator[FakeJars]:
        assert releases == ["2.0.1"]
        yield FakeJars()

    monkeypatch.setattr(user_data, "open_jars", opened)
    return Named()


@pytest.mark.parametrize(
    ("member", "stated"),
    [
        ({"subscription": ["t"]}, {"c1": {"userData": "0102"}}),
        ({"subscription": ["spins"]}, ("timeout", "more than 10000 ms of processor time")),
        ({"subscription": ["throws"]}, ("x.Exception", "c1: no")),
        ({"subscription": ["cannot"]}, ("Unsupported", "no words for that")),
        ({"upgradeFrom": "7"}, ("x.ConfigException", "c1: nobody knows it")),
    ],
)
def test_what_a_jar_does_is_told(member: Mapping[str, Any], stated: Any, jar: Any) -> None:
    given = json.dumps({"topics": {"t": 1}, "members": {"c1": member}})
    line, well = user_data.subscribed(given, jar, "apache")
    failed = isinstance(stated, tuple)
    wanted = {"error": {"class": stated[0], "message": stated[1]}} if failed else stated
    assert json.loads(line) == wanted and well is not failed


def test_whoever_is_left_out_has_nothing_and_partitions_are_sorted(jar: Any) -> None:
    given = {"topics": {"t": 11}, "members": {"c1": {"userData": "01"}, "c2": {"userData": "01"}}}
    line, well = user_data.assigned(json.dumps(given), jar, "apache@2.0.1")
    assert well and json.loads(line) == {
        "c1": {"partitions": [], "userData": None}, "c2": {"partitions": [["t", 9], ["t", 10]], "userData": "03"},
    }  # fmt: skip


def test_a_jar_plays_no_draft(jar: Any) -> None:
    line, well = user_data.subscribed(json.dumps(PLAIN), jar, "kip-268")
    assert not well and json.loads(line)["error"]["message"].startswith("kip-268 is a draft")


def test_without_jars_the_target_does_not_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def missing(releases: Sequence[str]) -> Iterator[FakeJars]:
        raise Unavailable("org.apache.kafka:kafka-streams:2.0.1: nobody has it")
        yield FakeJars()

    monkeypatch.setattr(user_data, "open_jars", missing)
    monkeypatch.setattr("kipcheck.conformance.targets.registry.target", lambda name: Named())
    code, stated = asked(capsys, monkeypatch, "subscribe", "--target", Named.name, given=PLAIN)
    assert code == 3 and "nobody has it" in stated


@pytest.mark.jars
def test_a_released_jar_says_what_it_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = {"topics": {"t": 1}, "members": {"c1": {}, "c2": {"upgradeFrom": "2.0"}}}
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{json.dumps(PLAIN)}\n{json.dumps(unknown)}\n"))
    assert run(["subscribe", "--target", Named.name, "--assignor", "stream", "--batch"]) == 1
    stated, refused = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert stated["c1"] == {"userData": f"0000000300000003{SAID_BY_C1}000000000000000000000000"}
    assert refused["error"]["class"] == "org.apache.kafka.common.config.ConfigException"
    assert refused["error"]["message"].startswith("c2: ") and "upgrade.from" in refused["error"]["message"]
    words = "assign", "--target", Named.name, "--assignor", "stream"
    code, sent = asked(capsys, monkeypatch, *words, given=merged(PLAIN, stated))
    assert code == 0 and sent["c1"]["userData"].startswith("0000000300000003")
    assert sorted(each for one in sent.values() for each in one["partitions"]) == [["t", 0], ["t", 1], ["t", 2]]
