"""Stores the rows of a campaign: ``ledger/round=N/wave-M.parquet`` in its folder, some rows in each file.

A file is complete or absent. Without pyarrow the file is ``wave-M.jsonl``; both formats are read. A shard may have rows
in several waves, because a driver that was killed does not know what it had written: one row counts.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

from kipcheck.conformance.campaign.files import Full, SetAside, put, set_aside
from kipcheck.conformance.campaign.rows import FINAL_STATUSES, Key, Row, digest_of, hash_over
from kipcheck.conformance.core.files.install import advice
from kipcheck.conformance.core.files.output_folder import OutputFolder, Unusable

__all__ = [
    "Clash",
    "Full",
    "LedgerContents",
    "Part",
    "Scan",
    "SetAside",
    "Unreadable",
    "next_wave",
    "read",
    "rounds",
    "rows_in",
    "storable",
    "write",
]

NAME: Final = "ledger"
FORMAT: Final = 1
"""The format of the JSON Lines."""
_WAVE: Final = re.compile(r"wave-(\d+)\.(parquet|jsonl)(?:\.\d+)?(\.damaged)?")


class Unreadable(LookupError):
    """Rows cannot be read here."""


@dataclass(frozen=True, slots=True)
class Clash:
    """A shard of a deterministic target with several results: a bug in kipcheck."""

    key: Key
    digests: tuple[str, ...]
    files: tuple[Path, ...]
    """The first file with each digest."""
    target: str = "*"

    def __str__(self) -> str:
        stored = ", ".join(f"{digest} in {path}" for digest, path in zip(self.digests, self.files, strict=True))
        return f"shard {self.key.shard} of round {self.key.round} has several results: {stored}"


@dataclass(frozen=True, slots=True)
class LedgerContents:
    """The rows in all files of a ledger."""

    rows: Mapping[Key, Row]
    """The row that counts for each shard, in the order of the keys."""
    clashes: Sequence[Clash] = ()
    set_aside: Sequence[SetAside] = ()

    @property
    def ended(self) -> frozenset[Key]:
        """Shards that a resumed campaign does not run again."""
        return frozenset(key for key, row in self.rows.items() if row.status in FINAL_STATUSES)

    @property
    def hash(self) -> str:
        """The hash of the campaign: it does not depend on where and in which order its shards ran."""
        return hash_over(self.rows.values())


# ---- writing


def write(folder: Path, round_: int, wave: int, rows: Iterable[Row], as_lines: bool = False) -> Path:
    """Writes a wave. An existing wave is not overwritten: the next free number is used. ``as_lines``: as JSON Lines,
    which take less time than a Parquet file of a few rows.

    Errors: ``Full``; OSError; ``output_folder.Unusable``.
    """
    stored = [storable(row) for row in rows]
    place = folder / NAME / f"round={round_}"
    number = next_wave(folder, round_) if _wave_exists(place, wave) else wave
    arrow = None if as_lines else _arrow()[0]
    name = f"wave-{number}.jsonl" if arrow is None else f"wave-{number}.parquet"
    path = OutputFolder(folder).claim(f"{NAME}/round={round_}/{name}", durable=True)
    return put(path, _lines_of(stored) if arrow is None else arrow.parquet_of(stored))


def next_wave(folder: Path, round_: int) -> int:
    """The number after the last wave, damaged ones included."""
    place = folder / NAME / f"round={round_}"
    found = (_WAVE.fullmatch(path.name) for path in place.iterdir()) if place.is_dir() else ()
    return 1 + max((int(each[1]) for each in found if each), default=-1)


def _wave_exists(place: Path, wave: int) -> bool:
    return any((place / f"wave-{wave}.{form}").exists() for form in ("parquet", "jsonl"))


def storable(row: Row) -> Row:
    """The row in a form that any ledger can store: half a surrogate pair in a target's text has no UTF-8 form.

    It is replaced by its escape; if that changes the row's digest, the row is sealed again.
    """
    plain = row.plain
    if _has_utf_8(plain):
        return row
    found = Row.of(_clean(plain))
    return found.sealed() if row.sealed().digest == row.digest else found


def _has_utf_8(plain: Any) -> bool:
    try:
        json.dumps(plain, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _clean(plain: Any) -> Any:
    match plain:
        case str():
            return plain if plain.isascii() else plain.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {name: _clean(each) for name, each in plain.items()}
        case list():
            return [*map(_clean, plain)]
    return plain


def _lines_of(rows: Sequence[Row]) -> bytes:
    """A header with the number of rows, then a row a line, each with a checksum: digests do not cover all text."""
    plain = [row.plain for row in rows]
    lines = [{"format": FORMAT, "rows": len(rows)}, *({"sum": digest_of(each), **each} for each in plain)]
    return "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines).encode()


# ---- reading


class _Read(NamedTuple):
    """The contents of one file."""

    rows: list[Row]
    errors: str
    """The error in the file; empty if there is none."""


def read(folder: Path) -> LedgerContents:
    """All rows below the folder of a campaign; none if it has no ledger yet. Errors: as ``Scan``."""
    scan = Scan(folder)
    rows = {row.key: row for row in scan}
    return LedgerContents({key: rows[key] for key in sorted(rows)}, scan.clashes, scan.set_aside)


def rounds(folder: Path) -> list[int]:
    """The rounds of which there are rows."""
    names = [path.name.partition("=")[2] for path in (folder / NAME).glob("round=*")]
    return sorted(int(each) for each in names if each.isdecimal())


class Part(NamedTuple):
    """A file of a ledger, and the shards whose rows in it count."""

    path: Path
    keys: frozenset[Key]

    def counting(self, rows: Iterable[Row]) -> Iterator[Row]:
        missing = {*self.keys}
        for row in rows:
            if row.key in missing:
                missing.remove(row.key)
                yield row

    def rows(self) -> list[Row] | None:
        """None if the file is damaged, or is not there: only the driver sets it aside. Errors: ``Unreadable``."""
        try:
            found = _read(self.path)
        except OSError:
            return None
        return None if found.errors else [*self.counting(found.rows)]


@dataclass(slots=True)
class Scan:
    """The rows that count, to be iterated once: the files of one round after the other, each read when it is its turn.

    A damaged file is set aside, and its readable rows are written to a new one. Errors: ``Unreadable`` if pyarrow is
    missing for a file; OSError if a file cannot be read at all.
    """

    folder: Path
    rounds: Sequence[int] | None = None
    """None: all."""
    clashes: list[Clash] = field(default_factory=list)
    set_aside: list[SetAside] = field(default_factory=list)

    def __iter__(self) -> Iterator[Row]:
        for round_ in rounds(self.folder) if self.rounds is None else self.rounds:
            for part in self.parts(round_):
                yield from self.rows_of(part)

    def parts(self, round_: int) -> list[Part]:
        """The files of a round with rows that count. Their rows are not read yet."""
        files = _files(self.folder, round_)
        keys: dict[Path, set[Key]] = {}
        for key, (_, path) in self._counting(files).items():
            keys.setdefault(path, set()).add(key)
        return [Part(path, frozenset(keys[path])) for path in files if path in keys]

    def rows_of(self, part: Part) -> Iterator[Row]:
        return part.counting(self._readable(part.path))

    def _counting(self, files: list[Path]) -> dict[Key, tuple["_Head", Path]]:
        """The row that counts for each shard, and its file. Appends files of readable rows to ``files``."""
        counting: dict[Key, tuple[_Head, Path]] = {}
        ends: dict[Key, dict[str, Path]] = {}
        for path in files:  # which may grow
            for head in self._heads(path, files):
                known, where = counting.get(head.key, (None, path))
                if known is not None and _differ(known, head):
                    ends.setdefault(head.key, {known.digest: where}).setdefault(head.digest, path)
                if known is None or _is_superseded(known, head):
                    counting[head.key] = head, path
        for key, found in sorted(ends.items()):
            self.clashes.append(Clash(key, tuple(found), tuple(found.values()), counting[key][0].target))
        return counting

    def _heads(self, path: Path, files: list[Path]) -> Sequence["_Head"]:
        if path.suffix == ".parquet":
            with suppress(ValueError):
                return [_Head(Key(*each[:3]), *each[3:]) for each in _needed_arrow(path).heads_in(path)]
        rows, errors = _read(path)
        if errors:
            aside, saved = _recovered(self.folder, path, rows, errors)
            self.set_aside.append(aside)
            if aside.now is not None:
                files += [] if saved is None else [saved]
                return []
        return [_Head(row.key, row.target, row.status, row.deterministic, row.digest) for row in rows]

    def _readable(self, path: Path) -> Sequence[Row]:
        known = any(each.path == path for each in self.set_aside)
        if known and not path.exists():
            return ()
        rows, errors = _read(path)
        if errors and not known:
            self.set_aside.append(_recovered(self.folder, path, rows, errors)[0])
        return rows


def rows_in(path: Path) -> list[Row]:
    """The readable rows of one file of a ledger. Errors: as ``read``."""
    return _read(path).rows


class _Head(NamedTuple):
    """What decides which of the rows of a shard counts."""

    key: Key
    target: str
    status: str
    deterministic: bool
    digest: str


def _is_superseded(known: _Head, row: _Head) -> bool:
    """Whether a later row replaces a known one: only if the known row is not a result of the shard itself."""
    if row.status not in FINAL_STATUSES:
        return known.status not in FINAL_STATUSES
    return known.status not in FINAL_STATUSES or (known.status == "infra" and row.status != "infra")


def _differ(known: _Head, row: _Head) -> bool:
    """Whether these are two results of a shard that can have only one."""
    both = known.status, row.status
    outcomes = all(status in FINAL_STATUSES and status != "infra" for status in both)
    return outcomes and known.deterministic and row.deterministic and known.digest != row.digest


def _files(folder: Path, round_: int) -> list[Path]:
    """In the order in which they were written."""

    def order(path: Path) -> tuple[int, str]:
        wave = _WAVE.fullmatch(path.name)
        assert wave is not None
        return int(wave[1]), path.name

    found = (folder / NAME / f"round={round_}").glob("wave-*")
    waves = (path for path in found if not path.name.endswith(".damaged"))
    return sorted((path for path in waves if _WAVE.fullmatch(path.name)), key=order)


def _read(path: Path) -> _Read:
    data = path.read_bytes()
    parts = _parts_of(data) if path.suffix == ".jsonl" else _needed_arrow(path).parts_in(data)
    rows: list[Row] = []
    errors: list[str] = []
    try:
        for part in parts:
            if isinstance(part, str):
                errors.append(part)
            elif part.sealed().digest != part.digest:
                errors.append(f"the digest of shard {part.shard} does not match")
            else:
                rows.append(part)
    except ValueError as broken:
        errors.append(str(broken))
    return _Read(rows, "; ".join(errors))


def _parts_of(data: bytes) -> Iterator[Row | str]:
    """Yields rows, and messages for those that are damaged. Errors: ValueError if the file cannot be read."""
    first, *lines = data.split(b"\n")
    header = json.loads(first)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"it is not a ledger of format {FORMAT}")
    for number, line in enumerate(filter(None, lines), 2):
        try:
            plain = json.loads(line)
            stored = plain.pop("sum")
            yield Row.of(plain) if digest_of(plain) == stored else f"the checksum of line {number} does not match"
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as broken:
            yield f"line {number}: {broken}"
    if len(lines) - 1 != header["rows"]:
        yield f"it has {len(lines) - 1} of {header['rows']} rows"


def _recovered(folder: Path, path: Path, rows: Sequence[Row], errors: str) -> tuple[SetAside, Path | None]:
    """Sets a file aside. First its readable rows are written to another file, which is the second value."""
    saved = None
    if rows:
        round_ = int(path.parent.name.partition("=")[2])
        try:
            saved = write(folder, round_, next_wave(folder, round_), rows)
        except (OSError, Unusable):
            return SetAside(path, errors, None, len(rows)), None
    return set_aside(path, errors, len(rows)), saved


def _needed_arrow(path: Path) -> ModuleType:
    """Errors: ``Unreadable``."""
    arrow, missing = _arrow()
    if arrow is None:
        raise Unreadable(f"{path} is Parquet: to read it, {advice('spark', 'pyarrow')} ({missing})")
    return arrow


def _arrow() -> tuple[ModuleType | None, str]:
    """The module that reads Parquet; None if pyarrow is missing, and the reason."""
    try:
        from kipcheck.conformance.campaign.report import arrow
    except ImportError as missing:
        return None, str(missing)
    return arrow, ""
