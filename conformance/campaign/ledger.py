"""The rows of a campaign in files: ``ledger/round=N/wave-M.parquet`` below its folder, one for each wave.

A wave is whole or absent: it is written beside its place and then put there. Without pyarrow it is ``wave-M.jsonl``,
and both are read wherever they stand.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.campaign.rows import Key, Row

NAME: Final = "ledger"


class Full(OSError):
    """There is no room for a file."""


@dataclass(frozen=True, slots=True)
class Clash:
    """Two rows with one key and two digests: a defect of ours."""

    key: Key
    digests: tuple[str, ...]
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that is damaged."""

    path: Path
    why: str


@dataclass(frozen=True, slots=True)
class Holdings:
    """Of all files of a ledger."""

    rows: Mapping[Key, Row]
    clashes: Sequence[Clash] = ()
    set_aside: Sequence[SetAside] = ()


def write(folder: Path, round_: int, wave: int, rows: Iterable[Row]) -> Path:
    """Errors: ``Full``; OSError."""
    place = folder / NAME / f"round={round_}"
    place.mkdir(parents=True, exist_ok=True)
    try:
        from conformance.campaign import arrow
    except ModuleNotFoundError:
        path = place / f"wave-{wave}.jsonl"
        data = "".join(json.dumps(row.plain, separators=(",", ":")) + "\n" for row in rows).encode()
    else:
        path = place / f"wave-{wave}.parquet"
        data = arrow.parquet_of(rows)
    beside = path.with_name(path.name + ".part")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    return path


def read(folder: Path) -> Holdings:
    rows: dict[Key, Row] = {}
    for path in sorted((folder / NAME).glob("round=*/wave-*.*")):
        if path.suffix == ".jsonl":
            found = [Row.of(json.loads(line)) for line in path.read_bytes().splitlines()]
        elif path.suffix == ".parquet":
            from conformance.campaign import arrow

            found = arrow.rows_in(path.read_bytes())
        else:
            continue
        for row in found:
            rows.setdefault(row.key, row)
    return Holdings(rows)
