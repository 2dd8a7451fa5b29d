"""What clients can know about a classic group before a request, from earlier requests and answers alone.

Knowledge is certain or absent: a member is known to be in the group, known not to be, or neither; the same holds for
the phase and the generation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kipcheck.conformance.protocols.group.invariants.requests import named
from kipcheck.conformance.protocols.group.model.messages import Error, Join, Phase
from kipcheck.conformance.protocols.group.model.names import UNKNOWN_MEMBER
from kipcheck.conformance.protocols.group.trace import TracedRequest

OWN_FAULTS: Final = frozenset(
    {
        Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID, Error.ILLEGAL_GENERATION, Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_SESSION_TIMEOUT, Error.INVALID_GROUP_ID, Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED,
        Error.GROUP_MAX_SIZE_REACHED, Error.NON_EMPTY_GROUP, Error.GROUP_ID_NOT_FOUND, Error.UNSUPPORTED_VERSION,
    }
)  # fmt: skip
"""Errors for a reason in the request or in the phase of the group; other errors come from the log."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member that is certainly in the group."""

    instance: str | None
    join: Join | None
    """Its last JoinGroup; None if it is not known."""
    since_ms: int
    """Its session started again then, or later."""
    done: bool = False
    """Has it its assignment, or a parked SyncGroup, in this generation?"""


@dataclass(frozen=True, slots=True)
class KnownGroup:
    """Knowledge about the group, while its partition is here."""

    phase: Phase | None = Phase.EMPTY
    """None: not known. A group that does not exist counts as empty."""
    exists: bool | None = False
    generation: int | None = None
    since_ms: int = 0
    """The start of the phase, or earlier."""
    protocol: str | None = None
    """The protocol of the generation; None: not known."""
    leader: str | None = None
    members: Mapping[str, Member] = field(default_factory=lambda: MappingProxyType({}))
    gone: frozenset[str] = frozenset()
    """Ids that certainly belong to no member any more."""
    complete: bool = True
    """Are ``members``, and the senders of parked JoinGroups, all the members?"""
    reserved: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Ids that were given out, and until when they are reserved, ms."""
    unsure: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Ids that may be reserved until then."""
    failing: bool = False
    """May the next write fail?"""
    joining: tuple[TracedRequest, ...] = ()
    """The parked JoinGroups."""

    def is_member(self, id: str) -> bool | None:
        """None: not known."""
        if id in self.members:
            return True
        never = id in ("", UNKNOWN_MEMBER) or id.endswith(".0")
        if id in self.unsure:
            return None
        return False if never or id in self.gone or self.complete or id in self.reserved else None

    def was_given_to_dynamic(self, id: str) -> bool:
        """Is the id reserved, or was it? Then it never belongs to an instance."""
        return id in self.reserved or id in self.unsure

    def holders(self, instance: str) -> tuple[bool, str | None]:
        """Does a member certainly have the instance id, and its member id if it is known?"""
        for id, each in self.members.items():
            if each.instance == instance:
                return True, id
        return any(_instance(each) == instance and not named(each) for each in self.joining), None

    def is_free(self, instance: str) -> bool:
        """Has certainly no member the instance id?"""
        return self.complete and not self.holders(instance)[0]

    @property
    def newcomers(self) -> tuple[TracedRequest, ...]:
        """Parked JoinGroups of members whose ids are not known yet."""
        return tuple(each for each in self.joining if not named(each))

    @property
    def occupied(self) -> bool:
        """Has the group certainly members?"""
        return bool(self.members or self.joining)

    @property
    def empty(self) -> bool:
        """Has the group certainly no members?"""
        return self.complete and not self.occupied

    @property
    def known_joins(self) -> list[Join] | None:
        """The last JoinGroup of every member; None if one of them is not known."""
        joins = [each.join for each in self.members.values()]
        joins += [each.request for each in self.newcomers if isinstance(each.request, Join)]
        return None if not self.complete or None in joins else [each for each in joins if each is not None]


UNKNOWN: Final = KnownGroup(phase=None, exists=None, generation=None, complete=False)


def _instance(exchange: TracedRequest) -> str | None:
    return exchange.request.instance if isinstance(exchange.request, Join) else None
