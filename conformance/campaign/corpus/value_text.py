"""Serialises declared values, for corpora and failures: JSON, with a one-key object for types that JSON lacks."""

import json
import math
from typing import Any, Final
from uuid import UUID

from kipcheck.strategies.nodes import Node
from kipcheck.strategies.parse import parse

BYTES: Final = "$bytes"
"""As in ``{"$bytes": "00ff"}``."""
UUIDS: Final = "$uuid"
OBJECT: Final = "$object"
"""Wraps an object with such a key of its own: ``{"$object": {"$bytes": 1}}``."""


def plain_text(value: Any) -> str:
    """Any declared value as ASCII text, the same for the same value in every process.

    Errors: TypeError for types that no node declares (tuples, keys that are not strings), ValueError for NaN or
    infinity.
    """
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)


def value_of(node: Node, text: str) -> Any:
    """Reads ``plain_text``, if the value belongs to the declaration. Errors: ValueError with the reason if not."""
    return parse(node, loaded(text))


def loaded(text: str) -> Any:
    """Reads ``plain_text``, whatever the declaration. Errors: ValueError for other text."""
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
                raise ValueError(f"{value} is not a declared value")
            return value
        case bytes():
            return {BYTES: value.hex()}
        case UUID():
            return {UUIDS: str(value)}
        case list():
            return [_plain(each) for each in value]
        case dict():
            if strange := next((key for key in value if not isinstance(key, str)), None):
                raise TypeError(f"invalid key {strange!r}: use a string")
            inside = {key: _plain(each) for key, each in value.items()}
            return {OBJECT: inside} if any(key.startswith("$") for key in inside) else inside
        case _:
            raise TypeError(f"{type(value).__name__} is not a type of declared values")


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
                raise ValueError(f"unknown kind of value {strange}")
            return {key: _value(each) for key, each in plain.items()}
        case _:
            return plain
