"""A target that only writes requests and only reads responses: what it does not claim is no case for it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.campaign.corpus.entries import Snapshot
from kipcheck.conformance.campaign.plan import Shard
from kipcheck.conformance.campaign.shard import run_shard
from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.engine.doctor.samples import asked_of
from kipcheck.conformance.engine.execution import replay as engine_replay, run as engine_run
from kipcheck.conformance.engine.execution.run import Options, Outcome, run
from kipcheck.conformance.engine.execution.worker import Unit, Worker, drawn
from kipcheck.conformance.engine.findings.failures import FOLDER
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import answers, registry
from kipcheck.conformance.targets.answers import ProtocolViolation
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Claims, Target

REQUEST, RESPONSE = "HeartbeatRequest", "HeartbeatResponse"
ONE_WAY = {REQUEST: ("encode",), RESPONSE: ("decode",)}


class OneWay(Reference):
    """Writes requests and reads responses; everything else is unsupported, by a limit."""

    name = "one-way"

    def __init__(self, operations: Mapping[str, tuple[str, ...]] = ONE_WAY, misreads: bool = False) -> None:
        super().__init__()
        self._operations, self._misreads = operations, misreads

    def claims(self) -> Claims:
        messages = {REQUEST: (0, 4), RESPONSE: (0, 4)}
        return Claims(messages, limits={"way": "it has one way"}, operations=self._operations)

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        if op["op"] not in ONE_WAY[op["message"]]:
            return {"status": "unsupported", "capability": "way"}
        if self._misreads and op["op"] == "decode" and op["version"] == 1:
            return {"status": "rejected", "class": "Misread"}
        return super().answer(op)


@pytest.fixture
def small(tmp_path: Path) -> Options:
    checks = ("wire/round-trip", "wire/two-readings", "wire/prefixes", "wire/unknown-*", "wire/repeat")
    return Options(
        targets=("one-way",), checks=checks, messages=("Heartbeat*",), cases=6, workers=1, out=tmp_path / "o"
    )


def executed(options: Options, monkeypatch: pytest.MonkeyPatch, target: OneWay) -> tuple[Outcome, Ledger]:
    known = registry.target

    def target_of(name: str) -> Target:
        return InProcess(target) if name == target.name else known(name)

    monkeypatch.setattr(engine_run, "target_of", target_of)
    monkeypatch.setattr(engine_replay, "target_of", target_of)
    outcome = run(options)
    assert outcome.ledger is not None
    return outcome, read(outcome.ledger)


def test_what_is_not_claimed_is_neither_run_nor_skipped(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, ledger = executed(small, monkeypatch, OneWay())
    assert (outcome.exit_code, ledger.inconclusive) == (0, ())
    assert {result for counts in ledger.cases.values() for result in counts} == {"PASS"}
    nothing = {each.check: each.why for each in ledger.skips}
    assert nothing == {"wire/unknown-tags": "there are no cases for the operations that the target claims"}
    without, ledger = executed(small, monkeypatch, OneWay({}))
    assert without.exit_code == 7
    assert "were skipped, more than a tenth" in ledger.inconclusive[0].why


def test_the_cases_are_those_of_every_target(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    ids: dict[str, list[str]] = {}
    for name, operations in (("some", ONE_WAY), ("all", {})):
        with Worker(name, InProcess(OneWay(operations))) as worker:
            unit = Unit(name, "apache", "wire/round-trip", REQUEST, 4, 0, 6)
            ids[name] = [case for case, *_ in worker.run(unit).cases]
    every = [each.case for each in drawn("wire/round-trip", "apache", REQUEST, 4, 0, 6)]
    assert ids["all"] == [case.id for case in every]
    assert ids["some"] == [case.id for case in every if {each.verb for each in case.steps} == {"encode"}] != []


def test_a_dry_run_plans_the_cases_that_are_run(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ledger = executed(small, monkeypatch, OneWay())
    planned = run(replace(small, dry_run=True)).plan
    assert sum(row["cases"] for row in planned) == sum(counts.total() for counts in ledger.cases.values())
    assert "wire/unknown-tags" not in {row["check"] for row in planned}


def test_a_check_named_in_full_without_a_case_is_wrong_usage(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    executed(small, monkeypatch, OneWay())
    outcome = run(replace(small, checks=("wire/unknown-tags",), out=small.out / "2"))
    assert (outcome.exit_code, outcome.ledger) == (2, None)
    assert outcome.why.startswith(
        "--check wire/unknown-tags: no target in the role codec claims a selected subject and its"
    )


@pytest.mark.integration
def test_targets_are_compared_by_case(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    both = replace(small, targets=("reference", "one-way"))
    outcome, ledger = executed(both, monkeypatch, OneWay())
    assert (outcome.exit_code, tuple(ledger.differences)) == (0, ())
    _, ledger = executed(both, monkeypatch, OneWay(misreads=True))
    assert {each.subject for each in ledger.differences} == {RESPONSE}
    assert {each.check for each in ledger.differences} >= {"wire/two-readings"}


def test_a_campaign_runs_claimed_operations_only() -> None:
    checks = ("wire/round-trip", "wire/unknown-tags", "wire/vectors")
    shard = Shard("c", 0, 0, "hold", "one-way", "1", "apache", checks, "mixed", 0, 40, "")
    rows = {True: run_shard(shard, Snapshot.empty(), find=lambda name, limits: InProcess(OneWay()))}
    rows[False] = run_shard(shard, Snapshot.empty(), find=lambda name, limits: InProcess(OneWay({})))
    results = {way: {each.result for each in row.counts if not each.invariant} for way, row in rows.items()}
    assert (rows[True].cases, results[True]) == (40, {"PASS"})
    assert "SKIP" in results[False]


def test_smaller_and_stored_cases_are_not_run_either(small: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case("wire/prefixes", "apache", Role.CODEC, (step("codec", "decode", message=REQUEST, version=0, hex=""),))
    (survives,) = [each for each in all_invariants(Role.CODEC) if each.id == "keeps-its-claims"]
    with Worker("one-way", InProcess(OneWay())) as worker:
        assert list(worker.every_violation([case], survives)) == []
    broken = OneWay(misreads=True)
    outcome, _ = executed(replace(small, checks=("wire/two-readings",)), monkeypatch, broken)
    assert outcome.exit_code == 1
    file = next((small.out / FOLDER).glob("*.json"))
    assert engine_replay.replay(file).exit_code == 1
    broken._operations = {REQUEST: ("encode",), RESPONSE: ("encode",)}
    found = engine_replay.replay(file)
    assert (found.exit_code, "does not claim an operation" in found.message) == (6, True)


def test_samples_are_of_claimed_operations() -> None:
    asked = {(each["op"], each["message"]) for each in asked_of(OneWay().claims(), Role.CODEC)}
    assert asked == {("encode", REQUEST), ("decode", RESPONSE)}
    assert len({each["op"] for each in asked_of(OneWay({}).claims(), Role.CODEC)}) == 3


HELLO = {
    "type": "hello", "protocol": 1, "name": "n", "version": "1", "language": "l", "roles": ["codec"],
    "capabilities": {REQUEST: [0, 4]},
}  # fmt: skip


def test_operations_of_hello_are_read() -> None:
    found = answers.hello({**HELLO, "operations": {REQUEST: ["decode", "encode"]}}).claims
    assert found.operations == {REQUEST: ("encode", "decode")}
    assert found.performs("encode", REQUEST) and not found.performs("recode", REQUEST)
    assert found.performs("recode", RESPONSE), "it is not named"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([], "hello.operations: [] must be an object"),
        ({"Nosuch": ["encode"]}, "hello.operations.Nosuch: the message is not in hello.capabilities"),
        ({REQUEST: "encode"}, f"hello.operations.{REQUEST}: 'encode' must be a list"),
        ({REQUEST: []}, f"hello.operations.{REQUEST}: must not be empty: leave the message out of hello.capabilities"),
        ({REQUEST: ["write"]}, f"hello.operations.{REQUEST}[0]: 'write' is not one of encode, decode, recode"),
        ({REQUEST: ["encode", 1]}, f"hello.operations.{REQUEST}[1]: 1 is not one of encode, decode, recode"),
    ],
)
def test_bad_operations_are_named_with_their_place(given: Any, why: str) -> None:
    with pytest.raises(ProtocolViolation) as wrong:
        answers.hello({**HELLO, "operations": given})
    assert str(wrong.value) == why
