"""Why released bugs are missed: what is compared of runs that are made up, and which calls of clients are counted."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest

from kipcheck.conformance.recall import missed_bug
from kipcheck.conformance.recall.changes import entered
from kipcheck.conformance.recall.copies import PythonCopies, copies
from kipcheck.conformance.recall.facts import CaseFacts
from kipcheck.conformance.recall.go_copies import NOTE as GO_NOTE, instrumented as instrumented_go
from kipcheck.conformance.recall.measure import NOT_COUNTED, Budget, Reason, measure
from kipcheck.conformance.recall.missed_bug import Explainer, calls
from kipcheck.conformance.recall.mutant_process import End
from kipcheck.conformance.recall.mutant_run import Run
from kipcheck.conformance.recall.python_copies import NOTE, instrumented
from kipcheck.conformance.recall.why import IN_DOUBT, NO_DIFFERENCE, NO_LAW, NOT_REACHED
from kipcheck.conformance.tests.recall.test_measure import BUG, OLD, Runs, failed, failing

FUNCTION: Final = "aiokafka/consumer/group_coordinator.py:GroupCoordinator._do_heartbeat"
WITH_DEFECT: Final = replace(BUG, defect=(FUNCTION,))
COUNTS, OTHER = "client/beats", "client/joins"
FAIL, PASS, UNKNOWN = (frozenset({each}) for each in ("FAIL", "PASS", "UNKNOWN"))


def facts(*features: str, reached: bool = False, case: str = "a") -> dict[str, CaseFacts]:
    return {case: CaseFacts(case, frozenset(features), {}, reached)}


@dataclass
class Made:
    """A run that is made up."""

    facts: Mapping[str, CaseFacts]
    ledger: Any
    """Its verdicts."""
    end: End | None = None


def explained(
    monkeypatch: pytest.MonkeyPatch, affected: Made, fixed: tuple[Made, ...], loaded: int = 0, bug: Any = WITH_DEFECT
) -> Reason:
    left = [replace(affected, end=End(0, "", (), loaded)), *fixed]
    monkeypatch.setattr(Explainer, "_run", lambda *arguments: left.pop(0))
    monkeypatch.setattr(missed_bug, "calls", lambda bug, client: [])
    monkeypatch.setattr(missed_bug, "copies", lambda target: None)
    monkeypatch.setattr(missed_bug, "verdicts", lambda ledgers: {"a": next(iter(ledgers))})
    return Explainer(Path())(bug)


@pytest.mark.parametrize(
    ("affected", "verdict", "loaded", "why"),
    [
        (facts("1"), {COUNTS: PASS}, 0, NOT_REACHED),
        (facts("2"), {COUNTS: PASS}, 0, NOT_REACHED),
        (facts("1", reached=True), {COUNTS: UNKNOWN}, 0, NO_DIFFERENCE),
        (facts("2", reached=True), {COUNTS: PASS}, 0, NO_LAW),
        (facts("2", reached=True), {COUNTS: PASS, OTHER: FAIL}, 0, NO_LAW),
        (facts("2", reached=True), {COUNTS: UNKNOWN}, 0, IN_DOUBT),
        (facts("2"), {COUNTS: PASS}, 3, NO_LAW),
    ],
)
def test_why_a_bug_is_missed(
    affected: Mapping[str, CaseFacts], verdict: Any, loaded: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdicts of invariants that the entry does not count are about other bugs. A function that runs outside of all
    cases, as before they begin, may show in each."""
    same = Made(facts("1"), {COUNTS: PASS})
    found = explained(monkeypatch, Made(affected, verdict), (same, same), loaded)
    assert found.why == why
    assert found.counted.startswith(f"{sum(each.reached for each in affected.values())} of 1 cases called {FUNCTION};")


def test_what_differs_between_runs_of_the_fixed_release_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed = (Made(facts("1"), {}), Made(facts("3"), {}))
    assert explained(monkeypatch, Made(facts("2", reached=True), {}), fixed).why == NO_DIFFERENCE


def test_releases_without_a_common_case_show_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Made(facts("1", case="b"), {})
    found = explained(monkeypatch, Made(facts("2", reached=True), {}), (other, other))
    assert found == Reason(NOT_COUNTED, "why it was missed is not counted: the releases have no case in common")


@pytest.mark.parametrize(
    ("bug", "why"),
    [
        (BUG, "the entry names no function"),
        (replace(WITH_DEFECT, edition=""), "the releases run with the cases of two editions"),
        (replace(WITH_DEFECT, affected="client:kafkajs@2.0.0"), "calls are counted in kafka-python, aiokafka"),
    ],
)
def test_what_is_not_counted_has_its_reason(bug: Any, why: str) -> None:
    found = Explainer(Path())(bug)
    assert found.why == NOT_COUNTED and why in found.counted


def test_only_missed_bugs_are_explained() -> None:
    reason = Reason(NOT_REACHED, "0 of 40 cases called it")
    missed = measure(WITH_DEFECT, 3, Budget(1), Runs({}), lambda bug: reason)
    assert (missed.result, missed.why) == ("missed", NOT_REACHED) and reason.counted in missed.remarks
    found = measure(WITH_DEFECT, 3, Budget(1), Runs({OLD: failed(failing())}), lambda bug: reason)
    assert (found.result, found.why) == ("found", "") and reason.counted not in found.remarks


def test_a_run_is_made_once_with_the_cases_of_the_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without lists of known deviations, as the runs that look for the bug."""
    orders = []

    def run(cache: Path, order: Any, seconds: float) -> Run:
        orders.append(order)
        place = Path(order.out)
        place.mkdir(parents=True)
        (place / "end.json").write_text(json.dumps({"exit": 5, "why": "", "confirmed": [], "loaded": 0}))
        return Run(place, End(5, "", (), 0), False, 1.0)

    monkeypatch.setattr(missed_bug, "run", run)
    monkeypatch.setattr(Run, "ledger", object())
    begun: list[str] = []
    explainer = Explainer(tmp_path, begun.append)
    for _ in range(2):
        explainer._run(WITH_DEFECT, OLD, 0)
    (order,) = orders
    assert (order.target, order.checks, order.known, order.confirms) == (OLD, ("client/groups",), (), False)
    assert begun == [f"{OLD}: why it was missed"]


# ---- calls that are counted

PYTHON = '''\
class Member:
    def poll(self):
        """Polls."""
        return 1

    def leave(self):
        return 2


def poll():
    return 3
'''
GO = """\
package client

func (m *Member) poll(
	of interface{},
) error {
	// Polls.
	if of == nil {
		return nil
	}
	return m.leave()
}

func (m Member) leave() error { return nil }

func empty() {
}
"""


def test_a_call_is_counted_where_the_function_begins() -> None:
    change = entered("a.py", "Member.poll", PYTHON)
    assert change is not None and change.after == PYTHON
    assert instrumented(change) == PYTHON.replace("        return 1", f"        {NOTE}\n        return 1")
    assert entered("a.py", "Member.never", PYTHON) is None
    for name, old in (("Member.poll", "if of == nil"), ("Member.leave", "return nil }")):
        inside = entered("a.go", name, GO)
        assert inside is not None and inside.after == GO
        assert instrumented_go(inside) == GO.replace(old, f"{GO_NOTE}; {old}")
    assert entered("a.go", "empty", GO) is None and entered("a.go", "poll", GO) is None


def test_several_functions_of_a_client_are_counted_and_its_files_stay(tmp_path: Path) -> None:
    """Of the release that other tests install."""
    client = copies("client:aiokafka")
    assert isinstance(client, PythonCopies)
    two = (
        FUNCTION,
        FUNCTION.replace("_do_heartbeat", "_heartbeat_routine"),
        "aiokafka/conn.py:AIOKafkaConnection.send",
    )
    changes = calls(replace(WITH_DEFECT, affected=client.target, defect=two), client)
    assert [each.path for each in changes] == ["consumer/group_coordinator.py"] * 2 + ["conn.py"]
    with client.changed(changes[0], tmp_path / "cache", *changes[1:]):
        package = client.made[tmp_path / "cache"].package
        texts = {each.path: (package / each.path).read_text("utf-8") for each in changes}
        assert [text.count(NOTE) for text in texts.values()] == [2, 1]
    sources = client.sources()
    assert {path: (package / path).read_text("utf-8") for path in texts} == {path: sources[path] for path in texts}
    with pytest.raises(LookupError, match="calls of never cannot be counted"):
        calls(replace(WITH_DEFECT, affected=client.target, defect=("aiokafka/conn.py:never",)), client)
    with pytest.raises(LookupError, match=r"has no file gone\.py"):
        calls(replace(WITH_DEFECT, affected=client.target, defect=("aiokafka/gone.py:never",)), client)
