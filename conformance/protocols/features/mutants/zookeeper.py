"""Controllers with ZooKeeper, as released, with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from kipcheck.conformance.core.files.releases_table import named
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.features.invariants.zookeeper import LIFE
from kipcheck.conformance.protocols.features.invariants.zookeeper_updates import UPDATES
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges
from kipcheck.conformance.protocols.features.model.zookeeper import NONE, Cache, State, ZooKeeperController
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UPGRADE, TypedUpdate
from kipcheck.conformance.protocols.features.ops.zookeeper import OPERATIONS, Action, ZkRegistration, ZkStops, ZkUpdate

PLACE = 40
RELEASE: Final = named("last-before-4")


class Controller(MachineMutant, ZooKeeperController):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS

    def __init__(self) -> None:
        ZooKeeperController.__init__(self, RELEASE)
        MachineMutant.__init__(self)


Made = TypeVar("Made", bound=type[Controller])


def zookeeper_mutant(invariant: str, least: str, check: str = LIFE) -> Callable[[Made], Made]:
    edition = f"apache@{RELEASE}"
    return mutant(check, f"zookeeper-features/{invariant}", OPERATIONS.machine, None, least, edition=edition)


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

    def unsupported_level(self, state: State, update: TypedUpdate) -> str:
        return NONE


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


@zookeeper_mutant("disabled-is-empty", "write node a:1-1; controller at 2.6; zk-node")
class KeepsFeaturesWhenDisabled(Controller):
    """A controller below the migration version disables the node, and leaves its features."""

    def started(self, state: State, inter_broker: str) -> State:
        after = super().started(state, inter_broker)
        if inter_broker != "2.6" or after.node is None or state.node is None:
            return after
        return replace(after, node=replace(after.node, features=state.node.features))


@zookeeper_mutant("incompatible-broker-stops", "controller at 2.7; write node a:1-1")
class StaysIncompatible(Controller):
    """A broker stays that does not support what is finalized."""

    def is_incompatible(self, supported: Ranges, finalized: Ranges) -> bool:
        return False


@zookeeper_mutant("incompatible-broker-stops", "declare 0 a:1-1; write node a:1-1; controller at 2.7", UPDATES)
class StopsForAnyFeature(Controller):
    """A broker stops if any feature is finalized."""

    def start(self, state: State, inter_broker: str) -> Transition[State, Action]:
        found = super().start(state, inter_broker)
        stops = state.finalized and inter_broker != "2.6"
        return Transition(replace(state, inter_broker=""), (ZkStops(0),)) if stops else found


@zookeeper_mutant("registration-follows-version", "controller at 2.6; read 0; zk-registration 0")
class RegistersWithFeaturesAlways(Controller):
    """A broker below the migration version registers in version 5, too."""

    def registration(self, state: State, broker: int) -> ZkRegistration:
        found = super().registration(state, broker)
        return replace(found, version=5) if found.exists else found


@zookeeper_mutant("shows-the-node", "declare 0 a:1-1; controller at 2.7; zk-node; read 0; zk-features 0", UPDATES)
class ShowsNoFeatures(Controller):
    """A broker knows the epoch of the node, and no feature."""

    def read(self, state: State, broker: int) -> Transition[State, Action]:
        after, actions = super().read(state, broker)
        cache = after.cache(broker)
        return Transition(after.with_cache(broker, cache and replace(cache, features=())), actions)


@zookeeper_mutant("new-node-has-all", "declare 0 a:1-1; controller at 2.7; zk-node", UPDATES)
class CreatesAnEmptyNode(Controller):
    """A controller creates the node without features."""

    def started(self, state: State, inter_broker: str) -> State:
        return super().started(replace(state, own=()) if state.node is None else state, inter_broker)


@zookeeper_mutant("applies-legal-updates", "declare 0 a:1-1; controller at 2.7; zk-node; zk-update v0 a:0!", UPDATES)
class RefusesEachUpdate(Controller):
    """Every update is refused."""

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        return "INVALID_REQUEST"


@zookeeper_mutant("applies-legal-updates", "declare 0 a:1-1; controller at 2.7; zk-node; zk-update v0 a:0!", UPDATES)
class GuardsDeletions(Controller):
    """A feature that a live broker supports is not deleted."""

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        return "INVALID_REQUEST" if update.level < 1 else super().error(update, version, finalized)


@zookeeper_mutant("refuses-illegal-updates", "declare 0 a:1-1; controller at 2.7; zk-node; zk-update v0 a:1", UPDATES)
class AcceptsTheSameLevel(Controller):
    """An update to the finalized level is accepted."""

    def error(self, update: TypedUpdate, version: int, finalized: Mapping[str, Range]) -> str:
        current = finalized.get(update.feature)
        same = current is not None and current.high == update.level
        return "" if same else super().error(update, version, finalized)


@zookeeper_mutant(
    "refuses-illegal-updates", "declare 0 a:1-1; controller at 2.7; write node; declare 1; zk-update v0 a:1", UPDATES
)
class AsksItselfOnly(Controller):
    """Only the features of the controller limit a level."""

    def taken_in(self, state: State) -> State:
        return replace(super().taken_in(state), live=())


@zookeeper_mutant("refuses-illegal-updates", "declare 0 a:1-2; controller at 2.7; zk-node; zk-update v0 a:1", UPDATES)
class NeedsNoFlag(Controller):
    """A level falls without the flag."""

    def kind(self, update: TypedUpdate, version: int) -> int:
        found = super().kind(update, version)
        return SAFE_DOWNGRADE if found == UPGRADE else found


@zookeeper_mutant(
    "results-are-applied", "declare 0 a:1-1; controller at 2.7; zk-node; zk-update v0 a:0!; zk-node", UPDATES
)
class AnswersWithoutWriting(Controller):
    """A successful update is answered, and not written."""

    def update(self, state: State, request: ZkUpdate) -> Transition[State, Action]:
        return Transition(state, super().update(state, request).actions)


@zookeeper_mutant(
    "results-are-applied", "declare 0 a:1-1,b:1-1; controller at 2.7; zk-node; zk-update v0 a:0!,b:0!; zk-node", UPDATES
)
class WritesTheFirstOnly(Controller):
    """Of the successful updates of a request the first is written."""

    def update(self, state: State, request: ZkUpdate) -> Transition[State, Action]:
        found, first = (
            super().update(state, request),
            super().update(state, replace(request, updates=request.updates[:1])),
        )
        return Transition(first.state, found.actions)
