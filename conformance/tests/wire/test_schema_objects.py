"""Our declarations against the schema objects that jars hold in the place of definitions: name and type, up to 2.7."""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import pathsep
from shutil import which
from typing import Any

import pytest

from kipcheck.conformance.clients.java.programs import program
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import releases
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.tests.support.old_names import OLD
from kipcheck.conformance.tests.support.schema_files import RELEASES, declared, names, swap
from kipcheck.conformance.wire.schema import Layout, spec, stable_versions

WORDS = {
    "BOOLEAN": "bool", "INT8": "int8", "INT16": "int16", "INT32": "int32", "INT64": "int64", "STRING": "string",
    "BYTES": "bytes", "NULLABLE_STRING": "string?", "NULLABLE_BYTES": "bytes?", "RECORDS": "records?",
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
    "GroupMetadataManager$.GROUP_METADATA_KEY_SCHEMA": ("GroupMetadataKey", 2),
    **{f"GroupMetadataManager$.GROUP_METADATA_VALUE_SCHEMA_V{n}": ("GroupMetadataValue", n) for n in range(4)},
    "GroupMetadataManager$.OFFSET_COMMIT_KEY_SCHEMA": ("OffsetCommitKey", 1),
    **{f"GroupMetadataManager$.OFFSET_COMMIT_VALUE_SCHEMA_V{n}": ("OffsetCommitValue", n) for n in range(4)},
    "TransactionLog$KeySchema$.V0": ("TransactionLogKey", 0),
    "TransactionLog$ValueSchema$.V0": ("TransactionLogValue", 0),
}
ONE_OBJECT = {
    "RequestHeader": "brokers up to 0.11 read version 0 without one",
    "OffsetCommitKey": "both versions have one",
}
"""Messages with fewer schema objects than versions, and why."""
SCALA = {
    "2.11": ("0.10.0.1", "0.10.1.0", "0.10.2.2", "0.11.0.0", "2.0.1", "2.1.0", "2.2.2", "2.3.0"),
    "2.13": ("2.7.2",),
}
"""The releases whose broker is asked, which are those around each change of the records."""
LIBRARIES = {
    "2.11": ("org.scala-lang:scala-library:2.11.12", "com.typesafe.scala-logging:scala-logging_2.11:3.9.0"),
    "2.13": ("org.scala-lang:scala-library:2.13.6", "com.typesafe.scala-logging:scala-logging_2.13:3.9.2"),
}
LOGGING = "org.slf4j:slf4j-api:1.7.36"
METRICS = "com.yammer.metrics:metrics-core:2.2.0"


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


def printed(wanted: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """The schema objects in the jars of each release, each with where it stands. Errors: ``Unavailable``."""
    jars = maven.fetch({each: None for group in wanted.values() for each in group})
    given = [f"{release}={pathsep.join(str(jars[each]) for each in group)}" for release, group in wanted.items()]
    argv = [which("java") or "java", "-cp", str(program()), "kipcheck.Schemas", *given]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=120)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compared_with(schemas: list[dict[str, Any]]) -> tuple[dict[tuple[str, str], set[int]], list[object]]:
    """The versions seen of each message of each release, and all that disagrees."""
    sides = [raw for raw in map(declared, names()) if raw["type"] in ("request", "response")]
    apis = {(raw["apiKey"], raw["type"]): raw["name"] for raw in sides}
    seen: dict[tuple[str, str], set[int]] = {}
    found: list[object] = []
    for each in schemas:
        if "constant" in each:
            message, version = CONSTANTS.get(each["constant"], (None, 0))
        else:
            message, version = apis.get((each["key"], each["side"])), each["version"]
        if message is not None:
            seen.setdefault((each["release"], message), set()).add(version)
            layout = spec(edition(f"apache@{each['release']}"), message).at(version)
            found += [(each["release"], message, version, *pair) for pair in unlike(layout, each["fields"])]
    for (release, message), versions in seen.items():
        span = stable_versions(message, release)
        assert span and span.high is not None
        if message not in ONE_OBJECT and versions != {*range(span.low, span.high + 1)}:
            found.append((release, message, versions, str(span)))
    return seen, found


@pytest.mark.jars
@pytest.mark.all_jars
def test_the_declarations_are_the_schema_objects_of_old_clients() -> None:
    old = [str(each) for each in RELEASES if each in releases("0.10.0.0-2.6.3")]
    seen, found = compared_with(printed({each: (f"org.apache.kafka:kafka-clients:{each}", LOGGING) for each in old}))
    assert found == []
    assert sum(map(len, seen.values())) >= 1940


@pytest.mark.jars
@pytest.mark.all_jars
def test_the_declarations_are_the_schema_objects_of_old_brokers() -> None:
    wanted = {
        release: (
            f"org.apache.kafka:kafka_{scala}:{release}",
            f"org.apache.kafka:kafka-clients:{release}",
            *LIBRARIES[scala],
            LOGGING,
            METRICS,
        )
        for scala, chosen in SCALA.items()
        for release in chosen
    }
    seen, found = compared_with(printed(wanted))
    assert found == []
    assert {release for release, message in seen if message == "GroupMetadataValue"} == {*wanted}
    assert sum(message == "TransactionLogValue" for _, message in seen) == 6


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
