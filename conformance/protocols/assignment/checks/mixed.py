"""Checks of leaders of KIP-429's draft: mixed groups, in which only some members revoke before they join."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.edition import KIP_429, edition
from kipcheck.conformance.protocols.assignment import invariants, strategies as groups
from kipcheck.conformance.protocols.assignment.checks import assignors
from kipcheck.conformance.protocols.assignment.model.assignment import Group
from kipcheck.conformance.protocols.assignment.model.membership import V0, V1, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT
from kipcheck.conformance.protocols.assignment.ops import completed, drafted
from kipcheck.conformance.protocols.assignment.strategies import Value
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.strategies.nodes import Node, OneOf, Pick, Record, record


def subjects(name: str) -> Iterator[assignors.Assignor]:
    """Not in a run of ``apache``: targets that are released leaders do not implement the draft."""
    if edition(name) == KIP_429:
        yield assignors.Assignor(name, DRAFT)


def subject(edition: str, name: str, version: int | None) -> assignors.Assignor:
    for each in subjects(edition):
        if each.name == name:
            return each
    raise LookupError(f"unknown leader {name!r} in edition {edition}: use {DRAFT} in {KIP_429.name}")


def conversations(subject: assignors.Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """A group; the same after a member left; and the same after all remaining members were upgraded."""
    before = groups.group_of(value["group"])
    versions = dict(zip(groups.MEMBERS, value["versions"], strict=True))
    names = dict(zip(sorted(each.id for each in before.members), groups.MEMBERS, strict=False))
    by_member = {names[each.id]: versions[each.id] for each in before.members}
    (group,) = groups.renamed([before])
    if not group.members:
        return
    steps = [_assign_step(group, by_member)]
    left = tuple(each for each in group.members if each.id != names.get(value["leaver"]))
    if left and len(left) < len(group.members):
        steps.append(_assign_step(replace(group, members=left), by_member, again=True))
    if left and V0 in {by_member[each.id] for each in left}:
        steps.append(_assign_step(replace(group, members=left), dict.fromkeys(by_member, V1), again=True))
    yield Conversation(tuple(steps))


def _assign_step(group: Group, versions: Value, again: bool = False) -> Step:
    members = {
        each.id: Subscription(each.subscription, versions[each.id], each.owned if versions[each.id] != V0 else ())
        for each in group.members
    }
    requested = drafted(group.topics, members)
    return Step(requested.actor, requested.verb, {**requested.body, **({"rejoin": True} if again else {})})


def values(group: Node) -> Record:
    return record(group=group, versions=groups.VERSIONS, leaver=Pick(("", *groups.MEMBERS)))


MIXED: Family[assignors.Assignor] = Family(
    Role.LEADER,
    subjects,
    subject,
    assignors.claimed,
    node=lambda subject: values(groups.GROUPS),
    draw=assignors.drawn(values(OneOf((groups.EQUAL, groups.MIXED)))),
    exhibits=assignors.shown,
    complete=completed,
    digest=assignors.digest,
    coverage=assignors.coverage,
    place=assignors.place,
)
MIXED_CHECKS: tuple[Check[assignors.Assignor], ...] = (
    Check(
        "assign/mixed",
        "in mixed groups no member gets a partition that another one reads",
        MIXED,
        conversations,
        values=150,
        invariants=invariants_of("assign/mixed", part=invariants),
    ),
)
"""In the order in which they run."""
