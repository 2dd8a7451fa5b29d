"""Invariants of a Streams application's threads: assignments return, and threads end only where they have to."""

from collections.abc import Iterator
from functools import partial

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.invariants import LIVING, trace
from kipcheck.conformance.protocols.streams.invariants.leaders import deployed, is_whole
from kipcheck.conformance.protocols.streams.invariants.versions import is_to_be_refused
from kipcheck.conformance.protocols.streams.model.members import (
    ASSIGNMENT_ERROR,
    INCOMPLETE_SOURCE_TOPICS,
    SHUTDOWN_REQUESTED,
)
from kipcheck.conformance.protocols.streams.ops import ShutDown

PLACE = 50

of_living = partial(trace.streams_invariant, checks=(LIVING,))

FIRST_NAMED = 10
"""The first metadata version in which a task id can name a topology."""


@impact(
    "The assignor of Streams does not return",
    "crash or hang",
    "resources",
    "hang",
    "stuck-group",
    links=("KAFKA-5037",),
)
@of_living("streams/assigns", "268-26", "grp-09")
def assigns(history: History) -> Iterator[Violation]:
    """Every call of the assignor returns."""
    for round in trace.streams_trace(history).rounds:
        for each in round.failures:
            if each.is_endless:
                why = f"{each.life or each.event.member} never returns from {each.event.during} in {round.where}"
                yield Violation(
                    f"{why}: {each.event.why}", (round.at, each.at), "an answer", "none", shape=("endless",)
                )


@impact(
    "A thread of Streams ends unexpectedly", "crash or hang", "negotiation", "crash", "stuck-group", links=("KIP-268",)
)
@of_living("streams/lives", "268-26", "268-28")
def lives(history: History) -> Iterator[Violation]:
    """A thread ends with an exception only where it has to.

    It has to where its edition says so (268-14, 268-32, 268-35), where it cannot decode its assignment or encode its
    used version (other invariants report the cause), where a source topic is missing, and after a shutdown request.
    """
    found = trace.streams_trace(history)
    for number, round in enumerate(found.rounds):
        for each in round.failures:
            if each.life is None or each.is_endless:
                continue
            if not _has_to(history, found.rounds[: number + 1], each, each.life):
                what = f"{each.event.kind}: {each.event.why}"
                why = f"{each.life} ends in step {each.at + 1}, after {round.where}, with {what}"
                yield Violation(why, (round.at, each.at), "no exception", each.event.kind,
                                shape=("ends", each.event.during, each.event.kind.rpartition(".")[2]))  # fmt: skip


def _has_to(history: History, rounds: list[trace.Round], failure: trace.ThreadFailure, life: trace.Life) -> bool:
    todo = deployed(history)
    named = any(task.topology for task in todo.tasks)
    last = rounds[-1]
    match failure.event.during:
        case "subscribe":
            # Only the process itself knows its used version; versions above its latest are another invariant's.
            processed = [one for one in reversed(last.processed) if one.life is life]
            used = processed[0].event.used if processed else life.latest
            return used > life.latest or (named and used < FIRST_NAMED)
        case "lead":
            unknown = bool(last.futures) and life.is_before_probing
            return unknown or last.is_hard_mix or not is_whole(todo) or (named and last.lowest < FIRST_NAMED)
        case "assigned":
            given = _last_given(rounds, life)
            return given is not None and _is_nothing(given, rounds, life)
    given = _last_given(rounds, life)
    code = given.info.error if given is not None and given.info is not None else 0
    if code == INCOMPLETE_SOURCE_TOPICS:
        return not is_whole(todo)
    if code == SHUTDOWN_REQUESTED:
        return any(isinstance(each, ShutDown) for each in trace.streams_trace(history).events[: failure.at + 1])
    unnamed = named and any(each.lowest < FIRST_NAMED for each in rounds)
    return code == ASSIGNMENT_ERROR and (unnamed or any(each.is_hard_mix for each in rounds))


def _last_given(rounds: list[trace.Round], life: trace.Life) -> trace.Given | None:
    return next((each for round in reversed(rounds) for each in reversed(round.given) if each.life is life), None)


def _is_nothing(given: trace.Given, rounds: list[trace.Round], life: trace.Life) -> bool:
    """Does the member have to refuse its assignment?"""
    info = given.info
    if info is None or info.used > life.latest:
        return True
    subscribed = next((found for round in reversed(rounds) if (found := round.subscribed(life)) is not None), None)
    if subscribed is None or life.is_before_probing:
        return False
    return (
        is_to_be_refused(life, subscribed.info.used, info) if life.bound("268-35") else info.used > subscribed.info.used
    )
