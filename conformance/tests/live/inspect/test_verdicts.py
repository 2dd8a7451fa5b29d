"""Groups with a broken assignment: each law that ``kipcheck inspect`` asks is broken by one of them."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.live.coordinator.admin import partition_of
from kipcheck.conformance.live.inspect.cluster import CONTEXT
from kipcheck.conformance.live.inspect.group import (
    ConsumerGroup,
    ConsumerMember,
    Group,
    Member,
    Unreadable,
)
from kipcheck.conformance.live.inspect.inspection import Inspected
from kipcheck.conformance.live.inspect.verdicts import (
    ANY_ASSIGNOR,
    OF_ASSIGNORS,
    OF_HEARTBEATS,
    OF_STREAMS,
    WITH_ALL_TOPICS,
    judged,
    topics_of,
)
from kipcheck.conformance.matrix.group_advice import advice
from kipcheck.conformance.protocols.streams.blobs import write_assignment, write_subscription
from kipcheck.conformance.protocols.streams.model.members import AssignmentInfo, SubscriptionInfo, TaskId
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.bodies import read_body
from kipcheck.conformance.wire.embedded import ASSIGNMENT, SUBSCRIPTION, Assignment

PLACE: Final = ("127.0.0.1", 9092)
TOPICS: Final = {"t": [frozenset[str]()] * 4, "u": [frozenset[str]()] * 4}
Shares = Mapping[str, Sequence[tuple[str, int]] | None]


def t(*numbers: int) -> list[tuple[str, int]]:
    return [("t", each) for each in numbers]


def u(*numbers: int) -> list[tuple[str, int]]:
    return [("u", each) for each in numbers]


def subscription(*topics: str, data: bytes = b"") -> bytes:
    value = {"topics": [*topics], "userData": data, "ownedPartitions": [], "generationId": -1, "rackId": None}
    return layout("apache", SUBSCRIPTION, 3).encode(value)


def assignment(partitions: Sequence[tuple[str, int]], data: bytes = b"") -> bytes:
    rows = [{"topic": topic, "partitions": [number]} for topic, number in partitions]
    return layout("apache", ASSIGNMENT, 3).encode({"assignedPartitions": rows, "userData": data})


def classic(protocol: str, shares: Shares, topics: tuple[str, ...] = ("t",), **instances: str) -> Group:
    members = tuple(
        Member(
            id, instances.get(id), "client", "127.0.0.1", subscription(*topics),
            b"" if given is None else assignment(given),
        )
        for id, given in shares.items()
    )  # fmt: skip
    return Group("g", PLACE, "Stable", "consumer", protocol, members, generation=7, leader=next(iter(shares), None))


def broken(group: Group | ConsumerGroup) -> set[str]:
    found = judged(group, {name: racks for name, racks in TOPICS.items() if name in topics_of(group)})
    assert not found.unjudged
    return {each.law.id for each in found.broken}


SOUND: Final[dict[str, Shares]] = {
    "range": {"a": t(0, 1), "b": t(2, 3)},
    "roundrobin": {"a": t(0, 2), "b": t(1, 3)},
    "sticky": {"a": t(0, 3), "b": t(1, 2)},
    "cooperative-sticky": {"a": t(0, 3), "b": t(1, 2)},
    "own": {"a": t(0), "b": t(1)},
}
BROKEN: Final[list[tuple[str, Group]]] = [
    ("assign/everybody", classic("range", {"a": t(0, 1), "b": t(2, 3), "c": None})),
    ("assign/one-owner", classic("range", {"a": t(0, 1), "b": t(1, 2, 3)})),
    ("assign/one-owner", classic("own", {"a": t(0), "b": t(0)})),
    ("assign/nothing-else", classic("range", {"a": [*t(0, 1), *u(0)], "b": t(2, 3)})),
    ("assign/nothing-else", classic("own", {"a": u(0), "b": t(0)})),
    ("assign/none-idle", classic("range", {"a": t(0), "b": t(2, 3)})),
    ("assign/balance", classic("range", {"a": t(0, 1, 2), "b": t(3)})),
    ("assign/balance", classic("sticky", {"a": t(0, 1, 2), "b": t(3)})),
    ("assign/by-rule", classic("range", {"a": t(2, 3), "b": t(0, 1)})),
    ("assign/static-order", classic("range", {"a": t(0, 1), "b": t(2, 3)}, a="z", b="y")),
    ("assign/range-alike",
     classic("range", {"a": [*t(0, 1), *u(2, 3)], "b": [*t(2, 3), *u(0, 1)]}, topics=("t", "u"))),
]  # fmt: skip


def test_sound_assignments_break_nothing() -> None:
    for protocol, shares in SOUND.items():
        assert broken(classic(protocol, shares)) == set(), protocol


def test_each_law_of_assignors_is_broken_by_a_group() -> None:
    for law, group in BROKEN:
        assert law in broken(group), (law, group)
    assert {law for law, _ in BROKEN} == {*OF_ASSIGNORS, *ANY_ASSIGNOR, *WITH_ALL_TOPICS}


def test_a_topic_that_may_have_grown_is_noted() -> None:
    found = judged(classic("range", {"a": t(0), "b": t(1)}), {"t": TOPICS["t"]})
    assert not found.broken
    assert found.notes[0].startswith("t-2 to t-3: assigned to no member. If they are new")


def test_a_topic_that_is_gone_is_noted_and_its_rule_not_asked() -> None:
    group = classic("roundrobin", {"a": [*t(1, 3), *u(0)], "b": [*t(0, 2), *u(1)]}, topics=("t", "u"))
    found = judged(group, {"t": TOPICS["t"]})
    assert not found.broken
    assert "u: assigned, and not there any more" in found.notes[0]


# Kafka Streams


def streams(shares: Mapping[str, tuple[int, SubscriptionInfo, AssignmentInfo]], leader: str | None = "a") -> Group:
    members = []
    for id, (number, sent, got) in shares.items():
        metadata = subscription("t", data=write_subscription(sent))
        given = assignment([("t", number)], write_assignment(got))
        members.append(Member(id, None, "client", "127.0.0.1", metadata, given))
    return Group("g", PLACE, "Stable", "consumer", "stream", tuple(members), 7, leader, "" if leader else "no record")


def share(
    number: int, used: int = 11, gets: int = 11, task: int | None = None, host: str = "h:1", **changed: Any
) -> Any:
    sent = SubscriptionInfo(used, 11, str(uuid.UUID(int=number)), end_point=f"h:{number + 1}")
    hosts = changed.pop("hosts", (("h:1", (("t", 0),)), ("h:2", (("t", 1),))))
    runs = (TaskId(0, number if task is None else task),)
    return number, sent, AssignmentInfo(gets, 11, runs, (), hosts)


OF_VERSION_7: Final = share(1, used=7)
BROKEN_STREAMS: Final[list[tuple[str, Group]]] = [
    ("streams/one-owner", streams({"a": share(0), "b": share(1, task=0)})),
    (
        "streams/decodable",
        streams({"a": share(0), "b": (1, SubscriptionInfo(7, 7, str(uuid.UUID(int=1))), share(1)[2])}),
    ),
    ("streams/lowest-version", streams({"a": share(0), "b": OF_VERSION_7})),
    ("streams/hosts", streams({"a": share(0, hosts=(("h:1", (("t", 1),)),)), "b": share(1)})),
]


def test_each_law_of_streams_is_broken_by_a_group() -> None:
    assert broken(streams({"a": share(0), "b": share(1)})) == set()
    for law, group in BROKEN_STREAMS:
        assert law in broken(group), law
    assert {law for law, _ in BROKEN_STREAMS} == {*OF_STREAMS}


def test_without_a_leader_the_versions_of_streams_are_not_judged() -> None:
    group = streams({"a": share(0), "b": share(1, gets=7)}, leader=None)
    found = judged(group, {"t": TOPICS["t"][:2]})
    assert [each.id for each in found.laws] == ["client/embeds-strictly", "assign/one-owner"]
    assert found.notes == ("metadata versions and host maps are not judged: who leads is not known (no record)",)


def test_user_data_that_cannot_be_read_is_not_judged() -> None:
    group = streams({"a": share(0), "b": share(1)})
    wrong = replace(group.members[0], metadata=subscription("t", data=b"\x00\x00"))
    found = judged(replace(group, members=(wrong, *group.members[1:])), TOPICS)
    assert found.unjudged == "a: SubscriptionInfo: user data has 2 bytes, and must have at least 4"


# KIP-848


def new(
    shares: Mapping[str, Sequence[tuple[str, int]]], state: str = "Stable", regex: str | None = None
) -> ConsumerGroup:
    members = tuple(
        ConsumerMember(id, None, "client", "127.0.0.1", None, 3, ("t",), regex, tuple(given), tuple(given), False)
        for id, given in shares.items()
    )
    return ConsumerGroup("g", PLACE, state, 3, 3, "uniform", members)


def test_each_law_of_the_new_groups_is_broken_by_a_group() -> None:
    assert broken(new({"a": t(0, 1), "b": t(2, 3)})) == set()
    assert broken(new({"a": t(0, 1), "b": t(1, 2)})) == {OF_HEARTBEATS[0]}
    assert broken(new({"a": t(0, 1), "b": u(0)})) == {OF_HEARTBEATS[1]}
    assert broken(new({"a": t(0, 1), "b": t(1)}, state="Reconciling")) == {OF_HEARTBEATS[0]}
    assert broken(new({"a": t(0), "b": u(0)}, state="Reconciling")) == set()
    assert broken(new({"a": t(0), "b": u(0)}, regex="u.*")) == set()


# What is not judged


@for_each(["PreparingRebalance", "CompletingRebalance"])
def test_a_group_that_rebalances_is_not_judged(state: str) -> None:
    found = judged(replace(classic("range", SOUND["range"]), state=state), TOPICS)
    assert found.unjudged.startswith(f"it is not Stable, but {state}")


def described(protocol_type: str, **changed: Any) -> Member:
    row = {"memberId": "a", "clientId": "c", "clientHost": "/10.0.0.1", "memberMetadata": b"", "memberAssignment": b"",
           **changed}  # fmt: skip
    group = {"groupId": "g", "protocolType": protocol_type, "members": [row]}
    return read_body(Group, 0, {"groups": [group]}, CONTEXT, coordinator=PLACE).as_written.members[0]


def test_bytes_that_are_no_subscription_are_shown_with_the_place() -> None:
    member = described("consumer", memberMetadata=bytes.fromhex("0001000000"))
    assert isinstance(member.subscription, Unreadable)
    assert "ConsumerProtocolSubscription" in member.subscription.why
    found = judged(replace(classic("range", {}), members=(member,)), {})
    assert found.unjudged.startswith("a: ConsumerProtocolSubscription")
    (only,) = found.broken
    assert only.law.id == "client/embeds-strictly" and "; leaders with kafka-clients 0.10.0.0 to" in only.violation.why


WRITTEN: Final = bytes.fromhex("0000 00000001 000174 ffffffff")
GIVEN: Final = bytes.fromhex("0000 00000000 ffffffff")
BYTES: Final[list[tuple[str, bytes, bytes, list[str], str]]] = [
    ("range", WRITTEN, GIVEN, [], ""),
    ("range", WRITTEN + b"more", GIVEN, [], ""),
    ("range", b"\0\1" + WRITTEN[2:], GIVEN,
     ["subscription of a: ConsumerProtocolSubscription v1 / ownedPartitions"], "a:"),
    ("range", WRITTEN, GIVEN[:-1], ["assignment of a: ConsumerProtocolAssignment v0 / userData"], "a:"),
    ("range", WRITTEN[:-1] + b"\xfe", GIVEN, ["subscription of a: ConsumerProtocolSubscription v0 / userData"], ""),
    ("stream", WRITTEN, GIVEN,
     ["subscription.userData of a: SubscriptionInfo v0", "assignment.userData of a: AssignmentInfo v0"], "a:"),
    ("sticky", WRITTEN[:-4] + b"\0\0\0\1\xff", GIVEN, [], ""),
]  # fmt: skip


@for_each(BYTES)
def test_what_members_wrote_is_read_by_its_own_version(
    protocol: str, written: bytes, given: bytes, expected: list[str], unjudged: str
) -> None:
    """Also where the rest of the group can be judged: Java reads a length below -1 as null."""
    member = described("consumer", memberMetadata=written, memberAssignment=given)
    found = judged(replace(classic(protocol, {}), members=(member,)), {"t": []})
    embeds = [each for each in found.broken if each.law.id == "client/embeds-strictly"]
    assert [each.violation.why.partition(" at byte ")[0] for each in embeds] == expected
    assert found.unjudged.startswith(unjudged) and bool(found.unjudged) == bool(unjudged)
    assert found.laws[0].id == "client/embeds-strictly"


def test_a_subscription_that_is_not_described_leaves_the_group_unjudged() -> None:
    """As of brokers of 2.3, whose record of the group the user may not read."""
    member = described("consumer", memberMetadata=GIVEN, memberAssignment=GIVEN)
    found = judged(replace(classic("range", {}), members=(member,)), {})
    assert found.unjudged == "a: its subscription is not described" and not found.broken


def test_an_assignment_in_place_of_the_subscription_is_not_read_as_one() -> None:
    """As brokers of 2.3 answer."""
    given = bytes.fromhex("0000000000010001740000000100000000ffffffff")
    member = described("consumer", memberMetadata=given, memberAssignment=given)
    assert member.subscription is None
    assert member.assignment == Assignment(0, (("t", 0),))


def test_a_group_of_another_kind_is_not_judged() -> None:
    member = described("connect", memberMetadata=b"{}")
    group = replace(classic("range", {}), protocol_type="connect", protocol="sessioned", members=(member,))
    assert judged(group, {}).unjudged == "its protocol type is connect, and not consumer"


# Upgrades


def reported(group: Group | ConsumerGroup) -> list[str]:
    return [*advice(Inspected(group, judged(group, TOPICS)))]


def test_an_eager_group_needs_two_bounces_to_cooperate() -> None:
    assert reported(classic("range", SOUND["range"]))[0].startswith("to cooperative rebalances: two rolling bounces")
    assert reported(classic("cooperative-sticky", SOUND["sticky"]))[0] == "to cooperative rebalances: done"


def test_a_streams_group_is_upgraded_as_the_matrix_shows() -> None:
    def of(*versions: tuple[int, int]) -> list[str]:
        shares = {
            f"m{number}": (
                number,
                SubscriptionInfo(used, latest, str(uuid.UUID(int=number))),
                share(number, gets=used)[2],
            )
            for number, (used, latest) in enumerate(versions)
        }
        return reported(streams(shares, leader="m0"))

    assert of((11, 11), (11, 11)) == [
        "from 3.6.2: one rolling bounce to 3.9.2, 4.3.1", "from 3.9.2: one rolling bounce to 4.3.1",
        "these ways are predictions: kipcheck matrix --from RELEASE --to RELEASE runs them",
    ]  # fmt: skip
    eager = of((4, 4))
    assert "from 2.3.1: two rolling bounces to 2.4.1, the first with upgrade.from=2.3 (bounce: broken)" in eager
    assert (
        "from 2.3.1: stop all members, then start all as 4.3.1 (two-bounce: broken; bounce: broken if a member fails)"
        in eager
    )
    assert of((4, 4), (4, 11))[0].startswith("an upgrade is under way")
    assert of((4, 11), (4, 11))[0].startswith("2 of 2 members use a metadata version below 11")


def test_the_partition_of_a_group_is_kafkas() -> None:
    # "polygenelubricants".hashCode() is Integer.MIN_VALUE, whose absolute value Kafka takes as 0.
    assert [partition_of(each, 50) for each in ("", "a", "polygenelubricants")] == [0, 47, 0]
