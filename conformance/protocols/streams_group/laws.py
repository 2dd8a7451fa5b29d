"""Laws of the coordinator of a streams group, checked in every state of its model: they restate its invariants."""

from collections import Counter
from typing import Any

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.assignment.model.assignment import partition_name
from kipcheck.conformance.protocols.streams_group.ops import Event
from kipcheck.conformance.protocols.streams_group.state import Member, State
from kipcheck.conformance.protocols.streams_group.topology import sizes


def _one_owner(views: tuple[tuple[Member, ...]]) -> str | None:
    owners = Counter(task for each in views[0] for task in each.assigned)
    return next((f"{partition_name(task)} has {count} owners" for task, count in owners.items() if count > 1), None)


def _revoked_first(views: tuple[tuple[Member, ...]]) -> str | None:
    for each in views[0]:
        for other in views[0]:
            if other.id != each.id and (both := {*each.pending} & {*other.assigned}):
                return f"{partition_name(min(both))} is with {other.id}, and {each.id} has to revoke it"
    return None


def _complete(views: tuple[State]) -> str | None:
    (state,) = views
    settled = all(
        each.epoch == state.target_epoch == state.epoch and not each.waiting and not each.pending
        for each in state.members
    )
    owned = {task for each in state.members for task in each.assigned}
    ready = state.validated
    wanted = {(each, number) for each, size in sizes(state.topology or ()).items() for number in range(size) if ready}
    if state.members and settled and owned != wanted:
        return f"all members are settled, and {partition_name(min(wanted ^ owned))} has no owner"
    return None


def _epochs_rise(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    known = {each.id: each.epoch for each in before.members}
    for each in did.part.members:
        if each.epoch < known.get(each.id, 0):
            return f"the epoch of {each.id} falls from {known[each.id]} to {each.epoch}"
    return None


def _group_epoch(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    after = did.part
    if after.epoch < before.epoch:
        return f"the epoch of the group falls from {before.epoch} to {after.epoch}"
    newest = max((each.epoch for each in after.members), default=0)
    if not newest <= after.target_epoch <= after.epoch:
        return f"members have epoch {newest}, the assignment {after.target_epoch}, and the group {after.epoch}"
    return None


LAWS: tuple[Law[State] | StepLaw[State, Event, Event], ...] = (
    Law("streams-group/one-owner", lambda index, state: state.members, _one_owner),
    Law("streams-group/revoked-first", lambda index, state: state.members, _revoked_first),
    Law("streams-group/stable-is-complete", lambda index, state: state, _complete),
    StepLaw("streams-group/epochs-rise", _epochs_rise),
    StepLaw("streams-group/group-epoch-rises", _group_epoch),
)
