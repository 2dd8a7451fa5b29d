"""Declares laws of clients."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.events import Event
from kipcheck.conformance.protocols.client.premises import Kind, Premise, occurring
from kipcheck.conformance.protocols.client.trace import TracedEvent, is_proven, was_late, was_stopped
from kipcheck.conformance.protocols.declare.invariant import Search, invariant

SURVIVES_GROUPS: Final = "client/groups"
SURVIVES_STREAMS: Final = "client/streams-groups"
SURVIVES_SHARES: Final = "client/share-groups"
OF_STREAMS: Final = (SURVIVES_GROUPS, SURVIVES_STREAMS)
OF_ALL: Final = (*OF_STREAMS, SURVIVES_SHARES)
"""The checks of laws that members of streams groups owe, too; and of those that share consumers owe as well."""


def law(
    id: str,
    *requirements: str,
    premise: tuple[Kind, ...] | Premise,
    checks: tuple[str, ...] = (SURVIVES_GROUPS,),
    **more: Any,
) -> Callable[[Search], Search]:
    """Declares a law. ``premise``: the kinds of events without which it is not judged, in their order; or whether a
    history has what it is about. ``more``: as ``invariant`` has it."""
    found = occurring(*premise) if isinstance(premise, tuple) else premise
    return invariant(id, *requirements, role=Role.CLIENT, checks=checks, premise=found, **more)


def timed(id: str, *requirements: str, premise: tuple[Kind, ...] | Premise, **more: Any) -> Callable[[Search], Search]:
    """Declares a law with a bound in time, which a process that is stopped meanwhile does not break."""

    def declare(search: Search) -> Search:
        @wraps(search)
        def awake(history: History) -> Iterator[Violation]:
            return (found for found in search(history) if not was_stopped(history, found))

        return law(id, *requirements, premise=premise, unsure=was_late, proven=is_proven, **more)(awake)

    return declare


def breach(
    traced: TracedEvent[Event], why: str, expected: str, observed: str, *shape: str, since_ms: int | None = None
) -> Violation:
    """``since_ms``: when the bound in time began that is broken now; None: it is no matter of time."""
    window_ms = None if since_ms is None else (since_ms, traced.ms)
    return Violation(
        why,
        (traced.step,),
        expected,
        observed,
        shape=shape,
        window_ms=window_ms,
        answered=traced.answered,
        at_ms=traced.ms,
        event=traced.place,
    )


def listed(partitions: Iterable[str]) -> str:
    return ", ".join(sorted(partitions)) or "nothing"
