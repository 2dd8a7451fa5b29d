"""Checks of leaders: groups drawn for each assignor, and the invariants of their assignments."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

from kipcheck.conformance.core.values.case import Role, Step, step
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.assignment import invariants, strategies as groups
from kipcheck.conformance.protocols.assignment.checks.known_hard_groups import CLAIMS
from kipcheck.conformance.protocols.assignment.invariants.cooperation import ROUNDS
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.sticky import sticky
from kipcheck.conformance.protocols.assignment.ops import assign, completed, shares, with_user_data
from kipcheck.conformance.protocols.assignment.strategies import Value
from kipcheck.conformance.protocols.declare.answer_digest import answer_digest, payload
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Exhibit, Family, Operation
from kipcheck.conformance.protocols.declare.coverage import Fields, outcome, size
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.nodes import Node, OneOf, Record, record


@dataclass(frozen=True, slots=True)
class Assignor:
    """An assignor, by its name in clients."""

    edition: str
    name: str
    version: None = None

    @property
    def is_sticky(self) -> bool:
        return self.name in (assignment.STICKY, assignment.COOPERATIVE)

    def assign(self, group: assignment.Group, rejoin: bool = False) -> Step:
        return assign(self.name, group.topics, group.members, rejoin)


def subjects(edition: str) -> Iterator[Assignor]:
    return (Assignor(edition, name) for name in assignment.ASSIGNORS)


def subject(edition: str, name: str, version: int | None) -> Assignor:
    if name not in assignment.ASSIGNORS:
        raise LookupError(f"no assignor is called {name!r}; there are {', '.join(assignment.ASSIGNORS)}")
    return Assignor(edition, name)


def claimed(subject: Assignor, claims: Claims) -> bool:
    return subject.name in claims.assignors


ANYTHING = record(group=groups.GROUPS)
USUAL = record(group=groups.USUAL)


def one_round(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    group = groups.group_with_knobs(value)
    if group.members:
        yield Conversation((subject.assign(group),))


def orders(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """The same group three times: as drawn, reversed, and shuffled."""
    group = groups.group_with_knobs(value)
    if len(group.members) < 2:
        return
    reversed_group = assignment.Group(group.topics[::-1], tuple(_reversed(each) for each in group.members[::-1]))
    shuffled = assignment.Group(group.topics, tuple(random.sample(group.members, len(group.members))))
    yield Conversation(tuple(subject.assign(each) for each in (group, reversed_group, shuffled)))


def _reversed(member: assignment.Member) -> assignment.Member:
    return replace(member, subscription=member.subscription[::-1], owned=member.owned[::-1])


def rounds(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """Successive rounds of a group that changes: members join and leave, topics grow, subscriptions change."""
    stages = groups.renamed([groups.group_of(value["group"]), *groups.stages(value["group"], value["changes"])])
    again = ROUNDS if subject.name == assignment.COOPERATIVE else 1
    steps: list[Step] = []
    for group in stages:
        if group.members:
            times = 1 + again if steps else 1
            steps += [subject.assign(group, rejoin=bool(steps))] * times
    if steps:
        yield Conversation(tuple(steps))


def settled(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """A group that owns all partitions, in balance; then the group after a change, with what members may keep."""
    first = groups.group_of(value["group"])
    owned = sticky(first)
    for group in (first, *groups.stages(value["group"], [value["change"]])):
        members = (
            _owning(each, [p for p in owned.get(each.id, ()) if group.may_have(each, p)]) for each in group.members
        )
        (renamed,) = groups.renamed([replace(group, members=tuple(members))])
        if renamed.members:
            yield Conversation((subject.assign(renamed),))


def _owning(member: assignment.Member, owned: list[assignment.Partition]) -> assignment.Member:
    return replace(member, owned=tuple(owned), generation=groups.GENERATION if owned else assignment.NO_GENERATION)


def two_rounds(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """A round, and the one that follows when members have got their assignments."""
    group = groups.group_with_knobs(value)
    if group.members:
        yield Conversation((subject.assign(group), subject.assign(group, rejoin=True)))


def user_data(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """User data that a member writes; for sticky, also user data of Kafka's members that it reads."""
    group = groups.group_with_knobs(value)
    owned = sticky(group)
    members = tuple(replace(each, owned=owned[each.id], generation=groups.GENERATION) for each in group.members)
    for each in members[:1]:
        body: dict[str, Any] = {
            "assignor": subject.name,
            "subscription": list(each.subscription),
            "owned": [list(partition) for partition in each.owned],
            "generation": each.generation,
        }
        yield Conversation((step("member", "user-data", **body),), "written")
    if subject.name == assignment.STICKY and members:
        owning = subject.assign(replace(group, members=members))
        for version in (1, 0):
            yield Conversation((with_user_data(owning, version),), f"read, version {version}")


def static(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    """Some members are static; then they rejoin with other ids, in reverse order."""
    group = groups.group_with_knobs(value)
    if not any(each.instance for each in group.members):
        return
    back = (each if each.instance is None else replace(each, id=f"z{_mirrored(each.id)}") for each in group.members)
    yield Conversation((subject.assign(group), subject.assign(replace(group, members=tuple(back)))))


def _mirrored(letter: str) -> str:
    return groups.MEMBERS[-1 - groups.MEMBERS.index(letter)]


def racks(subject: Assignor, value: Value, random: Random) -> Iterator[Conversation]:
    group = groups.group_with_knobs(value)
    if any(each.rack for each in group.members) and any(each.racks for each in group.topics):
        yield Conversation((subject.assign(group),))


COLUMNS = ["member", "subscribes to", "owned", "generation", "got"]


def shown(history: History, violation: Violation) -> list[Exhibit]:
    """A table of the failing step, with a row for each member: its subscription and its assignment."""
    guilty = history.ops[violation.at[-1]]
    if guilty.step.verb != "assign":
        return []
    return [{"kind": "table", "columns": COLUMNS, "rows": list(_rows(guilty, violation.path.split()))}]


def _rows(op: Op, guilty: list[str]) -> Iterator[dict[str, Any]]:
    got: dict[str, str] = {}
    if isinstance(op.observation, Replied):
        with suppress(ValueError):
            got = {member: assignment.partition_names(partitions) for member, partitions in shares(op.observation)}
    for each in op.step["members"]:
        owned = assignment.partition_names((topic, number) for topic, number in each["owned"])
        cells = [
            each["id"] if each["instance"] is None else f"{each['id']} ({each['instance']})",
            ", ".join(each["subscription"]) or "nothing",
            owned if each.get("userData") is None else f"user data {each['userData']}",
            str(each["generation"]),
            got.pop(each["id"], "not answered"),
        ]
        yield {"cells": cells, "guilty": each["id"] in guilty}
    for member, partitions in got.items():
        yield {"cells": [member, "not in the group", "", "", partitions], "guilty": True}


def drawn(node: Node) -> Callable[[Assignor, Random], Value]:
    def draw(subject: Assignor, random: Random) -> Value:
        value: Value = compiled(node)(random)
        return value

    return draw


def digest(history: History) -> str:
    """A digest of the assignment, in any order of members, without user data, which only its own assignor reads."""
    return answer_digest(history, _given)


def _given(answer: Replied) -> Any:
    with suppress(ValueError):  # an invalid assignment is compared unchanged
        if any(name == "assignment" for name, _ in answer.payload):
            return {"assignment": sorted((member, sorted(partitions)) for member, partitions in shares(answer))}
    return payload(answer)


def coverage(subject: Assignor, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """What was in the group that is not in every group; how even the shares are and how much moved, also after what
    had come of the round before.
    """
    before: Fields = ()
    for op in ops:
        about = ("leader", subject.name, op.step.verb)
        group, came = _group(op.step.body), _balance(op)
        yield [(*about, group), (*about, len(op.step.body.get("members", ())), came), (*about, before, came)]
        before = came


def _group(body: Mapping[str, Any]) -> Fields:
    members = body.get("members", ())
    owned = sum(len(each.get("owned", ())) for each in members)
    return (
        min(len(members), 4),
        min(len(body.get("topics", ())), 3),
        len({tuple(sorted(each["subscription"])) for each in members}) > 1,
        0 if not owned else 1 if owned < sum(each["partitions"] for each in body.get("topics", ())) else 2,
        len({each.get("generation") for each in members}) > 1,
        any(each.get("instance") is not None for each in members),
        any(each.get("rack") is not None for each in members),
    )


def _balance(op: Op) -> Fields:
    """Are all served, by how much do the shares differ, how much moved from one to another?"""
    if not isinstance(op.observation, Replied):
        return (outcome(op.observation),)
    try:
        given = {member: {*partitions} for member, partitions in shares(op.observation)}
    except ValueError:  # no assignment was asked for, or it is none
        return ("replied",)
    sizes = sorted(map(len, given.values())) or [0]
    owner = {
        tuple(each): member["id"] for member in op.step.body.get("members", ()) for each in member.get("owned", ())
    }
    moved = sum(owner.get(each, member) != member for member, got in given.items() for each in got)
    return not sizes[0], min(sizes[-1] - sizes[0], 3), size(moved)


def place(step: Step) -> tuple[str, None]:
    return step.body.get("assignor", ""), None


def two_members(assignor: str, topic: str) -> dict[str, Any]:
    """An operation: two members of one topic."""
    member = {
        "id": "c1", "subscription": [topic], "owned": [], "generation": -1, "instance": None, "rack": None,
        "userData": None,
    }  # fmt: skip
    topics = [{"name": topic, "partitions": 2, "racks": None}]
    return {"op": "assign", "assignor": assignor, "topics": topics, "members": [member, {**member, "id": "c2"}]}


def describe(operation: Operation) -> str | None:
    return f"{operation['op']} {operation['assignor']}" if "assignor" in operation else None


def sample_ops(role: Role, claims: Claims) -> Iterator[Operation]:
    if role is Role.LEADER:
        yield from (two_members(each, "t") for each in assignment.ASSIGNORS if each in claims.assignors)


LEADER: Family[Assignor] = Family(
    Role.LEADER,
    subjects,
    subject,
    claimed,
    node=lambda subject: ANYTHING,
    draw=drawn(USUAL),
    exhibits=shown,
    complete=completed,
    digest=digest,
    coverage=coverage,
    place=place,
    describe=describe,
    sample_ops=sample_ops,
)
of = partial(invariants_of, part=invariants)
ALWAYS = of(invariants.ALWAYS)
KEEPING = of(invariants.KEEPING)
BY_RULE = of(invariants.BY_RULE)
COOPERATING = of(invariants.COOPERATING)


def leader_check(
    id: str,
    sentence: str,
    conversations: Callable[[Assignor, Value, Random], Iterable[Conversation]],
    values: int,
    ids: tuple[str, ...],
    usual: Node = groups.USUAL,
    subject_filter: Callable[[Assignor], bool] = lambda subject: True,
    first: tuple[Callable[[Assignor], Value], ...] = (),
    **knobs: Node,
) -> Check[Assignor]:
    def node(group: Node) -> Record:
        return record(group=group, **knobs)

    return Check(
        id, sentence, LEADER, conversations, values, (*ALWAYS, *ids), about=subject_filter,
        first=first, draw=drawn(node(usual)), node=lambda subject: node(groups.GROUPS),
    )  # fmt: skip


def is_sticky(subject: Assignor) -> bool:
    return subject.is_sticky


SMALL = OneOf((groups.EQUAL, groups.MIXED))
ASSIGNMENT: tuple[Check[Assignor], ...] = (
    leader_check(
        "assign/one-round",
        "a round assigns every partition to one member, in balance, without needless moves",
        one_round,
        values=600,
        ids=(*KEEPING, *BY_RULE, *COOPERATING),
    ),
    leader_check(
        "assign/order",
        "an assignment does not depend on the order in which the group is listed",
        orders,
        values=60,
        ids=of("assign/order"),
        usual=SMALL,
    ),
    leader_check(
        "assign/settled",
        "a balanced assignment stays, and a change moves no more partitions than needed",
        settled,
        values=60,
        ids=(*KEEPING, *COOPERATING),
        subject_filter=is_sticky,
        change=groups.CHANGE,
    ),
    leader_check(
        "assign/rounds",
        "as members join and leave and topics grow, rounds lose no partition and come to rest",
        rounds,
        values=80,
        ids=(*KEEPING, *COOPERATING, *of("assign/rounds")),
        subject_filter=is_sticky,
        changes=groups.CHANGES,
    ),
    leader_check(
        "assign/claims",
        "stale claims, duplicate claims, and claims to unsubscribed topics do no harm",
        two_rounds,
        values=200,
        ids=(*of("assign/claims"), *COOPERATING),
        usual=SMALL,
        subject_filter=is_sticky,
        first=CLAIMS,
        claims=groups.CLAIMS,
        generations=groups.STALE,
    ),
    leader_check(
        "assign/ghosts",
        "subscriptions and claims to topics and partitions that do not exist do no harm",
        one_round,
        values=60,
        ids=COOPERATING,
        usual=SMALL,
        ghosts=groups.GHOSTS,
        wishes=groups.WISHES,
    ),
    leader_check(
        "assign/other-topics",
        "topics without subscribers make no difference",
        one_round,
        values=80,
        ids=(*KEEPING, *BY_RULE),
        usual=SMALL,
        others=groups.OTHERS,
    ),
    leader_check(
        "assign/user-data",
        "the owned partitions of a sticky member are written and read as Kafka writes and reads them",
        user_data,
        values=40,
        ids=of("assign/user-data", first=("assign/writes-user-data", "assign/writes-generation")),
        usual=SMALL,
        subject_filter=is_sticky,
    ),
    leader_check(
        "assign/static",
        "a static member is identified by its instance id, whatever its member id",
        static,
        values=60,
        ids=of("assign/static"),
        usual=SMALL,
        instances=groups.INSTANCES,
    ),
    leader_check(
        "assign/racks",
        "racks, whether known for some or all members, leave no partition unassigned",
        racks,
        values=60,
        ids=(*of("assign/racks"), *COOPERATING),
        usual=SMALL,
        replicas=groups.REPLICAS,
        places=groups.PLACES,
    ),
)
"""In the order in which they run."""
