"""What a classic group coordinator decides, one decision per method. None of them changes anything."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, assert_never, final

from conformance.models.group.rules import INSTANCE_SINCE, Rules
from conformance.models.group.state import Member, Parked, Standing, State, armed
from conformance.models.group.words import (
    EMPTY,
    Beat,
    Commit,
    Committed,
    Delete,
    Deleted,
    Describe,
    Described,
    Error,
    Event,
    Fetch,
    Fetched,
    Fired,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Listed,
    ListGroups,
    Load,
    Loaded,
    Nameless,
    Phase,
    Reply,
    Request,
    Sync,
    Synced,
    Unload,
    WriteFailed,
    Written,
)

IDS_REQUIRED_SINCE: Final = 4
"""JoinGroup (KIP-394)."""
TYPE_TOLD_SINCE: Final = 7
"""JoinGroup; an answer without error has the protocol type (KIP-559)."""
SKIP_SINCE: Final = 9
"""JoinGroup (KIP-814)."""
PROTOCOL_NAMED_SINCE: Final = 5
"""SyncGroup (KIP-559)."""
BATCH_SINCE: Final = 3
"""LeaveGroup (KIP-345)."""
NEW_ERRORS_SINCE: Final = 9
"""OffsetCommit (KIP-848)."""
INSTANCES_DESCRIBED_SINCE: Final = 4
UNKNOWN_DESCRIBED_SINCE: Final = 6
"""DescribeGroups (KIP-1043)."""
STATES_LISTED_SINCE: Final = 4
"""ListGroups (KIP-518)."""


@final
@dataclass(frozen=True, slots=True)
class Config:
    """Settings of the broker; times in milliseconds."""

    max_size: int = 4
    """``group.max.size``"""
    initial_delay_ms: int = 3000
    """``group.initial.rebalance.delay.ms``"""
    min_session_ms: int = 6000
    max_session_ms: int = 1_800_000
    new_member_ms: int = 300_000
    """How long somebody who joins without an id may wait: no setting, five minutes."""


class Decisions:
    def __init__(self, rules: Rules, config: Config = Config()) -> None:
        self.rules = rules
        self.config = config

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
                return state.standing is Standing.OURS
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
        supported = request.version in self.rules.versions[type(request)] and self.expressible(request)
        return None if supported else Error.UNSUPPORTED_VERSION

    def expressible(self, request: Request) -> bool:
        """In its version."""
        match request:
            case Leave(version, members):
                return version >= BATCH_SINCE or (len(members) == 1 and members[0][1] is None)
            case Join() if request.protocol_version is not None:
                return False
            case Join() | Sync() | Heartbeat() | Commit():
                return request.instance is None or request.version >= INSTANCE_SINCE[type(request)]
            case _:
                return True

    def turned_away(self, state: State, request: Request) -> Error | None:
        """Because this broker has not read the group, or does not hold it."""
        if isinstance(request, Sync) and self.protocol_missing(request):
            return Error.INCONSISTENT_GROUP_PROTOCOL
        if state.standing is Standing.OURS:
            return None
        match request, state.standing:
            case Heartbeat(), Standing.LOADING:
                return Error.NONE
            case Sync(), Standing.LOADING:
                return self.rules.loading_sync
            case _, Standing.LOADING:
                return Error.COORDINATOR_LOAD_IN_PROGRESS
            case ListGroups(), _:
                return Error.NONE
            case _:
                return Error.NOT_COORDINATOR

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
        """The group with the empty name cannot have members. What is committed to it is kept apart from ours."""
        match asked:
            case _ if self.unsupported(asked):
                return Error.UNSUPPORTED_VERSION
            case Sync() if self.protocol_missing(asked):
                return Error.INCONSISTENT_GROUP_PROTOCOL
            case Join():
                return Error.INVALID_GROUP_ID
            case Sync() | Heartbeat() | Leave():
                return self.rules.nameless
            case Commit() | Delete():
                return self.own_fault(State(), asked)
            case Fetch() | Describe() | ListGroups():
                return None
            case _:
                assert_never(asked)

    # Joining

    def join_fault(self, state: State, join: Join) -> Error | None:
        if not self.config.min_session_ms <= join.session_ms <= self.config.max_session_ms:
            return Error.INVALID_SESSION_TIMEOUT
        if join.member and state.phase is Phase.DEAD:
            return Error.UNKNOWN_MEMBER_ID
        if not self.admits(state, join.member):
            return Error.GROUP_MAX_SIZE_REACHED
        return self.protocol_fault(state, join) or (self.identity_fault(state, join) if join.member else None)

    def admits(self, state: State, member: str) -> bool:
        """There is room for this member."""
        if not self.rules.size_limit or state.phase in (Phase.EMPTY, Phase.DEAD):
            return True
        known = state.member(member)
        if state.phase is Phase.PREPARING:
            waiting = sum(each.join is not None for each in state.members)
            return (known is not None and known.join is not None) or waiting < self.config.max_size
        return known is not None or len(state.members) < self.config.max_size

    def protocol_fault(self, state: State, join: Join) -> Error | None:
        return None if self.compatible(state, join) else Error.INCONSISTENT_GROUP_PROTOCOL

    def compatible(self, state: State, join: Join) -> bool:
        """With what all members speak."""
        if state.phase in (Phase.EMPTY, Phase.DEAD):
            return bool(join.protocol_type and join.protocols)
        if join.protocol_type != state.protocol_type:
            return False
        if not state.members:  # all have left since the round began
            return bool(join.protocols)
        common = self.common_protocols(state)
        return any(name in common for name, _ in join.protocols)

    def identity_fault(self, state: State, join: Join) -> Error | None:
        if join.member in state.pending:
            return None if join.instance is None else Error.UNKNOWN_SERVER_ERROR
        return self.fenced(state, join.member, join.instance)

    def fenced(self, state: State, member: str, instance: str | None) -> Error | None:
        """The instance belongs to another member id, or there is no such member."""
        if instance is not None:
            holder = state.static(instance)
            if holder is None:
                return Error.UNKNOWN_MEMBER_ID
            return None if holder.id == member else Error.FENCED_INSTANCE_ID
        return None if state.member(member) else Error.UNKNOWN_MEMBER_ID

    def needs_id_first(self, join: Join) -> bool:
        return self.rules.ids_required and join.version >= IDS_REQUIRED_SINCE

    def unchanged(self, member: Member, join: Join) -> bool:
        """Names, order and bytes of the protocols."""
        return member.protocols == join.protocols

    def answered_at_once(self, state: State, member: Member, join: Join) -> bool:
        """A member that joins again and changes nothing hears of the generation that there is."""
        if state.phase is Phase.COMPLETING:
            return self.unchanged(member, join)
        return state.phase is Phase.STABLE and member.id != state.leader and self.unchanged(member, join)

    # A round

    def all_joined(self, state: State) -> bool:
        return not state.pending and all(each.join is not None for each in state.members)

    def may_complete(self, state: State) -> bool:
        """The join phase, before its time is over."""
        return state.phase is Phase.PREPARING and not state.initial and self.all_joined(state)

    def waits_for_more(self, state: State) -> bool:
        """The initial rebalance, for another round."""
        return state.initial and state.grown and state.remaining_ms != 0

    def bumped(self, generation: int) -> int:
        return generation + 1

    def keeps_leader(self, state: State, leader: Member) -> bool:
        """Whoever led leads on if it has joined again."""
        return leader.join is not None

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        """Where the former leader does not lead on. Kafka takes any: the order of a hash map. Here: the first."""
        return candidates[0]

    def common_protocols(self, state: State) -> frozenset[str]:
        """What all members speak."""
        first, *others = state.members
        common = {name for name, _ in first.protocols}
        for each in others:
            if each.protocols != first.protocols:
                common.intersection_update([name for name, _ in each.protocols])
        return frozenset(common)

    def vote(self, member: Member, candidates: frozenset[str]) -> str:
        """The first of its protocols that all speak."""
        return next(name for name, _ in member.protocols if name in candidates)

    def elected_protocol(self, state: State) -> str:
        candidates = self.common_protocols(state)
        if len(candidates) == 1:
            return next(iter(candidates))
        votes = [self.vote(each, candidates) for each in state.members]
        most = max(votes.count(name) for name in votes)
        return self.choose_protocol(state, tuple(name for name in candidates if votes.count(name) == most))

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        """Of those with the most votes. Kafka takes any; of ``range`` and ``roundrobin`` brokers up to 2.3 were seen to
        take the first, later ones the second."""
        return max(candidates) if self.rules.last_of_tied else min(candidates)

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
        return sync.version >= PROTOCOL_NAMED_SINCE and (sync.protocol_type is None or sync.protocol is None)

    def names_the_protocol(self, state: State, sync: Sync) -> bool:
        if sync.version < PROTOCOL_NAMED_SINCE:
            return True
        return sync.protocol_type == state.protocol_type and sync.protocol == state.protocol

    def heartbeat_fault(self, state: State, beat: Heartbeat) -> Error | None:
        if state.phase is Phase.DEAD:
            return Error.UNKNOWN_MEMBER_ID
        fault = self.fenced(state, beat.member, beat.instance)
        if fault is not None or (self.rules.busy_while_completing and state.phase is Phase.COMPLETING):
            return fault
        return self.stale(state, beat.generation)

    def told_to_rejoin(self, state: State) -> bool:
        """A member whose heartbeat is in order."""
        busy = self.rules.busy_while_completing and state.phase is Phase.COMPLETING
        return busy or state.phase is Phase.PREPARING

    def commit_fault(self, state: State, commit: Commit) -> Error | None:
        """Offsets of a group without members may be committed by anybody who names no generation."""
        if state.phase is Phase.DEAD:
            return None if commit.generation < 0 else self.unknown_group(commit)
        if commit.generation < 0 and state.phase is Phase.EMPTY:
            return None
        if not self.rules.commits_fenced_first and state.phase is Phase.COMPLETING:
            return Error.REBALANCE_IN_PROGRESS
        fault = self.fenced(state, commit.member, commit.instance) or self.stale(state, commit.generation)
        if fault is None and state.phase is Phase.COMPLETING:
            return Error.REBALANCE_IN_PROGRESS
        return fault

    def unknown_group(self, commit: Commit) -> Error:
        known = self.rules.java and commit.version >= NEW_ERRORS_SINCE
        return Error.GROUP_ID_NOT_FOUND if known else Error.ILLEGAL_GENERATION

    def delete_fault(self, state: State) -> Error | None:
        if state.phase is Phase.DEAD:
            return Error.GROUP_ID_NOT_FOUND
        return None if state.phase is Phase.EMPTY else Error.NON_EMPTY_GROUP

    # Answers

    def write_error(self, error: Error) -> Error:
        """What a member hears where the record of the group came to nothing."""
        match error:
            case (
                Error.UNKNOWN_TOPIC_OR_PARTITION
                | Error.NOT_ENOUGH_REPLICAS
                | Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
                | Error.REQUEST_TIMED_OUT
            ):
                return Error.COORDINATOR_NOT_AVAILABLE
            case Error.NOT_LEADER_OR_FOLLOWER | Error.KAFKA_STORAGE_ERROR:
                return Error.NOT_COORDINATOR
            case Error.MESSAGE_TOO_LARGE:
                return Error.UNKNOWN_SERVER_ERROR
            case _:
                return error

    def commit_error(self, error: Error) -> Error:
        """What a commit hears where its records came to nothing."""
        match error:
            case Error.REQUEST_TIMED_OUT if not self.rules.java:
                return error
            case Error.MESSAGE_TOO_LARGE:
                return Error.INVALID_COMMIT_OFFSET_SIZE
            case _:
                return self.write_error(error)

    def refusal(self, request: Request, error: Error) -> Reply:
        """The answer that says this and no more."""
        to = request.request
        match request:
            case Heartbeat():
                return Beat(to, error)
            case Sync():
                return Synced(to, error)
            case Join():
                nobody = error in (Error.GROUP_MAX_SIZE_REACHED, Error.UNKNOWN_SERVER_ERROR)
                return self.join_refusal(to, error, "" if nobody else request.member)
            case Leave():
                return Left(to, error)
            case Commit():
                return Committed(to, error)
            case Fetch():
                return Fetched(to, error)
            case Describe():
                return Described(to, error)
            case ListGroups():
                return Listed(to, error)
            case Delete():
                return Deleted(to, error)
            case _:
                assert_never(request)

    def join_refusal(self, to: int, error: Error, member: str) -> Joined:
        return Joined(to, error, self.rules.generation_in_errors, member=member)

    def joined(
        self, state: State, member: Member, asked: Parked, leader: str | None, as_leader: bool, skip: bool = False
    ) -> Joined:
        """``as_leader``: with the list of members."""
        kind = state.protocol_type if asked.version >= TYPE_TOLD_SINCE else None
        members = self.member_list(state, asked.version) if as_leader else ()
        return Joined(
            asked.to, Error.NONE, state.generation, kind, state.protocol, leader or "", member.id, members, skip
        )

    def member_list(self, state: State, version: int) -> tuple[tuple[str, str | None, object], ...]:
        told = version >= INSTANCE_SINCE[Join]
        protocol = state.protocol
        return tuple([(each.id, each.instance if told else None, each.metadata(protocol)) for each in state.members])

    def synced(self, state: State, member: Member, asked: Parked, error: Error) -> Synced:
        """Protocol type and name go with an assignment."""
        if error is not Error.NONE:
            return Synced(asked.to, error)
        if asked.version < PROTOCOL_NAMED_SINCE:
            return Synced(asked.to, error, None, None, member.assignment)
        return Synced(asked.to, error, state.protocol_type, state.protocol, member.assignment)

    def described(self, state: State, asked: Describe) -> Described:
        if state.phase is Phase.DEAD:
            unknown = Error.GROUP_ID_NOT_FOUND if asked.version >= UNKNOWN_DESCRIBED_SINCE else Error.NONE
            return Described(asked.request, unknown, Phase.DEAD.called)
        stable = state.phase is Phase.STABLE
        told = asked.version >= INSTANCES_DESCRIBED_SINCE
        members = (
            (
                each.id,
                each.instance if told else None,
                each.metadata(state.protocol) if stable else EMPTY,
                each.assignment if stable else EMPTY,
            )
            for each in state.members
        )
        protocol = (state.protocol or "") if stable else ""
        return Described(
            asked.request,
            Error.NONE,
            state.phase.called,
            state.protocol_type or "",
            protocol,
            tuple(sorted(members, key=_id)),
        )

    def listed(self, state: State, asked: ListGroups) -> Listed:
        if state.phase is Phase.DEAD:
            return Listed(asked.request, Error.NONE)
        called = state.phase.called if asked.version >= STATES_LISTED_SINCE else ""
        return Listed(asked.request, Error.NONE, ((state.protocol_type or "", called),))


_id: Callable[[tuple[str, object, object, object]], str] = lambda member: member[0]
