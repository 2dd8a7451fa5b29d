"""Whatever a testee does wrong, the run says what it was, every planned case has its verdict, and none is wrong."""

import os
import random
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kipcheck.conformance.core.ledger import Ledger, read
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Replied
from kipcheck.conformance.engine.execution import run as engine_run
from kipcheck.conformance.engine.execution.run import Options, Outcome
from kipcheck.conformance.engine.search import shrink
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Broken, Unstable
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.transport import pipe
from kipcheck.conformance.targets.transport.pipe import Command
from kipcheck.conformance.tests.support import broken_testees
from kipcheck.conformance.tests.support.broken_testees import TESTEES, WellBred
from kipcheck.conformance.tests.support.loops import some_by_default

CHECK, MESSAGE, CASES = "wire/two-readings", "HeartbeatResponse", 8
LIMITS = Limits(start_s=20, batch_s=20, restarts=40, grace_s=0.2)
IMPATIENT = replace(LIMITS, batch_s=1.0)
"""For those that hang."""


class Row(NamedTuple):
    """What has to come of a testee."""

    exit: int
    says: str = ""
    """Somewhere in the troubles and failures of the ledger; a pattern."""
    guilty: str = "FAIL"
    """Results of the guilty case, which is held once."""
    others: str = "PASS"
    limits: Limits = LIMITS


def starts_not(says: str, limits: Limits = LIMITS) -> Row:
    return Row(3, says, "", "", limits)


def garbles(says: str) -> Row:
    return Row(3, says)


def is_well() -> Row:
    return Row(0, "", "PASS")


def breaks_all(says: str) -> Row:
    return Row(3, says, "UNKNOWN", "UNKNOWN")


ROWS = {
    "healthy": is_well(),
    "healthy-frames": is_well(),
    "answers-out-of-order": is_well(),
    "knows-more-keys": is_well(),
    "is-loud": is_well(),
    "has-many-vices": is_well(),
    "ignores-bye": is_well(),
    "ignores-the-end": is_well(),
    "told-of-its-limits": Row(7, "", "SKIP"),
    # at the start
    "crashes-at-once": starts_not("did not start: crashed: left with exit code 1\nno library"),
    "hangs-at-hello": starts_not("did not start: timeout: no answer within 0.5 s", replace(LIMITS, start_s=0.5)),
    "greets-people": starts_not("did not start: garbled: (not JSON|unsolicited bytes): b'Welcome!"),
    "runs-away": starts_not("did not start: crashed: left with exit code 0"),
    "speaks-before-it-is-asked": starts_not("type: 'hello', expected configure"),
    "says-hello-twice": starts_not("(unsolicited bytes|type): .*'?hello"),
    "speaks-another-version": starts_not("hello.protocol: 2, expected 1"),
    "leaves-out-its-version": starts_not("hello.version: is missing"),
    "plays-the-wizard": starts_not(r"hello.roles\[1\]: 'wizard' is not one of codec, "),
    "claims-upside-down": starts_not(
        r"hello.capabilities.HeartbeatResponse: \[4, 0\]: the lowest version is above the highest"
    ),
    "claims-in-words": starts_not("hello.capabilities.HeartbeatResponse: '0-4' must be a list"),
    "says-neither-yes-nor-no": starts_not("configure: must have ok: true, or unsupported"),
    # in one case
    "crashes": Row(1, "crashed: killed by SIGSEGV"),
    "leaves-in-the-middle": Row(1, "crashed: left with exit code 0; its stderr ends in: the last words"),
    "leaves-a-grandchild": Row(1, "crashed: killed by SIGABRT"),
    "closes-its-stdout": Row(1, "crashed: closed its stdout and lived on"),
    "says-half": Row(1, "crashed: left with exit code 0 in the middle of a message"),
    "frames-short": Row(1, "crashed: left with exit code 0 in the middle of a message"),
    "hangs": Row(1, "timeout: no answer within 1 s", limits=IMPATIENT),
    "hangs-and-tells": Row(1, "its stderr is in the failure's file", limits=IMPATIENT),
    "stops": Row(1, "timeout: no answer within 1 s", limits=IMPATIENT),
    "drips": Row(1, "timeout: no answer within 1 s", limits=IMPATIENT),
    "answers-with-half-a-character": Row(1, "a legal message was refused with \N{REPLACEMENT CHARACTER}"),
    "answers-with-a-huge-number": Row(1, "errorCode is read as 1000000"),
    "prints": garbles("not JSON: b'debug: 1'"),
    "floods": garbles("a line of more than 16 MiB"),
    "floods-with-lines": garbles("not JSON: b'warning'"),
    "answers-in-latin1": garbles("not UTF-8 at byte 12"),
    "answers-with-nan": garbles("NaN is not a JSON number"),
    "answers-past-all-numbers": garbles("1e999 is too large for a number"),
    "answers-deeply": garbles('not JSON: b\'{"a":'),
    "answers-with-a-list": garbles(r"not a JSON object: b'\[\]'"),
    "invents-a-status": garbles(r"results\[0\].status: 'splendid' is not one of accepted, "),
    "forgets-the-bytes": garbles(r"results\[0\].value: None must be an object"),
    "numbers-itself": garbles(r"results\[0\].n: 1099511627776 is not a case of this batch"),
    "numbers-with-truth": garbles(r"results\[0\].n: True is not a case of this batch"),
    "repeats": garbles(r"results\[1\].n: a second result of case"),
    "omits": garbles("results.results: 0 of 1 results; case \\d+ is missing"),
    "adds": garbles(r"results\[1\].n: \d+ is not a case of this batch"),
    "mistakes-the-batch": garbles(r"results.id: \d+, expected batch \d+"),
    "frames-too-little": garbles(r"not JSON: b'\{\"typ'"),
    "frames-too-much": garbles("a frame of 16777217 bytes: at most 16777216 are allowed"),
    "frames-below-zero": garbles("a frame of 4294967295 bytes: at most 16777216 are allowed"),
    "frames-nothing": garbles(r"not JSON: b'' \(empty\)"),
    # in company, and from batch to batch
    "crashes-in-company": Row(
        4, "8 cases together ended in crashed: .*; the shortest run of them that does has 3 cases", "PASS"
    ),
    "hangs-in-company": Row(4, "8 cases together ended in timeout: .*; one by one none", "PASS", limits=IMPATIENT),
    "crashes-once": Row(4, "one by one none of them did; together they did not do so again", "PASS"),
    "ends-after-each-batch": Row(0, "", "PASS"),
    "ends-a-little-later": Row(0, "", "PASS"),
    "speaks-a-little-later": Row(0, "", "PASS"),
    "answers-twice": Row(0, "", "PASS"),
    "answers-twice-once": Row(0, "", "PASS"),
    "answers-the-batch-before": Row(0, "", "PASS"),
    "mistakes-all-batches": breaks_all("also ended at a batch without cases: .*results.id: -1, expected"),
    "forgets-to-frame": breaks_all("also ended at a batch without cases: .*a frame of .*it may be a line"),
    "crashes-always": Row(1, "went down 3 times", "UNKNOWN", "FAIL UNKNOWN", replace(LIMITS, restarts=2)),
    "leaks": Row(4, "run alone the case does not fail", "PASS", "PASS FAIL"),
    "changes-with-each-life": Row(3, "after a restart: version was", "UNKNOWN", "UNKNOWN"),
    "answers-otherwise-in-each-life": Row(4, "run alone the case does not fail"),
    # lies
    "claims-what-it-does-not-do": Row(1, "v1 is claimed, and answered as unsupported: v1\\?", "PASS FAIL", "PASS FAIL"),
    "spares-itself": Row(1, "is claimed, and answered as unsupported: not today"),
}


def broken(name: str, where: Path, limits: Limits) -> Testee:
    env = {**os.environ, "BROKEN_TESTEE_FLAG": str(where / "flag")}
    return Testee(name, Command((sys.executable, "-I", "-S", broken_testees.__file__, name), env), limits)


def run(name: str, where: Path, limits: Limits, **change: object) -> tuple[Outcome, Ledger]:
    options = Options((name,), checks=(CHECK,), messages=(MESSAGE,), cases=CASES, workers=1, out=where / "out")
    outcome = engine_run.execute(replace(options, **change), lambda _: broken(name, where, limits))  # type: ignore[arg-type]
    assert outcome.ledger is not None
    return outcome, read(outcome.ledger)


@cache
def planned(version: int) -> tuple[Case, ...]:
    check = CHECKS[CHECK]
    return tuple(each.case for each in check.samples(check.family.subject("apache", MESSAGE, version), 0, CASES))


def is_guilty(case: Case) -> bool:
    return str(case.steps[0]["hex"]).endswith("0001")


def test_every_testee_has_its_row() -> None:
    assert {name for name, made in TESTEES.items() if not issubclass(made, WellBred)} == ROWS.keys()
    assert len([row for row in ROWS.values() if row.exit]) >= 50
    assert [is_guilty(case) for case in planned(0)].count(True) == 1


@pytest.mark.parametrize("name", some_by_default(ROWS, 10))
def test_what_is_wrong_is_told_and_every_verdict_is_there_and_right(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipe, "LINGER", 0.2)
    monkeypatch.setattr(shrink, "DEADLY_TRIES", 1)
    row = ROWS[name]
    outcome, ledger = run(name, tmp_path, row.limits)
    assert outcome.exit_code == row.exit, (outcome.why, ledger.troubles, ledger.failures)
    reported = [each.why for each in ledger.troubles]
    reported += [f"{each.why} / {each.observed}" for each in ledger.failures]
    assert bool(reported) == bool(row.says)
    assert re.search(row.says, "\n".join(reported)), reported
    if not row.guilty:
        assert not list(ledger.verdicts())
        return
    versions = range(TESTEES[name]().claims[1] + 1)
    counted: Counter[str] = Counter()
    found: dict[bool, set[str]] = {True: set(), False: set()}
    guilty = {case.id for version in versions for case in planned(version) if is_guilty(case)}
    for line in ledger.verdicts():
        ids = [line.case] if line.case else [case.id for case in planned(line.version)]
        counted.update(ids)
        for each in ids:
            found[each in guilty].add(line.result)
    assert counted == Counter(case.id for version in versions for case in planned(version))
    assert found == {True: set(row.guilty.split()), False: set(row.others.split())}
    files = [file.read_text() for file in (tmp_path / "out" / "failures").glob("*.json")]
    assert ["in guilty" in text for text in files] == [True] or name != "hangs-and-tells"


def test_a_testee_that_dies_of_every_case_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "DEADLY_TRIES", 1)
    outcome, ledger = run("crashes-always", tmp_path, LIMITS)
    assert (outcome.exit_code, ledger.troubles) == (1, ())
    versions = range(TESTEES["crashes-always"]().claims[1] + 1)
    failed = Counter(line.version for line in ledger.verdicts())
    assert failed == dict.fromkeys(versions, 3)
    assert {line.version: line.cases for line in ledger.held_back} == {
        version: len(planned(version)) - 3 for version in versions
    }


def decode(*codes: int) -> Case:
    hexes = (code.to_bytes(2, "big").hex() for code in codes)
    steps = (step("codec", "decode", message=MESSAGE, version=0, hex=each) for each in hexes)
    return Case("test", "apache", Role.CODEC, tuple(steps))


def executed(name: str, where: Path, batches: list[list[Case]]) -> tuple[list[Observation], list[str], list[str]]:
    """Observations of the first steps, troubles and breaches."""
    with broken(name, where, replace(LIMITS, restarts=200)).open("apache", Role.CODEC) as session:
        observations = [answers[0] for cases in batches for answers in session.run(cases)]
        return observations, list(session.troubles), list(session.breaches)


SEVERAL = [[decode(0), decode(2), decode(1), decode(3)], [decode(4), decode(5)], [decode(6)]]


@pytest.mark.parametrize(
    ("name", "trouble", "breach"),
    [
        # Whether its end is seen before the next batch is sent, or only after, is up to the machine.
        ("ends-after-each-batch", r"(while idle, after batch \d|one by one none of them did)", ""),
        ("ends-a-little-later", "(after other cases: crashed.*not after a restart|while idle)", ""),
        ("speaks-a-little-later", "", "(after other cases: garbled.*not after a restart|an unsolicited response)"),
        ("answers-twice", "", "sent an unsolicited response after batch 1: "),
        ("answers-twice-once", "", "sent an unsolicited response after batch 1: "),
        (
            "answers-the-batch-before",
            "",
            r"unsolicited response after batch \d: .*results\[0\].n: 0 is not a case of this batch",
        ),
    ],
)
def test_what_comes_late_is_laid_to_nobody_and_loses_nothing(
    name: str, trouble: str, breach: str, tmp_path: Path
) -> None:
    observations, troubles, breaches = executed(name, tmp_path, SEVERAL)
    asked = [each for cases in SEVERAL for each in cases]
    for observation, case in zip(observations, asked, strict=True):
        assert isinstance(observation, Replied)
        assert observation["value"]["errorCode"] == int(case.steps[0]["hex"], 16)
    assert bool(troubles) == bool(trouble)
    assert re.search(trouble, "\n".join(troubles))
    assert bool(breaches) == bool(breach)
    assert re.search(breach, "\n".join(breaches))


@pytest.mark.integration
@pytest.mark.parametrize("seed", range(3))
def test_many_vices_at_once_are_told_apart(seed: int, tmp_path: Path) -> None:
    choose = random.Random(seed)
    codes = [choose.choice((2, 3, 4, 5, 6, *range(10, 40))) for _ in range(60)]
    observations, _, breaches = executed("has-many-vices", tmp_path, [[decode(code) for code in codes]])
    for code, observation in zip(codes, observations, strict=True):
        if code in (2, 3, 5, 6):
            assert isinstance(observation, Died)
            assert (observation.cause == "garbled") == (code in (3, 5))
        else:
            assert isinstance(observation, Replied)
            assert observation["value"] == {"errorCode": code}
    assert len(breaches) == sum(code in (3, 5) for code in codes)


def test_who_never_stops_to_speak_unasked_is_given_up(tmp_path: Path) -> None:
    many = [[decode(code)] for code in range(2, 12)]
    observations, _, breaches = executed("answers-twice", tmp_path, many[:3])
    assert len(breaches) == 2
    assert all(isinstance(each, Replied) for each in observations)
    with pytest.raises(Broken, match="sent an unsolicited response"):
        executed("answers-twice", tmp_path, many)


def test_a_step_in_the_middle_of_a_case_is_found(tmp_path: Path) -> None:
    case = decode(2, 3, 1, 4)
    with broken("crashes", tmp_path, LIMITS).open("apache", Role.CODEC) as session:
        before, (answers, *_), after = (session.run([each]) for each in (decode(5), case, decode(6)))
    assert [type(each) for each in answers] == [Replied, Replied, Died, Lost]
    assert all(isinstance(each[0][0], Replied) for each in (before, after))


def test_a_budget_of_time_that_is_spent_in_waiting_ends_the_session(tmp_path: Path) -> None:
    impatient = replace(LIMITS, batch_s=0.3, hung_s=0.5)
    with broken("hangs", tmp_path, impatient).open("apache", Role.CODEC) as session:
        observations = [each for (each,) in session.run([decode(1), decode(2), decode(1), decode(2)])]
        assert [type(each) for each in observations][-1] is Lost
        with pytest.raises(Unstable, match=r"hung for \d s in total"):
            session.run([decode(2)])


@pytest.mark.integration
@pytest.mark.parametrize("name", ["prints", "crashes-in-company", "spares-itself"])
def test_the_number_of_workers_changes_no_verdict(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "DEADLY_TRIES", 1)
    command = f"cmd:{sys.executable} -I -S {broken_testees.__file__} {name}"
    found = []
    for workers in (1, 2):
        out = tmp_path / str(workers)
        checks = (CHECK, "wire/round-trip")
        outcome = engine_run.execute(
            Options((command,), checks=checks, cases=CASES, workers=workers, out=out), registry.target
        )
        assert outcome.ledger is not None
        ledger = read(outcome.ledger)
        verdicts = Counter((line.check, line.case, line.result) for line in ledger.verdicts())
        found.append((outcome.exit_code, verdicts, [line.shape for line in ledger.failures]))
    assert found[0] == found[1]
