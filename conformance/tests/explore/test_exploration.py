"""``kipcheck explore``: what it says, draws and writes, and how it ends."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.values.edition import KIP_268, KIP_384, KIP_429, KIP_584, edition
from kipcheck.conformance.protocols.declare.play import Product
from kipcheck.conformance.protocols.invariants import invariant_of
from kipcheck.conformance.protocols.playables import PLAYABLES
from kipcheck.reports.sequence_text import ladder


def outcome(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main.run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


KEYS = {"states", "transitions", "depth", "complete", "states_per_s", "counter_example"}
KAFKA_10284 = ("explore", "group", "--edition", "apache@2.5.1", "--scope", "static=1,dynamic=0")
"""A static member that comes back is given a new id, which is not written before 2.6.1."""


def test_a_complete_search_is_told_and_exits_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wanted = ("explore", "features", "--edition", "kip-584", "--scope", "brokers=1", "--out", str(tmp_path))
    code, out, err = outcome(capsys, *wanted, "--json")
    found = json.loads(out)
    assert (code, err, set(found)) == (0, "", KEYS)
    assert found["complete"] and found["counter_example"] is None and found["states_per_s"] > 0
    code, out, _ = outcome(capsys, *wanted)
    assert code == 0
    assert f"{found['states']:,} states, {found['transitions']:,} transitions, depth {found['depth']}; complete" in out


@pytest.mark.parametrize("bound", [("--max-states", "5"), ("--budget", "1s")])
def test_an_incomplete_search_exits_6(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, bound: tuple[str, str]
) -> None:
    monkeypatch.setattr("kipcheck.conformance.explore.exploration.AT_ONCE", 3)
    clock = iter(range(1000))
    monkeypatch.setattr("kipcheck.conformance.explore.exploration.monotonic", lambda: next(clock))
    code, out, _ = outcome(capsys, "explore", "features", "--edition", "kip-584", "--out", str(tmp_path), *bound)
    assert code == 6
    assert "INCOMPLETE" in out and "in the part that was explored" in out


def test_a_counter_example_is_drawn_written_and_can_be_played(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, _ = outcome(capsys, *KAFKA_10284, "--out", str(tmp_path), "--json")
    found = json.loads(out)["counter_example"]
    assert code == 1
    assert (found["invariant"], found["requirements"]) == ("group/outlives-moves", ["grp-45"])
    assert found["why"] == "the leader of the group is a2, but its records say a1"
    assert "● 4. restarts, and forgets what it was told" in found["diagram"]
    code, text, _ = outcome(capsys, *KAFKA_10284, "--out", str(tmp_path))
    assert code == 1
    assert "BROKEN group/outlives-moves" in text and "grp-45" in text
    assert all(line in text for line in found["diagram"].splitlines())

    events = tmp_path / "explore-group.jsonl"
    assert [json.loads(line) for line in events.read_text().splitlines()] == found["events"]
    again = text.splitlines()[-1].split("again", 1)[1].split()
    assert again[0] == "kipcheck"
    code, played, _ = outcome(capsys, *again[1:])
    assert code == 0
    group = json.loads(played.splitlines()[-1])["state"]["coordinator"]["group"]
    assert len(played.splitlines()) == len(found["events"]) == 5
    assert (group["leader"], group["log"]["group"]["leader"]) == ("a2", "a1")

    page = (tmp_path / "explore-group.html").read_text()
    assert 'class="message' in page and "restarts, and forgets" in page and "<script" not in page and "://" not in page
    outcome(capsys, *KAFKA_10284[:2], "--scope", "static=1,dynamic=0,crashes=0", "--out", str(tmp_path))
    assert not [*tmp_path.iterdir()]  # what is no longer so does not stay


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            ("nothing",),
            "unknown model 'nothing': use one of features, feature-cluster, kraft-features, kraft-brokers, ",
        ),
        (("features",), "model features does not support edition apache: use kip-584"),
        (("group", "--edition", "kip-1"), "unknown edition 'kip-1'"),
        (("group", "--scope", "brokers=1"), "unknown bound 'brokers' of model group: use one of static, "),
        (("group", "--scope", "static=9"), "invalid bound static=9: static must be one of 0, 1, 2, 3"),
        (("group", "--edition", "kip-429", "--scope", "static=1"), "this edition has no static members"),
    ],
)
def test_what_cannot_be_explored_is_told(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], why: str
) -> None:
    code, out, err = outcome(capsys, "explore", *arguments)
    assert (code, out) == (2, "")
    assert why in err


def test_the_dials_are_told_as_they_are_in_the_edition(capsys: pytest.CaptureFixture[str]) -> None:
    assert "static=2  " in outcome(capsys, "explore", "group", "--scope", "list")[1]
    assert "static=0  " in outcome(capsys, "explore", "group", "--edition", "apache@2.2.2", "--scope", "list")[1]


# Laws


def worlds() -> Iterator[Product]:
    for model in PLAYABLES.values():
        for here in map(edition, ("apache", KIP_268.name, KIP_384.name, KIP_429.name, KIP_584.name)):
            if model.editions(here) is None:
                yield model.world(here, model.scope("", here))


def test_every_law_restates_an_invariant() -> None:
    laws = {law.id for world in worlds() for law in world.laws}
    assert laws > {"group/one-leader", "bounce/rests", "streams/lives", "features/epoch-grows"}
    for law in laws:
        assert invariant_of(law).statement and invariant_of(law).requirements, law
    with pytest.raises(LookupError, match="no invariant 'group/sings'"):
        invariant_of("group/sings")


# Drawings


def row(by: str, to: str, says: str, **more: Any) -> dict[str, Any]:
    return {"from": by, "to": to, "says": says, "answer": None, "guilty": False, **more}


STEPS = [
    row("a", "server", "asks"),
    row("server", "b", "is given to somebody else", first=False),
    row("b", "b", "goes down", guilty=True, answer="nobody hears"),
]


LADDER = """\
    a              server               b
    │ 1. asks         │                 │
    ├────────────────>│                 │
    │                 │ is given to     │
    │                 │ somebody else   │
    │                 ├────────────────>│
    │                 │                 ● ▶ 2. goes down
    │                 │                 ● nobody hears"""


def test_a_ladder_is_drawn() -> None:
    assert ladder(STEPS, 78) == LADDER


def test_a_ladder_that_is_too_wide_becomes_a_list() -> None:
    assert ladder(STEPS, 40).splitlines() == [
        "  1. a to server: asks",
        "     server to b: is given to somebody",
        "     else",
        "▶ 2. b: goes down, answered: nobody",
        "     hears",
    ]


def test_what_would_steer_a_terminal_is_shown_as_what_it_is() -> None:
    assert "\x1b" not in ladder([row("a\x1b[31m", "b", "\x1b]0;x\x07")], 100)
    assert ladder([], 100) == ""
