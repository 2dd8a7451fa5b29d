"""A part of a run: ``1/3`` is the first of three. The part of a subject depends on its name only."""

import hashlib
import re
from typing import NamedTuple


class Part(NamedTuple):
    number: int
    """Counted from 1."""
    of: int

    @classmethod
    def read(cls, text: str) -> "Part":
        """Parses ``1/3``. Errors: ValueError with the valid forms."""
        found = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text, re.ASCII)
        if found is None or not 1 <= int(found[1]) <= int(found[2]):
            raise ValueError(f"invalid part {text!r}: use I/N with 1 <= I <= N, for example 2/3")
        return cls(int(found[1]), int(found[2]))

    def includes(self, subject: str) -> bool:
        """Whether the subject belongs to this part: all checks on all its versions, with every target.

        A defect is so reported once, whatever checks and versions show it, and targets are compared case by case.
        """
        digest = hashlib.blake2b(subject.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
