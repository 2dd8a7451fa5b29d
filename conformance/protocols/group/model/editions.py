"""Maps editions to coordinators."""

from functools import cache

from kipcheck.conformance.core.values.edition import KIP_429, Edition, Standing
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.rules import Rules, owed_rules


@cache
def coordinator(edition: Edition) -> Coordinator | None:
    """The coordinator of an edition; None where it has none.

    An exact release has the coordinator of that release, ``apache`` one that does what the requirements owe.
    """
    if edition == KIP_429:
        return DraftCoordinator()
    if edition.standing is not Standing.RELEASED:
        return None
    return Coordinator(Rules.of(edition.release) if edition.exact else owed_rules())
