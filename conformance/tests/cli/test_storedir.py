"""``kipcheck storedir``: the formats of a store, and each kind of damage with its file and offset."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.wire.record_batches import crc32c
from kipcheck.conformance.wire.rocksdb_files import MAGICS, Damaged, read

TABLE = bytes(20) + MAGICS[0]
OF_DEFAULT = bytes([103, 0, 9, len(TABLE), 1, 97, 1, 98, 1, 2, 1])
EDITS = (
    b"\x01\x04name" + bytes([2, 0, 3, 11, 4, 7]) + OF_DEFAULT,
    bytes([200, 1, 1]) + bytes([201, 1, 21]) + b"keyValueWithTimestamp" + bytes([203, 1, 1]),
    bytes([200, 1, 1]) + bytes([103, 0, 10, len(TABLE), 1, 97, 1, 98, 1, 2, 5, 1, 120, 1]),
)


def record(edit: bytes) -> bytes:
    body = bytes([1]) + edit
    crc = crc32c(body)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return masked.to_bytes(4, "little") + len(edit).to_bytes(2, "little") + body


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    (tmp_path / "MANIFEST-000005").write_bytes(b"".join(map(record, EDITS)))
    for number in (9, 10):
        (tmp_path / f"{number:06}.sst").write_bytes(TABLE)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_the_formats_of_a_store_are_printed(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["storedir", str(store), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "both"
    assert found["families"] == [
        {"name": "default", "tables": 1, "bytes": 28}, {"name": "keyValueWithTimestamp", "tables": 1, "bytes": 28}
    ]  # fmt: skip
    gone = record(bytes([6, 0, 9]))
    (store / "MANIFEST-000005").write_bytes(b"".join(map(record, EDITS)) + gone)
    assert run(["storedir", str(store)]) == 0
    assert "timestamped: all values have timestamps" in capsys.readouterr().out


DAMAGE: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("CURRENT", lambda data: b"\0" * len(data), "CURRENT at byte 0: it names no MANIFEST"),
    ("CURRENT", lambda data: b"MANIFEST-000006\n", "CURRENT at byte 0: MANIFEST-000006 does not exist"),
    ("MANIFEST-000005", lambda data: data[:10] + b"\xff" + data[11:], "MANIFEST-000005 at byte 0: the checksum"),
    ("MANIFEST-000005", lambda data: data[:-3], "MANIFEST-000005 at byte 67: the record of 17 bytes runs 3 bytes"),
    ("000009.sst", lambda data: data[:-1] + b"\0", "000009.sst at byte 20: it does not end as a table does"),
    ("000010.sst", lambda data: data[:5], "000010.sst at byte 5: it has 5 bytes, and the MANIFEST says 28"),
]


@pytest.mark.parametrize(("name", "change", "why"), DAMAGE)
def test_damage_is_an_error_with_file_and_offset_and_nothing_is_written(
    store: Path, capsys: pytest.CaptureFixture[str], name: str, change: Callable[[bytes], bytes], why: str
) -> None:
    (store / name).write_bytes(change((store / name).read_bytes()))
    before = contents(store)
    assert run(["storedir", str(store)]) == 1
    printed = capsys.readouterr()
    assert why in printed.err and not printed.out and len(printed.err.splitlines()) == 1
    assert contents(store) == before


def test_a_directory_that_is_none_of_a_store_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["storedir", str(tmp_path)]) == 2
    assert "it has no file CURRENT" in capsys.readouterr().err
    assert run(["storedir", str(tmp_path / "none")]) == 2
    assert not any(tmp_path.iterdir())


def test_each_changed_byte_of_a_manifest_is_found(store: Path) -> None:
    manifest = store / "MANIFEST-000005"
    data = manifest.read_bytes()
    for at in range(len(data)):
        manifest.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
        with pytest.raises(Damaged):
            read(store)
