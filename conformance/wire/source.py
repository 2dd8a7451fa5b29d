"""Builds Python source code, with the objects that it refers to."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kipcheck.conformance.wire.schema import ZERO_UUID, Layout, Slot


class Source:
    """Functions as text; all names are unique, so that generated code can be placed anywhere."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.named: dict[str, Any] = {}
        self._depth = 0
        self._taken: dict[str, int] = {}
        self._kept: dict[tuple[str, Any], str] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head`` is a line that ends in a colon; lines written inside the block are its body."""
        self.line(head)
        before = len(self.lines)
        self._depth += 1
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def local(self, hint: str) -> str:
        """A name that is not used yet."""
        hint = re.sub(r"\W", "_", hint).strip("_") or "value"
        if hint not in self._taken:
            self._taken[hint] = 1
            return f"{hint}_"
        self._taken[hint] += 1
        return f"{hint}_{self._taken[hint]}"

    def constant(self, hint: str, key: Any, make: Callable[[], Any]) -> str:
        """The name of an object that the code refers to; one name for each ``key``."""
        if (hint, key) not in self._kept:
            name = self.local(hint)
            self._kept[hint, key] = name
            self.named[name] = make()
        return self._kept[hint, key]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def function(self, name: str, origin: str) -> Any:
        """The function ``name``, compiled."""
        space = dict(self.named)
        exec(compile(self.text, origin, "exec"), space)  # noqa: S102  (text of ours, from a layout)
        return space[name]


def default_of(source: Source, slot: Slot) -> str:
    """An expression for a new object with the default."""
    if slot.default == ():
        return "[]"
    if slot.default is ...:
        assert slot.item is not None
        return defaults_of(source, slot.item)
    if slot.default == ZERO_UUID:
        return source.constant("ZERO_UUID", None, lambda: ZERO_UUID)
    return repr(slot.default)


def defaults_of(source: Source, layout: Layout) -> str:
    """An expression for ``layout.defaults()``."""
    led = [f"{layout.prefix.name!r}: {layout.version}"] if layout.prefix and layout.prefix.name else []
    return "{" + ", ".join([*led, *(f"{slot.name!r}: {default_of(source, slot)}" for slot in layout.slots)]) + "}"
