"""A running broker that ended: only conversations that end it again are to blame."""

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Replied
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.connections.secure_connection import NotOpened
from kipcheck.conformance.live.coordinator import ended_brokers
from kipcheck.conformance.live.coordinator.ended_brokers import play_one_by_one
from kipcheck.conformance.targets.toolchains.kafka_broker import reserved_ports

CLOSED = Died("crashed", "Join v5: the broker closed the connection instead of answering")
CASES = [Case("c", "apache@3.9.2", Role.COORDINATOR, (step("a", verb),)) for verb in ("join", "leave", "sync", "beat")]
TOGETHER: list[tuple[Observation, ...]] = [(CLOSED,), (CLOSED,), (Lost("no coordinator"),), (Replied(()),)]


def played(answers: Sequence[bool]) -> tuple[list[tuple[Observation, ...]], list[str]]:
    """What is found, and what was played. ``answers``: of the broker, the last one for good."""
    left, found, again = [*answers], [*TOGETHER], []

    async def is_there() -> bool:
        return left.pop(0) if len(left) > 1 else left[0]

    async def play(case: Case) -> tuple[Observation, ...]:
        again.append(case.steps[0].verb)
        return (CLOSED if case.steps[0].verb == "leave" else Replied(()),)

    asyncio.run(play_one_by_one(CASES, found, play, is_there))
    return found, again


def test_conversations_that_lost_an_answer_are_played_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_brokers, "ASKS_S", 0.0)
    assert played([False, True, False, True]) == (
        [(Replied(()),), (CLOSED,), (Lost("no coordinator"),), (Replied(()),)],
        ["join", "leave"],
    )


def test_without_a_supervisor_what_was_observed_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_brokers, "ASKS_S", 0.0)
    monkeypatch.setattr(ended_brokers, "RESTARTS_S", 0.01)
    assert played([False]) == (TOGETHER, [])


def test_what_there_is_no_time_for_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_brokers, "ONE_BY_ONE_S", -1.0)
    lost = (Lost(ended_brokers.OF_ANOTHER),)
    assert played([True]) == ([lost, lost, *TOGETHER[2:]], [])


def test_connections_count_what_a_broker_that_ended_refuses() -> None:
    async def refused() -> int:
        with reserved_ports(1) as (port,), contextlib.suppress(NotOpened):
            connections = Connections("127.0.0.1", port)
            await connections.reach()
        return connections.refused

    assert asyncio.run(refused()) == 1
