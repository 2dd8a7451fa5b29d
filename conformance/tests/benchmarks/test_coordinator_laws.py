"""The table of coordinators by groups of laws: what is held was judged, and the page is what is generated."""

from fnmatch import fnmatchcase
from pathlib import Path

from pytest import MonkeyPatch

from kipcheck.conformance.benchmarks import coordinator_laws, coordinators
from kipcheck.conformance.benchmarks.coordinator_laws import (
    GROUPS,
    HELD,
    NO_GROUP,
    NOT_LOOKED_AT,
    NOT_OFFERED,
    Recorded,
    laws_of,
    read,
    recorded,
    table,
)
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.invariants import all_invariants

RESULTS = {
    "begun": "2026-11-29T23:30:00-02:00",
    "options": {"edition": "apache@3.9.2", "seed": 4},
    "targets": [{"target": "mine", "version": "1"}],
    "checks": [{"check": "group/errors", "targets": {"mine": {}}}, {"check": "group/parked", "targets": {"other": {}}}],
    "invariants": {"mine": {"group/answers-leave": {"judged": 7, "cases": 9}, "group/like-its-release": {"judged": 1}}},
    "failures": [
        {"target": "mine", "invariant": "group/answers-join"},
        {"target": "other", "invariant": "group/answers-sync"},
        {"target": "mine", "invariant": "group/like-its-release"},
    ],
}
RUN = Recorded("mine", "1", "apache@3.9.2", 4, ("group/errors",), "2026-11-30", {"group/answers-leave": 7},
               ("group/answers-join",))  # fmt: skip


def cells(*runs: Recorded) -> list[dict[str, str]]:
    head, _, *rows = table(runs)
    names = head.strip("| ").split(" | ")
    return [dict(zip(names, each.strip("| ").split(" | "), strict=True)) for each in rows]


def judged(*laws: str, cases: int = 1, name: str = "mine") -> Recorded:
    return Recorded(name, "1", "apache", 0, (), "2026-01-01", dict.fromkeys(laws, cases), ())


def test_a_run_is_recorded_with_what_it_judged_and_what_failed() -> None:
    assert [*recorded(RESULTS)] == [RUN]


def test_laws_of_steps_that_no_client_causes_are_not_judged_of_a_running_broker() -> None:
    counts = {"group/outlives-moves": {"judged": 9}}
    for name, cases in (("mine", 0), ("java:mine:1", 9)):
        results = {**RESULTS, "targets": [{"target": name, "version": "1"}], "invariants": {name: counts}}
        assert [each.judged for each in recorded(results)] == [{"group/outlives-moves": cases}]


def test_a_law_is_held_only_if_a_recorded_run_judged_it() -> None:
    leaving, offsets = laws_of("leaving"), laws_of("offsets")
    (row,) = cells(judged(*leaving), judged(offsets[0]))
    assert row["leaving"] == HELD and row["offsets"] == f"{HELD} (1 of {len(offsets)})"
    assert row["reload"] == NOT_LOOKED_AT and row["streams groups"] == NOT_LOOKED_AT


def test_what_no_case_could_judge_is_not_offered() -> None:
    (row,) = cells(judged(*laws_of("reload"), cases=0))
    assert row["reload"] == NOT_OFFERED


def test_what_failed_or_is_in_the_known_list_is_broken() -> None:
    (row,) = cells(RUN)
    assert row["join and sync"] == "1 broken, 0 held" and row["leaving"] == HELD
    (row,) = cells(judged(*laws_of("damaged and old requests"), name="kfake"))
    assert row["damaged and old requests"] == "1 broken, 3 held"


def test_a_run_of_another_version_replaces_all_of_a_coordinator(monkeypatch: MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(coordinator_laws, "RECORD", tmp_path / "runs.json")
    coordinator_laws.RECORD.write_text("[]", "utf-8")
    other = judged(name="other")
    coordinator_laws.add([RUN, other])
    assert read() == [RUN, other]
    newer = Recorded("mine", "2", "apache", 0, (), "2026-12-01", {}, ())
    coordinator_laws.add([newer])
    assert read() == [newer, other]


def test_each_law_of_coordinators_is_in_one_group() -> None:
    laws = {each.id for each in all_invariants(Role.COORDINATOR)}
    places = {law: [name for name, patterns in GROUPS.items() if any(fnmatchcase(law, each) for each in patterns)]
              for law in laws}  # fmt: skip
    assert {law: found for law, found in places.items() if len(found) != 1} == {law: [] for law in NO_GROUP}


def test_the_page_is_what_is_generated() -> None:
    page = coordinators.PAGE.read_text("utf-8")
    assert coordinators.with_laws(page, read()) == page
