"""Holds the laws of assignments to the assignment that a group has now.

What the coordinator describes is put into the words of a conversation that the laws read: the leader of a classic group
was asked for the assignment, the members of a group of KIP-848 were answered with theirs. Only laws whose premise a
description shows are asked.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.live.inspect.cluster import Topics
from kipcheck.conformance.live.inspect.group import (
    EMPTY_STATES,
    STABLE,
    ConsumerGroup,
    ConsumerMember,
    Group,
    Inspectable,
    Partitions,
    ShareGroup,
    ShareMember,
    StreamsGroup,
    Unreadable,
    claims,
    embedded,
    streams_subscription,
    task_names,
)
from kipcheck.conformance.live.recording.embedded import event_of
from kipcheck.conformance.protocols.assignment import ops as assigning
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.client.events import RecordDamaged
from kipcheck.conformance.protocols.client.ops import OPERATIONS as CLIENTS, Pass
from kipcheck.conformance.protocols.consumer_group.ops import OPERATIONS as HEARTBEATS, Answered, Beat
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, Invariant
from kipcheck.conformance.protocols.declare.real_time import SETTINGS
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.share_group import ops as share_group
from kipcheck.conformance.protocols.share_group.ops import OPERATIONS as SHARES
from kipcheck.conformance.protocols.streams import ops as streams_ops
from kipcheck.conformance.protocols.streams.blobs import latest, releases_with_latest
from kipcheck.conformance.protocols.streams.model.members import STREAM, SubscriptionInfo
from kipcheck.conformance.protocols.streams_group import ops as streams_group
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS as STREAMS_GROUPS
from kipcheck.conformance.protocols.streams_group.trace import OTHER_TOPICS
from kipcheck.conformance.wire.embedded import CONSUMER, Assignment, Subscription, damage, unread

CHECK: Final = "inspect"
ANY_ASSIGNOR: Final = ("assign/nothing-else", "assign/one-owner")
"""Of an assignor that kipcheck does not know: it may leave partitions without a member on purpose."""
OF_ASSIGNORS: Final = ("assign/everybody", *ANY_ASSIGNOR, "assign/none-idle")
WITH_ALL_TOPICS: Final = ("assign/balance", "assign/by-rule", "assign/static-order", "assign/range-alike")
"""Of assignors too, where all topics that the leader saw are there still."""
BETWEEN_LIBRARIES: Final = "assign/by-rule"
OF_ANY_STREAMS: Final = ("assign/one-owner",)
"""Where its user data is not judged. Members may be assigned topics that were created after they subscribed."""
EMBEDS: Final = "client/embeds-strictly"
"""Of every group of consumers."""
OF_STREAMS: Final = ("streams/one-owner", "streams/decodable", "streams/lowest-version", "streams/hosts")
OF_HEARTBEATS: Final = ("consumer-group/one-owner", "consumer-group/co-subscription")
OF_SHARE_GROUPS: Final = ("share-group/epochs-rise", "share-group/co-subscription")
OF_STREAMS_GROUPS: Final = (
    "streams-group/one-owner",
    "streams-group/group-epoch-rises",
    "streams-group/empty-without-members",
)
WITH_ALL_TASKS: Final = ("streams-group/known-tasks", "streams-group/stable-is-complete")
"""Where all topics that tasks read are there."""
NOT_THERE: Final = "not there"
"""The shape of a violation that is about the topics of the model, and not of this cluster."""
GENERATION: Final = 1
"""Stands for the generation where it is not known."""


@dataclass(frozen=True, slots=True)
class Broken:
    law: Invariant
    violation: Violation
    damage: RecordDamaged | None = None
    """The event of a damaged record, from which its byte map is made."""


@dataclass(frozen=True, slots=True)
class Judged:
    laws: tuple[Invariant, ...] = ()
    """Those that were asked."""
    broken: tuple[Broken, ...] = ()
    notes: tuple[str, ...] = ()
    """What is no violation, and worth a look."""
    unjudged: str = ""
    """Why the group, which has members, was not judged; empty: it was, or has none."""


def topics_of(group: Inspectable) -> list[str]:
    """The topics that members of the group subscribe to or are assigned."""
    if isinstance(group, StreamsGroup):
        return sorted(group.topics)
    found: set[str] = set()
    for each in group.members:
        if isinstance(each, ShareMember):
            found |= {*each.topics, *(topic for topic, _ in each.assigned)}
            continue
        if isinstance(each, ConsumerMember):
            found |= {*each.topics, *(topic for topic, _ in (*each.assigned, *each.target))}
            continue
        if isinstance(each.subscription, Subscription):
            found |= {*each.subscription.topics}
        if isinstance(each.assignment, Assignment):
            found |= {topic for topic, _ in each.assignment.partitions}
    return sorted(found)


def judged(group: Inspectable, topics: Topics) -> Judged:
    """``topics``: those of ``topics_of`` that exist now."""
    if not group.members:
        return Judged()
    if isinstance(group, StreamsGroup):
        return _of_streams_group(group, topics)
    if group.state in EMPTY_STATES:
        return Judged()
    if isinstance(group, ShareGroup):
        return _of_share_group(group, topics)
    if isinstance(group, ConsumerGroup):
        return _of_heartbeats(group)
    if group.state != STABLE:
        return Judged(
            unjudged=f"it is not {STABLE}, but {group.state}: its subscriptions and assignments are not described"
        )
    if group.protocol_type != CONSUMER:
        return Judged(unjudged=f"its protocol type is {group.protocol_type or 'empty'}, and not {CONSUMER}")
    unread = [f"{each.id}: its subscription is not described" for each in group.members if each.subscription is None]
    unread += [f"{each.id}: {one.why}" for each in group.members for one in (each.subscription, each.assignment)
              if isinstance(one, Unreadable)]  # fmt: skip
    if unread:
        return _with_bytes(group, Judged(unjudged="; ".join(unread)))
    found = _of_leader(group, topics)
    return _with_bytes(group, _with_streams(group, found) if group.protocol == STREAM else found)


# What members wrote


def _with_bytes(group: Group, found: Judged) -> Judged:
    """``found``, and whether what members wrote has all fields of its version."""
    broken: list[Broken] = []
    notes: dict[str, None] = {}
    places = [*embedded(group)]
    if not places:
        return found
    for place in places:
        wrong = damage(place)
        if wrong is None:
            notes |= dict.fromkeys(filter(None, [unread(place)]))
            continue
        event = event_of(wrong)
        history = _history(Role.CLIENT, [(CLIENTS.step_of(Pass(0)), {"actions": [event]})])
        broken += [replace(each, damage=event) for each in _broken([INVARIANTS[EMBEDS]], history)]
    laws = (INVARIANTS[EMBEDS], *found.laws)
    return replace(found, laws=laws, broken=(*broken, *found.broken), notes=(*found.notes, *notes))


# The leader of a classic group


def _of_leader(group: Group, topics: Topics) -> Judged:
    shares = {each.id: each.assignment.partitions for each in group.members if isinstance(each.assignment, Assignment)}
    sizes, notes = _sizes_then(shares.values(), topics)
    known = {topic for topic, _ in sizes}
    gone = sorted({topic for each in shares.values() for topic, _ in each} - known)
    if gone:
        notes.append(f"{', '.join(gone)}: assigned, and not there any more, or the user may not describe it")
    step = _asked(group, sizes, topics)
    answer = [
        {"id": id, "partitions": [[*each] for each in found if each[0] in known], "userData": None}
        for id, found in shares.items()
    ]
    names: tuple[str, ...] = ANY_ASSIGNOR
    if group.protocol == STREAM:
        names = OF_ANY_STREAMS
    elif group.protocol in assignment.ASSIGNORS:
        names = OF_ASSIGNORS if gone else (*OF_ASSIGNORS, *WITH_ALL_TOPICS)
    else:
        notes.append(f"kipcheck does not know the assignor {group.protocol}: only owners and topics are judged")
    history = _history(Role.LEADER, [(step, {"assignment": answer})])
    laws = [_of_one_group(each) for each in names if INVARIANTS[each].applies_to(history.case, step)]
    broken = (_without_step(each, group.protocol) for each in _broken(laws, history))
    return Judged(tuple(laws), tuple(broken), tuple(notes))


def _of_one_group(id: str) -> Invariant:
    """That libraries agree is a MUST where several of them may lead, which one group does not show."""
    law = INVARIANTS[id]
    return replace(law, grade=Grade.SHOULD) if id == BETWEEN_LIBRARIES else law


def _without_step(broken: Broken, assignor: str) -> Broken:
    """Texts of these laws begin with the assignor and the step, of which there is one here."""
    why = broken.violation.why.removeprefix(f"{assignor}, step 1: ")
    return Broken(broken.law, replace(broken.violation, why=why))


def _sizes_then(shares: Iterable[Partitions], topics: Topics) -> tuple[list[tuple[str, int]], list[str]]:
    """The sizes that the leader saw, as far as the assignment shows: topics grow, and leaders see it later."""
    highest: dict[str, int] = {}
    for each in shares:
        for topic, number in each:
            highest[topic] = max(number, highest.get(topic, -1))
    sizes: list[tuple[str, int]] = []
    notes: list[str] = []
    for topic, partitions in topics.items():
        size = len(partitions)
        seen = highest.get(topic, -1) + 1
        if seen < size:
            last = f"{topic}-{seen}" + (f" to {topic}-{size - 1}" if seen + 1 < size else "")
            notes.append(f"{last}: assigned to no member. If they are new, the leader sees them after "
                         "metadata.max.age.ms, 5 minutes by default, and rebalances")  # fmt: skip
        sizes.append((topic, min(seen, size)))
    return sizes, notes


def _asked(group: Group, sizes: Iterable[tuple[str, int]], topics: Topics) -> Step:
    members = []
    for each in group.members:
        assert isinstance(each.subscription, Subscription)
        owned, generation = claims(group, each.subscription)
        found = assignment.Member(
            each.id, each.subscription.topics, owned, generation, each.instance, each.subscription.rack
        )
        members.append(found)
    has_racks = any(each.rack for each in members)
    listed = [assignment.Topic(name, size, tuple(topics[name][:size]) if has_racks else None) for name, size in sizes]
    return assigning.assign(group.protocol, listed, members)


# Kafka Streams


def _with_streams(group: Group, found: Judged) -> Judged:
    """The user data of Streams, where it is known who leads and all versions are known."""
    infos = {each.id: streams_subscription(group, each) for each in group.members}
    newest = latest(None)
    unread = [f"{id}: {each.why}" for id, each in infos.items() if isinstance(each, Unreadable)]
    if unread:
        return Judged(found.laws, found.broken, found.notes, "; ".join(unread))
    why = ""
    if group.leader is None:
        why = f"who leads is not known ({group.leader_unknown})"
    elif any(isinstance(each, SubscriptionInfo) and max(each.latest, each.used) > newest for each in infos.values()):
        why = f"kipcheck knows metadata versions up to {newest}"
    if why:
        return Judged(
            found.laws, found.broken, (*found.notes, f"metadata versions and host maps are not judged: {why}")
        )
    laws = [INVARIANTS[each] for each in OF_STREAMS]
    history = _of_streams(group, infos)
    return Judged(tuple(laws), tuple(_broken(laws, history)), found.notes)


def _of_streams(group: Group, infos: Mapping[str, Any]) -> History:
    assert group.leader is not None
    generation = GENERATION if group.generation is None else group.generation
    began: list[streams_ops.ObservedEvent] = []
    joined: list[streams_ops.JoinMetadata] = []
    sent: list[streams_ops.ObservedEvent] = []
    for each in group.members:
        info = infos[each.id]
        assert isinstance(info, SubscriptionInfo) and isinstance(each.subscription, Subscription)
        high = max(info.latest, info.used)
        began.append(streams_ops.Began(each.id, release_of(high), None, high, info.used))
        owned = each.subscription.owned
        joined.append(
            streams_ops.JoinMetadata(each.id, each.subscription.user_data, owned, each.subscription.version > 0)
        )
        if isinstance(each.assignment, Assignment):
            user_data = each.assignment.user_data
            sent.append(streams_ops.Sent(generation, group.leader, each.id, each.assignment.partitions, user_data))
    events = [*began, streams_ops.Formed(generation, group.leader, tuple(joined)), *sent]
    return _history(
        Role.OPERATOR_TOOL,
        [(streams_ops.OPERATIONS.step_of(streams_ops.Deploy()), streams_ops.OPERATIONS.answer_of(events))],
    )


def release_of(version: int) -> str:
    """The newest release whose latest metadata version this is. Errors: LookupError."""
    found = releases_with_latest(version)
    if not found:
        raise LookupError(f"no release has metadata version {version} as its latest")
    return found[-1]


# Groups of KIP-848


def _of_heartbeats(group: ConsumerGroup) -> Judged:
    settled = group.state == STABLE
    talk = []
    for each in group.members:
        step = HEARTBEATS.step_of(Beat(each.id, Says.JOIN, topics=each.topics, owned="none"))
        answer = HEARTBEATS.answer_of([Answered(each.id, max(each.epoch, 1), each.assigned)])
        talk.append((step, answer))
    by_name = settled and not any(each.regex for each in group.members)
    laws = [INVARIANTS[each] for each in (OF_HEARTBEATS if by_name else OF_HEARTBEATS[:1])]
    return Judged(tuple(laws), _broken_here(laws, talk), (*_reconciling(group), *_undescribed(group)))


def _undescribed(group: ConsumerGroup) -> Iterator[str]:
    classic = [each.id for each in group.members if each.is_classic]
    if classic:
        yield f"the bytes that {', '.join(classic)} wrote with the classic protocol are not described, and not judged"


def _reconciling(group: ConsumerGroup) -> Iterator[str]:
    for member in group.members:
        yield from _moves(member.id, member.assigned, member.target, assignment.partition_names)


def _moves(
    id: str, assigned: Iterable[tuple[str, int]], target: Iterable[tuple[str, int]],
    names: Callable[[Sequence[tuple[str, int]]], str], what: str = "",
) -> Iterator[str]:  # fmt: skip
    """What a member has not got yet, and has not given up yet."""
    if waits := sorted({*target} - {*assigned}):
        yield f"{id} waits for {what}{names(waits)}"
    if gives := sorted({*assigned} - {*target}):
        yield f"{id} has to give up {what}{names(gives)}"


# Share groups of KIP-932


def _of_share_group(group: ShareGroup, topics: Topics) -> Judged:
    """In the words of a conversation: each member has joined, and was answered with its partitions."""
    settled = group.state == STABLE
    talk = []
    for each in group.members:
        answer = SHARES.answer_of([Answered(each.id, each.epoch, each.assigned)])
        talk.append((SHARES.step_of(share_group.Beat(each.id, Says.JOIN, topics=each.topics)), answer))
    laws = [INVARIANTS[each] for each in (OF_SHARE_GROUPS if settled else OF_SHARE_GROUPS[:1])]
    return Judged(tuple(laws), _broken_here(laws, talk), tuple(_unread_here(group, topics)) if settled else ())


def _unread_here(group: ShareGroup, topics: Topics) -> Iterator[str]:
    read = {partition for member in group.members for partition in member.assigned}
    names = sorted({topic for member in group.members for topic in member.topics})
    wanted = [(name, number) for name in names for number in range(len(topics.get(name, ())))]
    if unread := [each for each in wanted if each not in read]:
        yield f"no member has {assignment.partition_names(unread)}. New partitions are assigned soon"
    if missing := [name for name in names if name not in topics]:
        yield f"{', '.join(missing)}: subscribed to, and not there, or the user may not describe it"


# Streams groups of KIP-1071


def _of_streams_group(group: StreamsGroup, topics: Topics) -> Judged:
    """In the words of a conversation: each member has joined, and was answered with its tasks; then the group was
    described. A subtopology stands for the topics that it reads."""
    missing = sorted(group.topics - topics.keys())
    sizes, notes = _tasks_then(group, topics)
    topology, epoch = tuple(sorted(each.id for each in group.subtopologies)), group.topology_epoch or 0
    talk: list[tuple[Step, Mapping[str, Any]]] = []
    for each in group.members:
        step = STREAMS_GROUPS.step_of(
            streams_group.Beat(each.id, Says.JOIN, topology=topology, topology_epoch=epoch, owned="none")
        )
        answered = streams_group.Answered(each.id, max(each.epoch, 0), each.assigned.active)
        talk.append((step, STREAMS_GROUPS.answer_of([answered])))
    first, answer = talk[0]
    talk[0] = first, {**answer, SETTINGS: {OTHER_TOPICS: sizes}}
    members = [
        streams_group.DescribedMember(
            each.id, each.epoch, each.topology_epoch, each.assigned.active, each.target.active
        )
        for each in group.members
    ]
    described = streams_group.Described(
        group.state, group.epoch, group.assignment_epoch, epoch, topology, tuple(members)
    )
    talk.append((STREAMS_GROUPS.step_of(streams_group.Describe()), STREAMS_GROUPS.answer_of([described])))
    laws = [INVARIANTS[each] for each in (OF_STREAMS_GROUPS if missing else (*OF_STREAMS_GROUPS, *WITH_ALL_TASKS))]
    broken = _broken(laws, _history(Role.COORDINATOR, talk))
    return Judged(tuple(laws), tuple(broken), (*notes, *_notes_of_streams(group, missing)))


def _tasks_then(group: StreamsGroup, topics: Topics) -> tuple[dict[str, int], list[str]]:
    """The number of tasks of each subtopology whose topics are there, as far as the assignments show: topics grow, and
    coordinators see it with a later heartbeat."""
    sizes: dict[str, int] = {}
    notes: list[str] = []
    for each in group.subtopologies:
        if not {*each.sources} <= topics.keys():
            continue
        size = max((len(topics[topic]) for topic in each.sources), default=0)
        given = [task for member in group.members for task in (*member.assigned.active, *member.target.active)]
        seen = 1 + max((number for subtopology, number in given if subtopology == each.id), default=-1)
        sizes[each.id] = min(seen, size)
        if seen < size and group.state == STABLE:
            unseen = task_names(tuple((each.id, number) for number in range(seen, size)))
            notes.append(f"tasks that no member has: {unseen}. If their partitions are new, they are assigned soon")
    return sizes, notes


def _notes_of_streams(group: StreamsGroup, missing: Sequence[str]) -> Iterator[str]:
    if missing:
        yield f"{', '.join(missing)}: read, and not there, or the user may not describe it"
    for each in group.members:
        yield from _moves(each.id, each.assigned.active, each.target.active, task_names, "active tasks ")
        if group.topology_epoch is not None and each.topology_epoch < group.topology_epoch:
            yield f"{each.id} has topology epoch {each.topology_epoch}, the group {group.topology_epoch}"


# All


def _history(role: Role, talk: Sequence[tuple[Step, Mapping[str, Any]]]) -> History:
    case = Case(CHECK, str(APACHE), role, tuple(step for step, _ in talk))
    ops = tuple(Op(n, step, Replied(tuple(answer.items())), 1) for n, (step, answer) in enumerate(talk))
    return History(case, CHECK, ops)


def _broken_here(laws: Iterable[Invariant], talk: Sequence[tuple[Step, Mapping[str, Any]]]) -> tuple[Broken, ...]:
    """Of a conversation of members with their coordinator, without what is about the topics of the model."""
    broken = _broken(laws, _history(Role.COORDINATOR, talk))
    return tuple(each for each in broken if NOT_THERE not in each.violation.shape)


def _broken(laws: Iterable[Invariant], history: History) -> Iterator[Broken]:
    assert CHECKS, "importing the checks declares the invariants"
    for law in laws:
        yield from (Broken(law, each) for each in law.search(history))
