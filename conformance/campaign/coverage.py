"""What a case showed of a target, as coverage keys: small numbers that mean the same in every process.

A key is the hash of a few bounded fields: what was asked, what came back, and what had come back before it. Counters go
into a few buckets. A key that says too much makes every case new, and a corpus of everything is worth nothing.
"""

import marshal
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.protocols.checks import Check

UNSHARED: Final = 2
"""The format of ``marshal`` in which equal fields of equal types have the same bytes."""
KNOWN: Final = 1 << 18
"""Keys that are kept to be looked up: to hash one takes longer."""


def keys(check: Check[Any], subject: Any, history: History) -> tuple[tuple[int, ...], ...]:
    """Of each step, sorted."""
    told = check.family.coverage(subject, history.ops)
    return tuple(tuple(sorted({_number(marshal.dumps(each, UNSHARED)) for each in found})) for found in told)


@lru_cache(KNOWN)
def _number(fields: bytes) -> int:
    """``fields``: bytes, since tuples that are equal, as those of 1 and True, have keys of their own."""
    text = repr(marshal.loads(fields))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1  # signed where they are stored
