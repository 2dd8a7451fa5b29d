"""Fleets of Streams members for tests: played by our machines, and what was seen of them changed afterwards."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Result, Verdict
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.protocols.streams.blobs import (
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)
from kipcheck.conformance.protocols.streams.invariants.trace import ObservedAt, observations
from kipcheck.conformance.protocols.streams.ops import OBSERVED, OPERATIONS, Deploy, Formed, ObservedEvent, Rests, Sent
from kipcheck.conformance.protocols.streams.target import streams_group
from kipcheck.conformance.tests.support.sessions import history_of

OURS: Mapping[str, Invariant] = {
    each.id: each for each in all_invariants(Role.OPERATOR_TOOL) if each.id.startswith("streams/")
}
Change = Callable[[ObservedAt], "ObservedEvent | tuple[ObservedEvent, ...]"]
"""What is put in the place of a happening."""


def case_of(where: str, steps: tuple[Step, ...]) -> Case:
    return Case("streams/probing", where, Role.OPERATOR_TOOL, steps)


@cache
def played(where: str, text: str, deployed: Deploy | None = None) -> History:
    begun = () if deployed is None else (OPERATIONS.step_of(deployed),)
    return played_steps(where, (*begun, *OPERATIONS.parse_shorthand(text)))


def played_steps(where: str, steps: tuple[Step, ...]) -> History:
    return history_of(Reference(), case_of(where, steps))


def broken(history: History) -> dict[str, Verdict]:
    return {each.invariant: each for each in judge(history, OURS.values()) if each.result is Result.FAIL}


def changed(history: History, change: Change) -> History:
    """Each happening in its place, or what ``change`` puts there."""
    seen: dict[int, list[ObservedEvent]] = {}
    for each in observations(history):
        found = change(each)
        seen.setdefault(each.step, []).extend(found if isinstance(found, tuple) else (found,))
    ops = tuple(_op(op, seen.get(op.index, [])) for op in history.ops)
    return replace(history, ops=ops)


def _op(op: Op, seen: list[ObservedEvent]) -> Op:
    payload: dict[str, Any] = {"actions": [OBSERVED.to_json(each) for each in seen]}
    return replace(op, observation=Replied(tuple(payload.items())))


class Counting:
    """Says yes to one of the happenings that are meant: the first, unless ``nth`` says otherwise."""

    def __init__(self, meant: Callable[[ObservedEvent], bool], nth: int = 0) -> None:
        self.meant = meant
        self.left = nth

    def __call__(self, seen: ObservedEvent) -> bool:
        if not self.meant(seen):
            return False
        self.left -= 1
        return self.left == -1


def of(kind: type[ObservedEvent], nth: int = 0, **fields: Any) -> Counting:
    """The first of its kind, or a later one, with these fields."""
    return Counting(
        lambda seen: isinstance(seen, kind) and all(getattr(seen, name) == value for name, value in fields.items()), nth
    )


def instead(which: Counting, *others: ObservedEvent, **fields: Any) -> Change:
    """With other fields, or others in its place."""

    def change(moment: ObservedAt) -> ObservedEvent | tuple[ObservedEvent, ...]:
        if not which(moment.seen):
            return moment.seen
        return replace(moment.seen, **fields) if fields else others

    return change


def after(which: Counting, *more: ObservedEvent) -> Change:
    return lambda moment: (moment.seen, *more) if which(moment.seen) else moment.seen


def resent(generation: int, member: str, partitions: Any = None, **fields: Any) -> Change:
    """An assignment with other user data."""
    which = of(Sent, generation=generation, member=member)

    def change(moment: ObservedAt) -> ObservedEvent:
        seen = moment.seen
        if not which(seen):
            return seen
        assert isinstance(seen, Sent) and isinstance(seen.data, bytes)
        data = write_assignment(replace(read_assignment(seen.data), **fields))
        return replace(seen, data=data, partitions=seen.partitions if partitions is None else partitions)

    return change


def resaid(generation: int, member: str, cooperative: bool | None = None, **fields: Any) -> Change:
    """A subscription with other user data."""
    which = of(Formed, generation=generation)

    def change(moment: ObservedAt) -> ObservedEvent:
        seen = moment.seen
        if not which(seen):
            return seen
        assert isinstance(seen, Formed)
        return replace(seen, members=tuple(map(other, seen.members)))

    def other(each: Any) -> Any:
        if each.member != member:
            return each
        data = write_subscription(replace(read_subscription(each.data), **fields))
        return each._replace(data=data, cooperative=each.cooperative if cooperative is None else cooperative)

    return change


def at_rest(nth: int, member: str, **fields: Any) -> Change:
    """Another state in the end; without fields, no such member."""
    which = of(Rests, nth)

    def others(members: Any) -> Iterator[Any]:
        for each in members:
            if each.member != member:
                yield each
            elif fields:
                yield each._replace(**fields)

    def change(moment: ObservedAt) -> ObservedEvent:
        seen = moment.seen
        if not which(seen):
            return seen
        assert isinstance(seen, Rests)
        return replace(seen, members=tuple(others(seen.members)))

    return change


def subject(where: str) -> Subject:
    return Subject(where, "streams")


def machine_of(where: str) -> Any:
    """Of an edition that has one."""
    player = streams_group(edition(where))
    assert player is not None
    return player
