"""The differences between the coordinators of streams groups of exact releases.

Each was observed of brokers of the releases around the change, and of their coordinators in jars.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Final, final

from kipcheck.conformance.core.values.release import NEWEST, Release, behaviours


@final
@dataclass(frozen=True, slots=True)
class Rules:
    takes_epoch_0: ClassVar = True
    counts_revocations: ClassVar = True
    refuses_own_instances: bool
    """A static member that is there may not join again, also after it was fenced (apache/kafka#23542)."""
    counts_rejoins: bool
    """A full group refuses a member that joins again."""
    fails_on_endpoints: bool
    """Endpoint information of a group whose topics are missing or wrong ends in an exception of the coordinator."""
    aims_when_empty: bool
    """A target assignment is computed when the last member leaves (KAFKA-20442)."""
    takes_instances: bool
    """Members may be static."""
    switches_roles: bool
    """A member that has to run a task of which it has the standby, or the other way round, does so in one step."""

    @classmethod
    def owed(cls, release: str) -> "Rules":
        """As a release, but members that were fenced are taken back, and empty groups have no assignment to come.

        Errors: ValueError for an invalid release.
        """
        return replace(
            cls.of(release), refuses_own_instances=False, counts_rejoins=False, fails_on_endpoints=False,
            aims_when_empty=True,
        )  # fmt: skip

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release. Errors: ValueError for an invalid release."""
        return cls(**behaviours(cls, Release.parse(release), "streams-coordinator"))


CURRENT: Final = Rules.owed(NEWEST)
