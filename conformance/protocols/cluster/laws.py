"""Laws of a group of consumers, checked in every state of the product machine of ``cluster``.

They restate those invariants of ``invariants.ownership`` and ``invariants.bounces`` that concern single states.
"""

from collections import Counter
from typing import Any, TypeAlias

from kipcheck.conformance.machines.product import Law, StepLaw
from kipcheck.conformance.protocols.assignment.model.membership import V0, Partitions, Subscription
from kipcheck.conformance.protocols.cluster.components import ROUNDS, Centre, Message, Move, Part
from kipcheck.conformance.protocols.group.laws import parked
from kipcheck.conformance.protocols.group.model.coordinator_node import number
from kipcheck.conformance.protocols.group.model.messages import Phase as GroupPhase
from kipcheck.conformance.protocols.group.model.state import State
from kipcheck.conformance.protocols.member.model.state import Phase

Contradiction: TypeAlias = str | None


def _owned(index: int, part: Part) -> Any:
    """View: the group's members; a member's id and owned partitions."""
    if isinstance(part, Centre):
        return tuple(each.id for each in part.group.members)
    return (part.id, part.state.owned) if part.state is not None and part.state.owned else None


def _one_owner(views: tuple[Any, ...]) -> Contradiction:
    """Ignores members that the coordinator removed: they are fenced."""
    members, *nodes = views
    owned: list[tuple[str, Partitions]] = [each for each in nodes if each is not None and each[0] in members]
    counted = Counter(partition for _, partitions in owned for partition in partitions)
    for partition, count in counted.items():
        if count > 1:
            owners = " and ".join(id for id, partitions in owned if partition in partitions)
            return f"{partition[0]}-{partition[1]} belongs to {owners} at once"
    return None


ONE_OWNER: Law[Part] = Law("bounce/revoked-first", _owned, _one_owner)


def all_owned(partitions: Partitions) -> Law[Part]:
    """``partitions``: all subscribed partitions. In a mixed group of the draft some have no owner (429-02)."""

    def resting(index: int, part: Part) -> Any:
        if isinstance(part, Centre):
            group = part.group
            if group.phase is not GroupPhase.STABLE or group.writes or is_mixed(group):
                return None
            return group.generation, tuple(sorted(each.id for each in group.members))
        state = part.state
        if state is None or part.busy:
            return "" if state is None else None
        in_place = state.phase is Phase.STABLE and not state.rejoin
        return (part.id, state.identity.generation, state.owned) if in_place else None

    def breach(views: tuple[Any, ...]) -> Contradiction:
        if None in views:
            return None
        (generation, members), *nodes = views
        present = [each for each in nodes if each]
        if sorted(id for id, _, _ in present) != list(members) or any(each[1] != generation for each in present):
            return None
        left = sorted(set(partitions) - {each for _, _, owned in present for each in owned})
        return f"the group is at rest, and {left[0][0]}-{left[0][1]} has no owner" if left and present else None

    return Law("bounce/all-owned", resting, breach)


def is_mixed(group: State) -> bool:
    """Whether subscriptions of version 0, whose members revoke before joining, meet later versions."""
    metadata = [each.metadata(group.protocol) for each in group.members]
    return len({each.version == V0 for each in metadata if isinstance(each, Subscription)}) > 1


RESTS: Law[Part] = Law(
    "bounce/rests",
    lambda index, part: part.rounds if isinstance(part, Centre) else None,
    lambda views: f"{ROUNDS} generations formed without a disturbance" if views[0] >= ROUNDS else None,
)


def _waiting(index: int, part: Part) -> Any:
    if isinstance(part, Centre):
        return parked(part.group)
    return number(index, part.serial) if part.waits else None


def _not_forgotten(views: tuple[Any, ...]) -> Contradiction:
    hub, *nodes = views
    lost = [place for place, each in enumerate(nodes, 1) if each is not None and each not in hub]
    return f"member {lost[0]} waits for a response, but the coordinator has no such request" if lost else None


WAITING: Law[Part] = Law(
    "group/parked-answered",
    _waiting,
    _not_forgotten,
)


def laws(partitions: Partitions) -> tuple[Law[Part] | StepLaw[Part, Move, Message], ...]:
    return ONE_OWNER, all_owned(partitions), RESTS, WAITING
