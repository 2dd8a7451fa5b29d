"""Invariants of a coordinator of KIP-848's consumer groups.

Each invariant reads the heartbeats of clients and their responses. A client owns a partition from the response that
assigns it until the first accepted heartbeat whose list of owned partitions lacks it, until the client leaves, or until
the time after which it has to treat itself as fenced.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import History, Op
from kipcheck.conformance.core.once import cached_on_history
from kipcheck.conformance.core.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_name
from kipcheck.conformance.protocols.consumer_group.model import (
    FENCED_MEMBER_EPOCH,
    GROUP_ID_NOT_FOUND,
    INVALID_REQUEST,
    LEAVING,
    TOPICS,
    UNKNOWN_MEMBER_ID,
    Memory,
    claimed,
)
from kipcheck.conformance.protocols.consumer_group.ops import (
    OPERATIONS,
    REBALANCE_MS,
    SESSION_MS,
    Answered,
    Beat,
    Event,
    Partitions,
    Says,
)
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload

OWNERSHIP: Final = "consumer-group/ownership"
EPOCHS: Final = "consumer-group/epochs"
ACCEPTED: Final = ("consumer-heartbeat",)
"""Without an accepted heartbeat the group has no member."""
ownership = partial(invariant, role=Role.COORDINATOR, checks=(OWNERSHIP,), after=ACCEPTED)
epochs = partial(invariant, role=Role.COORDINATOR, checks=(EPOCHS,), after=ACCEPTED)

SETTLED = 4
"""The rounds of heartbeats after which all partitions are assigned, if every member reports what it owns and nothing
else happens."""


@dataclass(frozen=True, slots=True)
class Client:
    """What is known of a client from its heartbeats and their responses."""

    name: str
    memory: Memory
    member: bool = False
    fenced: bool = False
    """Its last heartbeat was refused: the client gives up all, and the coordinator still has it as a member."""
    expired: bool = False
    """It may have been removed because it was silent, or did not revoke in time."""
    previous: int | None = None
    """The epoch before its current one."""
    unused: bool = False
    """Its current epoch is new: no heartbeat of it shows that it got the response with that epoch."""
    topics: tuple[str, ...] = ()
    readable: Mapping[Partition, int] = field(default_factory=dict)
    """The partitions that it may still read, each with the step that assigned it."""
    silent_ms: int = 0
    revoking_ms: int = 0
    """The time for which it has owned partitions that it was asked to revoke."""


@dataclass(frozen=True, slots=True)
class Group:
    """What is known of the group from the heartbeats so far."""

    clients: Mapping[str, Client] = field(default_factory=dict)
    calm: Mapping[str, int] = field(default_factory=dict)
    """Client -> its consecutive heartbeats that only say that it stays, with no other step between them."""
    existed: bool = False
    """A member has joined before, so the group exists."""

    def having(self, client: Client) -> "Group":
        return replace(self, clients={**self.clients, client.name: client})


@dataclass(frozen=True, slots=True)
class AnsweredHeartbeat(AnsweredStep[Event, Mapping[str, Any], Group]):
    """An answered heartbeat, or time that passes."""

    @property
    def beat(self) -> Beat:
        assert isinstance(self.request, Beat)
        return self.request

    @property
    def clients(self) -> Mapping[str, Client]:
        return self.before.clients

    @property
    def rounds(self) -> int:
        """The number of consecutive rounds of heartbeats of all members, with no other step between them."""
        calm = self.before.calm
        return min((calm.get(name, 0) for name, each in self.clients.items() if each.member), default=0)

    @property
    def client(self) -> Client:
        return self.clients.get(self.beat.client) or Client(self.beat.client, Memory(self.beat.client))

    @property
    def epoch(self) -> int:
        """The epoch in the request."""
        return {Says.JOIN: 0, Says.LEAVE: LEAVING, Says.STAY: self.client.memory.epoch - self.beat.behind}[
            self.beat.says
        ]

    @property
    def intent(self) -> Says:
        """What the request does, by its epoch: join, leave or stay."""
        return {0: Says.JOIN, LEAVING: Says.LEAVE}.get(self.epoch, Says.STAY)

    @property
    def owned(self) -> Partitions | None:
        """The owned partitions in the request."""
        return claimed(self.client.memory, self.beat.owned)

    @property
    def answered_epoch(self) -> int | None:
        """The epoch in the response; None if there is none."""
        found = self.answer.get("epoch")
        return found if type(found) is int else None

    @property
    def given(self) -> Partitions | None:
        found = self.answer.get("assignment")
        return None if found is None else tuple(sorted((topic, number) for topic, number in found))

    @property
    def answered(self) -> Answered:
        return Answered(self.beat.client, LEAVING if self.answered_epoch is None else self.answered_epoch, self.given)

    def known_after(self) -> Group:
        known = self.before
        if not isinstance(self.request, Beat):
            clients = {name: _aged(each, self.request.ms) for name, each in known.clients.items()}
            return replace(known, clients=clients, calm={})
        name = self.beat.client
        if self.intent is Says.STAY and self.beat.topics is None and self.beat.owned == "told" and self.accepted:
            known = replace(known, calm={**known.calm, name: known.calm.get(name, 0) + 1})
        elif self.accepted or self.client.member:
            known = replace(known, calm={})
        if self.accepted:
            return replace(known.having(_after(self)), existed=known.existed or self.intent is Says.JOIN)
        if self.error == FENCED_MEMBER_EPOCH:
            return known.having(replace(self.client, fenced=True))
        return known.having(Client(name, self.client.memory)) if self.intent is Says.STAY else known


@cached_on_history
def answered_heartbeats(history: History) -> tuple[AnsweredHeartbeat, ...]:
    """The heartbeats up to the first step without an answer: after that the state of the group is not known."""

    def read(op: Op, known: Group) -> AnsweredHeartbeat:
        return AnsweredHeartbeat(op, OPERATIONS.event_of(op.step), payload(op), known)

    return tuple(each for each in answered_steps(history, Group(), read) if isinstance(each.request, Beat))


def _aged(client: Client, ms: int) -> Client:
    silent = client.silent_ms + ms
    late = client.expired or bool({*client.readable} - {*client.memory.given})
    revoking = client.revoking_ms + ms if late else 0
    over = silent >= SESSION_MS or revoking >= REBALANCE_MS
    readable = {} if over else client.readable
    return replace(client, expired=client.expired or over, readable=readable, silent_ms=silent, revoking_ms=revoking)


def _after(heartbeat: AnsweredHeartbeat) -> Client:
    before, owned, given = heartbeat.client, heartbeat.owned, heartbeat.given
    memory = before.memory.after(heartbeat.answered)
    if heartbeat.intent is Says.LEAVE:
        return Client(before.name, memory)
    known = {**dict.fromkeys(before.memory.given, heartbeat.op.index), **before.readable}
    kept = before.readable if owned is None else {each: known[each] for each in owned if each in known}
    readable = {**{each: heartbeat.op.index for each in given or ()}, **kept}
    topics = before.topics if heartbeat.beat.topics is None else heartbeat.beat.topics
    newer = memory.epoch != before.memory.epoch
    again = before.member and not before.expired
    previous = None if not again else before.memory.epoch if newer else before.previous
    unused = newer or (before.unused and heartbeat.epoch != before.memory.epoch)
    late = {*readable} - {*memory.given}
    revoking = before.revoking_ms if late else 0
    return Client(
        before.name,
        memory,
        True,
        previous=previous,
        unused=unused,
        topics=topics,
        readable=readable,
        revoking_ms=revoking,
    )


def beats(case: Case, step: Step) -> bool:
    return step.verb == "consumer-heartbeat"


def breach(heartbeat: AnsweredHeartbeat, why: str, expected: str, *shape: str, at: Iterable[int] = ()) -> Violation:
    observed = f"refused: {heartbeat.error}" if heartbeat.error else f"epoch {heartbeat.answered_epoch}"
    return Violation(why, (*at, heartbeat.op.index), expected, observed, shape=shape)


@impact("A partition has two owners", "double processing", "ownership", "double-processing", links=("KIP-848",))
@ownership("consumer-group/one-owner", "grp-04", applies_to=beats)
def one_owner(history: History) -> Iterator[Violation]:
    """A partition goes to a new owner only after the old one acknowledged its revocation, left or was fenced."""
    for each in answered_heartbeats(history):
        for partition in each.given or ():
            for other in each.clients.values():
                if other.name != each.beat.client and partition in other.readable:
                    was = other.readable[partition]
                    why = (
                        f"{partition_name(partition)} was assigned to {other.name}, which has not acknowledged its "
                        "revocation; "
                        f"now it is assigned to {each.beat.client}"
                    )
                    kind = "never asked to revoke" if partition in other.memory.given else "not yet revoked"
                    yield breach(each, why, f"{partition_name(partition)} to no other member yet", kind, at=[was])


@impact("The epoch of a member falls", "double processing", "epochs", "stale-view", links=("KIP-848",))
@epochs("consumer-group/epochs-rise", "grp-04", applies_to=beats)
def epochs_rise(history: History) -> Iterator[Violation]:
    """The epoch of a member is above 0, and never falls while it is in the group."""
    for each in answered_heartbeats(history):
        if not each.accepted or each.intent is Says.LEAVE:
            continue
        if each.answered_epoch is None or each.answered_epoch < 1:
            yield breach(each, f"{each.beat.client} got epoch {each.answered_epoch}", "an epoch above 0", "no epoch")
        elif each.client.member and each.answered_epoch < each.client.memory.epoch:
            why = f"{each.beat.client} had epoch {each.client.memory.epoch}; now it gets {each.answered_epoch}"
            yield breach(each, why, f"epoch {each.client.memory.epoch} or above", "falls")


@impact("A new member gets an outdated epoch", "double processing", "epochs", "stale-view", links=("KIP-848",))
@epochs("consumer-group/group-epoch-rises", "grp-70", applies_to=beats)
def group_epoch_rises(history: History) -> Iterator[Violation]:
    """A member that joins gets no older epoch than any member of the group has."""
    for each in answered_heartbeats(history):
        if each.accepted and each.intent is Says.JOIN and each.answered_epoch is not None:
            newest = max((other.memory.epoch for other in each.clients.values() if other.member), default=0)
            if each.answered_epoch < newest:
                why = (
                    f"a member has epoch {newest}; {each.beat.client} joins after that, and gets {each.answered_epoch}"
                )
                yield breach(each, why, f"epoch {newest} or above", "older than others")


@impact("A member that leaves gets an unexpected epoch", "trivia", "epochs", "stale-view", links=("KIP-848",))
@epochs("consumer-group/answers-leaving", "grp-57", grade=Grade.SHOULD, applies_to=beats)
def answers_leaving(history: History) -> Iterator[Violation]:
    """A heartbeat that leaves is answered with its own epoch."""
    for each in answered_heartbeats(history):
        if each.accepted and each.intent is Says.LEAVE and each.answered_epoch != LEAVING:
            yield breach(
                each, f"{each.beat.client} left and got epoch {each.answered_epoch}", f"epoch {LEAVING}", "leaving"
            )


@impact(
    "A member gets partitions that it does not subscribe to, or that do not exist",
    "wrong data",
    "ownership",
    "wrong-data",
    "double-processing",
    links=("KIP-848",),
)
@ownership("consumer-group/co-subscription", "grp-71", applies_to=beats)
def co_subscription(history: History) -> Iterator[Violation]:
    """Partitions that are newly assigned to a member exist, and belong to topics that it subscribes to."""
    for each in answered_heartbeats(history):
        topics = each.client.topics if each.beat.topics is None else each.beat.topics
        for topic, number in sorted({*(each.given or ())} - {*each.client.memory.given}):
            if topic not in topics:
                wants = ", ".join(topics) or "nothing"
                why = f"{each.beat.client} subscribes to {wants}, and gets {topic}-{number}"
                yield breach(each, why, "partitions of its topics", "not subscribed")
            elif not 0 <= number < TOPICS.get(topic, 0):
                yield breach(each, f"{topic}-{number} does not exist", "existing partitions", "not there")


@impact(
    "A member with an outdated epoch is not fenced",
    "double processing",
    "epochs",
    "double-processing",
    "stale-view",
    links=("KIP-848",),
)
@epochs("consumer-group/stale-epoch-fenced", "grp-72", applies_to=beats)
def stale_epoch_fenced(history: History) -> Iterator[Violation]:
    """An epoch is refused if it is a stranger's, too new, too old, or the previous one with too many partitions."""
    for each in answered_heartbeats(history):
        if each.accepted and each.intent is Says.STAY and each.client.member and each.epoch > 0:
            last = each.client.memory.epoch
            if each.epoch > last or (each.epoch < last and not _may_be_a_repetition(each)):
                why = f"{each.beat.client} has epoch {last}, and is accepted with epoch {each.epoch}"
                yield breach(each, why, f"refused: {FENCED_MEMBER_EPOCH}", "newer" if each.epoch > last else "stale")
        elif each.accepted and each.epoch > 0 and _never_joined(each):
            why = f"{each.beat.client} never joined, and is accepted with epoch {each.epoch}"
            yield breach(each, why, f"refused: {UNKNOWN_MEMBER_ID}", "never joined")


def _may_be_a_repetition(heartbeat: AnsweredHeartbeat) -> bool:
    """Is it the previous epoch, with no more partitions than the last response gave, as after a lost response?"""
    owned, client = heartbeat.owned, heartbeat.client
    return heartbeat.epoch == client.previous and owned is not None and {*owned} <= {*client.memory.given}


@impact("A member is fenced because a response was lost", "trivia", "guards", "needless-move", links=("KIP-848",))
@epochs("consumer-group/repetition-taken", "grp-73", grade=Grade.SHOULD, applies_to=beats)
def repetition_taken(history: History) -> Iterator[Violation]:
    """After a lost response a member may repeat its previous epoch, if it owns no more than it was assigned."""
    for each in answered_heartbeats(history):
        stays = each.intent is Says.STAY and each.client.member and each.epoch > 0
        if stays and each.error == FENCED_MEMBER_EPOCH and _may_be_a_repetition(each) and each.client.unused:
            last = each.client.memory.epoch
            why = f"{each.beat.client} repeats epoch {each.epoch}, which it had before {last}"
            yield breach(each, why, "accepted", "fenced")


@impact(
    "An invalid heartbeat is refused with another error", "trivia", "error-codes", "misled-operator", links=("KIP-848",)
)
@epochs("consumer-group/names-the-fault", "grp-74", grade=Grade.SHOULD, applies_to=beats, after=())
def names_the_fault(history: History) -> Iterator[Violation]:
    """An invalid heartbeat is refused with the error that says why."""
    for each in answered_heartbeats(history):
        expected = _fault(each)
        if expected and each.error not in expected:
            why = f"{each.beat.client} sends {each.intent.value} with epoch {each.epoch}"
            owed = " or ".join(expected)
            yield breach(each, why, f"refused: {owed}", "accepted" if each.accepted else "error", expected[0])


def _never_joined(heartbeat: AnsweredHeartbeat) -> bool:
    return not heartbeat.client.member and not heartbeat.client.memory.epoch


def _fault(heartbeat: AnsweredHeartbeat) -> tuple[str, ...]:
    """The expected errors, any of which is right; none if it is not certain that the heartbeat is refused."""
    beat, owned = heartbeat.beat, heartbeat.owned
    if heartbeat.epoch < LEAVING or (heartbeat.epoch == 0 and (beat.topics is None or owned is None or owned)):
        return (INVALID_REQUEST,)
    if not heartbeat.before.existed and heartbeat.epoch != 0:
        return GROUP_ID_NOT_FOUND, UNKNOWN_MEMBER_ID
    if heartbeat.epoch > 0 and _never_joined(heartbeat):
        return (UNKNOWN_MEMBER_ID,)
    return ()


@impact(
    "A silent member keeps its partitions, or a live one loses them",
    "stuck group",
    "guards",
    "unread-partition",
    "needless-move",
    links=("KIP-848",),
)
@epochs("consumer-group/silent-are-fenced", "grp-75", applies_to=lambda case, step: True)
def silent_are_fenced(history: History) -> Iterator[Violation]:
    """A member that was silent for its session timeout is unknown; one that was not, and need not revoke, is known."""
    for each in answered_heartbeats(history):
        client = each.client
        if each.intent is not Says.STAY or not client.member or each.beat.behind:
            continue
        if each.accepted and client.silent_ms >= SESSION_MS:
            why = f"{each.beat.client} was silent for {client.silent_ms} ms, and is accepted as a member"
            yield breach(each, why, f"refused: {UNKNOWN_MEMBER_ID}", "never fenced")
        elif each.error == UNKNOWN_MEMBER_ID and client.silent_ms < SESSION_MS and not client.revoking_ms:
            why = f"{each.beat.client} was silent for only {client.silent_ms} ms, and is unknown"
            yield breach(each, why, "accepted", "fenced too early")


@impact(
    "A member that does not revoke blocks the group", "stuck group", "guards", "unread-partition", links=("KIP-848",)
)
@epochs("consumer-group/late-revokers-are-fenced", "grp-75", applies_to=lambda case, step: True)
def late_revokers_are_fenced(history: History) -> Iterator[Violation]:
    """A member that does not revoke partitions within its rebalance timeout is fenced."""
    for each in answered_heartbeats(history):
        if each.accepted and each.intent is Says.STAY and each.client.revoking_ms >= REBALANCE_MS:
            why = f"{each.beat.client} still owns what it was asked to revoke {each.client.revoking_ms} ms ago"
            yield breach(each, why, f"refused: {UNKNOWN_MEMBER_ID}", "never fenced")


@impact("A partition stays without an owner", "stuck group", "balance", "unread-partition", links=("KIP-848",))
@ownership("consumer-group/settles", "grp-76", grade=Grade.SHOULD, applies_to=beats)
def settles(history: History) -> Iterator[Violation]:
    """If nothing else happens, every subscribed partition has an owner within a few rounds."""
    for each in answered_heartbeats(history):
        if each.rounds < SETTLED or not each.accepted or any(client.fenced for client in each.clients.values()):
            continue
        members = [client for client in each.clients.values() if client.member]
        owned = {partition for client in members for partition in client.memory.given} | {*(each.given or ())}
        wanted = {(topic, number) for client in members for topic in client.topics for number in range(TOPICS[topic])}
        for topic, number in sorted(wanted - owned):
            why = f"{topic}-{number} has no owner after {each.rounds} rounds in which every member sent what it owns"
            yield breach(each, why, f"an owner of {topic}-{number}", "left over")
            return
