"""Editions: the table of releases, what differs between two editions, and who reads what of whom."""

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.diff import Compatibility, Diff, VersionDiff, compatibility, diff
from kipcheck.conformance.wire.editions import editions_table, text
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout, MessageSpec, messages, spec


def message(*fields: Mapping[str, Any], versions: str = "0", flexible: str = "none", **more: object) -> dict[str, Any]:
    reported = {"type": "request", "name": "Ping", "validVersions": versions, "flexibleVersions": flexible}
    return {**reported, **more, "fields": fields}


def field(name: str, type: str = "int32", versions: str = "0+", **more: object) -> dict[str, Any]:
    return {"name": name, "type": type, "versions": versions, **more}


def resolved(raw: Mapping[str, Any], version: int = 0) -> Layout:
    return MessageSpec.of(raw, APACHE).at(version)


# ---- the table


def test_the_table_names_exact_patches() -> None:
    releases = editions_table()["releases"]
    assert (*releases,) == patches() and len(releases) >= 80
    assert releases["3.9.2"]["JoinGroup"] == [0, 9]
    assert releases["4.0.0"]["JoinGroup"] == [2, 9] and releases["4.0.1"]["JoinGroup"] == [0, 9]
    assert releases["2.6.0"]["SubscriptionInfo"] == [1, 7] and releases["2.6.1"]["SubscriptionInfo"] == [1, 8]
    assert "ConsumerGroupHeartbeat" not in releases["3.6.2"] and "UpdateFeatures" not in releases["2.6.3"]
    assert releases["4.1.0"]["OffsetCommit"] == [2, 9], "version 10 was unstable in 4.1"
    assert releases["3.4.0"]["GroupMetadataValue"] == [0, 3] and releases["3.4.1"]["GroupMetadataValue"] == [0, 4]
    assert releases["3.9.2"]["GroupMetadataKey"] == releases["4.4.0"]["GroupMetadataKey"] == [2, 2]


def test_the_table_as_text_names_every_family_once() -> None:
    lines = text().splitlines()
    for family in editions_table()["releases"]["4.4.0"]:
        assert sum(line.split(" ")[0] == family for line in lines) == 1


# ---- who reads what of whom

TWO = (field("First", "int16"), field("Second", "int16"))
TAGGED = field("Extra", "string", taggedVersions="0+", tag=0)


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        (message(*TWO), message(*TWO), Compatibility.SAME),
        (message(*TWO), message(*TWO[::-1]), Compatibility.MISREADS),
        (message(TWO[0], field("Other", "int16")), message(*TWO), Compatibility.SAME),
        (message(*TWO), message(TWO[0]), Compatibility.MISREADS),
        (message(*TWO, flexible="0+"), message(*TWO), Compatibility.MISREADS),
        (message(field("A", "uint16")), message(field("A", "int16")), Compatibility.MISREADS),
        (message(field("A", "records")), message(field("A", "bytes", nullableVersions="0+")), Compatibility.SAME),
        (message(TAGGED, flexible="0+"), message(flexible="0+"), Compatibility.SKIPS),
        (message(flexible="0+"), message(TAGGED, flexible="0+"), Compatibility.SAME),
        (message(TAGGED, flexible="0+"), message({**TAGGED, "tag": 7}, flexible="0+"), Compatibility.SKIPS),
        (message(TAGGED, flexible="0+"), message({**TAGGED, "default": "x"}, flexible="0+"), Compatibility.MISREADS),
        (message(TAGGED, flexible="0+"), message({**TAGGED, "type": "bytes"}, flexible="0+"), Compatibility.MISREADS),
        (message(field("A", "string", nullableVersions="0+")), message(field("A", "string")), Compatibility.REFUSES),
        (message(field("A", "string")), message(field("A", "string", nullableVersions="0+")), Compatibility.SAME),
        (
            message(field("A", "S", fields=TWO)),
            message(field("A", "S", nullableVersions="0+", fields=TWO)),
            Compatibility.MISREADS,
        ),
        (message(field("A", "[]S", fields=TWO)), message(field("A", "[]T", fields=TWO)), Compatibility.SAME),
        (message(field("A", "[]S", fields=TWO)), message(field("A", "[]S", fields=TWO[::-1])), Compatibility.MISREADS),
        (message(*TWO, prefix={"type": "int16"}), message(*TWO), Compatibility.MISREADS),
    ],
)
def test_a_reader_reads_skips_refuses_or_misreads(writer: Any, reader: Any, expected: Compatibility) -> None:
    assert compatibility(resolved(writer), resolved(reader)) is expected


def of(found: Diff, message: str, version: int) -> VersionDiff:
    """What is told of one version. Errors: StopIteration where nothing is."""
    reported = next(each for each in found.messages if each.message == message)
    return next(each for each in reported.versions if each.version == version)


@pytest.mark.parametrize("name", ["apache", "apache@0.10.0.0", "apache@3.9.2", "kip-268", "kip-584"])
def test_nothing_differs_from_itself(name: str) -> None:
    found = diff(edition(name), edition(name))
    assert found.messages == () and not found.misreads and found.compared > 20


@pytest.mark.parametrize(
    ("a", "b"), [("apache@2.7.0", "kip-584"), ("apache@2.3.0", "kip-429"), ("apache@3.7.2", "apache")]
)
def test_the_other_way_round_is_the_mirror_image(a: str, b: str) -> None:
    there, back = diff(edition(a), edition(b)), diff(edition(b), edition(a))
    assert [(each.message, each.a, each.b) for each in there.messages] == [(e.message, e.b, e.a) for e in back.messages]
    for one, other in zip(there.messages, back.messages, strict=True):
        assert [(each.version, each.a_of_b, each.b_of_a, each.unbumped) for each in one.versions] == [
            (each.version, each.b_of_a, each.a_of_b, each.unbumped) for each in other.versions
        ]


def test_an_old_reader_skips_the_tags_of_kip_584() -> None:
    found = diff(edition("apache@2.6.3"), edition("kip-584"))
    reported = of(found, "ApiVersionsResponse", 3)
    assert (reported.a_of_b, reported.b_of_a, reported.unbumped) == (Compatibility.SKIPS, Compatibility.SAME, True)
    assert not found.misreads
    new = {each.message for each in found.messages if each.a is None}
    assert new == {"UpdateFeaturesRequest", "UpdateFeaturesResponse"}


def test_the_draft_of_update_features_has_another_api_key() -> None:
    found = diff(edition("apache@2.7.0"), edition("kip-584"))
    reported = next(each for each in found.messages if each.message == "UpdateFeaturesRequest")
    assert reported.keys == (57, 52) and reported.as_json()["apiKey"] == {"a": 57, "b": 52}
    assert of(found, "UpdateFeaturesRequest", 0).a_of_b is Compatibility.MISREADS and found.misreads


def test_version_5_of_join_group_means_another_thing_in_kip_429() -> None:
    reported = of(diff(edition("apache@2.3.0"), edition("kip-429")), "JoinGroupRequest", 5)
    assert reported.unbumped and reported.a_of_b is reported.b_of_a is Compatibility.MISREADS
    assert ("groupInstanceId", "field", None) in [(each.path, each.what, each.b) for each in reported.differences]
    before = diff(edition("apache@2.2.2"), edition("kip-429"))
    assert not before.misreads, "2.2.2 does not support version 5"
    assert str(next(each.a for each in before.messages if each.message == "JoinGroupRequest")) == "0-4"


def test_between_3_9_2_and_4_4_0_only_tags_and_flags_changed_under_a_number() -> None:
    found = diff(edition("apache@3.9.2"), edition("apache@4.4.0"))
    unbumped = {each.message for each in found.messages if any(version.unbumped for version in each.versions)}
    assert unbumped == {
        "ConsumerGroupCurrentMemberAssignmentValue",
        "ConsumerGroupMetadataValue",
        "ConsumerGroupTargetAssignmentMetadataValue",
        "OffsetCommitValue",
        "TransactionLogValue",
    }
    assert not found.misreads
    assert not of(found, "OffsetCommitRequest", 8).unbumped


@pytest.mark.parametrize("name", ["apache@3.9.9", "apache@5.0.0", "jar:/nowhere.jar"])
def test_what_is_no_edition_cannot_be_compared(name: str) -> None:
    with pytest.raises(LookupError):
        diff(edition(name), APACHE)
    with pytest.raises(LookupError):
        diff(APACHE, edition(name))


def test_a_diff_is_told_as_json_and_as_text() -> None:
    found = diff(edition("apache@2.3.0"), edition("kip-429"))
    reported = json.loads(json.dumps(found.as_json()))
    assert reported["a"] == "apache@2.3.0" and reported["misreads"] is True and reported["compared"] == found.compared
    joined = next(each for each in reported["messages"] if each["message"] == "JoinGroupRequest")
    assert joined["a"] == joined["b"] == [0, 5]
    assert joined["versions"][0]["reads"] == {"a_of_b": "misreads", "b_of_a": "misreads"}
    assert "v5 (changed without a version bump)" in found.text()
    assert "groupInstanceId: nullable string in A, not in B" in found.text()


@pytest.mark.jars
@pytest.mark.all_jars
def test_consumer_group_heartbeat_changed_while_it_was_unstable() -> None:
    reported = of(diff(edition("maven:3.6.2"), edition("maven:3.7.2")), "ConsumerGroupHeartbeatRequest", 0)
    assert reported.unbumped and reported.misreads and reported.unstable == ("maven:3.6.2",)


@pytest.mark.jars
def test_a_release_read_from_its_jars_is_the_release_as_declared() -> None:
    found = diff(edition("apache@3.9.2"), edition("maven:3.9.2"))
    common = [each for each in found.messages if each.a and each.b]
    assert [each.message for each in common if any(version.unbumped for version in each.versions)] == []
    assert not found.misreads
    assert found.missing == ()


# ---- the judgement against the codec


@pytest.mark.parametrize(
    ("a", "b"),
    some_by_default(
        [
            ("apache@2.6.3", "kip-584"),
            ("apache@2.3.0", "kip-429"),
            ("apache@3.9.2", "apache@4.4.0"),
            ("apache@3.5.2", "apache"),
        ],
        2,
    ),
)
def test_what_is_judged_the_same_decodes_to_the_same(a: str, b: str) -> None:
    left, right = edition(a), edition(b)
    judged = []
    for name in {*messages(left)} & {*messages(right)}:
        for version in {each.version for each in spec(left, name)} & {each.version for each in spec(right, name)}:
            writer, reader = layout(left, name, version), layout(right, name, version)
            value = filled(writer)
            written = writer.encode(value)
            judged.append(compatibility(writer, reader))
            if judged[-1] is Compatibility.MISREADS:
                with suppress(Refused):
                    assert values_of(reader.decode(written)) != values_of(value), f"{name} v{version}"
            else:
                read = reader.decode(written)
                assert reader.encode(read) == written, f"{name} v{version}"
                assert ("_unknownTaggedFields" in repr(read)) == (judged[-1] is Compatibility.SKIPS), (
                    f"{name} v{version}"
                )
    assert judged.count(Compatibility.SAME) > 100


def filled(at: Layout) -> dict[str, Any]:
    """A value with no field at its default and one element in each array."""
    value: dict[str, Any] = {}
    for number, slot in enumerate(at.slots, 1):
        one: Any = filled(slot.item) if slot.item else FILLING[slot.type](number)
        value[slot.name] = [one] if slot.array else one
    return value


FILLING: dict[str, Any] = {
    "bool": lambda _: True,
    "bytes": lambda number: b"b" * number,
    "float64": float,
    "records": lambda number: b"c" * number,
    "rest": lambda number: b"r" * number,
    "string": lambda number: "s" * number,
    "utf": lambda number: "u" * number,
    "utf16": lambda number: "u" * number,
    "uuid": lambda number: uuid.UUID(int=number),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16"), int),
}


def values_of(value: Any) -> list[Any]:
    """Without the names, in order."""
    if isinstance(value, dict):
        return [each for key, item in value.items() if key != "version" for each in values_of(item)]
    if isinstance(value, list):
        return [each for item in value for each in values_of(item)]
    return [value]
