"""Declared values as text, for a corpus and for failures: JSON, and an object with one key for what JSON lacks."""

import json
import math
from typing import Any, Final
from uuid import UUID

from kipcheck.strategies.nodes import Node
from kipcheck.strategies.parse import parse

BYTES: Final = "$bytes"
"""Of ``{"$bytes": "00ff"}``."""
UUIDS: Final = "$uuid"
OBJECT: Final = "$object"
"""Of an object that has keys like these of its own: ``{"$object": {"$bytes": 1}}``."""


def plain_text(value: Any) -> str:
    """Any declared value: ASCII alone, and the same text for the same value in every process.

    Errors: TypeError for what no node declares (tuples, keys that are no text), ValueError for a NaN or an infinity.
    """
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)


def value_of(node: Node, text: str) -> Any:
    """What ``plain_text`` wrote, if it belongs to the declaration of today. Errors: ValueError that says why not."""
    return parse(node, loaded(text))


def loaded(text: str) -> Any:
    """What ``plain_text`` wrote, whatever is declared today. Errors: ValueError where the text is none of that."""
    try:
        return _value(json.loads(text))
    except RecursionError:
        raise ValueError(f"{text[:40]!r}... is nested too deeply for a value") from None


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{value} is no value that is declared")
            return value
        case bytes():
            return {BYTES: value.hex()}
        case UUID():
            return {UUIDS: str(value)}
        case list():
            return [_plain(each) for each in value]
        case dict():
            if strange := next((key for key in value if not isinstance(key, str)), None):
                raise TypeError(f"{strange!r} is no key of a value: texts are")
            inside = {key: _plain(each) for key, each in value.items()}
            return {OBJECT: inside} if any(key.startswith("$") for key in inside) else inside
        case _:
            raise TypeError(f"{type(value).__name__} is nothing that a value is made of")


def _value(plain: Any) -> Any:
    match plain:
        case list():
            return [_value(each) for each in plain]
        case {"$bytes": str() as digits, **rest} if not rest:
            return bytes.fromhex(digits)
        case {"$uuid": str() as digits, **rest} if not rest:
            return UUID(digits)
        case {"$object": dict() as inside, **rest} if not rest:
            return {key: _value(each) for key, each in inside.items()}
        case dict():
            if strange := next((key for key in plain if key.startswith("$")), None):
                raise ValueError(f"{strange} is no kind of value")
            return {key: _value(each) for key, each in plain.items()}
        case _:
            return plain
