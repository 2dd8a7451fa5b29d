"""What holds of every declaration and of the table of releases, whatever jars there are."""

from collections.abc import Iterator, Mapping
from itertools import pairwise

import pytest

from kipcheck.conformance.core.values.edition import APACHE, EDITIONS, edition
from kipcheck.conformance.core.values.release import NEWEST, releases
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.schema_files import RELEASES, SCHEMAS, declared, names
from kipcheck.conformance.wire.schema import SCALARS, Layout, Raw, Versions, family, messages, release_table, spec

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


@for_each(sorted(release_table()["messages"]))
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


@for_each(sorted(release_table()["served"]))
def test_the_versions_of_a_family_that_only_a_broker_answers_are_all_declared(name: str) -> None:
    changes: Mapping[str, list[int]] = release_table()["served"][name]
    assert [*changes] == sorted(changes, key=release_table()["releases"].index)
    spans = Versions(min(span[0] for span in changes.values()), max(span[1] for span in changes.values()))
    for each in (f"{name}Request", f"{name}Response"):
        assert each in names("served") and each not in names()
        assert Versions.parse(declared(each, "served")["validVersions"]) == spans


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
