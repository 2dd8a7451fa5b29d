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
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.failover import ops

GROUPS: Final = "failover/groups"
RESIGNS_MS: Final = 15_000
"""How long a node that was silent may answer reads and heartbeats from memory, until it has learned that it no longer
coordinates the group. It appends nothing in that time: the other replicas have a newer leader."""
LOOKS_MS: Final = 10_000
"""So much later a node that took over has followers, or the controller has removed those that are gone: its high
watermark has reached the end of its log. Members commit nothing meanwhile where they read older offsets."""
LATE_MS: Final = 500
"""Where kipcheck's own timer is later than that, the machine is too busy for a verdict about time."""
COMMIT: Final = "OffsetCommit"
DURABLE: Final = frozenset({"SyncGroup", "ConsumerGroupHeartbeat"})
"""Requests whose answers give an epoch that the log has. A generation that JoinGroup gave is in the log when its leader
has sent the assignments."""
WITHOUT_EFFECT: Final = frozenset({
    "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH", "REBALANCE_IN_PROGRESS",
    "COORDINATOR_LOAD_IN_PROGRESS",
})  # fmt: skip
"""Errors of commits that are refused before anything is appended. Others come when replicas have it already."""
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


class Missed(NamedTuple):
    """A look at the offsets that lacks a commit."""

    step: int
    fetched: ops.Fetched
    partition: int
    at: int
    """The step of the commit."""
    last: ops.Accepted
    at_first: bool
    """Whether the node has answered the group for less than ``LOOKS_MS`` since another one accepted the commit."""

    def violation(self) -> Violation:
        offset, last = dict(self.fetched.offsets).get(self.partition), self.last
        read = "none" if offset is None else str(offset)
        return Violation(
            f"node {last.node} accepted offset {last.offset} of t-{self.partition} at {last.at_ms} ms, and node "
            f"{self.fetched.node} gives {read} at {self.fetched.at_ms} ms",
            (self.at, self.step), f"offset {last.offset}", read, shape=("lacks a commit",),
        )  # fmt: skip


@impact("Committed offsets are lost when the coordinator moves", "double processing", "durability", "lost-offsets")
@of_groups("failover/commits-kept", "grp-301")
def commits_kept(history: History) -> Iterator[Violation]:
    """10 s after another node took over, OffsetFetch gives the last offset that was committed, or a later one."""
    yield from (each.violation() for each in _missed(history) if not each.at_first)


@impact("A node that takes over answers with older offsets at first", "double processing", "durability", "lost-offsets")
@of_groups("failover/reads-commits-at-once", "grp-304", grade=Grade.SHOULD)
def reads_commits_at_once(history: History) -> Iterator[Violation]:
    """The first OffsetFetch that another node answers gives the last offset that was committed, or a later one."""
    yield from (each.violation() for each in _missed(history) if each.at_first)


def _missed(history: History) -> Iterator[Missed]:
    observed = seen(history)
    commits: dict[int, list[tuple[int, ops.Accepted | ops.Refused]]] = {}
    for step, event in observed:
        if isinstance(event, ops.Accepted | ops.Refused) and event.request == COMMIT:
            for each in event.partitions:
                commits.setdefault(each, []).append((step, event))
    for step, event in observed:
        if isinstance(event, ops.Fetched) and not _is_resigning(observed, event.node, event.sent_ms):
            for partition, tried in sorted(commits.items()):
                if (found := _lacking(event, partition, tried)) is not None:
                    at, last = found
                    yield Missed(step, event, partition, at, last, _is_at_first(observed, event, last))


def _lacking(
    fetched: ops.Fetched, partition: int, tried: list[tuple[int, ops.Accepted | ops.Refused]]
) -> tuple[int, ops.Accepted] | None:
    """The last commit that was accepted before, if neither it nor one that may have come later is read.

    Offsets rise in the order in which commits were sent. One that was answered when another was sent comes first.
    """
    done = [(at, each) for at, each in tried if isinstance(each, ops.Accepted) and each.at_ms <= fetched.sent_ms]
    if not done:
        return None
    at, last = max(done, key=lambda row: row[1].sent_ms)
    possible = {
        each.offset for _, each in tried
        if each.sent_ms <= fetched.at_ms and (each.at_ms >= last.sent_ms or isinstance(each, ops.Refused))
        and not (isinstance(each, ops.Refused) and each.error in WITHOUT_EFFECT)
    }  # fmt: skip
    return None if dict(fetched.offsets).get(partition) in possible else (at, last)


def _is_at_first(observed: list[Seen], fetched: ops.Fetched, last: ops.Accepted) -> bool:
    if fetched.node == last.node:
        return False
    answers = (
        event.at_ms for _, event in observed
        if isinstance(event, ops.Fetched | ops.Accepted) and event.node == fetched.node and event.sent_ms >= last.at_ms
    )  # fmt: skip
    return fetched.at_ms - min(answers, default=fetched.at_ms) < LOOKS_MS


def _is_resigning(observed: list[Seen], node: int, at_ms: int) -> bool:
    """Whether a node was resumed so shortly before that it may not know yet who coordinates the group."""
    return any(
        isinstance(event, ops.Hit) and event.did == "resumes" and event.node == node
        and 0 <= at_ms - event.at_ms <= RESIGNS_MS
        for _, event in observed
    )  # fmt: skip


@impact("Epochs go back when the coordinator moves", "double processing", "epochs", "double-processing", "stuck-group")
@of_groups("failover/epochs-rise", "grp-302")
def epochs_rise(history: History) -> Iterator[Violation]:
    """No node gives a member a generation or epoch below one that the group, or a member that beats, had before."""
    observed, given = seen(history), list[tuple[int, ops.Accepted]]()
    for step, event in observed:
        if not isinstance(event, ops.Accepted) or not (event.joins or event.request in DURABLE):
            continue
        if event.request not in DURABLE and _is_resigning(observed, event.node, event.sent_ms):
            continue
        for before, other in given:
            related = event.joins or event.request == "SyncGroup" or other.member == event.member
            follows = other.protocol == event.protocol and other.at_ms <= event.sent_ms
            if follows and related and 0 <= event.epoch < other.epoch:
                yield Violation(
                    f"{event.member}'s {event.request} is answered with epoch {event.epoch} by node {event.node}, "
                    f"after node {other.node} gave {other.member} epoch {other.epoch}",
                    (before, step), f"epoch {other.epoch} or more", str(event.epoch),
                    shape=("back", event.protocol, event.request),
                )  # fmt: skip
                return
        if event.request in DURABLE and event.epoch > 0:
            given.append((step, event))


@impact("A group never becomes stable after its coordinator failed", "stuck group", "waiting", "stuck-group")
@of_groups(
    "failover/becomes-stable",
    "grp-303",
    unsure=lambda history: any(
        isinstance(event, ops.Restless) and event.late_ms > LATE_MS for _, event in seen(history)
    ),
)
def becomes_stable(history: History) -> Iterator[Violation]:
    """A group whose members go on is stable again within 90 s of the last fault, with all partitions assigned."""
    for step, event in seen(history):
        if isinstance(event, ops.Restless):
            yield Violation(
                f"the group is not stable {event.took_ms} ms after the last fault: {event.why}",
                (step,), "a stable group", event.why, shape=("restless", event.why.partition(" ")[0]),
            )  # fmt: skip
            return
