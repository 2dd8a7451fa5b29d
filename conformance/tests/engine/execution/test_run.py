"""What a run does with targets, options and accidents: exit codes, ledger, distinct failures, replay."""

import errno
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kipcheck import reports
from kipcheck.conformance.core.ledger import BytesExhibit, Ledger, read
from kipcheck.conformance.core.values import exits
from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.replay import replay
from kipcheck.conformance.engine.execution.run import Options, Outcome, run
from kipcheck.conformance.engine.execution.worker import Unit, UnitResult, Worker
from kipcheck.conformance.engine.search import shrink
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.codec import two_decoders
from kipcheck.conformance.protocols.codec.checks.family import Subject
from kipcheck.conformance.protocols.codec.invariants.wire import is_beyond_bounds
from kipcheck.conformance.protocols.codec.two_decoders import in_tagged
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry, testee
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Broken, Target, Unavailable, Unstable
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.tests.support.releases import PYTHON_CLIENTS
from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.errors import Refused
from kipcheck.strategies.damage import USUAL, Outcome as Bearing, damages

HEARTBEAT = Options(targets=("reference",), messages=("HeartbeatRe*",), checks=("wire/[!pv]*",), cases=8, workers=1)


@pytest.fixture
def small(tmp_path: Path) -> Options:
    return replace(HEARTBEAT, out=tmp_path / "out")


def executed(options: Options) -> tuple[Outcome, Ledger]:
    outcome = run(options)
    assert outcome.ledger is not None
    return outcome, read(outcome.ledger)


def vicious(monkeypatch: pytest.MonkeyPatch, **others: Target | Exception) -> None:
    """Miniatures without a process of their own, and whatever else a test brings, as targets by name."""
    known = registry.target

    def target_of(name: str) -> Target:
        short = name.removeprefix("miniature/")
        if short in others:
            found = others[short]
            if isinstance(found, Exception):
                raise found
            return found
        return InProcess(MUTANTS[short].made()) if short in MUTANTS else known(name)

    monkeypatch.setattr(engine_run, "target_of", target_of)


def test_the_reference_is_conformant_and_the_ledger_is_whole(small: Options) -> None:
    outcome, ledger = executed(small)
    assert (outcome.exit_code, outcome.failures, outcome.warnings) == (0, 0, 0)
    assert ledger.complete
    assert {line.result for line in ledger.verdicts()} == {"PASS"}
    assert ledger.footer is not None
    counted = sum(count for check in ledger.footer.counts["reference"].values() for count in check.values())
    assert counted == sum(1 for _ in ledger.verdicts()) > 100


def test_the_ends_of_each_message_come_before_its_other_versions_and_each_check_is_told_once(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Unit] = []
    run_unit = Worker.run

    def noted(worker: Worker, unit: Unit) -> UnitResult:
        ran.append(unit)
        return run_unit(worker, unit)

    monkeypatch.setattr(Worker, "run", noted)
    checks = ("assign/order", "wire/damage", "wire/repeat")
    _, ledger = executed(replace(small, checks=checks, messages=("Heartbeat*", "range"), cases=1))
    versions: dict[str, list[int]] = {}
    for each in ran:
        versions.setdefault(each.subject, []).extend(() if each.version is None else (each.version,))
    ends = {subject: (min(found), max(found)) for subject, found in versions.items() if found}
    ranks = [0 if each.version is None else 1 if each.version in ends[each.subject] else 2 for each in ran]
    assert ranks == sorted(ranks) and set(ranks) == {0, 1, 2}
    assert Counter(each.check for each in ran) == {each.check: each.units for each in ledger.checks}
    begun = [line for line in ledger.path.read_text("utf-8").splitlines() if '"type":"begin"' in line]
    assert len(begun) == len(ledger.checks) == len(checks)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"targets": ("nobody",)}, "unknown target 'nobody'"),
        ({"targets": ()}, "no target is selected"),
        ({"edition": "kip-1"}, "unknown edition 'kip-1'"),
        ({"checks": ("wire/fantasy",)}, "no check matches 'wire/fantasy'; "),
        ({"checks": ()}, "no check is selected"),
        ({"checks": ("wire/round-tripp",)}, "no check matches 'wire/round-tripp'; the nearest: wire/round-trip"),
        (
            {"messages": ("NoSuch*",)},
            "--message 'NoSuch*' matches no message, assignor or machine of the selected checks",
        ),
        ({"messages": ("Heartbeat*", "JoinGrupRequest")}, "'JoinGrupRequest' matches no message, assignor or machine"),
        ({"targets": ("kafka-pyton",)}, "unknown target 'kafka-pyton'; the nearest: kafka-python"),
    ],
)
def test_nothing_to_run_is_wrong_usage_and_writes_nothing(small: Options, change: dict[str, Any], why: str) -> None:
    outcome = run(replace(small, **change))
    assert (outcome.exit_code, outcome.ledger) == (2, None)
    assert why in outcome.why
    assert not small.out.exists()


def test_a_must_fails_the_gate_and_a_should_warns(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    vicious(monkeypatch)
    failed, _ = executed(replace(small, targets=("miniature/refuses-unknown-tags",)))
    warned, ledger = executed(replace(small, targets=("miniature/drops-unknown-tags",)))
    assert (failed.exit_code, failed.failures) == (1, 1)
    assert (warned.exit_code, warned.failures, warned.warnings) == (0, 0, 1)
    assert [line.grade for line in ledger.failures] == ["SHOULD"]


def test_with_a_list_a_warning_that_it_lacks_fails_the_gate(
    small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch)
    target, lists = "miniature/drops-unknown-tags", {"empty": "", "full": "", "of another target": ""}
    _, ledger = executed(replace(small, targets=(target,)))
    (warning,) = ledger.failures
    where = ", ".join(f'{subject} = "{versions}"' for subject, versions in warning.where.items())
    entry = (
        f"[[deviation]]\nchecks = {json.dumps(warning.checks)}\ninvariant = {json.dumps(warning.invariant)}\n"
        f'versions = "all"\nshape = {json.dumps(warning.shape)}\nreason = "It keeps no tags that it does not know."\n'
        f'link = "https://issues.apache.org/jira/browse/KAFKA-1"\nwhere = {{ {where} }}\n'
    )
    lists = {"empty": "", "full": f'target = "{target}"\n{entry}', "of another target": f'target = "odd"\n{entry}'}
    found = {}
    for name, text in lists.items():
        (known := tmp_path / f"{name}.toml").write_text(text)
        outcome, ledger = executed(replace(small, targets=(target,), known=(str(known),)))
        found[name] = outcome.exit_code, outcome.warnings, outcome.known, ledger.failures[0].unlisted
        in_last_line = "1 warning (1 not in the known list)" in outcome.text.splitlines()[-1]
        junit, sarif = (reports.render(ledger.path, form) for form in ("junit", "sarif"))
        fails = name == "empty"
        assert (in_last_line, "<failure" in junit, '"level": "error"' in sarif.partition('"results"')[2]) == (
            fails,
        ) * 3
    assert found == {"empty": (1, 1, 0, True), "full": (0, 0, 1, None), "of another target": (0, 1, 0, None)}


def test_many_cases_of_one_defect_are_one_failure_with_a_count(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    vicious(monkeypatch)
    named: dict[str, Any] = {
        "targets": ("miniature/writes-little-endian",),
        "messages": ("Heartbeat*", "SyncGroup*"),
    }
    options = replace(small, cases=4, **named)
    outcome, ledger = executed(options)
    assert outcome.failures == 1
    (failure,) = ledger.failures
    assert failure.cases > 20
    assert {"HeartbeatRequest", "SyncGroupRequest"} <= failure.where.keys()
    assert [step["verb"] for step in failure.steps] == ["encode"]
    assert failure.steps[0]["value"] == {"groupId": "", "generationId": 1, "memberId": ""}


def test_a_failure_says_all_that_a_report_shows(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    vicious(monkeypatch)
    _, ledger = executed(replace(small, targets=("miniature/forgets-the-sign",)))
    (failure,) = ledger.failures
    assert failure.requirements[0].id == "grp-05"
    assert failure.requirements[0].clause == requirements()["grp-05"].clause
    assert (failure.expected, failure.observed, failure.path) == ("-1", "65535", "errorCode")
    (exhibit,) = failure.exhibits
    assert isinstance(exhibit, BytesExhibit)
    assert [(row.bytes, row.path) for row in exhibit.rows if row.guilty] == [("ffff", "errorCode")]
    filed = json.loads((small.out / "failures" / f"{failure.id}.json").read_text())
    assert Case.of(filed["case"]).id == failure.case_id
    assert failure.reproduce == f"kipcheck replay {failure.id} --out {small.out.absolute()}"


def lines(options: Options) -> list[dict[str, Any]]:
    _, ledger = executed(options)
    return [*(each.plain for each in ledger.verdicts()), *({**each.plain, "reproduce": ""} for each in ledger.failures)]


@pytest.mark.integration
def test_same_seed_same_verdicts_and_failures_whatever_the_workers(small: Options, tmp_path: Path) -> None:
    checks = ("wire/round-trip", "wire/prefixes", "wire/damage", "assign/one-round")
    messages = ("LeaveGroupRe*", "range", "sticky")
    options = replace(small, targets=("kafka-python",), checks=checks, messages=messages, cases=1)
    alone = lines(options)
    assert alone == lines(replace(options, workers=2, out=tmp_path / "shared"))
    other = lines(replace(options, seed=1, out=tmp_path / "other"))
    assert {line["case"] for line in alone if "case" in line} != {line["case"] for line in other if "case" in line}


def test_a_case_keeps_its_id_when_its_check_is_renamed() -> None:
    subject = Subject("apache", layout("apache", "HeartbeatRequest", 0))
    sample = next(CHECKS["wire/two-readings"].samples(subject, 0))
    assert replace(sample.case, check="renamed").id == sample.case.id
    assert replace(sample.case, edition="apache@3.9.2").id != sample.case.id


@pytest.mark.integration
def test_replay_tells_what_fails_again_from_what_is_gone(
    small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch)
    run(replace(small, targets=("miniature/forgets-the-sign",)))
    (file,) = (small.out / "failures").iterdir()
    monkeypatch.chdir(tmp_path)
    assert replay(file).exit_code == 1
    filed = json.loads(file.read_text())
    file.write_text(json.dumps({**filed, "target": "reference"}))
    assert replay(file).exit_code == 0
    file.write_text(json.dumps({**filed, "target": "referense"}))
    unknown = replay(file)
    assert unknown.exit_code == 2
    assert unknown.message.startswith(f"{file} names a target that is unknown: unknown target 'referense'")
    file.write_text(json.dumps({**filed, "invariant": "no/more"}))
    assert replay(file).exit_code == 6
    file.write_text("[]")
    assert replay(file).exit_code == 2
    assert replay(tmp_path / "nowhere.json").exit_code == 2


@pytest.mark.integration
def test_what_an_earlier_run_found_leaves_with_the_next(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    vicious(monkeypatch)
    run(replace(small, targets=("miniature/forgets-the-sign",)))
    assert list((small.out / "failures").iterdir())
    run(small)
    assert not (small.out / "failures").exists()


def broken() -> Target:
    return testee.Testee("broken", Command((sys.executable, "-c", "print('good morning')")))


def mortal(mutant: str, limits: testee.Limits | None = None) -> Target:
    """Our codec behind the protocol in a few lines, so that nothing stands between a death and the gate."""
    script = f"""if True:
        import json, os, sys
        from kipcheck.conformance.protocols.reference import Reference
        reference = Reference()
        def answer(op):
            {mutant}
            return reference.answer(op)
        for line in sys.stdin:
            said = json.loads(line)
            reply = {{"type": said["type"], "protocol": 1}}
            if said["type"] == "hello":
                reply |= {{"protocol": 1, "name": "mortal", "version": "1", "language": "python", "roles": ["codec"],
                           "capabilities": {{"HeartbeatResponse": [0, 4]}}}}
            elif said["type"] == "configure":
                reply["ok"] = True
            elif said["type"] == "batch":
                reply = {{"type": "results", "id": said["id"],
                          "results": [{{"n": each["n"], **answer(each)}} for each in said["cases"]]}}
            print(json.dumps(reply), flush=True)
    """
    return testee.Testee("mortal", Command((sys.executable, "-c", script)), limits)


def test_a_target_that_does_not_start_is_3_and_the_others_are_still_held(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch, broken=broken())
    outcome, ledger = executed(replace(small, targets=("broken", "reference")))
    assert outcome.exit_code == 3
    # It greets at its start, which may be before it is asked for hello, or after.
    assert re.search("not JSON|unsolicited bytes: b'good morning", ledger.troubles[0].why)
    assert ledger.footer is not None
    assert ledger.footer.counts.keys() == {"reference"}


def test_a_target_that_is_not_installed_is_an_error_alone_and_beside_others(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch, absent=Unavailable("absent is not installed"))
    beside, ledger = executed(replace(small, targets=("absent", "reference")))
    alone, _ = executed(replace(small, targets=("absent",)))
    assert (beside.exit_code, alone.exit_code) == (3, 3)
    assert [each.why for each in ledger.troubles if each.target == "absent"] == ["absent is not installed"]


def test_a_machine_without_semaphores_is_no_bug_of_ours(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing:
        def SimpleQueue(self) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(multiprocessing, "get_context", lambda method: Refusing())
    outcome, ledger = executed(replace(small, workers=2))
    assert outcome.exit_code == 3
    assert "make /dev/shm writable, or give --workers 1" in ledger.troubles[0].why


@pytest.mark.integration
def test_a_death_that_does_not_come_again_makes_the_target_unstable(
    small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = str(tmp_path / "died")
    vicious(monkeypatch, mortal=mortal(f"if not os.path.exists({flag!r}): open({flag!r}, 'w').close(); os.abort()"))
    outcome, ledger = executed(replace(small, targets=("mortal",)))
    assert outcome.exit_code == 4
    assert "one by one none of them did" in ledger.troubles[0].why


@pytest.mark.integration
def test_a_target_that_goes_down_too_often_is_given_up_and_what_it_did_is_still_told(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch, mortal=mortal("if op['version'] == 4: os.abort()", testee.Limits(restarts=2)))
    outcome, ledger = executed(replace(small, targets=("mortal",), checks=("wire/two-readings",)))
    assert outcome.exit_code == 1
    assert "went down 3 times" in ledger.troubles[0].why
    assert [(line.invariant, line.observed) for line in ledger.failures] == [("survives", "crashed: killed by SIGABRT")]


def test_what_was_found_before_an_interruption_is_told(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    vicious(monkeypatch)
    hold, called = Worker.run, 0

    def impatient(worker: Worker, unit: Unit) -> UnitResult:
        nonlocal called
        called += 1
        if called > 30:
            raise KeyboardInterrupt
        return hold(worker, unit)

    monkeypatch.setattr(Worker, "run", impatient)
    outcome, ledger = executed(replace(small, targets=("miniature/forgets-the-sign",)))
    assert (outcome.exit_code, outcome.why, ledger.complete) == (1, "interrupted", False)
    assert [line.invariant for line in ledger.failures] == ["wire/decodes"]


def test_what_the_budget_did_not_reach_is_undecided(small: Options) -> None:
    outcome, ledger = executed(replace(small, budget=0))
    assert outcome.exit_code == 7, "nothing passed"
    assert not ledger.complete
    assert ledger.footer is not None and ledger.footer.exits == (6, 7)
    assert {line.result for line in ledger.verdicts()} == {"UNKNOWN"}


def test_without_searches_the_same_is_found_and_may_be_less_distinct(
    small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch)
    asked = replace(small, targets=("miniature/refuses-unknown-tags",), checks=("wire/*",))
    usual, searched = executed(asked)
    outcome, ledger = executed(replace(asked, least=0.0, out=tmp_path / "least"))
    assert (outcome.exit_code, outcome.failures) == (usual.exit_code, usual.failures) == (1, 1)
    (failure,), (shrunk,) = ledger.failures, searched.failures
    assert (failure.shrunk, shrunk.shrunk) == (False, True) and shrunk.shape[: len(failure.shape)] == failure.shape
    assert failure.cases == shrunk.cases
    assert searched.footer is not None and searched.footer.least is not None and searched.footer.least.limit_s is None
    found = searched.footer.least.found
    assert found > 0 and f"least cases: {found} of {found} found" in usual.text.splitlines()
    assert "least cases: 1 left out" in outcome.text.splitlines()
    for form in ("html", "markdown", "text"):
        assert "least cases: 1 left out" in reports.render(ledger.path, form), form
    left_out = {"found": 0, "cut": 0, "gone": 0, "left_out": 1, "limit_s": 0.0}
    assert json.loads(reports.render(ledger.path, "json"))["footer"]["totals"]["least_cases"] == left_out


def test_a_search_that_has_no_time_leaves_the_case_as_it_was_found(
    small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch)
    asked = replace(small, targets=("miniature/refuses-unknown-tags",), checks=("wire/*",))
    _, searched = executed(asked)
    outcome, ledger = executed(replace(asked, least=1e-9, out=tmp_path / "least"))
    (failure,), (shrunk,) = ledger.failures, searched.failures
    assert ledger.footer is not None and ledger.footer.least is not None
    assert (ledger.footer.least.found, outcome.exit_code, failure.id) == (0, 1, shrunk.id)
    assert (
        f"least cases: 0 of {ledger.footer.least.cut} found, {ledger.footer.least.cut} cut after 1e-09 s"
        in outcome.text
    )


@pytest.mark.parametrize(
    ("why", "code"),
    [(Broken("it ended"), 1), (Unstable("it ended"), 1), (Unavailable("it ended"), 1), (RuntimeError("ours"), 70)],
)
def test_what_was_found_is_reported_whatever_ends_the_search_for_least_cases(
    small: Options, monkeypatch: pytest.MonkeyPatch, why: Exception, code: int
) -> None:
    vicious(monkeypatch)

    def gone(*_: object) -> object:
        raise why

    monkeypatch.setattr("kipcheck.conformance.engine.execution.workers.shrunk", gone)
    outcome, ledger = executed(replace(small, targets=("miniature/forgets-the-sign",)))
    assert (outcome.exit_code, outcome.failures) == (code, 1)
    assert [(line.invariant, line.shrunk) for line in ledger.failures] == [("wire/decodes", False)]


def test_what_was_found_is_reported_if_the_target_is_unavailable_later(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    vicious(monkeypatch)
    run_unit, called = Worker.run, 0

    def gone(worker: Worker, unit: Unit) -> UnitResult:
        nonlocal called
        called += 1
        if called > 30:
            raise Unavailable("it is not there any more")
        return run_unit(worker, unit)

    monkeypatch.setattr(Worker, "run", gone)
    outcome, ledger = executed(replace(small, targets=("miniature/forgets-the-sign",)))
    assert (outcome.exit_code, outcome.failures) == (3, 1)
    assert [line.invariant for line in ledger.failures] == ["wire/decodes"]


def test_a_bug_of_ours_is_70_and_leaves_a_report(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def misread(*arguments: Any, **more: Any) -> Any:
        raise Refused("length", "planted", message="HeartbeatRequest", version=0)

    monkeypatch.setattr("kipcheck.conformance.wire.constructs.read", misread)
    two_decoders._read_small.cache_clear()
    outcome, ledger = executed(small)
    two_decoders._read_small.cache_clear()
    assert outcome.exit_code == 70
    assert "codec: accepted; construct reader: " in outcome.why
    assert not ledger.complete


@pytest.mark.skipif(version("kafka-python") != PYTHON_CLIENTS["kafka-python"], reason="another release")
def test_real_defects_of_a_real_client_are_found_by_checks_that_know_of_none(
    small: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The failures are compared, not their least cases: each try of a case that hangs takes its whole limit.
    monkeypatch.setattr(shrink, "DEADLY_TRIES", 1)
    vicious(monkeypatch, **{"kafka-python": registry.target("kafka-python", testee.Limits(cpu_s=0.7))})
    named = ("ApiVersionsResponse", "FindCoordinatorRequest")
    options = replace(small, targets=("kafka-python",), checks=("*",), messages=named, cases=2)
    outcome, ledger = executed(options)
    assert (outcome.exit_code, ledger.complete) == (1, True)
    found = {(line.invariant, *line.shape[:3]) for line in ledger.failures}
    assert {
        ("survives", "died", "decode", "timeout"),  # an endless varint, in time quadratic to its length
        ("wire/skips-unknown-tags", "tag refused", "AssertionError", ""),  # a tag in a struct in a tagged field
        ("wire/refuses", "accepted", "length", "string"),  # a text that is cut off is taken as far as it goes
        ("wire/refuses", "accepted", "varint"),
        ("wire/decodes", "misread", "int32", "int"),  # any error is taken for an answer in v0
        ("wire/keeps-unknown-tags", "lost", "unknown tag"),
    } <= found


class Lenient(Reference):
    """Takes what Kafka's own readers take, which passes as well."""

    name = "lenient"

    def read(self, layout: Layout, data: bytes) -> dict[str, Any]:
        return layout.decode(data, lenient=True)


@pytest.mark.integration
def test_where_targets_differ_is_told_also_where_all_pass(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    vicious(monkeypatch, lenient=InProcess(Lenient()))
    named: dict[str, Any] = {"checks": ("wire/two-readings", "wire/damage"), "messages": ("HeartbeatRequest",)}
    options = replace(small, targets=("reference", "lenient", "miniature/ignores-nullability"), **named)
    outcome, ledger = executed(options)
    assert outcome.exit_code == 1
    reported = {(row.check, *row.cells.values()) for row in ledger.differences}
    assert ("wire/two-readings", "PASS", "PASS", "FAIL") in reported
    assert ("wire/damage", "PASS refused", "PASS a", "PASS refused") in reported
    assert all(row.grade == "INFO" and row.cases > 0 for row in ledger.differences)
    text = reports.render(ledger.path)
    assert "where targets differ" in text
    assert re.search(r"wire/two-readings +HeartbeatRequest v\S.* PASS +PASS +FAIL", text)
    _, alone = executed(replace(options, targets=("reference",)))
    assert not alone.differences


@pytest.mark.parametrize(
    ("held_codes", "wins"),
    [({1, 6}, 1), ({1, 3}, 3), ({4, 6}, 4), ({5, 4}, 5), ({2, 3}, 2), ({70, 2}, 70), (set(), 0)],
)
def test_where_several_exit_codes_hold_one_wins(held_codes: set[int], wins: int) -> None:
    assert exits.first(held_codes) == wins


@pytest.mark.integration
def test_a_dry_run_lists_what_a_run_would_hold(small: Options) -> None:
    outcome = run(replace(small, dry_run=True))
    assert (outcome.exit_code, outcome.ledger) == (0, None)
    assert not small.out.exists()
    _, ledger = executed(small)
    listed: dict[str, int] = {}
    for row in outcome.plan:
        assert set(row["requirements"]) <= requirements().keys()
        listed[row["check"]] = listed.get(row["check"], 0) + row["cases"]
    assert ledger.footer is not None
    assert listed == {
        check: sum(counts.values()) for check, counts in ledger.footer.counts["reference"].items() if counts
    }


def test_every_check_names_invariants_and_every_invariant_names_requirements() -> None:
    for check in CHECKS.values():
        by_id = {each.id: each for each in all_invariants(check.role)}
        for each in (by_id[id] for id in check.invariants):
            assert each.statement.endswith(".")
            named = {*each.requirements, *(id for ids in each.extra_requirements.values() for id in ids)}
            assert named <= requirements().keys()
            assert each.grade is not Grade.MUST or any(requirements()[id].grade is Grade.MUST for id in named)


def cases_of(damages_: Iterable[Any], subject: Subject) -> Iterable[tuple[Any, Case]]:
    for each in damages_:
        yield each, Case("test", "apache", CHECKS["wire/damage"].role, (subject.decode(each.data),))


@pytest.mark.parametrize(
    "message", ["JoinGroupRequest", "ApiVersionsResponse", "OffsetFetchResponse", "AssignmentInfo"]
)
def test_the_judge_agrees_with_the_damage_on_what_must_be_refused(message: str) -> None:
    """Neither looks at the other: one reads the bytes, the other knows what was done to them."""
    asked = refused = 0
    for number in (1, 3, 4):
        subject = Subject("apache", layout("apache", message, number))
        for sample in CHECKS["wire/damage"].samples(subject, 0, 6):
            for damage, case in cases_of(damages(subject.layout, sample.value, random.Random(1), USUAL), subject):
                judged = is_beyond_bounds(case, case.steps[0])
                known_tag = in_tagged(subject.layout, damage.path)  # the damage asks for less there
                assert not judged or damage.outcome is Bearing.REFUSE or known_tag, (damage.kind, damage.path)
                asked += damage.outcome is Bearing.REFUSE
                refused += judged
    # Where the damage lies in a known tag, or makes a null of a length, the judge asks for less.
    assert refused > asked * 0.8 > 40, (refused, asked)


@pytest.mark.integration
def test_the_gate_runs_from_a_script_without_a_guard_and_with_workers(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "from pathlib import Path\nfrom kipcheck.conformance.engine.execution.run import Options, run\n"
        "print(run(Options(('reference',), messages=('HeartbeatResponse',), cases=1, workers=2,"
        " out=Path('there'))).exit_code)\n"
    )
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("0\n", 0), done.stderr
