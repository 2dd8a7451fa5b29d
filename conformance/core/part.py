"""A share of a run: ``1/3`` is the first of three. What falls to which depends on nothing but the names of subjects."""

import hashlib
import re
from typing import NamedTuple


class Part(NamedTuple):
    number: int
    """From 1 on."""
    of: int

    @classmethod
    def read(cls, text: str) -> "Part":
        """Errors: ValueError that says what would do."""
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text, re.ASCII)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"{text!r} is no part such as 1/3, 2/3 or 3/3")
        return cls(int(found[1]), int(found[2]))

    def holds(self, subject: str) -> bool:
        """All checks on all versions of one subject, with every target, fall to one part.

        For a defect is told once, whatever checks and versions show it, and targets are compared case by case.
        """
        digest = hashlib.blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
