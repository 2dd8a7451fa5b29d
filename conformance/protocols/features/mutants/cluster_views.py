"""Clusters of KIP-584's draft with one defect each, in what brokers answer and decide. Least cases are in shorthand."""

from dataclasses import replace
from typing import Final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.features.model.cluster import Broker, State
from kipcheck.conformance.protocols.features.model.draft_rules import FEATURE_UPDATE_FAILED
from kipcheck.conformance.protocols.features.model.ranges import common
from kipcheck.conformance.protocols.features.mutants.cluster import Cluster, cluster_mutant
from kipcheck.conformance.protocols.features.ops import cluster as ops

PLACE = 25
PHASE: Final = f"start 0 {ops.IBP}:1-2; elect 0; "
"""A new cluster that finalizes the feature in place of the inter-broker version."""


@cluster_mutant(
    "node", "answers-what-it-read", "start 0 a:1-1; elect 0; node; watch 0; update-features a:0!; features 0"
)
class AnswersWithTheNodesEpoch(Cluster):
    """A broker answers with the features of its cache, and with the epoch of the node."""

    def asked(self, state: State, number: int) -> Transition[State, ops.Action]:
        after, actions = super().asked(state, number)
        (answer,) = actions
        if not isinstance(answer, ops.Features) or answer.epoch < 0 or state.node is None:
            return Transition(after, actions)
        return Transition(after, (ops.Features(state.node.epoch, answer.finalized, answer.supported),))


@cluster_mutant("node", "own-supported", "start 0 a:1-2; start 1 a:1-1; features 0")
class AnswersWithTheCommon(Cluster):
    """A broker answers with the levels that all brokers support."""

    def asked(self, state: State, number: int) -> Transition[State, ops.Action]:
        after, actions = super().asked(state, number)
        shared = tuple(ops.Supported(name, *span) for name, span in common(each.declared for each in state.brokers))
        answers = (ops.Features(each.epoch, each.finalized, shared) if isinstance(each, ops.Features) else each
                   for each in actions)  # fmt: skip
        return Transition(after, tuple(answers))


@cluster_mutant("brokers", "level-decides", f"{PHASE}watch 0; features 0; version 0")
class PrefersTheSetting(Cluster):
    """A broker decides by its static setting although ibp_feature is finalized."""

    def deciding(self, broker: Broker | None) -> ops.Deciding | ops.TopLevel:
        found = super().deciding(broker)
        if broker is None or not isinstance(found, ops.Deciding) or not found.dynamic:
            return found
        return ops.Deciding(broker.static, False)


@cluster_mutant("brokers", "one-roll", f"{PHASE}node; watch 0; version 0")
class StaysBelowTheSetting(Cluster):
    """A broker does not go above its static setting, so that each upgrade needs a second roll."""

    def deciding(self, broker: Broker | None) -> ops.Deciding | ops.TopLevel:
        found = super().deciding(broker)
        if broker is None or not isinstance(found, ops.Deciding) or not found.dynamic:
            return found
        return ops.Deciding(min(found.level, broker.static), True)


@cluster_mutant("node", "minimum-follows-brokers", "start 0 a:1-2; elect 0; node; start 0 a:2-2; elect 0; node")
class NeverRaisesTheMinimum(Cluster):
    """The controller registers a broker that dropped old levels, and leaves them finalized."""

    def raised(self, state: State) -> State:
        return state


@cluster_mutant("node", "outlives-restarts", "start 0 a:1-1; elect 0; node; stop 0; node")
class ForgetsWithTheController(Cluster):
    """What is finalized is lost when the broker of the controller stops."""

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        forgets = isinstance(event, ops.StopBroker) and event.broker == state.controller and state.node is not None
        after, actions = super().step(state, event)
        if not forgets or state.node is None:
            return Transition(after, actions)
        return Transition(replace(after, node=state.node.changed(True, ())), actions)


@cluster_mutant("updates", "top-level-errors", "start 0; elect 0; update-features a:1")
class FailsTheWholeRequest(Cluster):
    """A feature that a broker lacks fails the request, and not its own update alone."""

    def validated(self, state: State, updates: tuple[ops.Requested, ...]) -> Transition[State, ops.Action]:
        supported = state.supported()
        lacking = any(each.level >= 1 and each.feature not in own for each in updates for own in supported)
        if lacking and state.node is not None and state.node.enabled:
            return Transition(state, (ops.TopLevel(FEATURE_UPDATE_FAILED),))
        return super().validated(state, updates)


@cluster_mutant("updates", "repeat-changes-nothing",
                "start 0; elect 0; update-features; node; update-features; node")  # fmt: skip
class WritesWithoutAGoodUpdate(Cluster):
    """A request without a good update is written, too, and raises the epoch."""

    def update(
        self, state: State, updates: tuple[ops.Requested, ...], to: int | None, unauthorized: bool
    ) -> Transition[State, ops.Action]:
        after, actions = super().update(state, updates, to, unauthorized)
        if after.node is None or after.node != state.node or isinstance(actions[0], ops.TopLevel):
            return Transition(after, actions)
        node = after.node.changed(after.node.enabled, after.node.features)
        return Transition(replace(after, node=node), actions)
