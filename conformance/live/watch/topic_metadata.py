"""What the cluster is known to be from answers to Metadata: names, ids and partitions of topics."""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.live.server.topics import Topic, Topics

MOST_TOPICS: Final = 20_000
MOST_TOLD: Final = 200_000
"""Topics of all clients together, of which it is remembered who was sent them."""
CHANGED_MS: Final = 300_000
"""So long after a topic grew some clients may not know it (``metadata.max.age.ms``)."""
Client = tuple[str, str]
"""Host and client id."""
Row = tuple[int, str | None, uuid.UUID | None, int]
"""Of a topic: error, name, id and number of partitions."""


@dataclass(slots=True)
class Facts:
    topics: Topics = field(default_factory=Topics)
    told: dict[Client, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """Client -> topic -> partitions and time of the last answer to Metadata, in milliseconds."""
    _changed_ms: dict[str, int] = field(default_factory=dict)
    _number: int = 0
    """Of topics in ``told``."""

    def described(self, client: Client, topics: Iterable[Row], ms: int) -> None:
        """An answer to Metadata passed."""
        found = self.told[client] = self.told.pop(client, {})
        self._number -= len(found)
        for error, name, id, partitions in topics:
            if error or not name:
                continue
            known = self.topics.by_name.get(name)
            if known is None and len(self.topics.by_name) >= MOST_TOPICS:
                continue
            if known is not None and known.partitions != partitions:
                self._changed_ms[name] = ms
            if known is None or known.partitions != partitions or (id and known.id != id):
                made = Topic(name, partitions, id if id else (known.id if known is not None else _NO_ID))
                self.topics.by_name[name] = made
                if id:
                    self.topics.by_id[id] = made
            if len(found) < MOST_TOPICS:
                found[name] = partitions, ms
        self._number += len(found)
        while self._number > MOST_TOLD or len(self.told) > MOST_TOPICS:
            self._number -= len(self.told.pop(next(iter(self.told))))

    def sizes(self, names: set[str], ms: int) -> dict[str, int] | None:
        """The partitions of topics; None if one is not known, or changed not long ago."""
        topics = [self.topics.by_name.get(name) for name in names]
        if any(topic is None or ms < self._changed_ms.get(topic.name, -CHANGED_MS) + CHANGED_MS for topic in topics):
            return None
        return {topic.name: topic.partitions for topic in topics if topic is not None}


_NO_ID: Final = uuid.UUID(int=0)
