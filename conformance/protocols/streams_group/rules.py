"""The differences between the coordinators of streams groups of exact releases.

Each was observed of brokers of the releases around the change, and of their coordinators in jars.
"""

from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.release import NEWEST, Release, releases


@final
@dataclass(frozen=True, slots=True)
class Rules:
    takes_epoch_0: ClassVar = True
    counts_revocations: ClassVar = True
    aims_when_empty: bool
    """A target assignment is computed when the last member leaves (KAFKA-20442)."""
    takes_instances: bool
    """Members may be static."""
    switches_roles: bool
    """A member that has to run a task of which it has the standby, or the other way round, does so in one step."""

    @classmethod
    @cache
    def of(cls, release: str) -> "Rules":
        """The rules of a release. Errors: ValueError for an invalid release."""
        this = Release.parse(release)

        def has(behaviour: str) -> bool:
            return this in releases(span(behaviour, "streams-coordinator"))

        return cls(
            aims_when_empty=has("aims-when-empty"),
            takes_instances=has("takes-instances"),
            switches_roles=has("switches-roles"),
        )


CURRENT: Final = Rules.of(NEWEST)
