"""Streams groups in the matrix: members run as reference models or as released jars; future members always as
models.
"""

from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Final, TypeAlias

from kipcheck.conformance.apis.streams_blobs import InBytes
from kipcheck.conformance.core.edition import APACHE, edition
from kipcheck.conformance.core.releases_table import named
from kipcheck.conformance.models.cluster import Cluster, Life
from kipcheck.conformance.models.cluster_components import Move, Node
from kipcheck.conformance.models.streams.binaries import binary
from kipcheck.conformance.models.streams.group_model import Fleet
from kipcheck.conformance.models.streams.members import FUTURE, Binary, Settings
from kipcheck.conformance.models.streams.operations import Deploy

Made: TypeAlias = Callable[[Settings], Binary]
"""Returns the binary of a member."""
OWN: Final = named("last-before-4")
"""The default release, which no script of the matrix uses."""
LIVES: Final = 1 << 15


class _Remembering(Cluster):
    """Caches moves of members, because the scripts of a cell have much in common."""

    def lived(self, index: int, node: Node, move: Move) -> Life:
        return self._remembered(index, node, move)

    @cached_property
    def _remembered(self) -> Callable[[int, Node, Move], Life]:
        return lru_cache(LIVES)(super().lived)


class Mixed(Fleet):
    """A group with members of any releases."""

    def __init__(self, made: Made) -> None:
        super().__init__(cache(made), OWN)

    def _cluster(self, deployed: Deploy) -> Cluster:
        made = super()._cluster(deployed)
        return _Remembering(made.coordinator, made.consumers, made.names[1:])


def foretold(fitted: bool, over: str = APACHE.name) -> Made:
    """Reference models that read and write the bytes of their releases. ``fitted``: as for ``Rules.of``.

    ``over``: the edition whose rebalance protocols a member of the future offers.
    """
    spoken = edition(over)
    return lambda settings: InBytes(binary(settings, spoken, fitted))


def released(jars: Made, over: str = APACHE.name) -> Made:
    """``jars``, and a reference model for members of the future."""
    ours = foretold(True, over)
    return lambda settings: ours(settings) if settings.release == FUTURE else jars(settings)
