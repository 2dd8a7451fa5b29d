"""Reads which column families and tables the directory of a RocksDB has, without opening it: nothing is written.

``CURRENT`` names the MANIFEST, a log of edits: records in blocks of 32 KiB, each with a masked CRC-32C (RocksDB's
``log_format.h`` and ``version_edit.h``). A table ends in a magic number. The contents of tables are not read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kipcheck.conformance.wire.record_batches import crc32c

BLOCK: Final = 32768
HEADER: Final = 7
MAGICS: Final = (bytes.fromhex("f7cff485b741e288"), bytes.fromhex("57fb808b247547db"))
"""The last bytes of a table, and of one from before RocksDB's format 1."""
WRITER: Final = re.compile(rb"^\s*rocksdb_version=(\d+\.\d+\.\d+)\s*$", re.MULTILINE)
READ: Final = re.compile(r"CURRENT|IDENTITY|LOCK|LOG(\.old\.\d+)?|MANIFEST-\d+|OPTIONS-\d+|\d+\.sst")
"""The files of a store that are read, or have no values."""
ZERO, FULL, FIRST, MIDDLE, LAST = range(5)
SAFE_TO_SKIP: Final = 1 << 13
NUMBERS: Final = {2: 1, 3: 1, 4: 1, 6: 2, 9: 1, 10: 1, 203: 1, 300: 1}
"""Tags of edits whose fields are numbers, and how many; the other ones are read one by one."""
NEW_FILES: Final = {7: 0, 100: 2, 102: 3, 103: 2}
"""Tags of new tables, and how many numbers stand behind their keys."""


class Damaged(Exception):
    """A file that cannot be read: which, where, and why."""

    def __init__(self, file: Path, offset: int | None, why: str) -> None:
        self.file, self.offset, self.why = file, offset, why
        super().__init__(f"{file}{'' if offset is None else f' at byte {offset}'}: {why}")


class NoStore(Exception):
    """A directory without a RocksDB."""


@dataclass(slots=True)
class Family:
    name: str
    tables: dict[int, int] = field(default_factory=dict)
    """Number -> size in bytes."""


def read(directory: Path) -> list[Family]:
    """The column families, in order of their numbers. Errors: ``NoStore``, ``Damaged``, OSError."""
    current = directory / "CURRENT"
    if not current.is_file():
        raise NoStore(f"{directory} is no directory of a store: it has no file CURRENT")
    name = current.read_bytes()
    if not name.startswith(b"MANIFEST-") or not name.endswith(b"\n") or not name[9:-1].isdigit():
        raise Damaged(current, 0, "it names no MANIFEST")
    manifest = directory / name[:-1].decode()
    if not manifest.is_file():
        raise Damaged(current, 0, f"{manifest.name} does not exist")
    families = {0: Family("default")}
    for at, edit in _records(manifest, manifest.read_bytes()):
        _apply(families, _Edit(manifest, at, edit))
    for each in families.values():
        for number, size in each.tables.items():
            _check_table(directory / f"{number:06}.sst", size)
    return [families[each] for each in sorted(families)]


def unread(directory: Path) -> dict[str, int]:
    """The files that may have values, or that this module does not know, and their sizes in bytes.

    A write-ahead log has the values that are in no table yet; Streams writes none, and RocksDB leaves an empty file.
    """
    return {
        each.name: each.stat().st_size
        for each in sorted(directory.iterdir())
        if not READ.fullmatch(each.name) and not (each.suffix == ".log" and each.stat().st_size == 0)
    }


def written_by(directory: Path) -> str | None:
    """The version of the RocksDB that opened the store last, to write; None without a file that says so."""
    options = sorted(directory.glob("OPTIONS-*"), key=lambda each: (len(each.name), each.name))
    for each in reversed(options):
        if found := WRITER.search(each.read_bytes()):
            return found[1].decode()
    return None


def _check_table(path: Path, size: int) -> None:
    if not path.is_file():
        raise Damaged(path, None, "the MANIFEST has it, and it does not exist")
    with path.open("rb") as file:
        found = file.seek(0, 2)
        if found != size:
            raise Damaged(path, min(found, size), f"it has {found} bytes, and the MANIFEST says {size}")
        file.seek(max(0, size - len(MAGICS[0])))
        if file.read() not in MAGICS:
            raise Damaged(path, size - len(MAGICS[0]), "it does not end as a table does")


def _records(path: Path, data: bytes) -> Iterator[tuple[int, bytes]]:
    """The records, with their offsets."""
    at, begun, whole = 0, 0, b""
    while at + HEADER <= len(data):
        if BLOCK - at % BLOCK < HEADER:
            at += BLOCK - at % BLOCK
            continue
        crc, length = int.from_bytes(data[at : at + 4], "little"), int.from_bytes(data[at + 4 : at + 6], "little")
        kind, end = data[at + 6], at + HEADER + length
        if kind == ZERO and length == 0:
            return  # space that was reserved
        if not FULL <= kind <= LAST:
            raise Damaged(path, at, f"{kind} is no kind of record")
        if end > len(data):
            raise Damaged(path, at, f"the record of {length} bytes runs {end - len(data)} bytes past the end")
        if _masked(crc32c(data[at + 6 : end])) != crc:
            raise Damaged(path, at, "the checksum of the record is wrong")
        if kind in (FULL, FIRST):
            begun, whole = at, b""
        whole += data[at + HEADER : end]
        if kind in (FULL, LAST):
            yield begun, whole
        at = end


def _masked(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


class _Edit:
    """The bytes of an edit, read from the front."""

    def __init__(self, path: Path, offset: int, data: bytes) -> None:
        self.path, self.offset, self._left = path, offset, data

    def __bool__(self) -> bool:
        return bool(self._left)

    def fail(self, why: str) -> Damaged:
        return Damaged(self.path, self.offset, f"in the record there: {why}")

    def number(self) -> int:
        found = 0
        for place, each in enumerate(self._left[:10]):
            found |= (each & 0x7F) << (7 * place)
            if each < 0x80:
                self._left = self._left[place + 1 :]
                return found
        raise self.fail("a number ends too early")

    def text(self) -> bytes:
        length = self.number()
        if length > len(self._left):
            raise self.fail(f"a text of {length} bytes runs {length - len(self._left)} bytes past the end")
        found, self._left = self._left[:length], self._left[length:]
        return found


def _apply(families: dict[int, Family], edit: _Edit) -> None:
    number, tables, gone, added, dropped = 0, dict[int, int](), set[int](), "", False
    while edit:
        tag = edit.number()
        if tag in NEW_FILES:
            edit.number()
            table, size = edit.number(), edit.number()
            tables[table] = size
            for _ in range(2):
                edit.text()
            for _ in range(NEW_FILES[tag]):
                edit.number()
            while tag == 103 and edit.number() != 1:
                edit.text()
        elif tag == 6:
            edit.number()
            gone.add(edit.number())
        elif tag == 200:
            number = edit.number()
        elif tag == 201:
            added = edit.text().decode(errors="replace")
        elif tag == 202:
            dropped = True
        elif tag == 5:
            edit.number()
            edit.text()
        elif tag == 1 or tag & SAFE_TO_SKIP:
            edit.text()
        elif tag in NUMBERS:
            for _ in range(NUMBERS[tag]):
                edit.number()
        else:
            raise edit.fail(f"{tag} is an unknown tag: a newer RocksDB wrote it")
    if added:
        families[number] = Family(added)
    if dropped:
        families.pop(number, None)
    elif number in families:
        kept = {each: size for each, size in families[number].tables.items() if each not in gone}
        families[number].tables = kept | tables
