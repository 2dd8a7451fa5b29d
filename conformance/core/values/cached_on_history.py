"""Caches a value derived from a history, so that several invariants share it."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from kipcheck.conformance.core.values.history import History

Read = TypeVar("Read")


def cached_on_history(read: Callable[[History], Read]) -> Callable[[History], Read]:
    """Caches the result for the last history, since all invariants search one history after the other. Several threads
    may do so."""
    last: tuple[History, Read] | None = None

    @wraps(read)
    def kept(history: History) -> Read:
        nonlocal last
        found = last
        if found is None or found[0] is not history:
            last = found = history, read(history)
        return found[1]

    return kept
