"""Our declarations against the definitions and schema objects in released jars, field by field."""

import copy
import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from os import pathsep
from shutil import which
from typing import Any

import pytest

from conformance import artifacts
from conformance.core.edition import APACHE, EDITIONS, Edition, Standing, edition
from conformance.core.release import NEWEST, Release, releases
from conformance.targets.java import program
from conformance.tests.old_names import OLD
from conformance.wire.definitions import in_jar
from conformance.wire.diff import differences_of
from conformance.wire.schema import (
    SCALARS,
    Layout,
    MessageSpec,
    Raw,
    Versions,
    family,
    messages,
    release_table,
    spec,
    spoken,
)

SCHEMAS = files("conformance.wire") / "schemas"
RELEASES = [Release.parse(each) for each in release_table()["releases"]]
HOLDERS = {
    "kafka_2.13": "2.8.0-3.8.1",
    "kafka-clients": "2.2.0+",
    "kafka-group-coordinator": "3.5.0-4.2.1, 4.3.0+",
    "kafka-transaction-coordinator": "3.9.0-4.2.1, 4.3.0+",
    "kafka-metadata": "2.8.0-4.2.1, 4.3.0+",
    "kafka-streams": "2.5.0-4.2.1, 4.3.0-4.3.1",
}
"""The jars that define messages of ours, and the releases in which they do (and are published)."""
DEFINED = {
    "ConsumerProtocolSubscription": "2.7.0+",
    "ConsumerProtocolAssignment": "2.7.0+",
    # Before, the definition of the request header was there, not used, and numbered otherwise.
    "RequestHeader": "2.4.0+",
    "ResponseHeader": "2.4.0+",
    "SubscriptionInfo": HOLDERS["kafka-streams"],
    # Nothing but code says what these look like: golden vectors stand for them.
    "AssignmentInfo": "none",
    "StickyAssignorUserData": "none",
    "CooperativeStickyAssignorUserData": "none",
    "ValueAndTimestamp": "none",
}
"""Since when there is a definition to compare with, where that is not 2.2.0."""
RECORDS = HOLDERS["kafka-metadata"]
CHOSEN = {("SubscriptionInfo", "taskOffsetSums.namedTopology", "default", None, "")}
"""Where we differ on purpose: releases write null for a task without a topology name, which is not their default."""


@cache
def declared(message: str, folder: str = "apache") -> Raw:
    raw: Raw = json.loads((SCHEMAS / folder / f"{message}.json").read_text())
    return raw


def names(folder: str = "apache") -> list[str]:
    return sorted(each.name.removesuffix(".json") for each in (SCHEMAS / folder).iterdir())


# ---- definitions, from 2.2.0 on


def is_defined(message: str, release: str) -> bool:
    kind = declared(message)["type"]
    usual = RECORDS if kind.startswith("coordinator") or kind == "metadata" else "2.2.0+"
    text = DEFINED.get(message, usual)
    return text != "none" and Release.parse(release) in releases(text)


def in_release(release: str) -> dict[str, Raw]:
    """What the jars of a release define. Errors: ``Unavailable``."""
    held = [name for name, text in HOLDERS.items() if Release.parse(release) in releases(text)]
    jars = artifacts.fetch(f"org.apache.kafka:{name}:{release}" for name in held)
    return {name: raw for path in jars.values() for name, raw in in_jar(path).items()}


def as_defined(raw: Raw, where: str) -> MessageSpec:
    """In its stable versions: what only an unstable one has is not there."""
    found = MessageSpec.of(raw, Edition(f"jar:{where}", Standing.DEFINITIONS, ""))
    if found.unstable is None:
        return found
    return MessageSpec.of(raw, found.edition, Versions(found.versions.low, found.unstable - 1))


def disagreements(ours: MessageSpec, theirs: MessageSpec) -> Iterator[tuple[object, ...]]:
    """All that the two say differently in the versions that ours has: message, path, what, ours, theirs."""
    if ours.versions != theirs.versions:
        yield ours.name, "", "versions", str(ours.versions), str(theirs.versions)
    if ours.api_key != theirs.api_key:
        yield ours.name, "", "apiKey", ours.api_key, theirs.api_key
    for layout in ours:
        if layout.version not in theirs.versions:
            continue
        other = theirs.at(layout.version)
        for each in differences_of(layout, other):
            yield ours.name, each.path, each.what, each.a, each.b
        if (left := absent(layout)) != (right := absent(other)):
            yield ours.name, "", "absent", left - right, right - left


def absent(layout: Layout, path: str = "") -> set[str]:
    """The paths of the fields that the declaration has and this version lacks."""
    found = {f"{path}{each.name}" for each in layout.absent}
    for slot in layout.slots:
        if slot.item:
            found |= absent(slot.item, f"{path}{slot.name}.")
    return found


def compared(release: str) -> tuple[int, set[tuple[object, ...]]]:
    """Of one release: how many message versions were compared, and all that disagrees."""
    at, found = edition(f"apache@{release}"), in_release(release)
    count, told = 0, set()
    for message in messages(at):
        if is_defined(message, release):
            ours, theirs = spec(at, message), as_defined(found[message], release)
            count += len([*ours])
            told |= set(disagreements(ours, theirs))
    return count, told


@pytest.mark.jars
@pytest.mark.parametrize(("release", "least"), [("3.9.2", 239), ("4.4.0", 249)])
def test_the_declarations_are_the_definitions(release: str, least: int) -> None:
    count, told = compared(release)
    assert told - CHOSEN == set()
    assert count >= least


@pytest.mark.jars
@pytest.mark.all_jars
@pytest.mark.parametrize("release", [str(each) for each in RELEASES if each in releases("2.2.0+")])
def test_the_declarations_are_the_definitions_of_every_release(release: str) -> None:
    count, told = compared(release)
    assert told - CHOSEN == set()
    assert count > 90


@pytest.mark.jars
def test_what_we_chose_to_differ_in_does_differ() -> None:
    assert compared("3.9.2")[1] == CHOSEN


# ---- the comparison itself


def changed(raw: Raw, change: Callable[[Any], object]) -> Raw:
    copied = copy.deepcopy(raw)
    change(copied)
    return copied


LATE = {"name": "Late", "type": "int8", "versions": "6"}


def swap(fields: list[Any], one: int, other: int) -> None:
    fields[one], fields[other] = fields[other], fields[one]


@pytest.mark.parametrize(
    ("message", "defect", "what"),
    [
        ("JoinGroupRequest", lambda raw: swap(raw["fields"], 0, 5), "order"),
        ("UpdateFeaturesRequest", lambda raw: swap(raw["fields"], 1, 2), "order"),
        ("JoinGroupRequest", lambda raw: raw["fields"].pop(), "field"),
        ("JoinGroupRequest", lambda raw: raw["fields"][1].update(name="SessionTimeout"), "name"),
        ("JoinGroupRequest", lambda raw: raw["fields"][1].update(type="int64"), "type"),
        ("JoinGroupRequest", lambda raw: raw["fields"][2].update(default="0"), "default"),
        ("JoinGroupRequest", lambda raw: raw["fields"][4].update(versions="4+"), "field"),
        ("JoinGroupRequest", lambda raw: raw["fields"][4].update(ignorable=True), "ignorable"),
        ("JoinGroupRequest", lambda raw: raw["fields"][0].update(nullableVersions="9+"), "nullable"),
        ("JoinGroupRequest", lambda raw: raw["fields"][6]["fields"][0].pop("mapKey"), "mapKey"),
        ("JoinGroupRequest", lambda raw: raw.update(flexibleVersions="7+"), "flexible"),
        ("JoinGroupRequest", lambda raw: raw.update(validVersions="0-8"), "versions"),
        ("JoinGroupRequest", lambda raw: raw.update(apiKey=12), "apiKey"),
        ("ApiVersionsResponse", lambda raw: raw["fields"][3].update(tag=9), "tag"),
        ("GroupMetadataKey", lambda raw: raw.pop("prefix"), "prefix"),
        ("FindCoordinatorResponse", lambda raw: raw["fields"].append(dict(LATE)), "absent"),
    ],
)
def test_a_planted_defect_is_found(message: str, defect: Callable[[Any], object], what: str) -> None:
    raw = declared(message)
    ours, theirs = MessageSpec.of(changed(raw, defect), APACHE), MessageSpec.of(raw, APACHE)
    assert what in {each[2] for each in disagreements(ours, theirs)}
    assert not [*disagreements(theirs, MessageSpec.of(copy.deepcopy(raw), APACHE))]


# ---- schema objects, up to 2.6

WORDS = {
    "BOOLEAN": "bool", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64", "STRING": "string",
    "BYTES": "bytes", "NULLABLE_STRING": "string?", "NULLABLE_BYTES": "bytes?",
}  # fmt: skip
CONSTANTS = {
    "Protocol.REQUEST_HEADER": ("RequestHeader", 1),
    "Protocol.RESPONSE_HEADER": ("ResponseHeader", 0),
    "RequestHeader.CONTROLLED_SHUTDOWN_V0_SCHEMA": ("RequestHeader", 0),
    "RequestHeader.SCHEMA": ("RequestHeader", 1),
    "ResponseHeader.SCHEMA": ("ResponseHeader", 0),
    "ConsumerProtocol.SUBSCRIPTION_V0": ("ConsumerProtocolSubscription", 0),
    "ConsumerProtocol.SUBSCRIPTION_V1": ("ConsumerProtocolSubscription", 1),
    "ConsumerProtocol.ASSIGNMENT_V0": ("ConsumerProtocolAssignment", 0),
    "ConsumerProtocol.ASSIGNMENT_V1": ("ConsumerProtocolAssignment", 1),
    "StickyAssignor.STICKY_ASSIGNOR_USER_DATA": ("StickyAssignorUserData", 0),
    "StickyAssignor.STICKY_ASSIGNOR_USER_DATA_V0": ("StickyAssignorUserData", 0),
    "StickyAssignor.STICKY_ASSIGNOR_USER_DATA_V1": ("StickyAssignorUserData", 1),
}


def flat_schema(fields: Sequence[Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of each field in the order of the wire.

    What moves no byte is left out: a struct that is no element of an array, and one around a single field.
    """
    for name, kind in fields:
        many = isinstance(kind, dict)
        inner = kind["array"] if many else kind
        if many and len(inner) == 1 and isinstance(inner[0][1], str):
            inner = inner[0][1]
        here = f"{path}{name}"
        if many:
            yield here, "[]?" if kind["nullable"] else "[]"
        if isinstance(inner, str):
            yield f"{here}[]" if many else here, WORDS[inner]
        else:
            yield from flat_schema(inner, f"{here}." if many else path)


def flat_layout(layout: Layout, path: str = "") -> Iterator[tuple[str, str]]:
    for slot in layout.slots:
        here = f"{path}{slot.name}"
        if slot.array:
            yield here, "[]?" if slot.nullable else "[]"
        inner = slot.item.slots if slot.item else ()
        if slot.item and (len(inner) > 1 or inner[0].array or inner[0].item):
            yield from flat_layout(slot.item, f"{here}.")
        else:
            only = inner[0] if inner else slot
            nullable = only.nullable and not only.array
            yield f"{here}[]" if slot.array else here, f"{only.type}{'?' if nullable else ''}"


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def agree(ours: str, old: str) -> bool:
    """Are these paths of the same field?"""
    left, right = ours.removesuffix("[]").split(".")[-1], old.removesuffix("[]").split(".")[-1]
    return camel(right) == left or right in OLD.get(left, ())


def unlike(layout: Layout, schema: Sequence[Any]) -> list[tuple[object, object]]:
    """Ours and theirs where they are not the same field of the same type."""
    ours, theirs = [*flat_layout(layout)], [*flat_schema(schema)]
    if len(ours) != len(theirs):
        return [(ours, theirs)]
    return [
        (left, right)
        for left, right in zip(ours, theirs, strict=True)
        if left[1] != right[1] or not agree(left[0], right[0])
    ]


@pytest.fixture(scope="module")
def schemas() -> list[dict[str, Any]]:
    """The schema objects of every release up to 2.6, each with where it stands."""
    old = [str(each) for each in RELEASES if each in releases("0.10.0.0-2.6.3")]
    logging = "org.slf4j:slf4j-api:1.7.36"
    jars = artifacts.fetch([*(f"org.apache.kafka:kafka-clients:{each}" for each in old), logging])
    given = [f"{each}={jars[f'org.apache.kafka:kafka-clients:{each}']}{pathsep}{jars[logging]}" for each in old]
    argv = [which("java") or "java", "-cp", str(program()), "kipcheck.Schemas", *given]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.jars
@pytest.mark.all_jars
def test_the_declarations_are_the_schema_objects_of_old_releases(schemas: list[dict[str, Any]]) -> None:
    sides = [raw for raw in map(declared, names()) if raw["type"] in ("request", "response")]
    apis = {(raw["apiKey"], raw["type"]): raw["name"] for raw in sides}
    told: dict[tuple[str, str], set[int]] = {}
    found: list[object] = []
    for each in schemas:
        if "constant" in each:
            message, version = CONSTANTS.get(each["constant"], (None, 0))
        else:
            message, version = apis.get((each["key"], each["side"])), each["version"]
        if message is None:
            continue
        told.setdefault((each["release"], message), set()).add(version)
        layout = spec(edition(f"apache@{each['release']}"), message).at(version)
        found += [(each["release"], message, version, *pair) for pair in unlike(layout, each["fields"])]
    assert found == []
    for (release, message), versions in told.items():
        if message != "RequestHeader":  # brokers up to 0.11 read version 0 without a schema of its own
            span = spoken(message, release)
            assert span and versions == {*range(span.low, (span.high or 0) + 1)}, f"{message} in {release}"
    assert sum(map(len, told.values())) >= 1320


@pytest.mark.parametrize(
    "damage",
    [
        lambda schema: swap(schema, 0, 1),
        lambda schema: schema.pop(),
        lambda schema: schema[1].__setitem__(1, "INT64"),
        lambda schema: schema[1].__setitem__(0, "timeout"),
        lambda schema: schema[0].__setitem__(1, "NULLABLE_STRING"),
        lambda schema: schema[4][1].update(nullable=True),
    ],
)
def test_a_planted_defect_in_a_schema_object_is_found(damage: Callable[[Any], object]) -> None:
    pair = [["protocol_name", "STRING"], ["protocol_metadata", "BYTES"]]
    schema: list[Any] = [
        ["group_id", "STRING"],
        ["session_timeout", "INT32"],
        ["member_id", "STRING"],
        ["protocol_type", "STRING"],
        ["group_protocols", {"array": pair, "nullable": False}],
    ]
    layout = spec(edition("apache@0.10.0.0"), "JoinGroupRequest").at(0)
    assert unlike(layout, schema) == []
    damage(schema)
    assert unlike(layout, schema) != []


# ---- without any jar

MESSAGE_KEYS = {
    "apiKey", "type", "name", "validVersions", "flexibleVersions", "prefix", "variants", "future", "commonStructs",
    "fields",
}  # fmt: skip
FIELD_KEYS = {
    "name", "type", "versions", "nullableVersions", "taggedVersions", "flexibleVersions", "tag", "default", "ignorable",
    "mapKey", "releases", "variants", "fields", "about",
}  # fmt: skip
DECLARED = [(folder.name, name) for folder in SCHEMAS.iterdir() if folder.is_dir() for name in names(folder.name)]


def fields_of(raw: Raw) -> Iterator[Raw]:
    """Every field of a declaration, at any depth."""
    for each in raw.get("fields", ()):
        yield each
        yield from fields_of(each)
    for struct in (*raw.get("commonStructs", ()), *raw.get("variants", ())):
        yield from fields_of(struct)
    yield from raw.get("future", ())


@pytest.mark.parametrize(("folder", "name"), DECLARED)
def test_a_declaration_says_only_what_the_grammar_has(folder: str, name: str) -> None:
    raw = declared(name, folder)
    assert raw["name"] == name and raw.keys() <= MESSAGE_KEYS
    assert all(variant.keys() <= MESSAGE_KEYS | {"releases"} for variant in raw.get("variants", ()))
    structs = {each["name"] for each in raw.get("commonStructs", ())}
    structs |= {each["name"] for variant in raw.get("variants", ()) for each in variant.get("commonStructs", ())}
    for each in fields_of(raw):
        assert each.keys() <= FIELD_KEYS, each["name"]
        assert all(variant.keys() <= FIELD_KEYS for variant in each.get("variants", ())), each["name"]
        kind = each["type"].removeprefix("[]")
        assert (kind in SCALARS) + ("fields" in each) + (kind in structs) == 1, each["name"]
        assert ("tag" in each) == ("taggedVersions" in each), each["name"]
        if each.get("default") == "null":
            assert Versions.parse(each["versions"]).low in Versions.parse(each["nullableVersions"]), each["name"]


def test_every_text_of_releases_names_releases_that_there_are() -> None:
    texts = [
        each["releases"]
        for folder, name in DECLARED
        for raw in [declared(name, folder)]
        for holder in (raw, *fields_of(raw))
        for each in (holder, *holder.get("variants", ()))
        if "releases" in each
    ]
    assert len(texts) > 40
    for text in texts:
        assert all(low in RELEASES and (high is None or high in RELEASES) for low, high in releases(text).spans), text


def layouts() -> Iterator[Layout]:
    """Every layout of every edition that needs no jar."""
    every = [edition(f"apache@{release}") for release in RELEASES]
    for at in (*EDITIONS.values(), *every):
        for message in messages(at):
            yield from spec(at, message)


def structs(layout: Layout) -> Iterator[Layout]:
    yield layout
    for slot in layout.slots:
        if slot.item:
            yield from structs(slot.item)


def test_every_version_of_every_edition_has_a_layout_with_no_field_or_tag_twice() -> None:
    count = 0
    for layout in layouts():
        count += 1
        for struct in structs(layout):
            where = f"{struct} in {struct.edition}"
            known = [slot.name for slot in struct.slots]
            tags = [slot.tag for slot in struct.tagged]
            assert len({*known}) == len(known) and len({*tags}) == len(tags), where
            assert not {*known} & {each.name for each in struct.absent}, where
            assert not tags or struct.flexible, where
    assert count > 10_000


def test_releases_stand_in_their_order_and_end_with_the_newest() -> None:
    assert sorted({*RELEASES}) == RELEASES and str(RELEASES[-1]) == NEWEST


@pytest.mark.parametrize("name", sorted(release_table()["messages"]))
def test_the_versions_of_a_family_grow_and_are_all_declared(name: str) -> None:
    changes: Mapping[str, list[int]] = release_table()["messages"][name]
    known = release_table()["releases"]
    assert [*changes] == sorted(changes, key=known.index)
    for (_, before), (since, after) in pairwise(changes.items()):
        assert before != after
        assert after[1] >= before[1], f"{since} dropped the newest version"
        # Old versions left once for all, but for those that 4.0.0 dropped too early.
        assert after[0] >= before[0] or (name, since) == ("JoinGroup", "4.0.1")
    low, high = min(span[0] for span in changes.values()), max(span[1] for span in changes.values())
    members = [each for each in names() if family(each) == name]
    assert members
    for each in members:
        assert Versions.parse(declared(each)["validVersions"]) == Versions(low, high)


def test_every_declared_message_is_spoken_by_some_release() -> None:
    assert {family(each) for each in names()} == {*release_table()["messages"]}


@pytest.mark.parametrize(
    ("message", "release", "version", "path", "attribute", "expected"),
    [
        ("ApiVersionsResponse", "2.7.0", 3, "supportedFeatures", "ignorable", False),
        ("ApiVersionsResponse", "3.0.0", 3, "supportedFeatures", "ignorable", True),
        ("JoinGroupResponse", "3.3.1", 5, "members.groupInstanceId", "ignorable", False),
        ("JoinGroupResponse", "3.3.2", 5, "members.groupInstanceId", "ignorable", True),
        ("OffsetCommitRequest", "4.0.2", 9, "topics.name", "ignorable", False),
        ("OffsetCommitRequest", "4.1.0", 9, "topics.name", "ignorable", True),
        ("UpdateFeaturesResponse", "3.9.2", 1, "results", "ignorable", False),
        ("GroupMetadataValue", "0.10.0.1", 0, "leader", "nullable", False),
        ("GroupMetadataValue", "0.10.1.0", 0, "leader", "nullable", True),
        ("GroupMetadataValue", "3.5.2", 3, "members.rebalanceTimeout", "default", 0),
        ("GroupMetadataValue", "3.6.0", 3, "members.rebalanceTimeout", "default", -1),
        # A null default in the JSON of the definition is no default: both are written, empty, where nothing is set.
        ("ConsumerGroupMemberMetadataValue", "4.4.0", 0, "classicMemberMetadata", "default", ...),
        ("ConsumerGroupCurrentMemberAssignmentValue", "4.4.0", 0, "assignedPartitions.assignmentEpochs", "default", ()),
    ],
)
def test_what_changed_without_a_new_version_belongs_to_its_releases(
    message: str, release: str, version: int, path: str, attribute: str, expected: object
) -> None:
    layout: Layout | None = spec(edition(f"apache@{release}"), message).at(version)
    *parents, name = path.split(".")
    for parent in parents:
        assert layout
        layout = next(slot.item for slot in layout.slots if slot.name == parent)
    assert layout
    assert getattr(next(slot for slot in layout.slots if slot.name == name), attribute) == expected


def test_each_old_version_has_the_form_of_the_last_release_that_spoke_it() -> None:
    assert spec(APACHE, "RequestHeader").at(0).absent[0].ignorable, "as in 3.9.2, the last with version 0"
    assert not spec(APACHE, "RequestHeader").at(2).slots[-1].ignorable
    assert "zkMigrationReady" not in spec(edition("apache@3.3.2"), "ApiVersionsResponse").at(3).names
    known = {each.name for each in spec(edition("apache@4.4.0"), "OffsetCommitRequest").at(2).absent}
    assert "memberId" not in known and "topicId" not in known, "a field of an array's element is absent there"
