"""KIP-429's draft: what leaders make of groups in which some members revoke before they join, and some do not.

Version 0 of a subscription says that its member has given up everything, version 1 that it goes on reading what it
says it owns. The cases to which the text refers by number lie outside the fragment; they are read from what it tells of
their consequences (429-25).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kipcheck.conformance.models.assignment import Assignment, Group, Member, Topic, range_
from kipcheck.conformance.models.membership import V0, Assigned, Subscription
from kipcheck.conformance.models.sticky import cooperative_sticky, owners

DRAFT: Final = "draft"
"""The name by which a leader of the draft is asked for: the text gives its assignors none."""
INCOMPATIBLE: Final = 1
"""The error of an assignment. The text names none; all that counts is that it is not zero (429-22)."""


def draft_leader(topics: Iterable[Topic], subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assigned]:
    """What the members get from a leader that knows both versions; ``subscriptions`` by member id.

    All of version 0: as ever. All of version 1: incremental. A mix: members of version 0 get nothing but the error,
    the others keep what is theirs, and the rest is nobody's until the mix is resolved (429-02, 429-11).
    """
    versions = {each.version for each in subscriptions.values()}
    group = _group(topics, subscriptions)
    if V0 not in versions:
        return _assigned(cooperative_sticky(group))
    if versions == {V0}:
        return _assigned(range_(group))
    kept: dict[str, Assigned] = {}
    before = owners(group)
    for member, subscription in subscriptions.items():
        if subscription.version == V0:
            kept[member] = Assigned(error=INCOMPATIBLE)
        else:
            kept[member] = Assigned(tuple(sorted(each for each, owner in before.items() if owner == member)))
    return kept


def old_leader(topics: Iterable[Topic], subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assigned]:
    """What they get from one that knows version 0 alone: of a later subscription it reads the topics, and takes it that
    everything has been given up. Over a mix that is left undefined (429-06); this is what makes two owners of one
    partition."""
    return _assigned(range_(_group(topics, subscriptions)))


def _group(topics: Iterable[Topic], subscriptions: Mapping[str, Subscription]) -> Group:
    """Who is of version 0 owns nothing, whatever is written after the end of that version."""
    return Group(
        tuple(topics),
        tuple(
            Member(id, each.topics, () if each.version == V0 else each.owned, each.generation, rack=each.rack)
            for id, each in subscriptions.items()
        ),
    )


def _assigned(assignment: Assignment) -> Mapping[str, Assigned]:
    return {member: Assigned(tuple(sorted(partitions))) for member, partitions in assignment.items()}
