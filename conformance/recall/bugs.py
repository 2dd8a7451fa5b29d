"""Released bugs of clients, coordinators, Streams and stores that were reported and fixed, as the tables ``[[bug]]`` of
the files beside this module. Each is written from its report before the suite is tried on it.
"""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

from kipcheck.conformance.core.operations.field_kinds import from_json, one_of
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.failure_pattern import FailurePattern

T = TypeVar("T")
KINDS: Final = ("live", "codec", "assignor", "member", "coordinator", "streams", "features", "formats", "stores")
"""What a bug is about: a live client, its codec, assignor or membership in process, a broker's coordinator, Streams'
rebalance metadata, feature versions, persisted formats, or stores with timestamps.
"""
RESULTS: Final = ("found", "missed", "false alarm", "skipped", "found with budget", "undecided")
"""Of a measurement. ``skipped``: a release cannot be installed here; ``found with budget``: not in the default cases;
``undecided``: a run ended in a way that shows nothing.
"""
GUARDS: Final = 3
"""One of so many bugs, by a hash of its id, is a guard: laws and draws are not written for it."""


class InvalidEntry(ValueError):
    """An entry does not have the form of its table. The message names the file and the entry."""


@dataclass(frozen=True, slots=True)
class Bug:
    id: str
    """The project and the number or commit of the report."""
    link: str
    observed: str
    """What a user observes, in a sentence."""
    affected: str
    """A target with the bug."""
    fixed: str
    """The same target in the release that fixed it."""
    role: Role
    kind: Annotated[str, one_of(*KINDS)]
    requirements: tuple[str, ...]
    """Which it breaks; empty: it breaks none that is stated."""
    counts: tuple[FailurePattern, ...]
    """The failures that a reader would call this bug; empty: no invariant is about it."""
    edition: str = "apache"
    defect: tuple[str, ...] = ()
    """``FILE:FUNCTION`` in the package of the affected release: where the defect is."""
    first: Annotated[str, one_of("", *RESULTS)] = ""
    """The result of the first measurement; empty: there is none."""
    today: Annotated[str, one_of("", *RESULTS)] = ""
    """The result of the last one."""
    explained: str = ""
    """Why the fixed release fails in a way that counts, where it does."""

    @property
    def is_guard(self) -> bool:
        return int(hashlib.sha256(self.id.encode()).hexdigest(), 16) % GUARDS == 0


@cache
def bugs() -> Mapping[str, Bug]:
    """By id, in the order of the files and their tables. Errors: ``InvalidEntry``."""
    found: dict[str, Bug] = {}
    for path, table in tables("bug"):
        bug = entry(Bug, path, table)
        if bug.id in found:
            raise InvalidEntry(f"{path}: the bug {bug.id} is entered twice")
        found[bug.id] = bug
    return found


def place_of(id: str) -> str:
    """How errors name a bug: its file and its id. Errors: ``InvalidEntry``."""
    found = (f"{path}: " for path, table in tables("bug") if table.get("id") == id)
    return f"{next(found, '')}the entry {id}"


def folder() -> Path:
    """The folder of the files."""
    return Path(str(files("kipcheck.conformance.recall")))


def tables(name: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The tables ``[[name]]`` of all files, each with its file. Errors: ``InvalidEntry``."""
    for path in sorted(folder().glob("*.toml")):
        try:
            found = tomllib.loads(path.read_text("utf-8"))
        except tomllib.TOMLDecodeError as wrong:
            raise InvalidEntry(f"{path}: {wrong}") from None
        yield from ((path, each) for each in found.get(name, ()))


def entry(made: type[T], path: Path, table: Mapping[str, Any]) -> T:
    """Reads a table as an entry. Errors: ``InvalidEntry`` for a key that is missing or unknown, or a wrong value."""
    try:
        return from_json(made, table)
    except TypeError as wrong:
        raise InvalidEntry(f"{path}: the entry {table.get('id', '(without id)')}: {wrong}") from None
