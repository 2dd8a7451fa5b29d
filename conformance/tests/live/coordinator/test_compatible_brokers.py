"""Brokers of libraries as coordinators: they start, are judged, end with kipcheck, and are started again."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Replied
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator import compatible_brokers
from kipcheck.conformance.live.coordinator.address import Address
from kipcheck.conformance.live.coordinator.compatible_brokers import CLAIMS, LIBRARIES, Process
from kipcheck.conformance.live.coordinator.concurrency import Stage
from kipcheck.conformance.live.coordinator.session import BrokerSession
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Broken, Plan, TargetInfo, Unavailable
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import build, environments


def program(code: str) -> Process:
    return Process("mine", [sys.executable, "-I", "-S", "-c", code])


def test_a_program_serves_until_it_is_stopped() -> None:
    process = program("import sys; print('listening 127.0.0.1:7', flush=True); sys.stdin.read()")
    assert process.start() == ("127.0.0.1", 7)
    assert process.why_ended == ""
    assert process.start() == ("127.0.0.1", 7)
    process.stop()
    process.stop()


def test_a_program_that_does_not_start_is_unavailable_with_its_stderr() -> None:
    with pytest.raises(Unavailable, match="mine did not start: no port is free"):
        program("import sys; print('no port is free', file=sys.stderr)").start()


def test_the_end_of_a_program_is_reported_with_its_stderr() -> None:
    process = program("import sys; print('listening h:1', flush=True); print('panic: x', file=sys.stderr); sys.exit(2)")
    process.start()
    assert process._running is not None
    process._running.wait(10)
    assert process.why_ended == "its process ended with 2: panic: x"
    process.stop()


class Mortal:
    """A process that has ended until it is started again."""

    ended = False
    pids = ()

    def __init__(self, made: list["Mortal"]) -> None:
        self.starts, self.stops, self.made = 0, 0, made
        made.append(self)

    def another(self) -> "Mortal":
        return Mortal(self.made)

    def stop(self) -> None:
        self.stops += 1

    @property
    def why_ended(self) -> str:
        return "panic" if self.ended else ""

    def start(self) -> tuple[str, int]:
        self.ended, self.starts = False, self.starts + 1
        return ("127.0.0.1", self.starts)


class Mourning(BrokerSession):
    """The broker ends in each conversation with a guilty step, and takes the others with it."""

    async def begin(self) -> None:
        pass

    async def _together(self, cases: Sequence[Case], stage: Stage) -> list[tuple[Observation, ...]]:
        assert isinstance(self.process, Mortal)
        self.process.ended = any(each.steps[0].verb == "leave" for each in cases)
        return [(Died("crashed", "closed") if self.process.ended else Replied(()),) for _ in cases]


def test_a_conversation_that_ends_the_broker_is_found_and_the_others_are_played() -> None:
    made: list[Mortal] = []
    process, info = Mortal(made), TargetInfo("mine", "1", "", "", CLAIMS.roles, CLAIMS)
    cases = [Case("c", "apache@3.9.2", Role.COORDINATOR, (step("a", verb),)) for verb in ("join", "leave", "sync")]
    with asyncio.Runner() as runner:
        address = Address("127.0.0.1", 9)
        session = Mourning(info, address, Rules.of("3.9.2"), 1, DEFAULT, runner, process)
        found = runner.run(session._survived(cases, Stage(8)))
        assert session.address == Address("127.0.0.1", process.starts)
    assert [type(each) for (each,) in found] == [Replied, Died, Replied]
    assert isinstance(found[1][0], Died) and found[1][0].evidence == "panic"
    assert [(each.starts, each.stops) for each in made] == [(1, 0), (1, 1), (1, 1), (1, 1)]


class Stillborn(Mourning):
    """After its first end the broker cannot be used when it starts, for so many times."""

    useless = 0

    async def begin(self) -> None:
        if Stillborn.useless:
            Stillborn.useless -= 1
            raise Closed("127.0.0.1:1 accepts no connection")


def test_a_broker_that_dies_at_its_start_is_started_again_and_at_last_given_up() -> None:
    cases = [Case("c", "apache@3.9.2", Role.COORDINATOR, (step("a", verb),)) for verb in ("join", "leave")]
    info = TargetInfo("mine", "1", "", "", CLAIMS.roles, CLAIMS)

    def played(useless: int, *cases: Case) -> list[tuple[Observation, ...]]:
        with asyncio.Runner() as runner:
            session = Stillborn(info, Address("127.0.0.1", 9), Rules.of("3.9.2"), 1, DEFAULT, runner, Mortal([]))
            Stillborn.useless = useless
            return runner.run(session._survived(cases, Stage(8)))

    assert [type(each) for (each,) in played(2, *cases)] == [Replied, Died]
    with pytest.raises(
        Broken, match=r"mine: panic; started again, it cannot be used: 127.0.0.1:1 accepts no connection"
    ):
        played(3, *cases)
    lost = [each for (each,) in played(1_000, cases[0])]
    assert [type(each) for each in lost] == [Replied], "nothing ended"


class Unreachable(BrokerSession):
    """Its broker is down."""

    async def _coordinator(self, group: str) -> Connections:
        raise Closed("the broker closed the connection instead of answering")


def test_a_case_for_which_there_is_no_broker_is_lost_whatever_it_sends() -> None:
    info = TargetInfo("mine", "1", "", "", CLAIMS.roles, CLAIMS)
    with asyncio.Runner() as runner:
        session = Unreachable(info, Address("127.0.0.1", 9), Rules.of("3.9.2"), 1, DEFAULT, runner, None)
        session._setting = cast(Any, object())
        for verb in ("join", "send"):
            case = Case("c", "apache@3.9.2", Role.COORDINATOR, (step("a", verb),))
            why = "no coordinator: the broker closed the connection instead of answering"
            assert runner.run(session._play(case)) == (Lost(why),)


class Slowly(Mourning):
    """Harmless rounds of several plans go on while one ends the broker."""

    async def _together(self, cases: Sequence[Case], stage: Stage) -> list[tuple[Observation, ...]]:
        assert isinstance(self.process, Mortal)
        guilty = any(each.steps[0].verb == "leave" for each in cases)
        self.process.ended = self.process.ended or guilty
        await asyncio.sleep(0 if guilty else 0.01)
        over = self.process.ended or self.process.starts != 1
        return [(Died("crashed", "closed") if over else Replied(()),) for _ in cases]


def test_a_plan_that_ends_the_broker_starts_it_once_and_harms_no_other() -> None:
    made: list[Mortal] = []
    process, info = Mortal(made), TargetInfo("mine", "1", "", "", CLAIMS.roles, CLAIMS)
    process.start()

    def plan(*verbs: str) -> Plan[list[type]]:
        found = yield [Case("c", "apache@3.9.2", Role.COORDINATOR, (step("a", verb),)) for verb in verbs]
        return [type(each) for (each,) in found]

    with asyncio.Runner() as runner:
        session = Slowly(info, Address("127.0.0.1", 1), Rules.of("3.9.2"), 1, DEFAULT, runner, process)
        found = session.run_plans([plan("join", "sync"), plan("leave"), plan("fetch")])
    assert found == [[Replied, Replied], [Died], [Replied]]
    assert process.starts == 2, "it was started at first, and once again"
    assert [each.starts for each in made[1:]] == [1, 1, 1], "a process for each harmless conversation"


def test_libraries_are_targets_that_exist_once_and_take_real_time() -> None:
    for name in LIBRARIES:
        assert not registry.is_shared(name) and registry.is_live(name) and not registry.is_steady(name)
    with pytest.raises(LookupError, match="invalid release"):
        registry.target("kfake@next")


def test_releases_that_are_installed_or_built_are_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path))

    def mocks() -> list[tuple[str, bool, str]]:
        rows = compatible_brokers.rows("librdkafka-mock", target_entries()["librdkafka-mock"])
        return [(row["name"], row["available"], row["why"]) for row in rows]

    default = target_entries()["librdkafka-mock"].default
    assert mocks() == [("librdkafka-mock", False, "not built yet, built when the target is used")]
    for version in (default, "2.3.0"):
        python = tmp_path / "environments" / f"confluent-kafka-{version}-{environments.TAG}" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
    assert mocks() == [("librdkafka-mock", True, ""), ("librdkafka-mock@2.3.0", True, "")]
    (place := tmp_path / "testees" / "live-kfake-0").mkdir(parents=True)
    (place / build.RELEASED).write_text("1.2.3", "utf-8")
    assert "kfake@1.2.3" in {row["name"] for row in compatible_brokers.rows("kfake", target_entries()["kfake"])}


@pytest.mark.go
@pytest.mark.timeout(300)
def test_kfake_is_judged(tmp_path: Path) -> None:
    options = Options(
        targets=("kfake",), edition="apache@4.0.0", checks=("group/records",), cases=6, workers=1, out=tmp_path
    )
    outcome = run(options)
    assert outcome.ledger is not None, outcome.why
    footer = read(outcome.ledger).footer
    assert footer is not None
    assert footer.counts["kfake"]["group/records"]["PASS"] > 0, outcome.text
