"""The groups of a broker, by id: which machine runs each of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.classic_group import ClassicGroup
from kipcheck.conformance.live.server.consumer_group import LiveConsumerGroup
from kipcheck.conformance.live.server.settings import Settings
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator

MOST_GROUPS: Final = 10_000
MOST_MEMBERS: Final = 5_000
"""Of a classic group, with ids that are not used yet: what a flood of JoinGroup requests may create."""

Answer: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Answers a request with a body."""
Handler: TypeAlias = Callable[[Received, Answer], None]


class TooMany(Exception):
    """A request would create one group or member more than the limit; its connection is closed."""


class Groups:
    def __init__(self, machine: Coordinator, settings: Settings, topics: Mapping[str, int]) -> None:
        self.machine = machine
        self.settings = settings
        self.topics = topics
        self._classic: dict[str, ClassicGroup] = {}
        self._consumer: dict[str, LiveConsumerGroup] = {}

    def classic(self, id: str) -> ClassicGroup:
        """The classic group, created if it is missing. Errors: ``TooMany``."""
        found = self._classic.get(id)
        if found is None:
            self._bound()
            found = self._classic[id] = ClassicGroup(self.machine, lambda: self._forget(id))
        return found

    def with_room(self, id: str) -> ClassicGroup:
        """The classic group, for one more member. Errors: ``TooMany``."""
        found = self.classic(id)
        if len(found.state.members) + len(found.state.pending) >= MOST_MEMBERS:
            raise TooMany("too many members")
        return found

    def consumer(self, id: str) -> LiveConsumerGroup | None:
        return self._consumer.get(id)

    def consumer_with_members(self, id: str) -> LiveConsumerGroup | None:
        """The consumer group if it has members: then the id is not free for a classic group."""
        found = self._consumer.get(id)
        return found if found is not None and found.state.members else None

    def new_consumer(self, id: str) -> LiveConsumerGroup | None:
        """The consumer group, created if the id is free; None if a classic group with members has it.

        A group that changes its protocol keeps its offsets.
        """
        found = self._consumer.get(id)
        classic = self._classic.get(id)
        if classic is not None and classic.state.members:
            return None
        if found is None:
            self._bound()
            found = self._consumer[id] = LiveConsumerGroup(self.topics, self.settings.consumer)
        if classic is not None:
            for topic, partition, offset in classic.state.offsets:
                epoch, metadata = classic.metadata.get((topic, partition), (-1, ""))
                found.offsets.setdefault((topic, partition), (offset, epoch, metadata))
            self._classic.pop(id).close()
        return found

    def remove_consumer(self, id: str) -> None:
        self._consumer.pop(id).close()

    def classics(self) -> Iterator[tuple[str, ClassicGroup]]:
        yield from list(self._classic.items())

    def consumers(self) -> Iterator[tuple[str, LiveConsumerGroup]]:
        yield from list(self._consumer.items())

    def close(self) -> None:
        """Stops all timers."""
        for classic in self._classic.values():
            classic.close()
        for consumer in self._consumer.values():
            consumer.close()

    def _bound(self) -> None:
        if len(self._classic) + len(self._consumer) >= MOST_GROUPS:
            raise TooMany("too many groups")

    def _forget(self, id: str) -> None:
        found = self._classic.get(id)
        if found is not None and found.is_gone:
            del self._classic[id]
