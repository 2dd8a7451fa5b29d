"""A group in a file of a person: each value looked at where it stands, and refused with its place and what would do."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeAlias

from kipcheck.conformance.wire.jsontext import path_of
from kipcheck.conformance.wire.workbench import Unreadable

Path: TypeAlias = tuple[str | int, ...]
LARGEST: Final = (1 << 31) - 1
SHOWN: Final = 40


def refuse(path: Path, why: str) -> NoReturn:
    raise Unreadable("bad-group", f"{path_of(path)}: {why}")


def keys_of(path: Path, given: Mapping[str, Any], known: Sequence[str]) -> None:
    """Errors: ``Unreadable`` for one that is not known; so do all the others."""
    for key in given:
        if key not in known:
            refuse((*path, key), f"no key is called so; there are {', '.join(known)}")


def object_at(path: Path, given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        refuse(path, f"an object is wanted, not {shown(given)}")
    found: dict[str, Any] = given
    return found


def list_at(path: Path, given: Any) -> list[Any]:
    if not isinstance(given, list):
        refuse(path, f"a list is wanted, not {shown(given)}")
    found: list[Any] = given
    return found


def text_at(path: Path, given: Any) -> str:
    if not isinstance(given, str):
        refuse(path, f"a text is wanted, not {shown(given)}")
    try:
        given.encode()
    except UnicodeEncodeError:
        refuse(path, "half a character, which UTF-8 cannot hold")
    return str(given)


def number_at(path: Path, given: Any, least: int, most: int = LARGEST) -> int:
    if type(given) is not int:
        refuse(path, f"a whole number is wanted, not {shown(given)}")
    if not least <= given <= most:
        refuse(path, f"a number from {least} to {most} is wanted, not {shown(given)}")
    return int(given)


def flag_at(path: Path, given: Any) -> bool:
    if not isinstance(given, bool):
        refuse(path, f"true or false is wanted, not {shown(given)}")
    return given


def hex_at(path: Path, given: Any) -> str:
    try:
        return bytes.fromhex(text_at(path, given)).hex()
    except ValueError:
        refuse(path, f"hex is wanted, not {shown(given)}")


def partition_at(path: Path, given: Any) -> tuple[str, int]:
    if not isinstance(given, list) or len(given) != 2:
        refuse(path, f'a partition is ["topic", number], not {shown(given)}')
    return text_at((*path, 0), given[0]), number_at((*path, 1), given[1], 0)


def each_once(path: Path, given: Any, read: Callable[[Path, Any], Any]) -> list[Any]:
    found: list[Any] = []
    known: set[Any] = set()
    for n, each in enumerate(list_at(path, given)):
        value = read((*path, n), each)
        if value in known:
            refuse((*path, n), f"{json.dumps(each)} stands there twice; leave one out")
        known.add(value)
        found.append(value)
    return found


def shown(given: Any) -> str:
    text = json.dumps(given)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def failed(kind: str, why: str) -> tuple[str, bool]:
    """A line in the place of a result, and that it is none."""
    return json.dumps({"error": {"class": kind, "message": why}}, ensure_ascii=False), False
