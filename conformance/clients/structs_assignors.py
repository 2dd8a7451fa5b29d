"""Calls assignors that are classes with class methods, and take and return structs with a ``SCHEMA``: aiokafka's, and
kafka-python's before 3.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import EAGER, Cluster, Member, Share, derived, present


class StructAssignors:
    """Shared by the adapters of both libraries."""

    def __init__(
        self, package: str, protocol: Any, passes_generation: bool, joined: Callable[[Any, Member], Any]
    ) -> None:
        """``protocol`` has the structs as ``METADATA`` and ``ASSIGNMENT``; ``joined`` converts a member's metadata to
        the form that a leader passes to its assignor. The flag states whether a consumer passes the generation to
        its assignor.
        """
        self._metadata, self._assignment = protocol.METADATA, protocol.ASSIGNMENT
        self._passes_generation, self._joined = passes_generation, joined
        self._classes = present(f"{package}.coordinator.assignors", EAGER)

    def names(self) -> Sequence[str]:
        return tuple(self._classes)

    def assign(self, name: str, cluster: Cluster, members: Sequence[Member]) -> Iterator[Share]:
        joined = {each.id: self._as_joined(name, each) for each in members}
        for member, share in derived(self._classes[name]).assign(cluster, joined).items():
            received = self._assignment.decode(share.encode())
            yield Share(member, received.partitions(), received.user_data)

    def user_data(self, name: str, member: Member) -> bytes | None:
        written = self._written(name, member, self._passes_generation)
        data: bytes | None = self._metadata.decode(written.encode()).user_data
        return data

    def _as_joined(self, name: str, member: Member) -> Any:
        # A leader reads the generation in user data even where a member of another client wrote it.
        made = self._written(name, member, passes_generation=True)
        if member.user_data is not None:
            made.user_data = member.user_data
        return self._joined(self._metadata.decode(made.encode()), member)

    def _written(self, name: str, member: Member, passes_generation: bool) -> Any:
        """The metadata of a new member, written at its next join."""
        assignor = derived(self._classes[name])
        if member.was_assigned:
            share = self._assignment(assignor.version, member.topics_owned, b"")
            assignor.on_assignment(self._assignment.decode(share.encode()))
            if passes_generation and hasattr(assignor, "on_generation_assignment"):
                assignor.on_generation_assignment(member.generation)
        return assignor.metadata(member.subscription)
