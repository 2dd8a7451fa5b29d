"""The controller of feature versions with ZooKeeper, as 2.7.0 to 3.9.2 have it (classes KafkaController, FeatureZNode).

No release defines a feature for brokers with ZooKeeper (584-49), so that nothing can be finalized: every update of a
level is refused, with INVALID_REQUEST (584-38). ``finalized`` begins a cluster with features that another program wrote
into the node; these can be deleted, and brokers exit because of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.core.release import Release, releases
from kipcheck.conformance.core.releases_table import span
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges
from kipcheck.conformance.protocols.features.ops.cluster import Finalized, Outcome
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UNSAFE_DOWNGRADE, UPGRADE, TypedUpdate
from kipcheck.conformance.protocols.features.ops.zookeeper import (
    Action,
    AskZkFeatures,
    DeleteNode,
    Event,
    ReadFeature,
    ReadZkNode,
    StartController,
    ZkFeatures,
    ZkNode,
    ZkResults,
    ZkStops,
    ZkTopLevel,
    ZkUpdate,
)

NONE: Final = "NONE"
INVALID_REQUEST: Final = "INVALID_REQUEST"
NOT_CONTROLLER: Final = "NOT_CONTROLLER"
BELOW_MIGRATION: Final = "2.6"
SECOND_FORM: Final = "3.3"
"""The inter-broker version from which on the node has maximum levels only."""


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


@final
@dataclass(frozen=True, slots=True)
class State:
    node: Node | None = None
    inter_broker: str = ""
    """Of the controller; empty: there is none."""
    caches: tuple[Cache, ...] = ()
    """Of live brokers, by number."""

    def cache(self, broker: int) -> Cache | None:
        return next((each for each in self.caches if each.broker == broker), None)

    def with_cache(self, broker: int, cache: Cache | None) -> "State":
        others = [each for each in self.caches if each.broker != broker]
        return replace(self, caches=tuple(sorted((*others, *([cache] if cache else [])), key=lambda each: each.broker)))


class ZooKeeperController:
    def __init__(self, release: str, finalized: Ranges = ()) -> None:
        """Errors: ValueError for a release without such a controller."""
        at = Release.parse(release)
        if at not in releases(span("feature-znode")) or at not in releases(span("zookeeper")):
            raise ValueError(f"release {release} has no feature versions in ZooKeeper; 2.7.0 to 3.9.2 have")
        self.typed = at in releases(span("feature-znode-2"))
        """Whether requests have upgrade types, and the node may have its second form."""
        self.finalized = finalized

    def initial(self) -> State:
        return State(Node(0, True, self.finalized) if self.finalized else None)

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        match event:
            case StartController(inter_broker):
                return Transition(self.started(state, inter_broker))
            case ZkUpdate():
                return self.update(state, event)
            case DeleteNode():
                return Transition(replace(state, node=None))
            case ReadFeature(broker):
                return self.read(state, broker)
            case AskZkFeatures(broker):
                cache = state.cache(broker) or Cache(broker)
                return Transition(state, (ZkFeatures(cache.epoch, _finalized(cache.features)),))
            case ReadZkNode():
                return Transition(state, (self.contents(state.node),))
            case _:
                assert_never(event)

    # The life of the node (584-19 to 584-22)

    def started(self, state: State, inter_broker: str) -> State:
        active, node = inter_broker != BELOW_MIGRATION, state.node
        form = self.form(inter_broker)
        if node is None:
            node = Node(0, active, (), form)  # enabled with all supported features, of which there are none
        elif node.enabled != active:
            node = Node(node.epoch + 1, active, (), form)
        return replace(state, node=node, inter_broker=inter_broker)

    # Updates

    def update(self, state: State, request: ZkUpdate) -> Transition[State, Action]:
        if not state.inter_broker:
            return Transition(state, (ZkTopLevel(NOT_CONTROLLER),))
        if state.inter_broker == BELOW_MIGRATION:
            return Transition(state, (ZkTopLevel(INVALID_REQUEST),))
        finalized = dict(state.node.features) if state.node is not None else {}
        updates = {each.feature: each for each in request.updates}
        errors = {name: self.error(each, request.version, finalized) for name, each in updates.items()}
        deleted = {name for name, error in errors.items() if error == NONE}
        answer = ZkResults(tuple(Outcome(name, error) for name, error in sorted(errors.items())))
        if not deleted or state.node is None:
            return Transition(state, (answer,))
        kept = tuple(each for each in state.node.features if each[0] not in deleted)
        node = replace(state.node, epoch=state.node.epoch + 1, features=kept, version=self.form(state.inter_broker))
        return Transition(replace(state, node=node), (answer,))  # validateOnly is not read

    def form(self, inter_broker: str) -> int:
        """The version of the JSON that is written."""
        return 2 if self.typed and inter_broker == SECOND_FORM else 1

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        """The update is a deletion if there is none: no controller supports a feature."""
        known = (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)
        well = update.feature and (version == 0 or update.upgrade_type in known)
        deletes = update.level < 1 and update.upgrade_type != UPGRADE
        return NONE if well and deletes and update.feature in finalized else INVALID_REQUEST

    # Brokers (classes FinalizedFeatureCache, FinalizedFeatureChangeListener)

    def read(self, state: State, broker: int) -> Transition[State, Action]:
        """A broker below the migration version reads nothing; an exit is that of its process."""
        cache, node = state.cache(broker) or Cache(broker), state.node
        if state.inter_broker == BELOW_MIGRATION or node is None or not node.enabled:
            return Transition(state.with_cache(broker, Cache(broker)))
        if node.epoch < cache.epoch or node.features:
            # A lower epoch than that of the cache (584-42), or a feature that the broker does not know (584-23).
            return Transition(state.with_cache(broker, None), (ZkStops(broker),))
        return Transition(state.with_cache(broker, Cache(broker, node.epoch, node.features)))

    def contents(self, node: Node | None) -> ZkNode:
        if node is None:
            return ZkNode(False, 0, False, -1, ())
        return ZkNode(True, node.version, node.enabled, node.epoch, _finalized(node.features))


def _finalized(features: Ranges) -> tuple[Finalized, ...]:
    return tuple(Finalized(name, *levels) for name, levels in features)
