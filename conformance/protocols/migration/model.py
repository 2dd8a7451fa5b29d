"""A group whose members use the classic protocol, KIP-848's, or both, and the conversions between its two forms.

A consumer that joins a classic group makes it a consumer group; when the last member that uses KIP-848's protocol is
gone, it is a classic group again. Source: ``GroupMetadataManager``, ``ConsumerGroup.fromClassicGroup`` and
``ClassicGroup.fromConsumerGroup`` of the releases from 4.0 on.

Not modelled: static members of the classic protocol; ids that a client has to join with (JoinGroup 4 and later).
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, assert_never

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.core.replacing import replace
from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.consumer_group import model as consumer
from kipcheck.conformance.protocols.consumer_group.model import LEAVING, ConsumerGroup
from kipcheck.conformance.protocols.consumer_group.ops import (
    INTERVAL_MS,
    REBALANCE_MS,
    SUBSCRIPTIONS,
    Answered,
    Beat,
    Partitions,
    Pass,
    Rejected,
    Says,
)
from kipcheck.conformance.protocols.consumer_group.rules import CURRENT, DEFAULT, Config, Rules
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import (
    Error,
    Fired,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Phase,
    Reply,
    Sync,
    Synced,
    Timer,
)
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules, owed_rules
from kipcheck.conformance.protocols.group.model.service import Service
from kipcheck.conformance.protocols.group.model.state import Member, State as ClassicState, arm_session
from kipcheck.conformance.protocols.migration.metadata import dealt, metadata, metadata_of, partitions_of, printed
from kipcheck.conformance.protocols.migration.ops import (
    BUSY,
    CLIENTS,
    NONE,
    NOTHING,
    PARKED,
    SESSION_MS,
    Action,
    Classic,
    ClassicBeat,
    ClassicJoin,
    ClassicLeave,
    ClassicSync,
    Event,
    Receive,
    Received,
)

UNKNOWN_MEMBER: Final = "?"
VERSION: Final = 3
UPGRADES: Final = ("bidirectional", "upgrade")
DOWNGRADES: Final = ("bidirectional", "downgrade")
CONSUMERS: Final = ("a", "b")
RESETS: Final = ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")
REBALANCE_IN_PROGRESS: Final = "REBALANCE_IN_PROGRESS"
ILLEGAL_GENERATION: Final = "ILLEGAL_GENERATION"
UNKNOWN_SERVER_ERROR: Final = "UNKNOWN_SERVER_ERROR"
INITIAL_DELAY_MS: Final = 3_000
PASSES: Final = (INTERVAL_MS, INITIAL_DELAY_MS, SESSION_MS)


class Client(NamedTuple):
    """A client of the classic protocol."""

    name: str
    id: str = ""
    generation: int = 0
    given: Partitions = ()
    asked: int = -1
    """The number of the request that it has no answer to; negative: there is none."""
    answer: Received | None = None
    """To that request, while it is not received."""
    fresh: str = ""
    """The id in that answer."""


class ClassicMember(NamedTuple):
    """What a consumer group knows more of a member that uses the classic protocol."""

    id: str
    protocols: tuple[tuple[str, str], ...]
    """Names and metadata."""
    joining_ms: int | None = None
    """The time since it was asked to join again; None: it was not."""
    syncing_ms: int | None = None
    """The time since it joined and has sent no SyncGroup; None: it has."""


class State(NamedTuple):
    is_consumer: bool = False
    """Whether the group is a consumer group."""
    group: consumer.State = consumer.State()
    """As a consumer group. What its clients know is kept in any case."""
    members: tuple[ClassicMember, ...] = ()
    """Of the consumer group. Sorted by id."""
    classic: ClassicState = ClassicState()
    clock: Clock[Timer] = Clock()
    """Of the classic group."""
    clients: tuple[Client, ...] = ()
    """Sorted by name."""
    requests: int = 0

    def client(self, name: str) -> Client:
        return next((each for each in self.clients if each.name == name), Client(name))

    def asking(self, request: int) -> Client:
        return next(each for each in self.clients if each.asked == request)

    def member(self, id: str) -> ClassicMember | None:
        return next((each for each in self.members if each.id == id), None)


class MixedGroup:
    fails_at_first: bool = False
    """A consumer that joins a group in its first join phase gets UNKNOWN_SERVER_ERROR, as in all releases."""

    def __init__(self, rules: Rules = CURRENT, config: Config = DEFAULT, classic: ClassicRules | None = None) -> None:
        self.rules = rules
        self.config = config
        self.consumers = ConsumerGroup(rules=rules, config=config)
        self.coordinator = Coordinator(classic or owed_rules())
        self.service: Service[ClassicState] = Service(self.coordinator)

    def initial(self) -> State:
        return State(group=self.consumers.initial())

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        match event:
            case Beat():
                return self.beat(state, event)
            case Pass(ms):
                return Transition(self.passed(state, ms))
            case _:
                return self.classic(state, event)

    # Heartbeats of KIP-848

    def beat(self, state: State, beat: Beat) -> Transition[State, Action]:
        memory = state.group.memory(beat.client)
        epoch, owned = consumer.sent_epoch(memory, beat), consumer.claimed(memory, beat.owned)
        error = self.consumers.invalid(beat, epoch, owned)
        if error is None and not state.is_consumer:
            if epoch != 0 or not self.may_upgrade(state):
                error = consumer.GROUP_ID_NOT_FOUND
            else:
                state, error = self.upgraded(state)
        if error is not None:
            return Transition(state, (Rejected(beat.client, error),))
        before = state
        group, actions = self.consumers.beat(state.group, beat)
        if not isinstance(actions[0], Answered):
            return Transition(state, actions)
        if epoch == LEAVING and self.may_downgrade(before, beat.client):
            remembered = group.clients
            return Transition(
                self.downgraded(before._replace(group=before.group._replace(clients=remembered)), beat.client), actions
            )
        return Transition(state._replace(group=group), actions)

    def may_upgrade(self, state: State) -> bool:
        """Whether a consumer that joins may change the form of the classic group."""
        return state.classic.phase in (Phase.EMPTY, Phase.DEAD) or self.config.policy in UPGRADES

    def upgraded(self, state: State) -> tuple[State, str | None]:
        """The classic group as a consumer group; and the error, if it cannot be one.

        Members with a parked request are asked to join again in any case. In its first join phase a group has no
        protocol, and its members have no assignment.
        """
        former = state.classic
        if former.phase in (Phase.EMPTY, Phase.DEAD):
            return state._replace(is_consumer=True, classic=ClassicState(), clock=self.stopped(state)), None
        state = self.interrupted(state)
        if former.protocol is None and former.members and self.fails_at_first:
            return state, UNKNOWN_SERVER_ERROR
        generation = self.first_epoch(former)
        members = tuple(sorted(self.converted(each, former.protocol, generation) for each in former.members))
        group = consumer.State(
            exists=True, group_epoch=generation, target_epoch=generation, members=members,
            target=tuple((each.id, each.assigned) for each in members), clients=state.group.clients,
        )  # fmt: skip
        classic = tuple(sorted(ClassicMember(each.id, _protocols(each)) for each in former.members))
        return State(
            True, group, classic, clock=self.stopped(state), clients=state.clients, requests=state.requests
        ), None

    def first_epoch(self, former: ClassicState) -> int:
        """Of the consumer group that a classic group becomes."""
        return former.generation

    def stopped(self, state: State) -> Clock[Timer]:
        return Clock(state.clock.now_ms)

    def converted(self, member: Member, protocol: str | None, generation: int) -> consumer.Member:
        topics, _ = metadata_of(str(member.metadata(protocol or member.protocols[0][0])))
        assigned = partitions_of(str(member.assignment))
        return consumer.Member(member.id, topics, epoch=generation, previous=generation, assigned=assigned)

    def interrupted(self, state: State) -> State:
        """Parked requests are answered: their members have to join again."""
        members = []
        for each in state.classic.members:
            for parked in (each.join, each.sync):
                if parked is not None:
                    state = self.delivered(state, parked.to, Received("", REBALANCE_IN_PROGRESS), each.id)
            members.append(each._replace(join=None, sync=None))
        return state._replace(classic=state.classic._replace(members=tuple(members)))

    def may_downgrade(self, state: State, leaving: str) -> bool:
        """Whether the group is a classic one after this member is gone: only others that use that protocol are left."""
        if not self.config.policy in DOWNGRADES or state.member(leaving) is not None:
            return False
        rest = [each.id for each in state.group.members if each.id != leaving]
        return bool(rest) and all(state.member(each) is not None for each in rest)

    def downgraded(self, state: State, leaving: str) -> State:
        """The group as a classic one without a member, in a new join phase."""
        group = state.group
        made = [
            Member(
                each.id, None, SESSION_MS, REBALANCE_MS, known.protocols,
                assignment=printed(group.target_of(each.id)),
            )
            for each in group.members if (known := state.member(each.id)) is not None and each.id != leaving
        ]  # fmt: skip
        classic = ClassicState(
            phase=Phase.STABLE, generation=self.first_generation(group), protocol_type="consumer", leader=made[0].id,
            members=tuple(made),
        )  # fmt: skip
        classic = classic._replace(protocol=self.coordinator.elected_protocol(classic))
        out: list[messages.Action] = [arm_session(each.id, each.session_ms) for each in made]
        classic = self.coordinator.prepare(classic, out)
        clock: Clock[Timer] = Clock(state.clock.now_ms)
        for action in out:
            if isinstance(action, messages.Arm):
                clock = clock.armed(action.timer, action.ms)
        begun = self.consumers.initial()._replace(clients=group.clients)
        return State(False, begun, (), classic, clock, state.clients, state.requests)

    def first_generation(self, group: consumer.State) -> int:
        """Of the classic group that a consumer group becomes, before its first join phase ends."""
        return group.group_epoch

    # Requests of the classic protocol

    def classic(self, state: State, event: Classic) -> Transition[State, Action]:
        client = state.client(event.client)
        if isinstance(event, Receive):
            if client.answer is None:
                return Transition(state, (Received(client.name, NOTHING if client.asked < 0 else PARKED),))
            return self.received(state, client)
        if client.asked >= 0:
            return Transition(state, (Received(client.name, BUSY),))
        number = state.requests
        state = with_client(state._replace(requests=number + 1), client._replace(asked=number))
        if state.is_consumer and not state.group.members and isinstance(event, ClassicJoin):
            known = self.consumers.initial()._replace(clients=state.group.clients)
            state = state._replace(is_consumer=False, group=known)
        if state.is_consumer:
            state = self.asked(state, client, event)
        else:
            state = self.run(state, self.request_of(state, client, event, number))
        client = state.client(client.name)
        if client.answer is None:
            return Transition(state, (Received(client.name, PARKED),))
        return self.received(state, client)

    def received(self, state: State, client: Client) -> Transition[State, Action]:
        """The client learns its answer."""
        answer = client.answer
        assert answer is not None
        error, id, generation, given = answer.error, client.id, client.generation, client.given
        if error in RESETS:
            id, given = "", ()
        if answer.generation is not None:
            generation = answer.generation
        if answer.assignment is not None:
            given = answer.assignment
        if client.fresh == LEFT:
            id, given = "", ()
        elif client.fresh and error in (NONE, REBALANCE_IN_PROGRESS):
            id = client.fresh
        client = Client(client.name, id, generation, given)
        return Transition(with_client(state, client), (replace(answer, client=client.name),))

    def delivered(self, state: State, request: int, answer: Received, fresh: str = "") -> State:
        client = state.asking(request)
        return with_client(state, client._replace(answer=answer, fresh=fresh))

    # ... in a classic group

    def request_of(self, state: State, client: Client, event: Classic, number: int) -> messages.Request:
        id = client.id or UNKNOWN_MEMBER
        match event:
            case ClassicJoin():
                blob = metadata(event.topics, client.given if event.owned == "told" else ())
                protocols = tuple((each, blob) for each in event.protocols)
                return Join(
                    VERSION, client.id, None, "consumer", protocols, SESSION_MS, REBALANCE_MS,
                    fresh=f"{client.name}.{number}", request=number,
                )  # fmt: skip
            case ClassicSync():
                shares = tuple((state.client(name).id or UNKNOWN_MEMBER, printed(each)) for name, each in dealt(event))
                return Sync(VERSION, id, None, client.generation - event.behind, shares, request=number)
            case ClassicBeat():
                return Heartbeat(VERSION, id, None, client.generation - event.behind, request=number)
            case ClassicLeave():
                return Leave(VERSION, ((id, None),), request=number)
            case Receive():
                raise ValueError("no request")
            case _:
                assert_never(event)

    def run(self, state: State, event: messages.Event) -> State:
        """The classic group after an event, with the answers delivered."""
        replies: list[Reply] = []
        classic, clock, _ = self.service.run(state.classic, state.clock, None, event, replies)
        state = state._replace(classic=classic, clock=clock)
        for each in replies:
            state = self.delivered(state, each.to, *self.read(each))
        return state

    def read(self, reply: Reply) -> tuple[Received, str]:
        """The answer, and the id of the member in it; ``LEFT``: it left."""
        match reply:
            case Joined(error=Error.NONE):
                led, leads = bool(reply.leader), reply.leader == reply.member
                return Received("", NONE, reply.generation, led, leads), reply.member
            case Synced(error=Error.NONE):
                return Received("", NONE, assignment=partitions_of(str(reply.assignment))), ""
            case Left():
                return Received("", (reply.members[0][2] if reply.members else reply.error).name), LEFT
            case Joined():
                return Received("", reply.error.name), reply.member
            case _:
                return Received("", reply.error.name), ""

    # ... in a consumer group

    def asked(self, state: State, client: Client, event: Classic) -> State:
        member, known = state.group.member(client.id), state.member(client.id)
        number = state.client(client.name).asked
        if isinstance(event, ClassicJoin):
            return self.joined(state, client, event, number)
        if member is None or known is None:
            return self.delivered(state, number, Received("", "UNKNOWN_MEMBER_ID"), _left(event))
        match event:
            case ClassicSync():
                return self.synced(state, client.generation - event.behind, member, known, number)
            case ClassicBeat():
                return self.beaten(state, client.generation - event.behind, member, known, number)
            case ClassicLeave():
                group = self.consumers.without(state.group, member.id)
                left = state._replace(group=group, members=tuple(each for each in state.members if each != known))
                return self.delivered(left, number, Received("", NONE), LEFT)
            case _:
                raise ValueError("no request")

    def joined(self, state: State, client: Client, join: ClassicJoin, number: int) -> State:
        """A JoinGroup is answered at once: the coordinator assigns, and no member leads."""
        if not self.supports(state, join):
            return self.delivered(state, number, Received("", "INCONSISTENT_GROUP_PROTOCOL"))
        owned = client.given if join.owned == "told" else ()
        id, group = client.id or f"{client.name}.{number}", state.group
        old, is_first = group.member(id), not group.members
        group = self.consumers.subscribed(group, Beat(id, Says.JOIN, topics=join.topics))
        if self.consumers.may_aim(group, is_first):
            group = self.consumers.aimed(group)
        before = group.member(id)
        assert before is not None
        changed = old is not None and {*old.topics} != {*before.topics}
        after = self.reconciled(group, before, owned, changed)._replace(silent_ms=0)
        blob = metadata(join.topics, owned)
        known = ClassicMember(id, tuple((each, blob) for each in join.protocols), syncing_ms=0)
        state = with_member(state._replace(group=consumer.with_member(group, after)), known)
        return self.delivered(state, number, self.join_answer(after), id)

    def reconciled(
        self, group: consumer.State, member: consumer.Member, owned: Partitions, changed: bool
    ) -> consumer.Member:
        return self.consumers.reconciled(group, member, owned, changed)

    def join_answer(self, member: consumer.Member) -> Received:
        return Received("", NONE, member.epoch)

    def supports(self, state: State, join: ClassicJoin) -> bool:
        """Whether all members of the classic protocol have an assignor of the join."""
        return any(all(name in dict(each.protocols) for each in state.members) for name in join.protocols)

    def synced(
        self, state: State, generation: int, member: consumer.Member, known: ClassicMember, number: int
    ) -> State:
        if generation != member.epoch:
            return self.delivered(state, number, Received("", ILLEGAL_GENERATION))
        if self.newest_epoch(state) > member.epoch and not member.pending:
            return self.delivered(self.told_to_join(state, known), number, Received("", REBALANCE_IN_PROGRESS))
        state = with_member(self.heard(state, member), known._replace(syncing_ms=None))
        return self.delivered(state, number, Received("", NONE, assignment=member.assigned))

    def beaten(
        self, state: State, generation: int, member: consumer.Member, known: ClassicMember, number: int
    ) -> State:
        if self.is_stale(member, generation):
            return self.delivered(state, number, Received("", ILLEGAL_GENERATION))
        state = self.heard(state, member)
        if self.must_rejoin(state, member):
            return self.delivered(self.told_to_join(state, known), number, Received("", REBALANCE_IN_PROGRESS))
        return self.delivered(state, number, Received("", NONE))

    def is_stale(self, member: consumer.Member, generation: int) -> bool:
        return generation != member.epoch

    def must_rejoin(self, state: State, member: consumer.Member) -> bool:
        """Whether a heartbeat of the classic protocol asks the member to join again: for another assignment, to give up
        partitions, or for one that has become free."""
        if member.epoch < self.newest_epoch(state) or member.pending:
            return True
        return member.waiting and not self.awaits_others(state, member)

    def newest_epoch(self, state: State) -> int:
        """Members with an older one have to join again: that of the target assignment, if it may be later than the
        group's; else that of the group."""
        return state.group.target_epoch if self.rules.delays_targets else state.group.group_epoch

    def awaits_others(self, state: State, member: consumer.Member) -> bool:
        missing = [each for each in state.group.target_of(member.id) if each not in member.assigned]
        return any(not self.consumers.is_free(state.group, member, each) for each in missing)

    def told_to_join(self, state: State, known: ClassicMember) -> State:
        return with_member(state, known._replace(joining_ms=known.joining_ms or 0))

    def heard(self, state: State, member: consumer.Member) -> State:
        return state._replace(group=consumer.with_member(state.group, member._replace(silent_ms=0)))

    # Time

    def passed(self, state: State, ms: int) -> State:
        while ms > 0 and state.is_consumer:
            due = min(ms, min(self.rests(state), default=ms))
            state = self.without_late(self.older(state, max(due, 0)))
            ms -= max(due, 0)
        return self.elapsed(state, ms) if ms else state

    def elapsed(self, state: State, ms: int) -> State:
        """Of a classic group."""
        until = state.clock.now_ms + ms
        while (due := state.clock.due(until)) is not None:
            timer, clock = due
            state = self.run(state._replace(clock=clock), Fired(timer))
        return state._replace(clock=Clock(until, state.clock.timers))

    def rests(self, state: State) -> Iterator[int]:
        """The times until members are removed."""
        for each in state.group.members:
            known = state.member(each.id)
            if known is None:
                yield self.config.session_ms - each.silent_ms
                if each.pending:
                    yield REBALANCE_MS - each.revoking_ms
            else:
                yield SESSION_MS - each.silent_ms
                yield from (REBALANCE_MS - age for age in (known.joining_ms, known.syncing_ms) if age is not None)

    def older(self, state: State, ms: int) -> State:
        def aged(age: int | None) -> int | None:
            return None if age is None else age + ms

        members = tuple(
            each._replace(joining_ms=aged(each.joining_ms), syncing_ms=aged(each.syncing_ms)) for each in state.members
        )
        return state._replace(group=consumer.older(state.group, ms), members=members)

    def without_late(self, state: State) -> State:
        for each in state.group.members:
            if not state.is_consumer:
                return state
            if self.is_late(each, state.member(each.id)):
                state = self.fenced(state, each.id)
        return state

    def is_late(self, member: consumer.Member, known: ClassicMember | None) -> bool:
        if known is None:
            return self.consumers.is_late(member)
        ages = (known.joining_ms, known.syncing_ms)
        return member.silent_ms >= SESSION_MS or any(age is not None and age >= REBALANCE_MS for age in ages)

    def fenced(self, state: State, id: str) -> State:
        """The group without a member that was silent, or late."""
        if self.may_downgrade(state, id):
            return self.downgraded(state, id)
        members = tuple(each for each in state.members if each.id != id)
        return state._replace(group=self.consumers.without(state.group, id), members=members)

    # What is drawn

    def enabled(self, state: State, /) -> Iterable[Event]:
        """Events that the coordinator accepts."""
        for name in CONSUMERS:
            member = state.group.member(name) if state.is_consumer else None
            if member is None:
                yield from (Beat(name, Says.JOIN, topics=each, owned="none") for each in SUBSCRIPTIONS)
                continue
            yield from (Beat(name, Says.STAY, owned="told"), Beat(name, Says.LEAVE))
            yield from (Beat(name, Says.STAY, topics=each, owned="told") for each in SUBSCRIPTIONS)
        for name in CLIENTS:
            client = state.client(name)
            if client.asked >= 0:
                yield Receive(name)
                continue
            yield from (ClassicJoin(name, each, "told") for each in SUBSCRIPTIONS)
            if client.id:
                everyone = tuple(each.name for each in state.clients if each.id)
                yield from (ClassicSync(name, topics=each, over=everyone) for each in SUBSCRIPTIONS)
                yield from (ClassicBeat(name), ClassicLeave(name))
        yield from map(Pass, PASSES)


LEFT: Final = "left"
"""In place of the id in an answer: the member left."""


def _left(event: Classic) -> str:
    return LEFT if isinstance(event, ClassicLeave) else ""


def _protocols(member: Member) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(blob)) for name, blob in member.protocols)


def with_client(state: State, client: Client) -> State:
    others = (each for each in state.clients if each.name != client.name)
    return state._replace(clients=tuple(sorted((*others, client), key=lambda each: each.name)))


def with_member(state: State, member: ClassicMember) -> State:
    others = (each for each in state.members if each.id != member.id)
    return state._replace(members=tuple(sorted((*others, member), key=lambda each: each.id)))
