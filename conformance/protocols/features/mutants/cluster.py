"""Clusters of KIP-584's draft with one planted defect each. Least cases are in shorthand."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.declare.mutant import MachineMutant, mutant
from kipcheck.conformance.protocols.features.model.cluster import Broker, FeatureCluster, Node, PendingWrite, State
from kipcheck.conformance.protocols.features.model.draft_rules import NONE, FeatureUpdate
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges, ranges
from kipcheck.conformance.protocols.features.ops.cluster import OPERATIONS, Action, Features, Requested

PLACE = 20

ONE: Final = "start 0 a:1-2; elect 0; "
"""A new cluster: levels 1 to 2 of a are finalized."""


class Cluster(MachineMutant, FeatureCluster):
    """The reference machine as an adapter, with overridable decisions."""

    operations = OPERATIONS


Made = TypeVar("Made", bound=type[Cluster])


def cluster_mutant(check: str, invariant: str, least: str) -> Callable[[Made], Made]:
    return mutant(
        f"feature-cluster/{check}", f"feature-cluster/{invariant}", OPERATIONS.machine, None, least, edition="kip-584"
    )


# The node


@cluster_mutant("node", "within-brokers", f"{ONE}start 1 old; handle 1; node")
class RegistersEveryBroker(Cluster):
    """The controller registers a broker without a look at its features."""

    def handled(self, state: State, number: int) -> State:
        return super().handled(state, number) if self.admitted(state, number) else self.added(state, number)

    def admitted(self, state: State, number: int) -> bool:
        broker = state.broker(number)
        return broker is None or state.node is None or self.admits(state.node.features, broker)

    def added(self, state: State, number: int) -> State:
        return replace(state, registered=state.registered | {number})


@cluster_mutant("node", "epoch-never-falls", "start 0 a:1-1; elect 0; update-features a:0!; node; elect 0; node")
class CreatesTheNodeAgain(Cluster):
    """An election deletes the node and creates it with the same features, so that its versions begin again."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        return replace(super().life_cycle(state, broker), epoch=0)


@cluster_mutant("node", "one-content-per-epoch", f"{ONE}node; update-features a:0!; node")
class WritesWithoutEpoch(Cluster):
    """A write of features does not raise the epoch."""

    def write(self, state: State, number: int) -> Transition[State, Action]:
        after, actions = super().write(state, number)
        if after.node is None or state.node is None:
            return Transition(after, actions)
        return Transition(replace(after, node=replace(after.node, epoch=state.node.epoch)), actions)


@cluster_mutant("node", "one-content-per-epoch", "start 0 a:1-1; elect 0; node; watch 0; features 0")
class AnswersWithoutFeatures(Cluster):
    """Brokers answer with the epoch of the node, and forget its features."""

    def asked(self, state: State, number: int) -> Transition[State, Action]:
        after, actions = super().asked(state, number)
        return Transition(
            after, tuple(replace(each, finalized=()) if isinstance(each, Features) else each for each in actions)
        )


@cluster_mutant("node", "one-epoch-per-request", "start 0 a:1-1,b:1-1; elect 0; node; update-features a:0!,b:0!; node")
class CountsUpdates(Cluster):
    """The epoch counts the good updates of a request."""

    def write(self, state: State, number: int) -> Transition[State, Action]:
        write = state.pending_of(number)
        after, actions = super().write(state, number)
        more = sum(each.error == NONE for each in write.results) - 1 if write is not None else 0
        if after.node is None or after.node == state.node:
            return Transition(after, actions)
        return Transition(replace(after, node=replace(after.node, epoch=after.node.epoch + more)), actions)


@cluster_mutant("node", "status-follows-version", "start 0 old; elect 0; node")
class AlwaysEnabled(Cluster):
    """A controller below the migration version enables the features, too."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        return super().life_cycle(state, replace(broker, before_migration=False))


@cluster_mutant("node", "minimum-stays", "start 0 a:1-3; elect 0; node; update-features a:2!; node")
class MovesTheMinimum(Cluster):
    """An update sets the minimum level to the new level."""

    def applied(self, state: State, updates: Iterable[Requested]) -> Ranges:
        changed = [*updates]
        after = super().applied(state, changed)
        names = {each.feature for each in changed}
        return ranges({name: Range(span.high if name in names else span.low, span.high) for name, span in after})


# Updates


@cluster_mutant("updates", "top-level-changes-nothing", f"{ONE}node; update-features a:1! unauthorized; node")
class ChecksPermissionLast(Cluster):
    """A request without permission is applied, and then answered with an error."""

    def update(
        self, state: State, updates: tuple[Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, Action]:
        applied = super().update(state, updates, to, False)
        return Transition(applied.state, super().update(state, updates, to, unauthorized).actions)


@cluster_mutant("updates", "refused-stays", "start 0 a:1-2,b:1-2; elect 0; node; update-features a:0!,b:1; node")
class AppliesTheWholeRequest(Cluster):
    """A request with a good update is applied with the refused ones."""

    def validated(self, state: State, updates: tuple[Requested, ...]) -> Transition[State, Action]:
        after, actions = super().validated(state, updates)
        pending = tuple(
            replace(each, features=self.applied(state, updates)) if each not in state.pending else each
            for each in after.pending
        )
        return Transition(replace(after, pending=pending), actions)


@cluster_mutant("updates", "accepted-is-applied", "start 0 a:1-1,b:1-1; elect 0; node; update-features a:0!,b:0!; node")
class AppliesTheFirst(Cluster):
    """Only the first good update of a request is applied."""

    def applied(self, state: State, updates: Iterable[Requested]) -> Ranges:
        return super().applied(state, [*updates][:1])


class _Rules(Cluster):
    """Other rules for updates."""

    def other(self, update: FeatureUpdate, finalized: Range | None) -> bool:
        """Whether the update is applied whatever the rules say."""
        raise NotImplementedError

    def refusal(
        self, update: FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        return NONE if self.other(update, finalized) else super().refusal(update, finalized, supported)


@cluster_mutant("updates", "range-gated", f"{ONE}node; update-features a:3")
class ForgetsTheBrokers(_Rules):
    """An upgrade is applied whatever brokers support."""

    def other(self, update: FeatureUpdate, finalized: Range | None) -> bool:
        return finalized is not None and update.level > finalized.high and not update.allow_downgrade


@cluster_mutant("updates", "flag-gated", f"{ONE}node; update-features a:1")
class ForgetsTheFlag(_Rules):
    """A downgrade needs no flag."""

    def other(self, update: FeatureUpdate, finalized: Range | None) -> bool:
        return finalized is not None and finalized.low <= update.level < finalized.high


@cluster_mutant("updates", "flag-gated", f"{ONE}node; update-features a:0")
class DeletesWithoutTheFlag(_Rules):
    """A deletion needs no flag."""

    def other(self, update: FeatureUpdate, finalized: Range | None) -> bool:
        return finalized is not None and update.level < 1


@cluster_mutant("updates", "moves", f"{ONE}node; update-features a:2")
class AppliesTheSame(_Rules):
    """An update to the finalized level succeeds."""

    def other(self, update: FeatureUpdate, finalized: Range | None) -> bool:
        return finalized is not None and update.level == finalized.high


@cluster_mutant("updates", "moves", "start 0; elect 0; node; update-features a:0!")
class DeletesWhatIsNotThere(_Rules):
    """A deletion of a feature that is not finalized succeeds."""

    def other(self, update: FeatureUpdate, finalized: Range | None) -> bool:
        return finalized is None and update.level < 1 and update.allow_downgrade


@cluster_mutant(
    "updates", "deposed-writes-nothing",
    "start 0 a:1-2; elect 0; validate-features a:0!; start 1 a:1-2; elect 1; write 0",
)  # fmt: skip
class ChecksTheVersionAlone(Cluster):
    """A write is conditional on the version of the node, and not on the term of the controller."""

    def succeeds(self, state: State, node: Node, write: PendingWrite) -> bool:
        return write.version == node.epoch


# Brokers


@cluster_mutant("brokers", "incompatible-broker-stops", f"{ONE}node; start 1")
class StartsAnyway(Cluster):
    """A broker starts without a look at the features."""

    def stops(self, node: Node | None, broker: Broker) -> bool:
        return False


@cluster_mutant("brokers", "compatible-broker-stays", f"{ONE}node; start 1 a:1-3")
class WantsTheHighest(Cluster):
    """A broker starts only where its highest levels are finalized."""

    def stops(self, node: Node | None, broker: Broker) -> bool:
        highest = {name: span.high for name, span in broker.declared}
        behind = node is not None and any(highest.get(name, 0) > span.high for name, span in node.features)
        return super().stops(node, broker) or behind
