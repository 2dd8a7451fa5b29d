"""Small consumers over sockets: each with a defect breaks its law, and the one without a defect keeps all laws."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import pytest

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History, Op
from kipcheck.conformance.engine.judge import judge
from kipcheck.conformance.live.client.in_process import SETTLE_S, Consumers, consumer
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.live.client.target import served
from kipcheck.conformance.protocols.client.checks import FIRST
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.trace import was_late
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.protocol import observed

CLIENTS: Final = {name: each for name, each in MUTANTS.items() if each.check == "client/groups"}
LAWS: Final = [each for each in all_invariants(Role.CLIENT) if each.role is Role.CLIENT]
UNREACHED: Final = {"client/names-its-protocol"}
"""The consumer writes SyncGroup in a version without the protocol."""
TRIES: Final = 5
"""A script is played again if this machine was too slow for its times."""


def broken(history: History) -> set[str]:
    """Each bound in time that is broken has a window, which ends with the breach; a law that is broken its premise."""
    windows = [found.window_ms for law in LAWS if law.proven is not None for found in law.search(history)]
    assert all(each is not None and each[0] <= each[1] for each in windows)
    found = {each.invariant for each in judge(history, LAWS) if each.violations}
    assert not {law.id for law in LAWS if law.id in found and not (law.premise is None or law.premise(history))}
    return found


async def played(name: str, text: str, law: str = "") -> History:
    """``law``: the one that it has to break."""
    steps = OPERATIONS.parse_shorthand(text)
    for _ in range(TRIES):
        answers = await play(served("apache"), Consumers(consumer(name)), steps, SETTLE_S)
        ops = zip(steps, map(observed, answers), strict=True)
        case = Case("client/groups", "apache", Role.CLIENT, steps)
        history = History(case, "it", tuple(Op(place, *each, place + 1) for place, each in enumerate(ops)))
        if not law or law in broken(history) or not was_late(history):
            break
    return history


def all_played(scripts: Iterable[tuple[str, ...]]) -> list[History]:
    async def run() -> list[History]:
        return await asyncio.gather(*(played(*each) for each in scripts))

    return asyncio.run(run())


@pytest.fixture(scope="module")
def found() -> dict[str, set[str]]:
    """The laws that each mutant breaks in its least case; those that spin come by themselves."""
    about: dict[str, Any] = {name: (each.made, each.least) for name, each in CLIENTS.items()}
    busy = {name for name in about if CLIENTS[name].invariant == "client/does-not-spin"}
    broke: dict[str, set[str]] = {}
    for names in ([*busy], [name for name in about if name not in busy]):
        histories = all_played((about[name][0].consumer, about[name][1], CLIENTS[name].invariant) for name in names)
        broke |= {name: broken(each) for name, each in zip(names, histories, strict=True)}
    # What so many consumers at once made late is played alone.
    for name in (each for each in about if CLIENTS[each].invariant not in broke[each]):
        ((made, least), law) = about[name], CLIENTS[name].invariant
        broke[name] = broken(*all_played([(made.consumer, least, law)]))
    return broke


@pytest.mark.parametrize("name", CLIENTS)
def test_a_consumer_with_a_defect_breaks_its_law(name: str, found: dict[str, set[str]]) -> None:
    assert CLIENTS[name].invariant in found[name]


@pytest.mark.integration
def test_no_step_of_a_least_case_can_be_left_out() -> None:
    fewer: list[tuple[str, str, str]] = []
    for each in CLIENTS.values():
        *steps, stop = str(each.least).split("; ")
        made: Any = each.made
        for left_out in range(len(steps)):
            text = "; ".join([*steps[:left_out], *steps[left_out + 1 :], stop])
            fewer.append((made.consumer, text, each.invariant))
    played_all = all_played((consumer, text, "") for consumer, text, _ in fewer)
    for (_, text, law), history in zip(fewer, played_all, strict=True):
        assert law not in broken(history), text


def test_a_consumer_without_a_defect_keeps_all_laws() -> None:
    scripts = [*(f"{each}; stop" for each in FIRST), *(str(each.least) for each in CLIENTS.values())]
    histories = all_played(("", each) for each in scripts)
    for text, history in zip(scripts, histories, strict=True):
        assert not broken(history), text
    # What no script of a run can show is no law: its premise occurs in the scripts that each run begins with.
    judged = {each.invariant for history in histories[: len(FIRST)] for each in judge(history, LAWS) if each.result}
    assert {each.id for each in LAWS} - judged == UNREACHED
