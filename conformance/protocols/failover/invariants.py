"""Invariants of a group whose coordinator moves and fails, over what its members observe.

A request was handled between the time at which it was sent and that at which its answer came, by whatever node. Two
requests follow each other if the second was sent when the first was answered.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.failover import ops

GROUPS: Final = "failover/groups"
RESIGNS_MS: Final = 15_000
"""How long a node that was silent may answer reads and heartbeats from memory, until it has learned that it no longer
coordinates the group. It appends nothing in that time."""
COMMIT: Final = "OffsetCommit"
DURABLE: Final = frozenset({"SyncGroup", "ConsumerGroupHeartbeat"})
"""Requests whose answers give an epoch that the log has. A generation that JoinGroup gave is in the log when its leader
has sent the assignments."""
of_groups = partial(invariant, role=Role.COORDINATOR, checks=(GROUPS,))


class Seen(NamedTuple):
    step: int
    event: ops.Action


def seen(history: History) -> list[Seen]:
    """What was observed, in order."""
    events = ops.OPERATIONS.observed
    assert events is not None
    return [Seen(step, events.from_json(each)) for step, each in history.actions()]


@dataclass(slots=True)
class Ownership:
    """A partition that a member has by an assignment, and when the coordinator knew the member since."""

    member: str
    node: int
    since_ms: int
    """When the assignment was received."""
    step: int
    known: list[tuple[int, ops.Accepted]] = field(default_factory=list)
    """Steps and accepted requests of the member with the partition."""

    @property
    def until_ms(self) -> int:
        """When the last request was sent that was accepted: the member had the partition until then for certain."""
        return max((each.sent_ms for _, each in self.known), default=self.since_ms)


def ownerships(observed: list[Seen]) -> dict[int, list[Ownership]]:
    """By partition."""
    found: dict[int, list[Ownership]] = {}
    current: dict[tuple[str, int], Ownership] = {}
    for step, event in observed:
        match event:
            case ops.Gave(member, partitions):
                for each in partitions:
                    current.pop((member, each), None)
            case ops.Assigned(member, node, _, partitions, at_ms):
                for each in partitions:
                    if (member, each) not in current:
                        current[member, each] = Ownership(member, node, at_ms, step)
                        found.setdefault(each, []).append(current[member, each])
            case ops.Accepted(member, partitions=partitions):
                for each in partitions:
                    if (own := current.get((member, each))) is not None and event.sent_ms >= own.since_ms:
                        own.known.append((step, event))
    return found


@impact("Two members of a group read a partition at once", "double processing", "ownership", "double-processing",
        links=("KIP-848", "KIP-429"))  # fmt: skip
@of_groups("failover/one-owner", "grp-300")
def one_owner(history: History) -> Iterator[Violation]:
    """While the coordinator accepts requests of a member with a partition, it accepts none of another one with it."""
    for partition, owners in sorted(ownerships(seen(history)).items()):
        for other in owners:
            for own in owners:
                if own.member == other.member:
                    continue
                for step, event in own.known:
                    if other.since_ms <= event.sent_ms and event.at_ms <= other.until_ms and _counts(event, other):
                        yield Violation(
                            f"{own.member} has t-{partition}, and node {event.node} accepts its {event.request} of "
                            f"epoch {event.epoch}, when {other.member} has had it from node {other.node} for "
                            f"{event.sent_ms - other.since_ms} ms and goes on to be accepted",
                            (other.step, step), "one owner", f"{own.member} and {other.member}",
                            shape=("two owners", event.protocol, event.request),
                        )  # fmt: skip
                        return


def _counts(event: ops.Accepted, other: Ownership) -> bool:
    """Whether the node that accepts the request has to know of the other owner."""
    late = event.sent_ms - other.since_ms > RESIGNS_MS
    return event.request == COMMIT or late or any(event.node == each.node for _, each in other.known)


@impact("Committed offsets are lost when the coordinator moves", "data loss", "offsets", "reprocessing")
@of_groups("failover/commits-kept", "grp-301")
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch gives the last offset that was committed with success before, or one of a later commit, whichever
    node coordinates the group."""
    commits: dict[int, list[tuple[int, ops.Accepted | ops.Refused]]] = {}
    resumed: dict[int, int] = {}
    observed = seen(history)
    for step, event in observed:
        match event:
            case ops.Accepted(request="OffsetCommit") | ops.Refused(request="OffsetCommit"):
                for each in event.partitions:
                    commits.setdefault(each, []).append((step, event))
            case ops.Hit("resumes", node, at_ms=at_ms):
                resumed[node] = at_ms
            case ops.Fetched() if event.sent_ms - resumed.get(event.node, -RESIGNS_MS) > RESIGNS_MS:
                yield from _lost(step, event, commits)


def _lost(
    step: int, fetched: ops.Fetched, commits: dict[int, list[tuple[int, ops.Accepted | ops.Refused]]]
) -> Iterator[Violation]:
    offsets = dict(fetched.offsets)
    for partition, tried in sorted(commits.items()):
        done = [
            (at, each) for at, each in tried if isinstance(each, ops.Accepted) and each.at_ms <= fetched.sent_ms
        ]  # fmt: skip
        offset = offsets.get(partition, -1)
        if not done:
            continue
        at, last = max(done, key=lambda row: row[1].sent_ms)
        # Offsets rise in the order of sending; a commit that was sent before the last one was answered may follow it.
        right = {
            each.offset for _, each in tried
            if each.at_ms >= last.sent_ms or (isinstance(each, ops.Refused) and _is_open(each))
        }  # fmt: skip
        if offset not in right:
            wanted = str(last.offset)
            yield Violation(
                f"node {last.node} accepted offset {wanted} of t-{partition} at {last.at_ms} ms, and node "
                f"{fetched.node} gives {offset if offset >= 0 else 'none'} at {fetched.at_ms} ms",
                (at, step), f"offset {wanted}", str(offset),
                shape=("lost", "none" if offset < 0 else "older"),
            )  # fmt: skip
            return


def _is_open(refused: ops.Refused) -> bool:
    """Whether the commit may have an effect, whenever."""
    return refused.error.startswith("no answer")


@impact("Epochs go back when the coordinator moves", "stuck group", "epochs", "fenced-member")
@of_groups("failover/epochs-rise", "grp-302")
def epochs_rise(history: History) -> Iterator[Violation]:
    """No node gives a member that joins a generation or epoch below one that the group had before, and none to a member
    below its own."""
    given: list[tuple[int, ops.Accepted]] = []
    for step, event in seen(history):
        if not isinstance(event, ops.Accepted) or not (event.joins or event.request in DURABLE):
            continue
        for before, other in given:
            related = event.joins or event.request == "SyncGroup" or other.member == event.member
            known = other.protocol == event.protocol and other.at_ms <= event.sent_ms
            if known and related and 0 <= event.epoch < other.epoch:
                yield Violation(
                    f"{event.member}'s {event.request} is answered with epoch {event.epoch} by node {event.node}, "
                    f"after node {other.node} gave {other.member} epoch {other.epoch}",
                    (before, step), f"epoch {other.epoch} or more", str(event.epoch),
                    shape=("back", event.protocol, event.request),
                )  # fmt: skip
                return
        if event.request in DURABLE and event.epoch > 0:
            given.append((step, event))


@impact("A group never becomes stable after its coordinator failed", "stuck group", "liveness", "stuck-group")
@of_groups("failover/becomes-stable", "grp-303")
def becomes_stable(history: History) -> Iterator[Violation]:
    """A group whose members go on is stable again within 90 s of the last fault, with all partitions assigned."""
    for step, event in seen(history):
        if isinstance(event, ops.Restless):
            yield Violation(
                f"the group is not stable {event.took_ms} ms after the last fault: {event.why}",
                (step,), "a stable group", event.why, shape=("restless", event.why.partition(" ")[0]),
            )  # fmt: skip
            return
