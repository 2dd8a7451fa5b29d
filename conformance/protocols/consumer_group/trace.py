"""The trace of a consumer group: what the heartbeats of clients and their answers say of it, step by step."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.consumer_group.ops import (
    LATER,
    OPERATIONS,
    REBALANCE_MS,
    Beat,
    Configure,
    Create,
    Event,
    Pass,
)
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT, Config
from kipcheck.conformance.protocols.declare.real_time import stated_settings
from kipcheck.conformance.protocols.declare.trace import answered_steps, payload
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.reconciled.log_laws import served
from kipcheck.conformance.protocols.reconciled.log_ops import Reload
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.reconciled.trace import HeartbeatStep, KnownClient

SETTLED = 4
"""The rounds of heartbeats after which all partitions are assigned, if every member reports what it owns and nothing
else happens."""


@dataclass(frozen=True, slots=True)
class Client(KnownClient):
    joins: bool = False
    """Its last accepted heartbeat was a join, after which a coordinator may know no previous epoch."""
    topics: tuple[str, ...] = ()
    regex: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """The member with an instance id."""

    client: str
    away: bool = False
    """It left for a while."""
    kept: terms.Partitions = ()
    """While it is away: its assignment."""
    topics: tuple[str, ...] = ()
    """While it is away: the topics to which it subscribes."""
    regex: str = ""
    """While it is away: the expression to which its successor subscribes, unless it names another one."""
    silent_ms: int = 0
    session_ms: int = 0
    joined: bool = False
    """While it is away: another member has joined since."""


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of the group from the heartbeats so far."""

    clients: Mapping[str, Client] = field(default_factory=dict)
    quiet_rounds: Mapping[str, int] = field(default_factory=dict)
    """Client -> its consecutive heartbeats that only say that it stays, with no other step between them."""
    existed: bool = False
    """A member has joined before, so the group exists."""
    holders: Mapping[str, Holder] = field(default_factory=dict)
    """By instance id."""
    waited_ms: int = 0
    """The time since the last step that may have changed members or subscriptions."""
    rest: int | None = None
    """The epoch of a group at rest: all members had it, with all that was due to them, and have confirmed it, left for
    a while or been replaced since; None: it is not known to be at rest."""
    chosen: bool = False
    """A member has asked for an assignor."""
    kept: Mapping[str, terms.Partitions] = field(default_factory=dict)
    """After one member joined or left a group at rest, whose members subscribe to the same topics: what each of the
    others had. Empty once anything else changed."""
    fair: int = 0
    """So many partitions each member has at least after that."""
    config: Config = DEFAULT
    topics: Mapping[str, int] = field(default_factory=lambda: TOPICS)
    """Those that exist, with their numbers of partitions."""
    created: tuple[str, ...] = ()
    """Topics that were created, since which no coordinator has read the log."""
    session_ms: int = 0
    """The session timeout of the group; 0: that of the broker."""

    def having(self, client: Client) -> "Group":
        return replace(self, clients={**self.clients, client.name: client})


@dataclass(frozen=True, slots=True)
class AnsweredHeartbeat(HeartbeatStep[Event, Group]):
    """An answered heartbeat, or time that passes."""

    @property
    def beat(self) -> Beat:
        assert isinstance(self.request, Beat)
        return self.request

    @property
    def clients(self) -> Mapping[str, Client]:
        return self.before.clients

    @property
    def rounds(self) -> int:
        """The number of consecutive rounds of heartbeats of all members, with no other step between them.

        0 until the group is old enough for a new target assignment.
        """
        if self.before.waited_ms < self.before.config.interval_ms:
            return 0
        quiet = self.before.quiet_rounds
        return min((quiet.get(name, 0) for name, each in self.clients.items() if each.member), default=0)

    @property
    def client(self) -> Client:
        return self.clients.get(self.beat.client) or Client(self.beat.client, terms.Memory(self.beat.client))

    @property
    def intent(self) -> Says:
        """What the request does, by its epoch: join, leave, also for a while, or stay."""
        return {0: Says.JOIN, terms.LEAVING: Says.LEAVE, terms.AWAY: Says.AWAY}.get(self.epoch, Says.STAY)

    @property
    def holder(self) -> Holder | None:
        """The member with the instance id of the request."""
        return None if self.beat.instance is None else self.before.holders.get(self.beat.instance)

    @property
    def confirms(self) -> bool:
        """Whether a member stays, lists what it owns, and says nothing new."""
        stays = self.intent is Says.STAY and self.beat.owned == "told"
        beat = self.beat
        is_new = beat.topics is not None and {*beat.topics} != {*self.client.topics}
        return stays and self.accepted and not is_new and _has_no_options(beat)

    @property
    def replaces(self) -> bool:
        """Whether it joins as an instance that left for a while, and subscribes to the same topics."""
        holder, beat = self.holder, self.beat
        if self.intent is not Says.JOIN or holder is None or not holder.away or holder.regex:
            return False
        if self.client.member or (self.client.away and holder.client != beat.client):
            return False
        return _has_no_options(beat) and {*(beat.topics or ())} == {*holder.topics}

    @property
    def rest(self) -> int | None:
        """The epoch of a group that is at rest after this heartbeat; None: it may not be."""
        known = self.before.rest
        if self.intent is Says.AWAY or self.replaces:
            return known if self.accepted else None
        if not self.confirms or self.answered_epoch is None:
            return None
        if known is None and self.rounds >= SETTLED:
            known = self.answered_epoch
            unsure = any(each.fenced or each.expired or each.regex for each in self.clients.values())
            away = any(each.away for each in self.before.holders.values())
            if unsure or away or any(each.member and each.memory.epoch != known for each in self.clients.values()):
                return None
        return known if self.answered_epoch == known else None

    @property
    def _members_after(self) -> Mapping[str, frozenset[str]]:
        """The topics of each member after one joined or left a group at rest; none where anything else happens."""
        beat, known = self.beat, self.before
        joins = self.intent is Says.JOIN and not self.client.member and self.holder is None and _has_no_options(beat)
        leaves = self.intent is Says.LEAVE and self.client.member
        away = any(each.away for each in known.holders.values())
        if known.rest is None or known.chosen or away or not self.accepted or not (joins or leaves):
            return {}
        members = {name: frozenset(each.topics) for name, each in known.clients.items() if each.member}
        others = {name: topics for name, topics in members.items() if name != beat.client}
        return {**others, beat.client: frozenset(beat.topics or ())} if joins else others

    @property
    def _kept(self) -> Mapping[str, terms.Partitions]:
        after = self._members_after
        alike = len({*after.values()}) == 1
        return {name: self.clients[name].memory.given for name in after if alike and name != self.beat.client}

    @property
    def _fair(self) -> int:
        after, sizes = self._members_after, self.before.topics
        return sum(sizes.get(topic, 0) for topic in frozenset().union(*after.values())) // len(after) if after else 0

    @property
    def taken_by(self) -> str:
        """Another client that is the member with the instance id of the request, for certain; empty: none is."""
        holder = self.holder
        if holder is None or holder.client == self.beat.client or holder.away:
            return ""
        other = self.clients.get(holder.client)
        return "" if other is None or other.expired or not other.member else holder.client

    @property
    def owned(self) -> terms.Partitions | None:
        """The owned partitions in the request."""
        return self.client.memory.claimed(self.beat.owned)

    @property
    def answered_epoch(self) -> int | None:
        """The epoch in the response; None if there is none."""
        found = self.answer.get("epoch")
        return found if type(found) is int else None

    @property
    def given(self) -> terms.Partitions | None:
        return self.assigned("assignment")

    def known_after(self) -> Group:
        known = self.before
        if isinstance(self.request, Pass):
            return _later(known, self.request.ms)
        if isinstance(self.request, Configure):
            return replace(known, session_ms=self.request.session_ms)
        if isinstance(self.request, Create):
            topic = self.request.topic
            known = replace(known, topics={**known.topics, topic: LATER[topic]}, created=(*known.created, topic))
            return replace(known, quiet_rounds={}, waited_ms=0, rest=None, kept={})
        if not isinstance(self.request, Beat):
            return _reloaded(known) if isinstance(self.request, Reload) else known
        name, known = self.beat.client, replace(known, rest=self.rest)
        if self.confirms:
            known = replace(known, quiet_rounds={**known.quiet_rounds, name: known.quiet_rounds.get(name, 0) + 1})
        elif self.accepted or self.client.member:
            known = replace(known, quiet_rounds={}, waited_ms=0, kept=self._kept, fair=self._fair)
        if self.accepted:
            known = replace(known, chosen=known.chosen or self.beat.assignor is not None)
            joined = known.existed or self.intent is Says.JOIN
            holders = _held(self)
            if self.intent is Says.JOIN:
                holders = {
                    instance: replace(each, joined=each.joined or each.away) for instance, each in holders.items()
                }
            return replace(known.having(_after(self)), existed=joined, holders=holders)
        if self.error == terms.FENCED_MEMBER_EPOCH:
            return known.having(replace(self.client, fenced=True))
        own = self.beat.instance is None or (self.holder is not None and self.holder.client == name)
        if self.intent is Says.STAY and self.error == terms.UNKNOWN_MEMBER_ID and own:
            holders = {instance: each for instance, each in known.holders.items() if each.client != name}
            return replace(known.having(Client(name, self.client.memory)), holders=holders)
        return known


def _has_no_options(beat: Beat) -> bool:
    return beat.regex is None and beat.assignor is None


def _later(known: Group, ms: int) -> Group:
    usual = known.config.session_ms
    clients = {name: each.older(ms, each.session_ms or usual, REBALANCE_MS) for name, each in known.clients.items()}
    aged = {instance: replace(each, silent_ms=each.silent_ms + ms) for instance, each in known.holders.items()}
    holders = {instance: each for instance, each in aged.items() if not _is_gone(each, clients, known.config)}
    stays = len(holders) == len(known.holders) and not any(each.expired for each in clients.values())
    known = known if stays else replace(known, rest=None, kept={})
    return replace(known, clients=clients, holders=holders, quiet_rounds={}, waited_ms=known.waited_ms + ms)


def _reloaded(known: Group) -> Group:
    """The sessions of all members begin again."""
    own = known.session_ms
    clients = {name: replace(each.renewed(), session_ms=own) for name, each in known.clients.items()}
    holders = {instance: replace(each, silent_ms=0, session_ms=own) for instance, each in known.holders.items()}
    return replace(known, clients=clients, holders=holders, quiet_rounds={}, created=())


def _is_gone(holder: Holder, clients: Mapping[str, Client], config: Config) -> bool:
    """Whether the member may have been removed."""
    session_ms = holder.session_ms or config.session_ms
    return holder.silent_ms >= session_ms if holder.away else clients[holder.client].expired


def _held(heartbeat: AnsweredHeartbeat) -> Mapping[str, Holder]:
    """The instances after an accepted heartbeat."""
    known, beat = heartbeat.before.holders, heartbeat.beat
    if beat.instance is None and heartbeat.intent is not Says.LEAVE:
        return {
            instance: Holder(beat.client) if each.client == beat.client else each for instance, each in known.items()
        }
    others = {instance: each for instance, each in known.items() if each.client != beat.client}
    if beat.instance is None or heartbeat.intent is Says.LEAVE:
        return others
    if heartbeat.intent is Says.AWAY:
        client = heartbeat.client
        left = Holder(
            beat.client, True, client.memory.given, client.topics, client.regex, client.silent_ms, client.session_ms
        )
        return {**others, beat.instance: left}
    return {**others, beat.instance: Holder(beat.client)}


@cached_on_history
def answered_heartbeats(history: History) -> tuple[AnsweredHeartbeat, ...]:
    """The heartbeats up to the first step without an answer: after that the state of the group is not known."""

    def read(op: Op, known: Group) -> AnsweredHeartbeat:
        return AnsweredHeartbeat(op, OPERATIONS.event_of(op.step), payload(op), known)

    begun = Group(config=settings(history))
    return tuple(each for each in answered_steps(served(history), begun, read) if isinstance(each.request, Beat))


def settings(history: History) -> Config:
    """Of the broker: those that conversations count on, where the target does not state others."""
    return replace(DEFAULT, **stated_settings(history))


def _after(heartbeat: AnsweredHeartbeat) -> Client:
    before, owned, given = heartbeat.client, heartbeat.owned, heartbeat.given
    answered = heartbeat.answered_epoch
    # A client that leaves takes any epoch in the answer for the one that it should be.
    epoch = heartbeat.epoch if answered is None or heartbeat.epoch in terms.LEFT else answered
    memory = before.memory.after(epoch, given)
    if heartbeat.intent in (Says.LEAVE, Says.AWAY):
        away = heartbeat.intent is Says.AWAY
        return Client(before.name, memory, away=away, regex=before.regex if away else "")
    topics = before.topics if heartbeat.beat.topics is None else heartbeat.beat.topics
    newer = memory.epoch != before.memory.epoch
    again = before.member and not before.expired
    previous = None if not again else before.memory.epoch if newer else before.previous
    unused = newer or (before.unused and heartbeat.epoch != before.memory.epoch)
    holder = heartbeat.holder
    known_regex = holder.regex if holder is not None and holder.away else before.regex
    regex = known_regex if heartbeat.beat.regex is None else heartbeat.beat.regex
    after = Client(
        before.name, memory, True, previous=previous, unused=unused, joins=heartbeat.intent is Says.JOIN, topics=topics,
        regex=regex, session_ms=heartbeat.before.session_ms,
        may_still_own=before.owning(owned, given, heartbeat.op.index),
    )  # fmt: skip
    return after.since(before)
