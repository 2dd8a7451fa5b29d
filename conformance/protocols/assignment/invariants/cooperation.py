"""Invariants of a cooperative assignor, whose members keep reading during a rebalance."""

from collections.abc import Iterator, Sequence

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.invariants import COOPERATING, leader_invariant
from kipcheck.conformance.protocols.assignment.invariants.rounds import Round, is_balanced, of_assignors, rounds
from kipcheck.conformance.protocols.assignment.model.assignment import (
    COOPERATIVE,
    Member,
    Partition,
    partition_name,
    partition_names,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 30

ROUNDS = 3
"""The number of further rounds in which an unchanged group has to converge (Kafka's assignor takes two)."""
is_cooperative = of_assignors(COOPERATIVE)


@impact(
    "A partition is assigned while another member still reads it",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429", "KAFKA-12984", "KAFKA-14639"),
)
@leader_invariant("assign/hand-over", "429-05", "429-16", checks=(COOPERATING,), applies_to=is_cooperative)
def hand_over(history: History) -> Iterator[Violation]:
    """A claimed partition is not assigned to a member that does not claim it."""
    for each, partition, owner, claiming in _new_owners(history):
        if claiming and all(one.id != owner for one in claiming):
            yield _handed_over_early(each, partition, owner, claiming, "does not claim it", "no claim")


@impact(
    "A partition is assigned to a member with an outdated claim while another one still reads it",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429", "KAFKA-14639"),
)
@leader_invariant(
    "assign/hand-over-older", "429-16", checks=(COOPERATING,), grade=Grade.SHOULD, applies_to=is_cooperative
)
def hand_over_older(history: History) -> Iterator[Violation]:
    """A partition is not assigned to a member whose claim is of an older generation than another one's."""
    for each, partition, owner, claiming in _new_owners(history):
        own = max((one.generation for one in claiming if one.id == owner), default=None)
        newer = [] if own is None else [one for one in claiming if one.id != owner and one.generation > own]
        if newer:
            yield _handed_over_early(
                each, partition, owner, newer, f"claims it only in generation {own}", "older claim"
            )


def _new_owners(history: History) -> Iterator[tuple[Round, Partition, str, Sequence[Member]]]:
    """Round, partition, new owner, and the members that claim the partition."""
    for each in rounds(history, COOPERATIVE):
        for partition, owners in sorted(each.owners.items()):
            for owner in sorted(set(owners) & each.members.keys()):
                yield each, partition, owner, each.group.claims.get(partition, ())


def _handed_over_early(
    each: Round, partition: Partition, owner: str, claiming: Sequence[Member], how: str, shape: str
) -> Violation:
    other = max(claiming, key=lambda one: one.generation)
    return Violation(
        f"{each.assignor}, {each.step}: {partition_name(partition)} is assigned to {owner}, which {how}, while "
        f"{other.id} "
        f"claims it in generation {other.generation} and reads it until it gets its new assignment",
        (each.index,), f"{partition_name(partition)} withheld for one round", f"{owner} has it", f"{other.id} {owner}",
        shape=("handed over at once", shape),
    )  # fmt: skip


@impact(
    "An unchanged group never comes to rest",
    "stuck group",
    "stickiness",
    "stuck-group",
    "needless-move",
    links=("KIP-429",),
)
@leader_invariant("assign/converges", "grp-19", checks=("assign/rounds",), applies_to=is_cooperative)
def converges(history: History) -> Iterator[Violation]:
    """An unchanged group converges: all partitions are assigned, in balance, and no more partition moves."""
    since = 0
    before: Round | None = None
    for each in rounds(history, COOPERATIVE):
        since = since + 1 if before is not None and _goes_on(before, each) else 0
        before = each
        if since < ROUNDS:
            continue
        missing = [partition for partition in each.group.wanted if partition not in each.owners]
        moved = [member for member in sorted(each.members) if set(each.members[member].owned) != each.got[member]]
        if missing:
            what, shape = f"{partition_names(missing)} is still withheld", "held back"
        elif moved:
            moving = each.got[moved[0]] ^ set(each.members[moved[0]].owned)
            what, shape = f"{partition_names(moving)} still moves", "moving"
        elif each.is_whole and not is_balanced(each, each.got):
            what, shape = "the shares are out of balance", "unbalanced"
        else:
            continue
        yield Violation(
            f"{each.assignor}, {each.step}: {since} rounds after the last change of the group {what}",
            (each.index,), "all assigned, and no move", what, " ".join(moved), shape=("no end", shape),
        )  # fmt: skip
        return


def _goes_on(before: Round, each: Round) -> bool:
    """Is it the same group, whose members own what they were just assigned?"""
    then, now = ({(one.id, frozenset(one.subscription)) for one in r.group.members} for r in (before, each))
    return (
        then == now and frozenset(before.group.topics) == frozenset(each.group.topics)
        and all(frozenset(one.owned) == before.got[one.id] for one in each.group.members)
    )  # fmt: skip
