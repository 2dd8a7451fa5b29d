"""``kipcheck play``: events in, actions and states out, line by line."""

import io
import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.values.edition import APACHE, KIP_258, KIP_384, KIP_584, edition
from kipcheck.conformance.core.values.plain import plain
from kipcheck.conformance.explore.games import open_session
from kipcheck.conformance.protocols.features.model.controller import State
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS as UPDATES, BrokerUp
from kipcheck.conformance.protocols.group import ops as groups
from kipcheck.conformance.protocols.group.model.messages import Error, GroupRecord, Tombstone
from kipcheck.conformance.protocols.member import ops as members
from kipcheck.conformance.protocols.playables import PLAYABLES


def played(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str
) -> tuple[int, list[Any], str]:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code = main.run(("play", *arguments))
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def test_each_event_gives_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    down = '{"actor": "broker", "verb": "broker-down", "body": {"broker": 0}}'
    text = f'up 0 1-3; update 2\n\n{{"verb": "describe"}}\n{down}'
    code, lines, err = played(capsys, monkeypatch, text, "features", "--edition", "kip-584")
    broker = {"number": 0, "low": 1, "high": 3}
    assert (code, err) == (0, "")
    assert lines == [
        {"actions": [], "state": {"level": 0, "epoch": 0, "brokers": [broker]}},
        {"actions": [{"is": "applied", "epoch": 1}], "state": {"level": 2, "epoch": 1, "brokers": [broker]}},
        {"actions": [{"is": "told", "level": 2, "epoch": 1}], "state": {"level": 2, "epoch": 1, "brokers": [broker]}},
        {"actions": [], "state": {"level": 2, "epoch": 1, "brokers": []}},
    ]


def test_a_group_is_played(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = "join a; join b; elapse 3000; elapse 3000; sync a a=x b=y; sync b"
    code, lines, _ = played(capsys, monkeypatch, text, "group", "--edition", "apache@3.9.2")
    assert (code, len(lines)) == (0, 6)
    assert [each["is"] for each in lines[3]["actions"]] == ["joined", "joined"]
    assert lines[5]["actions"][-1]["assignment"] == "y"
    assert lines[5]["state"]["group"]["phase"] == "STABLE"


UPDATE = '{"verb": "update", "body": {"level": 2, "allow_downgrade": false}}'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("jump", "invalid event 'jump': "),
        ("up x 1-2", "invalid event 'up x 1-2': "),
        ('{"verb": ', "invalid JSON: "),
        ('["update"]', "invalid event"),
        ('{"verb": "jump"}', "unknown event 'jump': use one of update, broker-up, "),
        ('{"actor": "operator"}', 'an event must have a "verb"'),
        ('{"verb": "update", "body": 1}', 'the "body" of an event must be an object'),
        (UPDATE.replace('"body"', '"bodies"'), 'unknown key \'bodies\': an event has "actor", "verb" and "body"'),
        (UPDATE.replace("}}", '}, "actor": "broker"}'), 'the actor of update must be operator, not "broker"'),
        (UPDATE.replace("level", "levels"), "update has no field 'levels'; its fields are level, allow_downgrade"),
        (UPDATE.replace("2", "true"), "invalid level of update: expected integer, got true"),
        (UPDATE.replace('"level": 2, ', ""), "update requires the field level (integer): "),
    ],
)
def test_a_bad_event_is_told_with_its_line_and_what_came_before_it_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, why: str
) -> None:
    before = "up 0 1-3; update 1\n" if line.startswith("{") else "up 0 1-3\nupdate 1; "
    code, lines, err = played(capsys, monkeypatch, f"{before}{line}\nrestart", "features", "--edition", "kip-584")
    assert (code, len(lines)) == (2, 2)
    assert "kipcheck: line 2: " in err and why in err


def test_a_world_is_played_move_by_move(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    sync = '{"actor": "a", "verb": "does", "body": {"verb": "sync", "lost": false}}'
    text = f"a join; coordinator the rebalance timer runs out\n{sync}"
    scope = ("--scope", "static=1,dynamic=0")
    code, lines, err = played(capsys, monkeypatch, text, "group", *scope)
    assert (code, err, len(lines)) == (0, "", 3)
    assert set(lines[-1]["state"]) == {"coordinator", "a"}
    assert [(each["from"], each["to"]) for each in lines[-1]["actions"]] == [("a", "coordinator"), ("coordinator", "a")]
    code, lines, err = played(capsys, monkeypatch, "a sync", "group", *scope)
    assert (code, lines) == (2, [])
    assert "line 1: this move is not enabled; enabled moves: a join" in err


def test_it_can_be_played_through_pipes() -> None:
    """An answer comes before the next event is sent."""
    command = [sys.executable, "-m", "kipcheck", "play", "features", "--edition", "kip-584", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        for event, epoch in (("up 0 1-3", 0), ("update 1", 1), ("update 2", 2)):
            child.stdin.write(f"{event}\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["state"]["epoch"] == epoch
        child.stdin.close()
        assert child.wait(10) == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("nothing",), "unknown model 'nothing'"),
        (("features",), "model features does not support edition apache"),
        (("group", "--scope", "x=1"), "unknown bound 'x' of model group"),
        (("group", "--edition", "kip-429", "--scope", "static=1"), "this edition has no static members"),
        (("group", "/there/is/nothing"), "cannot be read: no such file"),
    ],
)
def test_what_cannot_be_played_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], why: str
) -> None:
    code, lines, err = played(capsys, monkeypatch, "", *arguments)
    assert (code, lines) == (2, [])
    assert why in err


EDITIONS: Final = (APACHE, KIP_258, KIP_384, KIP_584, edition("apache@3.9.2"))
"""Each model has one of them."""


@pytest.mark.parametrize("model", PLAYABLES)
def test_the_events_of_each_model_are_listed(capsys: pytest.CaptureFixture[str], model: str) -> None:
    where = next(each for each in EDITIONS if PLAYABLES[model].editions(each) is None)
    wanted = ("play", model, "--edition", str(where), "--events")
    assert main.run(wanted) == 0
    text = capsys.readouterr().out
    assert main.run((*wanted, "--json")) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["model"] == model and listed["events"]
    for event in listed["events"]:
        assert event["verb"] in text and event["meaning"] in text
        assert all(field["name"] in text and field["type"] for field in event["fields"])


@pytest.mark.parametrize("name", [name for name, model in PLAYABLES.items() if model.conversation])
def test_the_shorthand_that_is_shown_of_an_event_says_that_event(name: str) -> None:
    model = PLAYABLES[name]
    assert model.conversation is not None
    where = next(each for each in EDITIONS if model.editions(each) is None)
    for verb in model.verbs:
        for step in model.conversation(where).spoken(verb.shorthand.split("; move")[0]):
            assert step.verb == verb.name and step.actor in verb.actors
            assert {each.name for each in verb.fields if each.needed} <= set(step.body)
            assert set(step.body) <= {each.name for each in verb.fields}
            open_session(model, where, None).apply(
                json.dumps({"actor": step.actor, "verb": step.verb, "body": step.body})
            )


def test_the_events_that_are_listed_are_those_that_there_are() -> None:
    assert {each.name for each in PLAYABLES["features"].verbs} == set(UPDATES.verbs)
    assert {each.name for each in PLAYABLES["group"].verbs} == set(groups.OPERATIONS.verbs)
    assert {each.name for each in PLAYABLES["member"].verbs} == set(members.OPERATIONS.verbs)


class Pair(NamedTuple):
    left: Error
    both: tuple[GroupRecord | Tombstone, ...]
    by_name: Mapping[str, frozenset[int]]


def test_any_value_of_a_machine_has_a_plain_form() -> None:
    found = plain(Pair(Error.NONE, (Tombstone(),), {"x": frozenset({2, 1})}))
    assert found == {"left": "NONE", "both": [{"is": "tombstone"}], "by_name": {"x": [1, 2]}}
    assert plain(State(1, 2)) == {"level": 1, "epoch": 2, "brokers": []}
    assert plain(BrokerUp(0, None, 3), "kind") == {"kind": "broker-up", "broker": 0, "low": None, "high": 3}
    assert plain(b"\x01") == "01"
    with pytest.raises(TypeError, match="object has no plain form"):
        plain(object())
