"""The deviations of these sticky assignors from Kafka 3.9.2, each required by a law of this suite.

Without a deviation the assignment equals that of 3.9.2; a test compares it with the jar.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final


@final
@dataclass(frozen=True, slots=True)
class Deviation:
    id: str
    laws: tuple[str, ...]
    """The invariants that 3.9.2 breaks, in this rebalance or in the next one."""
    kafka: str
    """The behaviour of 3.9.2."""
    ours: str
    """The behaviour of this model."""


Deviations: TypeAlias = set[Deviation]
"""The deviations in one rebalance."""

GONE: Final = Deviation(
    "gone",
    ("assign/nothing-else", "assign/answers", "assign/one-owner", "assign/hand-over"),
    "Only the topic of a claim is checked: a partition number past the last one is kept, and counted.",
    "Claims of partitions that do not exist are ignored.",
)
NOTHING_ASKED: Final = Deviation(
    "nothing-asked",
    ("assign/nothing-else",),
    "Members with an empty subscription that come first are not compared with the others: all members are treated as "
    "having the same subscription, and each gets a share.",
    "Their subscription counts as different from the others'.",
)
FORMER: Final = Deviation(
    "former",
    ("assign/nothing-else", "assign/answers"),
    "A partition that has to move returns to the member with an older claim, even if that member does not subscribe to "
    "its topic; if no partitions can move to or from that member, the search fails with a NullPointerException.",
    "The partition returns only to a member that subscribes to its topic.",
)
ENDLESS: Final = Deviation(
    "endless",
    ("survives",),
    "A partition that moved before is moved in place of another one of its topic, so that the search can return to an "
    "earlier state: then it never ends.",
    "When the search reaches an earlier state, its moves are undone, and partitions are levelled one by one.",
)
UNEVEN: Final = Deviation(
    "uneven",
    ("assign/balance",),
    "A search that has not lowered the sum of all differences is undone, even if the assignment before was unbalanced.",
    "Partitions are levelled one by one.",
)
NEEDLESS: Final = Deviation(
    "needless",
    ("assign/no-needless-move",),
    "Partitions move one by one, without a check whether an earlier move is still needed after a later one.",
    "Every partition that can stay without a loss of balance stays.",
)
NEWER: Final = Deviation(
    "newer",
    ("assign/newest-wins",),
    "A partition moves from its owner to a member with an older claim, and another partition moves to the owner.",
    "The owner keeps its partition, and the other member gets the partition that would have replaced it.",
)
LISTED: Final = Deviation(
    "listed",
    ("assign/any-order-sticky",),
    "Members whose ids share a bucket of a HashMap are evaluated in the order of the coordinator's list.",
    "They are evaluated in the order of their ids.",
)
OLDER: Final = Deviation(
    "older",
    ("assign/hand-over-older",),
    "With mixed subscriptions cooperative-sticky assigns a partition to a member that claims it at once, even if "
    "another member claims it in a newer generation and still reads it.",
    "The partition stays unassigned for one rebalance.",
)
DEVIATIONS: Final = (GONE, NOTHING_ASKED, FORMER, ENDLESS, UNEVEN, NEEDLESS, NEWER, OLDER, LISTED)
UNOBSERVED: Final = (UNEVEN,)
"""Deviations never observed: in none of 600,000 generated groups."""
