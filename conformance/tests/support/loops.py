"""Tests over many values: ``for_each`` in one item; ``some_by_default`` and ``some_by_day`` in an item each, most of
which run later.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest


def for_each(values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As ``pytest.mark.parametrize`` with the first parameter, in one item: it stops at the first value that fails.

    The failure names the value. A tuple fills as many parameters as it has members. Other parameters are fixtures.
    """
    given = [*values]
    if not given:
        raise ValueError("there are no values: the test could not fail")
    filled = len(given[0]) if isinstance(given[0], tuple) and not hasattr(given[0], "_fields") else 1

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def loop(**fixtures: Any) -> None:
            for value in given:
                try:
                    test(*(value if filled > 1 else (value,)), **fixtures)
                except BaseException as failure:
                    failure.add_note(f"with {value}")
                    raise

        left = [*inspect.signature(test).parameters.values()][filled:]
        loop.__signature__ = inspect.Signature(left)  # type: ignore[attr-defined]
        return loop

    return decorate


def some_by_default(values: Iterable[Any], count: int) -> list[Any]:
    """Parameters of which ``count``, evenly spread, run in the default tier, and the others in integration.

    A tuple that is no named tuple is a row of parameters, and ``pytest.param(...)`` keeps its marks.
    """
    return _spread(values, count, pytest.mark.integration)


def some_by_day(values: Iterable[Any], count: int, later: pytest.MarkDecorator = pytest.mark.long) -> list[Any]:
    """As ``some_by_default``, of a test of integration: the others run at night, in the part of this marker."""
    return _spread(values, count, later)


def _spread(values: Iterable[Any], count: int, later: pytest.MarkDecorator) -> list[Any]:
    given = [*values]
    if not 0 < count < len(given):
        raise ValueError(f"{count} of {len(given)} values: use 1 to {len(given) - 1}")
    first = {round(n * (len(given) - 1) / max(1, count - 1)) for n in range(count)}
    return [each if at in first else _later(each, later) for at, each in enumerate(given)]


def _later(value: Any, marker: pytest.MarkDecorator) -> Any:
    if hasattr(value, "marks"):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, marker))
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return pytest.param(*value, marks=marker)
    return pytest.param(value, marks=marker)
