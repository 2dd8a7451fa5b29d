"""Clients with small changes: which line ran, what differs, why one was missed, and two changes to a real client."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from kipcheck.conformance.cli import main
from kipcheck.conformance.core.operations.field_kinds import from_json, to_json
from kipcheck.conformance.recall import floor, mutation, python_copies
from kipcheck.conformance.recall.bugs import InvalidEntry
from kipcheck.conformance.recall.change import MISTAKE, Change
from kipcheck.conformance.recall.changes import changes_in
from kipcheck.conformance.recall.copies import PARTS, TARGETS, PythonCopies, Reached, copies
from kipcheck.conformance.recall.facts import CaseFacts, Usual
from kipcheck.conformance.recall.mistakes import Edit, Mistake
from kipcheck.conformance.recall.mutant_run import KILLED, SAME, SURVIVED, Measured, common
from kipcheck.conformance.recall.python_copies import NOTE, instrumented
from kipcheck.conformance.recall.why import IN_DOUBT, NO_DIFFERENCE, NO_LAW, NOT_REACHED, Counted, missed

PROGRAM = """\
def chosen(number):
    if number > 5: return "large"
    elif (
        number > 3
    ):
        found = (
            "middle"
        )
        number = 0
        return found
    else:
        return "small"
"""


def _change(text: str, old: str, new: str) -> Change:
    start = text.index(old)
    assert text.count(old) == 1
    return Change("a.py", text.count("\n", 0, start) + 1, MISTAKE, "", text, start, start + len(old), new)


@pytest.mark.parametrize(
    ("old", "new", "runs"),
    [
        ('"large"', '"huge"', {9: 1, 4: 0, 1: 0}),
        ("number > 5", "number > 6", {9: 1, 1: 1}),
        ("number > 3", "number > 2", {9: 0, 4: 1, 1: 1}),
        ('"middle"', '"centre"', {9: 0, 4: 1, 1: 0}),
        ("        number = 0\n", "", {9: 0, 4: 1, 1: 0}),
        ('"small"', '"tiny"', {9: 0, 4: 0, 1: 1}),
    ],
)
def test_a_changed_line_counts_its_runs(
    old: str, new: str, runs: dict[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one in a body beside its condition, of one that is gone, and of one in the middle of a statement."""
    counted: list[int] = []
    note = type(sys)("kipcheck_reached")
    note.__dict__["note"] = lambda: counted.append(1)
    monkeypatch.setitem(sys.modules, "kipcheck_reached", note)
    change = _change(PROGRAM, old, new)
    space: dict[str, object] = {}
    original: dict[str, object] = {}
    exec(instrumented(change), space)  # noqa: S102 - the program is above
    exec(change.after, original)  # noqa: S102
    for number, expected in runs.items():
        counted.clear()
        assert space["chosen"](number) == original["chosen"](number)  # type: ignore[operator]
        assert len(counted) == expected, number


def test_every_change_to_a_module_of_kipcheck_is_instrumented() -> None:
    text = Path(python_copies.__file__).read_text("utf-8")
    changes = changes_in("python_copies.py", text, None)
    assert len(changes) > 20
    assert [each.diff() for each in changes if instrumented(each).count(NOTE) <= text.count(NOTE)] == []


def test_what_differs_between_runs_of_the_unchanged_client_shows_nothing() -> None:
    def facts(case: str, *features: str, heartbeats: int = 10) -> CaseFacts:
        return CaseFacts(case, frozenset(features), {"Heartbeat": heartbeats})

    usual = Usual([{"a": facts("a", "1"), "b": facts("b", "1", "2")}, {"a": facts("a", "1"), "b": facts("b", "1")}])
    assert usual.noisy == {"b"}
    assert not usual.differs(facts("a", "1", heartbeats=12))
    assert not usual.differs(facts("b", "1"))
    assert usual.differs(facts("a", "1", "3"))
    assert usual.differs(facts("a"))
    assert usual.differs(facts("a", "1", heartbeats=40))
    assert usual.differs(facts("a", "1", heartbeats=1))
    assert usual.differs(facts("b", "2"))
    assert not usual.differs(facts("c", "2")), "a case that the unchanged client was not given"


FAIL, PASS, UNKNOWN = (frozenset({each}) for each in ("FAIL", "PASS", "UNKNOWN"))


@pytest.mark.parametrize(
    ("reached", "feature", "verdict", "by_case", "otherwise", "why"),
    [
        (False, "1", PASS, True, False, NOT_REACHED),
        (False, "2", PASS, True, False, NOT_REACHED),
        (True, "1", PASS, True, False, NO_DIFFERENCE),
        (False, "1", PASS, True, True, NO_DIFFERENCE),
        (True, "2", PASS, True, False, NO_LAW),
        (True, "2", UNKNOWN, True, False, IN_DOUBT),
        (False, "1", PASS, False, False, NOT_REACHED),
        (False, "1", PASS, False, True, NO_DIFFERENCE),
        (False, "2", PASS, False, True, NO_LAW),
    ],
)
def test_why_a_change_is_missed(
    reached: bool, feature: str, verdict: frozenset[str], by_case: bool, otherwise: bool, why: str
) -> None:
    """A difference in a case that did not run the line is noise, where each case was counted."""
    usual = Usual([{"a": CaseFacts("a", frozenset({"1"}))}])
    facts = {"a": CaseFacts("a", frozenset({feature}), {}, reached)}
    found = missed(facts, {"a": {"law": verdict}}, usual, {"a": {"law": PASS}}, Counted(by_case, otherwise))
    assert found.why == why
    assert (found.nearest is None) is ((not reached and feature == "1") or why == NOT_REACHED)


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--target", "nope"], 2, "unknown target 'nope': use one of kafka-python"),
        (["--target", "kafka-python", "--part", "client"], 2, "has no part 'client': use wire or assign or member"),
        (["--target", "aiokafka@x y"], 2, "invalid release"),
    ],
)
def test_wrong_usage(arguments: Sequence[str], code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["mutate", *arguments]) == code
    assert text in capsys.readouterr().err


def test_equivalent_changes_have_reasons() -> None:
    """Each is of a client that can be changed, and ``mutation.json`` shows that it is used."""
    recorded = floor.mutation_rows()
    for each in mutation.equivalents():
        assert each.client in {name.removeprefix("client:") for name in TARGETS}
        assert len(each.reason.split()) > 3
        of_client = [row for one in recorded if one["target"].endswith(each.client) for row in one["rows"]]
        same = [(row["id"], row["file"], row["function"], row["kind"]) for row in of_client if row["result"] == SAME]
        used = [each.id in row or (each.file, each.function, each.kind) == row[1:] for row in same]
        assert any(used), f"{each.id or each.function} of {each.client} is not used"


def test_an_equivalent_change_needs_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutation, "folder", lambda: tmp_path)
    for text in ('id = "1"\nreason = " "', 'reason = "It is the same."', 'id = "1"\nfunction = "f"\nreason = "Same."'):
        (tmp_path / mutation.EQUIVALENT).write_text(f'[[equivalent]]\nclient = "aiokafka"\n{text}\n')
        with pytest.raises(InvalidEntry, match="needs a reason"):
            mutation.equivalents()


def test_the_score_leaves_out_what_does_not_start() -> None:
    def row(result: str, why: str = "") -> mutation.Row:
        measured = Measured(result, 1.0, why=why)
        return mutation.Row("aiokafka@1", "wire", 0, "1", "branch", "a.py", "f", 1, "", measured)

    rows = [row("killed"), row("masked"), row("survived", NO_LAW), row("broken"), row("equivalent")]
    assert mutation.score(rows) == "killed 1 of 3 (33 %), 1 masked, 1 survived, 1 broken, 1 equivalent"
    assert mutation.totals(rows)["why"] == {NOT_REACHED: 0, NO_DIFFERENCE: 0, NO_LAW: 1, IN_DOUBT: 0}
    assert [from_json(mutation.Row, to_json(each)) for each in rows] == rows


def test_a_smaller_choice_of_mistakes_begins_a_larger_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        target, client, release = "client:aiokafka@1", "aiokafka", "1"

        def sources(self) -> dict[str, str]:
            return {"a.py": "".join(f"v{number} = 0\n" for number in range(9))}

    def mistake(number: int) -> Mistake:
        client = "aiokafka" if number else "kafka-python"
        return Mistake(str(number), "", (), (Edit(client, "1", "a.py", f"v{number} = 0", f"v{number} = 1"),))

    monkeypatch.setattr(mutation, "mistakes", lambda: {str(number): mistake(number) for number in range(9)})
    chosen = [
        [*mutation.plan(cast(Any, Made()), "client", 0, n, tmp_path, {}, True).names.values()] for n in (3, 5, None)
    ]
    assert [len(each) for each in chosen] == [3, 5, 8]
    assert chosen[0] == chosen[1][:3] == chosen[2][:3]


@pytest.mark.integration
def test_changes_to_a_real_client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range assignor that gives nothing is found, a line that no case reaches is named so, and what was measured is
    not measured again."""
    client = copies("kafka-python@3.0.12")
    path = "coordinator/assignors/range.py"
    text = client.sources()[path]
    old = "partitions_per_consumer = len(partitions) // len(consumers_for_topic)"
    killed = _change(text, old, "partitions_per_consumer = 0")
    other = "net/connection.py"
    unreached = next(each for each in changes_in(other, client.sources()[other], None) if "eof" in each.inside)
    changes = [replace(killed, path=path), unreached]
    reached: Reached = {"assign/one-round": {path: frozenset(range(1, 200)), other: frozenset()}}
    monkeypatch.setitem(PARTS, "assign", ("assign/one-round", "assign/claims"))
    plan = mutation.Plan(client, "assign", 0, tmp_path, changes, {}, reached)
    rows = [*mutation.results(plan, 1)]
    assert [(each.result, each.measured.why) for each in rows] == [(KILLED, ""), (SURVIVED, NOT_REACHED)]
    assert rows[0].measured.by[0] == "assign/one-round"
    assert [*mutation.results(plan, 1)] == rows
    assert client.sources()[path] == text
    with pytest.raises(LookupError, match="its number from 1 to 2"):
        next(mutation.results(plan, 1, "3"))


def test_a_record_replaces_that_of_its_client_and_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the place of each change and no text of the client."""
    for module in (floor, mutation):
        monkeypatch.setattr(module, "folder", lambda: tmp_path)
    client = PythonCopies("aiokafka", "0.14.0", "client:aiokafka")
    plan = mutation.Plan(client, "client", 0, tmp_path, [], {}, {})
    killed = Measured("killed", 1.0, by=("client/groups", "client/beats", "It beats no more"))
    row = mutation.Row("client:aiokafka@0.14.0", "client", 0, "1", "branch", "a.py", "f", 7, "- secret", killed)
    for result in (Measured("survived", 2.0, why=NO_LAW), killed):
        path = mutation.record([replace(row, measured=result)], plan)
    mutation.record([row], replace(plan, part="wire"))
    one, other = floor.mutation_rows()
    assert (one["target"], one["release"], one["part"], one["kind"]) == (
        "client:aiokafka",
        "0.14.0",
        "client",
        "random",
    )
    assert (one["killed"], one["survived"], one["changes"], one["kind"]) == (1, 0, 1, "random")
    assert other["part"] == "wire"
    assert one["rows"] == [
        {"id": "1", "kind": "branch", "file": "a.py", "function": "f", "line": 7, "check": "client/groups",
         "invariant": "client/beats", "result": "killed"},
    ]  # fmt: skip
    assert "secret" not in path.read_text("utf-8")
    assert floor.floor() == {"killed": {"client:aiokafka client random": 1, "client:aiokafka wire random": 1}}
    mutation.record([row, replace(row, change="2")], replace(plan, part="wire"))
    mutation.record([replace(row, measured=Measured("survived", 2.0, why=NO_LAW))], replace(plan, part="wire"))
    assert [each["changes"] for each in floor.mutation_rows()] == [1, 2], "fewer changes replace no larger record"
    mutation.record([replace(row, measured=Measured("survived", 2.0, why=NO_LAW))], plan)
    assert floor.below(floor.killed(floor.mutation_rows())) == [
        "killed, client:aiokafka client random: 0, the floor is 1"
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("masked", ""), ("survived", NO_DIFFERENCE), ("survived", NO_DIFFERENCE)),
        (("survived", NO_LAW), ("masked", ""), ("survived", NO_LAW)),
        (("masked", ""), ("masked", ""), ("masked", "")),
        (("survived", NO_LAW), ("survived", NO_DIFFERENCE), ("survived", NO_DIFFERENCE)),
        (("survived", NO_LAW), ("survived", IN_DOUBT), ("survived", NO_LAW)),
        (("survived", NO_LAW), ("killed", ""), ("killed", "")),
        (("masked", ""), ("broken", "It ended."), ("broken", "It ended.")),
    ],
)
def test_what_one_of_two_runs_shows_is_noise(
    first: tuple[str, str], second: tuple[str, str], expected: tuple[str, str]
) -> None:
    one, other = (
        Measured(result, 1.0, why=why, differs_in=("a",) if why in (NO_LAW, IN_DOUBT) else ())
        for result, why in (first, second)
    )
    assert ((found := common(one, other)).result, found.why) == expected
    if one.why == NO_LAW and other.result == SURVIVED:
        assert common(one, replace(other, differs_in=("b",))).why == NO_DIFFERENCE, "each run differs in another case"
