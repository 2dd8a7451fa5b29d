"""The reference machine of KIP-384: a cluster that writes each store in the format that its settings allow.

What was once written in the new format stays in a store: segments, and the files beside them, are not rewritten.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.persistent_metadata import ops
from kipcheck.conformance.protocols.persistent_metadata.settings import (
    NEW_FORMAT,
    Rank,
    Settings,
    admits,
    name,
    rank,
    resolved,
)

OLD, NEW = 1, 2


@dataclass(frozen=True, slots=True)
class Broker:
    number: int
    settings: Settings | None = None
    """None: it is stopped."""
    new: frozenset[ops.Store] = frozenset()
    """The stores in its directory that contain the new format."""


@dataclass(frozen=True, slots=True)
class State:
    brokers: tuple[Broker, ...] = ()
    """Those that ever ran, sorted by number."""
    shared: frozenset[ops.Store] = frozenset()
    """``zookeeper``, if it contains the new format."""
    topic_format: Rank | None = None
    raised: bool = False
    """Whether a broker ran with settings that allow the new format."""

    def broker(self, number: int) -> Broker:
        return next((each for each in self.brokers if each.number == number), Broker(number))

    def live(self) -> Iterable[tuple[Broker, Settings]]:
        return ((each, each.settings) for each in self.brokers if each.settings is not None)

    def without(self, number: int) -> "State":
        """The broker is stopped, and keeps its directory."""
        if all(each.number != number for each in self.brokers):
            return self
        return self.having(replace(self.broker(number), settings=None))

    def having(self, broker: Broker) -> "State":
        others = (each for each in self.brokers if each.number != broker.number)
        return replace(self, brokers=tuple(sorted((*others, broker), key=lambda each: each.number)))


BROKERS = range(2)
SETTINGS = (
    (None, None, None),
    ("2.1", "2.1", "2.1"),
    ("2.2", "2.1", "2.1"),
    ("2.2", "2.2", "2.1"),
    ("2.1", "2.2", "2.2"),
)
STORES: tuple[ops.Store, ...] = ("offsets", "zookeeper", "snapshot")
ENVIRONMENT_EVENTS: tuple[ops.Event, ...] = (
    *(ops.Start(broker, "2.2", *each) for broker in BROKERS for each in SETTINGS),
    *(ops.Start(broker, "2.1", *each) for broker in BROKERS for each in SETTINGS[:2]),
    *(ops.Start(broker, "2.0") for broker in BROKERS),
    *(ops.Stop(broker) for broker in BROKERS),
    *(ops.TopicFormat(each) for each in (None, "2.1", "2.2")),
    *(ops.Write(broker, store, compatible) for broker in BROKERS for store in STORES for compatible in (False, True)),
    *(ops.Read(broker, store) for broker in BROKERS for store in STORES),
)


class PersistentCluster:
    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.Start():
                return self.start(state, event)
            case ops.Stop(number):
                return Transition(state.without(number))
            case ops.TopicFormat(text):
                return self.set_topic_format(state, text)
            case ops.Write():
                return self.write(state, event)
            case ops.Read(number, store):
                return Transition(state, (self.read(state, state.broker(number), store),))
            case _:
                assert_never(event)

    def start(self, state: State, event: ops.Start) -> Transition[State, ops.Action]:
        settings, stopped = self.settings(event), state.without(event.broker)
        if settings is None or not self.bounded(settings, state.topic_format):
            return Transition(stopped, (ops.Rejected(ops.INVALID_CONFIG),))
        new = self.opened(settings, state.broker(event.broker).new) | self.fetched(state, event.broker)
        if not self.starts_on(settings, new | state.shared):
            return Transition(stopped, (ops.Rejected(ops.UNREADABLE),))
        allowed = settings.persistent is not None and settings.persistent[0] >= NEW_FORMAT
        after = replace(state.having(Broker(event.broker, settings, new)), raised=state.raised or allowed)
        persistent = None if settings.persistent is None else name(settings.persistent)
        return Transition(after, (ops.Started(name(settings.inter_broker), persistent, name(settings.format)),))

    def settings(self, event: ops.Start) -> Settings | None:
        return resolved(event.binary, event.inter_broker, event.persistent, event.format)

    def bounded(self, settings: Settings, topic_format: Rank | None) -> bool:
        return admits(settings, settings.format) and (topic_format is None or admits(settings, topic_format))

    def opened(self, settings: Settings, new: frozenset[ops.Store]) -> frozenset[ops.Store]:
        """The stores with the new format once a broker has started on its directory."""
        return new

    def fetched(self, state: State, number: int) -> frozenset[ops.Store]:
        """What a broker takes from the others before it is in sync."""
        every: frozenset[ops.Store] = frozenset()
        return every.union(*(each.new & ops.REPLICATED for each, _ in state.live() if each.number != number))

    def starts_on(self, settings: Settings, new: frozenset[ops.Store]) -> bool:
        return settings.reads_new_format or not new

    def set_topic_format(self, state: State, text: str | None) -> Transition[State, ops.Action]:
        if text is None:
            return Transition(replace(state, topic_format=None))
        wanted = rank(text, "2.2")
        if wanted is None or not all(self.bounded(settings, wanted) for _, settings in state.live()):
            return Transition(state, (ops.Rejected(ops.INVALID_CONFIG),))
        return Transition(replace(state, topic_format=wanted))

    def write(self, state: State, event: ops.Write) -> Transition[State, ops.Action]:
        broker = state.broker(event.broker)
        if broker.settings is None:
            return Transition(state, (ops.Rejected(ops.NOT_RUNNING),))
        setting = self.gate(broker.settings, event, state.topic_format)
        format = NEW if setting is not None and self.allows(setting) else OLD
        after = state
        if format == NEW and not event.compatible:
            after = self.stored(state, broker, event.store)
        return Transition(after, (ops.Written(format),))

    def gate(self, settings: Settings, event: ops.Write, topic_format: Rank | None) -> Rank | None:
        """The setting that decides about the new format."""
        if event.compatible:
            return settings.inter_broker
        if event.store == "messages":
            return settings.format if topic_format is None else topic_format
        return settings.persistent

    def allows(self, setting: Rank) -> bool:
        """Whether a setting at this version allows the new format."""
        return setting[0] >= NEW_FORMAT

    def stored(self, state: State, writer: Broker, store: ops.Store) -> State:
        """The new format is written, and replicated."""
        if store == ops.SHARED:
            return replace(state, shared=frozenset({store}))
        after = state.having(replace(writer, new=writer.new | {store}))
        if store in ops.REPLICATED:
            for each, settings in state.live():
                if each.number != writer.number and self.takes(settings, store):
                    after = after.having(replace(each, new=each.new | {store}))
        return after

    def takes(self, settings: Settings, store: ops.Store) -> bool:
        """Whether a follower stores the records as the leader wrote them."""
        return True

    def read(self, state: State, broker: Broker, store: ops.Store) -> ops.Action:
        if broker.settings is None:
            return ops.Rejected(ops.NOT_RUNNING)
        new = store in broker.new | state.shared
        if new and not self.loads(broker.settings):
            return ops.Rejected(ops.UNREADABLE)
        return ops.Found(NEW if new else OLD)

    def loads(self, settings: Settings) -> bool:
        """Whether the broker reads the new format."""
        return settings.reads_new_format

    def enabled(self, state: State, /) -> Iterable[ops.Event]:
        return (each for each in ENVIRONMENT_EVENTS if self.accepts(state, each))

    def accepts(self, state: State, event: ops.Event) -> bool:
        """Whether ``step`` accepts the event."""
        if isinstance(event, ops.Write | ops.Read) and state.broker(event.broker).settings is None:
            return False
        return not any(isinstance(each, ops.Rejected) for each in self.step(state, event).actions)
