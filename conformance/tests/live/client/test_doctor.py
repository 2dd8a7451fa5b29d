"""The doctor of live clients: each probe fails for a program that is wrong in that way."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.live.client import play
from kipcheck.conformance.live.client.consumer import Consumer
from kipcheck.conformance.live.client.doctor import Line, examine
from kipcheck.conformance.live.client.in_process import Consumers
from kipcheck.conformance.live.client.program_settings import INSTANCE
from kipcheck.conformance.live.client.target import LiveClient
from kipcheck.conformance.protocols.client.invariants.fatal_errors import raises_fatal_errors
from kipcheck.conformance.protocols.client.invariants.identity import names_its_instance
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import observed

PLACES = "{bootstrap} {group} {topics}"
ODD = f"client:{sys.executable} -m kipcheck.conformance.live.client.defective_consumers"


def test_a_consumer_passes_all_probes(capsys: pytest.CaptureFixture[str]) -> None:
    target = f"client:{sys.executable} -m kipcheck.conformance.live.client.consumer {PLACES}"
    assert run(["doctor", "--target", target]) == 0
    shown = capsys.readouterr().out
    assert shown.count("ok ") == 5 and "it lacks {instance}" in shown and "healthy" in shown


@pytest.mark.integration
def test_a_program_that_does_not_leave_or_fetch_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--target", f"{ODD} Vanishes {PLACES}"]) == 3
    shown = capsys.readouterr().out
    assert "wrong   it leaves the group: no LeaveGroup; exit code 0, 0." in shown and "at SIGTERM" in shown
    assert run(["doctor", "--target", f"{ODD} Silent {PLACES}"]) == 3
    assert "poll in a loop" in capsys.readouterr().out


def test_a_program_that_does_not_connect_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(play, "CONNECT_S", 0.3)
    assert run(["doctor", "--target", f"client:sleep 60 {PLACES}"]) == 3
    assert "connect to {bootstrap}" in capsys.readouterr().out
    assert run(["doctor", "--target", f"client:./nothing {PLACES}"]) == 3
    assert "cannot be started" in capsys.readouterr().out
    assert run(["doctor", "--target", "client:nothing"]) == 2


class AlwaysStatic(Consumer):
    """It takes an empty argument for an instance id."""

    async def run(self) -> int:
        self.instance = self.instance or ""
        return await super().run()


class NeverStatic(Consumer):
    async def run(self) -> int:
        self.instance = None
        return await super().run()


class EndsIfStatic(Consumer):
    async def run(self) -> int:
        return 7 if self.instance else await super().run()


def about_instance(made: type[Consumer]) -> Line:
    target = LiveClient("client:it", Consumers(made), "0", frozenset({"instance"}))
    return next(each for each in examine(target, "apache") if each.id == "instance")


def test_a_program_is_started_with_and_without_an_instance_id() -> None:
    found = about_instance(Consumer)
    assert (found.state, found.fix) == ("ok", "") and repr(INSTANCE) in found.found
    found = about_instance(AlwaysStatic)
    assert (found.state, found.found) == ("wrong", "without an instance id it joins as static member ''")
    assert "--instance={instance?}" in found.fix
    found = about_instance(NeverStatic)
    assert (found.state, found.found) == ("wrong", f"given the instance id {INSTANCE!r} it joins as a dynamic member")
    found = about_instance(EndsIfStatic)
    assert found.state == "wrong" and "ended with code 7" in found.found and found.fix
    others = examine(LiveClient("client:it", Consumers(Consumer), "0", frozenset()), "apache")
    assert "instance" not in {each.id for each in others}


class HasNoHandler(Consumer):
    async def run(self) -> int:
        await super().run()
        return -signal.SIGTERM


def test_a_program_that_sigterm_ends_is_named_so() -> None:
    found = examine(LiveClient("client:it", Consumers(HasNoHandler), "0", frozenset()), "apache")
    assert next(each.found for each in found if each.id == "ends").endswith("SIGTERM, for which it has no handler")


class JoinsInVersionZero(Consumer):
    def version(self, api: str) -> int:
        return 0 if api == "JoinGroup" else super().version(api)


def test_a_program_whose_versions_are_not_served_is_advised_about_its_versions() -> None:
    target = LiveClient("client:it", Consumers(JoinsInVersionZero), "0", frozenset())
    *_, joins, _, _ = examine(target, "apache@4.0.0")
    assert (joins.id, joins.state) == ("joins", "wrong")
    assert "JoinGroup, key 11 version 0 is not served" in joins.fix and "subscribe" not in joins.fix


def judged(
    made: type[Consumer], steps: Sequence[Step], law: Callable[[History], Iterable[Violation]]
) -> set[tuple[str, ...]]:
    """The shapes in which it breaks the law in a script."""
    answers = asyncio.run(play.play(edition("apache@4.0.0"), Consumers(made), steps))
    case = Case("client/groups", "apache@4.0.0", Role.CLIENT, tuple(steps))
    return {each.shape for each in law(History.of(case, "client:it", tuple(map(observed, answers))))}


class JoinsWithoutItsInstance(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        wrong = {"groupInstanceId": None} if api == "JoinGroup" else {}
        return await super().ask(api, {**body, **wrong})


def test_a_static_member_that_the_group_takes_in_and_then_refuses_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not lack an instance id: a program that does is no static member, or never joins."""
    monkeypatch.setattr(play, "START_S", 0.5)
    monkeypatch.setattr(play, "CONNECT_S", 1.0)
    steps = OPERATIONS.parse_shorthand("static; pass 200; stop")
    assert judged(JoinsWithoutItsInstance, steps, names_its_instance) == {("SyncGroup", "an instance id")}


class RetriesSlowly(Consumer):
    async def ask(self, api: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer = await super().ask(api, body)
        if api == "JoinGroup" and answer["errorCode"] == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
            await asyncio.sleep(0.4)
            answer["errorCode"] = KafkaError.COORDINATOR_LOAD_IN_PROGRESS
        return answer


@pytest.mark.integration
def test_a_client_that_is_refused_is_watched_until_it_ends_or_shows_that_it_retries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """sarama with a JoinGroup that it retries: every 2 s, and the script ended after 1.5 s."""
    monkeypatch.setattr(play, "REFUSED_S", 0.1)
    steps = OPERATIONS.parse_shorthand("pass 200; refuse JoinGroup INCONSISTENT_GROUP_PROTOCOL; stop")
    found = {made.__name__: judged(made, steps, raises_fatal_errors) for made in (RetriesSlowly, Consumer)}
    assert found == {"RetriesSlowly": {("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL")}, "Consumer": set()}
