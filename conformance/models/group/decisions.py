"""What a classic group coordinator decides, one decision per method. None of them changes anything."""

from typing import Final, assert_never

from kipcheck.conformance.models.group.answers import BATCH_SINCE, SYNC_TYPE_SINCE, Answers
from kipcheck.conformance.models.group.messages import (
    Commit,
    Delete,
    Describe,
    Error,
    Event,
    Fetch,
    Fired,
    Heartbeat,
    Join,
    Leave,
    ListGroups,
    Load,
    Loaded,
    Nameless,
    Phase,
    Request,
    Sync,
    Unload,
    WriteFailed,
    Written,
)
from kipcheck.conformance.models.group.rules import INSTANCE_SINCE
from kipcheck.conformance.models.group.state import Member, Standing, State, armed

IDS_REQUIRED_SINCE: Final = 4
"""JoinGroup (KIP-394)."""
UNKNOWN_GROUP_SINCE: Final = 9
"""OffsetCommit (KIP-848)."""


class Decisions(Answers):
    # What is accepted: the guard of ``step``, said once

    def accepts(self, state: State, event: Event) -> bool:
        """A request that is answered, now or later, without an error that is its own fault; anything else that can
        happen."""
        match event:
            case Fired(timer):
                return timer in armed(state, self.rules.sync_deadline)
            case Written() | WriteFailed():
                return bool(state.writes)
            case Unload():
                return state.standing is not Standing.AWAY
            case Load():
                return state.standing is Standing.AWAY and not state.writes
            case Loaded():
                return state.standing is Standing.LOADING
            case Nameless(asked):
                return self.nameless_fault(asked) in (None, Error.NONE)
            case _:
                return self.fault(state, event) in (None, Error.NONE)

    def fault(self, state: State, request: Request) -> Error | None:
        """What is wrong with a request; ``NONE`` where it is answered so at once, nothing where it is to be served."""
        fault = self.unsupported(request)
        if fault is None:
            fault = self.turned_away(state, request)
        return self.own_fault(state, request) if fault is None else fault

    def unsupported(self, request: Request) -> Error | None:
        if request.version in self.rules.versions[type(request)] and self.expressible(request):
            return None
        return Error.UNSUPPORTED_VERSION

    def expressible(self, request: Request) -> bool:
        """In its version."""
        match request:
            case Heartbeat() | Sync() | Commit():
                return request.instance is None or request.version >= INSTANCE_SINCE[type(request)]
            case Join(version, _, instance):
                return request.protocol_version is None and (instance is None or version >= INSTANCE_SINCE[Join])
            case Leave(version, members):
                return version >= BATCH_SINCE or (len(members) == 1 and members[0][1] is None)
            case _:
                return True

    def turned_away(self, state: State, request: Request) -> Error | None:
        """Because this broker has not read the group, or does not hold it."""
        if isinstance(request, Sync) and self.protocol_missing(request):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if state.standing is Standing.OURS:
            return None
        if self.rules.java and isinstance(request, Join) and not self.session_allowed(request.session_ms):
            return Error.INVALID_SESSION_TIMEOUT
        if state.standing is Standing.LOADING:
            return self.while_loading(request)
        return Error.NONE if isinstance(request, ListGroups) else Error.NOT_COORDINATOR

    def while_loading(self, request: Request) -> Error:
        """Members are kept quiet: a heartbeat hears that all is well, a sync, not in Java, that it shall join again."""
        match request:
            case ListGroups():
                return Error.COORDINATOR_LOAD_IN_PROGRESS
            case _ if not self.rules.loading_told:
                return Error.NOT_COORDINATOR
            case Heartbeat():
                return Error.NONE
            case Sync() if not self.rules.java:
                return Error.REBALANCE_IN_PROGRESS
            case _:
                return Error.COORDINATOR_LOAD_IN_PROGRESS

    def own_fault(self, state: State, request: Request) -> Error | None:
        match request:
            case Heartbeat():
                return self.heartbeat_fault(state, request)
            case Sync():
                return self.sync_fault(state, request)
            case Join():
                return self.join_fault(state, request)
            case Commit():
                return self.commit_fault(state, request)
            case Delete():
                return self.delete_fault(state)
            case Leave() | Fetch() | Describe() | ListGroups():
                return None
            case _:
                assert_never(request)

    def nameless_fault(self, asked: Request) -> Error | None:
        """The group with the empty name cannot have members. What is committed to it is not modelled."""
        fault = self.unsupported(asked)
        if fault is not None:
            return fault
        match asked:
            case Sync() if self.protocol_missing(asked):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            case Join():
                return Error.INVALID_GROUP_ID
            case Sync() | Heartbeat() | Leave():
                return self.rules.nameless
            case Commit():
                return self.commit_fault(State(), asked)
            case Delete():
                return Error.GROUP_ID_NOT_FOUND
            case Fetch() | Describe() | ListGroups():
                return None
            case _:
                assert_never(asked)

    # Joining

    def join_fault(self, state: State, join: Join) -> Error | None:
        if not self.session_allowed(join.session_ms):
            return Error.INVALID_SESSION_TIMEOUT
        if join.member and state.phase is Phase.DEAD:
            return Error.UNKNOWN_MEMBER_ID
        if self.rules.size_limit and not self.admits(state, join.member):
            return Error.GROUP_MAX_SIZE_REACHED
        fault = self.protocol_fault(state, join)
        return self.identity_fault(state, join) if fault is None and join.member else fault

    def session_allowed(self, ms: int) -> bool:
        return self.config.min_session_ms <= ms <= self.config.max_session_ms

    def admits(self, state: State, id: str) -> bool:
        """There is room for this member."""
        member, room = state.member(id), self.config.max_size
        if not self.rules.size_by_waiting:
            surplus = member is not None and member.join is None and len(state.members) > room
            return not surplus and (id != "" or len(state.members) < room)
        match state.phase:
            case Phase.EMPTY | Phase.DEAD:
                return True
            case Phase.PREPARING:
                known = member is not None and member.join is not None
                return known or self.waiting(state) < room
            case Phase.COMPLETING | Phase.STABLE:
                return member is not None or len(state.members) < room
            case _:
                assert_never(state.phase)

    def waiting(self, state: State) -> int:
        """Members that have joined."""
        return sum([each.join is not None for each in state.members])

    def protocol_fault(self, state: State, join: Join) -> Error | None:
        if self.rules.refuses_empty_protocols or state.phase not in (Phase.EMPTY, Phase.DEAD):
            return None if self.compatible(state, join) else Error.INCONSISTENT_GROUP_PROTOCOL
        return None if join.protocols else Error.UNKNOWN_SERVER_ERROR

    def compatible(self, state: State, join: Join) -> bool:
        """With what all members speak."""
        if state.phase in (Phase.EMPTY, Phase.DEAD):
            return bool(join.protocol_type and join.protocols)
        if join.protocol_type != state.protocol_type:
            return False
        if not state.members:  # all have left since the round began
            return bool(join.protocols)
        return not self.common_protocols(state.members).isdisjoint([name for name, _ in join.protocols])

    def identity_fault(self, state: State, join: Join) -> Error | None:
        """Of a request with a member id. One that was given out to a dynamic member cannot become a static one."""
        if join.member in state.pending:
            return None if join.instance is None else Error.UNKNOWN_SERVER_ERROR
        if join.instance is not None and state.static(join.instance) is None:
            return Error.UNKNOWN_MEMBER_ID
        return self.fenced(state, join.member, join.instance)

    def fenced(self, state: State, id: str, instance: str | None) -> Error | None:
        """The instance belongs to another member id, or there is no such member."""
        if instance is not None:
            holder = state.static(instance)
            if holder is not None:
                return None if holder.id == id else Error.FENCED_INSTANCE_ID
            if self.rules.strict_instances:
                return Error.UNKNOWN_MEMBER_ID
        return Error.UNKNOWN_MEMBER_ID if state.member(id) is None else None

    def needs_id_first(self, join: Join) -> bool:
        return self.rules.ids_required and join.version >= IDS_REQUIRED_SINCE

    def unchanged(self, member: Member, join: Join) -> bool:
        """Names, order and bytes of the protocols."""
        return member.protocols == join.protocols

    def answered_at_once(self, state: State, member: Member, join: Join) -> bool:
        """A member that joins again and changes nothing hears of the generation that there is. A leader that does so
        once the group is stable wants a new one."""
        if state.phase is Phase.STABLE:
            return member.id != state.leader and self.unchanged(member, join)
        return state.phase is Phase.COMPLETING and self.unchanged(member, join)

    # A round

    def all_joined(self, state: State) -> bool:
        return not state.pending and None not in [each.join for each in state.members]

    def may_complete(self, state: State) -> bool:
        """The join phase, before its time is over."""
        return state.phase is Phase.PREPARING and not state.initial and self.all_joined(state)

    def prolongs(self, state: State) -> bool:
        """Who joins now prolongs the initial rebalance. In Scala that of a group that never had a generation alone."""
        return state.initial and (self.rules.java or state.generation == 0)

    def waits_for_more(self, state: State) -> bool:
        """The initial rebalance, for another round."""
        return state.initial and state.grown and state.remaining_ms != 0

    def bumped(self, generation: int) -> int:
        return generation + 1

    def is_absent(self, member: Member) -> bool:
        """When the time to join is over. Static members stay until their session ends."""
        return member.join is None and member.instance is None

    def keeps_leader(self, state: State, leader: Member) -> bool:
        """Whoever led leads on if it has joined again."""
        return leader.join is not None

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        """Where the former leader does not lead on. Kafka takes any: the order of a hash map. Here: the first."""
        return candidates[0]

    def common_protocols(self, members: tuple[Member, ...]) -> frozenset[str]:
        """What all of them speak, of whom there is at least one."""
        first = members[0].protocols
        common = frozenset([name for name, _ in first])
        for each in members[1:]:
            if each.protocols != first:
                common = common.intersection([name for name, _ in each.protocols])
        return common

    def vote(self, member: Member, candidates: frozenset[str]) -> str:
        """The first of its protocols that all speak."""
        for name, _ in member.protocols:
            if name in candidates:
                return name
        raise LookupError(f"{member.id!r} speaks none of {sorted(candidates)}")

    def elected_protocol(self, state: State) -> str:
        candidates = self.common_protocols(state.members)
        votes = [self.vote(each, candidates) for each in state.members]
        if votes.count(votes[0]) == len(votes):
            return votes[0]
        most = max([votes.count(name) for name in candidates])
        tied = tuple([name for name in candidates if votes.count(name) == most])
        return tied[0] if len(tied) == 1 else self.choose_protocol(state, tied)

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        """Of those with the most votes, in no order. Kafka says nothing of it: the first in a hash table."""
        return self.rules.votes.first(candidates)

    def replacement_starts_round(self, state: State) -> bool:
        """A static member came back. In a stable group that is so where another protocol would be chosen now."""
        if state.phase is Phase.COMPLETING:
            return self.rules.replacement_rejoins
        return self.rules.replacement_written and state.protocol != self.elected_protocol(state)

    def assigns(self, state: State, member: Member) -> bool:
        """Only the leader's assignment counts."""
        return member.id == state.leader

    # Members that are there

    def sync_fault(self, state: State, sync: Sync) -> Error | None:
        if state.phase is Phase.DEAD:
            return Error.UNKNOWN_MEMBER_ID
        fault = self.fenced(state, sync.member, sync.instance) or self.stale(state, sync.generation)
        if fault is not None:
            return fault
        if not self.names_the_protocol(state, sync):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        return Error.REBALANCE_IN_PROGRESS if state.phase is Phase.PREPARING else None

    def stale(self, state: State, generation: int) -> Error | None:
        return None if generation == state.generation else Error.ILLEGAL_GENERATION

    def protocol_missing(self, sync: Sync) -> bool:
        return sync.version >= SYNC_TYPE_SINCE and (sync.protocol_type is None or sync.protocol is None)

    def names_the_protocol(self, state: State, sync: Sync) -> bool:
        """In Java what the group has not chosen yet is not compared."""
        if sync.version < SYNC_TYPE_SINCE:
            return True
        unknown = self.rules.java and state.protocol is None
        return sync.protocol_type == state.protocol_type and (unknown or sync.protocol == state.protocol)

    def heartbeat_fault(self, state: State, beat: Heartbeat) -> Error | None:
        if self.rules.heartbeats_by_phase and state.phase in (Phase.PREPARING, Phase.COMPLETING):
            return Error.REBALANCE_IN_PROGRESS
        fault = self.fenced(state, beat.member, beat.instance)
        if fault is not None or (state.phase is Phase.COMPLETING and not self.rules.busy_generation_checked):
            return fault
        return self.stale(state, beat.generation)

    def told_to_rejoin(self, state: State) -> bool:
        """A member whose heartbeat is in order."""
        return state.phase is Phase.PREPARING or (state.phase is Phase.COMPLETING and self.rules.busy_while_completing)

    def refreshed_by_heartbeat(self, state: State, member: Member) -> bool:
        """Its session begins anew. That of a member that waits does not run."""
        ignored = state.phase is Phase.COMPLETING and self.rules.busy_while_completing
        return not (ignored or member.waits)

    def leave_fault(self, state: State, id: str, instance: str | None) -> Error | None:
        """An instance alone is enough, whatever the id that holds it."""
        if not id:
            return Error.UNKNOWN_MEMBER_ID if instance is None or state.static(instance) is None else None
        return self.fenced(state, id, instance)

    def commit_fault(self, state: State, commit: Commit) -> Error | None:
        """Offsets of a group without members may be committed by anybody who names no generation."""
        if state.phase is Phase.DEAD:
            return None if commit.generation < 0 else self.unknown_group(commit)
        if commit.generation < 0 and state.phase is Phase.EMPTY:
            return None
        completing = state.phase is Phase.COMPLETING
        if completing and not self.rules.commits_fenced_first:
            return self.fenced_commit(state, commit) or Error.REBALANCE_IN_PROGRESS
        fault = self.fenced(state, commit.member, commit.instance) or self.stale(state, commit.generation)
        return Error.REBALANCE_IN_PROGRESS if fault is None and completing else fault

    def fenced_commit(self, state: State, commit: Commit) -> Error | None:
        """By another holder of its instance, and nothing else."""
        fault = self.fenced(state, commit.member, commit.instance)
        return fault if fault is Error.FENCED_INSTANCE_ID else None

    def unknown_group(self, commit: Commit) -> Error:
        known = self.rules.java and commit.version >= UNKNOWN_GROUP_SINCE
        return Error.GROUP_ID_NOT_FOUND if known else Error.ILLEGAL_GENERATION

    def delete_fault(self, state: State) -> Error | None:
        if state.phase is Phase.DEAD:
            return Error.GROUP_ID_NOT_FOUND
        return None if state.phase is Phase.EMPTY else Error.NON_EMPTY_GROUP
