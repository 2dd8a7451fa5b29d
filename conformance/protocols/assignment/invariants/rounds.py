"""Assignments of a leader, by member and by partition."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, STICKY, Group, Member, Partition
from kipcheck.conformance.protocols.assignment.ops import Share, group_of, shares
from kipcheck.conformance.protocols.declare.invariant import AppliesTo

STICKIES = (STICKY, COOPERATIVE)


@dataclass(frozen=True)
class Round:
    """One assignment, and the group that it was made for."""

    op: Op
    assignor: str
    group: Group
    shares: tuple[Share, ...] | None
    """None: it was refused, or the answer is not an assignment."""

    @property
    def index(self) -> int:
        return self.op.index

    @property
    def step(self) -> str:
        """The step in messages: readers count from 1."""
        return f"step {self.index + 1}"

    @cached_property
    def members(self) -> Mapping[str, Member]:
        return {each.id: each for each in self.group.members}

    @cached_property
    def got(self) -> Mapping[str, frozenset[Partition]]:
        """The partitions of every member of the group; none for a member that the answer omits."""
        found: dict[str, frozenset[Partition]] = {each.id: frozenset() for each in self.group.members}
        for member, partitions in self.shares or ():
            if member in found:
                found[member] |= frozenset(partitions)
        return found

    @cached_property
    def owners(self) -> Mapping[Partition, tuple[str, ...]]:
        """The members that got a partition, each as often as the answer names it."""
        found: dict[Partition, list[str]] = {}
        for member, partitions in self.shares or ():
            for partition in partitions:
                found.setdefault(partition, []).append(member)
        return {partition: tuple(members) for partition, members in found.items()}

    @cached_property
    def is_whole(self) -> bool:
        """Does each subscribed partition have one owner, which may have it, and is no other partition assigned?"""
        wanted = set(self.group.wanted)
        return self.owners.keys() == wanted and all(
            len(set(members)) == 1 and members[0] in self.members and
            self.group.may_have(self.members[members[0]], partition)
            for partition, members in self.owners.items()
        )  # fmt: skip


def is_assign(case: Case, step: Step) -> bool:
    return step.verb == "assign"


def of_assignors(*names: str) -> AppliesTo:
    return lambda case, step: step.verb == "assign" and step["assignor"] in names


def rounds(history: History, *assignors: str) -> Iterator[Round]:
    """The rounds that were answered with an assignment, of the given assignors if any are given."""
    for each in every_round(history):
        if each.shares is not None and (not assignors or each.assignor in assignors):
            yield each


@cached_on_history
def every_round(history: History) -> tuple[Round, ...]:
    """All rounds, including those that were refused or have an invalid answer."""
    return tuple(
        Round(op, op.step["assignor"], group_of(op.step), _shares(op))
        for op in history.ops
        if op.step.verb == "assign" and isinstance(op.observation, Replied | Refused)
    )


def _shares(op: Op) -> tuple[Share, ...] | None:
    if isinstance(op.observation, Refused):
        return None
    try:
        return tuple(shares(op.observation))
    except ValueError:
        return None


def giveable(each: Round, sizes: Mapping[str, int], owned: Mapping[str, frozenset[Partition]]) -> Iterator[
    tuple[str, str, Partition]
]:  # fmt: skip
    """Moves (giver, receiver, partition) to a member that has at least two fewer partitions and subscribes to it."""
    by_size = sorted(owned, key=lambda member: (sizes[member], member))
    for receiver in by_size:
        for giver in reversed(by_size):
            if sizes[giver] < sizes[receiver] + 2:
                break
            subscription = each.members[receiver].subscription
            yield from ((giver, receiver, one) for one in sorted(owned[giver]) if one[0] in subscription)


def is_balanced(each: Round, owned: Mapping[str, frozenset[Partition]]) -> bool:
    sizes = {member: len(partitions) for member, partitions in owned.items()}
    return next(giveable(each, sizes, owned), None) is None
