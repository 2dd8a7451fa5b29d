"""Golden vectors: bytes that real Kafka wrote, damaged copies of them, and what releases do with them.

``vectors/EDITION/MESSAGE.json`` (``schema.json`` explains every key) can be read from any language; ``lock.json`` has a
digest of each vector and of each jar that made one, so that no vector changes or disappears unnoticed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from kipcheck.golden.agreement import leniently, strictly
from kipcheck.golden.vector_files import (
    REGRESSIONS,
    TEXT,
    Lock,
    Malformed,
    Part,
    Vector,
    jars,
    lock,
    regression_digests,
    vectors,
)

__all__ = [
    "TEXT",
    "Lock",
    "Malformed",
    "Part",
    "Report",
    "Vector",
    "check",
    "jars_unlike_lock",
    "lock",
    "report",
    "unreviewed",
    "vectors",
    "verify",
]  # fmt: skip


def verify(root: Traversable | None = None, messages: Iterable[str] | None = None) -> list[str]:
    """One line for each vector that differs from its reviewed state, or that a decoder here interprets differently.

    ``messages``: check the bytes of these only; the lock is checked in any case.
    """
    return list(report(root, messages).troubles)


@dataclass(frozen=True, slots=True)
class Report:
    """The vectors, and the problems found."""

    vectors: tuple[Vector, ...]
    troubles: tuple[str, ...]

    def lines(self, details: bool = False) -> Iterator[str]:
        """Text: a line for each edition, then a line for each message with problems, then totals. ``details``: a line
        for each problem.
        """
        editions: dict[str, list[Vector]] = {}
        for each in self.vectors:
            editions.setdefault(each.edition, []).append(each)
        for edition, some in editions.items():
            valid = sum(each.damage is None and each.value is not None for each in some)
            asked = {release for each in some for release in each.outcomes}
            by = "from a text" if all(each.made_by == TEXT for each in some) else f"tested with {len(asked)} releases"
            messages = len({each.message for each in some})
            yield f"{edition}: {messages} messages, {valid} vectors and {len(some) - valid} damaged ones, {by}"
        yield from self.troubles if details else by_message(self.troubles)
        yield f"{len(self.vectors)} vectors, {len(self.troubles)} wrong"


def report(root: Traversable | None = None, messages: Iterable[str] | None = None) -> Report:
    """``verify``, with the vectors that were checked."""
    found = vectors(root=root)
    wanted = None if messages is None else frozenset(messages)
    problems = (line for each in found if wanted is None or each.message in wanted for line in check(each))
    locked = lock(root)
    from_lock = (*jars_unlike_lock(locked, root), *unreviewed(found, locked), *unreviewed_regressions(locked, root))
    return Report(found, (*from_lock, *problems))


def jars_unlike_lock(locked: Lock, root: Traversable | None = None) -> Iterator[str]:
    """Files whose digest of a jar differs from the lock's."""
    for name, named in jars(root):
        for jar, digest in named.items():
            if jar in locked.jars and locked.jars[jar] != digest:
                yield f"{name}: the digest of {jar} differs from the lock's"


def unreviewed(found: Iterable[Vector], locked: Lock) -> Iterator[str]:
    """The differences between the vectors and the lock."""
    here = {}
    for each in found:
        if each.name in here:
            yield f"{each.name}: the name is not unique"
        here[each.name] = each
        if each.made_by != TEXT and each.made_by not in locked.jars:
            yield f"{each.name}: the lock has no digest of {each.made_by}"
    for name in sorted(here.keys() | locked.vectors.keys()):
        if name not in here:
            yield f"{name}: missing"
        elif name not in locked.vectors:
            yield f"{name}: new, not in the lock"
        elif here[name].digest != locked.vectors[name]:
            yield f"{name}: differs from the reviewed state"


def unreviewed_regressions(locked: Lock, root: Traversable | None = None) -> Iterator[str]:
    """The differences between the regressions and the lock."""
    here = regression_digests(root)
    for id in sorted(here.keys() | locked.regressions.keys()):
        if id not in here:
            yield f"{REGRESSIONS}/{id}: missing"
        elif id not in locked.regressions:
            yield f"{REGRESSIONS}/{id}: new, not in the lock"
        elif here[id] != locked.regressions[id]:
            yield f"{REGRESSIONS}/{id}: differs from the reviewed state"


def by_message(troubles: Iterable[str]) -> Iterator[str]:
    """One line for each message: its only trouble, or their number and the first."""
    grouped: dict[str, list[str]] = {}
    for each in troubles:
        grouped.setdefault(each.partition(" ")[0].rstrip(":"), []).append(each)
    for name, some in grouped.items():
        first = some[0]
        yield first if len(some) == 1 else f"{name}: {len(some)} differences, the first: {first.partition(' ')[2]}"


def check(vector: Vector) -> Iterator[str]:
    """Both decoders, strictly and leniently as each release."""
    yield from strictly(vector)
    yield from leniently(vector)
