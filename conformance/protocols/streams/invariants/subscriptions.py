"""Invariants of what a member of a Streams group states about itself in its subscriptions."""

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.invariants import OWNING, VERSIONS
from kipcheck.conformance.protocols.streams.invariants.leaders import listed
from kipcheck.conformance.protocols.streams.invariants.trace import (
    FIRST_PROBED,
    Life,
    Round,
    StreamsTrace,
    Subscribed,
    streams_invariant,
    streams_trace,
)
from kipcheck.conformance.protocols.streams.model.members import TaskId
from kipcheck.conformance.protocols.streams.ops import Applied, Formed, Start
from kipcheck.conformance.protocols.upgrade.ops import Gave, PutOut

PLACE = 60

of_versions = partial(streams_invariant, checks=(VERSIONS,))
of_owning = partial(streams_invariant, checks=(OWNING,))

FIRST_WITH_END_POINT: Final = 2
"""The first metadata version with an end point."""


def subscribed(history: History) -> Iterator[tuple[Round, Subscribed, Life]]:
    """The subscriptions of running processes, each member once in its generation."""
    for round in streams_trace(history).rounds:
        names = [each.joining.member for each in round.members]
        for each in round.members:
            if each.life is not None and each.info.used > 0 and names.count(each.joining.member) == 1:
                yield round, each, each.life


@impact(
    "A member states another supported version than its own",
    "refused peer",
    "versions",
    "stuck-upgrade",
    links=("KIP-268",),
)
@of_versions("streams/states-its-latest", "268-62")
def states_its_latest(history: History) -> Iterator[Violation]:
    """From version 3 on, each subscription has the latest version of its sender, whatever version it uses."""
    for round, each, life in subscribed(history):
        if each.info.used >= FIRST_PROBED and life.bound("268-62") and each.info.latest != life.latest:
            why = f"{life} knows up to {life.latest}, and states {each.info.latest} as supported in {round.where}"
            how = "below" if each.info.latest < life.latest else "above"
            yield Violation(why, (life.began, round.at), str(life.latest), str(each.info.latest), shape=("states", how))


class Had(NamedTuple):
    """The tasks that a process has after an assignment, and the step of it."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    at: int | None = None


@impact(
    "A member conceals the tasks that it had, and they move",
    "trivia",
    "stickiness",
    "needless-move",
    "unfair-load",
    links=("KIP-268",),
)
@of_versions("streams/states-its-tasks", "268-61")
def states_its_tasks(history: History) -> Iterator[Violation]:
    """A subscription has the active tasks that its member had last, and its standby tasks.

    Not after a member lost its membership: its assignor may have forgotten them.
    """
    trace = streams_trace(history)
    had: dict[Life, Had | None] = {}
    for observed in trace.observed:
        match observed.observation.seen:
            case Applied(_, active=active, standby=standby) if observed.life is not None:
                had[observed.life] = Had(frozenset(active), frozenset(standby) - frozenset(active), observed.at)
            case PutOut() | Gave(lost=True) if observed.life is not None:
                had[observed.life] = None
            case Formed(generation) if (round := trace.round(generation)) is not None:
                yield from _misstated(round, had)


def _misstated(round: Round, had: dict[Life, Had | None]) -> Iterator[Violation]:
    names = [each.joining.member for each in round.members]
    for each in round.members:
        if each.life is None or each.info.used < 1 or names.count(each.joining.member) > 1:
            continue
        last = had.get(each.life, Had())
        if last is None or not each.life.bound("268-61"):
            continue
        states = {"active": frozenset(each.info.active), "standby": frozenset(each.info.standby)}
        for what, meant in (("active", last.active), ("standby", last.standby)):
            if states[what] != meant:
                why = f"{each.life} has {listed(meant)} as {what} tasks, and states {listed(states[what])}"
                at = (each.life.began if last.at is None else last.at, round.at)
                yield Violation(f"{why} in {round.where}", at, listed(meant), listed(states[what]),
                                shape=("tasks", what, "less" if meant - states[what] else "more"))  # fmt: skip


@impact(
    "A member cannot be found, or is taken for another instance",
    "wrong data",
    "layout",
    "stale-view",
    "double-processing",
    links=("KAFKA-3914",),
)
@of_owning("streams/states-its-instance", "268-63")
def states_its_instance(history: History) -> Iterator[Violation]:
    """A subscription has the id of its instance, the same for all its threads and no others, and its end point."""
    trace = streams_trace(history)
    ids: dict[str, str] = {}
    for round, each, life in subscribed(history):
        instance = instance_of(trace, life)
        other = next((name for name, id in ids.items() if id == each.info.process and name != instance), None)
        at = (life.began, round.at)
        if ids.setdefault(instance, each.info.process) != each.info.process:
            why = f"{life} states the id {each.info.process} in {round.where}; its instance stated {ids[instance]}"
            yield Violation(why, at, ids[instance], each.info.process, shape=("instance", "changes"))
        elif other is not None:
            why = f"{life} states the id of instance {other} in {round.where}; it belongs to instance {instance}"
            yield Violation(why, at, "an id of its own", each.info.process, shape=("instance", "shared"))
        has = trace.deployed.end_points and each.info.used >= FIRST_WITH_END_POINT
        wanted = f"{instance}:9092" if has else None
        if each.info.end_point != wanted:
            why = f"{life} states {each.info.end_point or 'no end point'} in {round.where}"
            yield Violation(why, at, wanted or "no end point", each.info.end_point or "no end point",
                            shape=("end point", "missing" if each.info.end_point is None else "other"))  # fmt: skip


def instance_of(trace: StreamsTrace, life: Life) -> str:
    """The instance that the last start of the member named, by default its own."""
    started = (each for each in reversed(trace.events[: life.began + 1]) if isinstance(each, Start))
    start = next((each for each in started if each.member == life.member), None)
    return (start and start.instance) or life.member
