"""Describes the observed events of a Streams group. User data is decoded by a reader that knows all versions."""

from kipcheck.conformance.protocols.assignment.model.assignment import partition_names
from kipcheck.conformance.protocols.streams.blobs import read_assignment, read_subscription
from kipcheck.conformance.protocols.streams.model.members import NO_REBALANCE, NO_VERSION, Blob, Fatal, Rejoin, Tasks
from kipcheck.conformance.protocols.streams.ops import (
    Applied,
    Began,
    Died,
    Formed,
    ObservedEvent,
    Present,
    Refused,
    Rests,
    Sent,
)
from kipcheck.conformance.protocols.upgrade.ops import (
    Ended,
    Gave,
    PutOut,
    Restless,
    Took,
)
from kipcheck.conformance.tests.protocols.upgrade.old_ops import describe as of_any_group


def describe(event: ObservedEvent) -> str:
    match event:
        case Began(member, release, upgrade_from, latest, used):
            setting = "" if upgrade_from is None else f" with upgrade.from {upgrade_from}"
            return f"{member} runs {release}{setting}; its latest version is {latest}, it starts with version {used}"
        case Refused(member, release, upgrade_from, why):
            setting = "" if upgrade_from is None else f" with upgrade.from {upgrade_from}"
            return f"{member} does not start as {release}{setting}: {why}"
        case Formed(generation, leader, members):
            participants = ", ".join(f"{each.member} {_subscription(each.data)}" for each in members)
            return f"generation {generation}: {participants}; {leader} leads"
        case Sent(_, leader, member, partitions, data):
            return f"{leader} sends {member} {_partitions(partitions)}{_assignment(data)}"
        case Applied():
            return _applied(event)
        case Took() | Gave() | Ended() | PutOut() | Restless():
            return of_any_group(event)
        case Died(member, during, kind, why):
            return f"{member} dies ({_DURING.get(during, during)}) of {kind.rpartition('.')[2]}: {why}"
        case Rests(generation, members):
            return (
                f"the group is at rest in generation {generation}: {'; '.join(map(_present, members)) or 'no members'}"
            )


_DURING = {"subscribe": "subscribing", "lead": "leading", "assigned": "applying its assignment", "error": "error code"}


def _applied(happening: Applied) -> str:
    what = f"runs {tasks(happening.active)}" if happening.applied else f"keeps its tasks {tasks(happening.active)}"
    if happening.standby:
        what += f", with standby {tasks(happening.standby)}"
    if happening.error:
        what = f"receives error {happening.error}"
    if happening.before != happening.used:
        what += f"; changes from version {happening.before} to {happening.used}"
    return f"{happening.member} {what}{_rejoin(happening.rejoin)}"


def _rejoin(rejoin: Rejoin) -> str:
    match rejoin.when:
        case "again":
            return "; leaves the group and subscribes again"
        case "now":
            return "; rejoins at once"
        case "later":
            return f"; rejoins at {rejoin.at_ms} ms"
    return ""


def tasks(some: Tasks) -> str:
    return " ".join(map(str, some)) or "nothing"


def _subscription(data: Blob) -> str:
    try:
        info = read_subscription(_bytes(data))
    except Fatal as unreadable:
        return f"sends undecodable data ({unreadable.why})"
    return f"uses version {info.used}" + ("" if info.latest == NO_VERSION else f" of {info.latest}")


def _assignment(data: Blob) -> str:
    try:
        info = read_assignment(_bytes(data))
    except Fatal as unreadable:
        return f", and undecodable data ({unreadable.why})"
    text = f" in version {info.used}" + ("" if info.supported == NO_VERSION else f" ({info.supported} supported)")
    if info.error:
        return f"{text}: error {info.error}"
    text += f": {tasks(info.active)}"
    if info.standby:
        text += f", standby {tasks(tuple(task for task, _ in info.standby))}"
    return text if info.next_ms == NO_REBALANCE else f"{text}; rebalance at {info.next_ms} ms"


def _bytes(data: Blob) -> bytes:
    assert isinstance(data, bytes)
    return data


def _partitions(partitions: tuple[tuple[str, int], ...]) -> str:
    return partition_names(partitions) if partitions else "no partitions"


def _present(member: Present) -> str:
    standby = f" (standby {tasks(member.standby)})" if member.standby else ""
    return f"{member.member} uses version {member.used} and runs {tasks(member.active)}{standby}"
