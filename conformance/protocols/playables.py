"""The models that ``play`` and ``explore`` find by name: ``PLAYABLES`` in the ``play.py`` of each protocol."""

from collections.abc import Mapping

from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.play import Playable

PLAYABLES: Mapping[str, Playable] = {each.name: each for each in registry.all_of("play", "PLAYABLES")}


def playable(name: str) -> Playable:
    """The model with this name. Errors: LookupError, listing the known models."""
    if name not in PLAYABLES:
        raise LookupError(f"unknown model {name!r}: use one of {', '.join(PLAYABLES)}")
    return PLAYABLES[name]
