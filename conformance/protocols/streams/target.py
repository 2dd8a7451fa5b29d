"""Adapts groups of Kafka Streams members to the operations of the testee protocol: kipcheck's assignor or another."""

from collections.abc import Callable
from typing import Any

from kipcheck.conformance.core.values.edition import KIP_268, Edition, Standing
from kipcheck.conformance.protocols.streams.blobs import EncodedBinary, future_of
from kipcheck.conformance.protocols.streams.model.group_model import StreamsMembers, streams_group_model
from kipcheck.conformance.protocols.streams.model.members import Binary, Settings
from kipcheck.conformance.protocols.streams.model.release_members import owed_binary
from kipcheck.conformance.protocols.streams.ops import OPERATIONS
from kipcheck.conformance.targets.machine_target import MachineAdapter


def machine_adapter(members: StreamsMembers) -> MachineAdapter[Any, Any, Any]:
    return MachineAdapter(streams_group_model(members), OPERATIONS.verbs, OPERATIONS.event_of, OPERATIONS.answer_of)


def streams_group(edition: Edition) -> MachineAdapter[Any, Any, Any] | None:
    """A group with kipcheck's assignors; None where an edition specifies nothing about Streams."""
    if edition != KIP_268 and edition.standing is not Standing.RELEASED:
        return None
    own = edition.name if edition == KIP_268 else edition.release
    return machine_adapter(StreamsMembers(in_bytes(edition), own, future_of(edition.name)))


def in_bytes(edition: Edition) -> Callable[[Settings], Binary]:
    """kipcheck's assignor for members of any release, with its data encoded; in ``apache`` it does what is owed."""
    return lambda settings: EncodedBinary(owed_binary(settings, edition))


ADAPTERS = dict.fromkeys(OPERATIONS.machines, streams_group)
