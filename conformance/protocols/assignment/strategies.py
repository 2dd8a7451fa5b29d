"""Groups of consumers for assignors: topics, members, and the partitions that members claim to own.

A value contains, by the letters of members, the subscribers of a topic and the owners of runs of its partitions. No
positions are used, so that a value keeps its meaning when a reducer removes parts. A letter that does not subscribe to
the topic stands for the next one that does. ``group_of`` converts a value to a group, and accepts every value.

Mixed subscriptions with many partitions owned by few members, all consistent, have a high weight: they find the severe
defects.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from kipcheck.conformance.protocols.assignment.model.assignment import NO_GENERATION, Group, Member, Partition, Topic
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Record, Row, Seq, nullable, record

Value: TypeAlias = Mapping[str, Any]

MEMBERS = ("a", "b", "c", "d", "e", "f", "g", "h")
TOPICS = ("t0", "t1", "t2", "t3", "t4", "t5")
GONE = "gone"
"""A topic to which members may subscribe, and that does not exist."""
GENERATION = 10
"""The last generation, in which owners were assigned their partitions."""
GENERATIONS = (GENERATION, GENERATION - 1, GENERATION - 2, NO_GENERATION)
RACKS = ("r0", "r1", "r2")
STATIC = ("i0", "i1", "i2", "i3")

_all = Pick((None,))
_some = Seq(Pick(MEMBERS), 0, 4)
_two_or_three = Seq(Pick(MEMBERS), 2, 3)
_owner = Pick(("", *MEMBERS))
_an_owner = Pick(MEMBERS)
_size = Integer(1, 8)


def _topic(readers: Node, size: Integer, runs: int, owner: Node) -> Record:
    """``runs`` of partitions, from 0 on, each with its owner."""
    return record(readers=readers, runs=Seq(record(by=owner, size=size), 1, runs))


def _group(present: Node, topic: Record, topics: int) -> Record:
    """With at least ``topics`` topics."""
    rows = (topic if number < topics else nullable(topic) for number in range(len(TOPICS)))
    return record(members=Row((present,) * len(MEMBERS)), topics=Row(tuple(rows)))


GROUPS = _group(Flag(), _topic(OneOf((_all, Seq(Pick(MEMBERS), 0, 8))), _size, 3, _owner), 0)
"""Every group: the ones drawn below are among these, and a reducer moves among them."""
EQUAL = _group(Flag(), _topic(_all, Integer(1, 4), 3, _owner), 1)
"""All members subscribe to all topics."""
MIXED = _group(Flag(), _topic(OneOf((_all, _some)), Integer(1, 4), 3, _owner), 1)
"""Some topics have all members as subscribers, some a few."""
CHAINED = _group(Flag(), _topic(_two_or_three, Integer(3, 8), 2, _an_owner), 4)
"""Large topics with two or three subscribers each, owned by one or two of them, as before others joined: the member
with most partitions shares no topic with the member with least, so balancing takes several moves."""


def _owned_topic(readers: str, **owners: Integer) -> Record:
    """A topic with exactly these subscribers, and a run for each of the owners."""
    runs = (record(by=Pick((owner,)), size=size) for owner, size in owners.items())
    return record(readers=Row(tuple(Pick((each,)) for each in readers)), runs=Row(tuple(runs)))


_crossed = (
    _owned_topic("abc", c=Integer(1, 5), b=Integer(2, 6)),
    _owned_topic("bde", b=Integer(4, 8)),
    _owned_topic("cde", c=Integer(3, 7)),
    _owned_topic("a", a=Integer(5, 6)),
    Pick((None,)),
    Pick((None,)),
)
CROSSED = record(
    members=Row(tuple(Pick((letter in "abcde",)) for letter in MEMBERS)),
    topics=Row(_crossed),
)
"""Two members balance with a third, and then with new members: partitions of the third have to move back. Here the
search of Kafka's AbstractStickyAssignor, and of assignors derived from it, may not end."""
USUAL = OneOf((EQUAL, EQUAL, MIXED, MIXED, MIXED, CHAINED, CHAINED, CROSSED))


def group_of(value: Value) -> Group:
    """Claims are consistent: existing partitions, of topics that the member subscribes to, each with one owner."""
    present = [letter for letter, here in zip(MEMBERS, value["members"], strict=True) if here]
    topics: list[Topic] = []
    reads: dict[str, list[str]] = {each: [] for each in present}
    owns: dict[str, list[Partition]] = {each: [] for each in present}
    for name, topic in zip(TOPICS, value["topics"], strict=True):
        if topic is None:
            continue
        readers = present if topic["readers"] is None else [each for each in present if each in topic["readers"]]
        if not readers:
            continue  # leaders use only topics that the group subscribes to
        topics.append(Topic(name, sum(run["size"] for run in topic["runs"])))
        for each in readers:
            reads[each].append(name)
        number = 0
        for run in topic["runs"]:
            owner = _next(run["by"], readers)
            if owner is not None:
                owns[owner] += ((name, number + index) for index in range(run["size"]))
            number += run["size"]
    members = (
        Member(each, tuple(reads[each]), tuple(owns[each]), GENERATION if owns[each] else NO_GENERATION)
        for each in present
    )
    return Group(tuple(topics), tuple(members))


def _next(letter: str, readers: list[str]) -> str | None:
    """The letter, or the next one that subscribes: removing a member changes no other's owner."""
    if not letter or not readers:
        return None
    return next((each for each in readers if each >= letter), readers[0])


# Knobs: variations of a group, each as plain data beside it


CLAIMS = Seq(record(by=_an_owner, topic=Pick(TOPICS), number=Integer(0, 8), size=Integer(1, 3)), 0, 4)
"""More claims, to partitions that others claim and to topics without a subscription."""
GHOSTS = Seq(record(by=_an_owner, topic=Pick((*TOPICS, GONE)), size=Integer(1, 3)), 1, 3)
"""Claims to partitions that do not exist: of a deleted topic, or of one recreated with fewer partitions."""
STALE = Row((Pick(GENERATIONS),) * len(MEMBERS))
"""The generation of each member's claims."""
OTHERS = Seq(Integer(1, 4), 1, 2)
"""Sizes of topics without subscribers: a leader that subscribes by pattern has metadata of them too."""
WISHES = Seq(_an_owner, 0, 2)
"""Members that also subscribe to a topic that does not exist."""
INSTANCES = Row((nullable(Pick(STATIC)),) * len(MEMBERS))
"""Instance ids of members, for static ones."""
REPLICAS = Row((Seq(Seq(Pick(RACKS), 1, 2), 0, 3),) * len(TOPICS))
"""The racks of each topic's partitions, repeated from the first; none where they are unknown."""
PLACES = Row((nullable(Pick(RACKS)),) * len(MEMBERS))
VERSIONS = Row((Pick((1, 0)),) * len(MEMBERS))
"""The version of each member's subscription (KIP-429's draft)."""
CHANGE = OneOf(
    (
        record(member=_an_owner),
        record(topic=Pick(TOPICS), more=Integer(1, 4)),
        record(topic=Pick(TOPICS), reader=_an_owner),
        record(topic=Pick(TOPICS), gone=Flag()),
    )
)
"""Changes from one round to the next: a member joins or leaves, a topic grows, a member subscribes to a topic or
unsubscribes, a topic is deleted or recreated."""
CHANGES = Seq(CHANGE, 1, 3)


def group_with_knobs(value: Value) -> Group:
    """The group of ``value["group"]`` with its knobs applied, renamed to the first names."""
    group = group_of(value["group"])
    if "claims" in value:
        group = with_claims(group, value["claims"])
    if "ghosts" in value:
        group = with_ghosts(group, value["ghosts"])
    if "generations" in value:
        group = with_generations(group, value["generations"])
    if "wishes" in value:
        group = with_wishes(group, value["wishes"])
    if "instances" in value:
        group = with_instances(group, value["instances"])
    if "replicas" in value:
        group = with_racks(group, value["replicas"], value["places"])
    (group,) = renamed([group])
    return with_others(group, value["others"]) if "others" in value else group


def with_claims(group: Group, claims: list[Value]) -> Group:
    """Numbers past the last partition continue from 0."""
    more: dict[str, list[Partition]] = {}
    for each in claims:
        size = group.sizes.get(each["topic"], 0)
        numbers = dict.fromkeys((each["number"] + index) % size for index in range(each["size"]) if size)
        more.setdefault(each["by"], []).extend((each["topic"], number) for number in numbers)
    return _each(group, lambda one: _claiming(one, more.get(one.id, [])))


def with_ghosts(group: Group, ghosts: list[Value]) -> Group:
    more: dict[str, list[Partition]] = {}
    for each in ghosts:
        size = group.sizes.get(each["topic"], 0)
        more.setdefault(each["by"], []).extend((each["topic"], size + index) for index in range(each["size"]))
    return _each(group, lambda one: _claiming(one, more.get(one.id, [])))


def _claiming(member: Member, more: list[Partition]) -> Member:
    owned = tuple(dict.fromkeys((*member.owned, *more)))
    return replace(member, owned=owned, generation=GENERATION) if more else member


def with_generations(group: Group, generations: list[int]) -> Group:
    by_letter = dict(zip(MEMBERS, generations, strict=True))
    return _each(group, lambda one: replace(one, generation=by_letter[one.id]) if one.owned else one)


def with_others(group: Group, sizes: list[int]) -> Group:
    others = tuple(Topic(f"other{number}", size) for number, size in enumerate(sizes))
    return replace(group, topics=(*group.topics, *others))


def with_wishes(group: Group, wishes: list[str]) -> Group:
    return _each(group, lambda one: _wishing(one) if one.id in wishes else one)


def _wishing(member: Member) -> Member:
    return replace(member, subscription=(*member.subscription, GONE))


def with_instances(group: Group, instances: list[str | None]) -> Group:
    """Instance ids are unique: of several members with the same one, the first gets it."""
    free = dict(zip(MEMBERS, instances, strict=True))
    taken: set[str] = set()

    def static(member: Member) -> Member:
        instance = free[member.id]
        if instance is None or instance in taken:
            return member
        taken.add(instance)
        return replace(member, instance=instance)

    return _each(group, static)


def with_racks(group: Group, replicas: list[list[list[str]]], places: list[str | None]) -> Group:
    of_topic, of_member = dict(zip(TOPICS, replicas, strict=True)), dict(zip(MEMBERS, places, strict=True))
    topics = (replace(each, racks=_cycled(of_topic[each.name], each.partitions)) for each in group.topics)
    return replace(_each(group, lambda one: replace(one, rack=of_member[one.id])), topics=tuple(topics))


def _cycled(racks: list[list[str]], partitions: int) -> tuple[frozenset[str], ...] | None:
    return tuple(frozenset(racks[number % len(racks)]) for number in range(partitions)) if racks else None


def changed(value: Value, change: Value) -> Value:
    """The value of the group after the change; owners are not updated."""
    members, topics = list(value["members"]), list(value["topics"])
    if "member" in change:
        at = MEMBERS.index(change["member"])
        members[at] = not members[at]
        return {**value, "members": members}
    at = TOPICS.index(change["topic"])
    topic = topics[at]
    if topic is None or "gone" in change:
        topics[at] = {"readers": None, "runs": [{"by": "", "size": 1}]} if topic is None else None
    elif "more" in change:
        topics[at] = {**topic, "runs": [*topic["runs"], {"by": "", "size": change["more"]}]}
    else:
        readers = list(MEMBERS) if topic["readers"] is None else topic["readers"]
        without = [each for each in readers if each != change["reader"]]
        topics[at] = {**topic, "readers": without if len(without) < len(readers) else [*readers, change["reader"]]}
    return {**value, "topics": topics}


def _each(group: Group, change: Callable[[Member], Member]) -> Group:
    return replace(group, members=tuple(map(change, group.members)))


def renamed(groups: Iterable[Group]) -> list[Group]:
    """The same groups with the first names, in the same order, so that the smallest case has them."""
    found = list(groups)
    members = sorted({one.id for group in found for one in group.members})
    claimed = {topic for group in found for one in group.members for topic, _ in one.owned}
    topics = sorted({*(one.name for group in found for one in group.topics), *claimed} & {*TOPICS})
    return [
        _renamed(each, dict(zip(members, MEMBERS, strict=False)), dict(zip(topics, TOPICS, strict=False)))
        for each in found
    ]


def _renamed(group: Group, letters: Mapping[str, str], names: Mapping[str, str]) -> Group:
    topics = tuple(replace(each, name=names.get(each.name, each.name)) for each in group.topics)
    members = tuple(
        replace(
            each,
            id=letters[each.id],
            subscription=tuple(names.get(topic, topic) for topic in each.subscription),
            owned=tuple((names.get(topic, topic), number) for topic, number in each.owned),
        )
        for each in group.members
    )
    return Group(topics, members)


def stages(value: Value, changes: list[Value]) -> Iterator[Group]:
    """The group after each of the changes, which accumulate."""
    for each in changes:
        value = changed(value, each)
        yield group_of(value)
