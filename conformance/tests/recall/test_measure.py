"""Comparisons of a release with a bug and one without, by runs that are made up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.failure_pattern import FailurePattern
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.recall.bugs import Bug, InvalidEntry
from kipcheck.conformance.recall.measure import NO_INVARIANT, NOT_COUNTED, Budget, Measured, judging_checks, measure
from kipcheck.conformance.recall.runs import Failing, First, Job, KeptRuns, Run
from kipcheck.conformance.recall.why import NO_LAW
from kipcheck.conformance.tests.support.loops import for_each

OLD, NEW = "client:aiokafka@0.10.0", "client:aiokafka@0.11.0"
BUG: Final = Bug(
    id="aiokafka-1", link="https://github.com/aio-libs/aiokafka/issues/1", observed="The group waits for a member.",
    affected=OLD, fixed=NEW, role=Role.CLIENT, kind="live", requirements=("grp-69",),
    counts=(FailurePattern("client/beats"), FailurePattern("client/leaves", ("late",))),
)  # fmt: skip
CLEAN: Final = Run(exits=(0,), why="", cases=40, cpu_s=10.0, judged={"client/beats": 38, "client/leaves": 30})


def failing(invariant: str = "client/beats", *shape: str, grade: str = "MUST", steps: int = 2) -> Failing:
    least = tuple(f"{number}. step" for number in range(steps))
    return Failing(invariant=invariant, shape=shape, subject="client", grade=grade, least=least)


def failed(*failures: Failing, at: int = 12) -> Run:
    first = {f"{each.invariant} client": First(cases=at, cpu_s=3.0) for each in failures}
    return replace(CLEAN, exits=(1,), failures=failures, first=first)


@dataclass
class Runs:
    """A runner with made-up runs: those of a target and a seed, else of the target, else a clean one."""

    by: Mapping[Any, Run]
    jobs: list[Job] = field(default_factory=list)

    def __call__(self, job: Job) -> Run:
        self.jobs.append(job)
        return self.by.get((job.target, job.seed), self.by.get(job.target, CLEAN))

    def seeds(self, target: str) -> list[int]:
        return [job.seed for job in self.jobs if job.target == target]


def measured(by: Mapping[Any, Run], bug: Bug = BUG, budget: Budget | None = None, seeds: int = 3) -> Measured:
    return measure(bug, seeds, budget or Budget(), Runs(by))


def test_a_bug_is_found_where_the_affected_release_alone_fails_in_a_way_that_counts() -> None:
    found = measured({(OLD, 1): failed(failing()), (OLD, 2): failed(failing(), at=30)})
    assert (found.result, found.seeds, found.cases, found.cpu_s) == ("found", (1, 2), (12, 30), (3.0, 3.0))
    assert (found.invariant, found.grade, found.least) == ("client/beats", "MUST", ("0. step", "1. step"))
    assert (found.reason, found.why, found.budget, found.alarms) == ("", "", 0, ())


def test_the_gravest_failure_with_the_least_case_is_shown() -> None:
    run = failed(
        failing("client/leaves", "late", grade="SHOULD", steps=1), failing(steps=3), failing("client/beats", "x")
    )
    found = measured({OLD: run})
    assert (found.invariant, found.shape, len(found.least)) == ("client/beats", ("x",), 2)
    assert found.also == ("client/beats on client", "client/leaves (late) on client")


@for_each([failed(failing("client/syncs")), failed(failing("client/leaves", "never")), CLEAN])
def test_other_failures_do_not_count(run: Run) -> None:
    found = measured({OLD: run})
    assert (found.result, found.why, found.seeds) == ("missed", NOT_COUNTED, ())


def test_a_failure_that_the_fixed_release_has_with_any_seed_is_not_the_bug() -> None:
    found = measured({(OLD, 0): failed(failing()), (NEW, 2): failed(failing())})
    assert found.result == "false alarm" and found.alarms == ("client/beats on client",)
    explained = replace(BUG, explained="Both wait for the broker, which is slow.")
    assert measured({OLD: failed(failing()), NEW: failed(failing())}, explained).result == "missed"


def test_a_bug_is_found_beside_a_false_alarm_of_another_shape_which_is_named() -> None:
    found = measured({OLD: failed(failing("client/beats", "a"), failing()), NEW: failed(failing("client/beats", "a"))})
    assert (found.result, found.shape, found.alarms) == ("found", (), ("client/beats (a) on client",))


# ---- what shows nothing


@for_each([
    ((70,), "ValueError: x", "a bug in kipcheck: ValueError: x"),
    ((2,), "unknown target", "wrong usage, or nothing selected: unknown target"),
    ((1, 3), "it ended", "a target did not start or broke the protocol: it ended"),
    ((7,), "the client never read", "a client never read: the client never read"),
    ((6,), "interrupted", "undecided within the budget: interrupted"),
])  # fmt: skip
def test_a_run_that_ended_otherwise_is_named_and_no_miss(exits: tuple[int, ...], why: str, reason: str) -> None:
    ended = replace(CLEAN, exits=exits, why=why)
    for runs in ({(OLD, 1): ended}, {OLD: failed(failing()), (NEW, 1): ended}):
        found = measured(runs)
        assert found.result == "undecided" and reason in found.reason
        assert found.reason.startswith(OLD if len(runs) == 1 else NEW)
    assert measured({OLD: replace(failed(failing()), exits=(1, *exits), why=why)}).result == "found"


def test_a_release_that_fails_all_cases_for_another_reason_shows_whether_a_bug_is_there() -> None:
    """kafka-go 0.4.48 writes each subscription wrongly: none of its cases passed, and JoinGroup 1 was gone."""
    none_passed = replace(failed(failing("client/syncs")), exits=(1, 7), why="none of 40 cases passed")
    assert measured({OLD: replace(failed(failing()), exits=(1, 7)), NEW: none_passed}).result == "found"
    unjudged = replace(none_passed, judged={"client/syncs": 40})
    assert measured({OLD: failed(failing()), NEW: unjudged}).result == "undecided"


@for_each([
    (replace(CLEAN, exits=(6,), doubts={"client/beats": 2}), "in which client/beats was undecided"),
    (replace(CLEAN, exits=(6,), doubts={"*": 1}), "cases without a verdict"),
    (replace(CLEAN, exits=(4,), unstable=("client/beats",)), "a failure of client/beats did not occur again"),
])  # fmt: skip
def test_doubts_about_an_invariant_that_counts_are_no_miss(run: Run, reason: str) -> None:
    found = measured({(OLD, 0): run}, budget=Budget(times=1))
    assert found.result == "undecided" and reason in found.reason


def test_doubts_about_other_invariants_leave_a_miss_a_miss() -> None:
    run = replace(CLEAN, exits=(4, 6), doubts={"client/syncs": 2}, unstable=("client/syncs",))
    assert measured({OLD: run}).result == "missed"


@for_each([("client/syncs", "found"), ("client/beats", "undecided")])
def test_a_failure_of_the_fixed_release_that_did_not_occur_again_is_of_one_invariant(unstable: str, is_: str) -> None:
    once = replace(CLEAN, exits=(6,), unstable=(unstable,))
    assert measured({OLD: failed(failing()), NEW: once}).result == is_


def test_a_release_that_cannot_be_installed_is_skipped_with_its_reason_and_nothing_more_is_run() -> None:
    gone = Run(exits=(3,), why="aiokafka==0.11.0 cannot be installed")
    runs = Runs({OLD: failed(failing()), NEW: gone})
    found = measure(BUG, 3, Budget(), runs)
    assert (found.result, found.reason) == ("skipped", f"{NEW}: aiokafka==0.11.0 cannot be installed")
    assert len(runs.jobs) == 4


def test_an_invariant_that_judged_nothing_is_named() -> None:
    found = measured({OLD: replace(CLEAN, judged={"client/leaves": 1})})
    assert found.result == "missed" and found.remarks == (f"client/beats judged no case of {OLD}",)


def test_without_an_invariant_nothing_is_run() -> None:
    runs = Runs({})
    found = measure(replace(BUG, counts=()), 3, Budget(), runs)
    assert (found.result, found.why, found.remarks, runs.jobs) == ("missed", NO_LAW, (NO_INVARIANT,), [])


# ---- the budget


def test_the_budget_is_run_only_where_the_default_cases_miss_and_ends_at_the_first_failure() -> None:
    runs = Runs({(OLD, 6): failed(failing())})
    found = measure(BUG, 3, Budget(), runs)
    assert runs.seeds(OLD) == [0, 1, 2, 3, 6, 4, 7, 10, 13, 5, 8, 11, 14]
    assert runs.seeds(NEW) == [6], "the fixed release is run where there is something to compare"
    assert (found.result, found.seeds, found.cases, found.budget) == ("found with budget", (0,), (92,), 10)
    found_at_once = Runs({(OLD, 2): failed(failing())})
    assert measure(BUG, 3, Budget(), found_at_once).budget == 0 and len(found_at_once.jobs) == 6


def test_a_failure_within_the_budget_that_the_fixed_release_has_too_is_not_the_bug() -> None:
    found = measured({(OLD, 6): failed(failing()), (NEW, 6): failed(failing())})
    assert found.result == "false alarm" and not found.seeds


def test_a_budget_in_time_begins_no_run_after_it() -> None:
    runs = Runs({})
    assert measure(BUG, 3, Budget(seconds=0.0), runs).result == "missed"
    assert runs.seeds(OLD) == [0, 1, 2]


def test_nothing_more_is_run_where_every_run_would_end_in_the_same_way() -> None:
    runs = Runs({OLD: Run(exits=(2,), why="unknown target")})
    assert measure(BUG, 3, Budget(), runs).result == "undecided" and len(runs.jobs) == 3


# ---- what is run


def test_checks_of_the_role_that_judge_an_invariant_that_counts_are_run() -> None:
    assert judging_checks(BUG) and all(CHECKS[each].role is BUG.role for each in judging_checks(BUG))
    assert all("client/beats" in CHECKS[each].invariants for each in judging_checks(BUG))
    codec = replace(BUG, role=Role.CODEC, counts=(FailurePattern("survives"),))
    every = tuple(id for id, check in CHECKS.items() if check.role is Role.CODEC)
    assert judging_checks(codec) == every, "every check judges whether the target survives"
    with pytest.raises(InvalidEntry, match=r"the entry aiokafka-1: no check of role codec judges client/beats"):
        judging_checks(replace(BUG, role=Role.CODEC, counts=(FailurePattern("client/beats"),)))


def test_a_check_without_a_subject_of_the_target_is_left_out() -> None:
    codec = replace(BUG, role=Role.CODEC, counts=(FailurePattern("survives"),))
    nothing = Run(exits=(2,), why=_nothing_selected())
    assert measure(codec, 1, Budget(1), lambda job: CLEAN if job.check == CODEC[0] else nothing).result == "missed"
    assert measure(codec, 1, Budget(1), lambda job: nothing).result == "undecided"


def _nothing_selected() -> str:
    from kipcheck.conformance.engine.execution.selection import NOTHING_SELECTED

    return NOTHING_SELECTED


CODEC = tuple(id for id, check in CHECKS.items() if check.role is Role.CODEC)


def test_cases_of_several_checks_are_added() -> None:
    codec = replace(BUG, role=Role.CODEC, counts=(FailurePattern("survives"),))
    run = failed(failing("survives"))
    found = measure(codec, 1, Budget(1), lambda job: run if (job.check, job.target) == (CODEC[1], OLD) else CLEAN)
    assert found.cases == (52,), "those of the first check come first"


def test_both_releases_run_the_checks_up_to_the_one_that_shows_the_bug() -> None:
    codec = replace(BUG, role=Role.CODEC, counts=(FailurePattern("survives"),))
    failing_in = {(OLD, CODEC[1]), (NEW, CODEC[1]), (OLD, CODEC[3])}
    jobs: list[tuple[str, str]] = []

    def run(job: Job) -> Run:
        jobs.append((job.target, job.check))
        shape = ("new",) if job.check == CODEC[3] else ()
        return failed(failing("survives", *shape)) if jobs[-1] in failing_in else CLEAN

    assert measure(codec, 1, Budget(1), run).shape == ("new",)
    assert jobs == [
        *((OLD, each) for each in CODEC[:2]), (NEW, CODEC[1]), *((OLD, each) for each in CODEC[2:4]), (NEW, CODEC[3])
    ]  # fmt: skip


@for_each([
    ("apache", OLD, "apache"), ("kip-429", OLD, "kip-429"), ("", "kafka:2.3.0", "apache@2.3.0"),
    ("", "java:kafka-streams:2.3.1", "apache@2.3.1"), ("", "client:java@3.3.2", "apache@3.3.2"),
])  # fmt: skip
def test_an_empty_edition_is_that_of_each_release(edition: str, target: str, wanted: str) -> None:
    runs = Runs({})
    measure(replace(BUG, edition=edition, affected=target), 1, Budget(1), runs)
    assert runs.jobs[0].edition == wanted


def test_the_command_names_no_bug_and_no_known_list() -> None:
    words = " ".join(Job("kafka:2.3.0", "apache@2.3.0", "group/parked", 2).words)
    assert words == "kipcheck run --target kafka:2.3.0 --edition apache@2.3.0 --check group/parked --seed 2"


# ---- runs that are kept


def test_a_run_is_kept_and_not_run_again(tmp_path: Path) -> None:
    ran: list[Job] = []
    kept = KeptRuns(tmp_path, ran.append, lambda job: failed(failing("client/beats", "a")))
    job = Job(OLD, "apache", "client/groups", 0)
    assert kept(job) == kept(job) == failed(failing("client/beats", "a")) and ran == [job]
    assert kept(Job(OLD, "apache", "client/groups", 1)) and len(ran) == 2
    (first, _) = sorted(tmp_path.iterdir())
    assert json.loads(first.read_text("utf-8"))["command"].startswith("kipcheck run --target client:aiokafka@0.10.0")
    first.write_text('{"exits": [0', "utf-8")
    assert kept(job) == failed(failing("client/beats", "a")) and len(ran) == 3, "a damaged file is replaced"


@for_each([Run(exits=(3,), why="no network"), Run(exits=(70,), why="no memory")])
def test_what_may_end_otherwise_at_the_next_attempt_is_not_kept(run: Run, tmp_path: Path) -> None:
    kept = KeptRuns(tmp_path, execute=lambda job: run)
    assert kept(Job(OLD, "apache", "client/groups", 0)) == run and not [*tmp_path.iterdir()]


def test_other_sources_make_other_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kipcheck.conformance.recall import runs

    kept = KeptRuns(tmp_path, execute=lambda job: CLEAN)
    kept(Job(OLD, "apache", "client/groups", 0))
    monkeypatch.setattr(runs, "digest", lambda: "other")
    kept(Job(OLD, "apache", "client/groups", 0))
    assert len([*tmp_path.iterdir()]) == 2


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    def interrupted(job: Job) -> Run:
        if job.seed == 1:
            raise KeyboardInterrupt
        return CLEAN

    with pytest.raises(KeyboardInterrupt):
        measure(BUG, 3, Budget(), KeptRuns(tmp_path, execute=interrupted))
    assert len([*tmp_path.iterdir()]) == 1
    ran: list[Job] = []
    measure(BUG, 3, Budget(1), KeptRuns(tmp_path, ran.append, lambda job: CLEAN))
    assert [job.seed for job in ran] == [1, 2]
