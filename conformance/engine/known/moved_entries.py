"""Finds the entry whose reason and link also hold for a failure that no entry matches any more."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from kipcheck.conformance.core.ledger import Failure as Line
from kipcheck.conformance.engine.known.files import no_link, no_reason
from kipcheck.conformance.engine.known.rules import Entry, KnownFile, ObservedFailure, SubjectVersion


@dataclass(frozen=True, slots=True)
class Explanation:
    """The entry with the reason of a failure, or those that may have it."""

    entry: Entry | None = None
    candidates: tuple[Entry, ...] = ()
    """If there is no such entry: all that fit equally well, of different reasons."""


NO_EXPLANATION = Explanation()


def same_failure(entries: Iterable[Entry], line: Line) -> Explanation:
    """The entries for this failure in other places."""
    failure = ObservedFailure.of(line)
    return _only([each for each in entries if _is_usable(each) and each.shape is not None and each.matches(failure)])


def same_place(
    before: KnownFile, standing: Sequence[Entry], line: Line, where: frozenset[SubjectVersion]
) -> Explanation:
    """The entries of the list ``before`` for other failures of the invariant in these places: those that have become
    this one, if a new kipcheck gives the same failure another shape.

    Of several, the one with the most equal words at the beginning of the shape; then one that no longer shows there;
    then the one with the most common places.
    """
    failure = ObservedFailure.of(line)

    def rank(entry: Entry) -> tuple[int, bool, int]:
        pairs = zip(entry.shape or (), failure.shape, strict=False)
        words = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        stands = any(
            (each.invariant, each.shape) == (entry.invariant, entry.shape) and any(map(each.covers, where))
            for each in standing
        )
        return words, not stands, sum(map(entry.covers, where))

    found = [
        each
        for each in before.entries
        if _is_usable(each) and each.same_invariant(failure) and any(map(each.covers, where))
    ]
    best = max(map(rank, found), default=None)
    return _only([each for each in found if rank(each) == best])


def _only(entries: Sequence[Entry]) -> Explanation:
    """Entries of one reason are one."""
    different = {(each.reason, each.link): each for each in reversed(entries)}
    if len(different) > 1:
        return Explanation(candidates=tuple(reversed(different.values())))
    return Explanation(entries[0]) if entries else NO_EXPLANATION


def _is_usable(entry: Entry) -> bool:
    return entry.kind == "deviation" and not no_reason(entry.reason) and not no_link(entry.link)
