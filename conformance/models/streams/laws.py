"""What an upgrade of a Streams group may not break, in every state of ``world``.

The rules of ``invariants.streams_*``, as far as they show in single states and steps.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.edition import KIP_268
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.models.cluster_components import Centre, Does, Message, Move, Node, Part
from kipcheck.conformance.models.cluster_laws import ONE_OWNER
from kipcheck.conformance.models.group.messages import Phase as GroupPhase
from kipcheck.conformance.models.member.state import Phase
from kipcheck.conformance.models.streams.consumer import StreamsConsumer, memory_of
from kipcheck.conformance.models.streams.deviations import SILENT
from kipcheck.conformance.models.streams.members import FUTURE, TaskId
from kipcheck.conformance.models.streams.rules import FIRST_PROBED, Rules

Found: TypeAlias = str | None
Consumers: TypeAlias = Mapping[str, StreamsConsumer]


def laws(
    consumers: Consumers, kinds: Iterable[str], tasks: Iterable[TaskId], most_rounds: int
) -> tuple[Law[Part] | StepLaw[Part, Move, Message], ...]:
    """``kinds``: that there are in this world. ``tasks``: all that there is to do. ``most_rounds``: so many generations
    are too many for a group that nothing befalls."""
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


def _who(views: tuple[Any, ...], what: str) -> str:
    return next(f"member {place} {what.format(each)}" for place, each in enumerate(views) if each)


LIVES: Final[Law[Part]] = Law(
    "streams/lives", ("268-26", "268-28"), "No thread ends with an exception.", _failure,
    lambda views: _who(views, "ends: {}") if any(views) else None,
)  # fmt: skip


def _within_own(consumers: Consumers) -> Law[Part]:
    def above(index: int, part: Part) -> str:
        if not isinstance(part, Node) or part.state is None:
            return ""
        used, latest = memory_of(part.state).used, consumers[part.kind].binary.latest
        return f"uses version {used}, and {latest} is the latest that it knows" if used > latest else ""

    return Law(
        "streams/used-within-own", ("268-19", "268-35"), "Nobody uses a metadata version above its own latest.", above,
        lambda views: _who(views, "{}") if any(views) else None,
    )  # fmt: skip


HANDED_OVER: Final = replace(
    ONE_OWNER,
    id="streams/handed-over",
    requirements=("268-38", "268-28"),
    sentence="Nobody takes up what a member in place has not given up.",
)


def _probing_ends(most: int) -> Law[Part]:
    return Law(
        "streams/probing-ends", ("268-24", "268-37"),
        "A group that is left alone comes to rest, after few rebalances for each thing that befell it.",
        lambda index, part: part.rounds if isinstance(part, Centre) else None,
        lambda views: f"{most} generations, and nothing befell the group" if views[0] >= most else None,
    )  # fmt: skip


# At rest


def _at_rest(id: str, requirements: tuple[str, ...], sentence: str, view: Callable[[Node], Any],
             breach: Callable[[list[Any]], Found]) -> Law[Part]:  # fmt: skip
    """A law of groups that rest: all that run are in place, and nobody is about to do anything.

    ``view``: of each member, what the law looks at; ``breach``: of all of them, what is wrong.
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

    def broken(views: tuple[Any, ...]) -> Found:
        if None in views:
            return None
        (generation, members), *nodes = views
        in_place = sorted(id for id, _, _ in nodes) == [*members] and all(at == generation for _, at, _ in nodes)
        return breach([seen for _, _, seen in nodes]) if in_place else None

    return Law(id, requirements, sentence, resting, broken)


def _all_owned(tasks: frozenset[TaskId]) -> Law[Part]:
    def active(node: Node) -> Any:
        assert node.state is not None
        return memory_of(node.state).active

    def breach(found: list[Any]) -> Found:
        runs = Counter(task for each in found for task in each)
        for task in sorted(tasks, key=str):
            if runs[task] != 1:
                return f"the group rests, and {task} is active in {runs[task] or 'no'} member{'s' * (runs[task] > 1)}"
        return None

    return _at_rest(
        "streams/all-owned", ("268-28", "268-13", "268-31"),
        "In a group that rests every task is active in one member.", active, breach,
    )  # fmt: skip


def _upgraded(consumers: Consumers, drafted: bool) -> Law[Part]:
    """``drafted``: who knows more than others may go on to say so where the leader is one of them (268-20)."""

    def versions(node: Node) -> Any:
        assert node.state is not None
        consumer = consumers[node.kind]
        return memory_of(node.state).used, consumer.binary.latest, consumer.begins.used

    def breach(found: list[Any]) -> Found:
        common = min(latest for _, latest, _ in found)
        if any(begun < FIRST_PROBED for _, _, begun in found):
            return None  # Somebody was told to speak an old version, and is in no way to be asked for another.
        spoken = sorted({used for used, _, _ in found})
        alike = len({latest for _, latest, _ in found}) == 1
        kept = spoken[0] == common if drafted and not alike else spoken == [common]
        return None if kept else f"the group rests in versions {spoken}, and all support {common}"

    return _at_rest(
        "streams/upgraded", ("268-12", "268-13", "268-22", "268-26"),
        "A group that rests speaks the newest version that all support.", versions, breach,
    )  # fmt: skip


# Who triggers the last rebalance


def _misled(index: int, before: Part, cause: Move | Message, did: Did[Part, Message]) -> Found:
    """A member that leaves to rejoin, whose version does not fall, and that does not lead."""
    after = did.part
    if not isinstance(before, Node) or not isinstance(after, Node) or isinstance(cause, Does):
        return None
    if before.state is None or after.state is None or not _left(before, after):
        return None
    falls = memory_of(after.state).used < memory_of(before.state).used
    return None if falls or before.state.leads else f"member {index} triggers a rebalance, and does not lead"


def _left(before: Node, after: Node) -> bool:
    """In this step, of its own accord: it had an id, and asks for one."""
    assert after.state is not None
    return bool(before.id) and not after.id and before.kind == after.kind and bool(after.out)


LAST_REBALANCE: Final[StepLaw[Part, Move, Message]] = StepLaw(
    "streams/last-rebalance", ("268-21",),
    "In the draft the leader alone triggers the rebalance after which all use the newest version.", _misled,
)  # fmt: skip
