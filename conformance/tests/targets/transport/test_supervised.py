"""Adapters that abort, spin and grab memory: each death is a result of its own, and no other result is lost."""

import faulthandler
import os
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused, Replied
from kipcheck.conformance.targets import session as session_of
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.targets.session import renewed
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.transport.child import in_proportion
from kipcheck.conformance.targets.transport.pipe import Command, own_python
from kipcheck.conformance.targets.transport.supervised import Supervised
from kipcheck.conformance.wire import layout


class Panic(BaseException):
    """As native code raises it."""


def answer(op: Mapping[str, Any], budget: float) -> dict[str, Any]:
    """What ``do`` says."""
    signal.setitimer(signal.ITIMER_PROF, budget)
    match op["do"]:
        case "abort":
            sys.stderr.write("the last words")
            sys.stderr.flush()
            faulthandler.disable()  # pytest's, in this child: it would tell of the abort as if it were an accident
            os.abort()
        case "spin":
            while True:
                pass
        case "sleep":
            time.sleep(60)
        case "leave":
            sys.exit(3)
        case "panic":
            raise Panic("no Exception")
    signal.setitimer(signal.ITIMER_PROF, 0)
    return {"status": "accepted", "process": os.getpid()}


def executed(*things: str) -> list[dict[str, Any]]:
    return Supervised(answer).results([{"do": each} for each in things], 0.2)


def test_deaths_stand_where_they_happened_and_all_else_is_answered() -> None:
    results = executed("live", "abort", "live", "spin", "leave", "panic", "live")
    assert [each.get("message", each["status"]) for each in results] == [
        "accepted",
        "killed by SIGABRT",
        "accepted",
        "more processor time than a case may take",
        "left with exit code 3",
        "left with exit code 1",
        "accepted",
    ]
    assert [each.get("cause") for each in results] == [
        None, "crashed", None, "timeout", "crashed", "crashed", None,
    ]  # fmt: skip


def test_what_is_answered_is_answered_elsewhere_and_by_as_few_processes_as_can_be() -> None:
    first, second, _, third = executed("live", "live", "abort", "live")
    assert os.getpid() != first["process"] == second["process"] != third["process"]


def test_renewed_it_runs_the_next_operation_in_a_process_that_has_run_none() -> None:
    supervised = Supervised(answer)
    supervised.renew()  # nothing to end yet
    first, second, third = (supervised.results([{"do": "live"}], 0.2)[0]["process"] for _ in range(3))
    supervised.renew()
    (after,) = supervised.results([{"do": "live"}], 0.2)
    assert first == second == third != after["process"]
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_session_of_our_own_child_is_renewed_and_keeps_its_child() -> None:
    heartbeat = layout("apache", "HeartbeatRequest", 4)
    body = {"message": heartbeat.message, "version": heartbeat.version, "hex": heartbeat.encode({}).hex()}
    case = Case("test", "apache", Role.CODEC, (step("codec", "decode", **body),))
    made = target("reference")
    assert isinstance(made, Testee)
    with made.open("apache", Role.CODEC) as session:
        assert isinstance(session, session_of.TesteeSession)
        (before,) = session.run([case])
        pid, session.troubles = session._link.pid, ["it went down"]  # type: ignore[attr-defined]
        assert session.renew()
        assert session.run([case]) == [before] and isinstance(before[0], Replied)
        assert session._link.pid == pid and not session.troubles  # type: ignore[attr-defined]


def test_a_command_is_not_renewed_but_started_again() -> None:
    argv = tuple(own_python("kipcheck.conformance.targets.transport.child", "reference"))
    with Testee("anybody", Command(argv)).open("apache", Role.CODEC) as session:
        assert not renewed(session)


def test_what_sleeps_is_stopped_too_and_told_apart_from_what_spins() -> None:
    results = Supervised(answer).results([{"do": each} for each in ("live", "sleep", "live")], 5, 0.3)
    assert [each.get("cause", each["status"]) for each in results] == ["accepted", "timeout", "accepted"]
    assert results[1]["message"] == "no answer within 0.3 s"


SLEEPER = """
import sys, time
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.transport import child

class Sleeper(Reference):
    def read(self, layout, data):
        if data == b"":
            while True:
                {hang}
        return super().read(layout, data)

child.adapter = lambda name: Sleeper()
sys.exit(child.run("sleeper"))
"""


@pytest.mark.parametrize(("hang", "limits"), [("time.sleep(1)", Limits(batch_s=1.5)), ("pass", Limits(cpu_s=0.2))])
@pytest.mark.integration
def test_a_python_client_tells_where_it_hangs(hang: str, limits: Limits) -> None:
    command = Command((sys.executable, "-P", "-c", SLEEPER.format(hang=hang)))
    with Testee("sleeper", command, limits).open("apache", Role.CODEC) as session:
        before, (died,), after = session.run([GOOD, decode("HeartbeatResponse", 0, ""), GOOD])
    assert isinstance(died, Died)
    assert died.cause == "timeout"
    assert " in read\n" in died.evidence
    assert isinstance(before[0], Replied)
    assert isinstance(after[0], Replied)


def test_the_evidence_is_that_of_the_death_and_no_other() -> None:
    _, second, third = executed("abort", "panic", "leave")
    assert "no Exception" in second["evidence"]
    assert second["evidence"].startswith("Traceback")
    assert third["evidence"] == ""


def test_a_process_that_died_between_two_batches_is_replaced() -> None:
    at_work = Supervised(answer)
    (before,) = at_work.results([{"do": "live"}], 1)
    os.kill(before["process"], signal.SIGKILL)
    time.sleep(0.1)
    results = at_work.results([{"do": "live"}] * 2, 1)
    assert results[0]["message"] == "killed by SIGKILL"
    assert results[1]["status"] == "accepted"


def decode(message: str, version: int, *hexes: str) -> Case:
    steps = tuple(step("codec", "decode", message=message, version=version, hex=each) for each in hexes)
    return Case("test", "apache", Role.CODEC, steps)


GOOD = decode("HeartbeatResponse", 0, "0000")


@pytest.mark.parametrize(
    ("mutant", "deadly", "cause"),
    [
        ("crashes-on-tags", decode("HeartbeatResponse", 4, "000000000000010700"), "crashed"),
        pytest.param(
            "hangs-on-truncation", decode("HeartbeatResponse", 0, ""), "timeout", marks=pytest.mark.integration
        ),
        ("allocates-by-length", decode("DescribeGroupsRequest", 0, "7fffffff"), "memory"),
    ],
)
def test_a_planted_death_loses_no_other_verdict(mutant: str, deadly: Case, cause: str) -> None:
    cases = [GOOD, deadly, GOOD, GOOD, deadly, *[GOOD] * 70, deadly]
    with target(f"miniature/{mutant}", Limits(cpu_s=0.3, restarts=0)).open("apache", Role.CODEC) as session:
        answers = [observation for (observation,) in session.run(cases)]
    for case, observation in zip(cases, answers, strict=True):
        if case is deadly:
            assert isinstance(observation, Died)
            assert observation.cause == cause
        else:
            assert isinstance(observation, Replied)


def test_what_comes_after_a_death_in_the_same_case_is_lost() -> None:
    deadly = decode("HeartbeatResponse", 0, "0000", "", "0000")
    with target("miniature/hangs-on-truncation", Limits(cpu_s=0.2, restarts=0)).open("apache", Role.CODEC) as session:
        (answers,) = session.run([deadly])
    assert [type(each) for each in answers] == [Replied, Died, Lost]


def one(name: str, *steps: Step) -> list[Observation]:
    with target(name, Limits(restarts=0)).open("apache", Role.CODEC) as session:
        cases = [Case("test", "apache", Role.CODEC, (each,)) for each in steps]
        return [observation for (observation,) in session.run(cases)]


def test_a_length_of_256_gib_is_answered_or_seen_as_a_death_and_costs_its_neighbours_nothing() -> None:
    pytest.importorskip("kio", reason="kio is not installed (pip install '.[targets]')")
    whole = layout("apache", "ApiVersionsResponse", 3)
    good = step("codec", "decode", message="ApiVersionsResponse", version=3, hex=whole.encode(whole.defaults()).hex())
    huge = step("codec", "decode", message="ApiVersionsResponse", version=3, hex="0000ffffffff7f")
    before, between, after = one("kio", good, huge, good)
    assert isinstance(before, Replied)
    assert isinstance(between, Died | Refused)
    assert isinstance(after, Replied)


def test_what_all_processes_need_is_made_once_and_is_part_of_no_time() -> None:
    """A mutant that learned its answers in each process died of the time of one operation on a slow machine."""
    made: dict[str, int] = {}

    def prepare(op: Mapping[str, Any]) -> None:
        if not made:
            until = time.process_time() + 0.4
            while time.process_time() < until:
                pass
            made["by"] = os.getpid()

    def answer(op: Mapping[str, Any], budget: float) -> dict[str, Any]:
        signal.setitimer(signal.ITIMER_PROF, budget)
        return {"status": "ok", "by": made["by"]}

    executor = Supervised(answer, prepare)
    first = executor.results([{"do": "live"}], 0.2)
    executor.renew()
    assert first == executor.results([{"do": "live"}], 0.2) == [{"status": "ok", "by": os.getpid()}]


def test_a_third_process_finds_what_two_have_made() -> None:
    """A library that compiles a codec for each message and version did so again in each shard of a campaign."""
    prepared: list[Mapping[str, Any]] = []

    def answer(op: Mapping[str, Any], budget: float) -> dict[str, Any]:
        return {"prepared": len(prepared)}

    executor = Supervised(answer, prepared.append)
    sent = [{"op": "decode", "message": "A", "version": each, "hex": "00"} for each in (0, 1)]
    for number, operations in enumerate((sent, sent[:1], sent, sent)):
        before = len(prepared)
        (first, *_) = executor.results(operations, 0.2)
        added = [sent[0], {"op": "decode", "message": "A", "version": 0}] if number == 2 else [sent[0]]
        if number == 3:
            added = [sent[0], {"op": "decode", "message": "A", "version": 1}]
        assert prepared[before:] == added
        assert first == {"prepared": len(prepared)}
        executor.renew()


def test_what_kills_a_process_is_not_prepared_for_the_next() -> None:
    """It would kill the process from which all are forked."""
    prepared: list[Mapping[str, Any]] = []

    def answer(op: Mapping[str, Any], budget: float) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGKILL)
        return {}

    executor = Supervised(answer, prepared.append)
    sent = {"op": "decode", "message": "A", "version": 0, "hex": "00"}
    assert [each["status"] for each in executor.results([sent] * 4, 0.2)] == ["died"] * 4
    assert prepared == [sent] * 4, "what begins a process, and no kind"


@pytest.mark.parametrize(
    ("budget_s", "size", "seconds"),
    [(2.0, 0, 2.0), (2.0, 20, 0.5), (2.0, 384 << 10, 0.75), (2.0, 5 << 20, 2.0), (20.0, 20, 5.0), (0.3, 20, 0.3),
     (0.0, 5 << 20, 0.0)],
)  # fmt: skip
def test_an_input_may_take_time_in_proportion_to_its_size(budget_s: float, size: int, seconds: float) -> None:
    assert in_proportion(budget_s, size) == seconds
