"""What fails is brought down to the least value that fails, by our reducer and by Hypothesis alike."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any, cast

import pytest
from hypothesis import find, settings

from kipcheck.conformance.core.values.case import Case
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.engine.execution.worker import Finding, Unit, Worker
from kipcheck.conformance.engine.search.shrink import shrunk
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.wire import layout
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.body import body_node
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.messages import from_layout, layouts
from kipcheck.strategies.nodes import Blob, Embedded, Integer, Node, OneOf, Pick, Seq, Text, record
from kipcheck.strategies.parse import belongs
from kipcheck.strategies.reduce import least, reduce
from kipcheck.strategies.versions import version_mix

Fails = Callable[[Any], bool]


def of(message: str, version: int) -> Node:
    return from_layout(layout("apache", message, version))


def any_version(message: str) -> Node:
    return OneOf(tuple(body_node(each) for each in layouts("apache", message)))


def equal_members(value: Any) -> bool:
    return any(one == other for at, one in enumerate(value["members"]) for other in value["members"][:at])


def same_name(value: Any) -> bool:
    ids = [each["memberId"] for each in value["members"] if each["memberId"]]
    return len({*ids}) < len(ids)


ANSWERED = "JoinGroupResponse"
JOIN, ANSWER, VERSIONS = of("JoinGroupRequest", 9), of(ANSWERED, 9), of("ApiVersionsResponse", 4)
SUBSCRIPTION = of("ConsumerProtocolSubscription", 3)
MEMBER = from_layout(next(slot.item for slot in layout("apache", ANSWERED, 9).slots if slot.item))
FEATURE = {"name": "", "maxVersionLevel": 0, "minVersionLevel": 0}

PLANTED: dict[str, tuple[Node, Fails, Any]] = {
    "some protocol's metadata is longer than 3": (
        JOIN,
        lambda value: any(len(each["metadata"]) > 3 for each in value["protocols"]),
        least(JOIN) | {"protocols": [{"name": "", "metadata": bytes(4)}]},
    ),
    "a null instance id, from version 5 on": (
        any_version("JoinGroupRequest"),
        lambda body: body["version"] >= 5 and body["value"]["groupInstanceId"] is None,
        least(body_node(layout("apache", "JoinGroupRequest", 5))),
    ),
    "tags of a later day": (
        JOIN,
        lambda value: "_unknownTaggedFields" in value,
        least(JOIN) | {"_unknownTaggedFields": [{"tag": 0, "data": b""}]},
    ),
    "two tags of a later day": (
        VERSIONS,
        lambda value: len(value.get("_unknownTaggedFields", ())) > 1,
        least(VERSIONS) | {"_unknownTaggedFields": [{"tag": 4, "data": b""}, {"tag": 5, "data": b""}]},
    ),
    "two members are equal": (
        ANSWER,
        equal_members,
        least(ANSWER) | {"members": [least(MEMBER)] * 2},
    ),
    "a number above a limit": (
        JOIN,
        lambda value: value["sessionTimeoutMs"] > 1000,
        least(JOIN) | {"sessionTimeoutMs": 1001},
    ),
    "a number below a limit": (
        JOIN,
        lambda value: value["rebalanceTimeoutMs"] < -5,
        least(JOIN) | {"rebalanceTimeoutMs": -6},
    ),
    "a known tag is written": (
        VERSIONS,
        lambda value: any(each["maxVersionLevel"] > 7 for each in value["finalizedFeatures"]),
        least(VERSIONS) | {"finalizedFeatures": [FEATURE | {"maxVersionLevel": 8}]},
    ),
    "an epoch other than the default": (
        VERSIONS,
        lambda value: value["finalizedFeaturesEpoch"] != -1,
        least(VERSIONS) | {"finalizedFeaturesEpoch": 0},
    ),
    "an owned partition above 3": (
        SUBSCRIPTION,
        lambda value: any(n > 3 for each in value["ownedPartitions"] for n in each["partitions"]),
        least(SUBSCRIPTION) | {"ownedPartitions": [{"topic": "", "partitions": [4]}]},
    ),
    "a character that takes two bytes": (
        record(text=Text(0, 300), rest=Blob(0, 300)),
        lambda value: any(each > "\x7f" for each in value["text"]),
        {"text": "\x80", "rest": b""},
    ),
    "a member of another release": (
        version_mix("JoinGroupRequest"),
        lambda members: len({each["release"] for each in members}) > 1,
        [{"release": each, "versions": {"JoinGroupRequest": 0}} for each in ("0.10.0.0", "0.10.1.0")],
    ),
}


@pytest.mark.parametrize("name", some_by_default(PLANTED, 3))
def test_our_reducer_reaches_the_least_from_wherever_it_starts(name: str) -> None:
    node, fails, wanted = PLANTED[name]
    random = Random(7)
    failing = [value for value in islice(values(name, node, random), 2_000) if fails(value)][:12]
    assert len(failing) == 12
    for value in failing:
        assert reduce(node, value, fails) == wanted


def values(name: str, node: Node, random: Random) -> Iterator[Any]:
    draw = compiled(node)
    while True:
        value = draw(random)
        if name == "two members are equal":  # no luck brings that about
            value = {**value, "members": [*value["members"][:2], *value["members"][:2]]}
        yield value


BLOBS = from_layout(layout("apache", "JoinGroupRequest", 6), {"protocols.metadata": Blob(0, 300)})
HEARTBEATS = any_version("HeartbeatRequest")
LEAVING = of("LeaveGroupRequest", 4)
FOUND: dict[str, tuple[Node, Fails, Any]] = {
    "some protocol's metadata is longer than 3": (
        BLOBS,
        lambda value: any(len(each["metadata"]) > 3 for each in value["protocols"]),
        least(BLOBS) | {"protocols": [{"name": "", "metadata": bytes(4)}]},
    ),
    "a null instance id, from version 3 on": (
        HEARTBEATS,
        lambda body: body["version"] >= 3 and body["value"]["groupInstanceId"] is None,
        least(body_node(layout("apache", "HeartbeatRequest", 3))),
    ),
    "tags of a later day": (
        LEAVING,
        lambda value: "_unknownTaggedFields" in value,
        least(LEAVING) | {"_unknownTaggedFields": [{"tag": 0, "data": b""}]},
    ),
    "two members of one name": (
        LEAVING,
        same_name,
        least(LEAVING) | {"members": [{"memberId": "0", "groupInstanceId": None}] * 2},
    ),
    "a number below a limit": (
        of("HeartbeatRequest", 0),
        lambda value: value["generationId"] < -5,
        {"groupId": "", "generationId": -6, "memberId": ""},
    ),
    "a member of another release": PLANTED["a member of another release"],
}


@pytest.mark.long
@pytest.mark.parametrize("node, fails, wanted", FOUND.values(), ids=FOUND)
def test_hypothesis_reaches_the_least(node: Node, fails: Fails, wanted: Any) -> None:
    found = find(strategy(node), fails, settings=settings(database=None, max_examples=2_000), random=Random(0))
    assert found == wanted


def test_names_that_must_be_the_same_are_made_simpler_together() -> None:
    member = {"memberId": "consumer-1", "groupInstanceId": "i0", "metadata": b"\1\2"}
    value = least(ANSWER) | {"members": [member, {**member, "groupInstanceId": None}, {**member, "memberId": "b"}]}
    assert reduce(ANSWER, value, same_name) == least(ANSWER) | {"members": [least(MEMBER) | {"memberId": "0"}] * 2}


def test_two_names_become_one_where_an_item_can_then_be_left_out() -> None:
    steps = Seq(record(client=Pick(("a", "b", "c")), behind=Integer(0, 2)), 0, 9)

    def fails(value: list[dict[str, Any]]) -> bool:
        """``b`` needs a step in between, unless it made both of the others itself."""
        made_by = [each["client"] for each in value]
        return made_by == ["b", "a", "b", "b"] or (len(set(made_by)) == 1 and len(made_by) == 3)

    value = [{"client": each, "behind": 0} for each in "babb"]
    assert reduce(steps, value, fails) == [{"client": "a", "behind": 0}] * 3


def test_bytes_that_hold_a_message_are_reduced_as_that_message() -> None:
    inner = layout("apache", "ConsumerProtocolSubscription", 3)
    holder = OneOf((Blob(0, 300), Embedded("apache", inner.message, 3, from_layout(inner))))

    def fails(data: bytes) -> bool:
        try:
            return len(inner.decode(data)["topics"]) > 1
        except ValueError:
            return False

    value = {**inner.defaults(), "topics": ["orders", "t1", "payments"], "generationId": 5, "rackId": "r"}
    assert inner.decode(reduce(holder, inner.encode(value), fails)) == {
        **least(from_layout(inner)), "topics": ["", ""]
    }  # fmt: skip


def test_reduction_is_cheap() -> None:
    """Tries, not seconds: a slow target pays for each of them."""
    tried: list[Any] = []

    def fails(value: Any) -> bool:
        tried.append(value)
        return sum(len(each["metadata"]) for each in value["protocols"]) > 100

    draw, random = compiled(JOIN), Random(5)
    value = next(value for value in iter(lambda: draw(random), None) if fails(value))
    tried.clear()
    found = reduce(JOIN, value, fails)
    assert sum(len(each["metadata"]) for each in found["protocols"]) == 101
    assert len(tried) < 2_000


def test_a_value_that_does_not_belong_is_not_reduced() -> None:
    with pytest.raises(ValueError, match="9 is outside 0 to 3"):
        reduce(Integer(0, 3), 9, lambda _: True)


def test_the_predicate_decides_and_what_does_not_fail_is_kept() -> None:
    node = Seq(Integer(0, 9))
    assert reduce(node, [5, 7], lambda value: value == [5, 7]) == [5, 7]
    assert reduce(node, [5, 7, 1], lambda value: 7 in value) == [7]


def test_of_what_is_more_than_declared_only_steps_are_left_out() -> None:
    check = CHECKS["bounce/upgrade"]
    subject = next(each for each in check.family.subjects("apache") if check.about(each))
    value = next(value for first in check.first if not belongs(check.declaration(subject), value := first(subject)))
    unit = Unit("t", subject.edition, check.id, subject.name, subject.version, 0, None)
    (case,) = check.cases(subject, value, 0, 0, "")
    violation = Violation("it fails", (0,), shape=("it",))

    class Fails:
        """Whatever it is asked."""

        def violation(self, case: Case, invariant: Any, shape: Any) -> tuple[History, Violation]:
            return History(case, "t", ()), violation

        def every_violation(self, cases: Sequence[Case], invariant: Any) -> Any:
            return ((History(each, "t", ()), (violation,)) for each in cases)

        def renew(self) -> None:
            pass

    finding = Finding(unit, History(case, "t", ()), value, 0, "", "bounce/rests", violation)
    found = shrunk(cast(Worker, Fails()), finding)
    assert found is not None
    assert found.case.steps == case.steps[:1] and found.value == value


def test_a_failure_is_shrunk_in_its_own_way_wherever_it_stands_among_the_violations() -> None:
    check = CHECKS["bounce/upgrade"]
    unit = Unit("t", "apache", check.id, "bounce", None, 0, None)
    subject = check.family.subject("apache", "bounce", None)
    value = least(check.declaration(subject))
    (case,) = check.cases(subject, value, 0, 0, "")
    first, second = Violation("first", (0,), shape=("first",)), Violation("second", (0,), shape=("second",))

    class Fails(Worker):
        """Each case breaks the invariant in two ways."""

        def __init__(self) -> None:
            pass

        def every_violation(self, cases: Sequence[Case], invariant: Any) -> Any:
            return ((History(each, "t", ()), (first, second)) for each in cases)

        def renew(self) -> None:
            pass

    finding = Finding(unit, History(case, "t", ()), value, 0, "", "bounce/rests", second)
    found = shrunk(Fails(), finding)
    assert found is not None and (found.violation, found.shape[:1]) == (second, ("second",))
