"""The other members of a scripted group: their requests to its machine, and the bytes of their subscriptions."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from kipcheck.conformance.live.recording.bodies import BLOB
from kipcheck.conformance.live.server.classic_group import ClassicGroup, ignored
from kipcheck.conformance.live.server.topics import LEADER_EPOCH, Topics
from kipcheck.conformance.protocols.assignment.ops import user_data
from kipcheck.conformance.protocols.client.ops import Member
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.state import Member as GroupMember, State
from kipcheck.conformance.wire.embedded import Assignment, Subscription, read_assignment
from kipcheck.conformance.wire.errors import Refused

GROUP: Final = "g"
TOPIC: Final = "t"
OTHER: Final = re.compile(r"other-(\d+|visitor)")
"""Their ids."""
ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""What each of them has besides those of the client."""
VERSION: Final = 3
"""Of their requests: the last one of JoinGroup that is answered with no id to come again with."""
SESSION_MS: Final = 2**31 - 1
"""They send no heartbeats."""
REBALANCE_MS: Final = 1
"""No rebalance waits for them."""
UNREAD: Final = 3
"""Records before the end that another member has not committed. A client that goes on where it left off then begins
neither at its own last position nor at either end of the log."""
COOPERATIVE, STICKY = "cooperative-sticky", "sticky"
NEWEST: Final = 3
FUTURE: Final = 9
"""A version that no release has. Readers take what they know of it (KIP-429)."""
NOISE: Final = bytes.fromhex("deadbeef00ff7fff")
HUGE: Final = 200_000
"""Bytes of user data, below the largest size of a record of the group."""
Partitions: TypeAlias = frozenset[tuple[str, int]]
"""Topics and numbers."""


@dataclass(slots=True)
class Other:
    """A member that is not the client."""

    id: str
    wants: Member = Member(topics=("t",))  # noqa: RUF009 - immutable
    given: Partitions = frozenset()
    """What a client that leads assigned to it last."""

    def metadata(self, protocol: str, generation: int, name_of: Callable[[str], str] = str) -> bytes:
        """Its subscription. ``generation``: the last one; an assignor that keeps partitions is shown what it had.
        ``name_of``: the name of a topic of a step."""
        wants = self.wants
        claimed = frozenset((name_of(TOPIC), number) for number in wants.owned) or self.given
        at = generation - wants.back
        version = max(wants.version, 1) if protocol == COOPERATIVE else wants.version
        if wants.damage == "future":
            version = NEWEST  # a later version has all fields of this one first
        owned = tuple(sorted(claimed)) if protocol == COOPERATIVE or wants.owned else ()
        rack = "r" if version >= NEWEST else None
        data = self._user_data(protocol, claimed, at)
        return self._damaged(Subscription(version, tuple(map(name_of, wants.topics)), owned, at, rack, data).written)

    def _user_data(self, protocol: str, claimed: Partitions, generation: int) -> bytes:
        match self.wants.data:
            case "noise":
                return NOISE
            case "huge":
                return bytes(HUGE)
            case "none" if protocol != STICKY or not claimed:
                return b""
        return user_data(sorted(claimed), generation)

    def _damaged(self, data: bytes) -> bytes:
        match self.wants.damage:
            case "future":
                return FUTURE.to_bytes(2, "big") + data[2:] + NOISE
            case "tail":
                return data + NOISE
            case "cut":
                return data[: len(data) // 2]
            case "empty":
                return b""
            case "long":
                return data[:2] + (2**31 - 1).to_bytes(4, "big") + data[6:]
            case "negative":
                return data[:2] + (-2).to_bytes(4, "big", signed=True) + data[6:]
            case "whole":
                return data

    def take(self, assignment: bytes) -> Partitions:
        """Takes what the leader assigned to it. Returns what it had, and does not have now."""
        before, self.given = self.given, partitions_in(assignment)
        return before - self.given


def assignment(partitions: Iterable[tuple[str, int]]) -> bytes:
    return Assignment(0, tuple(sorted(partitions))).written


def partitions_in(data: bytes) -> Partitions:
    """The partitions of an assignment; none of one that cannot be read."""
    try:
        return frozenset(read_assignment(data).partitions)
    except Refused:
        return frozenset()


class OtherMembers:
    """They send what members send, each request as soon as it is due. One that leads assigns what the script wants."""

    def __init__(
        self,
        topics: Topics,
        in_zookeeper: dict[tuple[str, str, int], int],
        target: Callable[[], Partitions],
        name_of: Callable[[str], str] = str,
    ) -> None:
        """``in_zookeeper``: see ``OffsetsApi``; ``target``: what a client that follows is assigned; ``name_of``: the
        name of a topic of a step."""
        self.name_of = name_of
        self.topics = topics
        self.in_zookeeper = in_zookeeper
        self.target = target
        self.members: tuple[Other, ...] = ()
        """Those that take part in the next rebalance."""
        self.subscribed: tuple[str, ...] = (TOPIC,)
        """The topics of the client."""
        self.have_revoked = False
        """Whether members of a cooperative group lost partitions, and have to join again."""
        self.left: Partitions = frozenset()
        """The partitions of a consumer group that the client does not have."""
        self._is_busy = False
        self._is_refused = False
        """Whether the group refused one of them, which would be refused again."""

    def everything(self) -> Partitions:
        """The partitions that the client subscribes to."""
        return frozenset((name, number) for name in self.subscribed for number in range(self.topics.sizes.get(name, 0)))

    def take_over(self) -> None:
        """Before the client joins, the first of them has all partitions."""
        for member in self.members[:1]:
            self.left = self.everything()
            member.given = self.left

    def take_part(self, group: ClassicGroup) -> None:
        """In a rebalance, which an event of the group may have begun."""
        if self._is_busy:
            return
        self._is_busy = True
        self._is_refused = False
        while group.state.phase is messages.Phase.PREPARING and not self._is_refused:
            if (request := self._due(group.state)) is None:
                break
            group.send(request, partial(self._joined, group) if isinstance(request, messages.Join) else ignored)
        self._is_busy = False

    def _due(self, state: State) -> messages.Join | messages.Leave | None:
        """The request that one of them has to send while members join."""
        ids = {member.id for member in self.members}
        for member in state.members:
            if is_other(member.id) and member.id not in ids:
                return messages.Leave(VERSION, ((member.id, None),))
        offers = [*clients(state)] or state.members  # where the client is gone, they offer what they did
        names = [name for member in offers for name, _ in member.protocols]
        for other in self.members:
            known = state.member(other.id)
            if known is None or known.join is None:
                only = other.wants.assignor
                protocols = [only] if only in names else [*dict.fromkeys((*names, *ASSIGNORS))]
                return messages.Join(
                    VERSION, "" if known is None else other.id, None, state.protocol_type or "",
                    tuple((name, self._offered(other, name, state)) for name in protocols),
                    SESSION_MS, REBALANCE_MS, other.id,
                )  # fmt: skip
        return None

    def _offered(self, other: Other, protocol: str, state: State) -> messages.Blob:
        return other.metadata(protocol, state.generation, self.name_of) or messages.EMPTY

    def _joined(self, group: ClassicGroup, reply: messages.Reply) -> None:
        assert isinstance(reply, messages.Joined)
        if reply.error is not messages.Error.NONE:
            self._is_refused = True
            return
        given = tuple(self._assignments(group.state)) if reply.leader == reply.member else ()
        sync = messages.Sync(VERSION, reply.member, None, reply.generation, given)
        group.send(sync, partial(self._synced, group, reply))

    def _assignments(self, state: State) -> Iterator[tuple[str, messages.Blob]]:
        """The client gets what the script wants, the first of the others what is left."""
        left = self.everything()
        for client in clients(state):
            left -= self.target()
            yield client.id, assignment(self.target())
        for other in self.members[:1]:
            yield other.id, assignment(left)

    def _synced(self, group: ClassicGroup, joined: messages.Joined, reply: messages.Reply) -> None:
        """What it has no longer it had read, but for the last records, and it commits that."""
        assert isinstance(reply, messages.Synced)
        other = next((member for member in self.members if member.id == joined.member), None)
        if reply.error is not messages.Error.NONE or other is None:
            return
        lost = self.positions(other.take(BLOB.write(reply.assignment)))
        if lost:
            version = group.machine.rules.versions[messages.Commit][-1]
            offsets = tuple((*partition, offset, LEADER_EPOCH, "") for partition, offset in lost.items())
            group.send(messages.Commit(version, other.id, None, joined.generation, offsets))
        leads = not is_other(group.state.leader or "")
        self.have_revoked |= leads and group.state.protocol == COOPERATIVE and bool(lost)

    def positions(self, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """The offsets that they commit of partitions which they do not have any longer, as far as these exist."""
        offsets = {
            (topic, number): max(self.topics.by_name[topic].end - UNREAD, 0)
            for topic, number in partitions if topic in self.topics.by_name
        }  # fmt: skip
        self.in_zookeeper.update({(GROUP, *partition): offset for partition, offset in offsets.items()})
        return offsets


def is_other(id: str) -> bool:
    """Whether the member is none of the client's."""
    return OTHER.fullmatch(id) is not None


def clients(state: State) -> list[GroupMember]:
    """The members that are the client's; more than one only until its group has noticed that one is gone."""
    return [member for member in state.members if not is_other(member.id)]
