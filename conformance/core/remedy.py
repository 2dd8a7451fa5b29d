"""How to fix the violation of a requirement, from ``remedies.toml``."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Remedy:
    fix: str
    """Addressed to the role that the requirement binds."""
    means: str = ""
    """The requirement in other words; empty where its text is simple enough."""


@cache
def remedies() -> Mapping[str, Remedy]:
    """By id of the requirement, in the order of the file."""
    listed = tomllib.loads((files("kipcheck.conformance") / "remedies.toml").read_text("utf-8"))
    return {id: Remedy(**each) for id, each in listed.items()}
