"""Mistakes that people make in clients: ``mistakes.toml``, each in words and as a change to one client or several."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from kipcheck.conformance.recall.bugs import InvalidEntry, checked, tables

NEEDED: Final = ("id", "rule", "requirements", "change")
OF_A_CHANGE: Final = ("client", "release", "file", "line", "becomes")


@dataclass(frozen=True, slots=True)
class Edit:
    """A change to one line of a client's source."""

    client: str
    """A name of ``mutate --target``, without ``client:``: kafka-python, aiokafka, franz-go, sarama, kafka-go, kfake."""
    release: str
    """The release whose source it was written for."""
    file: str
    """The path in the package or module."""
    line: str
    """A part of one line, which occurs once in the file, or once in ``inside``."""
    becomes: str
    """What stands in its place."""
    inside: str = ""
    """The function, with its class (``Class.method``, in Go ``type.method``)."""


@dataclass(frozen=True, slots=True)
class Mistake:
    id: str
    rule: str
    """The rule that is broken, in a sentence."""
    requirements: tuple[str, ...]
    changes: tuple[Edit, ...]


@cache
def mistakes() -> Mapping[str, Mistake]:
    """By id, in the order of the file. Errors: ``InvalidEntry``."""
    found: dict[str, Mistake] = {}
    for path, table in tables("mistake"):
        about = checked(path, table, NEEDED, ())
        if table["id"] in found:
            raise InvalidEntry(f"{path}: the mistake {table['id']} is entered twice")
        changes = tuple(_edit(about, each) for each in table["change"])
        found[table["id"]] = Mistake(table["id"], table["rule"], tuple(table["requirements"]), changes)
    return found


def _edit(about: str, table: dict[str, Any]) -> Edit:
    missing = [each for each in OF_A_CHANGE if each not in table]
    if missing or (unknown := set(table) - {*OF_A_CHANGE, "inside"}):
        wrong = f"lacks {', '.join(missing)}" if missing else f"has unknown keys {', '.join(sorted(unknown))}"
        raise InvalidEntry(f"{about}: a change {wrong}")
    return Edit(**table)
