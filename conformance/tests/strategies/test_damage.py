"""Damage hits what it is aimed at, and what is expected of readers holds for our strict one and for Kafka's rules."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import APACHE, EDITIONS
from kipcheck.conformance.tests.support.loops import for_each, some_by_default
from kipcheck.conformance.wire import Layout, layout
from kipcheck.conformance.wire.byte_map import Role
from kipcheck.conformance.wire.constructs import byte_map
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import MessageSpec, messages
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.damage import HEAVY, KINDS, USUAL, Damage, Outcome, damages, every_damage, prefixes
from kipcheck.strategies.legal import prefix_is_legal
from kipcheck.strategies.messages import from_layout, layouts
from kipcheck.strategies.parse import parse

each_message = for_each(messages(APACHE))


@cache
def drawn(one: Layout, number: int = 6) -> tuple[Mapping[str, Any], ...]:
    draw, random = compiled(from_layout(one)), Random(f"{one}")
    return tuple(draw(random) for _ in range(number))


def read(one: Layout, data: bytes, *, lenient: bool = False) -> Any:
    try:
        return one.decode(data, lenient=lenient)
    except Refused:
        return None


@each_message
@pytest.mark.integration
def test_values_come_back_and_the_map_has_the_bytes_of_the_codec(message: str) -> None:
    for one in layouts("apache", message):
        for value in drawn(one):
            data = one.encode(value)
            assert one.decode(data) == value
            mapped = byte_map(one, value)
            assert mapped.data == data and mapped.value == value
            ends = [0, *(place.end for place in mapped.spans)]
            assert [place.offset for place in mapped.spans] == ends[:-1] and ends[-1] == len(data)


@pytest.mark.parametrize(
    "edition", some_by_default([*(name for name in EDITIONS if name != "apache"), "apache@1.1.1", "apache@2.4.1"], 2)
)
def test_the_map_fits_drafts_and_single_releases(edition: str) -> None:
    for message in messages(EDITIONS[edition]) if edition in EDITIONS else ("SubscriptionInfo", "AssignmentInfo"):
        for one in layouts(edition, message):
            for value in drawn(one, 2):
                assert byte_map(one, value).value == value
                assert one.decode(one.encode(value)) == value


STRUCT = {"fields": [{"name": "X", "type": "int32", "versions": "0+"}]}
EVERYTHING = {
    "name": "Everything",
    "type": "data",
    "validVersions": "0-1",
    "flexibleVersions": "1+",
    "fields": [
        {"name": "F", "type": "float64", "versions": "0+"},
        {"name": "Fs", "type": "[]float64", "versions": "0+", "nullableVersions": "0+"},
        {"name": "R", "type": "records", "versions": "0+", "nullableVersions": "0+"},
        {"name": "P", "type": "uint16", "versions": "0+"},
        {"name": "B", "type": "bool", "versions": "0+"},
        {"name": "Us", "type": "[]uuid", "versions": "0+"},
        {"name": "S", "type": "S", "versions": "0+", "nullableVersions": "0+", **STRUCT},
        {"name": "T0", "type": "T0", "versions": "1+", "taggedVersions": "1+", "tag": 0, **STRUCT},
        {"name": "T1", "type": "T1", "versions": "1+", "taggedVersions": "1+", "tag": 1, "nullableVersions": "1+",
         "default": "null", **STRUCT},
        {"name": "T2", "type": "string", "versions": "1+", "taggedVersions": "1+", "tag": 2, "nullableVersions": "1+"},
        {"name": "T3", "type": "[]int64", "versions": "1+", "taggedVersions": "1+", "tag": 9, "nullableVersions": "1+",
         "default": "null"},
        {"name": "T4", "type": "float64", "versions": "1+", "taggedVersions": "1+", "tag": 10, "default": "0.5"},
        {"name": "T5", "type": "uuid", "versions": "1+", "taggedVersions": "1+", "tag": 12},
    ],
}  # fmt: skip


@pytest.mark.parametrize("version", [0, 1])
def test_what_no_message_here_has_is_drawn_and_mapped_too(version: int) -> None:
    one = MessageSpec.of(EVERYTHING, APACHE).at(version)
    node = from_layout(one)
    draw, random = compiled(node), Random(5)
    for _ in range(200):
        value = parse(node, draw(random))
        assert one.decode(one.encode(value)) == value
        assert byte_map(one, value).value == value
        for damage in damages(one, value, random):
            strict, lenient = read(one, damage.data), read(one, damage.data, lenient=True)
            if damage.outcome is Outcome.REFUSE:
                assert strict is None and lenient is None, damage
            if damage.outcome is Outcome.ACCEPT:
                assert strict == lenient == damage.value, damage


def test_the_map_of_a_request_is_what_one_would_write_on_paper() -> None:
    value = {
        **layout("apache", "JoinGroupRequest", 6).defaults(),
        "memberId": "m",
        "protocols": [{"name": "p", "metadata": b"\1\2", "_unknownTaggedFields": [{"tag": 5, "data": b"\7"}]}],
    }
    mapped = byte_map(layout("apache", "JoinGroupRequest", 6), value)
    assert [(each.role.name, each.path, each.offset, each.size, each.form) for each in mapped.spans] == [
        ("LENGTH", ("groupId",), 0, 1, "uvarint"),
        ("TEXT", ("groupId",), 1, 0, "string"),
        ("NUMBER", ("sessionTimeoutMs",), 1, 4, "int32"),
        ("NUMBER", ("rebalanceTimeoutMs",), 5, 4, "int32"),
        ("LENGTH", ("memberId",), 9, 1, "uvarint"),
        ("TEXT", ("memberId",), 10, 1, "string"),
        ("LENGTH", ("groupInstanceId",), 11, 1, "uvarint"),
        ("LENGTH", ("protocolType",), 12, 1, "uvarint"),
        ("TEXT", ("protocolType",), 13, 0, "string"),
        ("COUNT", ("protocols",), 13, 1, "uvarint"),
        ("LENGTH", ("protocols", 0, "name"), 14, 1, "uvarint"),
        ("TEXT", ("protocols", 0, "name"), 15, 1, "string"),
        ("LENGTH", ("protocols", 0, "metadata"), 16, 1, "uvarint"),
        ("BYTES", ("protocols", 0, "metadata"), 17, 2, "bytes"),
        ("TAG_COUNT", ("protocols", 0), 19, 1, "uvarint"),
        ("TAG", ("protocols", 0, "_unknownTaggedFields", 0), 20, 1, "uvarint"),
        ("TAG_SIZE", ("protocols", 0, "_unknownTaggedFields", 0), 21, 1, "uvarint"),
        ("BYTES", ("protocols", 0, "_unknownTaggedFields", 0), 22, 1, "tag"),
        ("TAG_COUNT", (), 23, 1, "uvarint"),
    ]
    counting = [each for each in mapped.spans if each.role in (Role.LENGTH, Role.COUNT)]
    spans = {each.path: mapped.ends.get(each.offset, each.end) - each.offset for each in counting}
    assert spans[("protocols",)] == 10 and spans[("protocols", 0, "metadata")] == 3 and spans[("groupInstanceId",)] == 1


def test_what_lies_in_a_known_tag_is_told_apart() -> None:
    one = layout("apache", "ApiVersionsResponse", 3)
    feature = {"name": "f", "minVersion": 1, "maxVersion": 2}
    mapped = byte_map(one, {**one.defaults(), "supportedFeatures": [feature], "zkMigrationReady": True})
    inside = {(each.role.name, each.path[0]) for each in mapped.spans if each.inside}
    assert {("COUNT", "supportedFeatures"), ("TEXT", "supportedFeatures"), ("BOOLEAN", "zkMigrationReady")} <= inside
    assert {each.path[0] for each in mapped.spans if each.inside} == {"supportedFeatures", "zkMigrationReady"}
    # A reader from before the tag was added passes over all of it.
    refused = {each.path for each in every_damage(one, mapped.value, ("length",)) if each.outcome is Outcome.REFUSE}
    assert refused == {"apiKeys", ""}


@each_message
@pytest.mark.integration
def test_outcomes_hold_for_our_reader_and_for_the_rules_of_kafka_s(message: str) -> None:
    for one in layouts("apache", message):
        random = Random(f"damage {one}")
        for value in drawn(one):
            for damage in damages(one, value, random):
                strict, lenient = read(one, damage.data), read(one, damage.data, lenient=True)
                reported = (damage.kind, damage.path, damage.offset, damage.data.hex())
                match damage.outcome:
                    case Outcome.REFUSE:
                        assert strict is None and lenient is None, reported
                    case Outcome.ACCEPT:
                        assert strict == lenient == damage.value, reported
                        assert one.encode(strict) == damage.data, reported
                    case Outcome.EITHER:
                        assert damage.value is None


@pytest.mark.parametrize(
    "message, version",
    [("JoinGroupRequest", 3), ("JoinGroupRequest", 9), ("ApiVersionsResponse", 4), ("StreamsGroupHeartbeatResponse", 1),
     ("AssignmentInfo", 11), ("SubscriptionInfo", 9), ("BrokerRegistrationRequest", 4)],
)  # fmt: skip
def test_every_damage_to_a_few_messages_has_its_outcome(message: str, version: int) -> None:
    one = layout("apache", message, version)
    for value in drawn(one, 3):
        for damage in every_damage(one, value):
            accepted = read(one, damage.data, lenient=True) is not None
            assert not (accepted and damage.outcome is Outcome.REFUSE), (damage.kind, damage.path, damage.data.hex())
            assert accepted or damage.outcome is not Outcome.ACCEPT, (damage.kind, damage.path, damage.data.hex())


@pytest.mark.parametrize("message, version", [("JoinGroupRequest", 3), ("JoinGroupRequest", 9), ("AssignmentInfo", 11)])
def test_large_inputs_are_refused_as_well(message: str, version: int) -> None:
    one = layout("apache", message, version)
    for damage in damages(one, drawn(one)[1], Random(1), HEAVY):
        assert len(damage.data) > 20_000
        assert damage.outcome is Outcome.EITHER or read(one, damage.data) is None


def test_every_kind_finds_a_place_somewhere_and_keeps_to_its_rule() -> None:
    seen: dict[str, Counter[Outcome]] = {kind: Counter() for kind in KINDS}
    for message in ("ApiVersionsResponse", "ConsumerGroupHeartbeatResponse", "ConsumerProtocolSubscription"):
        for one in layouts("apache", message):
            for value in drawn(one):
                for damage in damages(one, value, Random(str(one)), KINDS):
                    seen[damage.kind][damage.outcome] += 1
    for kind, outcomes in seen.items():
        assert outcomes[KINDS[kind].outcome], f"{kind} was never {KINDS[kind].outcome}"
        assert outcomes.keys() <= {KINDS[kind].outcome, Outcome.EITHER}
    assert {*USUAL, *HEAVY} == KINDS.keys() and not {*USUAL} & {*HEAVY}


def test_a_padded_varint_says_the_same_to_kafka() -> None:
    one = layout("apache", "ApiVersionsResponse", 3)
    for value in drawn(one):
        for damage in every_damage(one, value, ("padded-varint",)):
            assert read(one, damage.data, lenient=True) == value


def test_prefixes_are_cut_at_every_byte_of_short_messages() -> None:
    one = layout("apache", "HeartbeatRequest", 4)
    value = one.defaults()
    assert [damage.data for damage in prefixes(one, value)] == [one.encode(value)[:cut] for cut in range(8)]
    assert all(damage.offset == len(damage.data) for damage in prefixes(one, value))


def test_prefixes_of_long_messages_are_cut_around_every_place() -> None:
    one = layout("apache", "DescribeGroupsRequest", 0)
    value = {"groups": ["g" * 200, "h" * 200]}
    cuts = [len(damage.data) for damage in prefixes(one, value)]
    assert cuts == [0, 1, 3, 4, 5, 6, 7, 205, 206, 207, 208, 209, 407]


@pytest.mark.parametrize(
    "message, version, value, legal",
    [
        ("ValueAndTimestamp", 0, {"timestamp": 7, "value": b"abc"}, [8, 9, 10]),
        ("SubscriptionInfo", 12, {"version": 12, "latestSupportedVersion": 12, "_rest": b"ab"}, [8, 9]),
        ("StickyAssignorUserData", 1, {"previousAssignment": [], "generation": 7}, [4, 5, 6, 7]),
        ("StickyAssignorUserData", 0, {"previousAssignment": []}, []),
        ("ApiVersionsResponse", 1, {"errorCode": 35, "apiKeys": [], "throttleTimeMs": 0}, [6, 7, 8, 9]),
        ("ApiVersionsResponse", 0, {"errorCode": 35, "apiKeys": []}, []),
        ("HeartbeatResponse", 1, {"throttleTimeMs": 0, "errorCode": 0}, []),
        ("ConsumerProtocolSubscription", 1, {"topics": [], "userData": None, "ownedPartitions": []}, []),
    ],
)
def test_a_shorter_layout_that_is_itself_legal_is_no_damage(
    message: str, version: int, value: dict[str, Any], legal: list[int]
) -> None:
    one = layout("apache", message, version)
    data = one.encode(value)
    assert [cut for cut in range(len(data)) if prefix_is_legal(one, data[:cut])] == legal
    assert {len(damage.data) for damage in prefixes(one, value)} == {*range(len(data))} - {*legal}


def test_what_old_releases_write_and_never_read_may_be_cut_off() -> None:
    one = layout("apache@1.1.1", "SubscriptionInfo", 1)
    value = {**one.defaults(), "userEndPoint": b"h:1"}
    whole, read_by_1_1 = len(one.encode(value)), len(layout("apache", "SubscriptionInfo", 1).encode({}))
    assert whole == read_by_1_1 + 7
    assert [len(each.data) for each in prefixes(one, value)] == [*range(read_by_1_1)]
    past_the_end = {each.path: each.outcome for each in every_damage(one, value, ("length",))}
    assert past_the_end == {
        "prevTasks": Outcome.REFUSE, "standbyTasks": Outcome.REFUSE, "userEndPoint": Outcome.EITHER,
    }  # fmt: skip


def test_what_assignors_take_for_nothing_need_not_be_refused() -> None:
    for message in ("StickyAssignorUserData", "CooperativeStickyAssignorUserData"):
        one = layout("apache", message, 0)
        assert {damage.outcome for damage in every_damage(one, drawn(one)[0])} == {Outcome.EITHER}


def test_an_unknown_tag_in_the_data_of_a_known_one_keeps_the_sizes_right() -> None:
    one = layout("apache", "ApiVersionsResponse", 3)
    feature = {"name": "f" * 120, "minVersion": 1, "maxVersion": 2}
    value = {**one.defaults(), "supportedFeatures": [feature]}
    nested = [each for each in every_damage(one, value, ("unknown-tag",)) if each.path == "supportedFeatures[0]"]
    assert len(nested) == 3
    for damage in nested:
        assert damage.value is not None and one.encode(damage.value) == damage.data


# Readers with one vice each: damage finds it out.

Reader = Callable[[Layout, bytes], Any]


def _pads_what_is_short(one: Layout, data: bytes) -> Any:
    return next((found for more in range(20) if (found := read(one, data + bytes(more))) is not None), None)


def _clips_long_lengths(one: Layout, data: bytes) -> Any:
    if (found := read(one, data)) is not None:
        return found
    for at, length in ((at, length) for at in range(len(data)) for length in range(128)):
        if data[at] != length and (found := read(one, data[:at] + bytes((length,)) + data[at + 1 :])) is not None:
            return found
    return None


def _reads_endless_varints(one: Layout, data: bytes) -> Any:
    return read(one, re.sub(rb"([\x80-\xff])\x80{4,}\0", lambda found: bytes((found[1][0] & 0x7F,)), data))


def _knows_all_tags_there_will_be(one: Layout, data: bytes) -> Any:
    found = read(one, data)
    return found if found is None or "_unknownTaggedFields" not in repr(found) else None


@pytest.mark.parametrize(
    "kind, reader",
    [
        ("prefix", _pads_what_is_short),
        ("length", _clips_long_lengths),
        ("long-varint", _reads_endless_varints),
        ("unknown-tag", _knows_all_tags_there_will_be),
    ],
)
def test_a_reader_with_a_vice_is_found_out(kind: str, reader: Reader) -> None:
    one = layout("apache", "HeartbeatRequest", 4)
    value = {**one.defaults(), "groupId": "g", "memberId": "m"}
    assert reader(one, one.encode(value)) == value
    assert not [*_broken(one, value, kind, read)]
    assert [*_broken(one, value, kind, reader)]


def _broken(one: Layout, value: Mapping[str, Any], kind: str, reader: Reader) -> Iterator[Damage]:
    for damage in every_damage(one, value, (kind,)):
        accepted = reader(one, damage.data) is not None
        if accepted != (damage.outcome is Outcome.ACCEPT) and damage.outcome is not Outcome.EITHER:
            yield damage
