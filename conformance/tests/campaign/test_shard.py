"""One shard, held in this very process: what it counts, keeps and finds, and that it does so every time."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

from kipcheck.conformance.campaign.corpus.entries import Snapshot, value_of
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.campaign.shard import GENEROUS_LIMITS, MOST_RERUNS, TargetFactory, run_shard
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, Observation
from kipcheck.conformance.engine.execution.worker import Worker
from kipcheck.conformance.engine.strength.mutation_test import subject_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.in_process import Afresh
from kipcheck.conformance.targets.protocol import Session, Target, Unavailable
from kipcheck.conformance.targets.session import Limits

MUTANT = "stuck-epoch"
SHARD = Shard(
    "c",
    0,
    0,
    "hold",
    f"miniature/{MUTANT}",
    "1",
    "apache",
    ("features/epochs", "features/gating"),
    "mixed",
    0,
    60,
    "",
)


def here(name: str, limits: Limits | None) -> Target:
    """In this process."""
    return Afresh(name, MUTANTS[name.removeprefix("miniature/")].made)


result = partial(run_shard, snapshot=Snapshot.empty(), find=here)


@pytest.fixture(scope="module")
def row() -> Row:
    return result(SHARD)


def test_it_is_a_function_of_what_it_is_given(row: Row) -> None:
    again = result(SHARD)
    assert again == row
    assert result(replace(SHARD, seed=1)).digest != row.digest


def test_it_holds_as_many_cases_as_are_asked_for_and_counts_each(row: Row) -> None:
    assert (row.status, row.cases) == ("done", 60)
    whole = [each for each in row.counts if not each.invariant]
    assert sum(each.cases for each in whole) == 60
    assert {each.check for each in whole} <= set(SHARD.checks)
    assert result(replace(SHARD, cases=7)).cases == 7


def test_what_it_finds_names_the_first_case_and_how_many_there_were(row: Row) -> None:
    (one,) = [each for each in row.found if each.invariant == "features/epoch-grows"]
    failed = [each for each in row.counts if (each.invariant, each.result) == (one.invariant, "FAIL")]
    assert one.cases == sum(each.cases for each in failed) > 1
    assert Case.of(json.loads(one.case)).id == one.case_id
    with Worker("again", here(SHARD.target, None)) as worker:
        (wanted,) = [each for each in all_invariants(Role.CONTROLLER) if each.id == one.invariant]
        assert worker.violation(Case.of(json.loads(one.case)), wanted) is not None


def test_the_least_case_is_looked_for_apart_and_every_time_the_same(row: Row) -> None:
    asked = replace(SHARD, stage="reduce", shard=1, cases=0, reduces=row.found)
    least = result(asked)
    assert result(asked) == least
    assert [each.group for each in least.found] == [each.group for each in row.found]
    filed = json.loads(next(each.line for each in least.found if each.invariant == "features/epoch-grows"))
    assert len(filed["case"]["steps"]) == len(str(MUTANTS[MUTANT].least).split("; "))


def test_what_does_not_come_again_has_no_least_case(row: Row) -> None:
    asked = replace(SHARD, stage="reduce", shard=1, target="reference", reduces=row.found)
    sound = run_shard(asked, Snapshot.empty())
    assert [each.line for each in sound.found] == ["" for _ in row.found]


def test_what_is_kept_shows_its_keys_again_and_is_no_longer_than_that_takes(row: Row) -> None:
    assert row.kept
    mutant = subject_of(MUTANTS[MUTANT])
    for each in row.kept:
        value = value_of(CHECKS[each.check].declaration(mutant), each.value)
        assert len(value) == each.steps
        assert set(each.keys) & set(row.coverage)
    known = Snapshot(row.kept, frozenset(row.coverage))
    later = run_shard(replace(SHARD, round=1, corpus=known.digest), known, find=here)
    assert not set(later.coverage) & known.keys, "what the corpus has is not new"


def test_a_target_that_is_not_there_is_said_and_nothing_held() -> None:
    def gone(name: str, limits: Limits | None) -> Target:
        raise Unavailable("it was here yesterday")

    row = run_shard(SHARD, Snapshot.empty(), find=gone)
    assert (row.status, row.cases, row.unreached) == ("done", 0, "it was here yesterday")


def test_cases_are_noted_before_they_are_sent_together_and_before_those_of_a_batch_are_judged() -> None:
    noted: list[tuple[int, Sequence[Case]]] = []
    row = result(SHARD, note=lambda number, cases: noted.append((number, cases)))
    (first, sent), *judged = noted
    assert (first, len(sent)) == (0, row.cases)
    assert [case for _, cases in judged for case in cases] == [*sent]
    assert [number for number, _ in judged] == [
        sum(len(cases) for _, cases in judged[:at]) for at in range(len(judged))
    ]
    assert len(judged) > 10


# ---- what was only slow


class _Slow:
    """Answers what ``inner`` does, but in time only to those who are patient."""

    def __init__(self, inner: Session, patient: bool, asked: list[str], hopeless: bool) -> None:
        self.inner, self.patient, self.asked, self.hopeless = inner, patient, asked, hopeless
        self.info, self.troubles, self.breaches = inner.info, inner.troubles, inner.breaches

    def run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        if self.patient:
            self.asked.extend(each.id for each in cases)
        if self.patient and not self.hopeless:
            return self.inner.run(cases)
        return [tuple(Died("timeout") for _ in each.steps) for each in cases]


class _SlowTarget:
    def __init__(self, name: str, patient: bool, asked: list[str], hopeless: bool) -> None:
        self.name, self.about = name, (patient, asked, hopeless)

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        with here(self.name, None).open(edition, role) as inner:
            yield _Slow(inner, *self.about)


def slow(asked: list[str], hopeless: bool = False) -> TargetFactory:
    return lambda name, limits: _SlowTarget(name, limits is GENEROUS_LIMITS, asked, hopeless)


def test_what_answers_with_ten_times_as_much_time_was_no_failure(row: Row) -> None:
    asked: list[str] = []
    found = run_shard(replace(SHARD, cases=20), Snapshot.empty(), find=slow(asked))
    assert len(asked) == 20
    assert found.digest == result(replace(SHARD, cases=20)).digest


def test_what_does_not_answer_then_either_counts_and_others_of_the_sort_are_not_waited_for() -> None:
    asked: list[str] = []
    found = run_shard(replace(SHARD, cases=20), Snapshot.empty(), find=slow(asked, hopeless=True))
    sorts = {(each.check, each.case) for each in found.found if each.invariant == "survives"}
    assert sorts
    assert MOST_RERUNS <= len(asked) < 20
    died = sum(each.cases for each in found.counts if (each.invariant, each.result) == ("survives", "FAIL"))
    assert died == 20
