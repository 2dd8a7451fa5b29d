"""What members of a group and their coordinator owe to each other, in every state of ``cluster``.

The rules of ``invariants.ownership`` and ``invariants.upgrades``, as far as they show in single states.
"""

from collections import Counter
from typing import Any, TypeAlias

from kipcheck.conformance.machines.product import Law, StepLaw
from kipcheck.conformance.models.client_laws import parked
from kipcheck.conformance.models.cluster_components import ROUNDS, Centre, Message, Move, Part
from kipcheck.conformance.models.coordinator_node import number
from kipcheck.conformance.models.group.messages import Phase as GroupPhase
from kipcheck.conformance.models.group.state import State
from kipcheck.conformance.models.member.state import Phase
from kipcheck.conformance.models.membership import V0, Partitions, Subscription

Found: TypeAlias = str | None


def _owned(index: int, part: Part) -> Any:
    """Of the group who is in it; of a member its id and what it has taken up and not given up."""
    if isinstance(part, Centre):
        return tuple(each.id for each in part.group.members)
    return (part.id, part.state.owned) if part.state is not None and part.state.owned else None


def _one_owner(views: tuple[Any, ...]) -> Found:
    """Who was put out of the group is fenced, whatever it still believes."""
    members, *nodes = views
    owned: list[tuple[str, Partitions]] = [each for each in nodes if each is not None and each[0] in members]
    counted = Counter(partition for _, partitions in owned for partition in partitions)
    for partition, count in counted.items():
        if count > 1:
            owners = " and ".join(id for id, partitions in owned if partition in partitions)
            return f"{partition[0]}-{partition[1]} belongs to {owners} at once"
    return None


ONE_OWNER: Law[Part] = Law(
    "bounce/revoked-first", ("429-05", "429-15", "429-16"),
    "Nobody takes up a partition that another member of the group has not given up yet.", _owned, _one_owner,
)  # fmt: skip


def all_owned(partitions: Partitions) -> Law[Part]:
    """``partitions``: all that the members subscribe to. Of a mixed group of the draft some are nobody's (429-02)."""

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

    def breach(views: tuple[Any, ...]) -> Found:
        if None in views:
            return None
        (generation, members), *nodes = views
        present = [each for each in nodes if each]
        if sorted(id for id, _, _ in present) != list(members) or any(each[1] != generation for each in present):
            return None
        left = sorted(set(partitions) - {each for _, _, owned in present for each in owned})
        return f"the group rests, and {left[0][0]}-{left[0][1]} belongs to nobody" if left and present else None

    return Law(
        "bounce/all-owned", ("grp-03", "429-04"), "When a group rests, all that its members subscribe to is read.",
        resting, breach,
    )  # fmt: skip


def is_mixed(group: State) -> bool:
    """Do members that revoke before they join meet members that do not, by the version of their subscription?"""
    told = [each.metadata(group.protocol) for each in group.members]
    return len({each.version == V0 for each in told if isinstance(each, Subscription)}) > 1


RESTS: Law[Part] = Law(
    "bounce/rests", ("grp-19", "429-04"),
    "A group that is left alone comes to rest, after few generations for each thing that befell it.",
    lambda index, part: part.rounds if isinstance(part, Centre) else None,
    lambda views: f"{ROUNDS} generations, and nothing befell the group meanwhile" if views[0] >= ROUNDS else None,
)  # fmt: skip


def _waiting(index: int, part: Part) -> Any:
    if isinstance(part, Centre):
        return parked(part.group)
    return number(index, part.serial) if part.waits else None


def _not_forgotten(views: tuple[Any, ...]) -> Found:
    hub, *nodes = views
    lost = [place for place, each in enumerate(nodes, 1) if each is not None and each not in hub]
    return f"member {lost[0]} waits for an answer, and its request waits nowhere" if lost else None


WAITING: Law[Part] = Law(
    "group/parked-answered", ("grp-07",), "What waits for an answer is not forgotten.", _waiting, _not_forgotten
)


def laws(partitions: Partitions) -> tuple[Law[Part] | StepLaw[Part, Move, Message], ...]:
    return ONE_OWNER, all_owned(partitions), RESTS, WAITING
