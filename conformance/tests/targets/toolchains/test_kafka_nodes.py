"""Clusters whose nodes have different releases: what controllers answer, and which nodes stay."""

import asyncio
from time import monotonic, sleep

import pytest

from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.protocols.features.model.kraft import NONE, KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.ops.kraft import (
    UPGRADE,
    Declared,
    DeclareNode,
    Failed,
    Format,
    KraftUpdate,
    Results,
    TypedUpdate,
)
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_nodes import BOTH, BROKER, CONTROLLER, cluster

METADATA = "metadata.version"
LATEST_S = 120.0


def updated(port: int, feature: str, level: int) -> tuple[str, int]:
    """The error of an upgrade, and the level of the feature after it."""

    async def ask() -> tuple[str, int]:
        connections = Connections(kafka_broker.HOST, port)
        try:
            versions = await versions_of(connections)
            version = versions[requests.UPDATE_FEATURES][1]
            found = await requests.update(connections, version, [TypedUpdate(feature, level, UPGRADE)], False)
            picture = await requests.settled(connections, versions)
            errors = [found.error, *(each.error for each in found.results)]
            return next((each for each in errors if each != NONE), NONE), picture.finalized.get(feature, (0, 0))[1]
        finally:
            await connections.close()

    return asyncio.run(ask())


def modelled(machine: KraftController, state: State, feature: str, level: int) -> str:
    _, (answer,) = machine.step(state, KraftUpdate(1, (TypedUpdate(feature, level, UPGRADE),)))
    if isinstance(answer, Failed):
        return answer.error
    assert isinstance(answer, Results)
    return next((each.error for each in answer.results), NONE)


def state_of(machine: KraftController, level: int, brokers: dict[int, str], controllers: tuple[int, ...] = ()) -> State:
    """A cluster with brokers of these releases; ``controllers`` are others of the quorum, which do not register."""
    state = machine.formatted(Format(level, (), controllers))
    for number, release in brokers.items():
        declared = tuple(Declared(name, each.low, each.high) for name, each in Rules.of(release).declares())
        state = machine.declared(state, DeclareNode("broker", number, declared))
    return state


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize(
    ("new", "old", "name", "level", "newest"),
    [("3.9.2", "3.7.2", "3.7-IV4", 19, 21), ("4.3.1", "4.0.2", "4.0-IV3", 25, 30)],
)
def test_features_rise_once_the_last_broker_is_new_and_an_old_one_does_not_come_back(
    new: str, old: str, name: str, level: int, newest: int
) -> None:
    machine = KraftController(Rules.of(new))
    behind, ahead = (state_of(machine, level, {1: new, 2: each}) for each in (old, new))
    with cluster(name, {1: BOTH, 2: BROKER}) as nodes:
        nodes.start(1, new)
        nodes.start(2, old)
        nodes.wait(1)
        nodes.wait(2)
        port = nodes.nodes[1].port
        refused = (modelled(machine, behind, METADATA, newest), level)
        assert refused == ("INVALID_UPDATE_VERSION", level)
        assert updated(port, METADATA, newest) == refused
        assert updated(nodes.nodes[2].port, METADATA, newest) == refused  # it passes the request on
        if "share.version" in machine.rules.supported:
            assert updated(port, "share.version", 1) == (modelled(machine, behind, "share.version", 1), 0)
        nodes.stop(2)
        assert updated(port, METADATA, newest) == refused  # a broker that is down stays registered
        nodes.start(2, new)
        nodes.wait(2)
        assert modelled(machine, ahead, METADATA, newest) == NONE
        until = monotonic() + LATEST_S
        while (found := updated(port, METADATA, newest)) == refused and monotonic() < until:
            sleep(1)  # until it has registered
        assert found == (NONE, newest)
        nodes.stop(2)
        nodes.start(2, old, registers_ms=8_000)
        code, log = nodes.ended(2, LATEST_S)
        assert code == 1 and "unable to register with the controller quorum" in log


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize(("new", "newest"), [("3.9.2", 21), ("4.3.1", 30)])
def test_below_level_15_a_controller_is_not_asked_and_ends(new: str, newest: int) -> None:
    """A finding: kafka-raises-levels-that-a-controller-lacks."""
    machine = KraftController(Rules.of(new))
    state = state_of(machine, 14, {1: new}, (2, 3))
    with cluster("3.6-IV2", {1: BOTH, 2: CONTROLLER, 3: CONTROLLER}) as nodes:
        nodes.start(1, new)
        nodes.start(3, new)
        nodes.wait(1)
        nodes.start(2, "3.6.2")
        nodes.wait(2)
        assert updated(nodes.nodes[1].port, METADATA, newest) == (modelled(machine, state, METADATA, newest), newest)
        code, log = nodes.ended(2, LATEST_S)
        assert code == 1 and "only supports versions 1-14" in log
