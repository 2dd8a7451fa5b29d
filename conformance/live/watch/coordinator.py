"""Judges the answers of coordinators that pass by.

A law speaks where the answer, its request, and what passed of the same member before it are enough. Members that the
proxy or the capture does not show, groups that are deleted and created again, and coordinators that lose what they did
not write yet are no reason to blame a coordinator: laws that compare the answers of several members are silent.
"""

import zlib
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.live.recording.contents import Reply, Sent, as_bytes
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumer
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.share_group import heartbeat as share
from kipcheck.conformance.protocols.streams_group import heartbeat as streams

CLASSIC: Final = (
    "group/generation-grows", "group/list-only-to-leader", "group/leader-hears-all", "group/common-protocol",
    "group/assignment-from-leader",
)  # fmt: skip
Beat = consumer.Heartbeat | streams.Heartbeat | share.Heartbeat
EPOCHS: Final[Mapping[type[Beat], tuple[str, str]]] = {
    consumer.Heartbeat: ("consumer-group/epochs", "consumer-group/epochs-rise"),
    streams.Heartbeat: ("streams-group/epochs", "streams-group/epochs-rise"),
    share.Heartbeat: ("share-group/membership", "share-group/epochs-rise"),
}
"""Heartbeat -> check and law of its epochs."""
LAWS: Final[Mapping[str, tuple[str, ...]]] = {
    "group/generations": CLASSIC, **{check: (law,) for check, law in EPOCHS.values()},
}  # fmt: skip
"""Check -> those of its invariants that speak about traffic."""
MOST_MEMBERS: Final = 5000
MOST_GROUPS: Final = 2000
"""Groups whose leaders' assignments are known, with the newest generation each."""
MOST_ASSIGNED: Final = 100_000
"""Members in these assignments."""
MOST_OF_A_GENERATION: Final = 4
"""SyncGroup requests of a leader in one generation; after more nothing is said of their assignments."""
Breach = tuple[str, Violation]
"""The id of a law, and how it is broken."""


@dataclass(slots=True)
class _Member:
    """What a member was last answered. ``generation``: the last one whose assignment it got."""

    connection: int
    leader: str = ""
    joined: int = -1
    generation: int = -1
    laws: set[str] = field(default_factory=set)
    """Those that read one of its answers."""


@dataclass(slots=True)
class _Assignments:
    """What a leader sent in a generation: member id -> the checksums of its assignments."""

    generation: int
    leader: str
    requests: int = 0
    sums: dict[str, set[int]] = field(default_factory=dict)


class Coordinators:
    """What is known of groups; bounded, the ones that were not seen for longest are forgotten."""

    def __init__(self) -> None:
        self.judged: dict[str, int] = dict.fromkeys(LAWS, 0)
        """Check -> members with an answer that was judged. One that was forgotten counts anew."""
        self.laws: Counter[str] = Counter()
        """Law -> members with an answer that it read."""
        self._reads = False
        self._members: OrderedDict[tuple[str, str], _Member] = OrderedDict()
        self._assigned: OrderedDict[str, _Assignments] = OrderedDict()
        self._epochs: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._sums = 0

    def missed(self) -> None:
        """Something passed that was not seen: a leader may have sent another assignment."""
        self._members.clear()
        self._assigned.clear()
        self._sums = 0

    def asked(self, group: str, sent: Sent) -> None:
        """A request passed. Only assignments are kept: they are there before the members' answers."""
        if isinstance(sent, messages.Sync) and sent.assignments and len(sent.assignments) <= MOST_ASSIGNED:
            self._assign(group, sent)

    def _assign(self, group: str, sync: messages.Sync) -> None:
        generation, leader = sync.generation, sync.member
        found = self._assigned.pop(group, None)
        if found is not None and (found.generation, found.leader) != (generation, leader):
            self._sums -= len(found.sums)
            found = None
        found = self._assigned[group] = found or _Assignments(generation, leader)
        found.requests += 1
        self._sums -= len(found.sums)
        if found.requests <= MOST_OF_A_GENERATION:
            for id, data in sync.assignments:
                found.sums.setdefault(id, set()).add(_sum(data))
        else:
            found.sums.clear()
        self._sums += len(found.sums)
        while self._sums > MOST_ASSIGNED or len(self._assigned) > MOST_GROUPS:
            self._sums -= len(self._assigned.popitem(last=False)[1].sums)

    def is_sent(self, group: str, sent: Sent, reply: Reply) -> bool:
        """Whether a leader's request with the assignment of this answer to SyncGroup passed."""
        made = self._assigned.get(group)
        if made is None or not isinstance(sent, messages.Sync) or not isinstance(reply, messages.Synced):
            return False
        if made.generation != sent.generation:
            return False
        return any(_sum(reply.assignment) in sums for sums in made.sums.values())

    def answered(self, connection: int, group: str, sent: Sent, reply: Reply) -> tuple[bool, list[Breach]]:
        """An answer passed: whether a law reads it, and what it breaks."""
        self._reads = False
        breaches = list(self._breaches(connection, group, sent, reply))
        return self._reads, breaches

    def _read(self, member: _Member, *laws: str) -> None:
        """Laws read an answer to a member."""
        self._reads = True
        self.judged["group/generations"] += not member.laws
        self.laws.update({*laws} - member.laws)
        member.laws.update(laws)

    def _breaches(self, connection: int, group: str, sent: Sent, reply: Reply) -> Iterator[Breach]:
        match sent, reply:
            case messages.Join(), messages.Joined():
                yield from self._joined(connection, group, sent, reply)
            case messages.Sync(), messages.Synced():
                yield from self._synced(connection, group, sent, reply)
            case (
                consumer.Heartbeat() | streams.Heartbeat() | share.Heartbeat(),
                consumer.HeartbeatAnswer() | streams.HeartbeatAnswer(),
            ):
                yield from self._beaten(group, sent, reply)
            case (messages.Heartbeat(member=id), messages.Beat(error=error)) | (
                messages.Leave(members=((id, _),)),
                messages.Left(error=error),
            ) if error:
                self._members.pop((group, id), None)

    def _joined(self, connection: int, group: str, join: messages.Join, joined: messages.Joined) -> Iterator[Breach]:
        member, generation = joined.member, joined.generation
        if joined.error or not member:
            self._members.pop((group, join.member), None)
            return
        yield from _wrong_list(join, joined)
        yield from _wrong_protocol(join, joined)
        known = self._members.pop((group, member), None)
        made = _Member(connection, joined.leader, generation, laws=set() if known is None else known.laws)
        if join.instance is None:
            self._read(made, "group/list-only-to-leader", "group/common-protocol")
        if joined.members:
            self._read(made, "group/leader-hears-all")
        if known is not None and known.connection == connection and known.generation >= 0:
            self._read(made, CLASSIC[0])
            made.generation = known.generation
        if made.generation > generation:
            why = f"{member} got an assignment in generation {made.generation}, and then joins generation {generation}"
            expected = f"generation {made.generation} or later"
            yield CLASSIC[0], _violation(why, expected, f"generation {generation}", "generation", "falls")
        self._members[group, member] = made
        if len(self._members) > MOST_MEMBERS:
            self._members.popitem(last=False)

    def _synced(self, connection: int, group: str, sync: messages.Sync, synced: messages.Synced) -> Iterator[Breach]:
        member, generation = sync.member, sync.generation
        if synced.error:
            self._members.pop((group, member), None)
            return
        known, made = self._members.get((group, member)), self._assigned.get(group)
        if known is None or (known.joined, known.connection) != (generation, connection):
            return
        known.generation = generation
        if made is None or (made.generation, made.leader) != (generation, known.leader):
            return
        meant = made.sums.get(member)
        if meant is not None:
            self._read(known, CLASSIC[4])
        if meant is not None and _sum(synced.assignment) not in meant:
            of_another = any(_sum(synced.assignment) in sums for sums in made.sums.values())
            shape = "of another" if of_another else "other" if synced.assignment else "empty"
            why = f"{member} gets an assignment in generation {generation} that its leader {made.leader} did not send"
            observed = f"{len(as_bytes(synced.assignment))} other bytes"
            yield CLASSIC[4], _violation(why, "the assignment that the leader sent", observed, "assignment", shape)

    def _beaten(
        self, group: str, beat: Beat, reply: consumer.HeartbeatAnswer | streams.HeartbeatAnswer
    ) -> Iterator[Breach]:
        check, law = EPOCHS[type(beat)]
        epoch, answered = beat.epoch, reply.epoch
        if reply.error or epoch < 0:
            return
        key = group, reply.member or beat.member
        self._reads = True
        if key not in self._epochs:
            self.judged[check] += 1
            self.laws[law] += 1
        self._epochs[key] = None
        self._epochs.move_to_end(key)
        if len(self._epochs) > MOST_MEMBERS:
            self._epochs.popitem(last=False)
        if answered < 1:
            why = f"{key[1]} got epoch {answered}"
            yield law, _violation(why, "an epoch above 0", str(answered), "no epoch")
        elif answered < epoch:
            why = f"{key[1]} had epoch {epoch}; now it gets {answered}"
            yield law, _violation(why, f"epoch {epoch} or above", str(answered), "falls")


def _wrong_list(join: messages.Join, joined: messages.Joined) -> Iterator[Breach]:
    """The list of a JoinGroup answer. A static member that takes its place again is not judged: it gets no list, under
    an id that is not the leader's any more."""
    member, leads, generation = joined.member, joined.leader == joined.member, joined.generation
    ids = [id for id, _, _ in joined.members]
    if join.instance is None and leads and not ids:
        why = f"{member} leads generation {generation}, and gets no list of members"
        yield CLASSIC[1], _violation(why, "the list of members", "an empty list", "list", "missing")
    if join.instance is None and ids and not leads:
        why = f"{joined.leader or 'no member'} leads generation {generation}, and {member} gets the list"
        yield CLASSIC[1], _violation(why, "an empty list", f"{len(ids)} members", "list", "to a follower")
    if (twice := next((id for id, times in Counter(ids).items() if times > 1), None)) is not None:
        why = f"the list of the leader {member} has {twice} twice"
        yield CLASSIC[2], _violation(why, f"{twice} once", "twice", "list", "repeats")
    if leads and ids and member not in ids:
        why = f"the list of the leader {member} lacks the leader itself"
        yield CLASSIC[2], _violation(why, f"{member} in the list", f"{len(ids)} others", "list", "lacks a member")


def _wrong_protocol(join: messages.Join, joined: messages.Joined) -> Iterator[Breach]:
    """The protocol of a generation that a member joins is one that it listed. A static member that takes its place
    again in a stable group need not have been asked."""
    offered = [name for name, _ in join.protocols]
    if join.instance is None and joined.protocol not in offered:
        why = f"{joined.member} listed {', '.join(offered)}, and joins a generation with protocol {joined.protocol}"
        yield CLASSIC[3], _violation(why, "a protocol that it listed", str(joined.protocol), "protocol", "not common")


def _sum(assignment: Hashable) -> int:
    return zlib.crc32(as_bytes(assignment))


def _violation(why: str, expected: str, observed: str, *shape: str) -> Violation:
    return Violation(why, (0,), expected, observed, shape=shape)
