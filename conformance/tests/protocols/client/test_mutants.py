"""Small consumers over sockets: each with a defect breaks its law, and the one without a defect keeps all laws."""

import ast
import asyncio
import inspect
import sys
from collections.abc import Iterable
from typing import Any, Final

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.client.in_process import SETTLE_S, Consumers, consumer
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.live.client.target import served
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.client.events import AnswerSeen
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL, SURVIVES_GROUPS, breach
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.trace import trace, was_late
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.targets.protocol import observed

CLIENTS: Final = {name: each for name, each in MUTANTS.items() if each.check in OF_ALL}
LAWS: Final = [each for each in all_invariants(Role.CLIENT) if each.role is Role.CLIENT]
MODERN: Final = "protocol consumer; "
WAYS: Final = {
    "HasNoIdAnymore": (f"{MODERN}stop", "client/names-its-epoch"),
    "HasAnotherId": (f"{MODERN}stop", "client/names-its-epoch"),
    "KeepsPartitionsWhenFenced": (
        f"{MODERN}answer ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH; stop", "client/joins-anew-when-fenced",
    ),
    "JoinsWithPartitions": (f"{MODERN}stop", "client/joins-in-full"),
    "BeatsAfterItLeft": (f"{MODERN}pass 600; stop", "client/names-its-epoch"),
    "OwnsWhatItGaveUp": (f"{MODERN}pass 200; assign 1; rebalance; pass 1200; stop", "client/owns-what-it-is-assigned"),
    "AddsATopic": (f"{MODERN}stop", "client/names-its-topics"),
    "GoesOnWithALostSession": (
        "protocol share; pass 600; answer ShareFetch SHARE_SESSION_NOT_FOUND; pass 600; stop",
        "client/numbers-its-share-sessions",
    ),
    "RepeatsItsAssignor": ("stop", "client/keeps-its-settings"),
    "AssignsToAStranger": ("stop", "client/assigns-to-everybody"),
    "AssignsTwice": ("rebalance; stop", "client/assigns-to-everybody"),
    "AssignsAsAFollower": ("others 1 follow; rebalance; stop", "client/assigns-to-everybody"),
    "HadItInNoGeneration": ("assignors sticky; rebalance; stop", "client/claims-in-its-user-data"),
    "ClaimsAnOldGeneration": ("assignors cooperative-sticky; rebalance; stop", "client/claims-what-it-owns"),
}  # fmt: skip
"""Consumers without a mutant of their own: script, and the law that they break in another way than the mutants do."""
UNPLAYED: Final = {"'30 s after SIGTERM the program still runs'"}
"""Takes too long: ``test_a_program_that_ignores_sigterm_is_killed_and_a_finding``."""
ALL, TOGETHER, FEW = 1000, 50, 8
"""Consumers that are played at once."""
TRIES: Final = 5
"""A script is played again if this machine was too slow for its times."""


def broken(history: History) -> set[str]:
    """Each bound in time that is broken has a window, which ends with the breach; a law that is broken its premise."""
    windows = [found.window_ms for law in LAWS if law.proven is not None for found in law.search(history)]
    assert all(each is not None and each[0] <= each[1] for each in windows)
    found = {each.invariant for each in judge(history, LAWS) if each.violations}
    assert not {law.id for law in LAWS if law.id in found and not (law.premise is None or law.premise(history))}
    return found


async def played(name: str, text: str, law: str = "", *, judging: asyncio.Lock | None = None) -> History:
    """``law``: the one that it has to break. ``judging``: of scripts that are played at once."""
    steps = OPERATIONS.parse_shorthand(text)
    for _ in range(TRIES):
        answers = await play(served("apache"), Consumers(consumer(name)), steps, SETTLE_S)
        ops = zip(steps, map(observed, answers), strict=True)
        case = Case("client/groups", "apache", Role.CLIENT, steps)
        history = History(case, "it", tuple(Op(place, *each, place + 1) for place, each in enumerate(ops)))
        async with judging or asyncio.Lock():  # in a thread, so that other scripts are not late
            if not law or await asyncio.to_thread(lambda: law in broken(history) or not was_late(history)):  # noqa: B023
                break
    return history


def all_played(scripts: Iterable[tuple[str, ...]], at_once: int = ALL) -> list[History]:
    room, judging = asyncio.Semaphore(at_once), asyncio.Lock()

    async def one(script: tuple[str, ...]) -> History:
        async with room:
            return await played(*script, judging=judging)

    async def run() -> list[History]:
        return await asyncio.gather(*map(one, scripts))

    return asyncio.run(run())


def test_answers_of_requests_that_come_by_themselves_are_changed() -> None:
    """In the first join, in a rebalance and at the end, several at once."""
    lookup = "answer FindCoordinator COORDINATOR_NOT_AVAILABLE at next"
    first = f"{lookup}; answer JoinGroup COORDINATOR_LOAD_IN_PROGRESS at next; pass 1"
    again = "answer SyncGroup REBALANCE_IN_PROGRESS at next; late OffsetFetch 200 at next; rebalance"
    (history,) = all_played([("", f"{first}; {again}; reset LeaveGroup after at stop; stop", "")])
    assert not broken(history)
    errors: dict[int, set[tuple[str, int]]] = {}
    for traced in trace(history):
        if isinstance(traced.event, AnswerSeen) and traced.error:
            errors.setdefault(traced.step, set()).add((traced.event.api, traced.error))
    joins = {("FindCoordinator", 15), ("JoinGroup", 14)}
    assert joins <= errors[2] and ("SyncGroup", 27) in errors[5] and errors.keys() <= {2, 5}


ABOUT: Final = {
    **{name: (each.made().consumer, str(each.least), each.invariant) for name, each in CLIENTS.items()},  # type: ignore[attr-defined]
    **{name: (name, *each) for name, each in WAYS.items()},
}
"""The class, the script and the law that is broken."""


def of_mutants(names: Iterable[str]) -> dict[str, History]:
    """What mutants do in their least cases, and the consumers of ``WAYS``; those that spin come by themselves."""
    about = {name: ABOUT[name] for name in names}
    busy = {name for name, each in about.items() if each[2] == "client/does-not-spin"}
    found: dict[str, History] = {}
    others = [name for name in about if name not in busy]
    for several, at_once in (([*busy], 1 + len(busy)), (others, TOGETHER)):
        found |= zip(several, all_played((about[name] for name in several), at_once), strict=True)
    # What so many consumers at once made late is played beside few, and then alone.
    for at_once in (FEW, 1):
        late = [name for name in about if about[name][2] not in broken(found[name])]
        found |= zip(late, all_played((about[name] for name in late), at_once), strict=True)
    return found


def test_a_consumer_with_a_defect_breaks_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """All in one test, since the consumers are played side by side. A branch of a law that none of them reaches is no
    law.
    """
    histories = of_mutants(ABOUT)
    assert {name: ABOUT[name] for name, each in histories.items() if ABOUT[name][2] not in broken(each)} == {}
    lines: set[tuple[str, int]] = set()

    def noted(*args: Any, **more: Any) -> Violation:
        frame = sys._getframe(1)
        lines.add((frame.f_code.co_filename, frame.f_lineno))
        return breach(*args, **more)

    files = {law.search.__module__ for law in LAWS}
    for module in map(sys.modules.__getitem__, files):
        monkeypatch.setattr(module, "breach", noted)
    for history in histories.values():
        for law in LAWS:
            list(law.search(history))
    calls = [(sys.modules[each].__file__ or "", call) for each in files for call in calls_of_breach(each)]
    assert {
        ast.unparse(call.args[1])
        for file, call in calls
        if not any(name == file and call.lineno <= line <= (call.end_lineno or 0) for name, line in lines)
    } == UNPLAYED


def calls_of_breach(module: str) -> list[ast.Call]:
    nodes = ast.walk(ast.parse(inspect.getsource(sys.modules[module])))
    return [each for each in nodes if isinstance(each, ast.Call) and getattr(each.func, "id", "") == "breach"]


@pytest.mark.integration
def test_no_step_of_a_least_case_can_be_left_out() -> None:
    fewer: list[tuple[str, str, str]] = []
    for each in CLIENTS.values():
        *steps, stop = str(each.least).split("; ")
        made: Any = each.made
        for left_out, step in enumerate(steps):
            if step in ("protocol streams", "protocol share"):
                continue  # the kind of client that the script is for
            if step.startswith("pass "):
                continue  # many scripts at once wait in other places too: a wait that is left out may come by itself
            text = "; ".join([*steps[:left_out], *steps[left_out + 1 :], stop])
            fewer.append((made.consumer, text, each.invariant))
    for at_once in (ALL, FEW, 1):  # a rebalance of others comes by itself where many scripts wait for one another
        histories = all_played(((consumer, text, "") for consumer, text, _ in fewer), at_once)
        fewer = [each for each, history in zip(fewer, histories, strict=True) if each[2] in broken(history)]
    assert not fewer


def test_a_consumer_without_a_defect_keeps_all_laws() -> None:
    planned = CHECKS[SURVIVES_GROUPS].samples(Subject("apache", "client"), seed=0)
    scripts = [OPERATIONS.shorthand(each.case.steps) for each in planned]
    run = len(scripts)
    scripts += [str(each.least) for each in CLIENTS.values()]
    histories = all_played(("", each) for each in scripts)
    # As in a run, what is broken among many at once is played again beside few: two processes share this machine.
    again = [text for text, history in zip(scripts, histories, strict=True) if broken(history)]
    for text, history in zip(again, all_played((("", each) for each in again), FEW), strict=True):
        assert not broken(history), text
    # What no script of a run can show is no law: its premise occurs in the default scripts.
    judged = {each.invariant for history in histories[:run] for each in judge(history, LAWS) if each.result}
    assert {each.id for each in LAWS if SURVIVES_GROUPS in each.checks} - judged == set()
