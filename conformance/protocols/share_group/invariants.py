"""Invariants of a coordinator of KIP-932's share groups, which read heartbeats and their answers."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.declare.invariant import impact as any_impact, invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.reconciled import log_laws, terms
from kipcheck.conformance.protocols.share_group.model import is_invalid
from kipcheck.conformance.protocols.share_group.trace import Heartbeat, heartbeats

MEMBERSHIP: Final = "share-group/membership"
RECORDS: Final = "share-group/records"
SETTLED: Final = 2
"""After so many heartbeats of each member that change nothing, and time for a target assignment, each has its part."""
membership = partial(
    invariant, role=Role.COORDINATOR, checks=(MEMBERSHIP,), after=("share-group-heartbeat",), unsure=is_in_doubt
)
records = partial(invariant, role=Role.COORDINATOR, checks=(RECORDS,), unsure=is_in_doubt)
impact = partial(any_impact, links=("KIP-932",))


def beats(case: Case, step: Step) -> bool:
    return step.verb == "share-group-heartbeat"


def breach(heartbeat: Heartbeat, why: str, expected: str, *shape: str) -> Violation:
    observed = f"refused: {heartbeat.error}" if heartbeat.error else f"epoch {heartbeat.answered_epoch}"
    return Violation(why, (heartbeat.op.index,), expected, observed, shape=shape)


@impact("The epoch of a member falls", "stuck group", "epochs", "stale-view")
@membership("share-group/epochs-rise", "932-01", applies_to=beats)
def epochs_rise(history: History) -> Iterator[Violation]:
    """The epoch of a member is above 0, and never falls while it is in the group."""
    for step in heartbeats(history):
        name, known, epoch = step.beat.client, step.client.memory.epoch, step.answered_epoch
        if not step.accepted or step.epoch == terms.LEAVING:
            continue
        if epoch is None or epoch < 1:
            yield breach(step, f"{name} got epoch {epoch}", "an epoch above 0", "no epoch")
        elif step.client.is_certain_member and epoch < known:
            yield breach(step, f"{name} had epoch {known}; now it gets {epoch}", f"epoch {known} or above", "falls")


@impact("A member gets partitions that it does not subscribe to, or that do not exist", "wrong data", "ownership",
        "wrong-data")  # fmt: skip
@membership("share-group/co-subscription", "932-02", applies_to=beats)
def co_subscription(history: History) -> Iterator[Violation]:
    """Partitions that are newly assigned to a member exist, and belong to topics that it subscribes to."""
    for step in heartbeats(history):
        topics = step.client.topics if step.beat.topics is None else step.beat.topics
        for topic, number in sorted({*(step.given or ())} - {*step.client.memory.given}):
            if topic not in topics:
                why = f"{step.beat.client} subscribes to {', '.join(topics) or 'nothing'}, and gets {topic}-{number}"
                yield breach(step, why, "partitions of its topics", "not subscribed")
            elif not 0 <= number < TOPICS.get(topic, 0):
                yield breach(step, f"{topic}-{number} does not exist", "existing partitions", "not there")


@impact("A partition is read by no member", "stuck group", "balance", "unread-partition")
@membership("share-group/reads-everything", "932-03", grade=Grade.SHOULD, applies_to=beats)
def reads_everything(history: History) -> Iterator[Violation]:
    """In a group at rest each partition of a subscribed topic is with a member, and each member has a partition."""
    for step in heartbeats(history):
        members = {name: client for name, client in step.before.clients.items() if client.member}
        rounds = min((step.before.quiet_rounds.get(name, 0) for name in members), default=0)
        if rounds < SETTLED or not all(client.is_certain_member for client in members.values()):
            continue
        read = {partition for client in members.values() for partition in client.memory.given}
        topics = {topic for client in members.values() for topic in client.topics}
        wanted = {(topic, number) for topic in topics for number in range(TOPICS[topic])}
        if unread := sorted(wanted - read):
            why = f"no member has {partition_name(unread[0])}, though one subscribes to {unread[0][0]}"
            yield breach(step, why, f"{partition_name(unread[0])} with a member", "unread")
        for name, client in members.items():
            if client.topics and not client.memory.given:
                yield breach(step, f"{name} has no partition", "a partition for each member", "idle")


@impact("A member with an outdated epoch is not fenced", "stuck group", "epochs", "stale-view")
@membership("share-group/stale-epoch-fenced", "932-04", applies_to=beats)
def stale_epoch_fenced(history: History) -> Iterator[Violation]:
    """An epoch above 0 is refused if it is newer than the member's, older than its previous one, or a stranger's."""
    for step in heartbeats(history):
        name, client, epoch = step.beat.client, step.client, step.epoch
        if not step.accepted or epoch <= 0:
            continue
        if not client.member:
            why = f"{name} is no member, and is accepted with epoch {epoch}"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "no member")
        elif epoch > client.memory.epoch or (epoch < client.memory.epoch and epoch != client.previous):
            why = f"{name} has epoch {client.memory.epoch}, and is accepted with epoch {epoch}"
            kind = "newer" if epoch > client.memory.epoch else "stale"
            yield breach(step, why, f"refused: {terms.FENCED_MEMBER_EPOCH}", kind)


@impact("An invalid heartbeat is accepted", "trivia", "guards", "misled-operator")
@membership("share-group/refuses-invalid", "932-05", applies_to=beats)
def refuses_invalid(history: History) -> Iterator[Violation]:
    """A heartbeat with an empty id, a first one without topics, and one with an epoch below -1 are refused."""
    for step in heartbeats(history):
        if is_invalid(step.beat, step.epoch) and step.error not in (terms.INVALID_REQUEST, *terms.UNAVAILABLE):
            why = f"the heartbeat of {step.beat.client} is invalid: {_fault(step)}"
            yield breach(step, why, f"refused: {terms.INVALID_REQUEST}", "accepted" if step.accepted else "other error")


def _fault(step: Heartbeat) -> str:
    if step.beat.flaw is not None:
        return f"empty {step.beat.flaw}"
    return f"epoch {step.epoch}" if step.epoch < terms.LEAVING else "no topics in the first one"


@impact("A silent member keeps its partitions, or a live one loses them", "stuck group", "guards", "unread-partition",
        "needless-move")  # fmt: skip
@membership("share-group/silent-are-removed", "932-06", applies_to=lambda case, step: True)
def silent_are_removed(history: History) -> Iterator[Violation]:
    """A member that was silent for its session timeout is unknown; one that was not is known."""
    for step in heartbeats(history):
        name, client = step.beat.client, step.client
        if step.epoch <= 0 or not client.member or step.epoch != client.memory.epoch:
            continue
        if step.accepted and client.silent_ms >= step.before.config.session_ms:
            why = f"{name} was silent for {client.silent_ms} ms, and is accepted as a member"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "never removed")
        elif step.error in (terms.UNKNOWN_MEMBER_ID, terms.GROUP_ID_NOT_FOUND) and not client.expired:
            why = f"{name} was silent for only {client.silent_ms} ms, and is unknown"
            yield breach(step, why, "accepted", "too early")


@impact("A share consumer cannot join its group, or stay in it", "stuck group", "guards", "refused-peer",
        "unread-partition")  # fmt: skip
@membership("share-group/admits-members", "932-07", applies_to=beats, after=())
def admits_members(history: History) -> Iterator[Violation]:
    """A valid heartbeat of a client that is no member joins, and one of a member with its own epoch is accepted."""
    for step in heartbeats(history):
        client = step.client
        others = sum(each.member for each in step.before.clients.values())
        joins = step.epoch == 0 and not client.member and others < step.before.config.max_size
        stays = step.epoch == client.memory.epoch > 0 and client.is_certain_member
        if step.accepted or step.error in terms.UNAVAILABLE or is_invalid(step.beat, step.epoch):
            continue
        if joins or stays:
            why = f"{client.name} joins" if joins else f"{client.name} is a member, and sends its epoch"
            yield breach(step, why, "accepted", "joins" if joins else "stays", step.error)


@impact(*log_laws.NOT_AS_BEFORE)
@records(
    "share-group/outlives-reloads", "grp-250", "grp-251", applies_to=log_laws.reads, after=("share-group-heartbeat",)
)
def outlives_reloads(history: History) -> Iterator[Violation]:
    """A coordinator that has read its log, compacted in any part, serves the group as it was."""
    return log_laws.outlived(history)


@impact("A share group has more members than the operator allows", "trivia", "guards", "misled-operator")
@membership("share-group/size-limit", "grp-267", applies_to=beats)
def size_limit(history: History) -> Iterator[Violation]:
    """A share group takes no new member beyond ``group.share.max.size``."""
    for step in heartbeats(history):
        sure = [client for client in step.before.clients.values() if client.is_certain_member]
        most, own = step.before.config.max_size, step.client
        if step.accepted and step.epoch == 0 and not own.member and len(sure) >= most:
            why = f"the group has {len(sure)} members, and {own.name} joins"
            yield breach(step, why, f"refused: {terms.GROUP_MAX_SIZE_REACHED}", "too many")


@impact("A share consumer that was fenced cannot come back before its session has ended", "stuck group", "guards",
        "refused-peer", "unread-partition", links=("KIP-932", "KAFKA-19233"))  # fmt: skip
@membership("share-group/taken-back", "grp-262", grade=Grade.SHOULD, applies_to=beats)
def taken_back(history: History) -> Iterator[Violation]:
    """A member that was fenced, and joins again with its id and epoch 0, is accepted."""
    for step in heartbeats(history):
        if step.is_turned_away and not is_invalid(step.beat, step.epoch):
            why = f"{step.client.name} was fenced, and joins again with epoch 0"
            yield breach(step, why, "accepted", step.error)
