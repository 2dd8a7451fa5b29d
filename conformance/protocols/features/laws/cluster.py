"""Laws of a cluster of KIP-584's draft, checked in every state and step of its model: they restate its invariants."""

from collections.abc import Hashable
from typing import Any, Final

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster, State
from kipcheck.conformance.protocols.features.model.ranges import unsupported
from kipcheck.conformance.protocols.features.ops import cluster


def _within(views: tuple[State]) -> str | None:
    """Each finalized range lies within the supported range of every registered broker."""
    (state,) = views
    if state.node is None:
        return None
    for broker in state.brokers:
        if broker.number in state.registered:
            for name in unsupported(state.node.features, broker.declared, whole=True):
                return f"{name} is finalized at {dict(state.node.features)[name]}; broker {broker.number} does not fit"
    return None


def _whole(index: int, state: State) -> Hashable:
    return state


WITHIN: Final[Law[State]] = Law("feature-cluster/within-brokers", _whole, _within)


def _forward(index: int, before: State, event: cluster.Event, did: Did[State, Any]) -> str | None:
    """The epoch never falls, and stays with the contents."""
    old, new = before.node, did.part.node
    if old is None:
        return None
    if new is None or new.epoch < old.epoch:
        return f"the epoch falls from {old.epoch}"
    return "the contents change under one epoch" if new.epoch == old.epoch and new != old else None


FORWARD: Final[StepLaw[State, cluster.Event, Any]] = StepLaw("feature-cluster/epoch-never-falls", _forward)


def _stops(index: int, before: State, event: cluster.Event, did: Did[State, Any]) -> str | None:
    """A broker that reads the node stays only if it supports what is finalized."""
    after = did.part
    broker = after.broker(event.broker) if isinstance(event, cluster.Watch) else None
    if broker is None or broker.before_migration or after.node is None or not after.node.enabled:
        return None
    wrong = next(unsupported(after.node.features, broker.declared), None)
    return f"broker {broker.number} does not support {wrong}, and stays" if wrong else None


STOPS: Final[StepLaw[State, cluster.Event, Any]] = StepLaw("feature-cluster/incompatible-broker-stops", _stops)


def _minimum(index: int, before: State, event: cluster.Event, did: Did[State, Any]) -> str | None:
    """One write of a request moves no minimum. With a write that was in flight, a feature may be deleted and added."""
    if before.node is None or did.part.node is None or did.part.node.epoch != before.node.epoch + 1:
        return None
    if isinstance(event, cluster.Elect | cluster.HandleRegistration):
        return None
    old, new = dict(before.node.features), dict(did.part.node.features)
    moved = [name for name in old.keys() & new.keys() if new[name].low != old[name].low]
    return f"the minimum of {moved[0]} moves" if moved else None


MINIMUM: Final[StepLaw[State, cluster.Event, Any]] = StepLaw("feature-cluster/minimum-stays", _minimum)


def _caches(views: tuple[State]) -> str | None:
    """A broker's cache has contents that the node had: not of a later epoch, and those of the node at its epoch."""
    (state,) = views
    for broker in state.brokers:
        if broker.epoch >= 0 and (state.node is None or broker.epoch > state.node.epoch):
            return f"broker {broker.number} knows epoch {broker.epoch}, which the node never had"
        if state.node is not None and broker.epoch == state.node.epoch and broker.cache != state.node.features:
            return f"broker {broker.number} knows other features than the node had at epoch {broker.epoch}"
    return None


CACHES: Final[Law[State]] = Law("feature-cluster/answers-what-it-read", _whole, _caches)


def repeats(machine: FeatureCluster) -> StepLaw[State, cluster.Event, Any]:
    """The law of repeated requests, of a machine: it is a law about two steps."""

    def again(index: int, before: State, event: cluster.Event, did: Did[State, Any]) -> str | None:
        """A request, its answer lost or not, changes nothing when it is repeated."""
        if not isinstance(event, cluster.UpdateFeatures | cluster.LoseUpdate) or (
            isinstance(event, cluster.LoseUpdate) and not event.arrives
        ):
            return None
        after = machine.step(did.part, cluster.UpdateFeatures(event.updates)).state
        return None if after.node == did.part.node else f"a repeat changes {did.part.node} to {after.node}"

    return StepLaw("feature-cluster/repeat-changes-nothing", again)


LAWS: Final = (WITHIN, FORWARD, STOPS, MINIMUM, CACHES, repeats(FeatureCluster()))
