"""The coordinator of a reconciled group: membership, epochs, targets, revocation, sessions and static members.

Source: ``GroupMetadataManager`` and ``CurrentAssignmentBuilder`` of the releases. A protocol adds what its members
subscribe to, how a target assignment is computed, and the next assignment of one member.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar, assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.assignment.model.assignment import Partition
from kipcheck.conformance.protocols.reconciled import log_ops, terms

Target: TypeAlias = tuple[tuple[str, terms.Partitions], ...]
"""Member id and its part of a target assignment."""


class Member(Protocol):
    """A member of a group, which is a NamedTuple."""

    @property
    def id(self) -> str: ...
    @property
    def epoch(self) -> int:
        """``AWAY``: it left for a while, and its instance keeps the assignment."""

    @property
    def previous(self) -> int:
        """The previous epoch, which a client uses that did not get the last answer."""

    @property
    def assigned(self) -> terms.Partitions: ...
    @property
    def pending(self) -> terms.Partitions:
        """What it must revoke, and has not confirmed as revoked."""

    @property
    def waiting(self) -> bool:
        """It waits for what other members must revoke."""

    @property
    def silent_ms(self) -> int: ...
    @property
    def revoking_ms(self) -> int: ...
    @property
    def instance(self) -> str | None: ...
    def _replace(self, /, *args: Any, **changes: Any) -> Self: ...


class State(Protocol):
    """A group, which is a NamedTuple."""

    @property
    def target_epoch(self) -> int: ...
    @property
    def target(self) -> Target: ...
    @property
    def members(self) -> tuple[Any, ...]:
        """Sorted by id."""

    @property
    def clients(self) -> tuple[terms.Memory, ...]: ...
    @property
    def offsets(self) -> tuple[log_ops.Offset, ...]:
        """Committed ones. Sorted."""

    def _replace(self, /, *args: Any, **changes: Any) -> Self: ...


class Config(Protocol):
    @property
    def session_ms(self) -> int: ...


class Rules(Protocol):
    """What differs between protocols, or their releases."""

    @property
    def takes_epoch_0(self) -> bool:
        """A member that is there may join again, whatever its epoch is; else only while its previous epoch was 0."""

    @property
    def refuses_own_instances(self) -> bool:
        """A static member that is there may not join again, also after it was fenced (apache/kafka#23542)."""

    @property
    def counts_revocations(self) -> bool:
        """A member that has revoked what it should, and must revoke more, gets the next epoch, else its own."""


M = TypeVar("M", bound=Member)
S = TypeVar("S", bound=State)
Beat = TypeVar("Beat", bound=terms.Heartbeat)
Owned = TypeVar("Owned")
"""What a heartbeat lists as owned."""


class ReconciledGroup(Generic[S, M, Beat, Owned]):
    rules: Any
    """As ``Rules``, and what else the protocol has."""
    config: Any
    """As ``Config``, and what else the protocol has."""
    revocation_ms: int
    """How long a member may take to revoke partitions."""

    # Errors

    def fault(self, state: S, beat: Beat, epoch: int, owned: Owned) -> str | None:
        """The error of a heartbeat that some groups accept, and this one does not."""
        if (error := self.shut(state, beat, epoch)) is not None:
            return error
        if beat.instance is not None:
            holder = holder_of(state.members, beat.instance)
            if epoch == 0:
                free = holder is None or self.is_released(holder) or self.is_back(holder, beat.client)
                return self.unfit(state, beat, epoch, owned) if free else terms.UNRELEASED_INSTANCE_ID
            if holder is None:
                return terms.UNKNOWN_MEMBER_ID
            if not self.holds(holder, beat.client):
                return terms.FENCED_INSTANCE_ID
        member: M | None = member_of(state.members, beat.client)
        if member is None:
            return terms.UNKNOWN_MEMBER_ID if epoch != 0 else self.unfit(state, beat, epoch, owned)
        if epoch in terms.LEFT:
            return None
        return (
            terms.FENCED_MEMBER_EPOCH if self.is_stale(member, epoch, owned) else self.unfit(state, beat, epoch, owned)
        )

    @abstractmethod
    def shut(self, state: S, beat: Beat, epoch: int) -> str | None:
        """The error if there is no such group, or no room in it."""

    @abstractmethod
    def unfit(self, state: S, beat: Beat, epoch: int, owned: Owned) -> str | None:
        """The error of a member, or a client that may be one, whose subscription or partitions do not suit."""

    def is_released(self, holder: M) -> bool:
        """Whether another process may take over the instance of a member."""
        return holder.epoch == terms.AWAY

    def is_back(self, holder: M, client: str) -> bool:
        """Whether a member joins again as the instance that it is."""
        return holder.id == client and not self.rules.refuses_own_instances

    def holds(self, holder: M, client: str) -> bool:
        return holder.id == client

    def is_stale(self, member: M, epoch: int, owned: Owned) -> bool:
        """The previous epoch is still valid if the member owns only what is assigned to it."""
        if epoch == 0 and self.rules.takes_epoch_0:
            return False
        if epoch >= member.epoch:
            return epoch > member.epoch
        return not (epoch == member.previous and self.owns_no_more(member, owned))

    @abstractmethod
    def owns_no_more(self, member: M, owned: Owned) -> bool:
        """Whether a heartbeat lists what the member owns, and only what is assigned to it."""

    # The group

    @abstractmethod
    def bumped(self, state: S) -> int:
        """The next epoch of the group."""

    def replaced(self, state: S, beat: Beat) -> S:
        """A process that joins as an instance takes the place of the one that left for a while."""
        holder: M | None = holder_of(state.members, beat.instance)
        if holder is None:
            return state
        others = tuple(each for each in state.members if each.id != holder.id)
        state = state._replace(members=others, target=renamed(state.target, holder.id, beat.client))
        return with_member(state, holder._replace(id=beat.client, epoch=0, previous=0))

    def gone(self, state: S, id: str, epoch: int) -> S:
        """The group after a member has left, or left for a while."""
        return self.without(state, id) if epoch == terms.LEAVING else self.away(state, id)

    def without(self, state: S, id: str) -> S:
        members = tuple(each for each in state.members if each.id != id)
        return state._replace(members=members, target=tuple(each for each in state.target if each[0] != id))

    def away(self, state: S, id: str) -> S:
        """A static member leaves for a while."""
        member: M | None = member_of(state.members, id)
        assert member is not None
        return with_member(state, self.revoked(member)._replace(epoch=terms.AWAY))

    # The log

    def logged(self, state: Any, event: log_ops.Event) -> Transition[Any, Any]:
        """The group after an event that is about its log."""
        match event:
            case log_ops.Reload():
                return Transition(self.reloaded(state, event))
            case log_ops.Commit():
                return self.committed(state, event, terms.memory_of(state.clients, event.client).epoch)
            case log_ops.Fetch():
                return Transition(state, (log_ops.Fetched(state.offsets),))
            case _:
                assert_never(event)

    def reloaded(self, state: S, reload: log_ops.Reload) -> S:
        """The log has everything but times: sessions, and the times to revoke, begin again."""
        return state._replace(members=tuple(each._replace(silent_ms=0, revoking_ms=0) for each in state.members))

    def committed(self, state: Any, commit: log_ops.Commit, epoch: int) -> Transition[Any, Any]:
        """Members commit with their epoch; a consumer without membership may where there are none."""
        member = member_of(state.members, commit.client)
        free = commit.client == log_ops.NOBODY and not state.members
        if not free and member is None:
            return Transition(state, (terms.Rejected(commit.client, terms.UNKNOWN_MEMBER_ID),))
        if member is not None and member.epoch != epoch:
            return Transition(state, (terms.Rejected(commit.client, terms.STALE_MEMBER_EPOCH),))
        return Transition(state._replace(offsets=log_ops.merged(state.offsets, self.stored(commit.row))))

    def stored(self, row: log_ops.Offset) -> log_ops.Offset:
        """What the log keeps of a committed offset."""
        return row

    # Reconciliation of one member

    def reconciled(self, state: S, member: M, owned: Owned) -> M:
        if self.is_revoking(member):
            if not self.has_revoked(member, owned):
                return member
            return self.computed(state, self.revoked(member), owned, member.epoch + self.rules.counts_revocations)
        if member.epoch == state.target_epoch and not member.waiting:
            return member
        return self.computed(state, member, owned, member.epoch)

    def is_revoking(self, member: M) -> bool:
        return bool(member.pending)

    @abstractmethod
    def has_revoked(self, member: M, owned: Owned) -> bool:
        """Whether a heartbeat shows that a member owns nothing any more that it must revoke."""

    def revoked(self, member: M) -> M:
        """The member when it has revoked everything that it must."""
        return member._replace(pending=(), revoking_ms=0)

    @abstractmethod
    def computed(self, state: S, member: M, owned: Owned, epoch: int) -> M:
        """The member's next assignment: with ``epoch`` while it has to revoke, else with the target's."""

    def is_free(self, state: S, member: M, partition: Partition) -> bool:
        others: Iterator[M] = (each for each in state.members if each.id != member.id)
        return not any(partition in each.assigned or partition in each.pending for each in others)

    # Time

    def passed(self, state: S, ms: int) -> S:
        aged = self.older(state, ms)
        for member in aged.members:
            if self.is_late(member):
                aged = self.without(aged, member.id)
        return aged

    def older(self, state: S, ms: int) -> S:
        """The state after some time in which no member is removed."""
        return state._replace(members=tuple(self._aged(each, ms) for each in state.members))

    def _aged(self, member: M, ms: int) -> M:
        revoking = member.revoking_ms + ms if self.is_revoking(member) else 0
        return member._replace(silent_ms=member.silent_ms + ms, revoking_ms=revoking)

    def is_late(self, member: M) -> bool:
        return member.silent_ms >= self.session_of(member) or member.revoking_ms >= self.revocation_ms

    def session_of(self, member: M) -> int:
        """The session timeout that began with its last heartbeat."""
        session: int = self.config.session_ms
        return session


class PacedGroup(ReconciledGroup[S, M, Beat, Owned]):
    """Computes a target assignment when the group has changed, but no sooner than an interval after the last one."""

    def bumped(self, state: Any) -> int:
        epoch: int = state.group_epoch
        return epoch + 1

    def may_aim(self, state: Any, is_first: bool) -> bool:
        """Whether a target assignment is due, and its time has come. ``is_first``: of the first member."""
        if state.group_epoch <= state.target_epoch:
            return False
        if is_first and not self.rules.delays_first_targets:
            return True
        return not self.rules.delays_targets or state.aimed_ms is None or state.aimed_ms >= self.config.interval_ms


def member_of(members: Iterable[M], id: str) -> M | None:
    return next((each for each in members if each.id == id), None)


def holder_of(members: Iterable[M], instance: str | None) -> M | None:
    """The member with this instance id."""
    return next((each for each in members if instance is not None and each.instance == instance), None)


def with_member(state: S, member: Member) -> S:
    others = (each for each in state.members if each.id != member.id)
    return state._replace(members=tuple(sorted((*others, member))))


def part_of(target: Target, id: str) -> terms.Partitions:
    """The part of a member."""
    return next((given for member, given in target if member == id), ())


def renamed(target: Target, former: str, id: str) -> Target:
    return tuple(sorted((id if each == former else each, given) for each, given in target))


def balanced(
    members: Iterable[str],
    wanted: Iterable[Partition],
    target: Target,
    may_keep: Callable[[str, Partition], bool] = lambda id, partition: True,
    may_have: Callable[[str, Partition], bool] = lambda id, partition: True,
) -> Iterator[tuple[str, terms.Partitions]]:
    """A balanced and sticky target assignment; protocols leave the choice among such assignments open.

    ``target``: the one before.
    """
    given: dict[str, list[Partition]] = {each: [] for each in members}
    wanted = [*wanted]
    owners = {partition: member for member, partitions in target for partition in partitions}
    quota = -(-len(wanted) // max(len(given), 1))
    late: list[Partition] = []
    for partition in wanted:
        owner = owners.get(partition, "")
        keeps = owner in given and may_keep(owner, partition) and len(given[owner]) < quota
        (given[owner] if keeps else late).append(partition)
    for partition in late:
        able = [id for id in given if may_have(id, partition)]
        if able:
            given[min(able, key=lambda id: (len(given[id]), id))].append(partition)
    return ((id, tuple(sorted(partitions))) for id, partitions in given.items())
