"""What a cooperative assignor owes to members that read on while they rebalance."""

from collections.abc import Iterator

from conformance.core.case import Role
from conformance.core.history import History
from conformance.core.verdict import Violation
from conformance.invariants.registry import invariant
from conformance.invariants.rounds import Round, is_balanced, listed, named, of_assignors, rounds
from conformance.models.assignment import COOPERATIVE, Member

ROUNDS = 3
"""So many further rounds of an unchanged group are enough (Kafka's own takes two)."""
is_cooperative = of_assignors(COOPERATIVE)


@invariant("assign/hand-over", "429-05", "429-16", role=Role.LEADER, concerns=is_cooperative)
def hand_over(history: History) -> Iterator[Violation]:
    """Nothing goes to a new owner while another member claims it."""
    for each in rounds(history, COOPERATIVE):
        for partition, holders in sorted(each.holders.items()):
            claiming = each.group.claims.get(partition, ())
            for holder in sorted(set(holders) & each.members.keys()):
                found = _robbed(claiming, holder)
                if found is None:
                    continue
                other, own = found
                how = "does not claim it" if own is None else f"claims it only in generation {own}"
                yield Violation(
                    f"{each.assignor}, {each.step}: {named(partition)} is assigned to {holder}, which {how}, while "
                    f"{other.id} claims it in generation {other.generation} and reads it until it hears that it "
                    "lost it",
                    (each.index,), f"{named(partition)} held back for a round", f"{holder} has it",
                    f"{other.id} {holder}",
                    shape=("handed over at once", "no claim" if own is None else "older claim"),
                )  # fmt: skip


def _robbed(claiming: tuple[Member, ...], holder: str) -> tuple[Member, int | None] | None:
    """Who else claims it by a better right, and the generation in which the new owner claims it, if it does."""
    own = max((one.generation for one in claiming if one.id == holder), default=None)
    others = [one for one in claiming if one.id != holder and (own is None or one.generation > own)]
    return (max(others, key=lambda one: one.generation), own) if others else None


@invariant("assign/converges", "grp-19", role=Role.LEADER, concerns=is_cooperative)
def converges(history: History) -> Iterator[Violation]:
    """Rounds of an unchanged group come to an end: all is given out, in balance, and nothing moves any more."""
    since = 0
    before: Round | None = None
    for each in rounds(history, COOPERATIVE):
        since = since + 1 if before is not None and _goes_on(before, each) else 0
        before = each
        if since < ROUNDS:
            continue
        missing = [partition for partition in each.group.wanted if partition not in each.holders]
        moved = [member for member in sorted(each.members) if set(each.members[member].owned) != each.got[member]]
        if missing:
            what, shape = f"{listed(missing)} still held back", "held back"
        elif moved:
            lost = each.got[moved[0]] ^ set(each.members[moved[0]].owned)
            what, shape = f"{listed(lost)} still on the move", "moving"
        elif each.is_whole and not is_balanced(each, each.got):
            what, shape = "the shares out of balance", "unbalanced"
        else:
            continue
        yield Violation(
            f"{each.assignor}, {each.step}: {since} rounds after the last change of the group there is {what}",
            (each.index,), "all given out, and nothing moves", what, " ".join(moved), shape=("no end", shape),
        )  # fmt: skip
        return


def _goes_on(before: Round, each: Round) -> bool:
    """The same group, whose members own what they were just assigned?"""
    then, now = ({(one.id, frozenset(one.subscription)) for one in r.group.members} for r in (before, each))
    return (
        then == now and frozenset(before.group.topics) == frozenset(each.group.topics)
        and all(frozenset(one.owned) == before.got[one.id] for one in each.group.members)
    )  # fmt: skip
