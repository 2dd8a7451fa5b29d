"""The seam between the suite and anything it can test.

An adapter answers single operations in the words of the testee protocol; a target holds whole cases with one.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from conformance.core.case import Case, Role, Step
from conformance.core.history import Died, Observation, Refused, Replied, Unsupported

VERSION = 1
"""Of the testee protocol."""
BATCH = 64
"""Cases that travel together: past that nothing is gained."""

Claims: TypeAlias = Mapping[str, tuple[int, int]]
"""Message -> lowest and highest version."""


@dataclass(frozen=True, slots=True)
class TargetInfo:
    name: str
    version: str
    language: str
    issues: str
    """Where its maintainers take reports."""
    roles: frozenset[Role]
    claims: Claims = field(default_factory=dict)


class Unavailable(Exception):
    """The target is not here: not installed, or of the wrong version. Says what is missing."""


class Broken(Exception):
    """The target did not start, or broke the protocol outside of any case."""


class Unstable(Exception):
    """The target went down more often than a run allows."""


class Adapter(Protocol):
    """What stands between the protocol and a codec under test. It observes and never judges."""

    name: str
    version: str
    issues: str

    def claims(self) -> Claims: ...
    def configure(self, edition: str, /) -> str | None:
        """Errors are answers: why this edition cannot be played, or None."""
        ...

    def answer(self, op: Mapping[str, Any], /) -> dict[str, Any]:
        """An operation's result: ``status`` and what belongs to it. Raises only what it did not expect."""
        ...


class Session(Protocol):
    """A target at work in one role and edition."""

    @property
    def info(self) -> TargetInfo: ...
    @property
    def troubles(self) -> Sequence[str]:
        """Deaths that belong to no case, for they did not come again when its cases were run alone; and giving up."""
        ...

    def hold(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """What came back on each step of each case. Errors: ``Broken``, ``Unstable``."""
        ...


class Target(Protocol):
    @property
    def name(self) -> str: ...
    def open(self, edition: str, role: Role, /) -> AbstractContextManager[Session]:
        """A fresh session. Errors: ``Unavailable``, ``Broken``."""
        ...


def operation(step: Step) -> dict[str, Any]:
    """A step in the words of the protocol."""
    return {"op": step.verb, **step.body}


def observed(result: Mapping[str, Any]) -> Observation:
    """A result as an observation. Errors: ValueError for one that the protocol does not know."""
    match result:
        case {"status": "accepted"}:
            return Replied(tuple((key, value) for key, value in result.items() if key not in ("n", "status")))
        case {"status": "rejected", "class": str(kind)}:
            offset = result.get("offset")
            return Refused(kind, str(result.get("message", "")), offset if isinstance(offset, int) else None)
        case {"status": "unsupported"}:
            return Unsupported(str(result.get("message", "")))
        case {"status": "internal", "class": str(kind)}:
            cause = "memory" if kind == "MemoryError" else "crashed"
            return Died(cause, f"{kind}: {result.get('message', '')}".rstrip(": "))
        case {"status": "died", "cause": "crashed" | "timeout" | "memory" as cause}:  # of a testee that watches itself
            return Died(cause, str(result.get("message", "")), str(result.get("evidence", "")))
    raise ValueError(f"{str(result)[:80]} is no result")
