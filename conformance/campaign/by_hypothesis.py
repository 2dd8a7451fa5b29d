"""Values as Hypothesis draws them: the same strategies that people import, seeded for each batch.

The one module by which a campaign reaches Hypothesis. What it draws is collected and held later, as any other value:
it does not see what comes of it, and has nothing to shrink.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed as seeded, settings

from kipcheck.conformance.checks import Check
from kipcheck.conformance.checks.declare import Value
from kipcheck.conformance.targets.protocol import MACHINES
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.public import conversations

DEEP_SHARE: Final = 0.5
"""Of batches of conversations: drawn with our model at hand."""


def values(check: Check[Any], subject: Any, number: int, random: Random) -> list[Value]:
    """So many, or fewer where there are no more: the same ones in every process."""
    found: list[Value] = []
    deep = check.node is None and subject.name in MACHINES and random.random() < DEEP_SHARE
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
        suppress_health_check=list(HealthCheck),  # nobody waits for one of them
    )
    @given(drawn)
    def collect(value: Value) -> None:
        found.append(check.family.trimmed(value))

    with _without_constants():
        collect()
    return found


@contextmanager
def _without_constants() -> Iterator[None]:
    """Hypothesis also draws constants that it finds in code it takes for ours. Which code that is depends on where we
    are installed and what was imported before: the same shard would draw other values elsewhere.
    """
    before = {name: getattr(_PROVIDERS, name) for name in _INSTEAD}
    try:
        for name, other in _INSTEAD.items():
            setattr(_PROVIDERS, name, other)
        yield
    finally:
        for name, own in before.items():
            setattr(_PROVIDERS, name, own)


_PROVIDERS: Any = import_module("hypothesis.internal.conjecture.providers")
_INSTEAD: Final[dict[str, Any]] = {}
"""Releases of Hypothesis that have no such constants need none of this."""
if hasattr(_PROVIDERS, "_get_local_constants"):
    _NONE = _PROVIDERS.Constants()
    _INSTEAD["_get_local_constants"] = lambda: _NONE
    _INSTEAD["CONSTANTS_CACHE"] = type(_PROVIDERS.CONSTANTS_CACHE)(1024)
