"""Frozen values as plain data for JSON: the states and actions of machines, for people and other programs."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, get_args, get_type_hints

KIND = "is"
"""The key for the kind of a value, where values of several kinds may stand."""


def short_digest(value: Any) -> str:
    """12 hex digits over a value of JSON: ids of failures, and digests of answers, are made of them."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()


def plain(value: object, kind: str | None = None) -> Any:
    """Fields by name, tuples and sets as lists, enum members by name.

    ``kind``: the key for the value's kind; None: its kind is left out. Errors: TypeError for any other type of value.
    """
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    form: Any = type(value)
    if is_dataclass(form) or hasattr(form, "_fields"):
        tagged = {kind: kind_of(value)} if kind else {}
        return {**tagged, **{name: plain(getattr(value, name), key) for name, key in _kinds(form).items()}}
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each, KIND) for key, each in value.items()}
    if isinstance(value, frozenset | set):
        return sorted((plain(each, kind) for each in value), key=repr)
    if isinstance(value, tuple | list):
        return [plain(each, kind) for each in value]
    raise TypeError(f"{form.__name__} has no plain form")


def kind_of(value: object) -> str:
    """The class name in kebab case: ``BrokerUp(...)`` is a ``broker-up``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(value).__name__).lower()


@cache
def _kinds(form: Any) -> Mapping[str, str | None]:
    """For each field, the key for the kind of its values; None if only one kind may stand there."""
    hints = get_type_hints(form)
    names = [each.name for each in fields(form)] if is_dataclass(form) else list(form._fields)
    return {name: KIND if _several(hints.get(name)) else None for name in names}


def _several(hint: Any) -> bool:
    """Whether values of several kinds, or of any kind, may stand there."""
    named = set(_named(hint))
    return len(named) > 1 or hint is None


def _named(hint: Any) -> Any:
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        yield hint
    elif not get_args(hint) and not isinstance(hint, type):
        yield from (hint, None)  # a type variable stands for any kind
    for each in get_args(hint):
        if each is not Ellipsis and each is not type(None):
            yield from _named(each)
