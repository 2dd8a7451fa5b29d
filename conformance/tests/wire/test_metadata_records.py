"""Frames and control records of the metadata log, and the table of the types that releases know."""

import json
from importlib.resources import files

import pytest

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire import metadata_records
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.metadata_records import Frame, control_value, frame, is_known, known_versions
from kipcheck.conformance.wire.record_batches import Record
from kipcheck.golden import record_types


def test_a_frame() -> None:
    assert frame(b"\1\x0c\0rest") == Frame(12, 0, 3) and frame(b"\1\x80\1\2") == Frame(128, 2, 4)


@pytest.mark.parametrize(
    ("data", "kind", "offset"),
    [
        (b"", "varint", 0), (b"\0\x0c\0", "version", 0), (b"\2", "version", 0), (b"\1", "varint", 1),
        (b"\1\x0c", "varint", 2), (b"\1\xff\xff\xff\xff\xff", "varint", 1),
    ],
)  # fmt: skip
def test_damage_of_a_frame_is_refused_with_its_place(data: bytes, kind: str, offset: int) -> None:
    with pytest.raises(Refused) as refused:
        frame(data)
    assert (refused.value.kind, refused.value.offset) == (kind, offset)


def test_control_records() -> None:
    name, version, value = control_value(Record(0, 0, b"\0\0\0\5", b"\0\0\0\1\0"))
    assert (name, version) == ("KRaftVersionRecord", 0) and value == {"version": 0, "kRaftVersion": 1}
    assert control_value(Record(0, 0, b"\0\0\0\2", b"\0\x09any")) == ("LeaderChangeMessage", 9, None)
    assert control_value(Record(0, 0, b"\0\0\0\x63", b"\0\0")) == ("control record 99", 0, None)
    assert control_value(Record(0, 0, b"\0\1\0\5", b"\0\0"))[0] == "control record -1"
    with pytest.raises(Refused):
        control_value(Record(0, 0, b"\0\0\0\5", b"\0\0\0"))


@pytest.mark.parametrize(
    ("of", "number", "release", "versions"),
    [
        ("metadata", 0, "3.3.2", "0-1"), ("metadata", 0, "4.4.0", "0-4"), ("metadata", 28, "3.9.2", None),
        ("metadata", 28, "4.0.0", "0"), ("metadata", 16, "3.2.3", "0"), ("metadata", 16, "3.3.0", None),
        ("metadata", 14, "2.8.2", "0"), ("metadata", 99, "4.4.0", None), ("groups", 9, "4.0.2", "0"),
        ("groups", 9, "4.1.0", None), ("groups", 17, "4.1.0", "0"), ("shares", 1, "4.0.0", "0"),
    ],
)  # fmt: skip
def test_the_versions_that_a_release_knows(of: str, number: int, release: str, versions: str | None) -> None:
    found = known_versions(of, number, Release.parse(release))
    assert (None if found is None else str(found)) == versions


def test_what_some_release_knows() -> None:
    assert is_known("metadata", 16, 0) and is_known("metadata", 0, 4)
    assert not is_known("metadata", 0, 5) and not is_known("metadata", 13, 0)


def test_the_newest_name_of_a_type_is_used() -> None:
    assert metadata_records.names("metadata")[14] == "ClientQuotaRecord"


@pytest.mark.all_jars
def test_the_table_is_what_the_jars_define() -> None:
    written = (files("kipcheck.conformance.wire") / "schemas" / record_types.FILE).read_text("utf-8")
    found = record_types.made()
    assert record_types.text(found) == written and json.loads(written) == found
