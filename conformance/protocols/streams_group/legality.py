"""Which heartbeats a coordinator of a streams group has to refuse, and which to accept, as far as clients know."""

from typing import Final

from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.streams_group.model import STREAMS_INVALID_TOPOLOGY, is_invalid
from kipcheck.conformance.protocols.streams_group.trace import GroupStep

OF_INSTANCES: Final = (
    terms.INVALID_REQUEST,
    terms.UNKNOWN_MEMBER_ID,
    terms.FENCED_INSTANCE_ID,
    terms.UNRELEASED_INSTANCE_ID,
)
"""How a heartbeat with an instance id may be refused: as the first one where members cannot be static."""


def faults(step: GroupStep) -> tuple[str, ...]:
    """The expected errors of a heartbeat that is invalid whatever the group is; none for another one."""
    if is_invalid(step.beat, step.epoch, step.owned.active):
        return (terms.INVALID_REQUEST,)
    if step.beat.instance is not None and step.error in OF_INSTANCES:
        return (step.error,)
    return (STREAMS_INVALID_TOPOLOGY,) if step.beat.flaw == "changelog" and step.epoch == 0 else ()


def other_topology(step: GroupStep) -> bool:
    """Does it join a streams group with a topology that is not the group's?"""
    known, topology = step.before, tuple(sorted(step.beat.topology or ()))
    joins = known.form == "streams" and step.epoch == 0 and not faults(step)
    return joins and (topology, step.beat.topology_epoch) != (known.topology, known.topology_epoch)


def has_room(step: GroupStep) -> bool:
    """Whether the group has surely room for another member: those that may be gone are counted."""
    others = [each for each in step.before.clients.values() if each.member or each.away]
    return len(others) < step.before.config.max_size


def is_legal(step: GroupStep) -> bool:
    """Whether a heartbeat without an instance id is one that joins with the topology of the group, or one of a member
    with its own epoch, which has no task to revoke and is in time.
    """
    known, beat, own = step.before, step.beat, step.client
    if beat.instance is not None or beat.flaw is not None or faults(step) or known.form not in ("none", "streams"):
        return False
    if step.epoch == 0:
        is_new = not (own.member or own.away or own.expired) and has_room(step)
        return is_new and (known.form == "none" or not other_topology(step))
    is_current = own.is_certain_member and step.epoch == own.memory.epoch > 0 and not own.revoking_ms
    return is_current and own.silent_ms < known.config.session_ms
