"""The count of branches of invariants: which places are found, when they apply, and what is an error."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

from kipcheck.conformance.cli.main import run as command
from kipcheck.conformance.engine.reach import record
from kipcheck.conformance.engine.reach.counter import Counter
from kipcheck.conformance.engine.reach.places import HIT, Sources

MODULE: Final = "laws"
LAWS: Final = """
from dataclasses import dataclass


@dataclass
class Violation:
    why: str


def breach(why: str) -> Violation:
    return Violation(why)


def plain(ops):
    for op in ops:
        if op.asked and not op.answered and op.wide:
            yield breach("no answer")
        elif op.late:
            yield breach("late")


def left_early(ops):
    for op in ops:
        if not op.asked:
            continue
        if op.answered or op.late:
            continue
        yield breach("no answer")


def in_one_line(ops):
    yield from (breach(op.name) for op in ops if op.asked and not op.answered)


def over_all(ops):
    yield from (breach(op.name) for op in wrong(ops))


def wrong(ops):
    return [op for op in ops if not op.answered]


def by_helper(ops):
    yield from _helped(ops)


def _helped(ops):
    for op in ops:
        match op.name:
            case "sync" if not op.answered:
                yield breach("sync")
            case "beat":
                yield breach("beat")


def named(ops):
    for op in ops:
        if op.asked and (found := op.name) and found == "join":
            yield breach(found)


def guarded(ops):
    for op in ops:
        if op.name is not None and len(op.name) > 9 and op.late:
            yield breach(op.name)


def nested(ops):
    def inner(op) -> Violation:
        return breach(op.name)

    for op in ops:
        yield inner(op) if not op.answered else breach("answered")


def always(op):
    yield breach(op.name)


def calls(ops):
    for op in ops:
        if op.late:
            yield from always(op)
"""


@dataclass(frozen=True)
class Asked:
    name: Any = "join"
    asked: bool = True
    answered: bool = True
    wide: bool = True
    late: bool = False


def sources() -> Sources:
    return Sources.read({MODULE: LAWS})


def applied(law: str, *ops: Asked) -> list[str]:
    """The guards of the places that apply while a law searches."""
    of, counter = sources(), Counter()
    places = of.places
    names: dict[str, Any] = {HIT: counter, "__name__": MODULE}
    exec(compile(of.counting(MODULE), "laws.py", "exec"), names)  # noqa: S102
    sys.modules[MODULE] = type(sys)(MODULE)
    found: list[Any] = [*names[law](ops)]
    original: dict[str, Any] = {"__name__": MODULE}
    exec(LAWS, original)  # noqa: S102
    assert [each.why for each in found] == [each.why for each in original[law](ops)]
    return sorted(places[id].guard for id in counter.applied)


@pytest.mark.parametrize(
    ("law", "op", "wanted"),
    [
        ("plain", Asked(), ["op.asked and (not op.answered) and op.wide", "op.late"]),
        ("plain", Asked(asked=False), ["op.late"]),  # another answer would change nothing
        ("plain", Asked(wide=False), ["op.late"]),
        ("left_early", Asked(), ["not (op.answered or op.late)"]),
        ("left_early", Asked(late=True), []),
        ("left_early", Asked(asked=False), []),
        ("in_one_line", Asked(), ["op.asked and (not op.answered)"]),
        ("in_one_line", Asked(asked=False), []),
        ("over_all", Asked(), ["wrong(ops)"]),
        ("by_helper", Asked("sync"), ["not op.answered", "op.name"]),
        ("by_helper", Asked("join"), ["op.name"]),
        ("named", Asked("beat"), ["op.asked and (found := op.name) and (found == 'join')"]),
        ("named", Asked(asked=False), []),
        ("guarded", Asked(None, late=True), []),  # the length of None is an error
        ("guarded", Asked("join", late=True), ["op.name is not None and len(op.name) > 9 and op.late"]),
        ("nested", Asked(), ["not (not op.answered)", "not op.answered"]),
        ("calls", Asked(), ["op.late"]),
    ],
)
def test_a_branch_applies_if_another_answer_could_make_it_fail(law: str, op: Asked, wanted: list[str]) -> None:
    assert applied(law, op) == wanted
    assert applied(law) == (["wrong(ops)"] if law == "over_all" else [])


def test_a_search_has_the_places_of_its_helpers() -> None:
    of = sources()
    assert {of.places[id].function for id in of.of_search(MODULE, "by_helper")} == {"_helped"}
    assert {of.places[id].function for id in of.of_search(MODULE, "calls")} == {"calls"}


def test_other_lines_and_other_words_do_not_change_an_id() -> None:
    changed = Sources.read({MODULE: "\n\n" + LAWS.replace('"no answer"', '"silence"')})
    assert changed.places.keys() == sources().places.keys()
    assert Sources.read({MODULE: LAWS.replace("op.wide", "op.narrow")}).places.keys() != changed.places.keys()


def case_of(ops: Iterator[str]) -> record.Reached:
    return record.Reached({"laws/check": {"laws/plain": dict.fromkeys(ops, 1)}})


def test_what_no_case_reaches_is_an_error() -> None:
    places = sources().places
    own = sources().of_search(MODULE, "plain")
    first, second = sorted(own)
    only = {id: places[id] for id in own}

    def found(reached: record.Reached, excuses: dict[str, str] | None = None) -> list[str]:
        return [*record.troubles(only, {"laws/plain": own}, reached, excuses or {})]

    assert found(case_of(iter(own))) == []
    (error,) = found(case_of(iter([first])))
    assert second in error and "is not counted: run python -m kipcheck.conformance.benchmarks.reach" in error
    half = record.Reached(case_of(iter([first])).checks, unreached=[second])
    (error,) = found(half)
    assert second in error and "no default case reaches this branch" in error
    assert found(half, {second: "only real clients do this"}) == []
    assert found(record.Reached(half.checks, {second: "says-nothing"})) == []
    (error,) = found(case_of(iter(own)), {second: "only real clients do this"})
    assert error == f"{second}: reach.toml excuses it, and it is reached"
    (error,) = found(case_of(iter(own)), {"laws/other": "unknown"})
    assert "no such branch or invariant" in error
    (error,) = found(case_of(iter([*own, "gone"])))
    assert error.startswith("gone: reach.json counts it, and there is no such branch")
    assert found(record.Reached(unreached=[*own]), dict.fromkeys(own, "-")) == [
        "laws/plain: no default case reaches this invariant"
    ]
    (row,) = record.rows({"laws/plain": own}, half, {second: "-"})
    assert row == record.Row("laws/plain", branches=2, by_cases=1, by_mutants=0, excused=1, least=1)


def test_default_cases_reach_all_branches(capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["checks", "--lint", "--reach"]) == 0, capsys.readouterr().err
    assert command(["checks", "--reach"]) == 2


def test_the_default_cases_of_a_check_are_counted() -> None:
    """In a process of its own, which has not imported the invariants yet."""
    arguments = ["-m", "kipcheck.conformance.benchmarks.reach", "--verify", "--check", "streams-group/describe"]
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "streams-group/describe: 3 branches"), done
