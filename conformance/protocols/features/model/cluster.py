"""The controller of KIP-584's draft in full: several features, a node in ZooKeeper, brokers, and fail-over.

The node has a status and, for each finalized feature, a minimum and a maximum level; its version is the epoch. A
controller validates one request at a time against the brokers that it has registered, and then writes the node.

The draft does not say what happens to a write of a controller that was deposed meanwhile (584-59). Here a write is
conditional on the version of the node and on the term of the controller: the version alone does not change when a new
controller registers a broker that the deposed one never knew.

The check of a broker compares the maximum level: a release that drops old levels could never start otherwise, and the
controller raises the minimum as soon as it registers such a broker (584-18).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model import draft_rules
from kipcheck.conformance.protocols.features.model.draft_rules import refusal
from kipcheck.conformance.protocols.features.model.ranges import (
    Range,
    Ranges,
    common,
    highest_minimum,
    ranges,
    unsupported,
)
from kipcheck.conformance.protocols.features.ops import cluster as ops

ABSENT: Final = "BROKER_NOT_AVAILABLE"
"""There is no such broker."""


@final
@dataclass(frozen=True, slots=True)
class Node:
    """/features in ZooKeeper."""

    epoch: int
    enabled: bool = True
    features: Ranges = ()

    def changed(self, enabled: bool, features: Ranges) -> "Node":
        """After a write of these contents."""
        return Node(self.epoch + 1, enabled, features)


@final
@dataclass(frozen=True, slots=True)
class Broker:
    """A live broker, which is in ZooKeeper."""

    number: int
    supported: Ranges = ()
    before_migration: bool = False
    epoch: int = -1
    """Of its cache; -1: the cache is empty."""
    cache: Ranges = ()
    static: int = 1
    """Its static inter-broker version."""

    @property
    def declared(self) -> Ranges:
        """What it advertises (584-22)."""
        return () if self.before_migration else self.supported

    def read(self, node: Node | None) -> "Broker":
        """With a cache that was filled from the node."""
        active = node is not None and node.enabled
        return replace(self, epoch=node.epoch, cache=node.features) if active and node else self.cleared()

    def cleared(self) -> "Broker":
        return replace(self, epoch=-1, cache=())


@final
@dataclass(frozen=True, slots=True)
class PendingWrite:
    """What a controller has validated and not written yet."""

    broker: int
    term: int
    version: int
    """Of the node that was validated."""
    features: Ranges
    results: tuple[ops.Outcome, ...]


@final
@dataclass(frozen=True, slots=True)
class State:
    node: Node | None = None
    brokers: tuple[Broker, ...] = ()
    """Live brokers, by number."""
    controller: int | None = None
    term: int = 0
    registered: frozenset[int] = frozenset()
    """The brokers whose registration the controller has handled."""
    pending: tuple[PendingWrite, ...] = ()
    """At most one of each broker that is, or was, the controller."""

    def broker(self, number: int | None) -> Broker | None:
        return next((each for each in self.brokers if each.number == number), None)

    def with_broker(self, broker: Broker) -> "State":
        others = (each for each in self.brokers if each.number != broker.number)
        return replace(self, brokers=tuple(sorted((*others, broker), key=lambda each: each.number)))

    def without(self, number: int) -> "State":
        """After a broker is gone, with what its process had in memory."""
        return replace(
            self,
            brokers=tuple(each for each in self.brokers if each.number != number),
            controller=None if self.controller == number else self.controller,
            registered=frozenset() if self.controller == number else self.registered - {number},
            pending=tuple(each for each in self.pending if each.broker != number),
        )

    def pending_of(self, number: int | None) -> PendingWrite | None:
        return next((each for each in self.pending if each.broker == number), None)

    def finalized(self) -> Mapping[str, Range]:
        return dict(self.node.features) if self.node is not None else {}

    def supported(self) -> tuple[Mapping[str, Range], ...]:
        """What each registered broker declares."""
        return tuple(dict(each.declared) for each in self.brokers if each.number in self.registered)


class FeatureCluster:
    def initial(self) -> State:
        return State()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.StartBroker():
                return self.started(state, event)
            case ops.StopBroker(number):
                return Transition(state.without(number))
            case ops.Elect(number):
                return Transition(self.elected(state, number))
            case ops.HandleRegistration(number):
                return Transition(self.handled(self.finished(state), number))
            case ops.Watch(number):
                return self.watched(state, number)
            case ops.UpdateFeatures(updates, to, unauthorized):
                return self.update(state, updates, to, unauthorized)
            case ops.ValidateFeatures(updates):
                return self.validated(self.finished(state), updates)
            case ops.Write(number):
                return self.write(state, number)
            case ops.AskFeatures(number):
                return self.asked(state, number)
            case ops.ReadNode():
                return Transition(state, (self.contents(state),))
            case ops.LoseUpdate(updates, arrives):
                return Transition(self.update(state, updates, None, False).state if arrives else state)
            case ops.AskVersion(number):
                return Transition(state, (self.deciding(state.broker(number)),))
            case _:
                assert_never(event)

    # Brokers

    def admits(self, features: Ranges, broker: Broker) -> bool:
        """Whether a broker supports what is finalized, in the eyes of the broker and of the controller alike."""
        return next(unsupported(features, broker.declared), None) is None

    def stops(self, node: Node | None, broker: Broker) -> bool:
        """The check of a broker at its start, and whenever it reads the node; none below the migration version."""
        active = node is not None and node.enabled and not broker.before_migration
        return active and node is not None and not self.admits(node.features, broker)

    def started(self, state: State, event: ops.StartBroker) -> Transition[State, ops.Action]:
        state = state.without(event.broker)
        supported = ranges({each.feature: (each.low, each.high) for each in event.supported})
        broker = Broker(event.broker, supported, event.before_migration, static=event.static)
        if self.stops(state.node, broker):
            return Transition(state, (ops.Stops(event.broker),))
        return Transition(state.with_broker(broker.cleared() if event.before_migration else broker.read(state.node)))

    def watched(self, state: State, number: int) -> Transition[State, ops.Action]:
        broker = state.broker(number)
        if broker is None:
            return Transition(state)
        if self.stops(state.node, broker):
            return Transition(state.without(number), (ops.Stops(number),))
        return Transition(state.with_broker(broker.cleared() if broker.before_migration else broker.read(state.node)))

    def asked(self, state: State, number: int) -> Transition[State, ops.Action]:
        broker = state.broker(number)
        if broker is None:
            return Transition(state, (ops.TopLevel(ABSENT),))
        supported = tuple(ops.Supported(name, *span) for name, span in broker.declared)
        return Transition(state, (ops.Features(broker.epoch, _finalized(broker.cache), supported),))

    def deciding(self, broker: Broker | None) -> ops.Deciding | ops.TopLevel:
        """The level of the feature is preferred as soon as the broker knows one (section Phase #3)."""
        if broker is None:
            return ops.TopLevel(ABSENT)
        if broker.before_migration:
            return ops.Deciding(0, False)
        level = dict(broker.cache).get(ops.IBP)
        return ops.Deciding(broker.static, False) if level is None else ops.Deciding(level.high, True)

    # The controller and the node

    def elected(self, state: State, number: int) -> State:
        """A live broker is the controller now; it reads ZooKeeper, and brings the node in order.

        The pending write of the controller before it stays: its process lives on and does not know yet.
        """
        broker = state.broker(number)
        if broker is None:
            return state
        stale = tuple(each for each in state.pending if each.broker != number)
        state = replace(state, controller=number, term=state.term + 1, registered=frozenset(), pending=stale)
        state = replace(state, node=self.life_cycle(state, broker))
        for each in state.brokers:
            state = self.handled(state, each.number)
        return state

    def life_cycle(self, state: State, broker: Broker) -> Node:
        """The node after a controller has started on this broker (section Feature ZK node status)."""
        node, active = state.node, not broker.before_migration
        if node is None:
            # A new cluster: what all brokers support is finalized at once; below the migration version nothing is.
            return Node(0, active, common(each.declared for each in state.brokers) if active else ())
        if node.enabled == active:
            return node
        return node.changed(active, ())

    def handled(self, state: State, number: int) -> State:
        """After the controller has handled a registration: it skips a broker that does not support what is final."""
        broker = state.broker(number)
        if broker is None or state.controller is None or state.node is None:
            return state
        if state.node.enabled and not self.admits(state.node.features, broker):
            return replace(state, registered=state.registered - {number})
        return self.raised(replace(state, registered=state.registered | {number}))

    def raised(self, state: State) -> State:
        """With minimum levels raised to the highest supported minimum (section Feature version deprecation)."""
        if state.node is None:
            return state
        supported = state.supported()
        after = ranges({
            name: (max(span.low, highest_minimum(name, supported)), span.high) for name, span in state.node.features
        })  # fmt: skip
        return state if after == state.node.features else replace(state, node=state.node.changed(True, after))

    # Updates

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        if unauthorized:
            return Transition(state, (ops.TopLevel(ops.UNAUTHORIZED),))
        if to not in (None, state.controller):
            return Transition(state, (ops.TopLevel(ops.NOT_CONTROLLER),))
        after, actions = self.validated(self.finished(state), updates)
        if state.controller is None or after.pending_of(state.controller) is None:
            return Transition(after, actions)
        return self.write(after, state.controller)

    def finished(self, state: State) -> State:
        """One request at a time: what is in flight is written before the controller does anything else."""
        if state.controller is None or state.pending_of(state.controller) is None:
            return state
        return self.write(state, state.controller).state

    def validated(self, state: State, updates: tuple[ops.Requested, ...]) -> Transition[State, ops.Action]:
        if state.controller is None or state.node is None:
            return Transition(state, (ops.TopLevel(ops.NOT_CONTROLLER),))
        results = tuple(ops.Outcome(each.feature, self.judged(state, each, updates)) for each in updates)
        good = [each for each, result in zip(updates, results, strict=True) if result.error == draft_rules.NONE]
        if not good:
            return Transition(state, (ops.Answered(results),))
        features = self.applied(state, good)
        write = PendingWrite(state.controller, state.term, state.node.epoch, features, results)
        return Transition(replace(state, pending=(*state.pending, write)), (ops.Waiting(),))

    def judged(self, state: State, requested: ops.Requested, updates: tuple[ops.Requested, ...]) -> str:
        """The error of one update of a request, or ``NONE``."""
        update = draft_rules.FeatureUpdate(requested.feature, requested.level, requested.allow_downgrade)
        if sum(each.feature == requested.feature for each in updates) > 1:
            return draft_rules.INVALID_REQUEST  # the feature is a map key of request and response
        if state.node is None or not state.node.enabled:
            return draft_rules.FEATURE_UPDATE_FAILED
        return self.refusal(update, state.finalized().get(update.feature), state.supported())

    def refusal(
        self, update: draft_rules.FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        return refusal(update, finalized, supported)

    def applied(self, state: State, updates: Iterable[ops.Requested]) -> Ranges:
        """All good updates of a request at once."""
        after, supported = dict(state.finalized()), state.supported()
        for each in updates:
            before = after.pop(each.feature, None)
            if each.level >= 1:
                low = before.low if before else highest_minimum(each.feature, supported)
                after[each.feature] = Range(low, each.level)
        return ranges(after)

    def write(self, state: State, number: int) -> Transition[State, ops.Action]:
        write = state.pending_of(number)
        if write is None:
            return Transition(state, (ops.TopLevel(ops.NOT_CONTROLLER),))
        state = replace(state, pending=tuple(each for each in state.pending if each != write))
        if state.node is None or not self.succeeds(state, state.node, write):
            return Transition(state, (ops.TopLevel(ops.NOT_CONTROLLER),))
        return Transition(replace(state, node=state.node.changed(True, write.features)), (ops.Answered(write.results),))

    def succeeds(self, state: State, node: Node, write: PendingWrite) -> bool:
        """The condition of a write, which ZooKeeper checks."""
        return write.version == node.epoch and write.term == state.term

    def contents(self, state: State) -> ops.Contents:
        node = state.node or Node(-1, False)
        return ops.Contents(node.epoch, node.enabled, _finalized(node.features), tuple(sorted(state.registered)))


def _finalized(features: Ranges) -> tuple[ops.Finalized, ...]:
    return tuple(ops.Finalized(name, *span) for name, span in features)
