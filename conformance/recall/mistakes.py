"""Mistakes that people make in clients: ``mistakes.toml``, each in words and as a change to one client or several."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kipcheck.conformance.recall.bugs import InvalidEntry, entry, tables


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
    change: tuple[Edit, ...]


@cache
def mistakes() -> Mapping[str, Mistake]:
    """By id, in the order of the file. Errors: ``InvalidEntry``."""
    found: dict[str, Mistake] = {}
    for path, table in tables("mistake"):
        mistake = entry(Mistake, path, table)
        if mistake.id in found:
            raise InvalidEntry(f"{path}: the mistake {mistake.id} is entered twice")
        found[mistake.id] = mistake
    return found
