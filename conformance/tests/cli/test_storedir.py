"""``kipcheck storedir``: the formats of a store, and each kind of damage with its file and offset."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.clients.java import programs, store_checksums
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.wire.record_batches import crc32c
from kipcheck.conformance.wire.rocksdb_files import MAGICS, Damaged, read

TABLE = bytes(20) + MAGICS[0]
OF_DEFAULT = bytes([103, 0, 9, len(TABLE), 1, 97, 1, 98, 1, 2, 1])
EDITS = (
    b"\x01\x04name" + bytes([2, 0, 3, 11, 4, 7]) + OF_DEFAULT,
    bytes([200, 1, 1]) + bytes([201, 1, 21]) + b"keyValueWithTimestamp" + bytes([203, 1, 1]),
    bytes([200, 1, 1]) + bytes([103, 0, 10, len(TABLE), 1, 97, 1, 98, 1, 2, 5, 1, 120, 1]),
)


HEADERS = "keyValueWithTimestampAndHeaders"


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
    assert found["format"] == "both" and found["verified"] is None
    assert found["families"] == [
        {"name": "default", "tables": 1, "bytes": 28}, {"name": "keyValueWithTimestamp", "tables": 1, "bytes": 28}
    ]  # fmt: skip
    gone = record(bytes([6, 0, 9]))
    (store / "MANIFEST-000005").write_bytes(b"".join(map(record, EDITS)) + gone)
    assert run(["storedir", str(store)]) == 0
    assert "timestamped: all values have timestamps" in capsys.readouterr().out


def made(folder: Path, *families: str, empty: tuple[str, ...] = ()) -> Path:
    """A store with these column families, and a table in each but in those that are empty."""
    folder.mkdir(parents=True)
    edits = [b"\x01\x04name" + bytes([2, 0, 3, 11, 4, 7])]
    for number, name in enumerate(families):
        family = bytes([200, 1, number]) if number else b""
        if number:
            edits.append(family + bytes([201, 1, len(name)]) + name.encode() + bytes([203, 1, number]))
        if name not in empty:
            table = bytes([103, 0, 20 + number, len(TABLE), 1, 97, 1, 98, 1, 2, 1])
            edits.append(family + table)
            (folder / f"{20 + number:06}.sst").write_bytes(TABLE)
    (folder / "CURRENT").write_bytes(b"MANIFEST-000005\n")
    (folder / "MANIFEST-000005").write_bytes(b"".join(map(record, edits)))
    return folder


FORMATS = [
    (("default",), (), "plain", None),
    (("default", "offsets"), (), "plain", "4.3.0"),
    (("default", "keyValueWithTimestamp"), (), "both", "2.3.0"),
    (("default", "keyValueWithTimestamp"), ("default",), "timestamped", "2.3.0"),
    (("default", "offsets", "keyValueWithTimestamp"), ("default",), "timestamped", "4.3.0"),
    (("default", HEADERS, "offsets"), ("default",), "headers", "4.3.0"),
    (("default", HEADERS, "offsets"), (), "older and headers", "4.3.0"),
    (("default", "keyValueWithTimestamp", "offsets", HEADERS), ("default",), "older and headers", "4.3.0"),
    (("default", "keyValueWithTimestamp", "offsets", HEADERS), (HEADERS,), "mixed", "4.3.0"),
    (("default", "windowKeyValueWithHeaders", "offsets"), ("default",), "headers", "4.3.0"),
    (("default", "sessionKeyValueWithHeaders", "offsets"), (), "older and headers", "4.3.0"),
]


@pytest.mark.parametrize(("families", "empty", "format", "refused_before"), FORMATS)
def test_each_state_of_a_store_has_a_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], families: tuple[str, ...], empty: tuple[str, ...],
    format: str, refused_before: str | None,
) -> None:  # fmt: skip
    folder = str(made(tmp_path / "store", *families, empty=empty))
    assert run(["storedir", folder, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["refused_before"], found["unread"]) == (format, refused_before, {})
    assert run(["storedir", folder]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[len(families)] == f"{format}: {found['means']}"
    assert (f"releases before {refused_before} refuse the store" in lines) is (refused_before is not None)


@pytest.mark.parametrize(
    ("families", "why"),
    [
        (("default", "listValueWithHeaders"), "creates the column family listValueWithHeaders"),
        (("default", "a", HEADERS, "b"), "creates the column family a, b"),
        (("default", "offset"), "creates the column family offset"),
        (("default", "windowKeyValueWithHeaders", "sessionKeyValueWithHeaders"), "in one store"),
        (("default", "keyValueWithTimestamp", "sessionKeyValueWithHeaders"), "in one store"),
    ],
)
def test_column_families_that_no_release_creates_get_no_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], families: tuple[str, ...], why: str
) -> None:
    folder = str(made(tmp_path / "rocksdb" / "store", *families))
    assert run(["storedir", folder, "--json"]) == 7
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["kind"], found["refused_before"]) == ("unknown", None, None)
    assert why in found["means"] and found["means"].endswith(": no verdict")
    assert {each["name"] for each in found["families"]} == {*families}
    assert run(["storedir", folder]) == 7
    printed = capsys.readouterr().out
    assert "kind: unknown" in printed and "refuse" not in printed and "opens" not in printed


STAMPED = ("default", "keyValueWithTimestamp")


@pytest.mark.parametrize(
    ("place", "families", "kind"),
    [
        ("copy", ("default",), None),
        ("rocksdb/s", ("default",), "key-value or versioned store"),
        ("s/s.1795852800000", ("default",), "segment of a window or session store"),
        ("s/t.1795852800000", ("default",), None),
        ("copy", STAMPED, "key-value store, or a segment of a window store"),
        ("rocksdb/s.5", STAMPED, "key-value store"),
        ("s/s.1795852800000", STAMPED, "segment of a window store"),
        ("s/s.1795852800000", ("default", "sessionKeyValueWithHeaders"), "segment of a session store"),
        ("copy", ("default", "windowKeyValueWithHeaders"), "segment of a window store"),
    ],
)
def test_the_kind_of_a_store_is_named_where_families_or_names_show_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str, families: tuple[str, ...], kind: str | None
) -> None:
    assert run(["storedir", str(made(tmp_path / place, *families)), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == kind


def test_files_that_are_not_read_are_named_and_values_may_be_in_a_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = made(tmp_path / "store", *STAMPED, empty=("default",))
    for name, size in (("000012.log", 0), ("LOG.old.17", 3), ("OPTIONS-000007", 3), ("IDENTITY", 3)):
        (folder / name).write_bytes(bytes(size))
    assert run(["storedir", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["unread"]) == ("timestamped", {})
    (folder / "000012.log").write_bytes(bytes(40))
    (folder / "notes.txt").write_bytes(bytes(5))
    assert run(["storedir", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "both: values without timestamps may be left" in printed
    assert "not read: 000012.log, 40 bytes; values may be there\nnot read: notes.txt, 5 bytes\n" in printed


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


OPTIONS = b"[Version]\n  rocksdb_version=9.7.3\n  options_file_version=1.1\n"
MISMATCH = "block checksum mismatch: stored = 1, computed = 2, type = 1  in /s/000009.sst offset 7 size 9"
DAMAGED = f"000009.sst at byte 7: RocksDB 9.7.3 of kafka-streams 4.1.2 says: {MISMATCH}: delete the store"
NEWER = (
    "RocksDB 9.7.3 wrote {store}, and the older RocksDB 7.9.2 of kafka-streams 3.9.2 does not read it (Unknown Footer"
)
REPORTS = [
    ("4.1.2", f"refused\tCorruption\t{MISMATCH}  The file /s/MANIFEST-000005 may be corrupted.", DAMAGED),
    ("4.1.2", "refused\tCorruption\tbad entry in /s/000010.sst", "000010.sst: RocksDB 9.7.3"),
    (
        "4.1.2",
        "refused\tCorruption\tFooter at 20 checksum mismatch in /s/000010.sst  The file",
        "000010.sst at byte 20: ",
    ),
    ("4.1.2", "refused\tIOError\tToo many open files", "does not read {store}: Too many open files"),
    ("4.1.2", "", "does not read {store}: its process ended with 134"),
    ("3.9.2", "refused\tCorruption\tUnknown Footer version", NEWER),
]


@pytest.mark.parametrize(("release", "printed", "why"), REPORTS)
def test_what_rocksdb_refuses_is_one_line_with_file_and_offset(
    store: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    release: str,
    printed: str,
    why: str,
) -> None:
    (store / "OPTIONS-000012").write_bytes(OPTIONS)
    (store / "OPTIONS-000007").write_bytes(OPTIONS.replace(b"9.7.3", b"10.1.3"))  # of an earlier opening
    monkeypatch.setattr(programs, "tool", lambda name: name)
    monkeypatch.setattr(programs, "table_verifier", lambda version, jar: store)
    monkeypatch.setattr(store_checksums, "library_jar", lambda release: store)
    done = subprocess.CompletedProcess([], 134, f"ready\n{printed}\n", "")
    monkeypatch.setattr(process_tree, "run", lambda argv, **more: done)
    assert run(["storedir", str(store), "--release", release]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert why.format(store=store) in line
    assert "may be corrupted" not in line
    done.stdout, done.stderr = "", "java.lang.UnsatisfiedLinkError: no library\n\tat line"
    assert run(["storedir", str(store), "--release", release]) == 3
    assert capsys.readouterr().err.endswith("does not start: java.lang.UnsatisfiedLinkError: no library\n")


def test_a_release_without_a_store_is_a_usage_error_and_a_missing_jdk_exit_3(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for release, why in (("0.11.0.3", "use a release from 1.0 on"), ("9.9.9", "unknown release"), ("x", "x")):
        assert run(["storedir", str(store), "--release", release]) == 2
        assert why in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert run(["storedir", str(store), "--release", "3.9.2"]) == 3
    assert "java was not found" in capsys.readouterr().err
