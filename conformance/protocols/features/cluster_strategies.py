"""KIP-584 in full: brokers of neighbouring releases, elections, requests for several features, and readings between."""

from random import Random
from typing import Final

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster, State
from kipcheck.conformance.protocols.features.ops.cluster import (
    OPERATIONS,
    AskFeatures,
    Elect,
    Event,
    HandleRegistration,
    ReadNode,
    Requested,
    StartBroker,
    StopBroker,
    Supported,
    UpdateFeatures,
    ValidateFeatures,
    Watch,
    Write,
)
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

NAMES: Final = ("a", "b")
BROKERS: Final = (0, 1)
SPANS: Final = ((1, 2), (1, 3), (1, 1), (2, 3))


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    return OPERATIONS.step_of(_event(state, swarm, random))


def _event(state: State, swarm: Swarm, random: Random) -> Event:
    """What moves a cluster on; a reading of the node is likely, because without it little is known."""
    live = [each.number for each in state.brokers]
    if not live or (len(live) < len(BROKERS) and random.random() < 0.3):
        return _start(random, swarm)
    if state.controller is None and random.random() < 0.7:
        return Elect(random.choice(live))
    waiting = [each.broker for each in state.pending]
    if waiting and random.random() < 0.6:
        others = [number for number in live if number not in waiting]
        deposes = state.controller in waiting and others and random.random() < 0.6
        return Elect(random.choice(others)) if deposes else Write(random.choice(waiting))
    unhandled = [number for number in live if number not in state.registered]
    if unhandled and state.controller is not None and random.random() < 0.4:
        return HandleRegistration(random.choice(unhandled))
    chance = random.random()
    if chance < 0.4:
        return ReadNode()
    if chance < 0.7:
        elsewhere = random.choice(BROKERS) if random.random() < 0.1 else None
        return UpdateFeatures(_updates(state, random), elsewhere, random.random() < 0.1)
    if chance < 0.8 and "validate-features" in swarm.verbs:
        return ValidateFeatures(_updates(state, random))
    number = random.choice(live)
    rare: dict[str, Event] = {
        "broker-watch": Watch(number),
        "broker-features": AskFeatures(number),
        "elect-controller": Elect(number),
        "start-broker": _start(random, swarm),
        "stop-broker": StopBroker(number),
    }
    return rare[random.choice([verb for verb in rare if verb in swarm.verbs])]  # progress includes two of them


def _start(random: Random, swarm: Swarm) -> StartBroker:
    names = NAMES if random.random() < 0.8 else (random.choice(NAMES),)
    supported = tuple(Supported(name, *random.choice(SPANS)) for name in names)
    return StartBroker(random.choice(BROKERS), supported, before_migration=random.random() < 0.1)


def _updates(state: State, random: Random) -> tuple[Requested, ...]:
    finalized = state.finalized()
    names = random.sample(NAMES, random.choice((1, 1, 2)))
    found = []
    for name in names:
        level = random.choice((0, 1, 2, 3))
        before = finalized[name].high if name in finalized else 0
        falls = level < before
        found.append(Requested(name, level, falls if random.random() < 0.8 else not falls))
    return tuple(found)


def drawn() -> dict[str, Node]:
    """Fields whose values are records."""
    names = Pick((*NAMES, "c", ""))
    one = OneOf(tuple(record(feature=Pick(NAMES), low=Pick((low,)), high=Pick((high,))) for low, high in SPANS))
    return {
        "supported": Seq(one, 0, 2),
        "updates": Seq(record(feature=names, level=Integer(-1, 4), allow_downgrade=Flag()), 0, 2),
        "to": Pick((None, 0, 1)),
    }


FEATURE_CLUSTERS: Conversations[State, Event] = Conversations(
    FeatureCluster(),
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(
        ReadNode, UpdateFeatures, StartBroker, Elect, HandleRegistration, Watch, AskFeatures, ValidateFeatures, Write,
        StopBroker, drawn=drawn(),
    ),
    progress=frozenset({"features-node", "update-features", "start-broker", "elect-controller"}),
    max_steps=24,
    usual_steps=8,
    likely=likely,
    enabled_shares=(0.98, 0.9),
    near_shares=(0.0, 0.1),
)  # fmt: skip
