"""Clusters of KIP-584's draft that leave out what they must do. Least cases are in shorthand."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.cluster import Broker, Node, PendingWrite, State
from kipcheck.conformance.protocols.features.model.draft_rules import (
    FEATURE_UPDATE_FAILED,
    NONE,
    FeatureUpdate,
    refusal,
)
from kipcheck.conformance.protocols.features.model.ranges import Range, Ranges, common
from kipcheck.conformance.protocols.features.mutants.cluster import ONE, Cluster, cluster_mutant
from kipcheck.conformance.protocols.features.ops import cluster as ops

PLACE = 26


@cluster_mutant("updates", "applies-legal-updates", f"{ONE}node; update-features a:0!")
class RefusesEveryUpdate(Cluster):
    """No update is ever applied."""

    def refusal(
        self, update: FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        found = super().refusal(update, finalized, supported)
        return FEATURE_UPDATE_FAILED if found == NONE else found


@cluster_mutant(
    "updates", "applies-legal-updates", "start 0 a:1-1; elect 0; update-features a:0!; node; update-features a:1"
)
class NeverAddsAgain(Cluster):
    """A feature that is not finalized stays so."""

    def refusal(
        self, update: FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        found = super().refusal(update, finalized, supported)
        return FEATURE_UPDATE_FAILED if found == NONE and finalized is None else found


@cluster_mutant("updates", "lowers-with-the-flag", f"{ONE}node; update-features a:1!")
class NeverLowers(Cluster):
    """No level is lowered, whatever the flag says."""

    def refusal(
        self, update: FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        found = super().refusal(update, finalized, supported)
        return FEATURE_UPDATE_FAILED if found == NONE and finalized and 1 <= update.level < finalized.high else found


@cluster_mutant("updates", "range-gated", "start 0 a:1-1; start 1 a:1-2; elect 0; node; update-features a:2")
class AsksTheNewestBroker(Cluster):
    """An upgrade is compared with the broker of the highest levels alone."""

    def refusal(
        self, update: FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        newest = max(supported, key=lambda each: each.get(update.feature, Range(0, 0)).high, default={})
        return refusal(update, finalized, (newest,) if supported else ())


@cluster_mutant("updates", "range-gated", "start 0 a:1-2; start 1 a:1-1; elect 0; node; update-features a:2")
class AsksTheFirstBroker(Cluster):
    """An upgrade is compared with the first broker alone."""

    def refusal(
        self, update: FeatureUpdate, finalized: Range | None, supported: tuple[Mapping[str, Range], ...]
    ) -> str:
        return refusal(update, finalized, supported[:1])


@cluster_mutant("updates", "controller-answers", "start 0; elect 0; update-features")
class NeverControls(Cluster):
    """Every broker says that it is not the controller."""

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        return Transition(state, (ops.TopLevel(ops.NOT_CONTROLLER),))


@cluster_mutant("updates", "refuses-strangers", "start 0; elect 0; update-features unauthorized")
class NeedsNoPermission(Cluster):
    """A request without permission is served."""

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        return super().update(state, updates, to, False)


@cluster_mutant("updates", "refuses-strangers", "start 0; elect 0; update-features at 1")
class ServesAnywhere(Cluster):
    """A broker that is not the controller serves a request."""

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        return super().update(state, updates, None, unauthorized)


@cluster_mutant("updates", "a-result-each", "start 0; elect 0; update-features a:0")
class ListsWhatItApplied(Cluster):
    """A refused update has no result."""

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        after, actions = super().update(state, updates, to, unauthorized)
        found = (ops.Answered(tuple(one for one in each.results if one.error == NONE)) if isinstance(each, ops.Answered)
                 else each for each in actions)  # fmt: skip
        return Transition(after, tuple(found))


@cluster_mutant("updates", "disabled-refuses", "start 0 old; elect 0; node; update-features a:0!")
class IgnoresTheStatus(Cluster):
    """A deletion succeeds while features are disabled."""

    def judged(self, state: State, requested: ops.Requested, updates: tuple[ops.Requested, ...]) -> str:
        found = super().judged(state, requested, updates)
        disabled = state.node is not None and not state.node.enabled
        return NONE if disabled and requested.level < 1 and requested.allow_downgrade else found


@cluster_mutant("updates", "controller-writes", f"{ONE}validate-features a:0!; write 0")
class LosesItsWrite(Cluster):
    """What the controller validated is never written."""

    def succeeds(self, state: State, node: Node, write: PendingWrite) -> bool:
        return False


@cluster_mutant("node", "new-cluster-finalizes", "start 0 a:1-1; elect 0; node")
class BeginsEmpty(Cluster):
    """A new cluster finalizes nothing."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        after = super().life_cycle(state, broker)
        return replace(after, features=()) if state.node is None else after


@cluster_mutant("node", "new-cluster-finalizes", "start 0 a:1-2; elect 0; node")
class BeginsAtTheLowest(Cluster):
    """A new cluster finalizes each feature at its lowest level."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        after = super().life_cycle(state, broker)
        lowest = tuple((name, Range(span.low, span.low)) for name, span in after.features)
        return replace(after, features=lowest) if state.node is None else after


@cluster_mutant("node", "enables-empty", "start 0 old; elect 0; node; start 0 a:1-1; elect 0; node")
class FinalizesWhenEnabled(Cluster):
    """A cluster that is upgraded finalizes every supported feature by itself."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        after = super().life_cycle(state, broker)
        enables = state.node is not None and not state.node.enabled and after.enabled
        return replace(after, features=common(each.declared for each in state.brokers)) if enables else after


@cluster_mutant("node", "status-follows-version", "start 0 a:1-1; elect 0; start 0 old; elect 0; node")
class KeepsDisabledFeatures(Cluster):
    """A cluster that is downgraded keeps its features in the disabled node."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        after = super().life_cycle(state, broker)
        disables = state.node is not None and state.node.enabled and not after.enabled
        return replace(after, features=state.node.features) if disables and state.node else after


@cluster_mutant("node", "election-keeps", "start 0 a:1-1; elect 0; node; elect 0; node")
class ForgetsInElections(Cluster):
    """A new controller begins with an empty node."""

    def life_cycle(self, state: State, broker: Broker) -> Node:
        after = super().life_cycle(state, broker)
        return after.changed(after.enabled, ()) if state.node is not None and after.features else after


@cluster_mutant("brokers", "compatible-broker-registers", "start 0; elect 0; start 1; handle 1; node")
class RegistersNobody(Cluster):
    """A broker that starts after the election is not registered."""

    def handled(self, state: State, number: int) -> State:
        return super().handled(state, number) if state.term == 0 or number == state.controller else state


@cluster_mutant("brokers", "unchecked-broker-stays", f"{ONE}start 1 old")
class StopsOldBrokers(Cluster):
    """A broker below the migration version is checked, too."""

    def stops(self, node: Node | None, broker: Broker) -> bool:
        return super().stops(node, replace(broker, before_migration=False, supported=broker.declared))


@cluster_mutant("brokers", "live-broker-answers", "start 0; features 0")
class AnswersNoClient(Cluster):
    """A broker does not answer ApiVersions."""

    def asked(self, state: State, number: int) -> Transition[State, ops.Action]:
        return Transition(state, (ops.TopLevel("BROKER_NOT_AVAILABLE"),))


@cluster_mutant("updates", "a-result-each", "start 0 a:1-1; elect 0; update-features")
class ListsWhatIsFinalized(Cluster):
    """A response has a result for each finalized feature, too."""

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        after, actions = super().update(state, updates, to, unauthorized)
        more = tuple(ops.Outcome(name, NONE) for name in state.finalized())
        found = (ops.Answered((*each.results, *more)) if isinstance(each, ops.Answered) else each for each in actions)
        return Transition(after, tuple(found))


@cluster_mutant("brokers", "level-decides", f"start 0 {ops.IBP}:1-1; features 0; version 0")
class DecidesByWhatItSupports(Cluster):
    """A broker decides by the highest level of ibp_feature that it supports, finalized or not."""

    def deciding(self, broker: Broker | None) -> ops.Deciding | ops.TopLevel:
        own = dict(broker.declared).get(ops.IBP) if broker is not None else None
        return super().deciding(broker) if own is None else ops.Deciding(own.high, True)


@cluster_mutant(
    "node", "minimum-follows-brokers", "start 0 a:1-2; elect 0; update-features a:0!; node; update-features a:2; node"
)
class AddsAtItsLevel(Cluster):
    """A feature that is added has the requested level as its minimum, too."""

    def applied(self, state: State, updates: Iterable[ops.Requested]) -> Ranges:
        added = {each.feature for each in updates} - state.finalized().keys()
        after = super().applied(state, updates)
        return tuple((name, Range(span.high, span.high) if name in added else span) for name, span in after)
