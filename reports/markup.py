"""Elements of HTML and XML, in which every string is escaped unless it was made here."""

from collections.abc import Iterable
from typing import TypeAlias

from kipcheck.conformance.core.values.untrusted_text import COMMAND, clean

VOID = frozenset({"meta", "link", "br", "wbr"})


class Safe(str):
    """Markup: stands as it is."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"


def escaped(text: str) -> Safe:
    """As the text of an element or the value of an attribute in double quotes; no command to a CI service in it."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = text.replace('"', "&quot;").replace("'", "&#39;")
    return Safe(COMMAND.sub(lambda found: f"{found[0][:-1]}&#{ord(found[0][-1])};", text))


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
