"""Invariants of the heartbeats of streams groups: epochs, errors, topologies, sessions and sizes."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.streams_group import model
from kipcheck.conformance.protocols.streams_group.invariants import (
    EPOCHS,
    FULL,
    HEARTBEAT,
    asks,
    breach,
    epochs,
    impact,
    rule,
    sends,
)
from kipcheck.conformance.protocols.streams_group.legality import faults, is_legal, other_topology
from kipcheck.conformance.protocols.streams_group.model import is_invalid
from kipcheck.conformance.protocols.streams_group.ops import REBALANCE_MS, Consume
from kipcheck.conformance.protocols.streams_group.trace import GroupStep, beats, group_steps

PLACE = 20


@impact("The epoch of a member falls", "double processing", "epochs", "stale-view")
@epochs("streams-group/epochs-rise", "grp-134")
def epochs_rise(history: History) -> Iterator[Violation]:
    """The epoch of a member never falls while it is in the group."""
    for step in beats(history):
        last = step.client.memory.epoch
        if (
            step.accepted
            and step.epoch not in terms.LEFT
            and step.client.is_certain_member
            and step.answered_epoch < last
        ):
            why = f"{step.client.name} had epoch {last}; now it gets {step.answered_epoch}"
            yield breach(step, why, f"epoch {last} or above")


@impact("A member that leaves gets an unexpected epoch", "trivia", "epochs", "stale-view")
@epochs("streams-group/answers-leaving", "grp-135", grade=Grade.SHOULD)
def answers_leaving(history: History) -> Iterator[Violation]:
    """A heartbeat that leaves is answered with epoch -1; that of a static member that leaves for a while with -2."""
    for step in beats(history):
        if step.accepted and step.epoch in terms.LEFT and step.answered_epoch != step.epoch:
            yield breach(step, f"{step.client.name} left and got epoch {step.answered_epoch}", f"epoch {step.epoch}")


def _may_be_a_repetition(step: GroupStep) -> bool:
    """Is it the previous epoch, with no more tasks than the last response gave, as after a lost response?"""
    owned, client = step.owned, step.client
    if step.epoch != client.previous or owned.active is None:
        return False
    standby = {*(owned.standby or ())} <= {*client.standbys.given}
    return standby and {*owned.active} <= {*client.memory.given}


@impact("A member with an outdated epoch is not fenced", "double processing", "epochs", "double-processing",
        "stale-view")  # fmt: skip
@epochs("streams-group/stale-epoch-fenced", "grp-136")
def stale_epoch_fenced(history: History) -> Iterator[Violation]:
    """An epoch above the member's, or below it and no repetition, is refused as FENCED_MEMBER_EPOCH."""
    for step in beats(history):
        last = step.client.memory.epoch
        if not step.client.is_certain_member or step.epoch <= 0 or step.epoch == last or faults(step):
            continue
        if step.error != terms.FENCED_MEMBER_EPOCH and not _may_be_a_repetition(step):
            why = f"{step.client.name} has epoch {last}, and sends {step.epoch}"
            yield breach(step, why, f"refused: {terms.FENCED_MEMBER_EPOCH}", "newer" if step.epoch > last else "stale")


@impact("A member is fenced because a response was lost", "trivia", "guards", "needless-move")
@epochs("streams-group/repetition-taken", "grp-137", grade=Grade.SHOULD)
def repetition_taken(history: History) -> Iterator[Violation]:
    """After a lost response a member may repeat its previous epoch, if it owns no more tasks than it was assigned."""
    for step in beats(history):
        unused = step.client.is_certain_member and step.client.unused
        if unused and step.epoch > 0 and step.error == terms.FENCED_MEMBER_EPOCH and _may_be_a_repetition(step):
            why = f"{step.client.name} repeats epoch {step.epoch}, which it had before {step.client.memory.epoch}"
            yield breach(step, why, "accepted")


@impact("A client that is no member goes on as one", "stuck group", "guards", "stuck-group")
@epochs("streams-group/strangers-refused", "grp-138")
def strangers_refused(history: History) -> Iterator[Violation]:
    """A heartbeat of a client that is no member, and does not join, is refused as UNKNOWN_MEMBER_ID."""
    for step in beats(history):
        strange = step.before.form == "streams" and step.epoch != 0 and not step.client.member and not faults(step)
        if strange and step.error != terms.UNKNOWN_MEMBER_ID:
            why = f"{step.client.name} is no member, and sends epoch {step.epoch}"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "accepted" if step.accepted else step.error)


@impact("An invalid heartbeat is accepted, or refused with another error", "trivia", "error-codes", "misled-operator")
@rule("streams-group/invalid-refused", "grp-139", checks=(EPOCHS,), applies_to=sends)
def invalid_refused(history: History) -> Iterator[Violation]:
    """An invalid heartbeat is refused as INVALID_REQUEST; an invalid topology as STREAMS_INVALID_TOPOLOGY."""
    for step in beats(history):
        expected = faults(step)
        known = step.before.form == "streams" and step.before.tasks and step.client.is_certain_member
        if not expected and known and step.beat.flaw == "task" and step.epoch == step.client.memory.epoch:
            expected = (terms.INVALID_REQUEST,)
        if expected and step.error not in expected:
            why = (
                f"{step.client.name} sends epoch {step.epoch}, {step.beat.flaw or 'without a topology where it joins'}"
            )
            kind = "accepted" if step.accepted else "error"
            yield breach(step, why, f"refused: {expected[0]}", kind, step.beat.flaw or "plain")


@impact("A group of another type is used as a streams group", "wrong data", "guards", "wrong-data")
@rule("streams-group/one-type", "grp-140", checks=(EPOCHS,), applies_to=asks)
def one_type(history: History) -> Iterator[Violation]:
    """A group has one type, or is not there: requests of another type are refused as GROUP_ID_NOT_FOUND."""
    for step in group_steps(history):
        form, consumes = step.before.form, isinstance(step.request, Consume)
        wrong = form == "streams" if consumes else form == "consumer"
        absent = form == "none" and not consumes and (step.verb != HEARTBEAT or step.epoch != 0)
        if not (wrong or absent) or step.error == terms.GROUP_ID_NOT_FOUND or (step.verb == HEARTBEAT and faults(step)):
            continue
        sent = step.verb.removeprefix("streams-group-")
        why = f"{sent}, and the group is {'not there' if absent else f'a {form} group'}"
        yield breach(step, why, f"refused: {terms.GROUP_ID_NOT_FOUND}", sent, form)


@impact("A silent member keeps its tasks, or a live one loses them", "stuck group", "guards", "unread-partition",
        "needless-move")  # fmt: skip
@rule("streams-group/silent-are-removed", "grp-141", checks=(EPOCHS,), after=(HEARTBEAT,))
def silent_are_removed(history: History) -> Iterator[Violation]:
    """A member that was silent for its session timeout is unknown; one that was not, and need not revoke, is known."""
    for step in beats(history):
        client = step.client
        if not client.member or step.epoch == 0 or faults(step):
            continue
        if step.accepted and client.silent_ms >= step.before.config.session_ms:
            why = f"{client.name} was silent for {client.silent_ms} ms, and is accepted as a member"
            yield breach(step, why, f"refused: {terms.UNKNOWN_MEMBER_ID}", "never removed")
        elif step.error == terms.UNKNOWN_MEMBER_ID and client.is_certain_member and not client.revoking_ms:
            why = f"{client.name} was silent for only {client.silent_ms} ms, and is unknown"
            yield breach(step, why, "accepted", "removed too early")


@impact("A member loses its tasks while it closes them", "double processing", "guards", "double-processing",
        "needless-move")  # fmt: skip
@rule("streams-group/revokers-have-time", "grp-269", checks=(EPOCHS,), after=(HEARTBEAT,))
def revokers_have_time(history: History) -> Iterator[Violation]:
    """A member that has to revoke tasks, and sends heartbeats, stays a member for its rebalance timeout."""
    for step in beats(history):
        if step.is_cut_short and step.beat.instance is None:
            why = f"{step.client.name} was asked to revoke tasks {step.client.revoking_ms} ms ago, and is unknown"
            yield breach(step, why, f"a member for {REBALANCE_MS} ms", "removed too early")


@impact("Two processes act as one static member", "double processing", "identity", "double-processing",
        links=("KIP-345", "KIP-1071"))  # fmt: skip
@epochs("streams-group/one-member-an-instance", "grp-160")
def one_member_an_instance(history: History) -> Iterator[Violation]:
    """While a member has an instance id, and has not left, no other client is accepted with it."""
    for step in beats(history):
        holder = step.before.clients.get(step.before.instances.get(step.beat.instance or "", ""))
        if holder is not None and holder.is_certain_member and holder.name != step.client.name and step.accepted:
            expected = terms.UNRELEASED_INSTANCE_ID if step.epoch == 0 else terms.FENCED_INSTANCE_ID
            why = f"{step.client.name} sends instance id {step.beat.instance}, which {holder.name} has"
            yield breach(step, why, f"refused: {expected}", "joins" if step.epoch == 0 else "stays")


@impact("A streams group has more members than the operator allows", "trivia", "guards", "misled-operator")
@epochs("streams-group/size-limit", "grp-266")
def size_limit(history: History) -> Iterator[Violation]:
    """A streams group takes no new member beyond ``group.streams.max.size``."""
    for step in beats(history):
        sure = [client for client in step.before.members if client.is_certain_member]
        most, own = step.before.config.max_size, step.client
        is_new = step.epoch == 0 and not (own.member or own.away) and step.beat.instance not in step.before.instances
        if step.accepted and is_new and len(sure) >= most:
            why = f"the group has {len(sure)} members, and {own.name} joins"
            yield breach(step, why, f"refused: {FULL}", "too many")


# Topologies


@impact("Members run different topologies, and do not know it", "wrong data", "epochs", "stale-view")
@epochs("streams-group/stale-topology-reported", "grp-142")
def stale_topology_reported(history: History) -> Iterator[Violation]:
    """A status of an answer is STALE_TOPOLOGY if the member's topology epoch is below the group's, and only then."""
    for step in beats(history):
        if not step.accepted or step.epoch in terms.LEFT:
            continue
        after = step.known_after()
        own, group = after.clients[step.client.name].topology_epoch, after.topology_epoch
        if (own < group) is not (model.STALE_TOPOLOGY in step.statuses):
            why = f"{step.client.name} has topology epoch {own}, the group {group}; the status is {step.statuses}"
            expected = f"the status is {model.STALE_TOPOLOGY}" if own < group else "no such status"
            yield breach(step, why, expected, "hidden" if own < group else "made up")


@impact("Members run different topologies, and do not know it", "wrong data", "guards", "wrong-data",
        links=("KIP-1071", "KAFKA-21370"))  # fmt: skip
@epochs("streams-group/one-topology", "grp-143")
def one_topology(history: History) -> Iterator[Violation]:
    """A member does not join with another topology of the same epoch."""
    for step in beats(history):
        same_epoch = other_topology(step) and step.beat.topology_epoch == step.before.topology_epoch
        if same_epoch and step.error not in (terms.INVALID_REQUEST, model.STREAMS_INVALID_TOPOLOGY_EPOCH, FULL):
            why = f"{step.client.name} joins with {step.beat.topology}, the group has {step.before.topology}"
            yield breach(step, why, f"refused: {terms.INVALID_REQUEST} or {model.STREAMS_INVALID_TOPOLOGY_EPOCH}")


@impact("A topology is updated, or refused in another way", "trivia", "guards", "misled-operator",
        links=("KIP-1071", "KAFKA-20170"))  # fmt: skip
@epochs("streams-group/no-update-yet", "grp-144", grade=Grade.INFO)
def no_update_yet(history: History) -> Iterator[Violation]:
    """A join with a newer topology epoch is refused as INVALID_REQUEST: releases do not update topologies."""
    for step in beats(history):
        newer = other_topology(step) and step.beat.topology_epoch > step.before.topology_epoch
        if newer and step.error not in (terms.INVALID_REQUEST, FULL):
            why = f"{step.client.name} joins with topology epoch {step.beat.topology_epoch}"
            yield breach(step, why, f"refused: {terms.INVALID_REQUEST}", "accepted" if step.accepted else step.error)


@impact("A Streams application cannot join its group, or stay in it", "stuck group", "guards", "refused-peer",
        "unread-partition")  # fmt: skip
@rule("streams-group/admits-members", "grp-165", checks=(EPOCHS,), applies_to=sends)
def admits_members(history: History) -> Iterator[Violation]:
    """A valid heartbeat of a client that joins with the group's topology, or of a member in its epoch, is accepted."""
    for step in beats(history):
        if not step.accepted and step.error not in terms.UNAVAILABLE and is_legal(step):
            joins = step.epoch == 0
            why = f"{step.client.name} joins" if joins else f"{step.client.name} sends its epoch {step.epoch}"
            yield breach(step, why, "accepted", "joins" if joins else "stays", step.error)


@impact("A Streams client that was fenced cannot come back before its session has ended", "stuck group", "guards",
        "refused-peer", "unread-partition", links=("KIP-1071", "KAFKA-19233"))  # fmt: skip
@epochs("streams-group/taken-back", "grp-261", grade=Grade.SHOULD)
def taken_back(history: History) -> Iterator[Violation]:
    """A member that was fenced, and joins again with its id, its instance id, its topology and epoch 0, is accepted."""
    for step in beats(history):
        own: list[str | None] = [
            instance for instance, name in step.before.instances.items() if name == step.client.name
        ]
        invalid = step.beat.flaw is not None or is_invalid(step.beat, step.epoch, step.owned.active)
        if step.is_turned_away and not invalid and not other_topology(step) and step.beat.instance in (own or [None]):
            why = f"{step.client.name} was fenced, and joins again with epoch 0"
            yield breach(step, why, "accepted", "static" if own else "dynamic", step.error)
