"""Elements of HTML and XML, in which every string is escaped unless it was made here; and what a string may hold."""

import re
from collections.abc import Iterable
from typing import TypeAlias

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufdd0-\ufdef\ud800-\udfff\ufffe\uffff]"
    "|[" + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000)) + "]"
)
"""What XML and HTML refuse, what steers a terminal, what turns the direction of reading, halves of surrogate pairs."""
VOID = frozenset({"meta", "link", "br", "wbr"})


class Safe(str):
    """Markup: stands as it is."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"


def clean(text: str) -> str:
    """What cannot be shown, or does harm where it is shown, as ``\\x1b`` or ``\\ud800``. Keeps tab and line feed."""
    return UNSEEN.sub(lambda found: _escape(ord(found[0])), text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def escaped(text: str) -> Safe:
    """As the text of an element or the value of an attribute in double quotes."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Safe(text.replace('"', "&quot;").replace("'", "&#39;"))


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Safe:
    """``tag("td", "a < b", class_="guilty")``: a trailing underscore falls away, others become hyphens.

    None and False leave an attribute out, True gives it no value of its own.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        shown = key if value is True else str(value)
        parts.append(f' {key.rstrip("_").replace("_", "-")}="{escaped(shown)}"')
    parts.append(">")
    if name in VOID:
        return Safe("".join(parts))
    _add(parts, children)
    parts.append(f"</{name}>")
    return Safe("".join(parts))


def link(address: object, text: str) -> Safe:
    """Only what leads to a page: any other scheme stays text."""
    address = str(address)
    return tag("a", text, href=address) if address.startswith(("https://", "http://")) else joined(text)


def joined(*children: Child) -> Safe:
    parts: list[str] = []
    _add(parts, children)
    return Safe("".join(parts))


def _add(parts: list[str], children: Child) -> None:
    if children is None:
        return
    if isinstance(children, Safe):
        parts.append(children)
    elif isinstance(children, str):
        parts.append(escaped(children))
    else:
        for child in children:
            _add(parts, child)
