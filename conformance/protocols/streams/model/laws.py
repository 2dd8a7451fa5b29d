"""Laws of the upgrade of a Streams group, checked in every state of the product machine of ``product``.

They restate those invariants of ``invariants.streams_*`` that concern single states or steps.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.edition import KIP_268
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.cluster.components import Centre, Does, Message, Move, Node, Part
from kipcheck.conformance.protocols.cluster.laws import ONE_OWNER
from kipcheck.conformance.protocols.group.model.messages import Phase as GroupPhase
from kipcheck.conformance.protocols.member.model.state import Phase
from kipcheck.conformance.protocols.streams.model.consumer import StreamsConsumer, memory_of
from kipcheck.conformance.protocols.streams.model.deviations import SILENT
from kipcheck.conformance.protocols.streams.model.members import FUTURE, TaskId
from kipcheck.conformance.protocols.streams.model.rules import FIRST_PROBED, Rules

Contradiction: TypeAlias = str | None
Consumers: TypeAlias = Mapping[str, StreamsConsumer]


def laws(
    consumers: Consumers, kinds: Iterable[str], tasks: Iterable[TaskId], most_rounds: int
) -> tuple[Law[Part] | StepLaw[Part, Move, Message], ...]:
    """``kinds``: all kinds of members in the search. ``tasks``: all tasks of the topology. ``most_rounds``: the number
    of generations without a disturbance that breaks the law."""
    releases = {consumers[each].binary.settings.release for each in kinds}
    drafted = any(each.endswith(KIP_268.name) for each in releases)
    silent = any(not drafted and each != FUTURE and SILENT in Rules.of(each) for each in releases)
    found: list[Law[Part] | StepLaw[Part, Move, Message]] = [
        LIVES,
        _within_own(consumers),
        HANDED_OVER,
        _all_owned(frozenset(tasks)),
        _probing_ends(most_rounds),
    ]
    if not silent:
        found.append(_upgraded(consumers, drafted))
    if drafted:
        found.append(LAST_REBALANCE)
    return tuple(found)


def _failure(index: int, part: Part) -> str:
    return part.failed if isinstance(part, Node) else ""


def _first_member(views: tuple[Any, ...], what: str) -> str:
    return next(f"member {place} {what.format(each)}" for place, each in enumerate(views) if each)


LIVES: Final[Law[Part]] = Law(
    "streams/lives", _failure, lambda views: _first_member(views, "ends: {}") if any(views) else None
)


def _within_own(consumers: Consumers) -> Law[Part]:
    def above(index: int, part: Part) -> str:
        if not isinstance(part, Node) or part.state is None:
            return ""
        used, latest = memory_of(part.state).used, consumers[part.kind].binary.latest
        return f"uses version {used}, above its latest version {latest}" if used > latest else ""

    return Law("streams/used-within-own", above, lambda views: _first_member(views, "{}") if any(views) else None)


HANDED_OVER: Final = replace(ONE_OWNER, id="streams/handed-over")


def _probing_ends(most: int) -> Law[Part]:
    return Law(
        "streams/probing-ends",
        lambda index, part: part.rounds if isinstance(part, Centre) else None,
        lambda views: f"{most} generations formed without a disturbance" if views[0] >= most else None,
    )


# At rest


def _at_rest(id: str, view: Callable[[Node], Any], breach: Callable[[list[Any]], Contradiction]) -> Law[Part]:
    """A law of groups at rest: all running members are in the group, and none is about to move.

    ``view``: the data of a member that the law depends on; ``breach``: the contradiction, given all members' data.
    """

    def resting(index: int, part: Part) -> Any:
        if isinstance(part, Centre):
            group = part.group
            still = group.phase is GroupPhase.STABLE and not group.owing
            return (group.generation, tuple(sorted(each.id for each in group.members))) if still else None
        state = part.state
        if state is None or part.busy or state.phase is not Phase.STABLE or state.rejoin:
            return None
        return part.id, state.identity.generation, view(part)

    def broken(views: tuple[Any, ...]) -> Contradiction:
        if None in views:
            return None
        (generation, members), *nodes = views
        in_place = sorted(id for id, _, _ in nodes) == [*members] and all(at == generation for _, at, _ in nodes)
        return breach([seen for _, _, seen in nodes]) if in_place else None

    return Law(id, resting, broken)


def _all_owned(tasks: frozenset[TaskId]) -> Law[Part]:
    def active(node: Node) -> Any:
        assert node.state is not None
        return memory_of(node.state).active

    def breach(found: list[Any]) -> Contradiction:
        runs = Counter(task for each in found for task in each)
        for task in sorted(tasks, key=str):
            if runs[task] != 1:
                count = f"{runs[task] or 'no'} member{'s' * (runs[task] > 1)}"
                return f"the group is at rest, and {task} is active in {count}"
        return None

    return _at_rest("streams/all-owned", active, breach)


def _upgraded(consumers: Consumers, drafted: bool) -> Law[Part]:
    """``drafted``: members with a newer version may keep using it if the leader is one of them (268-20)."""

    def versions(node: Node) -> Any:
        assert node.state is not None
        consumer = consumers[node.kind]
        return memory_of(node.state).used, consumer.binary.latest, consumer.begins.used

    def breach(found: list[Any]) -> Contradiction:
        common = min(latest for _, latest, _ in found)
        if any(begun < FIRST_PROBED for _, _, begun in found):
            return None  # A member was configured to use an old version, and cannot be asked to change it.
        versions_used = sorted({used for used, _, _ in found})
        same_latest = len({latest for _, latest, _ in found}) == 1
        kept = versions_used[0] == common if drafted and not same_latest else versions_used == [common]
        return None if kept else f"the group is at rest with versions {versions_used}, but all members support {common}"

    return _at_rest("streams/upgraded", versions, breach)


# The last rebalance


def _triggers_as_follower(index: int, before: Part, cause: Move | Message, did: Did[Part, Message]) -> Contradiction:
    """A member that is not the leader leaves to rejoin, although its version does not fall."""
    after = did.part
    if not isinstance(before, Node) or not isinstance(after, Node) or isinstance(cause, Does):
        return None
    if before.state is None or after.state is None or not _left(before, after):
        return None
    falls = memory_of(after.state).used < memory_of(before.state).used
    return None if falls or before.state.leads else f"member {index} triggers a rebalance, but is not the leader"


def _left(before: Node, after: Node) -> bool:
    """Whether the member left in this step by itself: it had an id, and requests a new one."""
    assert after.state is not None
    return bool(before.id) and not after.id and before.kind == after.kind and bool(after.out)


LAST_REBALANCE: Final[StepLaw[Part, Move, Message]] = StepLaw("streams/last-rebalance", _triggers_as_follower)
