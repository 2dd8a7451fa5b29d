"""Invariants of task ownership in a Streams application: active tasks, standbys and host maps."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations
from typing import NamedTuple, TypeAlias

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_names as listed_partitions
from kipcheck.conformance.protocols.assignment.model.membership import Partitions
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.streams.invariants import OWNING, PLACING, trace
from kipcheck.conformance.protocols.streams.invariants.leaders import deployed, is_whole, listed
from kipcheck.conformance.protocols.streams.model.members import FUTURE, AssignmentInfo, TaskId, by_topic
from kipcheck.conformance.protocols.streams.model.tasks import Work
from kipcheck.conformance.protocols.streams.ops import Died
from kipcheck.conformance.protocols.upgrade.ops import Ended, Gave, PutOut, Took

PLACE = 40

of_owning = partial(trace.streams_invariant, checks=(OWNING,))
of_placing = partial(trace.streams_invariant, checks=(PLACING,))

WARMS_UP = span("warm-ups")
"""Releases that have ``max.warmup.replicas`` (KIP-441); the others may assign no additional standbys (268-58)."""
WARM_UPS = 2
"""The default of ``max.warmup.replicas``: how many additional standbys there may be at a time."""
UNKNOWN = "unknown"
"""The instance of all members whose subscription the leader cannot decode."""
STANDBYS_BY_HOST = 6
"""The first metadata version with a host map for standbys."""


class Share(NamedTuple):
    """The assignment of one member, with its instance."""

    given: trace.Given
    info: AssignmentInfo
    process: str
    """The instance as the leader knows it; else ``UNKNOWN``."""
    end_point: str | None
    """The end point as the leader knows it; else None."""

    @property
    def name(self) -> str:
        return self.given.name

    @property
    def active(self) -> frozenset[TaskId]:
        return frozenset(self.info.active)


def shares(round: trace.Round, leader: trace.Life) -> list[Share]:
    """The assignments of a generation, without ambiguous members; empty if any has an error or cannot be decoded."""
    found = []
    for each in round.given:
        if each.info is None or each.info.error:
            return []
        reported = [one for one in round.members if one.joining.member == each.sent.member]
        if len(reported) == 1:
            info = reported[0].info
            is_known = info.used <= leader.latest
            end_point = info.end_point if is_known and info.used >= 2 else None
            found.append(Share(each, each.info, info.process if is_known else UNKNOWN, end_point))
    return found


# One owner


@impact(
    "A task runs in two members", "double processing", "ownership", "double-processing", links=("KIP-268", "KAFKA-8649")
)
@of_owning("streams/one-owner", "268-28")
def one_owner(history: History) -> Iterator[Violation]:
    """No task is active in two members in one generation."""
    for round, _, first, second in _shared(history):
        yield _shared_violation(round, first, second)
    for each in trace.stretches(history):
        present = each.rests.members if each.rests is not None else ()
        for one, other in combinations(present, 2):
            both = {*one.active} & {*other.active}
            if both:
                why = f"{one.member} and {other.member} both run {listed(both)} when the group is at rest"
                yield Violation(why, (each.last,), f"{listed(both)} once", "twice", shape=("two owners", "at rest"))


@impact(
    "Threads of one instance share partitions during version probing",
    "double processing",
    "ownership",
    "double-processing",
    links=("KAFKA-8649",),
)
@of_owning("streams/shared-while-probing", "268-43", grade=Grade.INFO)
def shared_while_probing(history: History) -> Iterator[Violation]:
    """Threads of one instance get the same partitions during version probing."""
    for round, leader, first, second in _shared(history):
        if leader.bound("268-43") and round.futures and first.process == second.process:
            yield _shared_violation(round, first, second)


def _shared(history: History) -> Iterator[tuple[trace.Round, trace.Life, Share, Share]]:
    """Members with a common task or partition."""
    for round, leader in trace.led(history):
        for first, second in combinations(shares(round, leader), 2):
            if first.active & second.active or _read_twice(first, second):
                yield round, leader, first, second


def _read_twice(first: Share, second: Share) -> set[Partition]:
    return {*first.given.sent.partitions} & {*second.given.sent.partitions}


def _shared_violation(round: trace.Round, first: Share, second: Share) -> Violation:
    both = first.active & second.active
    what = listed(both) if both else listed_partitions(sorted(_read_twice(first, second)))
    why = f"{first.name} and {second.name} both get {what} in {round.where}"
    at = (round.at, first.given.at, second.given.at)
    return Violation(why, tuple(dict.fromkeys(at)), f"{what} once", "twice", shape=("two owners", "one generation"))


class Ownership(NamedTuple):
    life: trace.Life
    generation: int
    since: int


@impact(
    "A partition is added before its owner gave it up",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429",),
)
@of_owning("streams/handed-over", "268-38", "268-28")
def handed_over(history: History) -> Iterator[Violation]:
    """No member adds a partition that a running member has not given up."""
    owned: dict[Partition, Ownership] = {}
    for each in trace.streams_trace(history).observed:
        match each.observation.seen:
            case Took(_, generation, partitions) if each.life is not None:
                for partition in partitions:
                    had = owned.get(partition)
                    if had is not None and had.life is not each.life and had.generation != generation:
                        what = listed_partitions([partition])
                        why = (
                            f"{had.life} owns {what} since step {had.since + 1}, generation {had.generation}, and has "
                            f"not given it up; {each.life} adds it in step {each.at + 1}, generation {generation}"
                        )
                        yield Violation(why, (had.since, each.at), f"{what} in one member", "in two",
                                        shape=("two owners", "across generations"))  # fmt: skip
                    owned[partition] = Ownership(each.life, generation, each.at)
            case Gave(partitions=partitions):
                for partition in partitions:
                    if partition in owned and owned[partition].life is each.life:
                        del owned[partition]
            case Ended() | PutOut() | Died():
                owned = {partition: had for partition, had in owned.items() if had.life is not each.life}


# Every task


@impact("A task runs in no member", "stuck group", "ownership", "unread-partition", links=("KIP-268",))
@trace.streams_invariant("streams/all-owned", "268-28", "268-13", "268-31", checks=(OWNING, "streams/upgrade"))
def all_owned(history: History) -> Iterator[Violation]:
    """In a group at rest every task is active in some member."""
    todo = deployed(history)
    if not is_whole(todo):
        return
    for each in trace.stretches(history):
        if each.rests is None or not each.rests.members:
            continue
        round = trace.streams_trace(history).round(each.rests.generation)
        at = (each.last,) if round is None else (round.at, each.last)
        names = ", ".join(one.member for one in each.rests.members)
        where = f"the group of {names} is at rest in generation {each.rests.generation}"
        idle = {*todo.tasks}.difference(*(one.active for one in each.rests.members))
        if idle:
            yield Violation(f"{where}, and no member runs {listed(idle)}", at, "all tasks run", f"not {listed(idle)}",
                            shape=("idle",))  # fmt: skip
        unread = {*todo.task}.difference(*(one.partitions for one in each.rests.members))
        if unread and not idle:
            what = listed_partitions(sorted(unread))
            yield Violation(f"{where}, and no member reads {what}", at, "all partitions read", f"not {what}",
                            shape=("unread",))  # fmt: skip


@impact(
    "A member runs other tasks than it was assigned",
    "double processing",
    "atomicity",
    "double-processing",
    "unread-partition",
    links=("KAFKA-8972",),
)
@of_owning("streams/tasks-match", "268-44")
def tasks_match(history: History) -> Iterator[Violation]:
    """The task manager runs what was assigned; up to 2.3.1 it keeps its previous tasks during version probing."""
    for round, each, info in trace.processed(history):
        subscribed = round.subscribed(each.life)
        if each.given is None or subscribed is None or not each.life.bound("268-44"):
            continue
        at = (round.at, each.at)
        where = f"{each.life} in {round.where}"
        if {*each.event.partitions} != {*each.given.sent.partitions}:
            got, sent = listed_partitions(each.event.partitions), listed_partitions(each.given.sent.partitions)
            yield Violation(f"{where} was sent {sent}, and has {got}", at, sent, got, shape=("match", "partitions"))
        elif keeps_its_tasks(each.life, subscribed.info.used, info):
            if each.event.applied:
                why = f"{where} changes its version and runs {listed(set(each.event.active))} at once"
                yield Violation(why, at, "its previous tasks", "its new tasks", shape=("match", "applied"))
        elif not each.event.applied and each.life.bound("268-36") and info.used < subscribed.info.used:
            continue  # It joins again without a reason to, which streams/last-rebalance reports.
        elif {*each.event.active} != {*info.active} or not each.event.applied:
            sent, runs = listed(set(info.active)), listed(set(each.event.active) if each.event.applied else set())
            yield Violation(f"{where} was sent {sent}, and runs {runs}", at, sent, runs, shape=("match", "active"))
        elif not {task for task, _ in info.standby} <= {*each.event.standby}:
            sent, keeps = listed({task for task, _ in info.standby}), listed(set(each.event.standby))
            why = f"{where} was sent {sent} as standbys, and keeps {keeps}"
            yield Violation(why, at, sent, keeps, shape=("match", "standby"))


def keeps_its_tasks(life: trace.Life, used: int, info: AssignmentInfo) -> bool:
    """Does it rejoin before it processes its tasks (KAFKA-8972)?"""
    if not life.bound("268-30") or info.used < trace.FIRST_PROBED:
        return False
    lowers = info.supported < used if life.bound("268-36") else info.used < used
    return lowers or (life.bound("268-35") and info.supported > used)


@impact("Tasks do not match the assigned partitions", "double processing", "layout", "wrong-data")
@of_owning("streams/pairs", "268-51", "268-28")
def pairs(history: History) -> Iterator[Violation]:
    """Active tasks correspond to partitions: one for each, in the order of topics and partition numbers."""
    todo = deployed(history)
    for round, leader in trace.led(history):
        for each in shares(round, leader):
            partitions = by_topic(each.given.sent.partitions)
            wanted = [_task(todo, one, each.info) for one in partitions]
            if [*each.info.active] != wanted:
                got = ", ".join(map(str, each.info.active)) or "none"
                where = f"{each.name} is given {listed_partitions(partitions)} with tasks {got} in {round.where}"
                meant = ", ".join("no task at all" if one is None else str(one) for one in wanted) or "none"
                how = "number" if len(wanted) != len(each.info.active) else "order"
                yield Violation(where, (round.at, each.given.at), meant, got, shape=("pairs", how))


def _task(todo: Work, partition: Partition, info: AssignmentInfo) -> TaskId | None:
    """The task that reads the partition; below version 10 a task id has no topology name."""
    task = todo.task.get(partition)
    return task if task is None or info.used >= 10 else task._replace(topology=None)


@impact(
    "Topics of different sizes are joined, and records find no partner",
    "wrong data",
    "answers",
    "wrong-data",
    links=("KAFKA-18613",),
)
@of_placing("streams/even-topics", "268-57")
def even_topics(history: History) -> Iterator[Violation]:
    """Co-partitioned topics of different sizes are an error and not assigned: a record would not find its partner."""
    todo, sizes = (
        deployed(history),
        {each.name: each.partitions for each in trace.streams_trace(history).deployed.topics},
    )
    ever = False
    for round, leader in trace.led(history):
        if leader.release == FUTURE:
            continue  # No release defines its rules.
        given = {partition for each in shares(round, leader) for partition in each.given.sent.partitions}
        ever |= bool(given)
        for topics in (
            group for each in trace.streams_trace(history).deployed.topology.subtopologies for group in each.copartition
        ):
            joined = sorted(({*topics} & sizes.keys()) - todo.repartition)
            least = min((sizes[each] for each in joined), default=0)
            alone = [(topic, number) for topic, number in sorted(given) if topic in joined and number >= least]
            if alone:
                what = listed_partitions(alone)
                reported = ", ".join(f"{each} has {sizes[each]}" for each in joined)
                why = f"{leader} assigns {what} without a partner in {round.where}: {reported} partitions"
                yield Violation(why, (round.at,), "an error", what, shape=("uneven", "assigned"))
            if not ever and len({sizes[each] for each in joined}) > 1 and _are_assigned(round):
                why = f"{leader} makes assignments in {round.where} without an error, although the sizes differ"
                yield Violation(why, (round.at, round.given[0].at), "an error", "none", shape=("uneven", "unnoticed"))


def _are_assigned(round: trace.Round) -> bool:
    """Did all members get an assignment without an error?"""
    return bool(round.given) and all(each.info is not None and not each.info.error for each in round.given)


# Standbys and hosts


@impact(
    "Tasks lack standbys, or have them in the same instance", "trivia", "answers", "unfair-load", links=("KIP-441",)
)
@of_placing("streams/standbys", "268-51", "268-58")
def standbys(history: History) -> Iterator[Violation]:
    """Each task with state has the configured number of standbys if there are enough instances, never on its own one.

    From 2.6.0 on there may be more: an instance that has not caught up with a task warms up first (KIP-441).
    """
    todo, copies = deployed(history), trace.streams_trace(history).deployed.topology.standbys
    if not is_whole(todo):
        return
    at_rest = {
        each.rests.generation for each in trace.stretches(history) if each.rests is not None and each.rests.members
    }
    for round, leader in trace.led(history):
        found = shares(round, leader)
        yield from _misplaced(round, found, todo)
        if round.number not in at_rest or round.futures or len(found) != len(round.members):
            continue
        instances = {each.process for each in found}
        wanted = min(copies, len(instances) - 1)
        warm = WARM_UPS if trace.is_among(leader.release, WARMS_UP) else 0
        for task in sorted(todo.stateful):
            keeping = [each for each in found if any(one == task for one, _ in each.info.standby)]
            warm -= max(0, len(keeping) - wanted)
            if len(keeping) < wanted or warm < 0:
                few = len(keeping) < wanted
                names = " and ".join(each.name for each in keeping) or "no member"
                keep = "have" if len(keeping) > 1 else "has"
                why = f"{names} {keep} a standby of {task} in {round.where}, of {len(instances)} instances"
                yield Violation(why, (round.at,), f"{wanted} standbys", str(len(keeping)),
                                shape=("standbys", "few" if few else "many"))  # fmt: skip


def _misplaced(round: trace.Round, found: list[Share], todo: Work) -> Iterator[Violation]:
    runs = {task: each for each in found for task in each.active}
    for each in found:
        at = tuple(dict.fromkeys((round.at, each.given.at)))
        for task, partitions in each.info.standby:
            owner = runs.get(task)
            if owner is not None and owner.process == each.process:
                why = f"{each.name} gets a standby of {task}, which {owner.name} of its instance runs, in {round.where}"
                yield Violation(why, at, "another instance", "the same", shape=("standbys", "where it runs"))
            reads = todo.partitions.get(task, partitions)
            if {*partitions} != {*reads}:
                got = listed_partitions(partitions)
                why = f"{each.name} gets a standby of {task} with {got} in {round.where}"
                yield Violation(why, at, listed_partitions(reads), got, shape=("standbys", "partitions"))


@impact("Tasks without state have standbys, which copy nothing", "trivia", "answers", "unfair-load")
@of_placing("streams/idle-standbys", "268-58", grade=Grade.INFO)
def idle_standbys(history: History) -> Iterator[Violation]:
    """A task without state has no standbys: there is nothing to copy."""
    todo = deployed(history)
    for round, leader in trace.led(history):
        for each in shares(round, leader) if leader.bound("268-58") else ():
            for task, _ in each.info.standby:
                if task in todo.partitions and task not in todo.stateful:
                    why = f"{each.name} gets a standby of {task}, which has no state, in {round.where}"
                    at = tuple(dict.fromkeys((round.at, each.given.at)))
                    yield Violation(why, at, "no standby", str(task), shape=("standbys", "no state"))


@impact(
    "The host map is wrong, and queries go to the wrong instance",
    "wrong data",
    "layout",
    "stale-view",
    links=("KAFKA-3914",),
)
@of_placing("streams/hosts", "268-03", "268-02", "268-16", "268-59")
def hosts(history: History) -> Iterator[Violation]:
    """The host map has every end point with the partitions of its members.

    It may also have partitions that an end point is waiting for, because another member still owns them.
    """
    for round, leader in trace.led(history):
        if round.futures and leader.bound("268-30"):
            continue  # Then no tasks are assigned (268-29).
        found = shares(round, leader)
        if len(found) != len(round.members) or any(each.info.used < 2 for each in found):
            continue
        owned = {partition for one in round.members for partition in one.joining.owned}
        running = _by_host((each.end_point, each.given.sent.partitions) for each in found)
        standing = _by_host((each.end_point, read) for each in found for _, read in each.info.standby)
        standing = {**dict.fromkeys(running, frozenset[Partition]()), **standing}
        for each in found:
            if each.process == UNKNOWN and trace.is_draft(leader.release):
                continue  # Its assignment is empty (268-60).
            reported = {name: frozenset(partitions) for name, partitions in each.info.hosts}
            yield from _mapped(round, each, reported, running, owned, "active")
            if all(one.info.used >= STANDBYS_BY_HOST for one in found) and not owned:
                reported = {name: frozenset(partitions) for name, partitions in each.info.standby_hosts}
                yield from _mapped(round, each, reported, standing, frozenset(), "standby")


Map: TypeAlias = Mapping[str, frozenset[Partition]]


def _by_host(given: Iterable[tuple[str | None, Partitions]]) -> Map:
    found: dict[str, frozenset[Partition]] = {}
    for end_point, partitions in given:
        if end_point is not None:
            found[end_point] = found.get(end_point, frozenset()) | {*partitions}
    return found


def _mapped(
    round: trace.Round, share: Share, reported: Map, meant: Map, waits: Collection[Partition], what: str
) -> Iterator[Violation]:
    """Compares host maps; ``waits``: partitions that a member owns and that may be withheld from their new owner."""
    at = tuple(dict.fromkeys((round.at, share.given.at)))
    for name in sorted(reported.keys() | meant.keys()):
        got, wanted = reported.get(name, frozenset()), meant.get(name, frozenset())
        lacks, more = wanted - got, {each for each in got - wanted if each not in waits}
        if name not in reported and (wanted or what == "active"):
            how, message = "missing", f"gets a host map without {name}"
        elif name not in meant:
            how, message = "unknown", f"gets a host map with {name}, which is not an end point of the group"
        elif lacks or more:
            how = "less" if lacks else "more"
            message = f"gets a host map in which {name} has {listed_partitions(sorted(got))} as {what} tasks"
        else:
            continue
        wants = listed_partitions(sorted(wanted)) if name in meant else f"no {name}"
        has = listed_partitions(sorted(got)) if name in reported else f"no {name}"
        yield Violation(f"{share.name} {message} in {round.where}", at, wants, has,
                        shape=("hosts", what, how))  # fmt: skip
