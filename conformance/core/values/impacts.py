"""The effect of failures for the users of a target: a title and a severity.

They stand in ``effects.toml``, or where the invariant is declared.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Self

from kipcheck.conformance.core.values.failure_pattern import FailurePattern


class Severity(Enum):
    """How much a defect hurts, the gravest first. The grade of a failure says what is owed, and not this."""

    DOUBLE_PROCESSING = "double processing"
    """Two members read a partition at once, or records are processed again or never."""
    STUCK_GROUP = "stuck group"
    """A group gets no assignment, or a partition is not read."""
    CRASH = "crash or hang"
    WRONG_DATA = "wrong data"
    """Values are lost or changed without an error."""
    REFUSED_PEER = "refused peer"
    """Software of another release or vendor is refused."""
    TRIVIA = "trivia"
    """Needless work, misleading errors, or a mere difference."""

    @property
    def rank(self) -> int:
        """0 is the gravest."""
        return list(Severity).index(self)


def severity_rank(word: str) -> int:
    """The rank of the severity with this value; a word of a later release comes last."""
    ranks = {each.value: each.rank for each in Severity}
    return ranks.get(word, len(ranks))


@dataclass(frozen=True, slots=True)
class Effect:
    pattern: FailurePattern
    title: str
    severity: Severity
    accepted: str = ""
    """Of an effect that predicts how the other side answers: the title where that answered without an error. Nothing
    worse than a difference was observed then. Empty: the effect predicts no answer."""

    def given(self, answered: int | None) -> Self:
        """The effect of a failure whose history has this answer, as ``Violation.answered``."""
        is_accepted = answered == 0 and self.accepted
        return replace(self, title=self.accepted, severity=Severity.TRIVIA, accepted="") if is_accepted else self


_declared: dict[str, Effect] = {}


def register(invariant: str, title: str, severity: Severity, accepted: str = "") -> None:
    """The effect of the failures of an invariant that no entry of the file fits."""
    _declared[invariant] = Effect(FailurePattern(invariant), title, severity, accepted)
    effects.cache_clear()


@cache
def effects() -> tuple[Effect, ...]:
    """In the order of the file; then those that are declared with their invariants."""
    listed = tomllib.loads((files("kipcheck.conformance") / "effects.toml").read_text("utf-8"))
    found = (
        Effect(FailurePattern.of(table), table["title"], Severity(table["severity"])) for table in listed["effect"]
    )
    return (*found, *_declared.values())


def effect_of(invariant: str, shape: Sequence[str], subject: str, answered: int | None = None) -> Effect | None:
    """The first entry that fits; None for an invariant without one, which a project may add.

    ``answered``: as ``Violation`` has it.
    """
    found = next((each for each in effects() if each.pattern.fits(invariant, shape, subject)), None)
    return None if found is None else found.given(answered)
