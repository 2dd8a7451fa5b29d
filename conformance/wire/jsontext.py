"""Parses JSON with the offset of every value, so that the bytes can be explained."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

DEEPEST: Final = 32
"""The deepest nesting of brackets. JSON that is parsed here has three levels."""

_SPACE: Final = re.compile(rb"[ \t\n\r]*")
_STRING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_OPEN: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\.)*\\?')
_NUMBER: Final = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(rb"true|false|null")
LONGEST_NUMBER: Final = 400
"""The longest number, in characters: numbers here have at most ten, and long ones take time to convert."""


class Broken(ValueError):
    """Invalid JSON: ``kind`` is a class of refusal."""

    def __init__(self, kind: str, why: str, offset: int):
        super().__init__(why)
        self.kind = kind
        self.why = why
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Text:
    """A value and its place in the bytes."""

    offset: int
    end: int
    value: "Mapping[str, Text] | Sequence[Text] | str | int | float | bool | None"
    """Of a repeated key, the last value."""
    twice: tuple[tuple[str, int], ...] = ()
    """Repeated keys, and the offset of each repetition."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value without values inside, or empty brackets."""

    steps: tuple[str | int, ...]
    text: Text


@dataclass(slots=True)
class Scan:
    """Parses ``data`` once; ``leaves`` keeps what was parsed, also after an error."""

    data: bytes
    leaves: list[Leaf] = field(default_factory=list)
    _steps: list[str | int] = field(default_factory=list)

    def value(self) -> Text:
        """The value at the start of the bytes; ``end`` is its end. Errors: ``Broken``."""
        try:
            self.data.decode()
        except UnicodeDecodeError as wrong:
            raise Broken("text", f"byte {self.data[wrong.start]:02x} is no UTF-8 here", wrong.start) from None
        return self._value(self._space(0))

    def rest(self, found: Text) -> int:
        """The offset of the first non-space byte after ``found``, or the end."""
        return self._space(found.end)

    def _space(self, at: int) -> int:
        found = _SPACE.match(self.data, at)
        return found.end() if found else at

    def _value(self, at: int) -> Text:
        if len(self._steps) > DEEPEST:
            raise Broken("json", f"more than {DEEPEST} brackets within brackets", at)
        match self.data[at : at + 1]:
            case b"{":
                return self._object(at)
            case b"[":
                return self._array(at)
            case b"":
                raise self._wanted("a value", at)
        return self._leaf(at, *self._scalar(at))

    def _scalar(self, at: int) -> tuple[int, Any]:
        for form in (_STRING, _WORD, _NUMBER):
            found = form.match(self.data, at)
            if found and form is _NUMBER and found.end() - at > LONGEST_NUMBER:
                raise Broken("range", f"a number of {found.end() - at} characters", at)
            if found:
                return found.end(), json.loads(found[0])
        raise self._wanted("a value", at)

    def _leaf(self, at: int, end: int, value: Any) -> Text:
        found = Text(at, end, value)
        self.leaves.append(Leaf(tuple(self._steps), found))
        return found

    def _array(self, start: int) -> Text:
        found: list[Text] = []
        at = self._space(start + 1)
        if self.data[at : at + 1] == b"]":
            return self._leaf(start, at + 1, ())
        while True:
            self._steps.append(len(found))
            found.append(self._value(at))
            self._steps.pop()
            at, closed = self._after(found[-1].end, b"]")
            if closed:
                return Text(start, at, tuple(found))

    def _object(self, start: int) -> Text:
        found: dict[str, Text] = {}
        twice: list[tuple[str, int]] = []
        at = self._space(start + 1)
        if self.data[at : at + 1] == b"}":
            return self._leaf(start, at + 1, {})
        while True:
            name = _STRING.match(self.data, at)
            if not name:
                raise self._wanted("a key", at)
            key: str = json.loads(name[0])
            colon = self._space(name.end())
            if self.data[colon : colon + 1] != b":":
                raise self._wanted("a colon", colon)
            if key in found:
                twice.append((key, at))
            self._steps.append(key)
            found[key] = self._value(self._space(colon + 1))
            self._steps.pop()
            at, closed = self._after(found[key].end, b"}")
            if closed:
                return Text(start, at, found, tuple(twice))

    def _after(self, end: int, bracket: bytes) -> tuple[int, bool]:
        at = self._space(end)
        following = self.data[at : at + 1]
        if following not in (b",", bracket):
            raise self._wanted(f"a comma or {bracket.decode()}", at)
        return (at + 1, True) if following == bracket else (self._space(at + 1), False)

    def _wanted(self, what: str, at: int) -> Broken:
        if at >= len(self.data):
            return Broken("truncated", f"the JSON ends where {what} is wanted", at)
        if _OPEN.fullmatch(self.data, at):
            return Broken("truncated", "the JSON ends in a string", at)
        if self.data[at : at + 1] == b'"':
            return Broken("json", f"a string that holds what it may not, where {what} is wanted", at)
        return Broken("json", f"{chr(self.data[at])!a} where {what} is wanted", at)


_PLAIN: Final = re.compile(r"\w+").fullmatch


Path: TypeAlias = tuple[str | int, ...]
"""The names and indices down to a value."""


def path_of(steps: Sequence[str | int]) -> str:
    """``features["metadata.version"].max_version_level``."""
    text = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" if _PLAIN(step) else f"[{json.dumps(step)}]"
        for step in steps
    )
    return text.removeprefix(".")
