"""The models that ``play`` and ``explore`` find by name. A new one is ``PLAYABLE`` in its protocol's ``play.py``."""

from collections.abc import Mapping

from kipcheck.conformance.play.cluster import BOUNCE, CLUSTER
from kipcheck.conformance.play.group import GROUP
from kipcheck.conformance.play.member import MEMBER
from kipcheck.conformance.play.streams import STREAMS
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare.play import Playable

_PACKAGES = tuple(each.PLAYABLE for each in registry.parts("play").values())
PLAYABLES: Mapping[str, Playable] = {each.name: each for each in (*_PACKAGES, GROUP, MEMBER, CLUSTER, BOUNCE, STREAMS)}


def playable(name: str) -> Playable:
    """The model with this name. Errors: LookupError, listing the known models."""
    if name not in PLAYABLES:
        raise LookupError(f"unknown model {name!r}: use one of {', '.join(PLAYABLES)}")
    return PLAYABLES[name]
