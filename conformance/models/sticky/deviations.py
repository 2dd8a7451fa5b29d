"""Where the sticky assignors here do otherwise than Kafka 3.9.2: each time because a law of this suite asks for it.

What members are given is what 3.9.2 gives them wherever none of these is noted; a test compares that with the jar.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final


@final
@dataclass(frozen=True, slots=True)
class Departure:
    id: str
    laws: tuple[str, ...]
    """The invariants that 3.9.2 breaks: in this round, or in the one that follows."""
    kafka: str
    """What 3.9.2 does."""
    ours: str


Departures: TypeAlias = set[Departure]
"""Of one round."""

GONE: Final = Departure(
    "gone",
    ("assign/nothing-else", "assign/answers", "assign/one-owner", "assign/hand-over"),
    "Of a claim only the topic is looked up: a partition past the last one is kept, and counted.",
    "What does not exist is not owned.",
)
NOTHING_ASKED: Final = Departure(
    "nothing-asked",
    ("assign/nothing-else",),
    "Members that subscribe to nothing and are looked at first are compared with nobody: all are taken to subscribe to "
    "the same, and each is given its share.",
    "They subscribe to something else than the others.",
)
FORMER: Final = Departure(
    "former",
    ("assign/nothing-else", "assign/answers"),
    "What has to move goes back to who claims it in an older generation, even if that one does not subscribe to it; if "
    "it has no part in anything that moves, the search fails with a NullPointerException.",
    "It goes back only to a member that subscribes to it.",
)
ENDLESS: Final = Departure(
    "endless",
    ("survives",),
    "A partition that moved before is moved in the place of another one of its topic, and the search can come to where "
    "it has been: then it never ends.",
    "Once it is where it has been, all that it did is undone, and the shares are levelled one by one.",
)
UNEVEN: Final = Departure(
    "uneven",
    ("assign/balance",),
    "A search that has not lowered the sum of all differences is undone, even if shares were out of balance before.",
    "The shares are levelled one by one.",
)
NEEDLESS: Final = Departure(
    "needless",
    ("assign/no-needless-move",),
    "Partitions move one by one, and whether an earlier move is still needed after a later one is not asked.",
    "What can stay without a loss of balance stays.",
)
NEWER: Final = Departure(
    "newer",
    ("assign/newest-wins",),
    "What has to move from its owner goes to a member with an older claim, and something else comes to the owner.",
    "Then the owner keeps it, and the other one gets what would have come in its place.",
)
LISTED: Final = Departure(
    "listed",
    ("assign/any-order-sticky",),
    "Members whose ids fall into one cell of a HashMap are asked in the order in which the coordinator lists them.",
    "They are asked in the order of their ids.",
)
OLDER: Final = Departure(
    "older",
    ("assign/hand-over-older",),
    "With mixed subscriptions cooperative-sticky holds nothing back from a member that claims it, even if another one "
    "claims it in a newer generation and reads it still.",
    "It is held back for a round.",
)
DEPARTURES: Final = (GONE, NOTHING_ASKED, FORMER, ENDLESS, UNEVEN, NEEDLESS, NEWER, OLDER, LISTED)
UNSEEN: Final = (UNEVEN,)
"""No group is known in which it comes to that: none of 600,000 drawn ones."""
