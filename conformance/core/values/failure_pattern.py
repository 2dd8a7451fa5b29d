"""Patterns of failures in data files: an invariant, and what the shape and the subject have to be."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any


@dataclass(frozen=True, slots=True)
class FailurePattern:
    invariant: str
    shape: tuple[str, ...] = ()
    """The first words of the shape, each a glob; empty: any shape."""
    subject: str = "*"
    """A glob."""

    @classmethod
    def of(cls, table: dict[str, Any]) -> "FailurePattern":
        """From the keys of a table of TOML."""
        return cls(table["invariant"], tuple(table.get("shape", ())), table.get("subject", "*"))

    def fits(self, invariant: str, shape: Sequence[str], subject: str) -> bool:
        return (
            fnmatchcase(invariant, self.invariant)
            and len(self.shape) <= len(shape)
            and all(map(fnmatchcase, map(str, shape), self.shape))
            and fnmatchcase(subject, self.subject)
        )
