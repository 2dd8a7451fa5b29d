"""The assignment by a Streams leader: KIP-268 with the deviations of its release (StreamsPartitionAssignor.assign)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, final

from kipcheck.conformance.protocols.assignment.model.assignment import Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.streams.model import deviations, members as model_members
from kipcheck.conformance.protocols.streams.model.rules import FIRST_PROBED, Rules
from kipcheck.conformance.protocols.streams.model.tasks import (
    Client,
    Consumer,
    Placed,
    Placement,
    Work,
    order,
    place,
    work,
)

TASK_ASSIGNMENT: Final = "org.apache.kafka.streams.errors.TaskAssignmentException"
ILLEGAL_STATE: Final = "java.lang.IllegalStateException"
STREAMS: Final = "org.apache.kafka.streams.errors.StreamsException"
TOPOLOGY: Final = "org.apache.kafka.streams.errors.TopologyException"
TOPOLOGY_BUILDER: Final = "org.apache.kafka.streams.errors.TopologyBuilderException"
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
UNREADABLE_INSTANCE: Final = ""
"""The instance of all members that the leader cannot decode. Its id is random in releases; here it sorts first."""
FIRST_NAMED: Final = 10
"""The lowest version in which tasks can have a topology name."""
FIRST_CODED: Final = 4
"""The lowest version in which an assignment can have an error code."""


@final
@dataclass(frozen=True, slots=True)
class Received:
    """The subscriptions of a group, as far as its leader can decode them."""

    members: tuple[model_members.Joining, ...]
    told: Mapping[str, model_members.SubscriptionInfo]
    """Member id -> its subscription, without strangers."""
    strangers: tuple[str, ...]
    """Members with a version above the leader's latest."""
    used: int
    """The lowest version in use, at most the leader's latest."""
    supported: int
    """The lowest latest version, at most the leader's; -1 if a version below 3 is in use."""


def receive(members: tuple[model_members.Joining, ...], latest: int, deaf: bool = False) -> Received:
    """Decodes the subscriptions. Errors: ``Fatal`` for malformed data; with ``deaf``, also for a version above
    ``latest``."""
    readable: dict[str, model_members.SubscriptionInfo] = {}
    strangers: list[str] = []
    used = supported = latest
    for each in members:
        info = each.data
        if not isinstance(info, model_members.SubscriptionInfo) or info.used < 1 or (deaf and info.used > latest):
            raise model_members.Fatal(TASK_ASSIGNMENT, f"unable to decode subscription data of {each.id}: {info}")
        used = min(used, info.used)
        supported = min(supported, info.latest if info.used >= FIRST_PROBED else model_members.NO_VERSION)
        if info.used > latest:
            strangers.append(each.id)
        else:
            readable[each.id] = info
    return Received(members, readable, tuple(strangers), used, supported)


def is_last_bounce(group: Received, latest: int) -> bool:
    """Whether all members know the leader's latest version, but some do not use it yet, so that one more rebalance
    completes the upgrade (268-21)."""
    return FIRST_PROBED <= group.used < latest <= group.supported and not group.strangers


# Checks before an assignment, and errors


def lead(
    rules: Rules,
    topology: model_members.Topology,
    topics: tuple[Topic, ...],
    members: tuple[model_members.Joining, ...],
) -> "Led":
    """The assignments of all members. Errors: ``Fatal``."""
    group = receive(members, rules.latest, deviations.DEAF in rules)
    if rules.shuts_down and any(info.error == model_members.SHUTDOWN_REQUESTED for info in group.told.values()):
        return Led(_errors(rules, group, model_members.SHUTDOWN_REQUESTED))
    if deviations.IMPROBABLE in rules and group.strangers and group.used < FIRST_PROBED:
        why = f"a version above {rules.latest} and version {group.used} at the same time"
        if deviations.CODED in rules:
            return Led(_errors(rules, group, model_members.ASSIGNMENT_ERROR))
        raise model_members.Fatal(ILLEGAL_STATE, why)
    todo = _work(rules, topology, topics)
    if todo is None:
        return Led(_errors(rules, group, model_members.INCOMPLETE_SOURCE_TOPICS))
    version = 2 if deviations.ALWAYS_TWO in rules else group.used
    if version < FIRST_NAMED and any(task.topology for task in todo.tasks):
        if deviations.CODED in rules:
            return Led(_errors(rules, group, model_members.ASSIGNMENT_ERROR))
        raise model_members.Fatal(TASK_ASSIGNMENT, f"version {version} has no place for the name of a topology")
    closes = not {deviations.EVERYBODY, deviations.SILENT} & rules.departures and is_last_bounce(group, rules.latest)
    return Led(_assigned(rules, topology, todo, group, version), closes)


class Led(NamedTuple):
    shares: Mapping[str, model_members.Share]
    closes: bool = False
    """Whether the leader has to trigger one more rebalance."""


def _work(rules: Rules, topology: model_members.Topology, topics: tuple[Topic, ...]) -> Work | None:
    """The tasks; None if a source topic is missing and the members get an error code for that. Errors: ``Fatal``."""
    todo = work(topology, topics)
    if rules.spares_topologies and todo.missing and None not in todo.left_out:
        kept = tuple(each for each in topology.subtopologies if each.topology not in todo.left_out)
        todo = work(replace(topology, subtopologies=kept), topics)
    if todo.missing and rules.tells_errors:
        return None
    if todo.endless and deviations.SKIPS_WITHOUT_TOPICS in rules:
        raise model_members.Endless(STREAMS, f"it looks for the sizes of {', '.join(sorted(todo.endless))}")
    if todo.uneven and not (deviations.LETS_UNEVEN_PASS in rules and not todo.repartition):
        builder = rules.latest < FIRST_PROBED
        raise model_members.Fatal(
            TOPOLOGY_BUILDER if builder else TOPOLOGY, f"not co-partitioned: {', '.join(todo.uneven)}"
        )
    waits = (
        todo.one_step if deviations.ONE_STEP in rules else todo.unsized if deviations.WAITS_FOR_SIZES in rules else ()
    )
    if waits:
        raise model_members.Endless(STREAMS, f"it waits for {', '.join(sorted(waits))}")
    if todo.missing and deviations.SKIPS_WITHOUT_TOPICS not in rules:
        raise model_members.Fatal(STREAMS, f"missing source topics: {', '.join(todo.missing)}")
    return todo


def _errors(rules: Rules, group: Received, code: int) -> Mapping[str, model_members.Share]:
    version = rules.latest if deviations.ERRORS_IN_LATEST in rules else group.used
    if version < FIRST_CODED and rules.mended:
        version = rules.latest  # No version that all members know has a place for an error.
    if version < FIRST_CODED:
        raise model_members.Fatal(TASK_ASSIGNMENT, f"error {code}, and version {version} has no place for it")
    share = model_members.Share((), written(model_members.AssignmentInfo(version, rules.latest, error=code)))
    forgotten = group.strangers if deviations.ERRORS_FOR_SOME in rules else ()
    return {each.id: share for each in group.members if each.id not in forgotten}


# The assignment


def _assigned(
    rules: Rules, topology: model_members.Topology, todo: Work, group: Received, version: int
) -> Mapping[str, model_members.Share]:
    second = group.supported if deviations.COMMON in rules else rules.latest
    clients = instances(group, todo, rules.owns, strangers=deviations.TAKES_PART in rules)
    placement = place(
        todo, clients, topology.standbys, deviations.STANDBYS_FOR_ALL in rules, deviations.WANDERS in rules
    )
    hosts, standby_hosts = hosts_of(group, clients, placement, todo)
    info = model_members.AssignmentInfo(version, second, hosts=hosts, standby_hosts=standby_hosts)
    echoing = deviations.ECHO in rules and bool(group.strangers)
    if echoing and deviations.LEAK in rules:
        shares = _leaked(clients, todo, info)
    else:
        if echoing:
            placement = _claimed(clients, todo)
        owned = {each.id: each.owned for each in group.members} if rules.owns else {}
        shares = regular(placement, todo, info, owned, _warm(rules, clients, todo), rules.announces)
    empty = (
        model_members.AssignmentInfo(version, second)
        if deviations.COMMON in rules
        else model_members.AssignmentInfo(rules.latest, rules.latest)
    )
    return {each.id: shares.get(each.id) or model_members.Share((), written(empty)) for each in group.members}


def instances(group: Received, todo: Work, owns: bool, strangers: bool) -> tuple[Client, ...]:
    """Instances with their consumers. ``owns``: tasks of owned partitions count as active; ``strangers``: include them,
    as one instance."""
    threads: dict[str, list[Consumer]] = {}
    for each in group.members:
        info = group.told.get(each.id)
        if info is None and not strangers:
            continue
        owned = {todo.task[partition] for partition in each.owned if partition in todo.task} if owns else set()
        active, standby = _claims(info) if info else (set[model_members.TaskId](), set[model_members.TaskId]())
        ran = frozenset((active | owned) & todo.partitions.keys())
        kept = frozenset((standby & todo.partitions.keys()) - ran)
        threads.setdefault(info.process if info else UNREADABLE_INSTANCE, []).append(Consumer(each.id, ran, kept))
    return tuple(Client(process, tuple(sorted(consumers))) for process, consumers in sorted(threads.items()))


def _claims(info: model_members.SubscriptionInfo) -> tuple[set[model_members.TaskId], set[model_members.TaskId]]:
    running = {task for task, offset in info.sums if offset == model_members.LATEST_OFFSET}
    return {*info.active, *running}, {*info.standby, *(task for task, _ in info.sums)} - running


def regular(
    placement: Placement,
    todo: Work,
    info: model_members.AssignmentInfo,
    owned: Mapping[str, Partitions] = NOTHING,
    warm: Mapping[str, frozenset[model_members.TaskId]] = NOTHING,
    announces: bool = False,
) -> dict[str, model_members.Share]:
    """The shares of a placement. ``owned``: partitions that a consumer still owns; no other consumer gets a task with
    one of them before it is revoked (KIP-429). ``warm``: tasks that a consumer has as standby while it waits for them;
    ``announces``: it has to rejoin at once."""
    owners = {partition: id for id, partitions in owned.items() for partition in partitions}
    shares: dict[str, model_members.Share] = {}
    for id, placed in placement.items():
        waits = {task for task in placed.active if _waits(id, todo.partitions[task], owners)}
        active = tuple(task for task in placed.active if task not in waits)
        standby = _sorted({*placed.standby, *(waits & warm.get(id, frozenset()))})
        given = replace(info, next_ms=0 if waits and announces else model_members.NO_REBALANCE)
        shares[id] = share(Placed(active, standby), todo, given)
    return shares


def _warm(rules: Rules, clients: Iterable[Client], todo: Work) -> dict[str, frozenset[model_members.TaskId]]:
    had = {each.id: client.active | client.standby for client in clients for each in client.consumers}
    match rules.warms:
        case "all":
            return dict.fromkeys(had, todo.stateful)
        case "had":
            return {id: todo.stateful & tasks for id, tasks in had.items()}
    return {}


def _waits(id: str, partitions: Partitions, owners: Mapping[Partition, str]) -> bool:
    return any(owners.get(each, id) != id for each in partitions)


def share(placed: Placed, todo: Work, info: model_members.AssignmentInfo) -> model_members.Share:
    """Lists each active task once for each of its partitions, in the order of partitions (268-51)."""
    pairs = {partition: task for task in placed.active for partition in todo.partitions[task]}
    partitions = model_members.by_topic(tuple(pairs))
    standby = tuple((task, todo.partitions[task]) for task in placed.standby)
    active = tuple(pairs[each] for each in partitions)
    return model_members.Share(partitions, written(replace(info, active=active, standby=standby)))


def _claimed(clients: Iterable[Client], todo: Work) -> Placement:
    return {
        each.id: Placed(_sorted(each.active), _sorted(each.standby)) for client in clients for each in client.consumers
    }


def _leaked(
    clients: Iterable[Client], todo: Work, info: model_members.AssignmentInfo
) -> dict[str, model_members.Share]:
    """Tasks are in the order of their hash codes, which is that of the sum of their numbers."""
    shares: dict[str, model_members.Share] = {}
    for client in clients:
        active = tuple(sorted(client.active, key=lambda each: (each.subtopology + each.partition, order(each))))
        partitions = tuple(partition for task in active for partition in todo.partitions[task])
        standby = tuple((task, todo.partitions[task]) for task in _sorted(client.standby))
        data = written(replace(info, active=active, standby=standby))
        shares.update((each.id, model_members.Share(partitions, data)) for each in client.consumers)
    return shares


def hosts_of(
    group: Received, clients: Iterable[Client], placement: Placement, todo: Work
) -> tuple[model_members.Hosts, model_members.Hosts]:
    """End point of each instance -> partitions of its active and of its standby tasks, including withheld ones."""
    active: dict[str, Partitions] = {}
    standby: dict[str, Partitions] = {}
    for client in clients:
        readable = (group.told.get(each.id) for each in client.consumers)
        end_point = next((info.end_point for info in readable if info and info.end_point), None)
        if end_point is not None:
            shares = [placement[each.id] for each in client.consumers]
            active[end_point] = _read(todo, [task for each in shares for task in each.active])
            standby[end_point] = _read(todo, [task for each in shares for task in each.standby])
    return tuple(sorted(active.items())), tuple(sorted(standby.items()))


def _read(todo: Work, tasks: Sequence[model_members.TaskId]) -> Partitions:
    return model_members.by_topic([partition for task in tasks for partition in todo.partitions[task]])


def _sorted(tasks: Iterable[model_members.TaskId]) -> tuple[model_members.TaskId, ...]:
    return tuple(sorted(tasks, key=order))


def written(info: model_members.AssignmentInfo) -> model_members.AssignmentInfo:
    """The assignment, reduced to the fields of its version."""
    version = info.used
    return model_members.AssignmentInfo(
        version,
        info.supported if version >= FIRST_PROBED else model_members.NO_VERSION,
        info.active,
        info.standby,
        info.hosts if version >= 2 else (),
        info.standby_hosts if version >= 6 else (),
        info.error if version >= FIRST_CODED else 0,
        info.next_ms if version >= 7 else model_members.NO_REBALANCE,
    )
