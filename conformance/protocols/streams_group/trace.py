"""The trace of a streams group: what the requests of clients and their answers say of it, step by step.

A client may run a task from the response that assigns it until the first accepted heartbeat whose list of active tasks
lacks it, until the client joins again or leaves, or until the time after which it has to treat itself as fenced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.declare.real_time import stated_settings
from kipcheck.conformance.protocols.declare.trace import answered_steps, payload
from kipcheck.conformance.protocols.reconciled import log_ops, terms
from kipcheck.conformance.protocols.reconciled.log_laws import served
from kipcheck.conformance.protocols.reconciled.trace import HeartbeatStep, KnownClient, partitions
from kipcheck.conformance.protocols.streams_group import ops, topology as streams_group_topology
from kipcheck.conformance.protocols.streams_group.heartbeat import NO_ENDPOINTS
from kipcheck.conformance.protocols.streams_group.model import DEFAULT, STABLE, Config, owned_tasks
from kipcheck.conformance.protocols.streams_group.state import Owned
from kipcheck.conformance.protocols.streams_group.topology import sizes

OTHER_TOPICS: Final = "topics"
"""The key in the settings of a coordinator whose topologies are not those of conversations: the number of tasks of each
subtopology whose topics exist."""
Form: TypeAlias = Literal["none", "streams", "consumer", "unknown"]


NOTHING_GIVEN: Final = terms.Memory("")


@dataclass(frozen=True, slots=True)
class Client(KnownClient):
    """``memory`` has active tasks."""

    standbys: terms.Memory = NOTHING_GIVEN
    """With standby tasks."""
    kept: ops.Tasks = ()
    """The active tasks that it had when it left for a while, until its session has ended."""
    topology_epoch: int = 0
    endpoint: str | None = None
    endpoint_epoch: int = NO_ENDPOINTS
    """Of the endpoint information that it has."""


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
    stable: int | None = None
    """The epoch with which a describe had the group in state Stable, while nothing has changed since; None: it had not,
    or something may have."""
    endpoint_epoch: int | None = None
    """The highest one of its endpoint information; None: it is not known, since the coordinator has read its log."""
    drops_endpoint: bool = False
    """A member joined again, and stated no endpoint: it has its former one, or none."""
    config: Config = DEFAULT
    standbys: int | None = None
    """The number of standby tasks that the group's settings state; None: those of the broker count."""
    is_set: bool = True
    """Since the settings of the group changed, a member has sent a heartbeat, at which a coordinator looks them up."""
    topics: Mapping[str, int] = field(default_factory=lambda: TOPICS)
    """Those that exist, with their partitions; of a topology that is not one of conversations, ``OTHER_TOPICS``."""

    @property
    def is_drawn(self) -> bool:
        """Whether its topology is one of those of conversations."""
        return self.topics == TOPICS

    @property
    def missing(self) -> list[str]:
        """The source topics that do not exist. Sorted."""
        return (
            streams_group_topology.missing_sources(self.topology)
            if self.is_drawn
            else sorted({*self.topology} - {*self.topics})
        )

    @property
    def is_wrong(self) -> bool:
        """Whether an internal topic has a wrong number of partitions."""
        return self.is_drawn and streams_group_topology.WRONG in self.topology

    @property
    def sizes(self) -> Mapping[str, int]:
        """The number of tasks of each subtopology."""
        return sizes(self.topology) if self.is_drawn else self.topics

    @property
    def uncreated(self) -> Mapping[str, int]:
        """The internal topics that do not exist, with the numbers of partitions that they should have."""
        owed = streams_group_topology.internal_topics(self.topology) if self.is_drawn else {}
        return {name: size for name, size in owed.items() if name not in self.created}

    def has_changelog(self, task: Partition) -> bool:
        return self.is_drawn and task[0] in streams_group_topology.STATEFUL

    @property
    def tasks(self) -> ops.Tasks:
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
class GroupStep(HeartbeatStep[ops.Event, Group]):
    """An answered step."""

    @property
    def beat(self) -> ops.Beat:
        assert isinstance(self.request, ops.Beat)
        return self.request

    @property
    def client(self) -> Client:
        name = self.beat.client
        return self.before.clients.get(name) or Client(name, terms.Memory(name))

    @property
    def owned(self) -> Owned:
        """The tasks in the request."""
        return owned_tasks(self.client.memory, self.client.standbys, self.beat)

    @property
    def answered_epoch(self) -> int:
        return int(self.answer.get("epoch", 0))

    @property
    def given(self) -> ops.Tasks | None:
        return self.assigned("tasks")

    @property
    def given_standby(self) -> ops.Tasks | None:
        return self.assigned("standby")

    @property
    def given_warmup(self) -> ops.Tasks | None:
        return self.assigned("warmup")

    @property
    def endpoint_epoch(self) -> int | None:
        """None if the target states none."""
        found = self.answer.get("endpoint_epoch")
        return found if type(found) is int else None

    @property
    def stated_endpoint_epoch(self) -> int:
        """In the request: a client that joins has no endpoint information."""
        return NO_ENDPOINTS if self.epoch == 0 else self.client.endpoint_epoch

    @property
    def endpoints(self) -> ops.Endpoints | None:
        found = self.answer.get("endpoints")
        return None if found is None else tuple(sorted((host, topic, number) for host, topic, number in found))

    @property
    def created(self) -> Mapping[str, int]:
        """The internal topics that the broker creates after the answer, with their numbers of partitions."""
        return {name: size for name, size in self.answer.get("created") or ()}

    @property
    def statuses(self) -> tuple[str, ...]:
        return tuple(self.answer.get("statuses") or ())

    @property
    def described(self) -> ops.Described:
        found = self.answer
        members = tuple(
            ops.DescribedMember(
                each["client"],
                each["epoch"],
                each["topology_epoch"],
                partitions(each["tasks"]),
                partitions(each["target"]),
                partitions(each.get("standby") or ()),
                partitions(each.get("standby_target") or ()),
            )
            for each in found["members"]
        )
        return ops.Described(
            found["state"], found["epoch"], found["assignment_epoch"], found["topology_epoch"],
            tuple(sorted(found["topology"])), members,
        )  # fmt: skip

    @property
    def is_quiet(self) -> bool:
        """Whether a member with its own epoch stays, and claims no other tasks than it was assigned."""
        own, beat = self.client, self.beat
        stays = own.is_certain_member and self.epoch == own.memory.epoch > 0 and beat.owned in ("told", None)
        return stays and self.accepted and beat.flaw is None and beat.endpoint in (None, own.endpoint)

    def known_after(self) -> Group:
        known = self.before
        match self.request:
            case ops.Pass(ms):
                clients = {name: _older(each, ms, known) for name, each in known.clients.items()}
                ended = any(each.expired or each.away for each in clients.values())
                return replace(known, clients=clients, stable=None if ended else known.stable)
            case ops.Consume():
                return replace(known, form="consumer") if self.accepted and known.form == "none" else known
            case ops.Configure(standbys):
                return replace(known, standbys=standbys, is_set=False, stable=None)
            case ops.Beat():
                return self._after_beat()
            case log_ops.Reload():
                clients = {name: each.renewed() for name, each in known.clients.items()}
                return replace(known, clients=clients, stable=None, endpoint_epoch=None)
            case log_ops.Commit() | log_ops.Fetch():
                return known
            case ops.Describe():
                if not self.accepted:
                    return known
                found = self.described
                stable = found.epoch if found.state == STABLE and known.is_set else None
                return replace(known, highest=max(known.highest, found.epoch), stable=stable)

    def _after_beat(self) -> Group:
        known, client = self.before, self.client
        if self.epoch <= 0 or (self.accepted and not self.is_quiet):
            known = replace(known, stable=None)
        if not self.accepted:
            if self.error == terms.FENCED_MEMBER_EPOCH:
                return known.having(replace(client, fenced=True))
            gone = self.epoch > 0 and self.error == terms.UNKNOWN_MEMBER_ID and self.beat.instance is None
            removed = Client(client.name, client.memory, standbys=client.standbys)
            return known.without_instance(client.name).having(removed) if gone else known
        if self.epoch == 0 and known.form != "streams":
            topology, epoch = tuple(sorted(self.beat.topology or ())), self.beat.topology_epoch
            known = replace(known, form="streams", topology=topology, topology_epoch=epoch)
        if self.epoch == 0 and self.beat.instance is not None:
            known = self._taken_over(known, self.beat.instance)
        if self.epoch == terms.LEAVING or (
            self.epoch == 0 and self.beat.instance is None and not client.is_certain_member
        ):
            known = known.without_instance(client.name)
        if self.epoch == terms.AWAY and self.beat.instance is not None:
            known = replace(known, instances={**known.instances, self.beat.instance: client.name})
        known = replace(known, created=known.created | {*self.created}, is_set=known.is_set or self.epoch >= 0)
        if self.epoch == 0 and self.beat.endpoint is None and client.endpoint is not None:
            known = replace(known, drops_endpoint=True)
        if self.endpoint_epoch is not None:
            known = replace(known, endpoint_epoch=max(self.endpoint_epoch, known.endpoint_epoch or 0))
        return replace(known.having(self._client_after()), highest=max(known.highest, self.answered_epoch))

    def _taken_over(self, known: Group, instance: str) -> Group:
        """The client has the instance; its former process is no member any more."""
        former = known.clients.get(known.instances.get(instance, self.client.name))
        if former is not None and former.name != self.client.name:
            known = known.having(Client(former.name, former.memory, standbys=former.standbys))
        known = known.without_instance(self.client.name)
        return replace(known, instances={**known.instances, instance: self.client.name})

    def _client_after(self) -> Client:
        before, joins = self.client, self.epoch == 0
        epoch = self.epoch if self.epoch in terms.LEFT else self.answered_epoch
        memory = before.memory.after(epoch, self.given)
        standbys = before.standbys.after(epoch, self.given_standby)
        if self.epoch in terms.LEFT:
            away = self.epoch == terms.AWAY
            kept = before.memory.given if before.is_certain_member and away else ()
            return Client(
                before.name, memory, away, before.expired and away, away, standbys=standbys, kept=kept,
                topology_epoch=before.topology_epoch, silent_ms=before.silent_ms,
            )  # fmt: skip
        owned = () if joins else self.owned.active
        newer = before.member and memory.epoch != before.memory.epoch
        after = Client(
            before.name, memory, True, previous=before.memory.epoch if newer else before.previous,
            unused=newer and not joins, may_still_own=before.owning(owned, self.given, self.op.index),
            standbys=standbys,
            topology_epoch=self.beat.topology_epoch if joins else before.topology_epoch,
            endpoint=self.beat.endpoint if joins else self.beat.endpoint or before.endpoint,
            endpoint_epoch=before.endpoint_epoch if self.endpoint_epoch is None else self.endpoint_epoch,
        )  # fmt: skip
        return after.since(before)


def _older(client: Client, ms: int, known: Group) -> Client:
    after = client.older(ms, known.config.session_ms, ops.REBALANCE_MS)
    return replace(after, kept=() if after.silent_ms >= known.config.session_ms else after.kept)


@cached_on_history
def group_steps(history: History) -> tuple[GroupStep, ...]:
    """The requests to the group up to the first one without an answer: after that its state is not known."""

    def read(op: Op, known: Group) -> GroupStep:
        return GroupStep(op, ops.OPERATIONS.event_of(op.step), payload(op), known)

    stated = dict(stated_settings(history))
    topics = dict(stated.pop(OTHER_TOPICS, TOPICS))
    begun = Group(config=replace(DEFAULT, **stated), topics=topics)
    requests = ops.Beat | ops.Describe | ops.Consume
    return tuple(each for each in answered_steps(served(history), begun, read) if isinstance(each.request, requests))


def beats(history: History) -> tuple[GroupStep, ...]:
    """The heartbeats among them."""
    return tuple(each for each in group_steps(history) if isinstance(each.request, ops.Beat))


def describes(history: History) -> tuple[GroupStep, ...]:
    """The accepted describes of a group that some client has joined."""
    return tuple(
        each for each in group_steps(history)
        if each.verb == "streams-group-describe" and each.accepted and each.before.form == "streams"
    )  # fmt: skip
