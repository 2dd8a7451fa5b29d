"""The groups of a broker, by id: which machine runs each of them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.classic_group import ClassicGroup
from kipcheck.conformance.live.server.consumer_group import LiveConsumerGroup, LiveMachine
from kipcheck.conformance.live.server.settings import Settings
from kipcheck.conformance.protocols.consumer_group.rules import Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import NO_GENERATION, Commit, Delete, Describe, Fetch, Reply

MOST_GROUPS: Final = 10_000
MOST_MEMBERS: Final = 1_000
"""Of a group, with ids that are not used yet; and of one request. A front has as many connections."""
MOST_PROTOCOLS: Final = 100
"""Of a member."""
MOST_BYTES: Final = 32 << 20
"""That all groups keep: metadata, assignments, ids and offsets. Beyond it a group that has more than its share, which
is this divided by the number of groups, gets no more of them. So all together keep less than twice as many."""
MOST_ANSWERED: Final = 8 << 20
"""Bytes of the groups that one answer is about."""

Answer: TypeAlias = Callable[[Mapping[str, Any]], None]
"""Answers a request with a body."""
Handler: TypeAlias = Callable[[Received, Answer], None]


class TooMany(Exception):
    """A request exceeds a limit; its connection is closed."""


def bound(number: int, most: int, elements: str) -> None:
    """Bounds elements of a request that are compared with all others of a group. Errors: ``TooMany``."""
    if number > most:
        raise TooMany(f"too many {elements} in a request")


class AnswerSize:
    """Bounds an answer about many groups, or about one many times."""

    def __init__(self) -> None:
        self._left = MOST_ANSWERED

    def add(self, size: int) -> None:
        """Errors: ``TooMany``."""
        self._left -= size
        if self._left < 0:
            raise TooMany("too many bytes in an answer")


class Groups:
    def __init__(self, machine: Coordinator, settings: Settings, topics: Mapping[str, int]) -> None:
        self.machine = machine
        self.settings = settings
        self.topics = topics
        self.bytes = 0
        """That all groups keep."""
        self.observer: Callable[[ClassicGroup], None] = lambda group: None
        """Called with a classic group after each event."""
        self.consumer_machine: Callable[[Mapping[str, int], Config], LiveMachine] = LiveMachine
        self._classic: dict[str, ClassicGroup] = {}
        self._consumer: dict[str, LiveConsumerGroup] = {}
        self._weights: dict[str, int] = {}
        self._absent: dict[tuple[type, int, bool], Reply] = {}
        """Answers about groups that do not exist, by type and version of the request, and whether the name is empty."""

    def classic(self, id: str) -> ClassicGroup:
        """The classic group; one that does not exist is kept as soon as something is in it."""
        group = self._classic.get(id)
        return ClassicGroup(self.machine, partial(self._changed, id)) if group is None else group

    def ask(self, id: str, kind: type[Describe | Delete | Fetch], version: int) -> Reply:
        """The answer to a request about a group. That about one that does not exist is computed once."""

        def asked() -> Reply:
            return self.classic(id).ask(kind(version), nameless=not id)

        if id in self._classic:
            return asked()
        key = (kind, version, not id)
        if key not in self._absent:
            self._absent[key] = asked()
        return self._absent[key]

    def growing(self, id: str) -> ClassicGroup:
        """The classic group, for a request that adds to it. Errors: ``TooMany``."""
        self._bound(id, 0)
        return self.classic(id)

    def joining(self, id: str, member: str) -> ClassicGroup:
        """The classic group, for a member that it may not have yet. Errors: ``TooMany``.

        It takes the offsets of a consumer group without members.
        """
        group = self.classic(id)
        is_new = group.state.member(member) is None
        self._bound(id, len(group.state.members) + len(group.state.pending) if is_new else 0)
        if (consumer := self._consumer.get(id)) is not None:
            self.remove_consumer(id)
            offsets = tuple((*at, *position) for at, position in consumer.offsets.items())
            group.send(Commit(self.machine.rules.versions[Commit][-1], "", None, NO_GENERATION, offsets))
        return group

    def consumer(self, id: str) -> LiveConsumerGroup | None:
        return self._consumer.get(id)

    def consumer_with_members(self, id: str) -> LiveConsumerGroup | None:
        """The consumer group if it has members: then the id is not free for a classic group."""
        group = self._consumer.get(id)
        return group if group is not None and group.state.members else None

    def new_consumer(self, id: str, member: str) -> LiveConsumerGroup | None:
        """The consumer group, created if the id is free; None if a classic group with members has it. Errors:
        ``TooMany`` if the member is one too many.

        A group that changes its protocol keeps its offsets.
        """
        group = self._consumer.get(id)
        classic = self._classic.get(id)
        if classic is not None and classic.state.members:
            return None
        is_new = group is None or group.state.member(member) is None
        self._bound(id, len(group.state.members) if group is not None and is_new else 0)
        if group is None:
            machine = self.consumer_machine(self.topics, self.settings.consumer)
            group = LiveConsumerGroup(machine, partial(self._weigh, id))
            self._consumer[id] = group
        if classic is not None:
            for topic, partition, offset, epoch, metadata in classic.state.offsets:
                group.offsets.setdefault((topic, partition), (offset, epoch, metadata))
            self._classic.pop(id).close()
            self._weigh(id, group.bytes)
        return group

    def remove_consumer(self, id: str) -> None:
        self._consumer.pop(id).close()
        self._weigh(id, 0)

    def know(self, topics: Mapping[str, int]) -> None:
        """The topics that exist now, with their partitions."""
        self.topics = topics
        for group in self._consumer.values():
            group.machine.topics = topics

    def forget(self, topic: str) -> None:
        """Removes the committed offsets of a topic that is gone, as ``GroupCoordinator`` does."""
        for _, classic in self.classics():
            kept = tuple(offset for offset in classic.state.offsets if offset[0] != topic)
            classic.state = classic.state._replace(offsets=kept)
        for _, consumers in self.consumers():
            consumers.offsets = {at: found for at, found in consumers.offsets.items() if at[0] != topic}

    def weight(self, id: str) -> int:
        """The bytes that a group keeps, about."""
        return self._weights.get(id, 0)

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

    def _bound(self, id: str, members: int) -> None:
        """Errors: ``TooMany`` if a group with so many members may get nothing more."""
        number = len(self._classic) + len(self._consumer)
        if id not in self._classic and id not in self._consumer and number >= MOST_GROUPS:
            raise TooMany("too many groups")
        if members >= MOST_MEMBERS:
            raise TooMany("too many members")
        if self.bytes >= MOST_BYTES and self._weights.get(id, 0) >= MOST_BYTES // max(number, 1):
            raise TooMany("too many bytes of groups")

    def _changed(self, id: str, group: ClassicGroup) -> None:
        if group.is_gone:
            self._classic.pop(id, None)
            self._weigh(id, 0)
        else:
            self._classic[id] = group
            self._weigh(id, group.bytes)
        self.observer(group)

    def _weigh(self, id: str, weight: int) -> None:
        before = self._weights.get(id, 0)
        if weight == before:
            return
        self.bytes += weight - before
        if weight:
            self._weights[id] = weight
        else:
            del self._weights[id]
