"""Updates of features with ZooKeeper: controllers of any inter-broker version, and requests that are refused."""

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.features.model.zookeeper import State, ZooKeeperController
from kipcheck.conformance.protocols.features.ops.zookeeper import (
    OPERATIONS,
    AskZkFeatures,
    DeleteNode,
    Event,
    InterBroker,
    ReadFeature,
    ReadZkNode,
    StartController,
    ZkUpdate,
)
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Integer, Pick, Seq, record
from kipcheck.strategies.operations import nodes

VERSIONS: Final[tuple[InterBroker, ...]] = ("2.7", "2.7", "2.7", "2.6", "3.3")
UPDATES: Final = Seq(
    record(feature=Pick(("a", "b", "")), level=Integer(-1, 3), upgrade_type=Pick((1, 2, 3, 0, 99))), 0, 3
)


EVENTS: Final = nodes(
    ReadZkNode, StartController, ZkUpdate, ReadFeature, AskZkFeatures, DeleteNode, drawn={"updates": UPDATES}
)
LOW: Final[InterBroker] = "2.6"
"""Below the migration version."""


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    """The life of a node: controllers start, a broker reads, answers, and reads again."""
    if not state.inter_broker or random.random() < 0.08:
        return OPERATIONS.step_of(StartController(random.choice((*VERSIONS, LOW, LOW, LOW))))
    if random.random() < 0.12:
        return Step(**compiled(EVENTS["zk-update"])(random))
    events, weights = zip(*_next(state, 0 if random.random() < 0.8 else 1, random), strict=True)
    return OPERATIONS.step_of(random.choices(events, weights)[0])


def _next(state: State, broker: int, random: Random) -> Iterator[tuple[Event, int]]:
    """What moves one broker on, with weights. What a broker knows is shown by its answers alone, so they are likely."""
    node, cache = state.node, state.cache(broker)
    epoch = node.epoch if node is not None and node.enabled else -1
    known = -1 if cache is None else cache.epoch
    ahead = known > max(epoch, 0)  # the node was deleted, or is a new one
    current = cache is not None and known == epoch
    yield ReadZkNode(), 9 if ahead and epoch >= 0 else 2
    yield ReadFeature(broker), 1 if current else 3 if ahead else 5
    yield AskZkFeatures(broker), 6 if current else 1
    if epoch < 0:
        yield StartController(random.choice(VERSIONS)), 8 if ahead else 5
    elif epoch == 0 and not ahead:
        yield StartController(LOW), 3  # a node that begins anew shows little before an epoch was higher
        yield DeleteNode(), 1
    elif not ahead:
        yield DeleteNode(), 4 if current else 1


@cache
def zookeeper_updates(name: str) -> Conversations[State, Event]:
    """Conversations with the controller of an edition. Errors: ValueError where it has none."""
    return Conversations(
        ZooKeeperController(edition(name).release),
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        events=EVENTS,
        progress=frozenset({"zk-controller", "zk-update", "zk-node"}),
        usual_steps=10,
        likely=likely,
        enabled_shares=(0.95, 0.85),
        near_shares=(0.0,),
    )
