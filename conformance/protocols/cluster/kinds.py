"""Kinds of members of a group that is upgraded, and the topics that exist.

The same kinds of members serve KIP-429's draft and the releases. The draft configures ``rebalance.protocol``, and its
subscription has a version; releases configure a list of assignors (429-17, 429-20).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, RANGE
from kipcheck.conformance.protocols.assignment.model.membership import V0, V1

V2: Final = 2
"""Version of a later protocol change, for which the draft expects to need only one bounce (429-09)."""


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """A binary and its configuration."""

    name: str
    knows: int
    """The newest version of the protocol that it can read from others."""
    version: int
    """The version that it uses in the draft: 0 is eager."""
    assignors: tuple[str, ...]
    """Its assignors in releases. It is eager if one of them is."""

    @property
    def eager(self) -> bool:
        return self.version == V0


OLD, READY, COOPERATES, LATER = "old", "ready", "cooperative", "later"
KINDS: Final[Mapping[str, Kind]] = {
    each.name: each
    for each in (
        Kind(OLD, V0, V0, (RANGE,)),
        Kind(READY, V1, V0, (COOPERATIVE, RANGE)),  # after the first bounce
        Kind(COOPERATES, V1, V1, (COOPERATIVE,)),  # after the second bounce
        Kind(LATER, V2, V2, (COOPERATIVE,)),
    )
}
TOPICS: Final = (("t", 3), ("u", 1))
"""Existing topics, with their numbers of partitions."""
DEFAULT_TOPICS: Final = ("t",)
"""Topics that a member subscribes to by default."""
