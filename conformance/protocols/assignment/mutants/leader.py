"""Leaders with one planted defect each in the reference assignors. Least cases are in shorthand.

Defects that concern previous ownership are in ``kipcheck.conformance.protocols.assignment.mutants.sticky_leader``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import groupby, pairwise
from types import EllipsisType
from typing import Any, TypeVar

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.sticky import owners
from kipcheck.conformance.protocols.assignment.target import ALL, Leader
from kipcheck.conformance.protocols.declare.mutant import mutant
from kipcheck.conformance.targets.protocol import Claims

PLACE = 10


class Leading(Leader):
    """The reference leader as an adapter, with overridable decisions."""

    name = "leader"
    version = "0"
    issues = ""

    def claims(self) -> Claims:
        return Claims(assignors=tuple(ALL))

    def configure(self, edition: str, /) -> str | None:
        return None


Made = TypeVar("Made", bound=type[Leading])
STICKIES = (assignment.STICKY, assignment.COOPERATIVE)


def leads(
    check: str, invariant: str, assignor: str, least: "str | EllipsisType", deadly: bool = False
) -> Callable[[Made], Made]:  # fmt: skip
    return mutant(f"assign/{check}", invariant, assignor, None, least, deadly=deadly)


def rejected(why: str) -> dict[str, Any]:
    return {"status": "rejected", "class": "KeyError", "message": why}


# Answers


@leads("one-round", "assign/answers", assignment.RANGE, "range ; a[]")
class RefusesTheIdle(Leading):
    """A member without a subscription is an error."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        idle = [each["id"] for each in op.get("members", ()) if not each["subscription"]]
        return rejected(idle[0]) if idle else super().answer(op)


@leads("ghosts", "assign/answers", assignment.STICKY, "sticky ; a[]=t0-0@10")
class RefusesGhosts(Leading):
    """A claim to a deleted topic is an error."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        known = {each["name"] for each in op.get("topics", ())}
        claimed = (topic for each in op.get("members", ()) for topic, _ in each["owned"])
        gone = [topic for topic in claimed if topic not in known]
        return rejected(gone[0]) if gone else super().answer(op)


@leads("one-round", "survives", assignment.ROUNDROBIN, "roundrobin ; a[]", deadly=True)
class WalksForEver(Leading):
    """Round robin loops for ever if a member has no subscription."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        while assignor == assignment.ROUNDROBIN and any(not each.subscription for each in group.members):
            pass
        return super().assign(assignor, group)


class Altering(Leading):
    """Alters the answer after the assignment."""

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        result = super().answer(op)
        if "assignment" in result:
            result["assignment"] = self.altered(result["assignment"])
        return result

    def altered(self, shares: list[dict[str, Any]]) -> Any:
        return shares


@leads("one-round", "assign/everybody", assignment.RANGE, "range ; a[]")
class ForgetsTheIdle(Altering):
    """Members without partitions are omitted from the answer."""

    def altered(self, shares: list[dict[str, Any]]) -> Any:
        return [each for each in shares if each["partitions"]]


@leads("one-round", "assign/everybody", assignment.RANGE, "range ; a[]")
class AnswersStrangers(Altering):
    """The answer has a member that is not in the group."""

    def altered(self, shares: list[dict[str, Any]]) -> Any:
        return [*shares, {"id": "leader", "partitions": [], "userData": None}]


@leads("one-round", "assign/everybody", assignment.RANGE, "range ; a[]; b[]")
class AnswersTwice(Altering):
    """The last member is in the answer twice."""

    def altered(self, shares: list[dict[str, Any]]) -> Any:
        return [*shares, *shares[-1:]] if len(shares) > 1 else shares


@leads("one-round", "assign/everybody", assignment.RANGE, "range ; a[]")
class AnswersInAMap(Altering):
    """The answer is a map instead of a list."""

    def altered(self, shares: list[dict[str, Any]]) -> Any:
        return {each["id"]: each["partitions"] for each in shares}


# Assignments


@leads("one-round", "assign/nothing-else", assignment.ROUNDROBIN, "roundrobin t0:2; a[t0]; b[]")
class IgnoresSubscriptions(Leading):
    """Round robin assigns to all members, without regard to subscriptions."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.ROUNDROBIN:
            return super().assign(assignor, group)
        everything = tuple(each.name for each in group.topics)
        return assignment.roundrobin(
            replace(group, members=tuple(replace(e, subscription=everything) for e in group.members))
        )


@leads("one-round", "assign/nothing-else", assignment.RANGE, "range t0:1; a[t0]")
class CountsFromOne(Altering):
    """Partitions are numbered from 1."""

    def altered(self, shares: list[dict[str, Any]]) -> Any:
        return [{**each, "partitions": [[t, n + 1] for t, n in each["partitions"]]} for each in shares]


@leads("ghosts", "assign/nothing-else", assignment.STICKY, "sticky ; a[]=t0-0@10")
class KeepsGhosts(Leading):
    """A member keeps partitions that no longer exist."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = super().assign(assignor, group)
        if assignor not in STICKIES:
            return given
        ghosts = {each.id: tuple(p for p in each.owned if p[1] >= group.sizes.get(p[0], 0)) for each in group.members}
        return {member: (*partitions, *ghosts[member]) for member, partitions in given.items()}


@leads("rounds", "assign/nothing-else", assignment.STICKY, "sticky t0:1; a[t0]; b[t0] | sticky again t0:1; a[]; b[t0]")
class KeepsWhatItLeft(Leading):
    """A member that unsubscribes from a topic keeps its partitions."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor not in STICKIES:
            return super().assign(assignor, group)
        topics = {
            each.id: dict.fromkeys((*each.subscription, *(topic for topic, _ in each.owned))) for each in group.members
        }
        return super().assign(
            assignor,
            replace(group, members=tuple(replace(e, subscription=tuple(topics[e.id])) for e in group.members)),
        )


@leads("claims", "assign/one-owner", assignment.STICKY, "sticky t0:1; a[t0]=t0-0@10; b[t0]=t0-0@10")
class BelievesBoth(Leading):
    """If two members claim a partition in one generation, both keep it (KAFKA-12984)."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = super().assign(assignor, group)
        if assignor != assignment.STICKY:
            return given
        twice = {
            partition: {each.id for each in members if group.may_have(each, partition)}
            for partition, members in group.claims.items()
            if len({each.generation for each in members}) == 1 < len(members)
        }
        return {
            member: tuple(dict.fromkeys((*partitions, *(p for p, ids in twice.items() if member in ids))))
            for member, partitions in given.items()
        }


@leads("one-round", "assign/none-idle", assignment.RANGE, "range t0:1; a[t0]; b[t0]")
class LosesTheRemainder(Leading):
    """Range does not assign the remainder."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = super().assign(assignor, group)
        if assignor != assignment.RANGE:
            return given
        quota = {name: group.sizes[name] // max(1, len(readers)) for name, readers in group.subscribers.items()}
        return {
            member: tuple(p for name, of in _by_topic(partitions) for p in of[: quota[name]])
            for member, partitions in given.items()
        }


def _by_topic(partitions: Iterable[assignment.Partition]) -> list[tuple[str, list[assignment.Partition]]]:
    return [(name, list(of)) for name, of in groupby(sorted(partitions), key=lambda each: each[0])]


@leads("one-round", "assign/none-idle", assignment.ROUNDROBIN, "roundrobin t0:1; a[]; b[t0]")
class KnowsItsOwnTopicsOnly(Leading):
    """Only topics that the first member subscribes to are assigned."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        first = group.members[0].subscription
        return super().assign(assignor, replace(group, topics=tuple(e for e in group.topics if e.name in first)))


@leads(
    "rounds",
    "assign/none-idle",
    assignment.COOPERATIVE,
    "cooperative-sticky t1:1; a[t1] | cooperative-sticky again t0:1 t1:1; a[t0 t1]",
)
class WithholdsWhatIsNew(Leading):
    """A cooperative member has to wait for every partition that it did not own, even if no other member owned it."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = super().assign(assignor, group)
        if assignor != assignment.COOPERATIVE:
            return given
        owned = {each.id: {*each.owned} for each in group.members if each.owned}
        return {
            member: tuple(p for p in partitions if member not in owned or p in owned[member])
            for member, partitions in given.items()
        }


# Balance, and the documented result


@leads("one-round", "assign/balance", assignment.RANGE, "range t0:2; a[t0]; b[t0]; c[t0]")
class PilesUp(Leading):
    """Range assigns the whole remainder to the first member."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.RANGE:
            return super().assign(assignor, group)
        given: dict[str, list[assignment.Partition]] = {each.id: [] for each in group.members}
        for name, readers in group.subscribers.items():
            if readers:
                quota, rest = divmod(group.sizes[name], len(readers))
                ends = [0, *(quota * n + rest for n in range(1, len(readers) + 1))]
                for reader, (low, high) in zip(readers, pairwise(ends), strict=True):
                    given[reader.id] += ((name, number) for number in range(low, high))
        return assignment.frozen(given)


@leads("one-round", "assign/balance", assignment.ROUNDROBIN, "roundrobin t0:1 t1:1; a[t0 t1]; b[t0 t1]")
class StartsAnew(Leading):
    """Round robin starts with the first member for each topic."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.ROUNDROBIN:
            return super().assign(assignor, group)
        dealt = [assignment.roundrobin(replace(group, topics=(each,))) for each in group.topics]
        return {each.id: tuple(p for given in dealt for p in given[each.id]) for each in group.members}


@leads("one-round", "assign/balance", assignment.STICKY, "sticky t0:1 t1:1; a[t0 t1]=t1-0@10; b[t0 t1]")
class NeverTakes(Leading):
    """Sticky assigns free partitions, and never moves one."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor not in STICKIES:
            return super().assign(assignor, group)
        before = owners(group)
        given: dict[str, list[assignment.Partition]] = {each.id: [] for each in group.members}
        for partition in group.wanted:
            readers = [each.id for each in group.subscribers[partition[0]]]
            given[before.get(partition) or min(readers, key=lambda each: len(given[each]))].append(partition)
        return assignment.frozen(given)


@leads("racks", "assign/none-idle", assignment.RANGE, "range t0:1 on r0; a[t0] on r1")
class StaysInItsRack(Leading):
    """A partition without a replica in its reader's rack is not assigned."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        near = {each.name: each.racks for each in group.topics}
        racks = {each.id: each.rack for each in group.members}

        def reached(member: str, partition: assignment.Partition) -> bool:
            known, rack = near[partition[0]], racks[member]
            return known is None or rack is None or rack in known[partition[1]]

        given = super().assign(assignor, group)
        return {member: tuple(p for p in of if reached(member, p)) for member, of in given.items()}


@leads("other-topics", "assign/nothing-else", assignment.RANGE, "range other0:1; a[]")
class DealsAllThereIs(Leading):
    """Topics without subscribers are assigned to the first member."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        given = dict(super().assign(assignor, group))
        unread = [each for each in group.topics if not group.subscribers[each.name]]
        first = group.members[0].id
        return {**given, first: (*given[first], *((each.name, 0) for each in unread))}


@leads("one-round", "assign/by-rule", assignment.RANGE, "range t0:1; a[t0]; b[t0]")
class DealsFromTheEnd(Leading):
    """Members are ordered from the last to the first."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        return super().assign(assignor, group) if assignor in STICKIES else turned(group, ALL[assignor])


def turned(
    group: assignment.Group, assign: Callable[[assignment.Group], assignment.Assignment]
) -> assignment.Assignment:
    """The assignment with the member ids in reverse order."""
    ids = sorted(each.id for each in group.members)
    other = dict(zip(ids, reversed(ids), strict=True))
    given = assign(replace(group, members=tuple(replace(each, id=other[each.id]) for each in group.members)))
    return {other[member]: partitions for member, partitions in given.items()}


@leads("static", "assign/static-order", assignment.RANGE, "range t0:1; zh(i0)[t0]; b[t0]")
class SortsByMemberId(Leading):
    """Instance ids are ignored."""

    def group(self, step: Step) -> assignment.Group:
        found = super().group(step)
        return replace(found, members=tuple(replace(each, instance=None) for each in found.members))


@leads("one-round", "assign/range-alike", assignment.RANGE, "range t0:1 t1:1; a[t0 t1]; b[t0 t1]")
class CarriesTheRemainder(Leading):
    """Range starts each topic with the member after the last one of the previous topic."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.RANGE:
            return super().assign(assignor, group)
        given: dict[str, list[assignment.Partition]] = {each.id: [] for each in group.members}
        last = 0
        for topic in group.topics:
            readers = group.subscribers[topic.name]
            turned = readers[last % len(readers) :] + readers[: last % len(readers)] if readers else ()
            plain = tuple(replace(each, id=f"{at:03}", instance=None) for at, each in enumerate(turned))
            for at, partitions in assignment.range_(assignment.Group((replace(topic, racks=None),), plain)).items():
                given[turned[int(at)].id] += partitions
            last += topic.partitions
        return assignment.frozen(given)


@leads("racks", "assign/range-alike", assignment.RANGE, "range t0:1 t1:1 on r0; a[t0 t1]; b[t0 t1] on r0")
class ForgetsCoPartitioningForRacks(CarriesTheRemainder):
    """With racks, range assigns topics with equal partition counts and subscribers in different ways."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        return super().assign(assignor, group) if group.has_racks else Leading.assign(self, assignor, group)


@leads(
    "order", "assign/any-order", assignment.ROUNDROBIN, "roundrobin t0:1; a[t0]; b[t0] | roundrobin t0:1; b[t0]; a[t0]"
)
class TakesThemAsTheyCome(Leading):
    """Members are not sorted."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor in STICKIES:
            return super().assign(assignor, group)
        given = ALL[assignor](numbered(group))
        return {each.id: given[f"{at:03}"] for at, each in enumerate(group.members)}


def numbered(group: assignment.Group) -> assignment.Group:
    """The group with member ids replaced by their positions."""
    members = (replace(each, id=f"{at:03}", instance=None) for at, each in enumerate(group.members))
    return replace(group, members=tuple(members))


# Static members


@leads("static", "assign/balance", assignment.RANGE, "range t0:3; a(i0)[t0]; b[t0]; c(i1)[t0]")
class LosesTheInterleaved(Leading):
    """Static members that are not listed consecutively are partly lost."""

    def assign(self, assignor: str, group: assignment.Group) -> assignment.Assignment:
        if assignor != assignment.RANGE:
            return super().assign(assignor, group)
        runs = {static: list(of) for static, of in groupby(group.members, key=lambda each: each.instance is not None)}
        given = assignment.range_(
            assignment.Group(group.topics, tuple(member for run in runs.values() for member in run))
        )
        return {each.id: given.get(each.id, ()) for each in group.members}
