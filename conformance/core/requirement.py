"""The normative statements in ``requirements.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kipcheck.conformance.core.verdict import Grade


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
        )
        for each in listed
    }
