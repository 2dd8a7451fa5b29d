"""The tags of invariants in ``tags.toml``: which kind of mistake breaks one, and its effects."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


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
class Vocabulary:
    """Every tag with its meaning, and the tags of each invariant."""

    classes: Mapping[str, str]
    effects: Mapping[str, str]
    invariants: Mapping[str, Tags]


@cache
def vocabulary() -> Vocabulary:
    listed: dict[str, Any] = tomllib.loads((files("kipcheck.conformance") / "tags.toml").read_text("utf-8"))
    tags = {
        id: Tags(each["class"], tuple(each["effects"]), tuple(each["links"]))
        for id, each in listed["invariants"].items()
    }
    return Vocabulary(listed["classes"], listed["effects"], tags)


def tags_of(invariant: str) -> list[str]:
    """Empty for an invariant without tags, which a project may add."""
    found = vocabulary().invariants.get(invariant)
    return found.words if found is not None else []
