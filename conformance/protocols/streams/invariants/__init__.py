"""Invariants of Streams groups, by module, in the order of verdicts."""

from typing import Final

# Sets of invariants, by name
VERSIONS: Final = "versions"
LEADING: Final = "leading"
ENDING: Final = "ending"
OWNING: Final = "owning"
PLACING: Final = "placing"
"""Standbys, end points, and the shares of topics."""
CONFIGURED: Final = "configured"
LIVING: Final = "living"
