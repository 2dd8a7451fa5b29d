"""What conversations with one broker share: its versions, settings, topics, and how fast its time passes."""

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.operations.wire_form import Context, Value, message_of
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.history import Lost, Observation, Replied
from kipcheck.conformance.live.coordinator.restarts import Reload
from kipcheck.conformance.protocols.consumer_group.rules import Config as ConsumerConfig
from kipcheck.conformance.protocols.declare.real_time import DOUBT, SETTINGS
from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.ops import VALUES
from kipcheck.conformance.protocols.share_group.rules import Config as ShareGroupConfig
from kipcheck.conformance.protocols.share_partition.rules import Config as ShareConfig
from kipcheck.conformance.protocols.streams_group import topology
from kipcheck.conformance.protocols.streams_group.model import Config as StreamsConfig
from kipcheck.conformance.wire.bodies import key_of
from kipcheck.conformance.wire.schema import spec

Settings: TypeAlias = Config | ConsumerConfig | StreamsConfig | ShareConfig | ShareGroupConfig
REQUEST_S: Final = 0.03
"""What a request takes, for the plan of a wait before it."""
VERSIONS: Final = "versions"
BROKER: Final = "broker"
NAMELESS: Final = "nameless"
TIME: Final = "time"
LIMITS: Final = {
    VERSIONS: "the broker does not announce the version, or the version cannot express the request",
    BROKER: "no client can do that to this broker, or not as often; or the topic lacks the partition",
    NAMELESS: "the offsets of the group with the empty name are not those of one conversation",
    TIME: "the wait is longer than a conversation in real time may last",
}
LOST: Final = Lost("the broker did not answer an earlier step")


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of conversations, as the broker has them."""

    names: Mapping[str, str]
    """``t`` -> its name."""
    partitions: Mapping[str, int]
    """By name."""
    ids: Mapping[str, uuid.UUID] = field(default_factory=dict)
    """``t`` -> its id, where the broker has ids."""

    def there(self, own: str) -> str:
        """The name on the broker of a topic, which may not exist."""
        return self.names.get(own, f"{self.names['t']}-missing-{own}")

    def own(self, name: str) -> str:
        return next((each for each, there in self.names.items() if there == name), name)

    def own_by_id(self, id: uuid.UUID) -> str:
        return next((each for each, known in self.ids.items() if known == id), str(id))

    def regex(self, own: str) -> str:
        """A regular expression over the names on the broker."""
        return re.sub("|".join(self.names), lambda found: self.names[found[0]], own)


@dataclass(frozen=True, slots=True)
class Scale:
    """How much faster than stated the time of a broker passes, whose settings are divided likewise."""

    times: int
    min_session_ms: int

    def ms(self, stated: int) -> int:
        return -(-stated // self.times)

    def session(self, stated: int) -> int:
        """A session stays on its side of the bounds: below the least one it is rounded down."""
        return stated // self.times if stated < self.min_session_ms else self.ms(stated)


@dataclass(frozen=True, slots=True)
class Setting:
    rules: Rules
    config: Config
    topics: Topics
    scale: Scale
    versions: dict[int, tuple[int, int]]
    """By API key."""
    margin_s: float
    longest_ms: int
    """Of one ``elapse``."""
    most_ms: int
    """Of a conversation, in all."""
    nameless: bool = False
    """Whether the group with the empty name is this conversation's own."""
    pause_s: float = 0.0
    """Before each request, so that timers of one moment of the conversation expire one after the other."""
    consumers: ConsumerConfig | None = None
    """Of consumer groups; None: the broker has none."""
    streams: StreamsConfig | None = None
    """Of streams groups; None: the broker has none."""
    shares: ShareConfig | None = None
    """Of share partitions; None: the broker has none."""
    share_groups: ShareGroupConfig | None = None
    """Of share groups; None: the broker has none."""
    reload: Reload | None = None
    """Has the coordinator read its log. None: nothing can."""

    def announced(self, made: type) -> tuple[int, int]:
        """The first and the last version of a request."""
        return self.versions.get(key_of(made), (0, -1))

    def newest(self, made: type) -> int:
        """The last version of a request that the broker and the schemas have."""
        known = spec(APACHE, message_of(made)).versions.high
        return min(self.announced(made)[1], known or 0)

    def is_too_long(self, ms: int, before_ms: int) -> bool:
        """Whether a wait is longer than a conversation in real time may last, after so much time before it."""
        return ms > self.longest_ms or before_ms + ms > self.most_ms

    def context(self, group: str, **values: Value) -> Context:
        """That of the requests to a group, and of their answers. ``values``: others than those of classic groups."""
        own = {
            "topic": Value(self.topics.there, self.topics.own),
            "session": Value(self.scale.session, int),
            "timeout": Value(self.scale.ms, int),
        }
        return Context({**VALUES, **own, **values}, {"group": group})

    def context_by_ids(self, group: str) -> Context:
        """That of heartbeats of consumer groups and streams groups, which name topics by ids."""

        own, names = (topology.CHANGELOG, topology.REPARTITIONED), self.topics.names
        stated = {name: topic for topic, name in names.items()} | {f"{group}-{topic}": topic for topic in own}
        return self.context(
            group,
            timeout=Value(self._timeout, int),
            topic_id=Value(self.topics.ids.__getitem__, self.topics.own_by_id),
            regex=Value(self.topics.regex, str),
            internal_topic=Value(
                lambda topic: f"{group}-{topic}" if topic in own else names.get(topic, topic),
                lambda name: stated.get(name, name),
            ),
        )

    def _timeout(self, stated: int) -> int:
        """Negative: none is stated."""
        return stated if stated < 0 else self.scale.ms(stated)


def noted(found: Sequence[Observation], doubt: str, config: Settings, usual: Settings) -> tuple[Observation, ...]:
    """With the settings of the broker, if they are not the usual ones, and the doubt, at the first answer that has
    fields."""
    notes: list[tuple[str, Any]] = []
    if doubt:
        notes.append((DOUBT, doubt))
    if config != usual:
        notes.append((SETTINGS, asdict(config)))
    for at, each in enumerate(found):
        if isinstance(each, Replied) and notes:
            return (*found[:at], replace(each, payload=(*each.payload, *notes)), *found[at + 1 :])
    return tuple(found)
