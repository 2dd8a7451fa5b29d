"""Converts nodes to Hypothesis strategies, for properties in tests and for the cases of a run.

Only public constructors are used. No other module of the four packages builds a strategy from a node. ``interesting``
integers are ignored: Hypothesis tries bounds and small numbers by itself, and a second way to the same number would
hinder its shrinker.
"""

from collections.abc import Callable
from functools import cache
from operator import itemgetter
from typing import Any, assert_never
from uuid import UUID

from hypothesis import strategies as st

from kipcheck.conformance.wire import layout
from kipcheck.strategies import nodes


@cache
def strategy(node: nodes.Node) -> st.SearchStrategy[Any]:
    match node:
        case nodes.Integer(low, high):
            return st.integers(low, high)
        case nodes.Float():
            return st.floats(allow_nan=False, allow_infinity=False)
        case nodes.Flag():
            return st.booleans()
        case nodes.Pick(options):
            return st.sampled_from(options)
        case nodes.Text(min_size, max_size, interesting):
            anything = st.text(st.characters(codec="utf-8"), min_size=min_size, max_size=max_size)
            # Two ways to the simplest text would stop the shrinker.
            others = [text for text in interesting if text]
            return anything | st.sampled_from(others) if others else anything
        case nodes.Blob(min_size, max_size):
            return st.binary(min_size=min_size, max_size=max_size)
        case nodes.Uuid():
            return st.integers(0, (1 << 128) - 1).map(_uuid)
        case nodes.Seq(item, min_size, max_size, None):
            return st.lists(strategy(item), min_size=min_size, max_size=max_size)
        case nodes.Seq(item, min_size, max_size, key):
            by_key = itemgetter(key)
            return st.lists(strategy(item), min_size=min_size, max_size=max_size, unique_by=by_key).map(
                lambda items: sorted(items, key=by_key)
            )
        case nodes.Row(items):
            return st.tuples(*map(strategy, items)).map(list)
        case nodes.Record(fields, optional):
            # Hypothesis draws the order of a dictionary's keys: here it is always that of the fields.
            names = tuple(name for name, _ in (*fields, *optional))
            loose = (st.just(_ABSENT) | strategy(field) for _, field in optional)
            drawn = st.tuples(*(strategy(field) for _, field in fields), *loose)
            return drawn.map(lambda values: {n: v for n, v in zip(names, values, strict=True) if v is not _ABSENT})
        case nodes.OneOf(options):
            return st.one_of([strategy(option) for option in options])
        case nodes.Embedded(edition, message, version, body):
            return strategy(body).map(layout(edition, message, version).encode)
        case _:
            assert_never(node)


def made(node: nodes.Node, function: Callable[[Any], Any] = lambda drawn: drawn) -> st.SearchStrategy[Any]:
    """The results of a function of the node's values. A failing example is printed as the result, which can be pasted.

    Hypothesis prints the result of ``map`` as the call that made it, with functions that a reader cannot import. It
    recognises the result, and what is inside, by identity; so the function gets a copy, and ``map`` is not used.
    """
    return _made(strategy(node), function)


@st.composite
def _made(draw: st.DrawFn, found: st.SearchStrategy[Any], function: Callable[[Any], Any]) -> Any:
    return function(fresh(draw(found)))


@st.composite
def chosen_from(
    draw: st.DrawFn, found: st.SearchStrategy[Any], choices: Callable[[Any], tuple[int, Callable[[int], Any]]]
) -> Any:
    """One of the choices that a drawn value offers: their number, and the function from its index to the result."""
    number, done = choices(draw(found))
    return done(draw(st.integers(0, number - 1)))


def fresh(value: Any) -> Any:
    """A copy of plain data in which nothing is identical to a part of the original, except what Python shares."""
    match value:
        case dict():
            return {name: fresh(each) for name, each in value.items()}
        case list() | tuple():
            return type(value)(map(fresh, value))
        case bytes():
            return bytes(bytearray(value))
        case UUID():
            return UUID(int=value.int)
    return value


_ABSENT = object()


def _uuid(number: int) -> UUID:
    return UUID(int=number)
