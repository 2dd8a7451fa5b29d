"""Controllers with ZooKeeper, as released, with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from kipcheck.conformance.core.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.features.invariants.zookeeper import LIFE
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.model.zookeeper import NONE, Cache, State, ZooKeeperController
from kipcheck.conformance.protocols.features.ops.kraft import TypedUpdate
from kipcheck.conformance.protocols.features.ops.zookeeper import OPERATIONS, Action, ZkUpdate

PLACE = 40
RELEASE: Final = "3.9.2"


class Controller(MachineMutant, ZooKeeperController):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS

    def __init__(self) -> None:
        ZooKeeperController.__init__(self, RELEASE)
        MachineMutant.__init__(self)


Made = TypeVar("Made", bound=type[Controller])


def zookeeper_mutant(invariant: str, least: str) -> Callable[[Made], Made]:
    edition = f"apache@{RELEASE}"
    return mutant(LIFE, f"zookeeper-features/{invariant}", OPERATIONS.machine, None, least, edition=edition)


@zookeeper_mutant("errors", "controller at 2.7; zk-update v0 a:1")
class NamesTheConflict(Controller):
    """An update is refused with the draft's error for what a broker forbids."""

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        found = super().error(update, version, finalized)
        return found if found == NONE or not update.feature else "FEATURE_UPDATE_FAILED"


@zookeeper_mutant("errors", "controller at 2.6; zk-update v0")
class UpdatesBelowTheMigration(Controller):
    """A controller below the migration version judges updates, too."""

    def update(self, state: State, request: ZkUpdate) -> Transition[State, Action]:
        return super().update(replace(state, inter_broker="2.7") if state.inter_broker else state, request)


@zookeeper_mutant("nothing-is-finalized", "controller at 2.7; zk-update v0 a:1")
class AcceptsAnyFeature(Controller):
    """A level of a feature that no broker knows is accepted."""

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        return NONE if update.level >= 1 and update.feature else super().error(update, version, finalized)


@zookeeper_mutant("status-follows-version", "controller at 2.6; zk-node")
class EnablesAlways(Controller):
    """A controller below the migration version creates the node enabled, too."""

    def started(self, state: State, inter_broker: str) -> State:
        after = super().started(state, inter_broker)
        return replace(after, node=replace(after.node, enabled=True)) if after.node else after


@zookeeper_mutant("epoch-counts-writes", "controller at 2.7; zk-node; controller at 2.7; zk-node")
class WritesAtEveryStart(Controller):
    """A controller writes the node when it starts, although nothing changes."""

    def started(self, state: State, inter_broker: str) -> State:
        after = super().started(state, inter_broker)
        if after.node is None or after.node != state.node:
            return after
        return replace(after, node=replace(after.node, epoch=after.node.epoch + 1))


@zookeeper_mutant(
    "lower-epoch-stops",
    "controller at 2.6; controller at 2.7; read 0; zk-features 0; delete node; controller at 2.7; zk-node; read 0",
)
class GoesBack(Controller):
    """A broker takes a node with a lower epoch than that of its cache."""

    def read(self, state: State, broker: int) -> Transition[State, Action]:
        return super().read(state.with_cache(broker, Cache(broker)), broker)


@zookeeper_mutant("cache-is-cleared", "controller at 2.7; read 0; delete node; read 0; zk-features 0")
class KeepsTheCache(Controller):
    """A broker keeps its cache when the node is gone."""

    def read(self, state: State, broker: int) -> Transition[State, Action]:
        kept = state.cache(broker)
        if state.node is None and kept is not None and state.inter_broker != "2.6":
            return Transition(state)
        return super().read(state, broker)
