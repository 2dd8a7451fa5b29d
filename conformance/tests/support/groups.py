"""Groups in the shorthand of ``kipcheck.conformance.protocols.assignment.ops``, for tests.

They are read back, and answered by whom the test likes.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.history import History, Observation, Op, Replied
from kipcheck.conformance.protocols.assignment import strategies as membership
from kipcheck.conformance.protocols.assignment.checks.assignors import LEADER
from kipcheck.conformance.protocols.assignment.checks.mixed import MIXED
from kipcheck.conformance.protocols.assignment.model.assignment import Group, Member, Partition, Topic
from kipcheck.conformance.protocols.assignment.ops import assign, group_of
from kipcheck.conformance.protocols.assignment.strategies import group_with_knobs
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.strategies.nodes import Node, OneOf, Record, record

CHECKED = {id: check for id, check in CHECKS.items() if check.family is LEADER}
DRAFTED = {id: check for id, check in CHECKS.items() if check.family is MIXED}
LEADING: Mapping[str, Invariant] = {
    each.id: each
    for each in all_invariants(Role.LEADER)
    if each.role is Role.LEADER and not each.id.startswith("mixed/")
}
MIXING: Mapping[str, Invariant] = {
    each.id: each for each in all_invariants(Role.LEADER) if each.id.startswith("mixed/")
}
_TOPIC = re.compile(r"(\S+):(\d+)(?: on (\S+))?")
_MEMBER = re.compile(r"(\w+)(?:\((\w+)\))?(?: v(\d))?\[([^]]*)\](?:=([^@ ]*)@(-?\d+))?(?: on (\w+))?")
__all__ = [
    "CHECKED",
    "DRAFTED",
    "LEADING",
    "MIXING",
    "OneOf",
    "answered",
    "case",
    "got",
    "group",
    "group_with_knobs",
    "stated",
]


def partition(text: str) -> Partition:
    topic, _, number = text.rpartition("-")
    return topic, int(number)


def step_of(text: str) -> Step:
    """``sticky t0:2 on r0,r1/r2; a(i0)[t0]=t0-0,t0-1@10 on r1; b[]``, with racks of partitions and of members;
    ``sticky again t0:2; a[t0]`` to go on from an answer; ``draft t0:2; a v0[t0]; b v1[t0]`` with versions."""
    first, *members = text.strip().split("; ")
    assignor, *topics = first.split()
    again = topics[:1] == ["again"]
    asked = assign(assignor, map(_topic, _TOPIC.findall(" ".join(topics[again:]))), map(_member, members), rejoin=again)
    versions = [found.group(3) for found in map(_MEMBER.fullmatch, members) if found is not None and found.group(3)]
    if not versions:
        return asked
    reported = [{**each, "version": int(version)} for each, version in zip(asked["members"], versions, strict=True)]
    return Step(asked.actor, asked.verb, {**asked.body, "members": reported})


def _topic(reported: tuple[str, str, str]) -> Topic:
    name, size, racks = reported
    return Topic(name, int(size), tuple(frozenset(each.split("/")) for each in racks.split(",")) if racks else None)


def _member(text: str) -> Member:
    found = _MEMBER.fullmatch(text.strip())
    assert found is not None, text
    id, instance, _, topics, owned, generation, rack = found.groups()
    claims = tuple(map(partition, filter(None, (owned or "").split(","))))
    return Member(id, tuple(topics.split()), claims, int(generation or -1), instance, rack)


def case(text: str) -> Case:
    return Case("test", "apache", Role.LEADER, tuple(map(step_of, text.split(" | "))))


def group(text: str) -> Group:
    return group_of(step_of(text))


def gives(text: str) -> Observation:
    """``a t0-0 t0-1; b``: what is assigned to whom."""
    shares = [each.split() for each in text.split(";")]
    assignment = [
        {"id": id, "partitions": [[*partition(each)] for each in got], "userData": None} for id, *got in shares
    ]
    return Replied((("assignment", assignment),))


def got(assignment: Mapping[str, Iterable[Partition]]) -> str:
    """``a t0-0 t0-1; b``."""
    return "; ".join(
        " ".join((member, *(f"{topic}-{number}" for topic, number in sorted(partitions))))
        for member, partitions in sorted(assignment.items())
    )


def answered(text: str, *answers: str | Observation) -> History:
    """The conversation of a leader that answers so."""
    asked = case(text)
    given = [gives(each) if isinstance(each, str) else each for each in answers]
    ops = (Op(index, *both, index + 1) for index, both in enumerate(zip(asked.steps, given, strict=True)))
    return History(asked, "test", tuple(ops))


def stated(law: str, history: History) -> list[str]:
    """Why the history breaks the law."""
    found = {**LEADING, **MIXING}[law]
    concerned = any(found.applies_to(history.case, op.step) for op in history.ops)
    return [each.why for each in found.search(history)] if concerned else []


def member_writes(assignor: str, owned: str, generation: int) -> Step:
    claims: list[Any] = [[*partition(each)] for each in owned.split()]
    return step("member", "user-data", assignor=assignor, subscription=["t0"], owned=claims, generation=generation)


def anything(group: Node = membership.USUAL) -> Record:
    """Groups with every knob turned."""
    return record(
        group=group, claims=membership.CLAIMS, ghosts=membership.GHOSTS, generations=membership.STALE,
        wishes=membership.WISHES, instances=membership.INSTANCES, replicas=membership.REPLICAS,
        places=membership.PLACES, others=membership.OTHERS,
    )  # fmt: skip
