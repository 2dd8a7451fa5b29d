"""kafka-python and aiokafka as leaders: what a group owns reaches them, and what they do comes out as it is."""

import io
import json
import os
import re
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.protocols.assignment.group_answers import group
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.tests.support.releases import PYTHON_CLIENTS

pytestmark = pytest.mark.integration

ASSIGNORS = {
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
    "kafka-python@2.3.0": ("range", "roundrobin", "sticky"),
    "kafka-python@2.0.2": ("range", "roundrobin", "sticky"),
}
PAGE = Path(__file__).parents[2] / "docs" / "assign.md"
STICKY = "sticky", "cooperative-sticky"
KEEPS = "00000001000174000000010000000100000007"
"""Sticky user data as Kafka's own members write it: t-1 since generation 7."""
ENDLESS = {
    "topics": {"t0": 6, "t1": 5, "t2": 1, "t3": 8},
    "members": {
        "c0": {"subscription": ["t1"], "owned": [["t1", n] for n in (0, 1, 2, 3)], "generation": 1},
        "c1": {"subscription": ["t0", "t1"], "owned": [["t0", n] for n in (0, 2, 3, 5)], "generation": 1},
        "c2": {"subscription": ["t2", "t3"], "owned": [["t3", n] for n in (0, 2, 3, 4, 5, 6, 7)], "generation": 1},
        "c3": {"subscription": ["t0", "t1"]},
        "c4": {"subscription": ["t0", "t3"]},
    },
}
"""Its shape makes the sticky algorithm, as aiokafka and Kafka's own clients have it, move two partitions for ever."""


@pytest.fixture(scope="module", params=["kafka-python", "aiokafka"])
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    with target(request.param).open("apache", Role.LEADER) as opened:
        yield opened


@pytest.fixture(scope="module", params=["2.3.0", "2.0.2"])
def earlier(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A release in an environment of its own, which is made for the tests only where an index is required."""
    required = "index" in os.environ.get("KIPCHECK_REQUIRE", "").split(",")
    if not required and ("kafka-python", request.param) not in environments.made():
        pytest.skip(f"no environment of kafka-python {request.param} was made yet (KIPCHECK_REQUIRE=index makes it)")
    with target(f"kafka-python@{request.param}").open("apache", Role.LEADER) as opened:
        yield opened


def assign(session: Session, assignor: str, given: dict[str, Any]) -> Observation:
    asked = step("leader", "assign", assignor=assignor, **group(json.dumps(given)))
    return answer(session, asked)


def answer(session: Session, *steps: Any) -> Observation:
    (found,) = session.run([Case("t", "apache", Role.LEADER, steps)])
    return found[-1]


def user_data(session: Session, assignor: str, owned: list[list[Any]], generation: int) -> Any:
    asked = step("leader", "user-data", assignor=assignor, subscription=["t"], owned=owned, generation=generation)
    seen = answer(session, asked)
    assert isinstance(seen, Replied), seen
    return seen["hex"]


def got(seen: Observation) -> dict[str, list[Any]]:
    assert isinstance(seen, Replied), seen
    return {each["id"]: each["partitions"] for each in seen["assignment"]}


def has(session: Session, assignor: str) -> bool:
    return assignor in session.info.claims.assignors


def check_small_groups(session: Session) -> None:
    two = {
        "topics": {"t": 3, "u": 1},
        "members": {"b": {"subscription": ["t"]}, "a": {"subscription": ["u", "t", "v"]}},
    }
    assert got(assign(session, "range", two)) == {"a": [["t", 0], ["t", 1], ["u", 0]], "b": [["t", 2]]}
    one = {"topics": {"t": 2, "u": 1}, "members": {"a": {"subscription": ["t", "u"]}}}
    for assignor in session.info.claims.assignors:
        assert got(assign(session, assignor, one)) == {"a": [["t", 0], ["t", 1], ["u", 0]]}
        assert got(assign(session, assignor, {"members": {"a": {}}})) == {"a": []}


def test_all_assignors_are_claimed_and_small_groups_assigned(session: Session) -> None:
    assert session.info.claims.assignors == ASSIGNORS[session.info.name]
    check_small_groups(session)


def test_what_members_own_and_since_when_reaches_the_leader(session: Session) -> None:
    for assignor in filter(lambda each: has(session, each), STICKY):
        kept = {
            "topics": {"t": 4},
            "members": {
                "a": {"subscription": ["t"], "owned": [["t", 3], ["t", 1]], "generation": 4},
                "b": {"subscription": ["t"], "owned": [["t", 0]], "generation": 4},
            },
        }
        assert got(assign(session, assignor, kept)) == {"a": [["t", 1], ["t", 3]], "b": [["t", 0], ["t", 2]]}
    for newer in ("a", "b"):
        claims = {
            "topics": {"t": 2},
            "members": {
                name: {"subscription": ["t"], "owned": [["t", 0]], "generation": 6 if name == newer else 5}
                for name in ("a", "b")
            },
        }
        assert ["t", 0] in got(assign(session, "sticky", claims))[newer]


def test_a_contested_partition_is_withheld() -> None:
    moves = {
        "topics": {"t": 2},
        "members": {
            "a": {"subscription": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 4},
            "b": {"subscription": ["t"]},
        },
    }
    with target("kafka-python").open("apache", Role.LEADER) as session:
        seen = got(assign(session, "cooperative-sticky", moves))
    assert (len(seen["a"]), seen["b"]) == (1, [])


def test_instance_ids_reach_a_leader_that_knows_them(session: Session) -> None:
    static = {
        "topics": {"t": 2},
        "members": {"b": {"subscription": ["t"], "instance": "i1"}, "a": {"subscription": ["t"], "instance": "i2"}},
    }
    knows = session.info.name == "kafka-python"
    assert got(assign(session, "range", static))["b"] == [["t", 0 if knows else 1]]


def test_given_user_data_is_what_travels(session: Session) -> None:
    noise = {"topics": {"t": 2}, "members": {"a": {"subscription": ["t"], "userData": "ffff"}}}
    assert got(assign(session, "sticky", noise)) == {"a": [["t", 0], ["t", 1]]}
    own = user_data(session, "sticky", [["t", 1]], 7)
    sticks = {
        "topics": {"t": 2},
        "members": {
            "a": {"subscription": ["t"], "userData": own},
            "b": {"subscription": ["t"], "userData": ""},
        },
    }
    assert got(assign(session, "sticky", sticks)) == {"a": [["t", 1]], "b": [["t", 0]]}


def test_no_member_knows_what_was_said_to_another(session: Session) -> None:
    for assignor in session.info.claims.assignors:
        user_data(session, assignor, [["t", 1]], 7)
        assert user_data(session, assignor, [], -1) is None
    asked = step("leader", "user-data", assignor="sticky", subscription=["t"], owned=[["t", 1]], generation=7)
    fresh = step("leader", "user-data", assignor="sticky", subscription=["t"], owned=[], generation=-1)
    assert answer(session, asked, fresh) == Replied((("hex", None),))


def test_no_other_assignor_is_asked_for(session: Session) -> None:
    seen = answer(session, step("leader", "assign", assignor="random", topics=[], members=[]))
    assert isinstance(seen, Unsupported)
    assert "random" in seen.reason


def test_earlier_releases_lead_with_what_they_have(earlier: Session) -> None:
    assert earlier.info.claims.assignors == ASSIGNORS[earlier.info.name]
    check_small_groups(earlier)
    static = {
        "topics": {"t": 2},
        "members": {"b": {"subscription": ["t"], "instance": "i1"}, "a": {"subscription": ["t"], "instance": "i2"}},
    }
    knows = earlier.info.version == "2.3.0"
    assert got(assign(earlier, "range", static))["b"] == [["t", 0 if knows else 1]]
    owns = {"topics": {"t": 2}, "members": {"a": {"subscription": ["t"], "owned": [["t", 1]], "generation": 7}}}
    seen = assign(earlier, "sticky", owns)
    if earlier.info.version == "2.0.2":  # #2305: it cannot write what its members own
        assert isinstance(seen, Refused)
        assert seen.error == "TypeError"
    else:
        assert user_data(earlier, "sticky", [["t", 1]], 7) == KEEPS
        assert got(seen) == {"a": [["t", 0], ["t", 1]]}


@pytest.mark.parametrize("name", ["kafka-python", "aiokafka", "reference"])
def test_the_page_shows_what_is_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    given, printed, *_ = re.findall(r"^```json\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert shown(capsys, monkeypatch, given, "--assignor", "sticky", "--target", name) == (0, printed)


# ---- defects of the releases that the tests are run with, as kipcheck assign shows them


def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> Any:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    code = run(["assign", *arguments])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


@pytest.fixture
def at(request: pytest.FixtureRequest) -> None:
    name, release = request.param
    if version(name) != release:
        pytest.skip(f"{name} {version(name)} is installed, the defect is one of {release}")


def of(name: str) -> pytest.MarkDecorator:
    release = PYTHON_CLIENTS[name]
    return pytest.mark.parametrize("at", [(name, release)], indirect=True, ids=[f"{name} {release}"])


@of("kafka-python")
@pytest.mark.usefixtures("at")
def test_a_tuple_in_the_place_of_a_member_is_a_key_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = '{"topics": {"t0": 1, "t1": 1}, "members": {"a": {"subscription": ["t1"]}, "b": {"subscription": ["t0"]}}}'
    error = '{"error": {"class": "KeyError", "message": "(None, \'b\')"}}\n'
    assert shown(capsys, monkeypatch, text, "--assignor", "roundrobin") == (1, error)
    both = '{"b": {"partitions": [["t0", 0]], "userData": null}}'
    alone = '{"topics": {"t0": 1}, "members": {"b": {"subscription": ["t0"]}}}'
    lines = f"{text}\n{alone}\n"
    assert shown(capsys, monkeypatch, lines, "--assignor", "roundrobin", "--batch") == (1, f"{error}{both}\n")
    each = '{"a": {"partitions": [["t1", 0]], "userData": null}, "b": {"partitions": [["t0", 0]], "userData": null}}\n'
    assert shown(capsys, monkeypatch, text, "--assignor", "roundrobin", "--target", "aiokafka") == (0, each)


@of("kafka-python")
@pytest.mark.usefixtures("at")
def test_a_version_before_user_data_loses_what_others_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({
        "topics": {"t": 2},
        "members": {"a": {"subscription": ["t"], "userData": KEEPS}, "b": {"subscription": ["t"]}},
    })  # fmt: skip
    seen = {
        name: json.loads(shown(capsys, monkeypatch, text, "--assignor", "sticky", "--target", name)[1])["a"]
        for name in ("kafka-python", "aiokafka")
    }
    assert {name: each["partitions"] for name, each in seen.items()} == {
        "kafka-python": [["t", 0]], "aiokafka": [["t", 1]],
    }  # fmt: skip
    with target("kafka-python").open("apache", Role.LEADER) as session:
        assert user_data(session, "sticky", [["t", 1]], 7) == "0001" + KEEPS


@of("aiokafka")
@pytest.mark.usefixtures("at")
def test_a_leader_that_never_ends_is_ended_and_the_other_lines_stand(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "\n".join([json.dumps(ENDLESS), '{"topics": {"t": 1}, "members": {"a": {"subscription": ["t"]}}}', ""])
    code, out = shown(capsys, monkeypatch, lines, "--target", "aiokafka", "--assignor", "sticky", "--batch")
    endless, other = map(json.loads, out.splitlines())
    assert (code, endless["error"]["class"]) == (1, "timeout")
    assert other == {"a": {"partitions": [["t", 0]], "userData": None}}
    code, out = shown(capsys, monkeypatch, lines.splitlines()[0], "--assignor", "sticky")
    assert (code, [len(each["partitions"]) for each in json.loads(out).values()]) == (0, [4, 4, 5, 3, 4])


@of("aiokafka")
@pytest.mark.usefixtures("at")
def test_a_member_that_is_never_told_its_generation_writes_none() -> None:
    with target("aiokafka").open("apache", Role.LEADER) as session:
        assert user_data(session, "sticky", [["t", 1]], 7) == KEEPS[:-8] + "ffffffff"
