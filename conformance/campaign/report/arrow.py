"""Converts rows to Arrow and Parquet. Only the extra ``spark`` installs pyarrow: import this module where needed."""

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.parquet as pq

from kipcheck.conformance.campaign.rows import Row

GROUP: Final = 16
"""Rows in a row group; if a file is damaged, readable groups are recovered."""
HEAD: Final = ("campaign", "round", "shard", "target", "status", "deterministic", "digest")
_PAIR: Final = ("subject", "version")
"""The field names of the pairs in ``Found.where``, since Arrow has no pairs."""


def _type(hint: Any) -> Any:
    """The Arrow type for a field of a row. Errors: TypeError for unsupported types."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return pa.struct([(each.name, _type(hints[each.name])) for each in fields(hint)])
    arguments = get_args(hint)
    if get_origin(hint) is Literal:
        return pa.string()
    if get_origin(hint) is tuple and arguments[1:] == (...,):
        return pa.list_(_type(arguments[0]))
    if get_origin(hint) is tuple and len(arguments) == len(_PAIR):
        return pa.struct(list(zip(_PAIR, map(_type, arguments), strict=True)))
    if NoneType in arguments and len(arguments) == 2:
        return _type(next(each for each in arguments if each is not NoneType))
    raise TypeError(f"rows have no fields of the type {hint}")


_PLAIN: Final[dict[Any, Any]] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
SCHEMA: Final[Any] = pa.schema(list(_type(Row)))
"""Column types come from ``Row``: types that Arrow infers differ between waves, and empty lists have none. Integers
are signed, with 64 bits."""


def table_of(rows: Iterable[Row]) -> Any:
    """A ``pyarrow.Table``. Errors: ``pyarrow.ArrowException`` (a ValueError or TypeError) for invalid rows."""
    lines = "\n".join(json.dumps(_plain(row.plain)) for row in rows).encode()
    if not lines:
        return SCHEMA.empty_table()
    # Through JSON, because PyArrow imports pandas, for a second, to look at Python's own values.
    reading = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    parsing = pj.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="error")
    return pj.read_json(io.BytesIO(lines), reading, parsing).combine_chunks()


def parquet_of(rows: Iterable[Row]) -> bytes:
    """The bytes of a file. Errors: see ``table_of``."""
    sink = io.BytesIO()
    # Statistics of texts and keys are useless to readers, and would be half of a small file with many groups.
    settings = {"compression": "zstd", "write_page_checksum": True, "write_statistics": ["shard", "status", "target"]}
    pq.write_table(table_of(rows), sink, row_group_size=GROUP, **settings)
    return sink.getvalue()


def heads_in(path: Path) -> Iterator[tuple[Any, ...]]:
    """Campaign, round, shard, target, status, whether it is deterministic, and digest of each row.

    Errors: ValueError if the file cannot be read.
    """
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        found = file.read(columns=[*HEAD], use_threads=False).select(HEAD)
    except (OSError, KeyError, pa.ArrowException) as broken:
        raise ValueError(_line(broken)) from None
    yield from zip(*(column.to_pylist() for column in found.columns), strict=True)


def parts_in(data: bytes) -> Iterator[Row | str]:
    """Yields rows of a file, and messages for damaged parts. Errors: ValueError if the file cannot be read."""
    try:
        file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        groups = range(file.num_row_groups)
    except (OSError, pa.ArrowException) as broken:
        raise ValueError(_line(broken)) from None
    for number in groups:
        try:
            plain = file.read_row_group(number, use_threads=False).to_pylist()
        except (OSError, ValueError, pa.ArrowException) as broken:
            yield f"{file.metadata.row_group(number).num_rows} rows cannot be read: {_line(broken)}"
        else:
            yield from map(_row, plain)


def _row(plain: dict[str, Any]) -> Row | str:
    try:
        return Row.of(_listed(plain))
    except (ValueError, TypeError, KeyError) as broken:
        return f"invalid row: {broken}"


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _plain(value: Any) -> Any:
    """Pairs become structs, as Arrow needs them."""
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case [str(), int() | None]:
            return dict(zip(_PAIR, value, strict=True))
        case list():
            return [_plain(each) for each in value]
    return value


def _listed(value: Any) -> Any:
    """The reverse: structs of pairs become lists."""
    match value:
        case {"subject": subject, "version": version, **others} if not others:
            return [subject, version]
        case dict():
            return {name: _listed(each) for name, each in value.items()}
        case list():
            return [_listed(each) for each in value]
    return value
