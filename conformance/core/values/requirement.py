"""The normative statements in ``requirements.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kipcheck.conformance.core.values.edition import Standing, edition
from kipcheck.conformance.core.values.release import Release, releases as releases_of
from kipcheck.conformance.core.values.verdict import Grade


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    kip: str
    clause: str
    """The section of the KIP."""
    edition: str
    """draft, shipped or both."""
    releases: str
    role: str
    grade: Grade
    text: str
    parts: tuple["Part", ...] = ()
    """The parts of a sentence that states several things; empty: it states one."""
    does: "Half | None" = None
    """What must happen; None where the file does not say it yet."""
    never: "Half | None" = None
    """What must not happen."""
    tests: tuple[str, ...] = ()
    """Tests of kipcheck that show a statement about kipcheck itself, which no target can break: ``FILE::FUNCTION``."""

    def applies(self, where: str) -> bool:
        """Whether a case judged in this edition can reach it."""
        return applies(self.id, self.edition, self.releases, where)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a requirement that can be broken alone."""

    text: str
    invariants: tuple[str, ...]
    """Those that find it broken."""


@dataclass(frozen=True, slots=True)
class Half:
    """One direction of a requirement: what an implementation must do, or what it must never do."""

    text: str
    """Empty where the requirement has no such half."""
    invariants: tuple[str, ...] = ()
    """Those that find it broken."""
    mutants: tuple[str, ...] = ()
    """Those that break it, by one of these invariants."""
    absent: str = ""
    """Why the requirement has no such half."""

    @property
    def plain(self) -> dict[str, Any]:
        """As ``requirements --json`` has it."""
        if self.absent:
            return {"absent": self.absent}
        return {"text": self.text, "invariants": [*self.invariants], "mutants": [*self.mutants]}


def applies(id: str, stated: str, releases: str, where: str) -> bool:
    """Whether a case judged in the edition ``where`` can reach a requirement.

    ``stated``: draft, shipped or both. A rule of a draft is reached in that draft only (``429-01`` in kip-429), a rule
    of releases in ``apache``, in an exact release that has it, and in the definitions of a jar.
    """
    try:
        found = edition(where)
    except LookupError:
        return False
    if found.standing is Standing.DRAFT:
        return stated == "both" or (stated == "draft" and f"kip-{id.partition('-')[0]}" == found.name)
    if stated == "draft":
        return False
    if found.standing is Standing.DEFINITIONS or not found.exact or not releases:
        return True
    return Release.parse(found.release) in releases_of(releases)


RELEASED: Final = "released"
DRAFT: Final = "draft"
SIDES: Final[Mapping[str, tuple[str, ...]]] = {"shipped": (RELEASED,), "draft": (DRAFT,), "both": (RELEASED, DRAFT)}
"""For what a requirement is stated; what is stated for both is covered for each alone."""


def side(where: str) -> str:
    """Whether a case judged in this edition is one of a draft or of released Kafka."""
    return DRAFT if edition(where).standing is Standing.DRAFT else RELEASED


@cache
def requirements() -> Mapping[str, Requirement]:
    """All of them by id, in the order of the file."""
    listed = tomllib.loads((files("kipcheck.conformance") / "requirements.toml").read_text("utf-8"))["requirement"]
    return {
        each["id"]: Requirement(
            each["id"],
            each["kip"],
            each["clause"],
            each["edition"],
            each.get("releases", ""),
            each["role"],
            Grade(each["grade"]),
            each["text"],
            tuple(Part(one["text"], tuple(one["invariants"])) for one in each.get("parts", ())),
            _half(each.get("does")),
            _half(each.get("never")),
            tuple(each.get("tests", ())),
        )
        for each in listed
    }


def _half(stated: Mapping[str, Any] | None) -> Half | None:
    if stated is None:
        return None
    invariants, mutants = tuple(stated.get("invariants", ())), tuple(stated.get("mutants", ()))
    return Half(stated.get("text", ""), invariants, mutants, stated.get("absent", ""))
