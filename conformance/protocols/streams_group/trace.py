"""The trace of a streams group: what the requests of clients and their answers say of it, step by step.

A client may run a task from the response that assigns it until the first accepted heartbeat whose list of active tasks
lacks it, until the client joins again or leaves, or until the time after which it has to treat itself as fenced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.model import AWAY, LEAVING, LEFT, TOPICS, Memory, sent_epoch
from kipcheck.conformance.protocols.consumer_group.ops import Answered as Remembered
from kipcheck.conformance.protocols.declare.real_time import stated_settings
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload
from kipcheck.conformance.protocols.streams_group.model import (
    DEFAULT,
    UNKNOWN_MEMBER_ID,
    Config,
    owned_standby,
    owned_tasks,
)
from kipcheck.conformance.protocols.streams_group.ops import (
    OPERATIONS,
    REBALANCE_MS,
    Beat,
    Consume,
    Described,
    DescribedMember,
    Event,
    Pass,
    Tasks,
)
from kipcheck.conformance.protocols.streams_group.topology import (
    STATEFUL,
    WRONG,
    internal_topics,
    missing_sources,
    sizes,
)

OTHER_TOPICS: Final = "topics"
"""The key in the settings of a coordinator whose topologies are not those of conversations: the number of tasks of each
subtopology whose topics exist."""
Form: TypeAlias = Literal["none", "streams", "consumer", "unknown"]


NOTHING_GIVEN: Final = Memory("")


@dataclass(frozen=True, slots=True)
class Client:
    """What is known of a client from its heartbeats and their responses."""

    name: str
    memory: Memory
    """With active tasks."""
    standbys: Memory = NOTHING_GIVEN
    """With standby tasks."""
    member: bool = False
    expired: bool = False
    """It may have been removed because it was silent, or did not revoke in time."""
    away: bool = False
    """It left for a while."""
    kept: Tasks = ()
    """The active tasks that it had then, until its session has ended."""
    previous: int | None = None
    """The epoch before its current one."""
    unused: bool = False
    """Its current epoch is new: no heartbeat of it shows that it got the response with that epoch."""
    topology_epoch: int = 0
    readable: Mapping[Partition, int] = field(default_factory=dict)
    """The tasks that it may still run, each with the step that assigned it."""
    silent_ms: int = 0
    revoking_ms: int = 0
    """The time for which it has owned tasks that it was asked to revoke."""

    @property
    def late(self) -> frozenset[Partition]:
        """The tasks that it was asked to revoke, and may still run."""
        return frozenset(self.readable) - {*self.memory.given}

    @property
    def surely(self) -> bool:
        """It is a member for certain."""
        return self.member and not self.expired and not self.away


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of the group from the answers so far."""

    form: Form = "none"
    clients: Mapping[str, Client] = field(default_factory=dict)
    topology: tuple[str, ...] = ()
    topology_epoch: int = 0
    """Both of the first member that joined."""
    created: frozenset[str] = frozenset()
    """The internal topics that the broker has created."""
    instances: Mapping[str, str] = field(default_factory=dict)
    """Instance id -> the client that joined with it last, unless it has left."""
    highest: int = 0
    """The highest epoch of the group or a member so far."""
    config: Config = DEFAULT
    topics: Mapping[str, int] = field(default_factory=lambda: TOPICS)
    """Those that exist, with their partitions; of a topology that is not one of conversations, ``OTHER_TOPICS``."""

    @property
    def is_drawn(self) -> bool:
        """Whether its topology is one of those of conversations."""
        return self.topics == TOPICS

    @property
    def missing(self) -> list[str]:
        """The source topics that do not exist. Sorted."""
        return missing_sources(self.topology) if self.is_drawn else sorted({*self.topology} - {*self.topics})

    @property
    def is_wrong(self) -> bool:
        """Whether an internal topic has a wrong number of partitions."""
        return self.is_drawn and WRONG in self.topology

    @property
    def sizes(self) -> Mapping[str, int]:
        """The number of tasks of each subtopology."""
        return sizes(self.topology) if self.is_drawn else self.topics

    @property
    def uncreated(self) -> Mapping[str, int]:
        """The internal topics that do not exist, with the numbers of partitions that they should have."""
        owed = internal_topics(self.topology) if self.is_drawn else {}
        return {name: size for name, size in owed.items() if name not in self.created}

    def has_changelog(self, task: Partition) -> bool:
        return self.is_drawn and task[0] in STATEFUL

    @property
    def tasks(self) -> Tasks:
        """All tasks of the topology; none if a topic does not exist, or has another number of partitions."""
        if self.missing or self.is_wrong or self.uncreated:
            return ()
        return tuple((each, number) for each in self.topology for number in range(self.sizes[each]))

    @property
    def members(self) -> list[Client]:
        """Those that are, or may be, in the group."""
        return [each for each in self.clients.values() if each.member]

    def without_instance(self, name: str) -> "Group":
        """A client has no instance id any more, or may have none."""
        return replace(self, instances={each: holder for each, holder in self.instances.items() if holder != name})

    def having(self, client: Client) -> "Group":
        return replace(self, clients={**self.clients, client.name: client})


@dataclass(frozen=True, slots=True)
class GroupStep(AnsweredStep[Event, Mapping[str, Any], Group]):
    """An answered step."""

    @property
    def beat(self) -> Beat:
        assert isinstance(self.request, Beat)
        return self.request

    @property
    def client(self) -> Client:
        name = self.beat.client
        return self.before.clients.get(name) or Client(name, Memory(name))

    @property
    def epoch(self) -> int:
        """The epoch in the request."""
        return sent_epoch(self.client.memory, self.beat.says, self.beat.behind)

    @property
    def owned(self) -> Tasks | None:
        """The active tasks in the request."""
        return owned_tasks(self.client.memory, self.beat)

    @property
    def owned_standby(self) -> Tasks | None:
        """The standby tasks in the request."""
        return owned_standby(self.client.standbys, self.beat)

    @property
    def answered_epoch(self) -> int:
        return int(self.answer.get("epoch", 0))

    @property
    def given(self) -> Tasks | None:
        return self._assigned("tasks")

    @property
    def given_standby(self) -> Tasks | None:
        return self._assigned("standby")

    @property
    def given_warmup(self) -> Tasks | None:
        return self._assigned("warmup")

    def _assigned(self, kind: str) -> Tasks | None:
        found = self.answer.get(kind)
        return None if found is None else _tasks(found)

    @property
    def created(self) -> Mapping[str, int]:
        """The internal topics that the broker creates after the answer, with their numbers of partitions."""
        return {name: size for name, size in self.answer.get("created") or ()}

    @property
    def statuses(self) -> tuple[str, ...]:
        return tuple(self.answer.get("statuses") or ())

    @property
    def described(self) -> Described:
        found = self.answer
        members = tuple(
            DescribedMember(
                each["client"],
                each["epoch"],
                each["topology_epoch"],
                _tasks(each["tasks"]),
                _tasks(each["target"]),
                _tasks(each.get("standby") or ()),
                _tasks(each.get("standby_target") or ()),
            )
            for each in found["members"]
        )
        return Described(
            found["state"], found["epoch"], found["assignment_epoch"], found["topology_epoch"],
            tuple(sorted(found["topology"])), members,
        )  # fmt: skip

    def known_after(self) -> Group:
        known = self.before
        match self.request:
            case Pass(ms):
                return replace(known, clients={name: _aged(each, ms, known) for name, each in known.clients.items()})
            case Consume():
                return replace(known, form="consumer") if self.accepted and known.form == "none" else known
            case Beat():
                return self._after_beat()
            case _:
                epoch = self.described.epoch if self.accepted else 0
                return replace(known, highest=max(known.highest, epoch))

    def _after_beat(self) -> Group:
        known, client = self.before, self.client
        if not self.accepted:
            gone = self.epoch > 0 and self.error == UNKNOWN_MEMBER_ID and self.beat.instance is None
            removed = Client(client.name, client.memory, client.standbys)
            return known.without_instance(client.name).having(removed) if gone else known
        if self.epoch == 0 and known.form != "streams":
            topology, epoch = tuple(sorted(self.beat.topology or ())), self.beat.topology_epoch
            known = replace(known, form="streams", topology=topology, topology_epoch=epoch)
        if self.epoch == 0 and self.beat.instance is not None:
            known = self._taken_over(known, self.beat.instance)
        if self.epoch == LEAVING or (self.epoch == 0 and self.beat.instance is None and not client.surely):
            known = known.without_instance(client.name)
        known = replace(known, created=known.created | {*self.created})
        return replace(known.having(self._client_after()), highest=max(known.highest, self.answered_epoch))

    def _taken_over(self, known: Group, instance: str) -> Group:
        """The client has the instance; its former process is no member any more."""
        former = known.clients.get(known.instances.get(instance, self.client.name))
        if former is not None and former.name != self.client.name:
            known = known.having(Client(former.name, former.memory, former.standbys))
        known = known.without_instance(self.client.name)
        return replace(known, instances={**known.instances, instance: self.client.name})

    def _client_after(self) -> Client:
        before, joins = self.client, self.epoch == 0
        epoch = self.epoch if self.epoch in LEFT else self.answered_epoch
        memory = before.memory.after(Remembered(before.name, epoch, self.given))
        standbys = before.standbys.after(Remembered(before.name, epoch, self.given_standby))
        if self.epoch in LEFT:
            away = self.epoch == AWAY
            return Client(
                before.name, memory, standbys, away, before.expired and away, away,
                before.memory.given if before.surely and away else (), topology_epoch=before.topology_epoch,
                silent_ms=before.silent_ms,
            )  # fmt: skip
        owned = () if joins else self.owned
        known = {**dict.fromkeys(before.memory.given, self.op.index), **before.readable}
        kept = before.readable if owned is None else {each: known[each] for each in owned if each in known}
        readable = {**dict.fromkeys(self.given or (), self.op.index), **kept}
        newer = before.member and memory.epoch != before.memory.epoch
        after = Client(
            before.name, memory, standbys, True, previous=before.memory.epoch if newer else before.previous,
            unused=newer and not joins, readable=readable,
            topology_epoch=self.beat.topology_epoch if joins else before.topology_epoch,
        )  # fmt: skip
        # Those that it is asked to revoke next have a time of their own.
        return replace(after, revoking_ms=before.revoking_ms) if after.late & before.late else after


def _tasks(found: Any) -> Tasks:
    return tuple(sorted((subtopology, number) for subtopology, number in found))


def _aged(client: Client, ms: int, known: Group) -> Client:
    silent = client.silent_ms + ms
    revoking = client.revoking_ms + ms if client.expired or client.late else 0
    over = silent >= known.config.session_ms or revoking >= REBALANCE_MS
    readable = {} if over else client.readable
    return replace(
        client, expired=client.expired or over, readable=readable, kept=() if over else client.kept, silent_ms=silent,
        revoking_ms=revoking,
    )  # fmt: skip


@cached_on_history
def group_steps(history: History) -> tuple[GroupStep, ...]:
    """The steps up to the first one without an answer: after that the state of the group is not known."""

    def read(op: Op, known: Group) -> GroupStep:
        return GroupStep(op, OPERATIONS.event_of(op.step), payload(op), known)

    stated = dict(stated_settings(history))
    topics = dict(stated.pop(OTHER_TOPICS, TOPICS))
    begun = Group(config=replace(DEFAULT, **stated), topics=topics)
    return tuple(each for each in answered_steps(history, begun, read) if not isinstance(each.request, Pass))


def beats(history: History) -> tuple[GroupStep, ...]:
    """The heartbeats among them."""
    return tuple(each for each in group_steps(history) if isinstance(each.request, Beat))


def describes(history: History) -> tuple[GroupStep, ...]:
    """The accepted describes of a group that some client has joined."""
    return tuple(
        each for each in group_steps(history)
        if each.verb == "streams-group-describe" and each.accepted and each.before.form == "streams"
    )  # fmt: skip
