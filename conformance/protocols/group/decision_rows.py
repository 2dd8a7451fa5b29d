"""The rows of the decision tables of a classic group coordinator, and which of them a history reaches.

Each row is a situation in which a coordinator decides by a rule of its own: a request, what the group was before it,
and the answer. The reference coordinator of the edition runs the same requests, and knows the group. A target reaches
the row if it answers alike.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.protocols.group.invariants.release_differences import followed
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.service import By, resolved
from kipcheck.conformance.protocols.group.model.state import Standing, State


@dataclass(frozen=True, slots=True)
class Situation:
    request: messages.Request
    nameless: bool
    group: State
    """Before the request."""
    answer: messages.Reply | None
    """None: it is parked."""

    @property
    def error(self) -> Error | None:
        """None: it is parked."""
        return None if self.answer is None else self.answer.error

    @property
    def id(self) -> str:
        return getattr(self.request, "member", "")

    @property
    def instance(self) -> str | None:
        return getattr(self.request, "instance", None)

    @property
    def is_ours(self) -> bool:
        return not self.nameless and self.group.standing is Standing.OURS

    @property
    def is_known(self) -> bool:
        """Whether the id is that of a member, and its instance not of another one."""
        member = self.group.member(self.id)
        return member is not None and self.instance in (None, member.instance)

    @property
    def leads(self) -> bool:
        return self.group.leader == self.id

    def are(self, kind: type, *errors: Error | None, phase: messages.Phase | None = None) -> bool:
        """Whether it is such a request, to a group of ours in such a phase, with one of these errors."""
        right = isinstance(self.request, kind) and self.is_ours and (phase is None or self.group.phase is phase)
        return right and (not errors or self.error in errors)


When: TypeAlias = Callable[[Situation], bool]
NONE, REBALANCING = Error.NONE, Error.REBALANCE_IN_PROGRESS


def _nameless(kind: type) -> When:
    return lambda at: isinstance(at.request, kind) and at.nameless


def _elsewhere(kind: type, standing: Standing) -> When:
    return lambda at: isinstance(at.request, kind) and not at.nameless and at.group.standing is standing


def _with(kind: type, error: Error) -> When:
    return lambda at: at.are(kind, error)


def _joins_anew(at: Situation, static: bool) -> bool:
    unknown = at.instance is None or at.group.static(at.instance) is None
    return at.are(messages.Join, None, NONE) and not at.id and unknown and (at.instance is not None) is static


def _replaces(at: Situation) -> bool:
    return at.are(messages.Join, None, NONE) and not at.id and at.instance is not None and not _joins_anew(at, True)


def _rejoins(phase: messages.Phase, *errors: Error | None) -> When:
    return lambda at: at.are(messages.Join, *errors, phase=phase) and at.is_known


def _leaves(at: Situation, error: Error, by_id: bool) -> bool:
    """Whether a LeaveGroup names a member with this result, by an id or only by an instance."""
    if not isinstance(at.request, messages.Leave) or not at.is_ours or not isinstance(at.answer, messages.Left):
        return False
    results = [result for _, _, result in at.answer.members] or [at.answer.error]
    return (by_id, error) in {
        (bool(id), each) for (id, _), each in zip(at.request.members, results, strict=False)
    }  # fmt: skip


ROWS: Final[Mapping[str, When]] = {
    "join: empty group id": _nameless(messages.Join),
    "join: loading": _elsewhere(messages.Join, Standing.LOADING),
    "join: another coordinator": _elsewhere(messages.Join, Standing.AWAY),
    "join: session timeout out of bounds": _with(messages.Join, Error.INVALID_SESSION_TIMEOUT),
    "join: an id, and no group": lambda at: at.are(messages.Join, Error.UNKNOWN_MEMBER_ID, phase=messages.Phase.DEAD),
    "join: the group is full": _with(messages.Join, Error.GROUP_MAX_SIZE_REACHED),
    "join: protocols that do not suit": _with(messages.Join, Error.INCONSISTENT_GROUP_PROTOCOL),
    "join: a new static member": lambda at: _joins_anew(at, True),
    "join: an instance comes back": _replaces,
    "join: an id is required": _with(messages.Join, Error.MEMBER_ID_REQUIRED),
    "join: a new member at once": lambda at: _joins_anew(at, False),
    "join: with the required id": lambda at: at.are(messages.Join, None, NONE) and at.id in at.group.pending,
    "join: an instance with another id": _with(messages.Join, Error.FENCED_INSTANCE_ID),
    "join: an unknown id": lambda at: (
        at.are(messages.Join, Error.UNKNOWN_MEMBER_ID) and at.group.phase is not messages.Phase.DEAD
    ),
    "join: again while members join": _rejoins(messages.Phase.PREPARING, None, NONE),
    "join: unchanged before the assignment": _rejoins(messages.Phase.COMPLETING, NONE),
    "join: changed before the assignment": _rejoins(messages.Phase.COMPLETING, None),
    "join: the leader of a stable group": lambda at: _rejoins(messages.Phase.STABLE, None, NONE)(at) and at.leads,
    "join: a follower, changed": lambda at: _rejoins(messages.Phase.STABLE, None)(at) and not at.leads,
    "join: a follower, unchanged": lambda at: _rejoins(messages.Phase.STABLE, NONE)(at) and not at.leads,
    "sync: empty group id": _nameless(messages.Sync),
    "sync: loading": _elsewhere(messages.Sync, Standing.LOADING),
    "sync: no group": lambda at: at.are(messages.Sync, Error.UNKNOWN_MEMBER_ID, phase=messages.Phase.DEAD),
    "sync: an unknown member": lambda at: (
        at.are(messages.Sync, Error.UNKNOWN_MEMBER_ID) and at.group.phase is not messages.Phase.DEAD
    ),
    "sync: an instance with another id": _with(messages.Sync, Error.FENCED_INSTANCE_ID),
    "sync: another generation": _with(messages.Sync, Error.ILLEGAL_GENERATION),
    "sync: another protocol": _with(messages.Sync, Error.INCONSISTENT_GROUP_PROTOCOL),
    "sync: while members join": lambda at: at.are(messages.Sync, REBALANCING, phase=messages.Phase.PREPARING),
    "sync: a follower waits": lambda at: at.are(messages.Sync, None, phase=messages.Phase.COMPLETING) and not at.leads,
    "sync: the leader assigns": lambda at: at.are(messages.Sync, NONE, phase=messages.Phase.COMPLETING) and at.leads,
    "sync: of a stable group": lambda at: at.are(messages.Sync, NONE, phase=messages.Phase.STABLE),
    "heartbeat: empty group id": _nameless(messages.Heartbeat),
    "heartbeat: loading": _elsewhere(messages.Heartbeat, Standing.LOADING),
    "heartbeat: no group": lambda at: at.are(messages.Heartbeat, Error.UNKNOWN_MEMBER_ID, phase=messages.Phase.DEAD),
    "heartbeat: an empty group": lambda at: at.are(
        messages.Heartbeat, Error.UNKNOWN_MEMBER_ID, phase=messages.Phase.EMPTY
    ),
    "heartbeat: an instance with another id": _with(messages.Heartbeat, Error.FENCED_INSTANCE_ID),
    "heartbeat: another generation": _with(messages.Heartbeat, Error.ILLEGAL_GENERATION),
    "heartbeat: while members join": lambda at: at.are(messages.Heartbeat, REBALANCING, phase=messages.Phase.PREPARING),
    "heartbeat: before the assignment": lambda at: at.are(
        messages.Heartbeat, NONE, REBALANCING, phase=messages.Phase.COMPLETING
    ),
    "heartbeat: of a stable group": lambda at: at.are(messages.Heartbeat, NONE, phase=messages.Phase.STABLE),
    "leave: empty group id": _nameless(messages.Leave),
    "leave: no group": lambda at: at.are(messages.Leave, phase=messages.Phase.DEAD),
    "leave: a member": lambda at: _leaves(at, NONE, by_id=True),
    "leave: an instance": lambda at: _leaves(at, NONE, by_id=False),
    "leave: an unknown member": lambda at: _leaves(at, Error.UNKNOWN_MEMBER_ID, by_id=True),
    "leave: an unknown instance": lambda at: _leaves(at, Error.UNKNOWN_MEMBER_ID, by_id=False),
    "leave: an instance with another id": lambda at: _leaves(at, Error.FENCED_INSTANCE_ID, by_id=True),
    "leave: a required id that was not used": lambda at: (
        at.are(messages.Leave) and any(id in at.group.pending for id, _ in getattr(at.request, "members", ()))
    ),
    "commit: without a group": lambda at: at.are(messages.Commit, NONE, phase=messages.Phase.DEAD),
    "commit: another generation": _with(messages.Commit, Error.ILLEGAL_GENERATION),
    "commit: an unknown member": _with(messages.Commit, Error.UNKNOWN_MEMBER_ID),
    "commit: before the assignment": _with(messages.Commit, REBALANCING),
    "commit: of a stable group": lambda at: at.are(messages.Commit, NONE, phase=messages.Phase.STABLE),
    "delete: no group": _with(messages.Delete, Error.GROUP_ID_NOT_FOUND),
    "delete: a group with members": _with(messages.Delete, Error.NON_EMPTY_GROUP),
    "delete: an empty group": lambda at: at.are(messages.Delete, NONE, phase=messages.Phase.EMPTY),
}
"""By name."""
NOT_BY_CLIENTS: Final = frozenset(
    {"join: loading", "join: another coordinator", "sync: loading", "heartbeat: loading"}
)  # fmt: skip
"""No client can make a broker lose a partition."""


def reached(history: History) -> Iterator[tuple[str, bool]]:
    """The rows that the reference coordinator reaches, each with whether the target answers alike."""
    for each in followed(history):
        event, names, index = each.step.event, each.before.names, each.step.index
        if isinstance(event, By):
            request = resolved(event.request, names, names.generation(event.actor, event.behind))
            at = Situation(request, event.nameless, each.before.group, each.wanted.get(index))
            alike = each.wanted.get(index) == each.got.get(index)
            yield from ((name, alike) for name, when in ROWS.items() if when(at))
