"""The classic group coordinator of Apache Kafka, for one group, with the behaviour of exact releases.

Pure: time, fresh member ids and results of appends arrive as events. A parked request is part of the state until a
later event answers it by its number, if ever. An event that cannot happen (a timer that is not armed, the result of an
append that is not pending) has no effect.

Answers have the fields of the request's version: a protocol type since JoinGroup 7 and SyncGroup 5, instance ids since
JoinGroup 5 and DescribeGroups 4, the state in lists since ListGroups 4. A request in a version that the release does
not support gets UNSUPPORTED_VERSION, where a broker closes the connection.

Not modelled: authorization; transactions; offsets that expire, or are in ZooKeeper (version 0); consumer
groups (KIP-848) and conversion between them and this protocol; that up to 2.4 a new member that is given up can leave
the rebalance stuck (KAFKA-9752). Where Kafka uses the order of a hash map, this model uses the order of arrival.
"""

from collections.abc import Iterable
from typing import assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.group.model import messages, state as group_state
from kipcheck.conformance.protocols.group.model.answers import DEFAULT, Config
from kipcheck.conformance.protocols.group.model.environment_moves import CLIENTS, Client, environment_events
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rounds import Out
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.storage import Storage
from kipcheck.conformance.protocols.group.ops import as_of


class Coordinator(Storage):
    def __init__(self, rules: Rules, config: Config = DEFAULT, clients: tuple[Client, ...] = CLIENTS) -> None:
        """``clients``: the senders of the requests that ``enabled`` generates."""
        super().__init__(rules, config)
        self.clients = clients

    def initial(self) -> group_state.State:
        return group_state.State()

    def step(
        self, state: group_state.State, event: messages.Event, /
    ) -> Transition[group_state.State, messages.Action]:
        out: Out = []
        match event:
            case (
                messages.Heartbeat()
                | messages.Sync()
                | messages.Join()
                | messages.Commit()
                | messages.Leave()
                | messages.Fetch()
                | messages.Describe()
                | messages.ListGroups()
                | messages.Delete()
            ):
                after = self.handle_request(state, event, out)
            case messages.Nameless(asked):
                after = self.nameless(state, asked, out)
            case _:
                after = self.handle_event(state, event, out) if self.accepts(state, event) else state
        return Transition(after, tuple(out))

    def handle_event(
        self,
        state: group_state.State,
        event: messages.Fired
        | messages.Written
        | messages.WriteFailed
        | messages.Unload
        | messages.Load
        | messages.Loaded,
        out: Out,
    ) -> group_state.State:
        match event:
            case messages.Fired(timer):
                return self.on_fired(state, timer, out)
            case messages.Written():
                return self.written(state, out)
            case messages.WriteFailed(error):
                return self.write_failed(state, error, out)
            case messages.Unload():
                return self.unload(state, out)
            case messages.Load():
                return self.load(state)
            case messages.Loaded():
                return self.loaded(state, out)
            case _:
                assert_never(event)

    def handle_request(self, state: group_state.State, request: messages.Request, out: Out) -> group_state.State:
        fault = self.fault(state, request)
        if fault is not None:
            return self.refuse(state, request, fault, out)
        match request:
            case messages.Heartbeat():
                return self.heartbeat(state, request, out)
            case messages.Sync():
                return self.sync(state, request, out)
            case messages.Join():
                return self.join(state, request, out)
            case messages.Commit():
                return self.commit(state, request, out)
            case messages.Leave():
                return self.leave(state, request, out)
            case messages.Fetch():
                out.append(messages.Fetched(request.request, Error.NONE, self.fetched(state, request)))
            case messages.Describe():
                out.append(self.described(state, request))
            case messages.ListGroups():
                out.append(self.listed(state, request))
            case messages.Delete():
                return self.delete(state, request, out)
            case _:
                assert_never(request)
        return state

    def nameless(self, state: group_state.State, asked: messages.Request, out: Out) -> group_state.State:
        """A request to the group with the empty name."""
        fault = self.nameless_fault(state, asked)
        if fault is not None:
            out.append(self.refusal(asked, fault))
            return state
        unnamed = state.unnamed or group_state.State()
        match asked:
            case messages.Commit():
                return state._replace(unnamed=self.commit(unnamed, asked, out))
            case messages.Delete():
                return state._replace(unnamed=self.delete(unnamed, asked, out))
            case messages.Fetch():
                out.append(messages.Fetched(asked.request, Error.NONE, self.fetched(unnamed, asked)))
            case messages.Describe():
                out.append(self.described(unnamed, asked))
            case messages.ListGroups():
                out.append(self.listed(unnamed, asked))
            case messages.Join() | messages.Sync() | messages.Heartbeat() | messages.Leave():
                raise LookupError(f"{asked} to a group without members has no fault")
            case _:
                assert_never(asked)
        return state

    # Requests

    def refuse(self, state: group_state.State, request: messages.Request, error: Error, out: Out) -> group_state.State:
        """Answers a request with an error. A rejected first join may still create the group."""
        out.append(self.refusal(request, error))
        if isinstance(request, messages.Join):
            return self.after_refused_join(state, request, error, out)
        return state

    def after_refused_join(
        self, state: group_state.State, join: messages.Join, error: Error, out: Out
    ) -> group_state.State:
        if error is Error.GROUP_MAX_SIZE_REACHED:
            if join.instance is not None and not self.rules.size_by_waiting and state.static(join.instance) is not None:
                state = state._replace(failed=True)  # 2.3 to 2.5 forget who has the instance id: removeStaticMember
            return self.evicted(state, join.member, out)
        if error is Error.INCONSISTENT_GROUP_PROTOCOL and state.phase is messages.Phase.DEAD:
            return self.founded(state, out)
        return state

    def evicted(self, state: group_state.State, id: str, out: Out) -> group_state.State:
        """Removes a member, or a pending id, that exceeds the maximum size of the group."""
        member = state.member(id)
        if member is not None:
            state = self.removed(state, member, out)
        elif id in state.pending and self.rules.refused_ids_forgotten:
            state = self.without_pending(state, id, out)
        return self.complete_if_all_joined(state, out) if self.rules.refusals_end_join_phase else state

    def join(self, state: group_state.State, join: messages.Join, out: Out) -> group_state.State:
        if join.member:
            return self.join_with_id(state, join, out)
        if state.phase is messages.Phase.DEAD:
            state = self.founded(state, out)
        return self.join_without_id(state, join, out)

    def join_without_id(self, state: group_state.State, join: messages.Join, out: Out) -> group_state.State:
        if join.instance is not None:
            holder = state.static(join.instance)
            if holder is None:
                return self.add_member(state, join, join.fresh, out)
            return self.replace_static(state, holder, join, out)
        if self.needs_id_first(join):
            return self.give_id(state, join, out)
        return self.add_member(state, join, join.fresh, out)

    def give_id(self, state: group_state.State, join: messages.Join, out: Out) -> group_state.State:
        """Assigns a member id; the client must join with it within its session timeout."""
        out.append(messages.Arm(group_state.pending(join.fresh), join.session_ms))
        out.append(self.join_refusal(join.request, Error.MEMBER_ID_REQUIRED, join.fresh))
        return state._replace(pending=(*state.pending, join.fresh))

    def join_with_id(self, state: group_state.State, join: messages.Join, out: Out) -> group_state.State:
        member = state.member(join.member)
        if member is None:
            return self.add_member(state, join, join.member, out)
        if self.answered_at_once(state, member, join):
            asked = group_state.Parked(join.request, join.version)
            as_leader = state.phase is messages.Phase.COMPLETING and member.id == state.leader
            out.append(self.joined(state, member, asked, state.leader, as_leader))
            return state._replace(failed=True) if as_leader and self.cannot_list(state, join.version) else state
        return self.rejoin(state, member, join, out)

    def sync(self, state: group_state.State, sync: messages.Sync, out: Out) -> group_state.State:
        member = state.known(sync.member)
        if member.id in state.owing:
            state = self.not_owing(state, member.id, out)
        if state.phase is messages.Phase.COMPLETING:
            return self.park_sync(state, member, sync, out)
        out.append(self.synced(state, member, group_state.Parked(sync.request, sync.version), Error.NONE))
        return self.refreshed(state, member, out) if self.refreshed_by_sync(member) else state

    def refreshed(self, state: group_state.State, member: group_state.Member, out: Out) -> group_state.State:
        """The session of a member begins anew."""
        if member.new and not self.rules.new_sessions_end:
            out.append(group_state.disarm_session(member.id))
            return state.placed(member._replace(new=False))
        out.append(group_state.arm_session(member.id, member.session_ms))
        return state

    def refreshed_by_sync(self, member: group_state.Member) -> bool:
        """Whether a SyncGroup that is answered at once restarts the session; not in Java."""
        return not self.rules.java and not member.waits

    def park_sync(
        self, state: group_state.State, member: group_state.Member, sync: messages.Sync, out: Out
    ) -> group_state.State:
        if member.sync is not None:
            self.supersede_sync(state, member, member.sync, out)
        elif not member.waits:
            self.rest(member, out)
        state = state.placed(member._replace(sync=group_state.Parked(sync.request, sync.version)))
        return self.lead(state, sync, out) if self.assigns(state, member) else state

    def supersede_sync(
        self, state: group_state.State, member: group_state.Member, former: group_state.Parked, out: Out
    ) -> None:
        """A newer SyncGroup of the same member replaces the parked one."""
        if self.rules.superseded_answered:
            out.append(self.synced(state, member, former, Error.NOT_COORDINATOR))

    def lead(self, state: group_state.State, sync: messages.Sync, out: Out) -> group_state.State:
        """Appends the leader's assignments: members it omits get none, unknown ids are ignored.

        A static member that was replaced without the chosen protocol has no metadata for the record: writing it fails.
        """
        if group_state.lacks_protocol(state):
            state = state._replace(failed=True)
        return self.append(state, group_state.Assigning(self.group_record(state, dict(sync.assignments))), out)

    def heartbeat(self, state: group_state.State, beat: messages.Heartbeat, out: Out) -> group_state.State:
        member = state.known(beat.member)
        if self.refreshed_by_heartbeat(state, member):
            state = self.refreshed(state, member, out)
        out.append(messages.Beat(beat.request, Error.REBALANCE_IN_PROGRESS if self.must_rejoin(state) else Error.NONE))
        return state

    def leave(self, state: group_state.State, leave: messages.Leave, out: Out) -> group_state.State:
        """Scala rebalances after each removed member, Java once, at the end. An internal error ends the batch."""
        results = []
        for id, instance in leave.members:
            state, error = self.leave_one(state, id, instance, out)
            if error is Error.UNKNOWN_SERVER_ERROR:
                out.append(self.refusal(leave, error))
                return state
            results.append((id, instance, error))
        reply = self.left(leave, tuple(results))
        if self.rules.java and any(error is Error.NONE for _, _, error in results):
            before, state = state.writes, self.after_removal(state, out)
            if state.writes != before:  # the group is empty, which must be written before the answer
                return state._replace(writes=(*before, group_state.Emptying(self.group_record(state), reply)))
        out.append(reply)
        return state

    def leave_one(
        self, state: group_state.State, id: str, instance: str | None, out: Out
    ) -> tuple[group_state.State, Error]:
        if id in state.pending:
            fault = self.pending_leave_fault(state, instance)
            if fault is not None:
                return state, fault
            state = self.without_pending(state, id, out)
            return state if self.rules.java else self.complete_if_all_joined(state, out), Error.NONE
        fault = self.leave_fault(state, id, instance)
        if fault is not None:
            return state, fault
        holder = None if instance is None else state.static(instance)
        state = self.dismissed(state, holder or state.known(id), out)
        return state if self.rules.java else self.after_removal(state, out), Error.NONE

    def commit(self, state: group_state.State, commit: messages.Commit, out: Out) -> group_state.State:
        if state.phase is messages.Phase.DEAD and self.rules.keeps_empty_groups:
            state = self.without_all_pending(state, out)._replace(phase=messages.Phase.EMPTY)
        member = state.member(commit.member)
        if member is not None and not member.waits:
            state = self.refreshed(state, member, out)
        records = tuple([messages.OffsetRecord(*as_of(each, commit)) for each in commit.offsets])
        return self.append(state, group_state.Committing(messages.OffsetBatch(records), commit.request), out)

    def fetched(self, state: group_state.State, fetch: messages.Fetch) -> group_state.Offsets:
        return tuple([as_of(each, fetch) for each in state.offsets])

    def delete(self, state: group_state.State, delete: messages.Delete, out: Out) -> group_state.State:
        """Removes the group at once. Since 4.0 the answer waits for the write, and the group returns if that fails."""
        write = group_state.Deleting(messages.Tombstone(), delete.request, state.generation, state.protocol_type)
        if self.rules.deletes_unwritten:
            out.append(messages.Deleted(delete.request, Error.NONE))
            state = self.without_all_pending(self.without_lapsing(state, out), out)
        return self.append(self.forgotten(state)._replace(pending=state.pending), write, out)

    def enabled(self, state: group_state.State, /) -> Iterable[messages.Event]:
        """The events that it accepts: requests of ``clients``, timers, results of appends, moves of the partition."""
        return (event for event in environment_events(state, self.rules, self.clients) if self.accepts(state, event))
