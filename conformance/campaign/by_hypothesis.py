"""Draws values with Hypothesis: from the same strategies that users import, seeded for each batch.

The only module of campaigns that uses Hypothesis. Values are collected first and run later, so Hypothesis gets no
feedback and shrinks nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.checks import Check
from kipcheck.conformance.protocols.declare.check import Value
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.public import conversations

DEEP_SHARE: Final = 0.5
"""The share of batches of conversations that are drawn with the reference model."""


def values(check: Check[Any], subject: Any, number: int, random: Random) -> list[Value]:
    """``number`` values, or fewer if there are no more: the same in every process."""
    found: list[Value] = []
    deep = check.node is None and subject.name in registry.machines() and random.random() < DEEP_SHARE
    drawn = (
        conversations(subject.name, edition=subject.edition, deep=True)
        if deep
        else strategy(check.declaration(subject))
    )

    @seeded(random.getrandbits(64))
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),  # not interactive
    )
    @given(drawn)
    def collect(value: Value) -> None:
        found.append(check.family.trimmed(value))

    with _without_constants():
        collect()
    return found


@contextmanager
def _without_constants() -> Iterator[None]:
    """Disables the constants that Hypothesis collects from local code: they depend on where kipcheck is installed and
    on what was imported before, so the same shard would draw other values elsewhere.
    """
    before = {name: getattr(_PROVIDERS, name) for name in _REPLACEMENTS}
    try:
        for name, other in _REPLACEMENTS.items():
            setattr(_PROVIDERS, name, other)
        yield
    finally:
        for name, own in before.items():
            setattr(_PROVIDERS, name, own)


_PROVIDERS: Any = import_module("hypothesis.internal.conjecture.providers")
_REPLACEMENTS: Final[dict[str, Any]] = {}
"""Empty for releases of Hypothesis without such constants."""
if hasattr(_PROVIDERS, "_get_local_constants"):
    _NONE = _PROVIDERS.Constants()
    _REPLACEMENTS["_get_local_constants"] = lambda: _NONE
    _REPLACEMENTS["CONSTANTS_CACHE"] = type(_PROVIDERS.CONSTANTS_CACHE)(1024)
