"""Converts between the steps of an assignment conversation and groups, subscriptions and assignments.

Operations use lists throughout, because the order of topics and members may matter to a leader; see
``conformance/targets/testee.schema.json``.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from kipcheck.conformance.core.values.case import Step, step
from kipcheck.conformance.core.values.history import Observation, Op, Replied
from kipcheck.conformance.protocols.assignment.model import assignment
from kipcheck.conformance.protocols.assignment.model.membership import V0, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import DRAFT
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.errors import Refused

Share: TypeAlias = tuple[str, tuple[assignment.Partition, ...]]
"""A member id, and the partitions assigned to it."""


def assign(
    assignor: str, topics: Iterable[assignment.Topic], members: Iterable[assignment.Member], rejoin: bool = False
) -> Step:
    """The step that requests an assignment from a leader; members encode owned partitions as the assignor's own do."""
    body = {"assignor": assignor, "topics": [*map(_topic, topics)], "members": [*map(_member, members)]}
    return step("leader", "assign", **body, **({"rejoin": True} if rejoin else {}))


def drafted(topics: Iterable[assignment.Topic], members: Mapping[str, Subscription]) -> Step:
    """The step for a leader of KIP-429's draft: each member has the version of its subscription."""
    as_members = (
        assignment.Member(id, each.topics, each.owned, each.generation, rack=each.rack) for id, each in members.items()
    )
    base = assign(DRAFT, topics, as_members)
    with_versions = [{**each, "version": members[each["id"]].version} for each in base["members"]]
    return Step(base.actor, base.verb, {**base.body, "members": with_versions})


def subscriptions_of(step: Step) -> Mapping[str, Subscription]:
    """Member id -> subscription as a leader of the draft reads it. Version 0 has no field for owned partitions."""
    group = group_of(step)
    versions = {each["id"]: each["version"] for each in step["members"]}
    return {
        each.id: Subscription(
            each.subscription, versions[each.id], each.owned if versions[each.id] != V0 else (), each.generation
        )
        for each in group.members
    }


def errors(observation: Observation) -> Mapping[str, int]:
    """Member id -> error code of its assignment, for each member in an answer; 0 if the answer has none (429-22)."""
    assert isinstance(observation, Replied)
    return {str(each["id"]): int(each.get("error") or 0) for each in observation["assignment"]}


def with_user_data(step: Step, version: int) -> Step:
    """The same step, with owned partitions only in the user data that Kafka's StickyAssignor writes."""
    members = [
        {**each, "owned": [], "userData": user_data(_partitions(each["owned"]), each["generation"], version).hex()}
        for each in step["members"]
    ]
    return Step(step.actor, step.verb, {**step.body, "members": members})


def user_data(owned: Iterable[assignment.Partition], generation: int, version: int = 1) -> bytes:
    """User data as Kafka's StickyAssignor writes it: topics in the given order (version 0 has no generation)."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in owned:
        by_topic.setdefault(topic, []).append(number)
    before = [{"topic": topic, "partitions": numbers} for topic, numbers in by_topic.items()]
    value = {"previousAssignment": before, **({"generation": generation} if version else {})}
    return layout("apache", "StickyAssignorUserData", version).encode(value)


def read_user_data(data: bytes) -> tuple[tuple[assignment.Partition, ...], int] | None:
    """Partitions and generation: decoded as version 1, else as version 0, else None (StickyAssignor)."""
    read = _user_data(data)
    return None if read is None else read[:2]


def user_data_version(data: bytes) -> int | None:
    """The version that ``read_user_data`` decodes; None if it decodes none."""
    read = _user_data(data)
    return None if read is None else read[2]


@lru_cache(maxsize=512)
def _user_data(data: bytes) -> tuple[tuple[assignment.Partition, ...], int, int] | None:
    for version in (1, 0):
        try:
            value = layout("apache", "StickyAssignorUserData", version).decode(data)
        except Refused:
            continue
        owned = tuple((each["topic"], number) for each in value["previousAssignment"] for number in each["partitions"])
        return owned, value.get("generation", assignment.NO_GENERATION), version
    return None


def group_of(step: Step) -> assignment.Group:
    """The group as the assignor reads it: sticky takes owned partitions from the user data, if there are any."""
    return assignment.Group(
        tuple(_topic_of(each) for each in step["topics"]),
        tuple(_member_of(each, step["assignor"]) for each in step["members"]),
    )


def shares(observation: Observation) -> list[Share]:
    """The assignment in an answer, member by member. Errors: ValueError for a malformed assignment."""
    assert isinstance(observation, Replied)
    try:
        return [(str(each["id"]), tuple(_partitions(each["partitions"]))) for each in observation["assignment"]]
    except (KeyError, TypeError, ValueError) as wrong:
        raise ValueError(f"the answer is not a valid assignment: {wrong!r}") from None


def is_rejoin(step: Step) -> bool:
    """Whether the step continues from the assignment of an earlier step."""
    return step.verb == "assign" and bool(step.body.get("rejoin"))


def rejoined(step: Step, before: Sequence[Op]) -> Step | None:
    """The step one generation after the last assignment before it, with the partitions that its members then own.

    New members own nothing, and so do members of the draft that revoke before they join. None if there is no earlier
    assignment.
    """
    last = next((op for op in reversed(before) if op.step.verb == "assign"), None)
    if last is None or not isinstance(last.observation, Replied):
        return None
    try:
        owned_by = {member: [*map(list, partitions)] for member, partitions in shares(last.observation)}
    except ValueError:
        return None
    generation = max([0, *(each["generation"] for each in last.step["members"])]) + 1
    members = [
        {
            **each,
            "owned": owned_by.get(each["id"], []) if each.get("version") != V0 else [],
            "generation": generation if each["id"] in owned_by else assignment.NO_GENERATION,
        }
        for each in step["members"]
    ]
    body = {key: value for key, value in step.body.items() if key != "rejoin"}
    return Step(step.actor, step.verb, {**body, "members": members})


def completed(step: Step, before: Sequence[Op]) -> Step | None:
    """The step as it is sent: see ``Family.complete``."""
    return rejoined(step, before) if is_rejoin(step) else step


def _topic(topic: assignment.Topic) -> dict[str, Any]:
    racks = None if topic.racks is None else [sorted(each) for each in topic.racks]
    return {"name": topic.name, "partitions": topic.partitions, "racks": racks}


def _member(member: assignment.Member) -> dict[str, Any]:
    return {
        "id": member.id,
        "subscription": list(member.subscription),
        "owned": [list(each) for each in member.owned],
        "generation": member.generation,
        "instance": member.instance,
        "rack": member.rack,
        "userData": None,
    }


def _topic_of(given: Mapping[str, Any]) -> assignment.Topic:
    racks = given.get("racks")
    return assignment.Topic(given["name"], given["partitions"], None if racks is None else tuple(map(frozenset, racks)))


def _member_of(given: Mapping[str, Any], assignor: str) -> assignment.Member:
    owned, generation = tuple(_partitions(given["owned"])), given["generation"]
    data = given.get("userData")
    if data is not None and assignor == assignment.STICKY:
        owned, generation = read_user_data(bytes.fromhex(data)) or ((), assignment.NO_GENERATION)
    return assignment.Member(
        given["id"], tuple(given["subscription"]), owned, generation, given.get("instance"), given.get("rack")
    )


def _partitions(given: Iterable[Sequence[Any]]) -> list[assignment.Partition]:
    return [(str(topic), int(number)) for topic, number in given]


def shorthand(steps: Iterable[Step]) -> str:
    """``sticky t0:2; a[t0]=t0-0@10; b(i0)[]``: topics with sizes, members with subscribed topics and owned partitions;
    ``draft t0:2; a v1[t0]``: members also with the version of their subscription.

    Steps are separated by ``|``. A step that continues from an earlier answer omits owned partitions.
    """
    return " | ".join(map(_step_text, steps))


def _step_text(step: Step) -> str:
    if step.verb == "user-data":
        return f"{step['assignor']} {step.verb}{_owned_text(step.body)}"
    racks = {each["name"]: each["racks"] for each in step["topics"]}
    topics = (f"{each['name']}:{each['partitions']}{_racks_text(racks[each['name']])}" for each in step["topics"])
    again = " again" if is_rejoin(step) else ""
    return "; ".join((f"{step['assignor']}{again} {' '.join(topics)}", *map(_member_text, step["members"])))


def _member_text(member: Mapping[str, Any]) -> str:
    instance = "" if member["instance"] is None else f"({member['instance']})"
    version = f" v{member['version']}" if "version" in member else ""
    data = "" if member["userData"] is None else f"={member['userData']}"
    rack = "" if member["rack"] is None else f" on {member['rack']}"
    return f"{member['id']}{instance}{version}[{' '.join(member['subscription'])}]{data or _owned_text(member)}{rack}"


def _owned_text(claim: Mapping[str, Any]) -> str:
    owned = ",".join(f"{topic}-{number}" for topic, number in claim["owned"])
    return f"={owned}@{claim['generation']}" if owned or claim["generation"] != assignment.NO_GENERATION else ""


def _racks_text(racks: list[list[str]] | None) -> str:
    return "" if racks is None else f" on {','.join('/'.join(each) for each in racks)}"
