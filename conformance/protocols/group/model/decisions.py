"""The decisions of a classic group coordinator, one per method, without side effects."""

from typing import Final, assert_never

from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.answers import BATCH_SINCE, SYNC_TYPE_SINCE, Answers
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE
from kipcheck.conformance.protocols.group.model.state import Member, Standing, State, armed

IDS_REQUIRED_SINCE: Final = 4
"""JoinGroup (KIP-394)."""
UNKNOWN_GROUP_SINCE: Final = 9
"""OffsetCommit (KIP-848)."""


class Decisions(Answers):
    # The guard of ``step``

    def accepts(self, state: State, event: messages.Event) -> bool:
        """Whether a request is valid, so that it is answered now or later without an error of its own, or another event
        can happen in this state."""
        match event:
            case messages.Fired(timer):
                return timer in armed(state, self.rules.sync_deadline)
            case messages.Written() | messages.WriteFailed():
                return bool(state.writes or (state.unnamed is not None and state.unnamed.writes))
            case messages.Unload():
                return state.standing is not Standing.AWAY
            case messages.Load():
                return state.standing is Standing.AWAY and not state.writes
            case messages.Loaded():
                return state.standing is Standing.LOADING
            case messages.Nameless(asked):
                return self.nameless_fault(state, asked) in (None, Error.NONE)
            case _:
                return self.fault(state, event) in (None, Error.NONE)

    def fault(self, state: State, request: messages.Request) -> Error | None:
        """The immediate answer's error: ``NONE`` if the request is answered without effect, None if it is processed."""
        fault = self.unsupported(request)
        if fault is None:
            fault = self.turned_away(state, request)
        return self.own_fault(state, request) if fault is None else fault

    def unsupported(self, request: messages.Request) -> Error | None:
        if request.version in self.rules.versions[type(request)] and self.expressible(request):
            return None
        return Error.UNSUPPORTED_VERSION

    def expressible(self, request: messages.Request) -> bool:
        """Whether the request's version has all of its fields."""
        match request:
            case messages.Heartbeat() | messages.Sync() | messages.Commit():
                return request.instance is None or request.version >= INSTANCE_SINCE[type(request)]
            case messages.Join(version, _, instance):
                return request.protocol_version is None and (
                    instance is None or version >= INSTANCE_SINCE[messages.Join]
                )
            case messages.Leave(version, members):
                return version >= BATCH_SINCE or (len(members) == 1 and members[0][1] is None)
            case _:
                return True

    def turned_away(self, state: State, request: messages.Request) -> Error | None:
        """The error of a request while this broker has not loaded the group, or is not its coordinator."""
        if isinstance(request, messages.Sync) and self.protocol_missing(request):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if state.standing is Standing.OURS:
            return None
        if self.rules.java and isinstance(request, messages.Join) and not self.session_allowed(request.session_ms):
            return Error.INVALID_SESSION_TIMEOUT
        if state.standing is Standing.LOADING:
            return self.while_loading(request)
        return Error.NONE if isinstance(request, messages.ListGroups) else Error.NOT_COORDINATOR

    def while_loading(self, request: messages.Request) -> Error:
        """The error while the log is loading. Heartbeats succeed; in Scala a sync gets REBALANCE_IN_PROGRESS."""
        match request:
            case messages.ListGroups():
                return Error.COORDINATOR_LOAD_IN_PROGRESS
            case _ if not self.rules.loading_told:
                return Error.NOT_COORDINATOR
            case messages.Heartbeat():
                return Error.NONE
            case messages.Sync() if not self.rules.java:
                return Error.REBALANCE_IN_PROGRESS
            case _:
                return Error.COORDINATOR_LOAD_IN_PROGRESS

    def own_fault(self, state: State, request: messages.Request) -> Error | None:
        match request:
            case messages.Heartbeat():
                return self.heartbeat_fault(state, request)
            case messages.Sync():
                return self.sync_fault(state, request)
            case messages.Join():
                return self.join_fault(state, request)
            case messages.Commit():
                return self.commit_fault(state, request)
            case messages.Delete():
                return self.delete_fault(state)
            case messages.Leave() | messages.Fetch() | messages.Describe() | messages.ListGroups():
                return None
            case _:
                assert_never(request)

    def nameless_fault(self, state: State, asked: messages.Request) -> Error | None:
        """The group with the empty name cannot have members, but offsets, which old consumers commit to it."""
        fault = self.unsupported(asked)
        if fault is not None:
            return fault
        match asked:
            case messages.Sync() if self.protocol_missing(asked):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            case messages.Join():
                return Error.INVALID_GROUP_ID
            case messages.Sync() | messages.Heartbeat() | messages.Leave():
                return self.rules.nameless
            case messages.Commit():
                return self.commit_fault(state.unnamed or State(), asked)
            case messages.Delete() if not self.rules.deletes_nameless:
                return Error.INVALID_GROUP_ID
            case messages.Delete():
                return self.delete_fault(state.unnamed or State())
            case messages.Fetch() | messages.Describe() | messages.ListGroups():
                return None
            case _:
                assert_never(asked)

    # Joining

    def join_fault(self, state: State, join: messages.Join) -> Error | None:
        if not self.session_allowed(join.session_ms):
            return Error.INVALID_SESSION_TIMEOUT
        if join.member and state.phase is messages.Phase.DEAD:
            return Error.UNKNOWN_MEMBER_ID
        if self.rules.size_limit and not self.admits(state, join.member):
            return Error.GROUP_MAX_SIZE_REACHED
        fault = self.protocol_fault(state, join)
        return self.identity_fault(state, join) if fault is None and join.member else fault

    def session_allowed(self, ms: int) -> bool:
        return self.config.min_session_ms <= ms <= self.config.max_session_ms

    def admits(self, state: State, id: str) -> bool:
        """Whether the group has room for this member."""
        member, room = state.member(id), self.config.max_size
        if not self.rules.size_by_waiting:
            surplus = member is not None and member.join is None and len(state.members) > room
            return not surplus and (id != "" or len(state.members) < room)
        match state.phase:
            case messages.Phase.EMPTY | messages.Phase.DEAD:
                return True
            case messages.Phase.PREPARING:
                known = member is not None and member.join is not None
                return known or self.waiting(state) < room
            case messages.Phase.COMPLETING | messages.Phase.STABLE:
                return member is not None or len(state.members) < room
            case _:
                assert_never(state.phase)

    def waiting(self, state: State) -> int:
        """Number of members with a parked JoinGroup."""
        return sum([each.join is not None for each in state.members])

    def protocol_fault(self, state: State, join: messages.Join) -> Error | None:
        if self.rules.refuses_empty_protocols or state.phase not in (messages.Phase.EMPTY, messages.Phase.DEAD):
            return None if self.compatible(state, join) else Error.INCONSISTENT_GROUP_PROTOCOL
        return None if join.protocols else Error.UNKNOWN_SERVER_ERROR

    def compatible(self, state: State, join: messages.Join) -> bool:
        """Whether the join shares the protocol type, and a protocol with all members."""
        if state.phase in (messages.Phase.EMPTY, messages.Phase.DEAD):
            return bool(join.protocol_type and join.protocols)
        if join.protocol_type != state.protocol_type:
            return False
        if not state.members:  # all have left since the round began
            return bool(join.protocols)
        return not self.common_protocols(state.members).isdisjoint([name for name, _ in join.protocols])

    def identity_fault(self, state: State, join: messages.Join) -> Error | None:
        """The fault of a join with a member id. A pending id belongs to a dynamic member, and cannot become static."""
        if join.member in state.pending:
            fails = self.rules.fails_on_unused_static_ids
            return None if join.instance is None else Error.UNKNOWN_SERVER_ERROR if fails else Error.UNKNOWN_MEMBER_ID
        if join.instance is not None and state.static(join.instance) is None:
            return Error.UNKNOWN_MEMBER_ID
        return self.fenced(state, join.member, join.instance)

    def fenced(self, state: State, id: str, instance: str | None) -> Error | None:
        """The error if the instance belongs to another member id, or the member is unknown."""
        if instance is not None:
            holder = state.static(instance)
            if holder is not None:
                return None if holder.id == id else Error.FENCED_INSTANCE_ID
            if self.rules.strict_instances:
                return Error.UNKNOWN_MEMBER_ID
        return Error.UNKNOWN_MEMBER_ID if state.member(id) is None else None

    def needs_id_first(self, join: messages.Join) -> bool:
        return self.rules.ids_required and join.version >= IDS_REQUIRED_SINCE

    def unchanged(self, member: Member, join: messages.Join) -> bool:
        """Whether names, order and metadata of the protocols are unchanged."""
        return member.protocols == join.protocols

    def answered_at_once(self, state: State, member: Member, join: messages.Join) -> bool:
        """Whether an unchanged join of a member is answered with the current generation. In a stable group, a join of
        the leader starts a rebalance instead."""
        if state.phase is messages.Phase.STABLE:
            return member.id != state.leader and self.unchanged(member, join)
        return state.phase is messages.Phase.COMPLETING and self.unchanged(member, join)

    # A rebalance

    def all_joined(self, state: State) -> bool:
        return not state.pending and None not in [each.join for each in state.members]

    def may_complete(self, state: State) -> bool:
        """Whether the join phase may end before its timeout."""
        return state.phase is messages.Phase.PREPARING and not state.initial and self.all_joined(state)

    def prolongs(self, state: State) -> bool:
        """Whether a join now prolongs the initial rebalance; in Scala only if the group never had a generation."""
        return state.initial and (self.rules.java or state.generation == 0)

    def waits_for_more(self, state: State) -> bool:
        """Whether the initial rebalance takes another round."""
        return state.initial and state.grown and state.remaining_ms != 0

    def bumped(self, generation: int) -> int:
        return generation + 1

    def is_absent(self, member: Member) -> bool:
        """Whether a member is removed at the end of the join phase. Static members stay until their session ends."""
        return member.join is None and member.instance is None

    def keeps_leader(self, state: State, leader: Member) -> bool:
        """Whether the former leader stays leader: if it has joined again."""
        return leader.join is not None

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        """The new leader. Kafka takes the first in the order of a hash map, this model the first that joined."""
        return candidates[0]

    def common_protocols(self, members: tuple[Member, ...]) -> frozenset[str]:
        """Protocols that all members support; ``members`` is not empty."""
        first = members[0].protocols
        common = frozenset([name for name, _ in first])
        for each in members[1:]:
            if each.protocols != first:
                common = common.intersection([name for name, _ in each.protocols])
        return common

    def vote(self, member: Member, candidates: frozenset[str]) -> str:
        """The member's first protocol among the candidates."""
        for name, _ in member.protocols:
            if name in candidates:
                return name
        raise LookupError(f"member {member.id!r} supports none of {sorted(candidates)}")

    def elected_protocol(self, state: State) -> str:
        candidates = self.common_protocols(state.members)
        votes = [self.vote(each, candidates) for each in state.members]
        if votes.count(votes[0]) == len(votes):
            return votes[0]
        most = max([votes.count(name) for name in candidates])
        tied = tuple([name for name in candidates if votes.count(name) == most])
        return tied[0] if len(tied) == 1 else self.choose_protocol(state, tied)

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        """The protocol among those with the most votes. Kafka does not specify it: the first in a hash table."""
        return self.rules.votes.first(candidates)

    def replacement_starts_round(self, state: State) -> bool:
        """Whether a returning static member starts a rebalance; in a stable group, if the elected protocol changes."""
        if state.phase is messages.Phase.COMPLETING:
            return self.rules.replacement_rejoins
        return self.rules.replacement_written and state.protocol != self.elected_protocol(state)

    def assigns(self, state: State, member: Member) -> bool:
        """Whether the member's assignments are used: only the leader's are."""
        return member.id == state.leader

    # Requests of members

    def sync_fault(self, state: State, sync: messages.Sync) -> Error | None:
        if state.phase is messages.Phase.DEAD:
            return Error.UNKNOWN_MEMBER_ID
        fault = self.fenced(state, sync.member, sync.instance) or self.stale(state, sync.generation)
        if fault is not None:
            return fault
        if not self.names_the_protocol(state, sync):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        return Error.REBALANCE_IN_PROGRESS if state.phase is messages.Phase.PREPARING else None

    def stale(self, state: State, generation: int) -> Error | None:
        return None if generation == state.generation else Error.ILLEGAL_GENERATION

    def protocol_missing(self, sync: messages.Sync) -> bool:
        return sync.version >= SYNC_TYPE_SINCE and (sync.protocol_type is None or sync.protocol is None)

    def names_the_protocol(self, state: State, sync: messages.Sync) -> bool:
        """Whether the request names the group's protocol; Java ignores it until the group has one."""
        if sync.version < SYNC_TYPE_SINCE:
            return True
        unknown = self.rules.java and state.protocol is None
        return sync.protocol_type == state.protocol_type and (unknown or sync.protocol == state.protocol)

    def heartbeat_fault(self, state: State, beat: messages.Heartbeat) -> Error | None:
        if self.rules.heartbeats_by_phase and state.phase in (messages.Phase.PREPARING, messages.Phase.COMPLETING):
            return Error.REBALANCE_IN_PROGRESS
        fault = self.fenced(state, beat.member, beat.instance)
        if fault is not None or (state.phase is messages.Phase.COMPLETING and not self.rules.busy_generation_checked):
            return fault
        return self.stale(state, beat.generation)

    def must_rejoin(self, state: State) -> bool:
        """Whether a valid heartbeat gets REBALANCE_IN_PROGRESS."""
        return state.phase is messages.Phase.PREPARING or (
            state.phase is messages.Phase.COMPLETING and self.rules.busy_while_completing
        )

    def refreshed_by_heartbeat(self, state: State, member: Member) -> bool:
        """Whether a heartbeat restarts the session. While a request is parked, no session timer runs."""
        ignored = state.phase is messages.Phase.COMPLETING and self.rules.busy_while_completing
        return not (ignored or member.waits)

    def leave_fault(self, state: State, id: str, instance: str | None) -> Error | None:
        """An instance id without a member id is valid, whatever the member id of the instance."""
        if not id:
            return Error.UNKNOWN_MEMBER_ID if instance is None or state.static(instance) is None else None
        return self.fenced(state, id, instance)

    def pending_leave_fault(self, state: State, instance: str | None) -> Error | None:
        """The fault of a pending id that leaves with an instance id. Since 3.0 the instance id is ignored; from 2.4 to
        2.8 it must not be that of a member, and otherwise fails in the coordinator (``handleLeaveGroup``)."""
        if instance is None or self.rules.strict_instances:
            return None
        return Error.UNKNOWN_SERVER_ERROR if state.static(instance) is None else Error.FENCED_INSTANCE_ID

    def commit_fault(self, state: State, commit: messages.Commit) -> Error | None:
        """Any client may commit without a generation to a group without members."""
        if state.phase is messages.Phase.DEAD:
            return None if commit.generation < 0 else self.unknown_group(commit)
        if commit.generation < 0 and state.phase is messages.Phase.EMPTY:
            return None
        completing = state.phase is messages.Phase.COMPLETING
        if completing and not self.rules.commits_fenced_first:
            return self.fenced_commit(state, commit) or Error.REBALANCE_IN_PROGRESS
        fault = self.fenced(state, commit.member, commit.instance) or self.stale(state, commit.generation)
        return Error.REBALANCE_IN_PROGRESS if fault is None and completing else fault

    def fenced_commit(self, state: State, commit: messages.Commit) -> Error | None:
        """FENCED_INSTANCE_ID if another member has the instance; other faults are ignored."""
        fault = self.fenced(state, commit.member, commit.instance)
        return fault if fault is Error.FENCED_INSTANCE_ID else None

    def unknown_group(self, commit: messages.Commit) -> Error:
        known = self.rules.java and commit.version >= UNKNOWN_GROUP_SINCE
        return Error.GROUP_ID_NOT_FOUND if known else Error.ILLEGAL_GENERATION

    def delete_fault(self, state: State) -> Error | None:
        if state.phase is messages.Phase.DEAD:
            return Error.GROUP_ID_NOT_FOUND
        return None if state.phase is messages.Phase.EMPTY else Error.NON_EMPTY_GROUP
