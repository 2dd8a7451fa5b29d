"""How to fix the violation of a requirement in general, and failures of certain shapes, from ``remedies.toml``."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kipcheck.conformance.core.values.failure_pattern import FailurePattern


@dataclass(frozen=True, slots=True)
class Remedy:
    fix: str
    """Addressed to the role that the requirement binds."""
    means: str = ""
    """The requirement in other words; empty where its text is simple enough."""


@dataclass(frozen=True, slots=True)
class FailureFix:
    """The fix of the failures that fit a pattern."""

    pattern: FailurePattern
    fix: str


@cache
def remedies() -> Mapping[str, Remedy]:
    """By id of the requirement, in the order of the file."""
    return {id: Remedy(**each) for id, each in _listed().items() if id != FAILURES}


@cache
def failure_fixes() -> tuple[FailureFix, ...]:
    """In the order of the file. Errors: KeyError for an entry with the fix of an unknown requirement."""
    return tuple(
        FailureFix(FailurePattern.of(table), table["fix"] if "fix" in table else remedies()[table["of"]].fix)
        for table in _listed()[FAILURES]
    )


def fix_of(invariant: str, shape: Sequence[str], subject: str) -> str | None:
    """The fix for a failure: that of the first entry that fits. None: no entry is about this failure."""
    return next((each.fix for each in failure_fixes() if each.pattern.fits(invariant, shape, subject)), None)


def _listed() -> dict[str, Any]:
    return tomllib.loads((files("kipcheck.conformance") / "remedies.toml").read_text("utf-8"))


FAILURES: Final = "failures"
"""The key of the file that is no requirement."""
