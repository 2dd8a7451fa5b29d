"""Streams groups in the matrix: members run as reference models or as released jars; future members always as
models.
"""

from collections.abc import Callable
from functools import cache, cached_property, lru_cache
from typing import Final, TypeAlias

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.protocols.cluster.components import Move, Node
from kipcheck.conformance.protocols.cluster.model import Cluster, MemberOutcome
from kipcheck.conformance.protocols.streams.blobs import EncodedBinary
from kipcheck.conformance.protocols.streams.model.group_model import State, StreamsMembers, streams_group_model
from kipcheck.conformance.protocols.streams.model.members import FUTURE, Binary, Settings
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.ops import Deploy, ObservedEvent, OwnEvent
from kipcheck.conformance.protocols.upgrade.model.script_runner import ScriptModel

BinaryFactory: TypeAlias = Callable[[Settings], Binary]
"""Returns the binary of a member."""
DEFAULT_RELEASE: Final = named("last-before-4")
"""The default release, which no script of the matrix uses."""
CACHE_SIZE: Final = 1 << 15


class _CachingCluster(Cluster):
    """Caches moves of members, because the scripts of a cell have much in common."""

    def member_outcome(self, index: int, node: Node, move: Move) -> MemberOutcome:
        return self._remembered(index, node, move)

    @cached_property
    def _remembered(self) -> Callable[[int, Node, Move], MemberOutcome]:
        return lru_cache(CACHE_SIZE)(super().member_outcome)


class _MixedMembers(StreamsMembers):
    def cluster_of(self, deployed: Deploy) -> Cluster:
        made = super().cluster_of(deployed)
        return _CachingCluster(made.coordinator, made.consumers, made.names[1:])


def mixed_group(made: BinaryFactory) -> ScriptModel[State, OwnEvent, ObservedEvent]:
    """A group with members of any releases."""
    return streams_group_model(_MixedMembers(cache(made), DEFAULT_RELEASE))


def reference_binaries(fitted: bool, over: str = APACHE.name) -> BinaryFactory:
    """Reference models that read and write the bytes of their releases. ``fitted``: as for ``Rules.of``.

    ``over``: the edition whose rebalance protocols a member of the future offers.
    """
    edition_used = edition(over)
    return lambda settings: EncodedBinary(binary(settings, edition_used, fitted))


def released_binaries(jars: BinaryFactory, over: str = APACHE.name) -> BinaryFactory:
    """``jars``, and a reference model for members of the future."""
    ours = reference_binaries(True, over)
    return lambda settings: ours(settings) if settings.release == FUTURE else jars(settings)
