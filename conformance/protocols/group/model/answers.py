"""Builds the answers of a classic group coordinator, with the fields that their versions support."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never, final

from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE, Rules
from kipcheck.conformance.protocols.group.model.state import Member, Parked, State, lacks_protocol

JOIN_TYPE_SINCE: Final = 7
"""JoinGroup: successful answers have the protocol type (KIP-559)."""
SYNC_TYPE_SINCE: Final = 5
"""SyncGroup: request and answer have protocol type and name (KIP-559)."""
BATCH_SINCE: Final = 3
"""LeaveGroup (KIP-345)."""
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
    """How long a member that joined without an id may wait: a constant of the broker, five minutes."""


DEFAULT: Final = Config()
"""Those of every coordinator that is tested, whatever the defaults of its release are."""
SETTINGS: Final[Mapping[str, str]] = {
    "group.max.size": "max_size",
    "group.initial.rebalance.delay.ms": "initial_delay_ms",
    "group.min.session.timeout.ms": "min_session_ms",
    "group.max.session.timeout.ms": "max_session_ms",
}
"""The field that has a setting."""


class Answers:
    def __init__(self, rules: Rules, config: Config = DEFAULT) -> None:
        self.rules = rules
        self.config = config

    def refusal(self, request: messages.Request, error: Error) -> messages.Reply:
        """The answer to a request with an error and no other data."""
        to = request.request
        match request:
            case messages.Heartbeat():
                return messages.Beat(to, error)
            case messages.Sync():
                return messages.Synced(to, error)
            case messages.Join():
                return self.join_refusal(to, error, "" if self.omits_member_id(error) else request.member)
            case messages.Leave():
                return messages.Left(to, error)
            case messages.Commit():
                return messages.Committed(to, error)
            case messages.Fetch():
                return messages.Fetched(to, error)
            case messages.Describe():
                return messages.Described(to, error)
            case messages.ListGroups():
                return messages.Listed(to, error)
            case messages.Delete():
                return messages.Deleted(to, error)
            case _:
                assert_never(request)

    def omits_member_id(self, error: Error) -> bool:
        """Whether JoinGroup answers with this error omit the member id; in Java also if the group is not loaded."""
        away = error in (Error.NOT_COORDINATOR, Error.COORDINATOR_LOAD_IN_PROGRESS)
        return error in (Error.GROUP_MAX_SIZE_REACHED, Error.UNKNOWN_SERVER_ERROR) or (self.rules.java and away)

    def join_refusal(self, to: int, error: Error, member: str) -> messages.Joined:
        return messages.Joined(to, error, self.rules.generation_in_errors, None, None, "", member)

    def joined(
        self, state: State, member: Member, asked: Parked, leader: str | None, listing: bool, skip: bool = False
    ) -> messages.Joined:
        """``listing``: include the list of members."""
        kind = state.protocol_type if asked.version >= JOIN_TYPE_SINCE else None
        members = self.member_list(state, asked.version) if listing else ()
        return messages.Joined(
            asked.to,
            Error.NONE,
            state.generation,
            kind,
            state.protocol,
            leader or "",
            member.id,
            members,
            skip,
        )

    def member_list(self, state: State, version: int) -> tuple[tuple[str, str | None, messages.Blob], ...]:
        has_instances = version >= INSTANCE_SINCE[messages.Join]
        protocol = state.protocol
        return tuple(
            [(each.id, each.instance if has_instances else None, each.metadata(protocol)) for each in state.members]
        )

    def cannot_list(self, state: State, version: int) -> bool:
        """Whether the list of members cannot be encoded in this version of a JoinGroup response."""
        if not self.rules.fails_on_old_leaders or version >= INSTANCE_SINCE[messages.Join]:
            return False
        return any(each.instance is not None for each in state.members)

    def synced(self, state: State, member: Member, asked: Parked, error: Error) -> messages.Synced:
        """Only successful answers have protocol type and name."""
        if error is not Error.NONE:
            return messages.Synced(asked.to, error)
        if asked.version < SYNC_TYPE_SINCE:
            return messages.Synced(asked.to, error, None, None, member.assignment)
        return messages.Synced(asked.to, error, state.protocol_type, state.protocol, member.assignment)

    def left(self, leave: messages.Leave, results: tuple[tuple[str, str | None, Error], ...]) -> messages.Left:
        """Up to version 2 the error of the only member becomes the top-level error."""
        if leave.version < BATCH_SINCE:
            return messages.Left(leave.request, results[0][2])
        return messages.Left(leave.request, Error.NONE, results)

    def described(self, state: State, asked: messages.Describe) -> messages.Described:
        """Protocol, metadata and assignments appear only for a stable group; in Java, old assignments stay visible. It
        fails if a member lacks the protocol, as the successor of a static member may."""
        if state.phase is messages.Phase.DEAD:
            unknown = Error.GROUP_ID_NOT_FOUND if asked.version >= UNKNOWN_DESCRIBED_SINCE else Error.NONE
            return messages.Described(asked.request, unknown, messages.Phase.DEAD.called)
        stable = state.phase is messages.Phase.STABLE
        if stable and lacks_protocol(state):
            return messages.Described(asked.request, Error.UNKNOWN_SERVER_ERROR)
        has_instances = asked.version >= INSTANCES_DESCRIBED_SINCE
        protocol = state.protocol if stable else None
        members = []
        for each in sorted(state.members, key=lambda each: each.id):
            assignment = each.assignment if stable or self.rules.java else messages.EMPTY
            metadata = each.metadata(protocol) if self.rules.metadata_described else assignment
            members.append((each.id, each.instance if has_instances else None, metadata, assignment))
        kind = state.protocol_type or ""
        return messages.Described(asked.request, Error.NONE, state.phase.called, kind, protocol or "", tuple(members))

    def listed(self, state: State, asked: messages.ListGroups) -> messages.Listed:
        if state.phase is messages.Phase.DEAD:
            return messages.Listed(asked.request, Error.NONE)
        called = state.phase.called if asked.version >= STATES_LISTED_SINCE else ""
        return messages.Listed(asked.request, Error.NONE, ((state.protocol_type or "", called),))

    # Answers after a failed append

    def write_error(self, error: Error) -> Error:
        """The error that members get if the append of the group record failed."""
        match error:
            case Error.REQUEST_TIMED_OUT:
                return Error.COORDINATOR_NOT_AVAILABLE if self.rules.java else Error.REBALANCE_IN_PROGRESS
            case Error.MESSAGE_TOO_LARGE:
                return Error.UNKNOWN_SERVER_ERROR
            case _:
                return self.partition_error(error)

    def commit_error(self, error: Error) -> Error:
        """The error that a commit gets if the append of its records failed."""
        match error:
            case Error.REQUEST_TIMED_OUT if not self.rules.java:
                return error
            case Error.MESSAGE_TOO_LARGE if not self.rules.java:
                return Error.INVALID_COMMIT_OFFSET_SIZE
            case _:
                return self.write_error(error)

    def partition_error(self, error: Error) -> Error:
        """Maps errors of a missing partition, or one led by another broker; other errors stay."""
        match error:
            case Error.UNKNOWN_TOPIC_OR_PARTITION | Error.NOT_ENOUGH_REPLICAS:
                return Error.COORDINATOR_NOT_AVAILABLE
            case Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND if not self.rules.java:
                return Error.COORDINATOR_NOT_AVAILABLE
            case Error.NOT_LEADER_OR_FOLLOWER | Error.KAFKA_STORAGE_ERROR:
                return Error.NOT_COORDINATOR
            case _:
                return error
