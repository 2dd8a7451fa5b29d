"""``for_each``: one test over many values, for values of which none deserves a test of its own."""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any


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
