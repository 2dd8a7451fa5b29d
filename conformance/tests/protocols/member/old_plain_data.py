"""Converts dataclasses of machines to bodies of steps and answers, and back, field by field."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias

from kipcheck.conformance.protocols.group.model.messages import Error

Reader: TypeAlias = Callable[[Any], Any]
"""Validates and converts one JSON value. Errors: TypeError."""


def text(found: Any) -> str:
    if isinstance(found, str):
        return found
    raise TypeError(f"must be a string, got {found!r}")


def integer(found: Any) -> int:
    if type(found) is int:
        return found
    raise TypeError(f"must be an integer, got {found!r}")


def flag(found: Any) -> bool:
    if isinstance(found, bool):
        return found
    raise TypeError(f"must be true or false, got {found!r}")


def error(found: Any) -> Error:
    """An error by name. Errors unknown to this protocol become UNKNOWN_SERVER_ERROR."""
    return Error.__members__.get(text(found), Error.UNKNOWN_SERVER_ERROR)


def known_error(found: Any) -> Error:
    if found not in Error.__members__:
        raise TypeError(f"unknown error {found!r}: use one of {', '.join(Error.__members__)}")
    return Error[found]


def optional(reader: Reader) -> Reader:
    return lambda found: None if found is None else reader(found)


def rows(*readers: Reader) -> Reader:
    def read(found: Any) -> tuple[tuple[Any, ...], ...]:
        if not isinstance(found, list | tuple):
            raise TypeError(f"must be a list, got {found!r}")
        for row in found:
            if not isinstance(row, list | tuple) or len(row) != len(readers):
                raise TypeError(f"each item must be a list of {len(readers)}, got {row!r}")
        return tuple(tuple(reader(each) for reader, each in zip(readers, row, strict=True)) for row in found)

    return read


def list_of(reader: Reader) -> Reader:
    def read(found: Any) -> tuple[Any, ...]:
        if not isinstance(found, list | tuple):
            raise TypeError(f"must be a list, got {found!r}")
        return tuple(map(reader, found))

    return read


OPAQUE_FIELDS = frozenset({"user_data"})
"""Fields with values that only the machines understand. They are not converted."""


def body_of(value: Any, readers: Iterable[str]) -> dict[str, Any]:
    return {name: _plain(getattr(value, name)) for name in readers}


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Error):
        return value.name
    if is_dataclass(value):
        return {
            each.name: _plain(getattr(value, each.name)) for each in fields(value) if each.name not in OPAQUE_FIELDS
        }
    return [*map(_plain, value)] if isinstance(value, tuple) else value


def fields_from(body: Mapping[str, Any], readers: Mapping[str, Reader], made: Any = None) -> dict[str, Any]:
    """The fields of the class ``made``, converted. Errors: TypeError."""
    for name in body.keys() - readers.keys():
        raise TypeError(f"unknown field {name}: the fields are {', '.join(readers) or 'none'}")
    for name in _needed(made) if made is not None else ():
        if name in readers and name not in body:
            raise TypeError(f"the field {name} is missing")
    read = {}
    for name, value in body.items():
        try:
            read[name] = readers[name](value)
        except TypeError as wrong:
            raise TypeError(f"{name}: {wrong}") from None
    return read


@cache
def _needed(made: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(made) if each.default is MISSING)
