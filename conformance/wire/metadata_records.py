"""Records of the metadata log of KRaft: their frames, their types, and the control records of the quorum.

The value of a record is a frame: uvarints for the version of the frame (1), the type of the record and its version,
and then the message. A control record has a key, int16 version and int16 type, and a message that begins with its own
version. Source: classes ``AbstractApiMessageSerde``, ``ControlRecordType`` and ``ControlRecordUtils``.

Which types and versions a release knows is in ``schemas/record_types.json``, as its jars define them; also the records
of coordinators that have no schema here. A range applies from its release until the next one named; null ends it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.primitives import Rough, read_uvarint
from kipcheck.conformance.wire.record_batches import Record
from kipcheck.conformance.wire.schema import Versions, spec, versions_at

NAME: Final = "MetadataRecord"
FRAME: Final = 1
"""The version of frames, in every release."""
FEATURE: Final = "FeatureLevelRecord"
CONTROL: Final[Mapping[int, str]] = {
    2: "LeaderChangeMessage", 3: "SnapshotHeaderRecord", 4: "SnapshotFooterRecord", 5: "KRaftVersionRecord",
    6: "VotersRecord",
}  # fmt: skip
"""Type of a control record in the metadata log -> its message."""


@dataclass(frozen=True, slots=True)
class Frame:
    type: int
    version: int
    at: int
    """The offset of the message in the value."""


def frame(value: bytes) -> Frame:
    """Errors: ``Refused``, with the offset in the value: class ``version`` for another version of the frame."""
    places, at = [], 0
    try:
        for _ in range(3):
            number, end = read_uvarint(value, at)
            places.append(number)
            at = end
            if places[0] != FRAME:
                raise Refused("version", f"a frame of version {number}, {FRAME} is known", message=NAME, version=FRAME,
                              offset=0)  # fmt: skip
    except (IndexError, Rough):
        raise Refused("varint", "no number", message=NAME, version=FRAME, offset=at) from None
    return Frame(places[1], places[2], at)


def control_type(record: Record) -> int:
    """The type of a control record, from its key; -1 for a key of another version than 0."""
    key = record.key or b""
    return int.from_bytes(key[2:4], "big", signed=True) if len(key) >= 4 and key[:2] == b"\0\0" else -1


def control_name(record: Record) -> str:
    """The message of a control record; ``control record N`` for a type that no release has."""
    number = control_type(record)
    return CONTROL.get(number, f"control record {number}")


def control_value(record: Record) -> tuple[str, int, dict[str, Any] | None]:
    """Name, version and value of a control record; None for an unknown type or version.

    Errors: ``Refused``, with the offset in the value.
    """
    name, data = control_name(record), record.value or b""
    version = int.from_bytes(data[:2], "big", signed=True)
    if name not in CONTROL.values() or version not in (declared := spec(APACHE, name)).versions:
        return name, version, None
    return name, version, declared.at(version).decode(data, lenient=True)


@cache
def _types(of: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(
        (files("kipcheck.conformance.wire") / "schemas" / "record_types.json").read_text()
    )[of]
    return found


@cache
def names(of: str) -> Mapping[int, str]:
    """Type -> name, of ``metadata`` records or of those in the topic of ``groups``; the newest name of a type."""
    return {each["type"]: name for name, each in _types(of).items()}


def known_versions(of: str, number: int, release: Release) -> Versions | None:
    """The versions that a release knows of a type; None for an unknown type."""
    found = (versions_at(each["versions"], release) for each in _types(of).values() if each["type"] == number)
    return next((each for each in found if each is not None), None)


def is_known(of: str, number: int, version: int) -> bool:
    """Whether some release has that version of the type."""
    return any(
        changed is not None and changed[0] <= version <= changed[1]
        for each in _types(of).values() if each["type"] == number for changed in each["versions"].values()
    )  # fmt: skip
