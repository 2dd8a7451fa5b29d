"""Reads the definitions inside Kafka's jars and converts them to this package's form: a new release needs no code."""

import json
import re
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from kipcheck.conformance.core.files import jars
from kipcheck.conformance.core.files.unreadable_file import unreadable
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.core.values.untrusted_text import one_line
from kipcheck.conformance.wire.schema import SCALARS, Raw, Versions

ARTIFACTS = (
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-transaction-coordinator",
    "kafka-metadata",
    "kafka-streams",
)
"""The jars of a release that contain definitions used here, all of group org.apache.kafka."""
FOLDERS = ("common/message/", "common/metadata/")
LARGEST = 4 << 20
"""The most bytes of one definition; Kafka's largest has 20 thousand."""
TOGETHER = 64 << 20
"""The most bytes of all definitions in a jar; Kafka's have a million."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
"""Names of messages, structs and fields: they become names of files and functions."""
VERSIONS = 1 << 15
"""A version is an int16."""


def definitions(edition: Edition) -> Mapping[str, Raw]:
    """The definitions in the jars of ``jar:PATH`` or ``maven:RELEASE``, by name, as ``MessageSpec.of`` takes them.

    Unstable versions are included and marked as in Kafka. Errors: LookupError where no definition can be read.
    """
    return _found(edition)[0]


def missing(edition: Edition) -> tuple[tuple[str, str], ...]:
    """The jars of the edition that could not be read or contain no definition: coordinate and reason."""
    return _found(edition)[1]


@cache
def _found(edition: Edition) -> tuple[Mapping[str, Raw], tuple[tuple[str, str], ...]]:
    kind, _, rest = edition.name.partition(":")
    if kind == "jar":
        found = in_jar(Path(rest))
        if not found:
            raise LookupError(f"{rest} contains no definition under {' or '.join(FOLDERS)}")
        return found, ()
    try:
        release = Release.parse(rest)
    except ValueError as wrong:
        raise LookupError(f"{edition}: {wrong}") from None
    return _in_release(release)


def _in_release(release: Release) -> tuple[Mapping[str, Raw], tuple[tuple[str, str], ...]]:
    found: dict[str, Raw] = {}
    absent: list[tuple[str, str]] = []
    for coordinate, path in jars.files_of([f"org.apache.kafka:{artifact}:{release}" for artifact in ARTIFACTS]).items():
        if isinstance(path, str):
            absent.append((coordinate, path))
        elif inside := in_jar(path):
            found |= inside
        else:
            absent.append((coordinate, "the jar contains no definition"))
    if not found:
        whys = "; ".join(dict.fromkeys(why for _, why in absent))
        raise LookupError(f"no definitions of {release} (jars contain them from 2.2.0 on): {whys}")
    return found, tuple(absent)


def in_jar(path: Path) -> dict[str, Raw]:
    """The definitions in one jar. Errors: LookupError with the path and the reason."""
    try:
        with ZipFile(path) as jar:
            named = (each for each in jar.infolist() if each.filename.startswith(FOLDERS))
            entries = [each for each in named if each.filename.endswith(".json")]
            if large := [each.filename for each in entries if each.file_size > LARGEST]:
                raise LookupError(f"{path}: {one_line(large[0])} is too large for a definition")
            if sum(each.file_size for each in entries) > TOGETHER:
                raise LookupError(f"{path}: its definitions have more than {TOGETHER >> 20} MiB together")
            texts = {each.filename: jar.read(each).decode() for each in entries}
    except OSError as denied:
        raise LookupError(f"the jar {unreadable(denied, path)}") from None
    except (BadZipFile, UnicodeDecodeError, NotImplementedError, RuntimeError, zlib.error) as wrong:
        raise LookupError(f"cannot read the jar {path}: {wrong}") from None
    found: list[Raw] = []
    for name, text in sorted(texts.items()):
        try:
            found.append(normal(parse(text)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
            raise LookupError(f"{path}: {one_line(name)}: cannot parse the definition: {wrong!r}") from None
    return _joined({raw["name"]: raw for raw in found if raw["validVersions"] != "none"})


NOT_JSON = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)


def parse(text: str) -> dict[str, Any]:
    """Parses JSON with comments and, in one message of 2.8, text after its end. Errors: ValueError."""
    bare = NOT_JSON.sub(lambda match: match[0] if match[0][0] == '"' else " ", text).lstrip()
    raw, _ = json.JSONDecoder().raw_decode(bare)
    if not isinstance(raw, dict) or not {"name", "type", "validVersions"} <= raw.keys():
        raise ValueError("a message must have a name, a type and validVersions")
    return raw


def normal(raw: Raw) -> Raw:
    """Converts the forms that different releases use to the form of this package (see ``schema``)."""
    declared: dict[str, Any] = {
        "type": raw["type"],
        "name": _name(raw["name"]),
        "validVersions": raw["validVersions"],
        "flexibleVersions": raw.get("flexibleVersions") or "none",
        "fields": _fields(raw.get("fields", ())),
    }
    if raw["type"] in ("request", "response", "metadata") and "apiKey" in raw:
        declared = {"apiKey": raw["apiKey"], **declared}
    if raw.get("latestVersionUnstable"):
        declared["latestVersionUnstable"] = True
    if raw.get("commonStructs"):
        structs = raw["commonStructs"]
        declared["commonStructs"] = [{"name": _name(s["name"]), "fields": _fields(s["fields"])} for s in structs]
    if raw["validVersions"] != "none":
        valid = Versions.parse(raw["validVersions"])
        if valid.high is None:
            raise ValueError("its versions must have an end")
        if not 0 <= valid.low <= valid.high < VERSIONS:
            raise ValueError(f"invalid validVersions {valid}")
    _check_structs(declared["fields"], {each["name"]: each["fields"] for each in declared.get("commonStructs", ())}, ())
    return _of_streams(_record(declared, raw.get("apiKey")))


def _check_structs(fields: list[dict[str, Any]], common: Mapping[str, Any], inside: tuple[str, ...]) -> None:
    """Errors: ValueError for an undefined struct, or one that contains itself."""
    for field in fields:
        kind = field["type"].removeprefix("[]")
        if "fields" in field:
            _check_structs(field["fields"], common, inside)
        elif kind in common and kind not in inside:
            _check_structs(common[kind], common, (*inside, kind))
        elif kind not in SCALARS:
            why = "contains itself" if kind in inside else "is unknown"
            raise ValueError(f"{field['name']} is of type {kind}, which {why}")


def _fields(fields: Any) -> list[dict[str, Any]]:
    return [_field(field) for field in fields]


def _name(found: Any) -> str:
    """Errors: ValueError for an invalid name."""
    if not isinstance(found, str) or not NAME.fullmatch(found):
        raise ValueError(f"invalid name of a message or a field: {found!r:.80}")
    return found


def _field(field: Raw) -> dict[str, Any]:
    declared: dict[str, Any] = {"name": _name(field["name"]), "type": field["type"]}
    # Where ``versions`` is missing, Kafka's generator uses the tagged versions.
    declared["versions"] = field.get("versions") or field["taggedVersions"]
    for key in ("nullableVersions", "taggedVersions", "flexibleVersions"):
        if field.get(key):
            declared[key] = field[key]
    for key in declared.keys() & VERSIONED:
        Versions.parse(declared[key])
    if field.get("tag") is not None:
        declared["tag"] = int(field["tag"])
    # A JSON null means no default; the default null is the text "null".
    if (default := field.get("default")) is not None:
        declared["default"] = str(default).lower() if isinstance(default, bool) else str(default)
    for key in ("ignorable", "mapKey"):
        if str(field.get(key, False)).lower() == "true":
            declared[key] = True
    if field.get("fields"):
        declared["fields"] = _fields(field["fields"])
    return declared


def _record(raw: dict[str, Any], key: int | None) -> dict[str, Any]:
    """Adds the version before a record's bytes: for keys written since 4.1 it is the ``apiKey`` of the definition."""
    name, kind = raw["name"], raw["type"]
    consumer = name in ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
    coordinator = kind.startswith("coordinator-") or (kind == "data" and name.endswith(("Key", "Value")))
    if not consumer and not coordinator:
        return raw
    if kind == "coordinator-key" and key:
        raw = _shifted(raw, key)
    return {**raw, "prefix": {"type": "int16"}}


VERSIONED = ("validVersions", "versions", "nullableVersions", "taggedVersions", "flexibleVersions")


def _shifted(raw: Raw, by: int) -> dict[str, Any]:
    """The definition with all version numbers raised by ``by``."""
    return {
        key: re.sub(r"\d+", lambda match: str(int(match[0]) + by), value)
        if key in VERSIONED
        else [_shifted(each, by) for each in value]
        if key in ("fields", "commonStructs")
        else value
        for key, value in raw.items()
    }


def _of_streams(raw: dict[str, Any]) -> dict[str, Any]:
    """Streams' subscription: in each version, its first field is the version before the bytes."""
    if raw["name"] not in ("SubscriptionInfo", "SubscriptionInfoData"):
        return raw
    fields = [field for field in raw["fields"] if field["name"] != "version"]
    return {**raw, "name": "SubscriptionInfo", "prefix": {"type": "int32", "name": "version"}, "fields": fields}


def _joined(found: dict[str, Raw]) -> dict[str, Raw]:
    """Adds what only two definitions together determine."""
    for name, raw in found.items():
        request = found.get(name.removesuffix("Response") + "Request", {})
        if raw["type"] == "response" and "latestVersionUnstable" in request:
            # Only the request is marked; request and response share the version.
            found[name] = {**raw, "latestVersionUnstable": True}
    old, new = found.get("LegacyOffsetCommitKey"), found.get("OffsetCommitKey")
    if old and new and new["validVersions"] == "1":
        # Since 4.1 the two versions of the offset key, which have the same layout, are two definitions.
        if [_bare(field) for field in old["fields"]] != [_bare(field) for field in new["fields"]]:
            raise LookupError("the two versions of the offset key have different fields: this layout is not supported")
        fields = [{**field, "versions": "0-1"} for field in new["fields"]]
        found["OffsetCommitKey"] = {**new, "validVersions": "0-1", "fields": fields}
    return found


def _bare(field: Raw) -> tuple[str, str]:
    return field["name"], field["type"]
