"""How somebody who breaks a statement mends that, as ``remedies.toml`` has it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Remedy:
    fix: str
    """For the one whom the statement binds."""
    means: str = ""
    """The statement in plain words; empty where its own are plain."""


@cache
def remedies() -> Mapping[str, Remedy]:
    """By the id of the requirement, in the order of the file."""
    listed = tomllib.loads((files("kipcheck.conformance") / "remedies.toml").read_text("utf-8"))
    return {id: Remedy(**each) for id, each in listed.items()}
