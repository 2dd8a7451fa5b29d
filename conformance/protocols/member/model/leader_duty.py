"""Runs the leader's assignor on the subscriptions of its JoinGroup answer, for its SyncGroup."""

from collections.abc import Mapping
from typing import TypeAlias

from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, Assigned, Subscription
from kipcheck.conformance.protocols.group.model.messages import Blob, Joined
from kipcheck.conformance.protocols.member.model.messages import ILLEGAL_STATE
from kipcheck.conformance.protocols.member.model.rules import Config

Assignments: TypeAlias = tuple[tuple[str, Blob], ...]


class AssignmentFailed(Exception):
    """The leader cannot assign; the error is raised to the user."""


def led(
    config: Config, protocol: str, known: tuple[assignment.Topic, ...], answer: Joined
) -> tuple[frozenset[str], Assignments]:
    """The topics of the group, and the assignments; none if the answer skips the assignment. Errors: Trouble."""
    members = [(id, instance, blob) for id, instance, blob in answer.members if isinstance(blob, Subscription)]
    topics = frozenset(topic for _, _, each in members for topic in each.topics)
    if answer.skip_assignment:
        return topics, ()
    if config.rules.draft:
        assigned = config.lead(known, {id: each for id, _, each in members})
        return topics, tuple(sorted(assigned.items()))
    assignor = next((each for each in config.assignors if each.name == answer.protocol), None)
    if assignor is None:
        raise AssignmentFailed(ILLEGAL_STATE)
    group = assignment.Group(known, tuple(_member(config, assignor.name, *each) for each in members))
    given = assignor.assign(group)
    validates = config.rules.validates_own or assignor.name != assignment.COOPERATIVE
    if protocol == COOPERATIVE and validates and _moves_owned(group, given):
        raise AssignmentFailed(ILLEGAL_STATE)
    return topics, tuple((id, Assigned(tuple(sorted(partitions)))) for id, partitions in sorted(given.items()))


def _member(
    config: Config, assignor: str, id: str, instance: str | None, subscription: Subscription
) -> assignment.Member:
    """A member as the assignor reads its subscription: sticky takes owned partitions from its own user data."""
    if assignor == assignment.STICKY:
        return assignment.Member(
            id, subscription.topics, subscription.data, subscription.data_generation, instance, subscription.rack
        )
    generation = subscription.generation if subscription.version >= 2 else subscription.data_generation
    return assignment.Member(id, subscription.topics, subscription.owned, generation, instance, subscription.rack)


def _moves_owned(group: assignment.Group, given: assignment.Assignment) -> bool:
    """Whether a partition that one member has to revoke is assigned to another in the same rebalance."""
    claimed: Mapping[str, frozenset[object]] = {each.id: frozenset(each.owned) for each in group.members}
    revoked = {each for id, owned in claimed.items() for each in owned if each not in given[id]}
    return any(each in revoked and each not in claimed[id] for id, partitions in given.items() for each in partitions)
