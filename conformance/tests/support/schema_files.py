"""The declarations as they lie in their files."""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.wire.schema import Raw, release_table

SCHEMAS = files("kipcheck.conformance.wire") / "schemas"
RELEASES = [Release.parse(each) for each in release_table()["releases"]]


@cache
def declared(message: str, folder: str = "apache") -> Raw:
    raw: Raw = json.loads((SCHEMAS / folder / f"{message}.json").read_text())
    return raw


def names(folder: str = "apache") -> list[str]:
    return sorted(each.name.removesuffix(".json") for each in (SCHEMAS / folder).iterdir())


def swap(fields: list[Any], one: int, other: int) -> None:
    """A defect to plant."""
    fields[one], fields[other] = fields[other], fields[one]
