"""Caches a value derived from a history, so that several invariants share it."""

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from kipcheck.conformance.core.values.history import History

Read = TypeVar("Read")


def cached_on_history(read: Callable[[History], Read]) -> Callable[[History], Read]:
    """Caches the result for the last history, since all invariants search one history after the other."""
    last: list[tuple[History, Read]] = []

    @wraps(read)
    def kept(history: History) -> Read:
        if not last or last[0][0] is not history:
            last[:] = [(history, read(history))]
        return last[0][1]

    return kept
