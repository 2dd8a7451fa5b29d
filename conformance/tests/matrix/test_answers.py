"""Answers for operators: each rests on cells that were run, and nothing that was not run is called safe."""

from collections.abc import Collection
from itertools import product

import pytest

from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.matrix.advice import detour, verdict
from kipcheck.conformance.matrix.answers import (
    FAILURES,
    WAYS,
    Answer,
    PairCells,
    Ran,
    accepted,
    answer,
    changed_formats,
    configuration,
)
from kipcheck.conformance.matrix.cells import BREAKS, OK, REFUSED, Cell, cells
from kipcheck.conformance.matrix.release_lines import THE_FUTURE, lines, named
from kipcheck.conformance.matrix.scenario_names import (
    BOUNCE,
    DOWNGRADE,
    FAILURE,
    JOIN,
    OFFLINE,
    SCENARIOS,
    TWO_BOUNCE,
    TWO_BOUNCE_FAILURE,
)
from kipcheck.conformance.matrix.scenarios import Pair, possible
from kipcheck.conformance.protocols.streams.model.members import Misconfigured
from kipcheck.conformance.protocols.streams.model.rules import LINES
from kipcheck.conformance.tests.support.streams_jars import opened
from kipcheck.reports.matrix import BROKEN, CONDITIONAL, UNKNOWN, WORKS

EFFECT = "a stream thread dies"


def pair(old: str, new: str) -> Pair:
    return Pair(named(old), named(new))


def answered(of: Pair, run: Collection[str] = SCENARIOS, **verdicts: str) -> Answer:
    """With the verdicts that the matrix expects, as if these scenarios had been run; ``verdicts`` in their place."""

    def expected(scenario: str) -> str | None:
        return verdicts.get(scenario.replace("-", "_"), verdict(Cell(scenario, of)))

    ran = {
        each: Ran(
            found, 0 if found == REFUSED else 2, "268-1" if found != OK else None, EFFECT if found != OK else None
        )
        for each in run
        if not possible(each, of) and (found := expected(each)) is not None
    }
    return answer(PairCells(of, ran, expected), detour)


# What operators of many pairs are answered, where all is as the matrix expects


@pytest.mark.parametrize(
    ("old", "new", "result", "way", "texts"),
    [
        # No release of 0.10.1 has the back-ported fix, and upgrade.from is unknown to it (268-41).
        ("0.10.0", "0.10.1", CONDITIONAL, OFFLINE, ("0.10.1 ignores upgrade.from", "One rolling bounce breaks")),
        ("0.10.0", "0.10.2", WORKS, TWO_BOUNCE, ("A 0.10.2 member without upgrade.from may not join",)),
        ("0.10.2", "1.1", WORKS, BOUNCE, ("A 1.1 member may join a 0.10.2 group",)),
        ("0.10.2", "2.0", WORKS, TWO_BOUNCE, ("One rolling bounce breaks",)),
        ("1.1", "2.0", WORKS, TWO_BOUNCE, ("The way back to 1.1, one member after the other, breaks",)),
        # Neither has a value for the other: 2.3 accepts values up to 1.1.
        ("2.0", "2.3", CONDITIONAL, OFFLINE, ("2.3 refuses upgrade.from=2.0", "One rolling bounce breaks")),
        ("2.1", "2.3", WORKS, BOUNCE, ("A 2.3 member may join a 2.1 group",)),
        ("2.3", "2.4", WORKS, TWO_BOUNCE, ("One rolling bounce breaks", "2.4 member without upgrade.from may not")),
        ("2.3", "3.9", WORKS, TWO_BOUNCE, ("One rolling bounce works only if no member fails meanwhile",
                                           "A 3.9 member without upgrade.from may not join a 2.3 group",
                                           "The records of aggregations of tables (KIP-904) were not run")),
        ("2.8", "3.9", WORKS, TWO_BOUNCE, ("One rolling bounce works", "joins (KAFKA-13769) and aggregations")),
        ("2.3", "4.3", CONDITIONAL, OFFLINE, ("4.3 refuses upgrade.from=2.3", "By way of 3.9 it is predicted to work",
                                              "4.3 does not accept upgrade.from=2.3")),
        ("2.4", "4.3", WORKS, TWO_BOUNCE, ("One rolling bounce works", "A 4.3 member without upgrade.from may join")),
        ("3.6", "3.9", WORKS, BOUNCE, ("The way back to 3.6",)),
        ("3.9", "4.3", WORKS, BOUNCE, ("A 4.3 member without upgrade.from may join a 3.9 group",)),
        ("2.3", "future", WORKS, BOUNCE, ("is kipcheck's model",)),
        # Predictions are about one release of each behaviour class: of others nothing is expected.
        ("4.0", "4.3", UNKNOWN, None, ("Not run: bounce (not predicted)",)),
        ("2.4", "2.4", WORKS, None, ()),
        ("3.9", "2.3", UNKNOWN, None, ("A 2.3 member may join a 3.9 group",)),
    ],
)  # fmt: skip
def test_an_operator_is_answered(old: str, new: str, result: str, way: str | None, texts: tuple[str, ...]) -> None:
    found = answered(pair(old, new))
    assert (found.head.result, found.way) == (result, way), found
    assert found.head.text.startswith(f"{old} to {new}: ")
    said = [each.text for each in found.more]
    for text in texts:
        assert any(text in each for each in said), (text, said)
    settings = [each for each in found.configuration if not each.startswith("#")]
    assert settings == ([f"upgrade.from={old}"] if way == TWO_BOUNCE else [])


def test_the_head_has_the_numbers_of_the_cells_and_the_lines_to_paste() -> None:
    ran = {
        BOUNCE: Ran(OK, 2), FAILURE: Ran(BREAKS, 3, "268-38", EFFECT), TWO_BOUNCE: Ran(OK, 1),
        TWO_BOUNCE_FAILURE: Ran(OK, 4), OFFLINE: Ran(OK, 1), DOWNGRADE: Ran(OK, 5),
        JOIN: Ran(BREAKS, 2, "268-38", EFFECT),
    }  # fmt: skip
    found = answer(PairCells(pair("2.3", "2.8"), ran, lambda scenario: None))
    assert found.head.result == WORKS
    assert found.head.text == (
        "2.3 to 2.8: two rolling bounces work (the first with upgrade.from=2.3): at most 1 rebalance after each "
        "restart, at most 4 rebalances if a member fails meanwhile."
    )
    bounce, join, back = found.more
    assert (bounce.result, join.result, back.result) == (CONDITIONAL, BROKEN, CONDITIONAL)
    assert bounce.text == (
        "One rolling bounce works only if no member fails meanwhile: at most 2 rebalances after each restart; with a "
        "failure a stream thread dies (268-38)."
    )
    assert join.text == ("A 2.8 member without upgrade.from may not join a 2.3 group: a stream thread dies (268-38).")
    assert back.text == (
        "The way back to 2.3, one member after the other, works if no member fails: at most 5 rebalances after each "
        "restart."
    )
    assert found.configuration == (
        "# first bounce: restart each member as 2.8.2 with this line; wait after each for a stable group",
        "upgrade.from=2.3",
        "# second bounce, when all members run 2.8.2: remove the line, and restart each again",
    )


# What was not run


@pytest.mark.parametrize(
    ("run", "result", "text"),
    [
        ((), UNKNOWN, "no way of an upgrade was run."),
        ((JOIN, DOWNGRADE), UNKNOWN, "no way of an upgrade was run."),
        ((FAILURE,), UNKNOWN, "no way of an upgrade was run."),
        ((BOUNCE,), UNKNOWN, "failures were not run (predicted: it breaks)."),
        ((TWO_BOUNCE,), UNKNOWN, "failures were not run (predicted: it works)."),
        ((TWO_BOUNCE, TWO_BOUNCE_FAILURE), WORKS, "if a member fails meanwhile."),
        ((BOUNCE, FAILURE), CONDITIONAL, "with a failure a stream thread dies (268-1)."),
    ],
)
def test_what_was_not_run_is_named_with_its_prediction_and_never_works(
    run: tuple[str, ...], result: str, text: str
) -> None:
    found = answered(pair("2.3", "3.9"), run)
    assert found.head.result == result and found.head.text.endswith(text)
    missing = [each for each in SCENARIOS if each not in run]
    last = found.more[-1]
    assert last.result == UNKNOWN and last.text.startswith("Not run: ")
    assert all(f"{each} (predicted: it " in last.text for each in missing)
    if run == (BOUNCE,):
        assert "two-bounce (predicted: it works)" in last.text


def test_no_answer_works_unless_a_way_and_its_failures_were_run() -> None:
    """Over all verdicts of the cells that decide, each also not run, with and without changed formats."""
    names = (BOUNCE, FAILURE, TWO_BOUNCE, TWO_BOUNCE_FAILURE, OFFLINE)
    choices = (None, OK, BREAKS, REFUSED)
    for old, new in (("2.3", "2.8"), ("2.3", "3.9"), ("0.10.0", "1.0.1"), ("2.3", "4.3"), ("2.3", "future")):
        of = pair(old, new)
        for verdicts in product(choices, repeat=len(names)):
            ran = {name: Ran(each, 1) for name, each in zip(names, verdicts, strict=True) if each is not None}
            found = answer(PairCells(of, ran, lambda scenario: None))
            there = WAYS if accepted(of.new) else (BOUNCE, OFFLINE)
            well = {name for name in ran if ran[name].verdict == OK}
            assert (found.head.result == WORKS) == any(
                {way, FAILURES[way]} <= well for way in there if way in FAILURES
            ), (old, new, verdicts, found)
            assert found.way is None or found.way in well
            assert found.head.result != BROKEN or not well & {*there}
            assert bool(found.configuration) == (found.way == TWO_BOUNCE and new != "future")


def test_answers_of_the_whole_matrix_follow_from_its_predictions() -> None:
    pairs = {each.pair for each in cells((BOUNCE,), (), ())}
    results = {of: answered(of).head.result for of in pairs}
    assert UNKNOWN not in results.values()
    for of, result in results.items():
        works = any(
            verdict(Cell(way, of)) == verdict(Cell(failure, of)) == OK and (way == BOUNCE or accepted(of.new))
            for way, failure in FAILURES.items()
        )
        assert (result == WORKS) == works, of


# Formats of records


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        ("2.3", "3.3", 0), ("2.4", "3.2", 0), ("2.4", "3.3", 1), ("3.2", "3.4", 1), ("3.3", "3.4", 0),
        ("3.4", "3.5", 1), ("3.2", "3.5", 2), ("2.3", "3.5", 1), ("3.5", "4.3", 0), ("2.3", "future", 0),
    ],
)  # fmt: skip
def test_formats_that_an_old_release_cannot_read(old: str, new: str, count: int) -> None:
    assert len(changed_formats(pair(old, new))) == count


# upgrade.from, by the jars


def test_every_line_that_is_configured_is_accepted() -> None:
    for old, new in product(lines(), lines()):
        settings = [each for each in configuration(Pair(old, new)) if not each.startswith("#")]
        found = answered(Pair(old, new)).configuration if old < new else ()
        if found:
            assert settings == [f"upgrade.from={old.line}"] and old.line in accepted(new)
    assert accepted(THE_FUTURE) == LINES


def _differences(names: tuple[str, ...]) -> list[tuple[str, str, bool]]:
    """Values that the configuration of a jar accepts, or refuses, unlike ``accepted``."""
    found = []
    with opened(names) as jars:
        for name, value in product(names, LINES):
            try:
                jars.member(name, upgrade_from=value).initial()
            except Misconfigured:
                takes = False
            else:
                takes = True
            ours = accepted(named(name))
            if takes != (value in ours if ours else True):
                found.append((name, value, takes))
    return found


@pytest.mark.jars
def test_a_jar_accepts_the_values_that_are_configured() -> None:
    assert not _differences(("2.3.1", "3.9.2"))


@pytest.mark.all_jars
def test_each_jar_accepts_the_values_that_are_configured() -> None:
    exact = [each.patch for each in lines()] + ["2.4.0", "3.5.0", "3.6.0", "3.6.1", "4.0.0", "1.0.1"]
    assert all(Release.parse(each) in releases("all") for each in exact)
    assert not _differences(tuple(exact))
