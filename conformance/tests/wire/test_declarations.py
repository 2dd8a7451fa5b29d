"""Our declarations against the definitions in released jars, field by field."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kipcheck.conformance.core.values.edition import APACHE, Edition, Standing, edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.tests.support.schema_files import RELEASES, declared, swap
from kipcheck.conformance.wire.definitions import in_jar
from kipcheck.conformance.wire.diff import differences_of
from kipcheck.conformance.wire.schema import Layout, MessageSpec, Raw, Versions, messages, spec

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


# ---- definitions, from 2.2.0 on


def is_defined(message: str, release: str) -> bool:
    kind = declared(message)["type"]
    usual = RECORDS if kind.startswith("coordinator") or kind == "metadata" else "2.2.0+"
    text = DEFINED.get(message, usual)
    return text != "none" and Release.parse(release) in releases(text)


def in_release(release: str) -> dict[str, Raw]:
    """What the jars of a release define. Errors: ``Unavailable``."""
    result = [name for name, text in HOLDERS.items() if Release.parse(release) in releases(text)]
    jars = maven.fetch(f"org.apache.kafka:{name}:{release}" for name in result)
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
    count, reported = 0, set()
    for message in messages(at):
        if is_defined(message, release):
            ours, theirs = spec(at, message), as_defined(found[message], release)
            count += len([*ours])
            reported |= set(disagreements(ours, theirs))
    return count, reported


@pytest.mark.jars
@pytest.mark.parametrize(("release", "least"), [("3.9.2", 339), ("4.4.0", 343)])
def test_the_declarations_are_the_definitions(release: str, least: int) -> None:
    count, reported = compared(release)
    assert reported - CHOSEN == set()
    assert count >= least


@pytest.mark.jars
@pytest.mark.all_jars
@pytest.mark.parametrize("release", [str(each) for each in RELEASES if each in releases("2.2.0+")])
def test_the_declarations_are_the_definitions_of_every_release(release: str) -> None:
    count, reported = compared(release)
    assert reported - CHOSEN == set()
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
