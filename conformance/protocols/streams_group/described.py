"""Compares a part of a describe with what is expected."""

from collections.abc import Hashable, Iterator, Sequence

from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.list_difference import list_difference
from kipcheck.conformance.protocols.streams_group.trace import GroupStep


def lists_differ(
    step: GroupStep, what: str, expected: Sequence[Hashable], observed: Sequence[Hashable], names: str
) -> Iterator[Violation]:
    """As ``differs``; the shape states how two sorted lists differ."""
    yield from differs(step, what, expected, observed, list_difference(expected, observed, names))


def differs(step: GroupStep, what: str, expected: object, observed: object, *shape: str) -> Iterator[Violation]:
    """A violation if a part of a describe is not as expected."""
    if expected != observed:
        yield Violation(what, (step.op.index,), str(expected), str(observed), shape=shape)
