"""KIP-584 in full: brokers of neighbouring releases, elections, requests for several features, and readings between."""

from random import Random
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster, State
from kipcheck.conformance.protocols.features.model.ranges import Range, common
from kipcheck.conformance.protocols.features.ops import cluster as ops
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

NAMES: Final = ("a", "b")
BROKERS: Final = (0, 1)
SPANS: Final = ((1, 2), (1, 3), (1, 1), (2, 3))
SETTINGS: Final = (1, 2, 3)
"""Static inter-broker versions."""
VIEWS: Final = ("broker-watch", "broker-features", "inter-broker-version")
Request: TypeAlias = tuple[ops.Requested, ...]


def favourite(random: Random) -> Request:
    """A request that the conversations of a swarm repeat."""
    return _updates(FeatureCluster().initial(), random)


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    return ops.OPERATIONS.step_of(_event(state, swarm, random))


def _event(state: State, swarm: Swarm, random: Random) -> ops.Event:
    """What moves a cluster on; a reading of the node is likely, because without it little is known."""
    live = [each.number for each in state.brokers]
    if not live or (len(live) < len(BROKERS) and random.random() < 0.3):
        return _start(random, swarm)
    if state.controller is None and random.random() < 0.7:
        return ops.Elect(random.choice(live))
    waiting = [each.broker for each in state.pending]
    if waiting and random.random() < 0.6:
        others = [number for number in live if number not in waiting]
        deposes = state.controller in waiting and others and random.random() < 0.6
        return ops.Elect(random.choice(others)) if deposes else ops.Write(random.choice(waiting))
    unhandled = [number for number in live if number not in state.registered]
    if unhandled and state.controller is not None and random.random() < 0.4:
        return ops.HandleRegistration(random.choice(unhandled))
    chance = random.random()
    if chance < 0.4:
        return ops.ReadNode()
    if chance < 0.66:
        return _request(state, swarm, random)
    if chance < 0.74 and "validate-features" in swarm.verbs:
        return ops.ValidateFeatures(_updates(state, random))
    return _rare(state, swarm, random)


def _rare(state: State, swarm: Swarm, random: Random) -> ops.Event:
    """Mostly a broker reads the node, answers, or decides."""
    broker = random.choice(state.brokers)
    number = broker.number
    if "inter-broker-version" in swarm.verbs and random.random() < 0.5:
        # A level that is finalized decides once the broker has read it, and is known once it has answered.
        known = any(name == ops.IBP for name, _ in broker.cache)
        return (
            random.choice((ops.AskFeatures(number), ops.AskVersion(number), ops.AskVersion(number)))
            if known
            else ops.Watch(number)
        )
    if random.random() < 0.15 and state.controller is not None:
        return ops.StopBroker(state.controller)
    found: dict[str, ops.Event] = {
        "broker-watch": ops.Watch(number),
        "broker-features": ops.AskFeatures(number),
        "inter-broker-version": ops.AskVersion(number),
        "elect-controller": ops.Elect(number),
        "start-broker": _start(random, swarm),
        "stop-broker": ops.StopBroker(number),
    }
    verbs = [verb for verb in found if verb in swarm.verbs]  # progress includes two of them
    return found[random.choices(verbs, [3 if verb in VIEWS else 1 for verb in verbs])[0]]


def _start(random: Random, swarm: Swarm) -> ops.StartBroker:
    names = NAMES if random.random() < 0.8 else (random.choice(NAMES),)
    supported = tuple(ops.Supported(name, *random.choice(SPANS)) for name in names)
    if "inter-broker-version" in swarm.verbs and random.random() < 0.7:
        supported = (*supported, ops.Supported(ops.IBP, *random.choice(SPANS)))
    number, old = random.choice(BROKERS), random.random() < 0.1
    return ops.StartBroker(number, supported, old, random.choice(SETTINGS))


def _request(state: State, swarm: Swarm, random: Random) -> ops.Event:
    """Now and then a repeated one, one whose answer is lost, one to another broker, or without permission."""
    updates: Request = swarm.traits if random.random() < 0.35 else _updates(state, random)
    if "lose-update" in swarm.verbs and random.random() < 0.3:
        return ops.LoseUpdate(updates, random.random() < 0.6)
    elsewhere = random.choice(BROKERS) if random.random() < 0.1 else None
    return ops.UpdateFeatures(updates, elsewhere, random.random() < 0.15)


def _updates(state: State, random: Random) -> Request:
    finalized = state.finalized()
    names = random.sample(NAMES, random.choice((1, 2, 2)))
    if random.random() < 0.1:  # two deletions that a controller accepts show how it counts
        names = list(finalized) or names
        return tuple(ops.Requested(name, 0, True) for name in names)
    found = []
    for name in names:
        before = finalized[name].high if name in finalized else 0
        shared = dict(common(each.declared for each in state.brokers)).get(name, Range(0, 3))
        good = [level for level in range(shared.low, shared.high + 1) if level != before]
        level = random.choice(good if good and random.random() < 0.65 else (0, 1, 2, 3))
        falls = level < before
        found.append(ops.Requested(name, level, falls if random.random() < 0.8 else not falls))
    return tuple(found)


def drawn() -> dict[str, Node]:
    """Fields whose values are records."""
    names = Pick((*NAMES, "c", "", ops.IBP))
    one = OneOf(
        tuple(record(feature=Pick((*NAMES, ops.IBP)), low=Pick((low,)), high=Pick((high,))) for low, high in SPANS)
    )
    return {
        "supported": Seq(one, 0, len((*NAMES, ops.IBP))),
        "updates": Seq(record(feature=names, level=Integer(-1, 4), allow_downgrade=Flag()), 0, 2),
        "to": Pick((None, 0, 1)),
    }


FEATURE_CLUSTERS: Conversations[State, ops.Event] = Conversations(
    FeatureCluster(),
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=nodes(
        ops.ReadNode, ops.UpdateFeatures, ops.StartBroker, ops.Elect, ops.HandleRegistration, ops.Watch,
        ops.AskFeatures, ops.ValidateFeatures, ops.Write, ops.StopBroker, ops.LoseUpdate, ops.AskVersion, drawn=drawn(),
    ),
    progress=frozenset({"features-node", "update-features", "start-broker", "elect-controller"}),
    max_steps=28,
    usual_steps=14,
    likely=likely,
    traits=favourite,
    enabled_shares=(0.98, 0.9),
    near_shares=(0.0, 0.1),
)  # fmt: skip
