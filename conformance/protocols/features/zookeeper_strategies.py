"""Updates of features with ZooKeeper: controllers of any inter-broker version, and requests that are refused."""

from functools import cache
from typing import Final

from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.features.model.zookeeper import State, ZooKeeperController
from kipcheck.conformance.protocols.features.ops.zookeeper import (
    OPERATIONS,
    AskZkFeatures,
    DeleteNode,
    Event,
    ReadFeature,
    ReadZkNode,
    StartController,
    ZkUpdate,
)
from kipcheck.strategies.events import Conversations
from kipcheck.strategies.nodes import Integer, Pick, Seq, record
from kipcheck.strategies.operations import nodes

UPDATES: Final = Seq(
    record(feature=Pick(("a", "b", "")), level=Integer(-1, 3), upgrade_type=Pick((1, 2, 3, 0, 99))), 0, 3
)


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
        enabled_shares=(0.0,),
    )
