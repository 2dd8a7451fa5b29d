"""What each ``group.consumer.migration.policy`` allows: conversations, and how their last step is answered."""

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.protocols.consumer_group.rules import Rules
from kipcheck.conformance.protocols.migration.checks import FORMED
from kipcheck.conformance.protocols.migration.ops import OPERATIONS

RELEASES = ("4.4.0", "4.3.1", "4.2.1", "4.1.2", "4.0.2")
UPGRADE = f"{FORMED}; join a on t none"
MIXED = "join a on t none; classic-join x on t"
DOWNGRADE = f"{MIXED}; classic-sync x; leave a; classic-join x on t told"
TAKEOVER = "join a on t none as i; classic-join x on t as i; join b on t none"
"""Of the only consumer: with downgrades the group is a classic one, which a consumer then has to upgrade."""
CONVERSATIONS = (UPGRADE, MIXED, DOWNGRADE, TAKEOVER)
OWED = {
    "bidirectional": ("accepted", "NONE", "NONE leader", "accepted"),
    "upgrade": ("accepted", "NONE", "NONE", "accepted"),
    "downgrade": ("GROUP_ID_NOT_FOUND", "NONE", "NONE leader", "GROUP_ID_NOT_FOUND"),
    "disabled": ("GROUP_ID_NOT_FOUND", "NONE", "NONE", "accepted"),
}
"""The last answers of the four conversations, up to 4.2."""
SHUT: dict[str, tuple[str, ...]] = {
    "disabled": ("GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL", "parked", "accepted")
}
"""Those that differ from 4.3 on: no client of the classic protocol joins a consumer group, unless it is empty."""


def expected(release: str, policy: str) -> tuple[str, ...]:
    return SHUT.get(policy, OWED[policy]) if Rules.of(release).refuses_classic_members else OWED[policy]


def named(answer: dict[str, object]) -> str:
    received = str(answer.get("received", answer.get("class", "accepted")))
    return f"{received} leader" if answer.get("led") else received


def observed(found: Observation) -> str:
    assert isinstance(found, Replied | Refused), found
    return named(dict(found.payload)) if isinstance(found, Replied) else found.error


def cases(edition: str) -> list[Case]:
    """One for each conversation."""
    return [
        Case("migration/members", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(text)) for text in CONVERSATIONS
    ]
