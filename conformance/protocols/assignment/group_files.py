"""Validates the values of a group file. Errors name the path of the value and the expected form."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

from kipcheck.conformance.wire.jsontext import Path, path_of
from kipcheck.conformance.wire.workbench import Unreadable

T = TypeVar("T")
LARGEST: Final = (1 << 31) - 1
MAX_SHOWN: Final = 40


def refuse(path: Path, why: str) -> NoReturn:
    raise Unreadable("bad-group", f"{path_of(path)}: {why}")


def keys_of(path: Path, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Errors: ``Unreadable`` for an unknown key. All functions of this module raise it for an invalid value."""
    for key in given:
        if key not in known:
            refuse((*path, key), f"unknown key: use one of {', '.join(known)}")


def object_at(path: Path, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        refuse(path, f"must be an object, got {shown(given)}")
    found: dict[str, Any] = given
    return found


def list_at(path: Path, given: Any) -> list[Any]:
    if not isinstance(given, list):
        refuse(path, f"must be a list, got {shown(given)}")
    found: list[Any] = given
    return found


def text_at(path: Path, given: Any) -> str:
    if not isinstance(given, str):
        refuse(path, f"must be a string, got {shown(given)}")
    try:
        given.encode()
    except UnicodeEncodeError:
        refuse(path, "must be valid Unicode, got a lone surrogate, which UTF-8 cannot encode")
    return str(given)


def number_at(path: Path, given: Any, least: int, most: int = LARGEST) -> int:
    if type(given) is not int:
        refuse(path, f"must be an integer, got {shown(given)}")
    if not least <= given <= most:
        refuse(path, f"must be from {least} to {most}, got {shown(given)}")
    return int(given)


def flag_at(path: Path, given: Any) -> bool:
    if not isinstance(given, bool):
        refuse(path, f"must be true or false, got {shown(given)}")
    return given


def hex_at(path: Path, given: Any) -> str:
    try:
        return bytes.fromhex(text_at(path, given)).hex()
    except ValueError:
        refuse(path, f"must be hexadecimal, got {shown(given)}")


def partition_at(path: Path, given: Any) -> tuple[str, int]:
    if not isinstance(given, list) or len(given) != 2:
        refuse(path, f'must be a partition as ["topic", number], got {shown(given)}')
    return text_at((*path, 0), given[0]), number_at((*path, 1), given[1], 0)


def each_once(path: Path, given: Any, read: Callable[[Path, Any], Any]) -> list[Any]:
    found: list[Any] = []
    known: set[Any] = set()
    for n, each in enumerate(list_at(path, given)):
        value = read((*path, n), each)
        if value in known:
            refuse((*path, n), f"duplicate value {json.dumps(each)}: remove one")
        known.add(value)
        found.append(value)
    return found


def shown(given: Any) -> str:
    text = json.dumps(given)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def read_lines(read: Callable[[str], T], lines: Iterable[str]) -> Iterator[T | Unreadable]:
    """What each line contains, or why it is unreadable."""
    for line in lines:
        try:
            yield read(line)
        except Unreadable as why:
            yield why


def error_line(kind: str, why: str) -> tuple[str, bool]:
    """A line of JSON with an error in place of a result, and False."""
    return json.dumps({"error": {"class": kind, "message": why}}, ensure_ascii=False), False
