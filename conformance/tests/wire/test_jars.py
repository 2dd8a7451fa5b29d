"""Released jars agree with us, byte by byte: two oracle releases always, every line with ``--all-jars``."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.clients.java.programs import JavaCodec, Order, java_judge, parts
from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.tests.support.agreement import (
    BY_HAND,
    CONSUMER,
    STICKY,
    STREAMS,
    Disagreement,
    drawn,
    exactly,
    generated,
    in_substance,
    keepable,
    of,
    of_another_version,
)
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.releases import CLIENTS, STREAMS_JARS
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.schema import Layout, messages, release_table, served, spec

pytestmark = pytest.mark.jars

VALUES = 1000
"""Of each message, over its versions and the oracle releases."""
LEAST = 30
"""Of each version."""
CHANGED = (
    *("0.10.2.1", "0.11.0.2", "1.0.1", "1.1.0", "2.2.1", "2.3.0", "2.5.0", "2.6.0", "2.6.1", "2.8.0", "2.8.1"),
    *("3.6.0", "4.0.0", "4.2.1"),
)
"""Patches that behave unlike the last one of their line."""
SENDS_RECORDS = ("2.7.0", "2.7.1", "2.7.2")
"""In these only the writer that sends a response to a socket writes records."""
SHORT_TAGS = ("2.7.0", "2.8.0")
"""These compute a size that is too small for a tagged field whose size takes two bytes, and then fail to write it."""
NEWEST = {text.rpartition(".")[0]: text for text in release_table()["releases"]}
LINES = sorted({*NEWEST.values(), *CHANGED}, key=Release.parse)
GENERATED = [each for each in messages(APACHE) if each not in BY_HAND]


def none(found: Iterator[Disagreement]) -> None:
    """Show the first few of each kind."""
    seen: Counter[tuple[str, str]] = Counter()
    shown: list[str] = []
    for each in found:
        kind = (str(each.layout), each.what[:12])
        seen[kind] += 1
        if seen[kind] == 1 and len(shown) < 5:
            shown.append(str(each))
    assert not seen, "\n".join([f"{sum(seen.values())} disagreements", *shown])


@for_each(GENERATED)
def test_values_of_every_version_agree(message: str, judge: JavaCodec) -> None:
    pairs = [(release, each) for release in CLIENTS for each in of(release, message)]
    count = max(LEAST, VALUES // len(pairs) + 1)
    for release, each in pairs:
        none(exactly(judge, release, each, drawn(each, count)))


@for_each([each for each in GENERATED if each != "OffsetCommitKey"])
def test_a_field_that_a_version_lacks_is_dropped_or_refused_alike(message: str, judge: JavaCodec) -> None:
    """All but a key whose versions are two classes in the jar of 4.4.0."""
    for release in CLIENTS:
        none(of_another_version(judge, release, [*of(release, message)], 3))


@for_each(GENERATED)
def test_the_oracles_know_every_version_of_the_open_edition(message: str) -> None:
    """So ``apache`` alone, each version in the form of its newest speaker, is what was compared above."""
    compared = [on_the_wire(each) for release in CLIENTS for each in of(release, message)]
    assert [str(each) for each in spec(APACHE, message) if on_the_wire(each) not in compared] == []


@for_each(CLIENTS)
def test_the_messages_that_only_a_broker_answers_are_those_of_the_jars(release: str) -> None:
    """But for InitProducerId 6, which no release serves unless it is told to."""
    ours, theirs = edition(f"apache@{release}"), edition(f"maven:{release}")
    for message in served(ours):
        mine, other = spec(ours, message), spec(theirs, message)
        assert mine.versions == other.versions or message.startswith("InitProducerId"), message
        for each in mine:
            assert shape(each) == shape(other.at(each.version)), each


def shape(layout: Layout) -> Any:
    fields = [(slot.name[0].lower() + slot.name[1:], slot.type if slot.item is None else shape(slot.item), slot.array,
               slot.nullable, slot.compact, slot.tag, slot.default, slot.ignorable, slot.map_key)
              for slot in layout.slots]  # fmt: skip
    return layout.version, layout.flexible, fields


def on_the_wire(layout: Layout) -> Any:
    """The layout but for what only decides which values a writer takes."""
    slots = [(replace(each, ignorable=False, item=None), each.item and on_the_wire(each.item)) for each in layout.slots]
    return layout.version, layout.flexible, layout.prefix, slots


@pytest.mark.parametrize("release", STREAMS_JARS)
@pytest.mark.parametrize("message", STREAMS)
def test_streams_records_agree_in_substance(message: str, release: str, judge: JavaCodec) -> None:
    for each in of(release, message):
        none(in_substance(judge, release, each, drawn(each, VALUES // 10)))


@pytest.mark.parametrize("release", STREAMS_JARS)
def test_subscription_info_agrees_exactly(release: str, judge: JavaCodec) -> None:
    """Through the generated class inside, which keeps the order."""
    for each in of(release, "SubscriptionInfo"):
        none(exactly(judge, release, each, [keepable(each, value, release) for value in drawn(each, VALUES // 10)]))


@pytest.mark.parametrize("release", STREAMS_JARS)
def test_of_a_later_subscription_two_numbers_are_read_and_no_assignment_at_all(release: str, judge: JavaCodec) -> None:
    at = layout("apache", "SubscriptionInfo", 12)
    data = at.encode({"latestSupportedVersion": 13, "_rest": b"\xff\x00 whatever"})
    read = judge.one(Order("decode", "SubscriptionInfo", 12, hex=data.hex(), release=release))
    assert read.value == {"version": 12, "latestSupportedVersion": 13}
    assert at.decode(data) == {**read.value, "_rest": b"\xff\x00 whatever"}
    refused = judge.one(Order("decode", "AssignmentInfo", 12, hex=data.hex(), release=release))
    assert refused.thrown == "org.apache.kafka.streams.errors.TaskAssignmentException"
    with pytest.raises(LookupError):
        layout("apache", "AssignmentInfo", 12)


@pytest.mark.parametrize("release", STREAMS_JARS)
def test_timestamped_store_values_agree(release: str, judge: JavaCodec) -> None:
    (at,) = of(release, "ValueAndTimestamp")
    none(exactly(judge, release, at, drawn(at, VALUES // 5)))


@pytest.mark.parametrize("release", CLIENTS)
@pytest.mark.parametrize("message", [*CONSUMER, *STICKY])
def test_what_assignors_and_consumers_exchange_agrees(message: str, release: str, judge: JavaCodec) -> None:
    for each in of(release, message):
        none(in_substance(judge, release, each, drawn(each, VALUES // 5)))


def test_the_two_oracles_and_the_streams_jars_make_the_newest_versions(judge: JavaCodec) -> None:
    """What the jars say they have is what our table says that they speak."""
    for release in CLIENTS:
        for message in GENERATED:
            ours = [each.version for each in of(release, message)]
            reported = judge.one(Order("versions", message, release=release)).versions
            if ours:
                assert reported, f"{release} {message}"
                assert reported[0] <= ours[0] and ours[-1] <= reported[1], f"{release} {message}: {reported} and {ours}"


def test_unknown_tags_are_among_the_values() -> None:
    """So their keeping is compared too, at the top and inside elements."""
    values = drawn(layout("apache", "JoinGroupRequest", 9), 200)
    assert sum("_unknownTaggedFields" in value for value in values) > 20
    assert sum(any("_unknownTaggedFields" in each for each in value["protocols"]) for value in values) > 20


def test_what_a_jar_refuses_is_told_with_its_exception(judge: JavaCodec) -> None:
    cut = judge.one(Order("decode", "HeartbeatRequest", 4, hex="0267"))
    assert (cut.status, cut.thrown) == ("rejected", "java.nio.BufferUnderflowException")
    lacking = judge.one(Order("encode", "JoinGroupRequest", 4, {"groupInstanceId": "a"}))
    assert lacking.thrown == "org.apache.kafka.common.errors.UnsupportedVersionException"
    unknown = judge.one(Order("encode", "JoinGroupRequest", 4, {"nosuch": 1}))
    assert (unknown.status, unknown.message) == ("unsupported", "JoinGroupRequestData has no field nosuch")
    assert judge.one(Order("decode", "JoinGroupRequest", 99, hex="00")).status == "unsupported"
    assert judge.one(Order("decode", "NoSuchRequest", 0, hex="00")).status == "unsupported"


def test_integers_and_text_pass_the_pipe_unharmed(judge: JavaCodec) -> None:
    value = {"groupId": 'g\u0000é\U0001f600"\\', "commitTimestamp": -(2**63)}
    reported = judge.one(Order("encode", "OffsetCommitValue", 3, {"metadata": value["groupId"], "offset": 2**63 - 1}))
    assert reported.hex
    read = judge.one(Order("decode", "OffsetCommitValue", 3, hex=reported.hex))
    assert read.value["metadata"] == value["groupId"]
    assert read.value["offset"] == 2**63 - 1
    too_large = judge.one(Order("encode", "OffsetCommitValue", 3, {"offset": 2**63}))
    assert too_large.thrown == "java.lang.IllegalArgumentException"


def swapped(good: Layout) -> Layout:
    """Two fields of one size, in each other's place."""
    first, second = good.slots[1:3]
    return replace(good, slots=(good.slots[0], second, first, *good.slots[3:]))


def shifted(good: Layout) -> Layout:
    """A tag one too high."""
    slots = (each if each.tag is None else replace(each, tag=each.tag + 1) for each in good.slots)
    return replace(good, slots=tuple(slots))


def renamed(good: Layout) -> Layout:
    return replace(good, slots=(replace(good.slots[0], name="group"), *good.slots[1:]))


@pytest.mark.parametrize(
    ("message", "version", "plant"),
    [
        ("JoinGroupRequest", 5, swapped),
        ("ApiVersionsResponse", 4, shifted),
        ("HeartbeatRequest", 4, renamed),
    ],
)
def test_a_planted_mistake_in_a_layout_is_found(
    message: str, version: int, plant: Callable[[Layout], Layout], judge: JavaCodec
) -> None:
    good = layout("apache@3.9.2", message, version)
    assert not list(exactly(judge, "3.9.2", good, drawn(good, LEAST)))
    bad = plant(good)
    assert list(exactly(judge, "3.9.2", bad, drawn(bad, LEAST)))


def test_a_planted_ignorable_flag_is_found(judge: JavaCodec) -> None:
    good = [*of("3.9.2", "JoinGroupRequest")]
    old, *later = good
    dropping = replace(old, absent=tuple(replace(each, ignorable=True) for each in old.absent))
    assert dropping != old
    assert list(of_another_version(judge, "3.9.2", [dropping, *later], 3))


def test_a_planted_mistake_in_a_streams_layout_is_found(judge: JavaCodec) -> None:
    """The text of a host as the subscription writes it is not the text of a host in an assignment."""
    good = layout("apache@3.9.2", "AssignmentInfo", 4)
    at = [each.name for each in good.slots].index("errCode")
    bad = replace(good, slots=(*good.slots[: at - 1], good.slots[at], good.slots[at - 1], *good.slots[at + 1 :]))
    assert list(in_substance(judge, "3.9.2", bad, drawn(bad, LEAST)))


# -- every line


@pytest.mark.all_jars
@pytest.mark.parametrize("release", LINES)
def test_every_line_agrees(release: str) -> None:
    """Streams records and the consumer protocol from 0.10.0 on; all that is generated from 2.4.0 on, both ways."""
    have = parts(release)
    with java_judge({release: have}) as judge:
        for message in (*STREAMS, *CONSUMER, *STICKY):
            if message in STREAMS and "streams" not in have:
                continue
            for each in of(release, message):
                none(in_substance(judge, release, each, drawn(each, 200)))
        for each in of(release, "ValueAndTimestamp") if "streams" in have else ():
            none(exactly(judge, release, each, drawn(each, 200)))
        if Release.parse(release) < Release.parse("2.4.0"):
            return
        compared = 0
        for each in generated(release):
            if each.message in CONSUMER and Release.parse(release) < Release.parse("2.7.0"):
                continue
            if judge.one(Order("versions", each.message)).status == "unsupported":
                # The coordinators' records were not yet generated classes, or lie in no jar of this patch.
                assert each.message.endswith(("Key", "Value")), each
                continue
            if each.message == "FetchResponse" and release in SENDS_RECORDS:
                continue
            short = release in SHORT_TAGS
            values = [value for value in drawn(each, 40) if not short or len(value.get("clusterId") or "") < 30]
            none(exactly(judge, release, each, values))
            if each.message not in (*CONSUMER, "OffsetCommitKey") and each.newest:
                none(of_another_version(judge, release, [*of(release, each.message)], 2))
            compared += 1
        assert compared > 100
