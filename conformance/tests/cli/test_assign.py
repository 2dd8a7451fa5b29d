"""``kipcheck assign``: what it reads, what it refuses, what it prints of whatever a leader answers."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.protocols.assignment import group_answers
from kipcheck.conformance.targets import testee
from kipcheck.conformance.targets.protocol import Broken, Target
from kipcheck.conformance.targets.testee import Limits
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.wire.workbench import Unreadable

LEADER = """
import json, os, sys, time

def answer(op):
    ids = [each["id"] for each in op["members"]]
    match op["topics"][0]["name"]:
        case "whole":
            return [{"id": each, "partitions": [["t", n] for n in (10, 9)], "userData": ""} for each in reversed(ids)]
        case "partly":
            return [{"id": ids[0], "partitions": [["u", 1], ["t", 2]], "userData": "ff"}]
        case "stranger":
            return [{"id": "nobody", "partitions": [], "userData": None}]
        case "twice":
            return [{"id": ids[0], "partitions": [], "userData": None}] * 2
        case "muddle":
            return [{"id": ids[0], "partitions": [["t"]], "userData": None}]
        case "crash":
            os._exit(3)
        case "hang":
            time.sleep(60)
        case "echo":
            return [{"id": json.dumps(op), "partitions": [], "userData": None}]

def result(op):
    match op["topics"][0]["name"]:
        case "raise":
            return {"status": "rejected", "class": "KeyError", "message": "'x'"}
        case "shrug":
            return {"status": "unsupported", "message": "no racks here"}
        case "other":
            return {"status": "accepted"}
    return {"status": "accepted", "assignment": answer(op)}

started = open(sys.argv[1], "a")
started.write("x")
started.close()
for line in sys.stdin:
    said = json.loads(line)
    match said["type"]:
        case "hello":
            reply = {"type": "hello", "protocol": 1, "name": "scripted", "version": "1", "language": "python",
                     "roles": ["leader"], "capabilities": {}, "assignors": ["range", "sticky"]}
        case "configure":
            reply = {"type": "configure", "ok": True}
        case "batch":
            results = [{"n": each["n"], **result(each)} for each in said["cases"]]
            reply = {"type": "results", "id": said["id"], "results": results}
        case _:
            reply = {"type": said["type"]}
    print(json.dumps(reply), flush=True)
"""


@pytest.fixture
def leader(tmp_path: Path) -> Target:
    return scripted(tmp_path, seconds=30)


def scripted(place: Path, seconds: float) -> Target:
    script = place / "leader.py"
    script.write_text(LEADER)
    argv = (sys.executable, str(script), str(place / "starts"))
    return testee.Testee("scripted", Command(argv, memory=1 << 30), Limits(start_s=60, batch_s=seconds))


def asked(leader: Target, *topics: str, assignor: str = "sticky") -> list[tuple[Any, bool]]:
    lines = [json.dumps({"topics": {topic: 3}, "members": {"b": {}, "a": {}}}) for topic in topics]
    return [(json.loads(line), well) for line, well in group_answers.assign_lines(lines, leader, assignor, "apache")]


def error(kind: str, why: str) -> tuple[Any, bool]:
    return {"error": {"class": kind, "message": why}}, False


def test_every_member_is_shown_and_all_is_sorted(leader: Target) -> None:
    whole = {"partitions": [["t", 9], ["t", 10]], "userData": None}
    nothing: dict[str, Any] = {"partitions": [], "userData": None}
    partly = {"a": nothing, "b": {"partitions": [["t", 2], ["u", 1]], "userData": "ff"}}
    stranger = {"a": nothing, "b": nothing, "nobody": nothing}
    seen = asked(leader, "whole", "partly", "stranger")
    assert seen == [({"a": whole, "b": whole}, True), (partly, True), (stranger, True)]
    assert [list(each) for each, _ in seen] == [["a", "b"], ["a", "b"], ["a", "b", "nobody"]]


@pytest.mark.integration
def test_whatever_goes_wrong_is_told_line_for_line_and_the_others_stand(tmp_path: Path) -> None:
    topics = ["raise", "shrug", "twice", "muddle", "other", "crash", "partly", "hang", "whole"]
    seen = asked(scripted(tmp_path, seconds=2), *topics)
    assert seen[:2] == [error("KeyError", "'x'"), error("Unsupported", "no racks here")]
    assert [each["error"]["class"] for each, _ in seen[2:6]] == ["garbled", "garbled", "garbled", "crashed"]
    assert "second assignment of member 'b'" in seen[2][0]["error"]["message"]
    assert seen[7][0]["error"]["class"] == "timeout"
    assert [well for _, well in seen] == [False] * 6 + [True, False, True]


def test_many_lines_need_one_start(leader: Target, tmp_path: Path) -> None:
    assert all(well for _, well in asked(leader, *["whole"] * 150))
    assert (tmp_path / "starts").read_text() == "x"


def test_an_assignor_that_is_not_claimed_is_not_asked_for(leader: Target) -> None:
    why = "scripted does not support the assignor roundrobin; it supports range, sticky"
    assert asked(leader, "whole", "hang", assignor="roundrobin") == [error("Unsupported", why)] * 2


def test_a_group_reaches_the_leader_with_all_its_keys(leader: Target) -> None:
    given = {
        "topics": {"echo": 2, "t": {"partitions": 2, "racks": [["r1", "r2"], []]}, "u": {"racks": [["r"]]}},
        "members": {
            "z": {},
            "é": {
                "subscription": ["t", "gone"], "owned": [["t", 1], ["gone", 7]], "generation": 4, "instance": "i",
                "rack": "r1", "userData": "00FF",
            },
        },
    }  # fmt: skip
    line, _ = group_answers.assigned(json.dumps(given), leader, "range", "apache")
    (op,) = (json.loads(each) for each in json.loads(line) if each.startswith("{"))
    del op["n"]
    op.pop("case", None)
    assert op == {
        "op": "assign",
        "assignor": "range",
        "topics": [
            {"name": "echo", "partitions": 2, "racks": None},
            {"name": "t", "partitions": 2, "racks": [["r1", "r2"], []]},
            {"name": "u", "partitions": 1, "racks": [["r"]]},
        ],
        "members": [
            {
                "id": "z", "subscription": [], "owned": [], "generation": -1, "instance": None, "rack": None,
                "userData": None,
            },
            {
                "id": "é", "subscription": ["t", "gone"], "owned": [["t", 1], ["gone", 7]], "generation": 4,
                "instance": "i", "rack": "r1", "userData": "00ff",
            },
        ],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("", "not JSON"),
        ("[]", "must be a JSON object, got list"),
        ('{"topics": {"t": 1}, "topics": {}}', "the key 'topics' is repeated"),
        ({"topic": {}}, "topic: unknown key: use one of topics, members"),
        ({"topics": ["t"]}, 'topics: must be an object, got ["t"]'),
        ({"topics": {"t": "3"}}, "topics.t: must be a number of partitions or "),
        ({"topics": {"t": True}}, "topics.t: must be a number of partitions or "),
        ({"topics": {"t": -1}}, "topics.t: must be from 0 to 2147483647, got -1"),
        ({"topics": {"t": {"partitions": 1.0}}}, "topics.t.partitions: must be an integer, got 1.0"),
        ({"topics": {"t": {}}}, "topics.t: 'partitions' is missing: give the number of partitions"),
        ({"topics": {"t": {"partitions": 2, "racks": [["a"]]}}}, "topics.t.racks: must have one list for each of"),
        ({"topics": {"t": {"racks": ["a"]}}}, 'topics.t.racks[0]: must be a list, got "a"'),
        ({"topics": {"t": {"partitions": 1, "leader": 0}}}, "topics.t.leader: unknown key"),
        ({"members": {"c-1": None}}, 'members["c-1"]: must be an object, got null'),
        ({"members": {"c1": {"topics": []}}}, "members.c1.topics: unknown key: use one of subscription, "),
        ({"members": {"c1": {"subscription": "t"}}}, 'members.c1.subscription: must be a list, got "t"'),
        ({"members": {"c1": {"subscription": None}}}, "members.c1.subscription: must be a list, got null"),
        ({"members": {"c1": {"subscription": ["t", "t"]}}}, 'members.c1.subscription[1]: duplicate value "t"'),
        ({"members": {"c1": {"owned": ["t"]}}}, 'members.c1.owned[0]: must be a partition as ["topic", number]'),
        ({"members": {"c1": {"owned": [["t", "0"]]}}}, 'members.c1.owned[0][1]: must be an integer, got "0"'),
        ({"members": {"c1": {"owned": [["t", 0], ["t", 0]]}}}, 'members.c1.owned[1]: duplicate value ["t", 0]'),
        ({"members": {"c1": {"generation": 1 << 31}}}, "members.c1.generation: must be from -2147483648 to "),
        ({"members": {"c1": {"generation": None}}}, "members.c1.generation: must be an integer, got null"),
        ({"members": {"c1": {"instance": 1}}}, "members.c1.instance: must be a string, got 1"),
        ({"members": {"c1": {"instance": "i"}, "c2": {"instance": "i"}}}, "members.c2.instance: 'i' is the"),
        ({"members": {"c1": {"userData": "0"}}}, 'members.c1.userData: must be hexadecimal, got "0"'),
        ({"members": {"\ud800": {}}}, "a lone surrogate, which UTF-8 cannot encode"),
    ],
)
def test_what_is_no_group_is_exit_2_with_one_line_that_says_where(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, given: Any, why: str
) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert run(["assign", "--assignor", "range", "--target", "aiokafka"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"kipcheck: {why}") or why in err
    assert err.count("\n") == 1


def test_a_line_that_is_no_group_is_answered_in_its_place(leader: Target) -> None:
    lines = ["", '{"topics": {"whole": 1}}', '{"members": 1}']
    seen = [json.loads(line) for line, _ in group_answers.assign_lines(lines, leader, "sticky", "apache")]
    assert [each["error"]["class"] if each else "" for each in seen] == ["not-json", "", "bad-group"]


def test_a_group_that_cannot_be_read_starts_no_target(leader: Target, tmp_path: Path) -> None:
    with pytest.raises(Unreadable):
        group_answers.assigned("{", leader, "sticky", "apache")
    assert not (tmp_path / "starts").exists()


def test_a_target_that_does_not_start_is_no_answer(tmp_path: Path) -> None:
    dead = testee.Testee("dead", Command((sys.executable, "-c", "")), Limits(start_s=20))
    with pytest.raises(Broken):
        group_answers.assigned("{}", dead, "sticky", "apache")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--target", "nobody", "--assignor", "range"], 2),
        (["--assignor", "rage"], 2),
        ([], 2),
        (["--assignor", "range", "--edition", "kip-0"], 2),
        (["--assignor", "range", "no/such/file"], 2),
        (["--assignor", "range", "--batch", "no/such/file"], 2),
        (["--assignor", "range", "--edition", "kip-584"], 3),
        (["--assignor", "range", "--edition", "kip-584", "--batch"], 3),
    ],
)
def test_what_cannot_be_asked_prints_nothing_on_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("{}\n"))
    try:
        seen = run(["assign", *arguments])
    except SystemExit as stopped:
        seen = int(stopped.code or 0)
    out, err = capsys.readouterr()
    assert (seen, out) == (code, "")
    assert err
