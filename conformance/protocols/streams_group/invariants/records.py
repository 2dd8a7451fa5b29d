"""Invariants of the log of streams groups: what a coordinator has when it has read it."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.reconciled import log_laws
from kipcheck.conformance.protocols.streams_group.invariants import HEARTBEAT, impact, records
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS

PLACE = 50


@impact(*log_laws.NOT_AS_BEFORE)
@records("streams-group/outlives-reloads", "grp-250", "grp-251", applies_to=log_laws.reads, after=(HEARTBEAT,))
def outlives_reloads(history: History) -> Iterator[Violation]:
    """A coordinator that has read its log, compacted in any part, serves the group as it was."""
    return log_laws.outlived(history)


@impact(*log_laws.OFFSETS_LOST)
@records("streams-group/commits-kept", "grp-252", applies_to=log_laws.fetches, after=("streams-group-commit",))
def commits_kept(history: History) -> Iterator[Violation]:
    """OffsetFetch returns the last accepted offset of each partition, with its leader epoch and metadata."""
    return log_laws.kept(history, OPERATIONS.event_of)
