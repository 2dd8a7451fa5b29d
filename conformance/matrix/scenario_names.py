"""The names of the scenarios. The parser of every command imports them, so this module imports nothing of ours."""

from collections.abc import Mapping
from typing import Final

JOIN, BOUNCE, TWO_BOUNCE, OFFLINE, DOWNGRADE, FAILURE = SCENARIOS = (
    "join", "bounce", "two-bounce", "offline", "downgrade", "failure"
)  # fmt: skip
STORE_UPGRADE: Final = "store-upgrade"
"""The scenario of released stores, without a group: ``store_cells``."""
RECORDS: Final = "records"
"""The scenario of what brokers persist, without a group: ``record_cells``."""
FEATURES: Final = "features"
"""The scenario of controllers of feature versions, without a group: ``feature_cells``."""
ABOUT: Final[Mapping[str, str]] = {
    JOIN: "one new member of `to` joins a group of `from`, whose leader stays",
    BOUNCE: "the members of a group of `from` are restarted as `to`, one after the other, in every order",
    TWO_BOUNCE: "they are restarted as `to` with upgrade.from set to the line of `from`, then once more without it",
    OFFLINE: "all members of a group of `from` stop, then all start as `to`",
    DOWNGRADE: "the members of a group that runs `to` are restarted as `from`, one after the other, in every order",
    FAILURE: "a bounce during which a member or the leader stops at any point, and restarts as `from` or as `to`",
}
