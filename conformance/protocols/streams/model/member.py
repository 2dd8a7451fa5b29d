"""A Streams member's subscription, and its reaction to an assignment: KIP-268 with the deviations of its release
(StreamsPartitionAssignor.subscriptionUserData and onAssignment)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE
from kipcheck.conformance.protocols.streams.model import deviations, members
from kipcheck.conformance.protocols.streams.model.leader import FIRST_NAMED, ILLEGAL_STATE, TASK_ASSIGNMENT
from kipcheck.conformance.protocols.streams.model.rules import FIRST_PROBED, ILLEGAL_ARGUMENT, Rules
from kipcheck.conformance.protocols.streams.model.tasks import order, stateful

FIRST_UNIQUE: Final = 8
"""The lowest version whose subscriptions differ from one to the next."""
AGAIN: Final = members.Rejoin("again")
NOW: Final = members.Rejoin("now")


def subscribe(
    rules: Rules, settings: members.Settings, memory: members.Memory
) -> tuple[members.Memory, members.SubscriptionInfo]:
    """The member's next subscription. Errors: ``Fatal`` if its used version is unknown to it."""
    used = memory.used
    if not 1 <= used <= rules.latest:
        raise members.Fatal(ILLEGAL_ARGUMENT, f"version must be between 1 and {rules.latest}; was: {used}")
    after = replace(memory, unique=_next(memory.unique) if rules.latest >= FIRST_UNIQUE else 0, closes=False)
    cooperates = COOPERATIVE in rules.supports(settings.upgrade_from)
    sums = _sums(settings, memory, cooperates)
    if rules.by_offsets:
        active = tuple(task for task, offset in sums.items() if offset == members.LATEST_OFFSET)
        standby = tuple(task for task, offset in sums.items() if offset != members.LATEST_OFFSET)
    else:
        # The consumer's own metadata contains the partitions of a cooperative member.
        active = () if cooperates else memory.active
        standby = tuple(task for task in memory.standby if task not in memory.active)
    if used < FIRST_NAMED and any(task.topology for task in (*active, *standby)):
        raise members.Fatal(TASK_ASSIGNMENT, f"version {used} has no place for the name of a topology")
    return after, members.SubscriptionInfo(
        used,
        rules.latest if used >= FIRST_PROBED else members.NO_VERSION,
        settings.process,
        active if used < 7 else (),
        standby if used < 7 else (),
        settings.end_point if used >= 2 else None,
        tuple(sums.items()) if used >= 7 else (),
        after.unique if used >= FIRST_UNIQUE else 0,
        memory.error if used >= 9 else 0,
        settings.tags if used >= 11 else (),
    )


def _sums(settings: members.Settings, memory: members.Memory, cooperates: bool) -> Mapping[members.TaskId, int]:
    """Offset sums of stateful tasks, and the ``sums`` in its memory. An eager member has suspended its tasks before it
    joins, and reports their offsets."""
    running = members.LATEST_OFFSET if cooperates else 0
    kept = dict.fromkeys(memory.standby, 0) | dict.fromkeys(memory.active, running)
    offsets = {task: offset for task, offset in kept.items() if stateful(settings.topology, task)} | dict(memory.sums)
    return {task: offsets[task] for task in sorted(offsets, key=order)}


def _next(unique: int) -> int:
    return -128 if unique == 127 else unique + 1


def assigned(
    rules: Rules, settings: members.Settings, memory: members.Memory, share: members.Share
) -> members.AssignmentResult:
    """The effect of an assignment. Errors: ``Fatal``."""
    info = decoded(share, rules.latest)
    if info.error:
        return members.AssignmentResult(memory, applied=False, error=info.error)
    used, probes = next_version(rules, memory.used, info)
    after = replace(memory, used=used, closes=False)
    if not probes or deviations.NOT_APPLIED not in rules:
        after = applied(after, share, info, loosely=deviations.PAIRS_LOOSELY in rules)
    return members.AssignmentResult(
        after, _rejoin(rules, settings, probes or memory.closes, info), not (probes and deviations.NOT_APPLIED in rules)
    )


def next_version(rules: Rules, used: int, info: members.AssignmentInfo) -> tuple[int, bool]:
    """The version of the next subscription, and whether the member has to rejoin at once. Errors: ``Fatal``."""
    version, second = info.used, info.supported
    if rules.latest < FIRST_PROBED:
        return used, False
    if version > used:
        kind = TASK_ASSIGNMENT if deviations.EVERYBODY in rules else ILLEGAL_STATE
        raise members.Fatal(
            kind, f"sent a version {used} subscription but got an assignment with higher version {version}"
        )
    if deviations.EVERYBODY in rules:
        if second > rules.latest:
            raise members.Fatal(
                TASK_ASSIGNMENT, f"assignment requires version {second}, above the latest version {rules.latest}"
            )
        changes = version >= FIRST_PROBED and (second > used or version < used)
        return (second, True) if changes else (used, False)
    if version < FIRST_PROBED:
        return used, False
    allowed = second if deviations.UNCHECKED in rules else min(second, rules.latest)
    if allowed < used or (version < used and deviations.PROBES_IN_VAIN in rules):
        return allowed, True
    return allowed, False


def _rejoin(rules: Rules, settings: members.Settings, at_once: bool, info: members.AssignmentInfo) -> members.Rejoin:
    hosts = dict(info.hosts)
    if (
        deviations.LOOKS_FOR_ITSELF in rules
        and settings.end_point is not None
        and hosts
        and settings.end_point not in hosts
    ):
        at_once = True
    if at_once:
        return NOW if deviations.STAYS_IN in rules else AGAIN
    if info.next_ms == members.NO_REBALANCE or not rules.announces:
        return members.NEVER
    return NOW if info.next_ms == 0 else members.Rejoin("later", info.next_ms)


def decoded(share: members.Share, latest: int) -> members.AssignmentInfo:
    """The data of an assignment. Errors: ``Fatal`` for an unknown version."""
    info = share.data
    if not isinstance(info, members.AssignmentInfo) or not 1 <= info.used <= latest:
        version = info.used if isinstance(info, members.AssignmentInfo) else None
        raise members.Fatal(
            TASK_ASSIGNMENT, f"unable to decode assignment data: used version: {version}; latest: {latest}"
        )
    return info


def applied(
    memory: members.Memory, share: members.Share, info: members.AssignmentInfo, loosely: bool = False
) -> members.Memory:
    """The memory with the new tasks. Errors: ``Fatal`` if the numbers of partitions and tasks differ."""
    many, tasks = len(share.partitions), len(info.active)
    if many > tasks or (many < tasks and not loosely):
        raise members.Fatal(TASK_ASSIGNMENT, f"{many} assigned partitions and {tasks} active tasks")
    return replace(memory, active=_sorted(info.active[:many]), standby=_sorted(task for task, _ in info.standby))


def _sorted(tasks: Iterable[members.TaskId]) -> members.Tasks:
    return tuple(sorted(set(tasks), key=order))
