"""The reference machine of streams groups as an adapter."""

from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition, Standing
from kipcheck.conformance.core.values.release import NEWEST, Release
from kipcheck.conformance.protocols.declare.machine_adapter import adapter_of
from kipcheck.conformance.protocols.streams_group.model import StreamsGroup
from kipcheck.conformance.protocols.streams_group.ops import OPERATIONS
from kipcheck.conformance.protocols.streams_group.rules import Rules
from kipcheck.conformance.targets.machine_target import MachineAdapter

KIP_1071: Final = Release.parse(since("kip-1071"))
"""The first release in which streams groups are not early access."""


def adapter(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    if edition.standing is not Standing.RELEASED or Release.parse(edition.release) < KIP_1071:
        return None
    return adapter_of(OPERATIONS, machine_of(edition.release if edition.exact else NEWEST))


def machine_of(release: str) -> StreamsGroup:
    """The machine of a release. Errors: ValueError for an invalid release."""
    return StreamsGroup(Rules.of(release))


ADAPTERS = {OPERATIONS.machine: adapter}
