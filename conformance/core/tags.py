"""The tags of invariants and failures in ``tags.toml``: which kind of mistake breaks an invariant, and its effects."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kipcheck.conformance.core.failure_pattern import FailurePattern

DEFECT: Final = re.compile(r"(KAFKA|CVE)-.*")
"""The id of a single defect."""


@dataclass(frozen=True, slots=True)
class Tags:
    bug: str
    """The kind of mistake: one of ``Vocabulary.classes``."""
    effects: tuple[str, ...]
    links: tuple[str, ...]
    """``KAFKA-n``, ``KIP-n``, ``CVE-n``, ``CWE-n``."""

    @property
    def words(self) -> list[str]:
        """All tags, as a report shows them."""
        return [self.bug, *self.effects, *self.links]


@dataclass(frozen=True, slots=True)
class FailureTags:
    """The tags of the failures that fit a pattern."""

    pattern: FailurePattern
    tags: Tags


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every tag with its meaning, and the tags of each invariant and of failures."""

    classes: Mapping[str, str]
    effects: Mapping[str, str]
    invariants: Mapping[str, Tags]
    """With the effects and links of all its failures, and known defects of that kind."""
    failures: tuple[FailureTags, ...] = ()


@cache
def vocabulary() -> Vocabulary:
    listed: dict[str, Any] = tomllib.loads((files("kipcheck.conformance") / "tags.toml").read_text("utf-8"))
    tags: dict[str, Tags] = {}
    failures: list[FailureTags] = []
    for id, table in listed["invariants"].items():
        parts = [{"invariant": id, "effects": [], "links": [], **each} for each in table.get("failures", ())]
        own = Tags(table["class"], tuple(table["effects"]), tuple(table["links"]))
        tags[id] = Tags(own.bug, *(_every(getattr(own, key), parts, key) for key in ("effects", "links")))
        kind = tuple(each for each in own.links if not DEFECT.fullmatch(each))
        for each in parts:
            effects, links = (*own.effects, *each["effects"]), (*kind, *each["links"])
            failures.append(FailureTags(FailurePattern.of(each), Tags(own.bug, effects, links)))
        if own.effects:  # else each effect depends on the failure
            failures.append(FailureTags(FailurePattern(id), Tags(own.bug, own.effects, kind)))
    return Vocabulary(listed["classes"], listed["effects"], tags, tuple(failures))


def _every(own: Sequence[str], parts: Sequence[Mapping[str, Any]], key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*own, *(word for each in parts for word in each[key])]))


def tags_of(invariant: str, shape: Sequence[str], subject: str) -> list[str]:
    """The tags of a failure: those of the first pattern that fits; empty if none does."""
    found = (each.tags for each in vocabulary().failures if each.pattern.fits(invariant, shape, subject))
    return next((each.words for each in found), [])
