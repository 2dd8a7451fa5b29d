"""A changed byte within a table of a store: the RocksDB of the release finds it, and the directory stays as it is."""

import hashlib
import re
from pathlib import Path

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.clients.java.store_process import store_process
from kipcheck.conformance.core.files.releases_table import judges

NEWEST = judges("streams")[-1]


def hashes(folder: Path) -> dict[str, str]:
    return {each.name: hashlib.sha256(each.read_bytes()).hexdigest() for each in folder.iterdir()}


def written(release: str, folder: Path) -> Path:
    """The directory of a store with some blocks of values."""
    with store_process(release, folder) as store:
        store.answer("store-open", format="timestamped")
        store.answer("fill", count=2000)
        for op in ("store-flush", "store-close"):
            assert store.answer(op) == {"status": "accepted"}
    return folder / "rocksdb" / "store"


@pytest.mark.jars
@pytest.mark.integration
@pytest.mark.parametrize(
    "release", [NEWEST, *(pytest.param(each, marks=pytest.mark.all_jars) for each in ("2.5.1", "3.9.2"))]
)
def test_a_changed_byte_within_a_table_is_found_with_file_and_offset_and_nothing_is_written(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = written(release, tmp_path)
    command = ["storedir", str(store), "--release", release]
    before = hashes(store)
    assert run(command) == 0
    assert f"of kafka-streams {release} verified the checksums of " in capsys.readouterr().out
    assert hashes(store) == before
    table = max(store.glob("*.sst"), key=lambda each: each.stat().st_size)
    data = bytearray(table.read_bytes())
    middle = len(data) // 2
    data[middle] ^= 0xFF
    table.write_bytes(data)
    before = hashes(store)
    assert run(command[:2]) == 0, "the ends of tables are whole"
    assert "the contents of tables were not read" in capsys.readouterr().out
    assert run(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    found = re.search(r"at byte (\d+): .* offset (\d+) size (\d+): ", line)
    assert found and str(table) in line
    begin, offset, size = map(int, found.groups())
    assert begin == offset <= middle < offset + size
    assert "block checksum mismatch" in line
    assert hashes(store) == before
