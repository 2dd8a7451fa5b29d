"""The tags of invariants and failures: which kind of mistake breaks an invariant, and its effects.

They stand in ``tags.toml``, or where the invariant is declared.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

from kipcheck.conformance.core.values.failure_pattern import FailurePattern

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


_declared: dict[str, Tags] = {}


def register(invariant: str, tags: Tags) -> None:
    """The tags of an invariant, and of each of its failures, where they are declared."""
    _declared[invariant] = tags
    vocabulary.cache_clear()


@cache
def vocabulary() -> Vocabulary:
    listed: dict[str, Any] = tomllib.loads((files("kipcheck.conformance") / "tags.toml").read_text("utf-8"))
    tags: dict[str, Tags] = {}
    failures: list[FailureTags] = []
    own_tags = {
        id: Tags(table["class"], tuple(table["effects"]), tuple(table["links"]))
        for id, table in listed["invariants"].items()
    }
    for id, own in (*own_tags.items(), *_declared.items()):
        table = listed["invariants"].get(id, {})
        parts = [{"invariant": id, "effects": [], "links": [], **each} for each in table.get("failures", ())]
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
