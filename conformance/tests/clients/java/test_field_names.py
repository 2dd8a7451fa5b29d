"""What stands between the words of an edition and those of a release: nothing is lost in it, and nothing made up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.clients.java.field_names import Translated, names
from kipcheck.conformance.core.values.case import Case, Role, Step, step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Died, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.canonical_form import exceeds_collections
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Session, TargetInfo
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.schema import spec
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.messages import from_layout

RENAMED = "2.4.1"
"""It calls the generation of a commit otherwise."""


class Release:
    """A target that answers each operation with whatever the test says."""

    name = "release"

    def __init__(self, answers: Callable[[Step], Observation]) -> None:
        self.asked: list[Step] = []
        self._answers = answers

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        yield self

    info = TargetInfo("release", "0", "none", "", frozenset({Role.CODEC}))
    troubles: Sequence[str] = ()
    breaches: Sequence[str] = ()

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        self.asked += [each for case in cases for each in case.steps]
        return [tuple(self._answers(each) for each in case.steps) for case in cases]


def executed(
    release: str, answers: Callable[[Step], Observation], *steps: Step
) -> tuple[tuple[Observation, ...], list[Step]]:
    """What the gate sees, and what the release was asked."""
    behind = Release(answers)
    opened: AbstractContextManager[Session] = Translated(behind, release).open("apache", Role.CODEC)
    with opened as session:
        (found,) = session.run([Case("test", "apache", Role.CODEC, steps)])
    return found, behind.asked


def asked(verb: str, message: str, version: int, **body: Any) -> Step:
    return step("codec", verb, message=message, version=version, **body)


def answer(**payload: Any) -> Callable[[Step], Observation]:
    return lambda _: Replied(tuple(payload.items()))


def drawn(message: str, version: int, count: int) -> Iterator[dict[str, Any]]:
    at = layout("apache", message, version)
    draw, random = compiled(from_layout(at)), Random(message)
    for _ in range(count):
        yield at.codec.to_json(draw(random))


def test_a_field_goes_out_and_comes_back_under_the_name_of_its_reader() -> None:
    value = {"groupId": "g", "generationIdOrMemberEpoch": 5, "memberId": "m", "topics": []}
    theirs = {"groupId": "g", "generationId": 5, "memberId": "m", "topics": []}
    _, (out,) = executed(RENAMED, answer(hex=""), asked("encode", "OffsetCommitRequest", 6, value=value))
    assert out["value"] == theirs
    (back,), _ = executed(RENAMED, answer(value=theirs), asked("decode", "OffsetCommitRequest", 6, hex=""))
    assert back == Replied((("value", value),))


def test_a_tagged_field_that_a_release_does_not_know() -> None:
    """At its default nothing is lost without it; else the case is not for this release."""
    rest = {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0}
    reported, out = executed(
        RENAMED, answer(hex=""),
        asked("encode", "ApiVersionsResponse", 3, value={**rest, "finalizedFeaturesEpoch": -1}),
        asked("encode", "ApiVersionsResponse", 3, value={**rest, "finalizedFeaturesEpoch": 3}),
    )  # fmt: skip
    assert [dict(each["value"]) for each in out] == [rest]
    assert reported == (
        Replied((("hex", ""),)),
        Unsupported("this release does not know finalizedFeaturesEpoch", "fields"),
    )
    (read,), _ = executed(RENAMED, answer(value=rest), asked("decode", "ApiVersionsResponse", 3, hex=""))
    assert isinstance(read, Replied)
    assert read["value"] == layout("apache", "ApiVersionsResponse", 3).codec.to_json(
        layout("apache", "ApiVersionsResponse", 3).defaults()
    )
    seen = {**rest, "_unknownTaggedFields": [{"tag": 1, "data": "0000000000000003"}]}
    (bytes_only,), _ = executed(RENAMED, answer(value=seen), asked("decode", "ApiVersionsResponse", 3, hex=""))
    assert isinstance(bytes_only, Unsupported) and bytes_only.limit == "fields"
    other = {**rest, "_unknownTaggedFields": [{"tag": 77, "data": ""}]}
    (unknown,), _ = executed(RENAMED, answer(value=other), asked("decode", "ApiVersionsResponse", 3, hex=""))
    assert isinstance(unknown, Replied) and unknown["value"]["_unknownTaggedFields"] == other["_unknownTaggedFields"]


def test_what_a_release_leaves_out_is_not_made_up() -> None:
    (read,), _ = executed(RENAMED, answer(value={"groupId": "g"}), asked("decode", "OffsetCommitRequest", 6, hex=""))
    assert read == Replied((("value", {"groupId": "g"}),))


def test_names_are_lent_to_releases_that_have_none() -> None:
    assert names("2.4.0") is None
    lent = names("2.3.1")
    assert lent is not None and "ConsumerProtocolSubscription" not in lent
    assert {message: sorted(map(int, versions)) for message, versions in lent.items()} == {
        message: [each.version for each in spec(edition("apache@2.3.1"), message)] for message in lent
    }
    group, *_, protocols = lent["JoinGroupRequest"]["0"]
    assert group == {"name": "groupId", "array": False, "default": "", "fields": None}
    assert (protocols["name"], protocols["array"], protocols["default"]) == ("protocols", True, [])
    assert [each["name"] for each in protocols["fields"]] == ["name", "metadata"]


TWO = {"previousAssignment": [{"topic": topic, "partitions": [0]} for topic in ("b", "a")], "generation": 1}
SORTED = {"previousAssignment": [{"topic": topic, "partitions": [0]} for topic in ("a", "b")], "generation": 1}
OTHER = {"previousAssignment": [{"topic": topic, "partitions": [0]} for topic in ("a", "c")], "generation": 1}


def sticky(value: Mapping[str, Any]) -> str:
    at = layout("apache", "StickyAssignorUserData", 1)
    return at.encode(at.codec.from_json(value)).hex()


@pytest.mark.parametrize(
    ("comes", "kind"), [(TWO, Replied), (SORTED, Unsupported), (OTHER, Replied)], ids=["same", "sorted", "another"]
)
def test_an_order_that_its_class_does_not_keep_is_no_word_on_it_and_another_value_is(
    comes: Mapping[str, Any], kind: type[Observation]
) -> None:
    name = "StickyAssignorUserData"
    (written,), _ = executed("3.9.2", answer(hex=sticky(comes)), asked("encode", name, 1, value=TWO))
    (read,), _ = executed("3.9.2", answer(value=comes), asked("decode", name, 1, hex=sticky(TWO)))
    (again,), _ = executed("3.9.2", answer(hex=sticky(comes)), asked("recode", name, 1, hex=sticky(TWO)))
    assert {type(each) for each in (written, read, again)} == {kind}
    limits = {each.limit for each in (written, read, again) if isinstance(each, Unsupported)}
    assert limits == ({"values"} if kind is Unsupported else set())


def test_generated_classes_keep_their_order() -> None:
    """So where it differs that is told."""
    value = {"topics": ["b", "a"], "userData": None}
    wrong = {"topics": ["a", "b"], "userData": None}
    at = layout("apache", "ConsumerProtocolSubscription", 0)
    sent = asked("decode", "ConsumerProtocolSubscription", 0, hex=at.encode(at.codec.from_json(value)).hex())
    (read,), _ = executed("3.9.2", answer(value=wrong), sent)
    assert read == Replied((("value", wrong),))
    (by_hand,), _ = executed("2.6.3", answer(value=wrong), sent)
    assert isinstance(by_hand, Unsupported)


@pytest.mark.parametrize(
    "value",
    [
        {"prevTasks": [{"topicGroupId": 0, "partition": 1}] * 2},
        {"standbyTasks": [{"topicGroupId": 0, "partition": 1, "partitions": []}] * 2},
        {"standbyTasks": [{"topicGroupId": 0, "partition": 1, "partitions": [{"topic": "t", "partition": 0}] * 2}]},
        {"partitionsByHost": [{"host": "h", "port": 1, "partitions": []}] * 2},
        {"topics": [{"index": 1, "topic": "a"}, {"index": 1, "topic": "b"}]},
        {"topics": [{"index": 1, "topic": "a"}, {"index": 2, "topic": "a"}]},
        {
            "topics": [],
            "partitionsByHost": [{"host": "h", "port": 1, "partitions": [{"topicIndex": 3, "partition": 0}]}],
        },
        {"userEndPoint": "ff"},
    ],
)
def test_what_no_set_map_or_string_can_hold(value: dict[str, Any]) -> None:
    assert exceeds_collections(value)


def test_what_they_can_hold() -> None:
    tasks = [
        {"topicGroupId": 0, "partition": each, "partitions": [{"topic": "t", "partition": 0}]} for each in range(2)
    ]
    host = {"host": "h", "port": 1, "partitions": [{"topicIndex": 3, "partition": 0}]}
    topics = [{"index": 3, "topic": "a"}, {"index": 4, "topic": "b"}]
    assert not exceeds_collections(
        {"standbyTasks": tasks, "partitionsByHost": [host], "topics": topics, "userEndPoint": "61"}
    )
    assert not exceeds_collections({"topics": ["t", "t"]})  # of a subscription


def test_what_was_not_asked_leaves_the_other_answers_in_their_places() -> None:
    good = {"errorCode": 0, "apiKeys": [], "throttleTimeMs": 0}
    steps = [
        asked("encode", "ApiVersionsResponse", 3, value={**good, **more})
        for more in ({}, {"zkMigrationReady": True}, {})
    ]
    answers: Iterator[Observation] = iter([Replied((("hex", "01"),)), Died("crashed")])
    found, out = executed(RENAMED, lambda _: next(answers), *steps)
    assert len(out) == 2
    assert [type(each) for each in found] == [Replied, Unsupported, Died]


def test_a_refusal_passes() -> None:
    refused = Refused("java.lang.Exception", "no")
    assert executed(RENAMED, lambda _: refused, asked("decode", "HeartbeatRequest", 0, hex=""))[0] == (refused,)


def test_the_newest_release_needs_no_words_of_its_own() -> None:
    """Our own codec behind them is right in everything that it is asked."""
    target, count = Translated(InProcess(Reference()), "4.4.0"), 0
    with target.open("apache", Role.CODEC) as session:
        for message, version in (
            ("JoinGroupRequest", 9), ("ApiVersionsResponse", 5), ("AssignmentInfo", 11), ("StickyAssignorUserData", 1),
        ):  # fmt: skip
            at = layout("apache", message, version)
            for value in drawn(message, version, 10):
                data = at.encode(at.codec.from_json(value)).hex()
                steps = (asked("encode", message, version, value=value), asked("decode", message, version, hex=data))
                ((written, read),) = session.run([Case("test", "apache", Role.CODEC, steps)])
                assert (written, read) == (Replied((("hex", data),)), Replied((("value", value),)))
                count += 1
    assert count == 40
