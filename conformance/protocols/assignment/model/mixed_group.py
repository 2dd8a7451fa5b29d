"""KIP-429's draft: how leaders assign mixed groups, in which some members revoke before they join, and some do not.

A member with a subscription of version 0 has revoked everything; a member with version 1 keeps reading the partitions
it owns. The text refers by number to cases that the fragment does not contain; they are inferred from their
consequences (429-25).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from kipcheck.conformance.protocols.assignment.model.assignment import Assignment, Group, Member, Topic, range_
from kipcheck.conformance.protocols.assignment.model.membership import V0, Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.sticky import cooperative_sticky, owners

DRAFT: Final = "draft"
"""The assignor name of a leader of the draft: the text does not name its assignors."""
INCOMPATIBLE: Final = 1
"""The error of an assignment. The text gives no value; it only has to be nonzero (429-22)."""


def draft_leader(topics: Iterable[Topic], subscriptions: Mapping[str, Subscription]) -> Mapping[str, Assigned]:
    """The assignment by a leader that knows both versions; ``subscriptions`` by member id.

    All of version 0: eager. All of version 1: incremental. A mix: members of version 0 get only the error, the others
    keep their partitions, and all other partitions stay unassigned until the mix is resolved (429-02, 429-11).
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
    """The assignment by a leader that knows only version 0: it reads the topics of later subscriptions, and assumes
    that all partitions are revoked. The draft leaves a mix undefined (429-06); it can give a partition two owners."""
    return _assigned(range_(_group(topics, subscriptions)))


def _group(topics: Iterable[Topic], subscriptions: Mapping[str, Subscription]) -> Group:
    """Members of version 0 own nothing, whatever data follows the fields of that version."""
    return Group(
        tuple(topics),
        tuple(
            Member(id, each.topics, () if each.version == V0 else each.owned, each.generation, rack=each.rack)
            for id, each in subscriptions.items()
        ),
    )


def _assigned(assignment: Assignment) -> Mapping[str, Assigned]:
    return {member: Assigned(tuple(sorted(partitions))) for member, partitions in assignment.items()}
