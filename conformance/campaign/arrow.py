"""Rows of a campaign in Arrow and Parquet. Only the extra ``spark`` brings pyarrow: import this where it is needed."""

import io
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from conformance.campaign.rows import Row

GROUP: Final = 64
"""Rows that are read or lost together where a file is damaged."""
_PAIR: Final = ("subject", "version")
"""What Arrow calls the two of ``Found.where``: it knows no pairs."""


def _type(hint: Any) -> Any:
    """The Arrow type of what a field of a row holds. Errors: TypeError for what none was thought of."""
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
    raise TypeError(f"rows hold nothing of the type {hint}")


_PLAIN: Final[dict[Any, Any]] = {str: pa.string(), int: pa.int64(), bool: pa.bool_()}
SCHEMA: Final[Any] = pa.schema(list(_type(Row)))
"""Every column has its type from ``Row``: what Arrow would guess differs from wave to wave, and of an empty list it
knows nothing. Integers have 64 bits and a sign."""


def table_of(rows: Iterable[Row]) -> Any:
    """A ``pyarrow.Table``. Errors: ``pyarrow.ArrowException`` (a ValueError or TypeError) for what is no row."""
    return pa.Table.from_pylist([_plain(row.plain) for row in rows], schema=SCHEMA)


def rows_of(table: Any) -> list[Row]:
    """Of a table, or of a batch. Errors: KeyError, TypeError or ValueError where it holds no rows."""
    return [Row.of(each) for each in table.to_pylist()]


def parquet_of(rows: Iterable[Row]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table_of(rows), sink, compression="zstd", write_page_checksum=True, row_group_size=GROUP)
    return sink.getvalue()


def rows_in(data: bytes) -> list[Row]:
    file = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
    return rows_of(file.read())


def _plain(value: Any) -> Any:
    """For to Arrow a tuple is no list, and a pair is a struct."""
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case (str(), int() | None):
            return dict(zip(_PAIR, value, strict=True))
        case tuple() | list():
            return [_plain(each) for each in value]
    return value
