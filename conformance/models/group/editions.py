"""Maps editions to coordinators."""

from functools import cache

from kipcheck.conformance.core.edition import KIP_429, Edition, Standing
from kipcheck.conformance.models.group.coordinator import Coordinator
from kipcheck.conformance.models.group.draft import DraftCoordinator
from kipcheck.conformance.models.group.rules import Rules


@cache
def coordinator(edition: Edition) -> Coordinator | None:
    """The coordinator of an edition: of its release (``apache``: the newest), or of KIP-429's draft; else None."""
    if edition == KIP_429:
        return DraftCoordinator()
    return Coordinator(Rules.of(edition.release)) if edition.standing is Standing.RELEASED else None
