"""The names of the scenarios. The parser of every command imports them, so this module imports nothing of ours."""

from collections.abc import Mapping
from typing import Final

JOIN, BOUNCE, TWO_BOUNCE, OFFLINE, DOWNGRADE, FAILURE, TWO_BOUNCE_FAILURE = SCENARIOS = (
    "join", "bounce", "two-bounce", "offline", "downgrade", "failure", "two-bounce-failure"
)  # fmt: skip
STORE_UPGRADE: Final = "store-upgrade"
"""The scenario of released stores, without a group: ``store_cells``."""
RECORDS: Final = "records"
"""The scenario of what brokers persist, without a group: ``record_cells``."""
FEATURES: Final = "features"
"""The scenario of controllers of feature versions, without a group: ``feature_cells``."""
ABOUT: Final[Mapping[str, str]] = {
    JOIN: "one new member of TO joins a group of FROM, whose leader stays",
    BOUNCE: "the members of a group of FROM are restarted as TO, one after the other, in every order",
    TWO_BOUNCE: "they are restarted as TO with upgrade.from set to the line of FROM, then once more without it",
    OFFLINE: "all members of a group of FROM stop, then all start as TO",
    DOWNGRADE: "the members of a group that runs TO are restarted as FROM, one after the other, in every order",
    FAILURE: "a bounce during which a member or the leader stops at any point, and restarts as FROM or as TO",
    TWO_BOUNCE_FAILURE: "the two bounces of two-bounce, with such a failure in the first or in the second",
}
"""What is done. FROM and TO are the releases of a cell."""
