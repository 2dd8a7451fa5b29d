"""The models that ``play`` and ``explore`` find by name. A new one needs a module here and a line in ``PLAYABLES``."""

from collections.abc import Mapping

from kipcheck.conformance.play.cluster import BOUNCE, CLUSTER
from kipcheck.conformance.play.declare import Playable
from kipcheck.conformance.play.features import FEATURES
from kipcheck.conformance.play.group import GROUP
from kipcheck.conformance.play.member import MEMBER
from kipcheck.conformance.play.streams import STREAMS

PLAYABLES: Mapping[str, Playable] = {each.name: each for each in (FEATURES, GROUP, MEMBER, CLUSTER, BOUNCE, STREAMS)}


def playable(name: str) -> Playable:
    """The model with this name. Errors: LookupError, listing the known models."""
    if name not in PLAYABLES:
        raise LookupError(f"unknown model {name!r}: use one of {', '.join(PLAYABLES)}")
    return PLAYABLES[name]
