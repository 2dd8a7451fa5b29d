"""The state of a coordinator of one streams group, and of its clients."""

from typing import Literal, NamedTuple, TypeAlias

from kipcheck.conformance.protocols.reconciled.log_ops import Offset
from kipcheck.conformance.protocols.reconciled.model import holder_of, member_of, part_of
from kipcheck.conformance.protocols.reconciled.terms import Memory, memory_of
from kipcheck.conformance.protocols.streams_group.ops import Tasks

Form: TypeAlias = Literal["none", "streams", "consumer"]


class Owned(NamedTuple):
    """The tasks in a heartbeat; None: omitted."""

    active: Tasks | None
    standby: Tasks | None


class Member(NamedTuple):
    """A member of a reconciled group: ``assigned`` and ``pending`` are active tasks."""

    id: str
    topology_epoch: int
    epoch: int = 0
    previous: int = 0
    assigned: Tasks = ()
    pending: Tasks = ()
    waiting: bool = False
    silent_ms: int = 0
    revoking_ms: int = 0
    standby: Tasks = ()
    standby_pending: Tasks = ()
    """The same of standby tasks."""
    instance: str | None = None
    endpoint: str | None = None
    """The host at which it answers queries."""


class State(NamedTuple):
    form: Form = "none"
    """``none``: there is no group."""
    epoch: int = 1
    target_epoch: int = 1
    target: tuple[tuple[str, Tasks], ...] = ()
    topology: tuple[str, ...] | None = None
    topology_epoch: int = 0
    members: tuple[Member, ...] = ()
    """Sorted by id."""
    clients: tuple[Memory, ...] = ()
    """With active tasks."""
    standby_target: tuple[tuple[str, Tasks], ...] = ()
    standbys: tuple[Memory, ...] = ()
    """The same clients, with standby tasks."""
    validated: bool = False
    """When the group last looked, all topics existed with the right numbers of partitions."""
    created: bool = False
    """The broker has created the internal topics."""
    endpoint_epoch: int = 0
    known_endpoints: tuple[tuple[str, int], ...] = ()
    """Client -> the epoch of the endpoint information that it has, unless it has none. Sorted."""
    offsets: tuple[Offset, ...] = ()
    standby_copies: int | None = None
    """The setting of the group; None: that of the broker."""
    standbys_applied: int | None = None
    """That of the current epoch."""

    def member(self, id: str) -> Member | None:
        return member_of(self.members, id)

    def holder(self, instance: str | None) -> Member | None:
        """The member with this instance id."""
        return holder_of(self.members, instance)

    def memory(self, client: str) -> Memory:
        return memory_of(self.clients, client)

    def standby_memory(self, client: str) -> Memory:
        return memory_of(self.standbys, client)

    def target_of(self, id: str) -> Tasks:
        return part_of(self.target, id)

    def standby_target_of(self, id: str) -> Tasks:
        return part_of(self.standby_target, id)
