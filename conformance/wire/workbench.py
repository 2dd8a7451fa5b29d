"""Converts bytes to JSON text and back: for the commands ``encode`` and ``decode``, and their ``--batch``."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from string import hexdigits
from typing import TYPE_CHECKING, Any, Final

from kipcheck.conformance.core.files.unreadable_file import not_text
from kipcheck.conformance.core.values.edition import Edition, edition as edition_named
from kipcheck.conformance.wire.errors import CLASSES, Refused
from kipcheck.conformance.wire.log_file_layouts import LogFileSpec, log_file_spec
from kipcheck.conformance.wire.log_files import VERSIONS as LOG_FILES
from kipcheck.conformance.wire.schema import Layout, MessageSpec, spec

if TYPE_CHECKING:
    from kipcheck.conformance.wire.znodes import NodeSpec

INPUT_CLASSES: Final = {
    "not-json": "a line or file that is not a JSON object",
    "not-hex": "text that is not hex",
    "bad-line": "a batch line with a missing or unknown key, or a value of a wrong type",
    "unknown-edition": "an unknown edition",
    "unknown-message": "a message that the edition does not have",
    "unknown-version": "a version that the message does not have",
}
"""Classes of input errors (exit 2). A refusal by the layout has a class of ``errors.CLASSES`` (exit 1)."""


class Unreadable(ValueError):
    """Input that cannot be encoded or decoded at all."""

    def __init__(self, kind: str, why: str):
        self.kind = kind
        """One of ``INPUT_CLASSES``."""
        super().__init__(why)


@cache
def named(edition: str, message: str, version: int) -> Layout:
    """The layout. Errors: ``Unreadable``, whose class says whether edition, message or version is unknown."""
    declaration = declared(edition, message)
    try:
        return declaration.at(version)
    except LookupError as error:
        raise Unreadable("unknown-version", str(error.args[0])) from None


def newest(edition: str, message: str) -> Layout:
    """The layout of the message's newest version. Errors: ``Unreadable``, as ``named``."""
    versions = declared(edition, message).versions
    high = versions[-1] if isinstance(versions, tuple) else versions.high
    assert high is not None  # declarations end
    return named(edition, message, high)


def declared(edition: str, message: str) -> "MessageSpec | NodeSpec | LogFileSpec":
    """The message at all versions. Errors: ``Unreadable``, as ``named``."""
    try:
        text = edition_named(edition)
    except LookupError as error:
        raise Unreadable("unknown-edition", str(error.args[0])) from None
    try:
        return _declaration(text, message)
    except LookupError as error:
        raise Unreadable("unknown-message", str(error.args[0])) from None


def _declaration(edition: Edition, message: str) -> "MessageSpec | NodeSpec | LogFileSpec":
    if message.endswith("ZNode"):
        from kipcheck.conformance.wire.znodes import znode_spec  # a JSON module that is rarely needed

        return znode_spec(edition, message)
    if message in LOG_FILES:
        return log_file_spec(edition, message)
    return spec(edition, message)


def hex_of(layout: Layout, text: str) -> str:
    """JSON text -> hex. Errors: ``Unreadable`` unless it is one object; ``Refused`` by the layout."""
    return layout.encode(layout.codec.from_json(object_of(text))).hex()


def json_of(layout: Layout, text: str) -> str:
    """Hex -> JSON text. Errors: ``Unreadable`` unless it is hex; ``Refused`` by the layout."""
    return json.dumps(layout.codec.to_json(layout.decode(unhex(text))), ensure_ascii=False)


JAVA_BYTES: Final = re.compile(r"\[\s*((?:-?[0-9]{1,4}\s*(?:,\s*-?[0-9]{1,4}\s*)*)?)\]", re.ASCII)


def unhex(text: str) -> bytes:
    """Hex, or what ``Arrays.toString`` of Java prints of an array of bytes: ``[0, 3, -1]``.

    Errors: ``Unreadable``, with the first character that is not a hex digit, or the odd number of digits.
    """
    if listed := JAVA_BYTES.fullmatch(text.strip()):
        numbers = [int(each) for each in listed[1].split(",") if each.strip()]
        if wrong := [each for each in numbers if not -128 <= each <= 255]:
            raise Unreadable("not-hex", f"not an array of bytes: {wrong[0]} is no byte")
        return bytes(each & 0xFF for each in numbers)
    try:
        return bytes.fromhex(text)
    except ValueError:
        digits = 0
        for at, each in enumerate(text):
            if each.isspace() and each.isascii():
                if digits % 2:
                    raise Unreadable("not-hex", f"not hex: a space splits a byte after character {at}") from None
            elif each not in hexdigits:
                raise Unreadable("not-hex", f"not hex: character {at + 1} is {each!r}") from None
            else:
                digits += 1
        raise Unreadable("not-hex", f"not hex: {digits} digits, an odd number; a byte has two") from None


def encode_lines(lines: Iterable[str], defaults: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """``{"message", "version", "value"}`` -> ``{"hex"}``, line by line, each with whether it succeeded."""
    return _each(lines, defaults, "value", lambda layout, value: f'{{"hex": "{_encoded(layout, value)}"}}')


def decode_lines(lines: Iterable[str], defaults: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """``{"message", "version", "hex"}`` -> ``{"value"}``, line by line, each with whether it succeeded."""
    return _each(lines, defaults, "hex", lambda layout, text: f'{{"value": {_decoded(layout, text)}}}')


def classes_help() -> str:
    rows = {**INPUT_CLASSES, **CLASSES}
    width = max(map(len, rows))
    return "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in rows.items())


def _each(
    lines: Iterable[str], defaults: dict[str, Any], payload: str, work: Callable[[Layout, Any], str]
) -> Iterator[tuple[str, bool]]:
    allowed = {"edition", "message", "version", payload}
    for line in lines:
        try:
            given = object_of(line)
            if not given.keys() <= allowed:
                raise Unreadable("bad-line", f"unknown key {', '.join(map(repr, given.keys() - allowed))}")
            if payload not in given:
                raise Unreadable("bad-line", f"missing key {payload!r}")
            yield work(_layout_for(defaults | given), given[payload]), True
        except Refused as error:
            yield _failure(error.kind, str(error), error.path, error.offset), False
        except Unreadable as error:
            yield _failure(error.kind, str(error), "", None), False


def _layout_for(given: dict[str, Any]) -> Layout:
    edition, message, version = given.get("edition"), given.get("message"), given.get("version")
    if not isinstance(edition, str) or not isinstance(message, str):
        raise Unreadable("bad-line", "'message', and 'edition' if given, must be text")
    if type(version) is not int:
        raise Unreadable("bad-line", f"'version' must be an integer, got {version!r}")
    return named(edition, message, version)


def _encoded(layout: Layout, value: Any) -> str:
    if not isinstance(value, dict):
        raise Unreadable("bad-line", "'value' must be a JSON object")
    return layout.encode(layout.codec.from_json(value)).hex()


def _decoded(layout: Layout, text: Any) -> str:
    if not isinstance(text, str):
        raise Unreadable("not-hex", f"not hex: {text!r}")
    return json_of(layout, text)


def _failure(kind: str, why: str, path: str, offset: int | None) -> str:
    return json.dumps({"error": {"class": kind, "message": why, "path": path, "offset": offset}}, ensure_ascii=False)


def object_of(text: str) -> dict[str, Any]:
    """JSON text -> its object, which must not repeat a key. Errors: ``Unreadable``."""
    try:
        found = _read(text)
    except (ValueError, RecursionError) as error:
        raise Unreadable("not-json", not_text(error)) from None
    if not isinstance(found, dict):
        raise Unreadable("not-json", f"must be a JSON object, got {type(found).__name__}")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise ValueError(f"the key {twice!r} is repeated in one object")
    return found


_read = json.JSONDecoder(object_pairs_hook=_each_key_once, parse_constant=_no_constant).decode
