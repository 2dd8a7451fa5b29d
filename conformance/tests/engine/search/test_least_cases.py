"""Least cases are searched for side by side, with the same results as one after the other."""

from collections.abc import Iterator

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.engine.execution.selection import Selection
from kipcheck.conformance.engine.execution.worker import Finding, Worker
from kipcheck.conformance.engine.execution.workers import workers_of
from kipcheck.conformance.engine.findings.early_causes import EarlyCauses
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.engine.search.unshrunk_groups import by_kind, selected
from kipcheck.conformance.targets.registry import target

TARGET = "kafka-python"
ASKED = Options((TARGET,), checks=("wire/damage", "assign/user-data"), messages=("Heartbeat*", "List*", "sticky"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(TARGET, target(TARGET)) as made:
        yield made


@pytest.fixture(scope="module")
def findings(worker: Worker) -> list[Finding]:
    selection = Selection.of(ASKED)
    info = worker.info("apache", selection.checks[0].role)
    units = [unit for check in selection.checks for unit in selection.units(TARGET, info, check)]
    return [each for unit in units for each in worker.run(unit).findings]


@pytest.mark.integration
def test_the_number_of_processes_changes_no_least_case(worker: Worker, findings: list[Finding]) -> None:
    chosen = [each for group in by_kind(findings) for each in selected(group)]
    with workers_of(worker, 1) as one:
        alone = list(one.least_cases(chosen))
    assert len(chosen) > 2
    for workers in (2, 3):
        with workers_of(worker, workers) as several:
            together = list(several.least_cases(chosen))
        assert [each and (each.case.id, each.shape) for each in together] == [
            each and (each.case.id, each.shape) for each in alone
        ]


@pytest.mark.integration
def test_the_number_of_processes_changes_no_line_of_a_ledger(tmp_path_factory: pytest.TempPathFactory) -> None:
    def found(workers: int) -> list[object]:
        out = tmp_path_factory.mktemp("out")
        options = Options(ASKED.targets, checks=ASKED.checks, messages=ASKED.messages, workers=workers, out=out)
        ledger = read(run(options).ledger or out)
        failures = [each.update(reproduce="") for each in ledger.failures]
        return [failures, ledger.causes, ledger.cases]

    assert found(1) == found(2)


@pytest.mark.integration
def test_each_cause_is_named_once_and_as_its_page_names_it(worker: Worker, findings: list[Finding]) -> None:
    info = worker.info("apache", findings[0].case.role)
    early = EarlyCauses(info, KnownDeviations())
    named = [cause for cause, _ in early.add(findings)]
    assert list(early.add(findings)) == []
    titles = [each.title for each in named]
    assert len({*titles}) == len(titles)
    assert "A truncated message is read as a complete one with shorter bytes" in titles
    assert "Stickiness is lost between kafka-python 3 and all other clients" in titles
    assert not any(each.known for each in named)
