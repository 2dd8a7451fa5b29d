"""How a target is called in reports: its name, with the version that it states or that its user gives."""

from typing import Final

UNSTATED: Final = "0"
"""The version of a target that states none."""


def titled(target: str, version: str | None) -> str:
    """The name; with the version, where one is stated and the name does not end with it."""
    return target if version in (None, "", UNSTATED) or target.endswith(str(version)) else f"{target} {version}"
