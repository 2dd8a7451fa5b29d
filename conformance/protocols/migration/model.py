"""A group whose members use the classic protocol, KIP-848's, or both, and the conversions between its two forms.

A consumer that joins a classic group makes it a consumer group; when the last member that uses KIP-848's protocol is
gone, it is a classic group again. A static member takes over the membership of its predecessor, whichever protocol each
of them uses. Source: ``GroupMetadataManager`` of the releases from 4.0 on.
"""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.consumer_group import model as consumer, ops as consumer_ops
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.migration import ops
from kipcheck.conformance.protocols.migration.classic_members import ClassicMembers
from kipcheck.conformance.protocols.migration.metadata import dealt, metadata, partitions_of, printed
from kipcheck.conformance.protocols.migration.state import (
    LEFT,
    UNKNOWN_MEMBER,
    ClassicMember,
    Client,
    State,
    with_client,
)
from kipcheck.conformance.protocols.reconciled import log_ops, model as reconciled, terms

CONSUMERS: Final = ("a", "b")
RESETS: Final = ("UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID")
INITIAL_DELAY_MS: Final = 3_000
PASSES: Final = (consumer_ops.INTERVAL_MS, INITIAL_DELAY_MS, ops.SESSION_MS)


class MixedGroup(ClassicMembers):
    def initial(self) -> State:
        return State(group=self.consumers.initial())

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case consumer_ops.Beat():
                return self.beat(state, event)
            case consumer_ops.Pass(ms):
                return Transition(self.passed(state, ms))
            case log_ops.Reload():
                return Transition(self.reloaded(state, event))
            case log_ops.Commit():
                return self.committed(state, event)
            case log_ops.Fetch():
                return Transition(state, (log_ops.Fetched(state.offsets),))
            case _:
                return self.classic(state, event)

    # The log

    def reloaded(self, state: State, reload: log_ops.Reload) -> State:
        """A classic group has no parked requests any more, and is as its last generation was."""
        if state.is_consumer:
            return state._replace(group=self.consumers.reloaded(state.group, reload))
        for event in (messages.Unload(), messages.Load(), messages.Loaded()):
            state = self.run(state, event)
        return state

    def committed(self, state: State, commit: log_ops.Commit) -> Transition[State, ops.Action]:
        if not self.may_commit(state, commit.client):
            return Transition(state, (terms.Rejected(commit.client, terms.UNKNOWN_MEMBER_ID),))
        return Transition(state._replace(offsets=log_ops.merged(state.offsets, commit.row)))

    def may_commit(self, state: State, name: str) -> bool:
        """Members may, with their epoch or generation; and a consumer without membership, where there are none."""
        members = state.group.members if state.is_consumer else state.classic.members
        if name == log_ops.NOBODY:
            return not members
        client, memory = state.client(name), state.group.memory(name)
        id, epoch = (client.id, client.generation) if name in ops.CLIENTS else (name, memory.epoch)
        if state.is_consumer:
            member = state.group.member(id)
            return member is not None and member.epoch == epoch
        settled = state.classic.phase is not messages.Phase.COMPLETING
        return state.classic.member(id) is not None and epoch == state.classic.generation and settled

    # Heartbeats of KIP-848

    def beat(self, state: State, beat: consumer_ops.Beat) -> Transition[State, ops.Action]:
        memory = state.group.memory(beat.client)
        epoch, owned = memory.epoch_in(beat), memory.claimed(beat.owned)
        error = self.consumers.invalid(beat, epoch, owned)
        before = state
        if error is None and not state.is_consumer:
            if epoch != 0 or not self.may_upgrade(state):
                error = terms.GROUP_ID_NOT_FOUND
            else:
                state, error = self.upgraded(state)
                before = self.interrupted(before)
        if error is not None:
            return Transition(before, (terms.Rejected(beat.client, error),))
        group, actions = self.consumers.beat(self.released(state, beat) if epoch == 0 else state.group, beat)
        if not isinstance(actions[0], consumer_ops.Answered):
            return Transition(before, actions)
        if epoch == terms.LEAVING and self.may_downgrade(state, beat.client):
            remembering = state.group._replace(clients=group.clients)
            return Transition(self.downgraded(state._replace(group=remembering), beat.client), actions)
        ids = {each.id for each in group.members}
        members = tuple(each for each in state.members if each.id in ids)
        return Transition(state._replace(group=group, members=members), actions)

    def released(self, state: State, beat: consumer_ops.Beat) -> consumer.State:
        """A member of the classic protocol never keeps a consumer from its instance, as if it had left for a while."""
        holder = state.group.holder(beat.instance)
        if holder is None or state.member(holder.id) is None:
            return state.group
        return reconciled.with_member(state.group, holder._replace(epoch=terms.AWAY))

    # Requests of the classic protocol

    def classic(self, state: State, event: ops.Classic) -> Transition[State, ops.Action]:
        client = state.client(event.client)
        if isinstance(event, ops.Receive):
            if client.answer is None:
                return Transition(state, (ops.Received(client.name, ops.NOTHING if client.asked < 0 else ops.PARKED),))
            return self.received(state, client)
        if client.asked >= 0:
            return Transition(state, (ops.Received(client.name, ops.BUSY),))
        number = state.requests
        if isinstance(event, ops.ClassicJoin):
            client = client._replace(instance=event.instance)
        state = with_client(state._replace(requests=number + 1), client._replace(asked=number))
        if state.is_consumer and not state.group.members and isinstance(event, ops.ClassicJoin):
            known = self.consumers.initial()._replace(clients=state.group.clients)
            state = state._replace(is_consumer=False, group=known)
        if state.is_consumer:
            state = self.asked(state, client, event)
        else:
            state = self.run(state, self.request_of(state, client, event, number))
        client = state.client(client.name)
        if client.answer is None:
            return Transition(state, (ops.Received(client.name, ops.PARKED),))
        return self.received(state, client)

    def received(self, state: State, client: Client) -> Transition[State, ops.Action]:
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
        elif client.fresh and error in (ops.NONE, *ops.GIVING_IDS):
            id = client.fresh
        client = Client(client.name, id, client.instance, generation, given)
        return Transition(with_client(state, client), (replace(answer, client=client.name),))

    # ... in a classic group

    def request_of(self, state: State, client: Client, event: ops.Classic, number: int) -> messages.Request:
        id = client.id or UNKNOWN_MEMBER
        match event:
            case ops.ClassicJoin():
                blob = metadata(event.topics, client.given if event.owned == "told" else ())
                protocols = tuple((each, blob) for each in event.protocols)
                return messages.Join(
                    event.sent_version, client.id, event.instance, "consumer", protocols, ops.SESSION_MS,
                    consumer_ops.REBALANCE_MS,
                    fresh=f"{client.name}.{number}", request=number,
                )  # fmt: skip
            case ops.ClassicSync():
                shares = tuple((state.client(name).id or UNKNOWN_MEMBER, printed(each)) for name, each in dealt(event))
                return messages.Sync(
                    ops.VERSION, id, client.instance, client.generation - event.behind, shares, request=number
                )
            case ops.ClassicBeat():
                return messages.Heartbeat(
                    ops.VERSION, id, client.instance, client.generation - event.behind, request=number
                )
            case ops.ClassicLeave():
                return messages.Leave(ops.VERSION, ((id, client.instance),), request=number)
            case ops.ClassicRemove():
                return messages.Leave(ops.VERSION, (("", event.instance),), request=number)
            case ops.Receive():
                raise ValueError("no request")
            case _:
                assert_never(event)

    def run(self, state: State, event: messages.Event) -> State:
        """The classic group after an event, with the answers delivered."""
        replies: list[messages.Reply] = []
        classic, clock, _ = self.service.run(state.classic, state.clock, None, event, replies)
        state = state._replace(classic=classic, clock=clock)
        for each in replies:
            state = self.delivered(state, each.to, *self.read(each))
        return state

    def read(self, reply: messages.Reply) -> tuple[ops.Received, str]:
        """The answer, and the id of the member in it; ``LEFT``: it left."""
        match reply:
            case messages.Joined(error=messages.Error.NONE):
                led, leads = bool(reply.leader), reply.leader == reply.member
                return ops.Received("", ops.NONE, reply.generation, led, leads), reply.member
            case messages.Synced(error=messages.Error.NONE):
                return ops.Received("", ops.NONE, assignment=partitions_of(str(reply.assignment))), ""
            case messages.Left():
                return ops.Received("", (reply.members[0][2] if reply.members else reply.error).name), LEFT
            case messages.Joined():
                return ops.Received("", reply.error.name), reply.member
            case _:
                return ops.Received("", reply.error.name), ""

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
            state = self.run(state._replace(clock=clock), messages.Fired(timer))
        return state._replace(clock=Clock(until, state.clock.timers))

    def rests(self, state: State) -> Iterator[int]:
        """The times until members are removed."""
        for each in state.group.members:
            known = state.member(each.id)
            if known is None:
                yield self.config.session_ms - each.silent_ms
                if each.pending:
                    yield consumer_ops.REBALANCE_MS - each.revoking_ms
            else:
                yield ops.SESSION_MS - each.silent_ms
                yield from (
                    consumer_ops.REBALANCE_MS - age for age in (known.joining_ms, known.syncing_ms) if age is not None
                )

    def older(self, state: State, ms: int) -> State:
        def aged(age: int | None) -> int | None:
            return None if age is None else age + ms

        members = tuple(
            each._replace(joining_ms=aged(each.joining_ms), syncing_ms=aged(each.syncing_ms)) for each in state.members
        )
        return state._replace(group=self.consumers.older(state.group, ms), members=members)

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
        return member.silent_ms >= ops.SESSION_MS or any(
            age is not None and age >= consumer_ops.REBALANCE_MS for age in ages
        )

    # What is drawn

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        """Events that the coordinator accepts."""
        for name in CONSUMERS:
            yield from self.enabled_heartbeats(state, name)
        for name in ops.CLIENTS:
            client = state.client(name)
            if client.asked >= 0:
                yield ops.Receive(name)
                continue
            instance = client.instance
            yield from (ops.ClassicJoin(name, each, "told", instance=instance) for each in consumer_ops.SUBSCRIPTIONS)
            if not client.id:
                yield ops.ClassicJoin(name, version=ops.ASKING_VERSION)
                yield from (
                    ops.ClassicJoin(name, each, instance=consumer_ops.INSTANCES[0])
                    for each in consumer_ops.SUBSCRIPTIONS
                )
                continue
            everyone = tuple(each.name for each in state.clients if each.id)
            yield from (ops.ClassicSync(name, topics=each, over=everyone) for each in consumer_ops.SUBSCRIPTIONS)
            yield from (ops.ClassicBeat(name), ops.ClassicLeave(name))
        holders = state.group.members if state.is_consumer else state.classic.members
        yield from (ops.ClassicRemove(each.instance) for each in holders if each.instance is not None)
        yield from map(consumer_ops.Pass, PASSES)

    def enabled_heartbeats(self, state: State, name: str) -> Iterator[ops.Event]:
        member = state.group.member(name) if state.is_consumer else None
        if member is None or member.epoch == terms.AWAY:
            yield from (
                consumer_ops.Beat(name, terms.Says.JOIN, topics=topics, owned="none", instance=each)
                for topics in consumer_ops.SUBSCRIPTIONS for each in (None, consumer_ops.INSTANCES[0])
            )  # fmt: skip
            return
        instance = member.instance
        yield from (
            consumer_ops.Beat(name, terms.Says.STAY, owned="told", instance=instance),
            consumer_ops.Beat(name, terms.Says.LEAVE, instance=instance),
        )
        yield from (
            consumer_ops.Beat(name, terms.Says.STAY, topics=each, owned="told", instance=instance)
            for each in consumer_ops.SUBSCRIPTIONS
        )
        if instance is not None:
            yield consumer_ops.Beat(name, terms.Says.AWAY, instance=instance)
