"""What the known lists that are shipped with kipcheck say about a failure, whether or not a run uses them."""

from collections.abc import Iterator
from functools import cache
from typing import Final

from kipcheck.conformance.core.ledger import Failure, KnownEntry
from kipcheck.conformance.engine.known.files import InvalidKnownFile
from kipcheck.conformance.engine.known.lists import DEFAULT, load
from kipcheck.conformance.engine.known.match import known_entry
from kipcheck.conformance.engine.known.rules import Entry, ObservedFailure, fits

KAFKA: Final = ("java:kafka-clients", "java:kafka-streams")
"""Kafka's own clients."""
EXCEPTIONS: Final = ("Error", "Exception")
"""Ends of the names of exceptions, which differ from language to language."""


@cache
def _entries(target: str) -> tuple[Entry, ...]:
    """The deviations of a target; none if its list is damaged, which a run that uses it reports."""
    try:
        return tuple(each for known in load([DEFAULT], [target]) for each in known.entries if each.kind == "deviation")
    except InvalidKnownFile:
        return ()


def shipped_entry(line: Failure) -> KnownEntry | None:
    """The entry for this failure, in whatever place it occurs."""
    return entry_like(ObservedFailure.of(line))


def entry_like(failure: ObservedFailure) -> KnownEntry | None:
    """As ``shipped_entry``; of a failure that was not shrunk, the first entry that it may be."""
    return next((known_entry(each) for each in _entries(failure.target) if each.matches(failure)), None)


def kafka_clients_like(line: Failure) -> Iterator[str]:
    """Kafka's own clients that fail in the same way, as far as this is known, each with its release."""
    if line.target.startswith(KAFKA):
        return
    for target in KAFKA:
        alike = [each for each in _entries(target) if each.invariant == line.invariant and _overlap(each, line)]
        if alike:
            yield f"{target.removeprefix('java:')} {alike[0].versions}"


def _overlap(entry: Entry, line: Failure) -> bool:
    """Whether one shape begins as the other, whatever the exceptions are called."""
    return all(
        fits(one, other) or (_is_exception(one) and _is_exception(other))
        for one, other in zip(entry.shape or (), map(str, line.shape), strict=False)
    )


def _is_exception(word: str) -> bool:
    return word.endswith(EXCEPTIONS)
