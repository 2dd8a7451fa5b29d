"""Updates of features with ZooKeeper: controllers of any inter-broker version, and requests that are refused."""

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
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Integer, Pick, Seq, record
from kipcheck.strategies.operations import nodes

VERSIONS: Final[tuple[InterBroker, ...]] = ("2.7", "2.7", "2.7", "2.6", "3.3")
UPDATES: Final = Seq(
    record(feature=Pick(("a", "b", "")), level=Integer(-1, 3), upgrade_type=Pick((1, 2, 3, 0, 99))), 0, 3
)


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    """The life of a node: controllers start, a broker reads, answers, and reads again."""
    broker = 0 if random.random() < 0.8 else 1
    epoch = state.node.epoch if state.node is not None else -1
    ahead = [each.broker for each in state.caches if each.epoch > epoch >= 0]
    if ahead and random.random() < 0.7:
        return OPERATIONS.step_of(random.choice((ReadZkNode(), ReadFeature(ahead[0]))))
    events: tuple[tuple[Event, int], ...] = (
        (StartController(random.choice(VERSIONS)), 4 if state.inter_broker and state.node else 20),
        (ReadZkNode(), 4),
        (ReadFeature(broker), 5),
        (AskZkFeatures(broker), 4),
        (DeleteNode(), 3 if epoch > 0 else 1),
    )
    made, weights = zip(*events, strict=True)
    return OPERATIONS.step_of(random.choices(made, weights)[0])


@cache
def zookeeper_updates(name: str) -> Conversations[State, Event]:
    """Conversations with the controller of an edition. Errors: ValueError where it has none."""
    return Conversations(
        ZooKeeperController(edition(name).release),
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        events=nodes(
            ReadZkNode, StartController, ZkUpdate, ReadFeature, AskZkFeatures, DeleteNode, drawn={"updates": UPDATES}
        ),
        progress=frozenset({"zk-controller", "zk-update", "zk-node"}),
        usual_steps=10,
        likely=likely,
        enabled_shares=(0.85,),
        near_shares=(0.0,),
    )
