"""Invariants of a leader of KIP-429's draft: a mixed group, in which some members revoke before they join.

The draft gives the error of an assignment neither a field nor a value: it is read as a number that is zero or not
(429-22), and is checked in values, not in bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.assignment.invariants import leader_invariant
from kipcheck.conformance.protocols.assignment.invariants.rounds import Round, of_assignors, rounds
from kipcheck.conformance.protocols.assignment.model.assignment import (
    Member,
    Partition,
    partition_name,
    partition_names,
)
from kipcheck.conformance.protocols.assignment.model.membership import V0
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT
from kipcheck.conformance.protocols.assignment.ops import errors
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 40

is_drafted = of_assignors(DRAFT)


@dataclass(frozen=True, slots=True)
class DraftRound:
    """One assignment of the draft."""

    round: Round
    old: Sequence[Member]
    """Members of version 0, which have revoked all partitions."""
    new: Sequence[Member]
    """Members of a later version, which keep reading what they own. The draft's V2 is one of these (429-23)."""
    errors: Mapping[str, int]

    @property
    def is_mixed(self) -> bool:
        return bool(self.old and self.new)

    def violation(self, member: str, why: str, expected: str, observed: str, *shape: str) -> Violation:
        kinds = f"{_ids(self.old)} of version 0, {_ids(self.new)} of version 1"
        return Violation(
            f"draft, {self.round.step} ({kinds}): {why}", (self.round.index,), expected, observed, member, shape=shape
        )


def _ids(members: Sequence[Member]) -> str:
    return " and ".join(each.id for each in members) or "no member"


def _drafts(history: History) -> Iterator[DraftRound]:
    for each in rounds(history, DRAFT):
        versions = {one["id"]: one["version"] for one in each.op.step["members"]}
        old = [one for one in each.group.members if versions[one.id] == V0]
        new = [one for one in each.group.members if versions[one.id] != V0]
        yield DraftRound(each, old, new, errors(each.op.observation))


def _owned(draft: DraftRound) -> Iterator[tuple[Partition, Member]]:
    """Partitions that exactly one new member claims, and may have."""
    group = draft.round.group
    for partition, claiming in sorted(group.claims.items()):
        new = [each for each in claiming if each in draft.new]
        if len(new) == 1 and group.may_have(new[0], partition):
            yield partition, new[0]


@impact(
    "In a mixed group partitions are read by two members",
    "double processing",
    "ownership",
    "double-processing",
    links=("KIP-429",),
)
@leader_invariant(
    "mixed/old-get-nothing", "429-02", "429-10", "429-25", checks=("assign/mixed",), applies_to=is_drafted
)
def old_get_nothing(history: History) -> Iterator[Violation]:
    """While versions are mixed, members of version 0 get no partition."""
    for draft in _drafts(history):
        for member in draft.old if draft.is_mixed else ():
            got = draft.round.got[member.id]
            if got:
                why = f"{member.id} is assigned {partition_names(got)}, while others keep reading what they own"
                yield draft.violation(member.id, why, "nothing", partition_names(got), "old member served")


@impact(
    "Members of a mixed group are not informed of the error", "trivia", "answers", "misled-operator", links=("KIP-429",)
)
@leader_invariant("mixed/error", "429-02", "429-22", "429-25", checks=("assign/mixed",), applies_to=is_drafted)
def error(history: History) -> Iterator[Violation]:
    """While versions are mixed, members of version 0 get an error; no other member gets one, at any time."""
    for draft in _drafts(history):
        for member in draft.old if draft.is_mixed else ():
            if not draft.errors.get(member.id):
                why = f"{member.id} gets no partition and no error, so that it does not count the rebalance"
                yield draft.violation(member.id, why, "an error", "no error", "error missing")
        for member in draft.new if draft.is_mixed else draft.round.group.members:
            code = draft.errors.get(member.id)
            if code:
                group = "a member of version 1 keeps what it owns" if draft.is_mixed else "versions are not mixed"
                yield draft.violation(
                    member.id, f"{member.id} gets error {code}, and {group}", "0", str(code), "blamed"
                )


@impact(
    "In a mixed group partitions are taken from members that read them",
    "double processing",
    "ownership",
    "double-processing",
    "unread-partition",
    links=("KIP-429",),
)
@leader_invariant("mixed/new-keep", "429-02", "429-10", "429-23", checks=("assign/mixed",), applies_to=is_drafted)
def new_keep(history: History) -> Iterator[Violation]:
    """While versions are mixed, members of version 1 keep what they own."""
    for draft in _drafts(history):
        for partition, owner in _owned(draft) if draft.is_mixed else ():
            if partition not in draft.round.got[owner.id]:
                to = " and ".join(draft.round.owners.get(partition, ("no member",)))
                why = f"{owner.id} owns {partition_name(partition)} and reads it; it is assigned to {to}"
                yield draft.violation(owner.id, why, f"{owner.id} keeps it", to, "owned and taken")
                break


@impact(
    "In a mixed group partitions are assigned that an old member may still read",
    "double processing",
    "ownership",
    "double-processing",
    links=("KIP-429",),
)
@leader_invariant("mixed/rest-idle", "429-02", "429-11", checks=("assign/mixed",), applies_to=is_drafted)
def rest_idle(history: History) -> Iterator[Violation]:
    """While versions are mixed, partitions that no member of version 1 owns stay unassigned, also if an owner left."""
    for draft in _drafts(history):
        for member in draft.new if draft.is_mixed else ():
            more = draft.round.got[member.id] - {*member.owned}
            if more:
                why = f"{member.id} is also assigned {partition_names(more)}, which it does not own"
                yield draft.violation(
                    member.id, why, f"only of {partition_names(member.owned)}", partition_names(more), "handed out"
                )


@impact(
    "A group of old members leaves partitions unassigned",
    "stuck group",
    "ownership",
    "unread-partition",
    links=("KIP-429",),
)
@leader_invariant("mixed/all-old", "429-25", checks=("assign/mixed",), applies_to=is_drafted)
def all_old(history: History) -> Iterator[Violation]:
    """If all members have revoked, every subscribed partition is assigned at once."""
    for draft in _drafts(history):
        idle = [each for each in draft.round.group.wanted if each not in draft.round.owners]
        if not draft.new and idle:
            why = f"{partition_names(idle)} is not assigned, although all members have revoked"
            yield draft.violation("", why, "every partition", f"{partition_names(idle)} idle", "idle", "all old")


@impact(
    "A group of new members hands over partitions that are read, or leaves some unassigned",
    "double processing",
    "ownership",
    "double-processing",
    "unread-partition",
    links=("KIP-429",),
)
@leader_invariant("mixed/all-new", "429-25", checks=("assign/mixed",), applies_to=is_drafted)
def all_new(history: History) -> Iterator[Violation]:
    """If no member revokes first, no owned partition goes to another member, and free partitions are assigned."""
    for draft in _drafts(history):
        group = draft.round.group
        for partition in group.wanted if not draft.old else ():
            claiming = group.claims.get(partition, ())
            owners = draft.round.owners.get(partition, ())
            taker = next((each for each in owners if claiming and all(one.id != each for one in claiming)), None)
            if taker is not None:
                why = f"{partition_name(partition)} is assigned to {taker}, while {claiming[0].id} owns and reads it"
                yield draft.violation(taker, why, "withheld for one round", f"{taker} has it", "handed over at once")
                break
            if not owners and not claiming:
                why = f"{partition_name(partition)} is not assigned, and no member has to give it up first"
                yield draft.violation("", why, "an owner", "no owner", "idle", "all new")
                break
