"""Which coordinator an edition has."""

from functools import cache

from kipcheck.conformance.core.edition import KIP_429, Edition, Standing
from kipcheck.conformance.models.group.coordinator import Coordinator
from kipcheck.conformance.models.group.draft import DraftCoordinator
from kipcheck.conformance.models.group.rules import Rules


@cache
def coordinator(edition: Edition) -> Coordinator | None:
    """That of its release (``apache`` alone: the newest), or of KIP-429's draft; None where an edition has none."""
    if edition == KIP_429:
        return DraftCoordinator()
    return Coordinator(Rules.of(edition.release)) if edition.standing is Standing.RELEASED else None
