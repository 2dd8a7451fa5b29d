"""Leaders of KIP-429's draft with one planted defect each. Least cases are in the shorthand of assignments."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import V0, V1, Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT, INCOMPATIBLE, draft_leader, old_leader
from kipcheck.conformance.protocols.assignment.target import DraftLeader
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.targets.protocol import Claims

PLACE = 30

Subscriptions = Mapping[str, Subscription]
Given = Mapping[str, Assigned]


class Drafting(DraftLeader):
    """The reference leader of the draft as an adapter, with overridable decisions."""

    name = "draft-leader"
    version = "0"
    issues = ""

    def claims(self) -> Claims:
        return Claims(assignors=(DRAFT,))

    def configure(self, edition: str, /) -> str | None:
        return None


class Mixing(Drafting):
    """Alters assignments while versions are mixed."""

    def lead(self, topics: Iterable[Topic], subscriptions: Subscriptions) -> Given:
        given = super().lead(topics, subscriptions)
        mixed = len({each.version for each in subscriptions.values()}) > 1
        return self.mix(tuple(topics), subscriptions, given) if mixed else given

    def mix(self, topics: tuple[Topic, ...], subscriptions: Subscriptions, given: Given) -> Given:
        raise NotImplementedError


Made = TypeVar("Made", bound=type[Drafting])


def leads(invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant("assign/mixed", invariant, DRAFT, None, least)


def _free(topics: tuple[Topic, ...], given: Given, subscription: Subscription) -> tuple[tuple[str, int], ...]:
    taken = {partition for each in given.values() for partition in each.partitions}
    return tuple(
        (each.name, number)
        for each in topics
        if each.name in subscription.topics
        for number in range(each.partitions)
        if (each.name, number) not in taken
    )


@leads("mixed/old-get-nothing", "draft t0:1; a v0[t0]; b v1[t0]")
class ServesTheOld(Mixing):
    """The first member of version 0 gets the free partitions."""

    def mix(self, topics: tuple[Topic, ...], subscriptions: Subscriptions, given: Given) -> Given:
        first = next(member for member, each in subscriptions.items() if each.version == V0)
        return {**given, first: replace(given[first], partitions=_free(topics, given, subscriptions[first]))}


@leads("mixed/new-keep", "draft t0:1; a v0[t0]; b v1[t0]=t0-0@-1")
class TakesFromTheNew(Mixing):
    """In a mixed group members of version 1 get no partition either."""

    def mix(self, topics: tuple[Topic, ...], subscriptions: Subscriptions, given: Given) -> Given:
        return {member: replace(each, partitions=()) for member, each in given.items()}


@leads("mixed/error", "draft ; a v0[]; b v1[]")
class KeepsItToItself(Mixing):
    """Members of version 0 get neither a partition nor an error."""

    def mix(self, topics: tuple[Topic, ...], subscriptions: Subscriptions, given: Given) -> Given:
        return {member: replace(each, error=0) for member, each in given.items()}


@leads("mixed/error", "draft ; a v0[]; b v1[]")
class BlamesEverybody(Mixing):
    """Members of version 1 get the error too."""

    def mix(self, topics: tuple[Topic, ...], subscriptions: Subscriptions, given: Given) -> Given:
        return {member: replace(each, error=INCOMPATIBLE) for member, each in given.items()}


@leads("mixed/rest-idle", "draft t0:1; a v0[t0]; b v1[t0]")
class HandsOutWhatIsFree(Mixing):
    """Partitions without an owner are assigned to members of version 1."""

    def mix(self, topics: tuple[Topic, ...], subscriptions: Subscriptions, given: Given) -> Given:
        found = dict(given)
        for member, each in subscriptions.items():
            if each.version == V1:
                more = _free(topics, found, each)
                found[member] = replace(found[member], partitions=(*found[member].partitions, *more))
        return found


@leads("mixed/new-keep", "draft t0:1; a v0[t0]; b v1[t0]=t0-0@-1")
class TakesAllForOld(Drafting):
    """If one member has version 0, all are assigned partitions as if they had revoked."""

    def lead(self, topics: Iterable[Topic], subscriptions: Subscriptions) -> Given:
        old = any(each.version == V0 for each in subscriptions.values())
        return (old_leader if old else draft_leader)(topics, subscriptions)


@leads("mixed/all-old", "draft t0:1; a v0[t0]")
class NeverServesTheOld(Drafting):
    """A member of version 0 gets no partition even if all have version 0."""

    def lead(self, topics: Iterable[Topic], subscriptions: Subscriptions) -> Given:
        given = super().lead(topics, subscriptions)
        return {
            member: each if subscriptions[member].version else replace(each, partitions=())
            for member, each in given.items()
        }


@leads("mixed/error", "draft ; a v0[]")
class ErrsAmongTheOld(Drafting):
    """A member of version 0 gets the error even if all have version 0."""

    def lead(self, topics: Iterable[Topic], subscriptions: Subscriptions) -> Given:
        given = super().lead(topics, subscriptions)
        return {
            member: replace(each, error=0 if subscriptions[member].version else INCOMPATIBLE)
            for member, each in given.items()
        }


@leads("mixed/all-new", "draft t0:2; a v1[t0]=t0-0,t0-1@-1; b v1[t0]")
class HandsOverAmongTheNew(Drafting):
    """Members of version 1 are assigned partitions as if they had revoked."""

    def lead(self, topics: Iterable[Topic], subscriptions: Subscriptions) -> Given:
        new = all(each.version == V1 for each in subscriptions.values())
        return (old_leader if new else draft_leader)(topics, subscriptions)


@leads("mixed/all-new", "draft t0:1; a v1[t0]")
class NeverLooksForTheFree(Drafting):
    """Members of version 1 keep what they own, mixed or not, and never get more."""

    def lead(self, topics: Iterable[Topic], subscriptions: Subscriptions) -> Given:
        given = super().lead(topics, subscriptions)
        return {
            member: replace(each, partitions=tuple(p for p in each.partitions if p in subscriptions[member].owned))
            if subscriptions[member].version
            else each
            for member, each in given.items()
        }
