"""The controller of feature versions with ZooKeeper, as 2.7.0 to 3.9.2 have it (classes KafkaController, FeatureZNode).

No release defines a feature for brokers with ZooKeeper (584-49), so that nothing can be finalized: every update of a
level is refused, with INVALID_REQUEST (584-38). Another program may write features into the node; brokers exit because
of them. With declared features, which no release has, updates are judged as the released classes judge them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.files.releases_table import span
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges, unsupported
from kipcheck.conformance.protocols.features.ops import zookeeper as ops
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Outcome, Supported
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, TypedUpdate

NONE: Final = "NONE"
INVALID_REQUEST: Final = "INVALID_REQUEST"
UPDATE_FAILED: Final = "FEATURE_UPDATE_FAILED"
NOT_CONTROLLER: Final = "NOT_CONTROLLER"
BELOW_MIGRATION: Final = "2.6"
SECOND_FORM: Final = "3.3"
"""The inter-broker version from which on the node has maximum levels only."""
CONTROLLER: Final = 0
"""The broker whose features are those of the controller."""


@final
@dataclass(frozen=True, slots=True)
class Node:
    epoch: int
    enabled: bool
    features: Ranges = ()
    version: int = 1


@final
@dataclass(frozen=True, slots=True)
class Cache:
    """What a broker knows."""

    broker: int
    epoch: int = -1
    features: Ranges = ()
    registered: int = 5
    """The version of its registration."""


@final
@dataclass(frozen=True, slots=True)
class State:
    node: Node | None = None
    inter_broker: str = ""
    """Of the controller; empty: there is none."""
    caches: tuple[Cache, ...] = ()
    """Of live brokers, by number."""
    declared: tuple[tuple[int, Ranges], ...] = ()
    """The features of registered brokers, by number."""
    live: tuple[int, ...] = ()
    """The declared brokers that the controller has taken in."""
    own: Ranges = ()
    """The features of the controller."""

    def cache(self, broker: int) -> Cache | None:
        return next((each for each in self.caches if each.broker == broker), None)

    def with_cache(self, broker: int, cache: Cache | None) -> "State":
        others = [each for each in self.caches if each.broker != broker]
        return replace(self, caches=tuple(sorted((*others, *([cache] if cache else [])), key=lambda each: each.broker)))

    def supported(self, broker: int) -> Ranges:
        return dict(self.declared).get(broker, ())

    @property
    def finalized(self) -> Ranges:
        """In the cache of a controller at the migration version."""
        return self.node.features if self.node is not None and self.node.enabled else ()


class ZooKeeperController:
    def __init__(self, release: str, finalized: Ranges = ()) -> None:
        """Errors: ValueError for a release without such a controller."""
        at = Release.parse(release)
        if at not in releases(span("feature-znode")) or at not in releases(span("zookeeper")):
            raise ValueError(f"release {release} has no feature versions in ZooKeeper; 2.7.0 to 3.9.2 have")
        self.typed = at in releases(span("feature-znode-2"))
        """Whether requests have upgrade types, features have one finalized level, and the node has a second form."""
        self.finalized = finalized

    def initial(self) -> State:
        return State(Node(0, True, self.finalized) if self.finalized else None)

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        match event:
            case ops.StartController(inter_broker):
                return self.start(state, inter_broker)
            case ops.ZkUpdate():
                return self.update(state, event)
            case ops.DeleteNode():
                return Transition(replace(state, node=None))
            case ops.ReadFeature(broker):
                return self.read(state, broker)
            case ops.AskZkFeatures(broker):
                cache = state.cache(broker) or Cache(broker)
                return Transition(state, (ops.ZkFeatures(cache.epoch, _finalized(self.levels(cache.features))),))
            case ops.ReadZkNode():
                return Transition(state, (self.contents(state.node),))
            case ops.WriteNode():
                return self.written(state, event)
            case ops.DeclareFeatures(broker, supported):
                return Transition(self.declare(state, broker, _ranges(supported)))
            case ops.ReadRegistration(broker):
                return Transition(state, (self.registration(state, broker),))
            case _:
                assert_never(event)

    # The life of the node (584-19 to 584-22)

    def start(self, state: State, inter_broker: str) -> Transition[State, ops.Action]:
        """Its broker reads the node first, and stops if it does not support what is finalized (584-23)."""
        state = replace(state, own=state.supported(CONTROLLER), live=(), inter_broker="")
        if inter_broker != BELOW_MIGRATION and self.is_incompatible(state.own, state.finalized):
            return Transition(state, (ops.ZkStops(CONTROLLER),))
        return Transition(self.taken_in(self.started(state, inter_broker)))

    def started(self, state: State, inter_broker: str) -> State:
        active, node = inter_broker != BELOW_MIGRATION, state.node
        form = self.form(inter_broker)
        if node is None:  # enabled with all supported features, or disabled without any
            node = Node(0, active, self.levels(state.own) if active else (), form)
        else:
            kept = node.features if active and node.enabled else ()
            wanted = replace(node, enabled=active, features=self.levels(kept), version=form)
            if not self.is_same(wanted, node):
                node = replace(wanted, epoch=node.epoch + 1)
        return replace(state, node=node, inter_broker=inter_broker)

    def is_same(self, one: Node, other: Node) -> bool:
        """Up to 3.2 a release compares both levels, and knows one version."""
        if not self.typed:
            return (one.enabled, one.features) == (other.enabled, other.features)
        return (one.enabled, one.version, self.levels(one.features)) == (
            other.enabled, other.version, self.levels(other.features),
        )  # fmt: skip

    def levels(self, features: Ranges) -> Ranges:
        """As this release has them in memory."""
        return tuple((name, Range(high, high)) for name, (_, high) in features) if self.typed else features

    def is_incompatible(self, supported: Ranges, finalized: Ranges) -> bool:
        return next(unsupported(finalized, supported, whole=not self.typed), None) is not None

    def written(self, state: State, event: ops.WriteNode) -> Transition[State, ops.Action]:
        node = Node(0 if state.node is None else state.node.epoch + 1, not event.disabled, _ranges(event.features))
        state = replace(state, node=node)
        if state.inter_broker not in ("", BELOW_MIGRATION) and self.is_incompatible(state.own, state.finalized):
            return Transition(replace(state, inter_broker="", live=()), (ops.ZkStops(CONTROLLER),))
        return Transition(state)

    # Registrations

    def declare(self, state: State, broker: int, supported: Ranges) -> State:
        declared = {**dict(state.declared), broker: supported}
        live = tuple(each for each in state.live if each != broker)
        return self.taken_in(replace(state, declared=tuple(sorted(declared.items())), live=live))

    def taken_in(self, state: State) -> State:
        """A controller skips brokers that do not support what is finalized, and looks again at the next change."""
        if not state.inter_broker:
            return state
        known = state.finalized if state.inter_broker != BELOW_MIGRATION else ()
        fits = [
            number for number, supported in state.declared
            if number in state.live or not self.is_incompatible(supported, known)
        ]  # fmt: skip
        return replace(state, live=tuple(fits))

    def registration(self, state: State, broker: int) -> ops.ZkRegistration:
        """In version 5, with the features, from the migration version on. A broker that is not live has none."""
        declared, cache = dict(state.declared), state.cache(broker)
        if broker in declared:
            return ops.ZkRegistration(True, 5, tuple(Supported(name, *span) for name, span in declared[broker]))
        return ops.ZkRegistration(False, 0, ()) if cache is None else ops.ZkRegistration(True, cache.registered, ())

    # Updates

    def update(self, state: State, request: ops.ZkUpdate) -> Transition[State, ops.Action]:
        if not state.inter_broker:
            return Transition(state, (ops.ZkTopLevel(NOT_CONTROLLER),))
        if state.inter_broker == BELOW_MIGRATION:
            return Transition(state, (ops.ZkTopLevel(INVALID_REQUEST),))
        before = dict(self.levels(state.finalized))
        after, errors = dict(before), dict[str, str]()
        for each in request.updates:
            error = self.error(each, request.version, before)
            errors[each.feature] = error or self.unsupported_level(state, each)
            if errors[each.feature] == NONE:
                after.pop(each.feature, None)
                if each.level >= 1:
                    after[each.feature] = self.finalized_range(state, each)
        if after != before:
            if state.node is None:  # there is nothing that could be written
                errors = {name: UPDATE_FAILED if error == NONE else error for name, error in errors.items()}
            else:
                form = self.form(state.inter_broker)
                state = replace(state, node=Node(state.node.epoch + 1, True, tuple(sorted(after.items())), form))
        answer = ops.ZkResults(tuple(Outcome(name, error) for name, error in sorted(errors.items())))
        return Transition(state, (answer,))  # validateOnly is not read

    def form(self, inter_broker: str) -> int:
        """The version of the JSON that is written."""
        return 2 if self.typed and inter_broker == SECOND_FORM else 1

    def kind(self, update: TypedUpdate, version: int) -> int:
        """Version 0 has a flag, which stands for a safe downgrade; 0: the type is unknown."""
        known = (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
        if version == 0:
            return SAFE_DOWNGRADE if update.upgrade_type in known[1:] else UPGRADE
        return update.upgrade_type if update.upgrade_type in known else 0

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        """INVALID_REQUEST for what is refused whatever the brokers support; NONE for a deletion; empty: it depends."""
        kind, current = self.kind(update, version), finalized.get(update.feature)
        if not update.feature or not kind:
            return INVALID_REQUEST
        if update.level < 1:
            return NONE if kind != UPGRADE and current is not None else INVALID_REQUEST
        if current is None:
            return ""
        falls, rises = update.level < current.high, update.level > current.high
        legal = (rises and kind == UPGRADE) or (falls and kind == SAFE_DOWNGRADE)
        above = self.typed or update.level >= current.low
        return "" if legal and above else INVALID_REQUEST

    def unsupported_level(self, state: State, update: TypedUpdate) -> str:
        own = dict(state.own).get(update.feature)
        if own is None or not (own.holds(update.level) if self.typed else own.low <= update.level):
            return INVALID_REQUEST
        wanted = ((update.feature, self.finalized_range(state, update)),)
        refusing = [each for each in state.live if self.is_incompatible(state.supported(each), wanted)]
        return INVALID_REQUEST if refusing else NONE

    def finalized_range(self, state: State, update: TypedUpdate) -> Range:
        low = update.level if self.typed else dict(state.own)[update.feature].low
        return Range(low, update.level)

    # Brokers (classes FinalizedFeatureCache, FinalizedFeatureChangeListener)

    def read(self, state: State, broker: int) -> Transition[State, ops.Action]:
        """A broker below the migration version reads nothing; an exit is that of its process."""
        cache, node = state.cache(broker) or Cache(broker), state.node
        if state.inter_broker == BELOW_MIGRATION or node is None or not node.enabled:
            below = state.inter_broker == BELOW_MIGRATION
            return Transition(state.with_cache(broker, Cache(broker, registered=4 if below else 5)))
        if node.epoch < cache.epoch or self.is_incompatible(state.supported(broker), node.features):
            # A lower epoch than that of the cache (584-42), or a feature that the broker does not support (584-23).
            return Transition(state.with_cache(broker, None), (ops.ZkStops(broker),))
        return Transition(state.with_cache(broker, Cache(broker, node.epoch, node.features)))

    def contents(self, node: Node | None) -> ops.ZkNode:
        """The second form has no lowest levels: both are the highest."""
        if node is None:
            return ops.ZkNode(False, 0, False, -1, ())
        return ops.ZkNode(True, node.version, node.enabled, node.epoch, _finalized(node.features))


def _finalized(features: Ranges) -> tuple[Finalized, ...]:
    return tuple(Finalized(name, *levels) for name, levels in features)


def _ranges(supported: tuple[Supported, ...]) -> Ranges:
    found = {each.feature: Range(each.low, each.high) for each in supported}
    return tuple(sorted(found.items()))
