"""Assignors of classes with class methods that take and give structs with a ``SCHEMA``: aiokafka's, and kafka-python's
before 3.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kipcheck.conformance.clients.assignor_adapter import EAGER, Cluster, Member, Share, derived, present


class StructAssignors:
    """What the adapters of both libraries have in common."""

    def __init__(
        self, package: str, protocol: Any, tells_generation: bool, joined: Callable[[Any, Member], Any]
    ) -> None:
        """``protocol`` has the structs as ``METADATA`` and ``ASSIGNMENT``; ``joined`` makes what a leader passes to its
        assignor of a member's metadata. ``tells_generation``: does a consumer tell its assignor the generation?
        """
        self._metadata, self._assignment = protocol.METADATA, protocol.ASSIGNMENT
        self._tells_generation, self._joined = tells_generation, joined
        self._classes = present(f"{package}.coordinator.assignors", EAGER)

    def names(self) -> Sequence[str]:
        return tuple(self._classes)

    def assign(self, name: str, cluster: Cluster, members: Sequence[Member]) -> Iterator[Share]:
        joined = {each.id: self._as_joined(name, each) for each in members}
        for member, share in derived(self._classes[name]).assign(cluster, joined).items():
            received = self._assignment.decode(share.encode())
            yield Share(member, received.partitions(), received.user_data)

    def user_data(self, name: str, member: Member) -> bytes | None:
        written = self._written(name, member, self._tells_generation)
        data: bytes | None = self._metadata.decode(written.encode()).user_data
        return data

    def _as_joined(self, name: str, member: Member) -> Any:
        # A leader reads a generation in user data, be it that of a member of another client.
        made = self._written(name, member, tells_generation=True)
        if member.user_data is not None:
            made.user_data = member.user_data
        return self._joined(self._metadata.decode(made.encode()), member)

    def _written(self, name: str, member: Member, tells_generation: bool) -> Any:
        """By a member of its own, at its next joining."""
        assignor = derived(self._classes[name])
        if member.had_its_turn:
            share = self._assignment(assignor.version, member.topics_owned, b"")
            assignor.on_assignment(self._assignment.decode(share.encode()))
            if tells_generation and hasattr(assignor, "on_generation_assignment"):
                assignor.on_generation_assignment(member.generation)
        return assignor.metadata(member.subscription)
