"""Updates of features with ZooKeeper: controllers of any inter-broker version, and requests that are refused."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.features.model.zookeeper import State, ZooKeeperController
from kipcheck.conformance.protocols.features.ops import zookeeper as ops
from kipcheck.conformance.protocols.features.ops.cluster import Supported
from kipcheck.conformance.protocols.features.ops.kraft import SAFE_DOWNGRADE, UPGRADE, TypedUpdate
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Integer, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

VERSIONS: Final[tuple[ops.InterBroker, ...]] = ("2.7", "2.7", "2.7", "2.6", "3.3")
UPDATES: Final = Seq(
    record(feature=Pick(("a", "b", "")), level=Integer(-1, 4), upgrade_type=Pick((1, 2, 3, 0, 99))), 0, 3
)


SPAN: Final = OneOf(
    (
        record(feature=Pick(("a", "b")), low=Pick((1,)), high=Integer(1, 3)),
        record(feature=Pick(("a", "b")), low=Pick((2,)), high=Integer(2, 4)),
    )
)
DRAWN: Final = {"updates": UPDATES, "features": Seq(SPAN, 0, 2), "supported": Seq(SPAN, 0, 2)}
EVENTS: Final = nodes(
    ops.ReadZkNode, ops.StartController, ops.ZkUpdate, ops.ReadFeature, ops.AskZkFeatures, ops.DeleteNode,
    ops.WriteNode, ops.ReadRegistration, drawn=DRAWN,
)  # fmt: skip
DECLARED: Final = nodes(
    ops.ReadZkNode, ops.StartController, ops.ZkUpdate, ops.ReadFeature, ops.AskZkFeatures, ops.DeleteNode,
    ops.WriteNode, ops.DeclareFeatures, drawn=DRAWN,
)  # fmt: skip
FIRST_FORM: Final = nodes(ops.StartController, drawn={"inter_broker": Pick(("2.7", "2.6"))})
"""Of releases whose inter-broker versions end before the second form of the node."""
LOW: Final[ops.InterBroker] = "2.6"
"""Below the migration version."""


def likely(versions: Sequence[ops.InterBroker], state: State, swarm: Swarm, random: Random) -> Step:
    """The life of a node: controllers start, a broker reads, answers, and reads again."""
    if not state.inter_broker or random.random() < 0.08:
        return ops.OPERATIONS.step_of(ops.StartController(random.choice((*versions, LOW, LOW, LOW))))
    if random.random() < 0.12:
        return Step(**compiled(EVENTS["zk-update"])(random))
    events, weights = zip(*_next(versions, state, 0 if random.random() < 0.8 else 1, random), strict=True)
    return ops.OPERATIONS.step_of(random.choices(events, weights)[0])


def _next(
    versions: Sequence[ops.InterBroker], state: State, broker: int, random: Random
) -> Iterator[tuple[ops.Event, int]]:
    """What moves one broker on, with weights. What a broker knows is shown by its answers alone, so they are likely."""
    node, cache = state.node, state.cache(broker)
    epoch = node.epoch if node is not None and node.enabled else -1
    known = -1 if cache is None else cache.epoch
    ahead = known > max(epoch, 0)  # the node was deleted, or is a new one
    current = cache is not None and known == epoch
    yield ops.ReadZkNode(), 9 if ahead and epoch >= 0 else 2
    yield ops.ReadFeature(broker), 1 if current else 3 if ahead else 5
    yield ops.ReadRegistration(broker), 2 if cache is not None else 0
    written = tuple(Supported(name, 1, 2) for name in random.choice(((), ("a",), ("a", "b"))))
    yield ops.WriteNode(written, random.random() < 0.3), 1
    yield ops.AskZkFeatures(broker), 6 if current else 0 if cache is None else 1
    if epoch < 0:
        yield ops.StartController(random.choice(versions)), 8 if ahead else 5
    elif epoch == 0 and not ahead:
        yield ops.StartController(LOW), 3  # a node that begins anew shows little before an epoch was higher
        yield ops.DeleteNode(), 1
    elif not ahead:
        yield ops.DeleteNode(), 4 if current else 1


def declared(versions: Sequence[ops.InterBroker], state: State, swarm: Swarm, random: Random) -> Step:
    """Updates of features that brokers declare, each between two readings of the node."""
    if not state.declared:
        return ops.OPERATIONS.step_of(ops.DeclareFeatures(0, _spans(random)))
    if not state.inter_broker:
        return ops.OPERATIONS.step_of(random.choice((ops.StartController(random.choice(versions)), ops.ReadZkNode())))
    if random.random() < 0.4:
        return ops.OPERATIONS.step_of(ops.ReadZkNode())
    if random.random() < 0.08:
        return Step(**compiled(DECLARED["zk-update"])(random))
    broker = int(random.random() < 0.5)
    known = state.declared[0][1] if random.random() < 0.5 and state.declared[0][1] else ()
    written = tuple(Supported(name, low, random.randint(low, high)) for name, (low, high) in known)
    events: tuple[tuple[ops.Event, int], ...] = (
        (_update(state, random), 12),
        (ops.DeclareFeatures(1, _spans(random)), 2),
        (ops.DeclareFeatures(0, _spans(random)), 1),
        (ops.StartController(random.choice((*versions, LOW))), 2),
        (ops.WriteNode(written or _spans(random), random.random() < 0.2), 2),
        (ops.DeleteNode(), 1),
        (ops.ReadFeature(broker), 3),
        (ops.AskZkFeatures(broker), 3),
    )
    kinds, weights = zip(*events, strict=True)
    return ops.OPERATIONS.step_of(random.choices(kinds, weights)[0])


def _spans(random: Random) -> tuple[Supported, ...]:
    names = random.choice((("a",), ("a",), ("a", "b"), ("b",), ()))
    return tuple(Supported(name, *random.choice(((1, 1), (1, 2), (1, 3), (2, 3), (2, 2)))) for name in names)


def _update(state: State, random: Random) -> ops.ZkUpdate:
    """Levels beside the finalized one and the edges of what brokers declare; mostly with the type that fits."""
    finalized = dict(state.finalized)
    spans = [span for _, each in state.declared for span in each]
    updates = []
    for name in random.choice((("a",), ("a",), ("b",), ("a", "b"), ("a", "b", ""))):
        current = finalized[name].high if name in finalized else 0
        edges = [each for of, (low, high) in spans if of == name for each in (low - 1, low, high, high + 1)]
        level = random.choice((current, current - 1, current + 1, current - 1, 0, -1, *edges))
        kind = SAFE_DOWNGRADE if level < current else UPGRADE
        if random.random() < 0.25:
            kind = random.choice((UPGRADE, SAFE_DOWNGRADE, 3, 0, 99))
        updates.append(TypedUpdate(name, level, kind))
    return ops.ZkUpdate(random.choice((0, 0, 1)), tuple(updates), random.random() < 0.1)


@cache
def zookeeper_declared(name: str) -> Conversations[State, ops.Event]:
    """Conversations with brokers that declare features. Errors: ValueError for an edition without such a controller."""
    machine = ZooKeeperController(edition(name).release)
    drawn, versions = ({}, VERSIONS) if machine.typed else (FIRST_FORM, VERSIONS[:-1])
    return Conversations(
        machine,
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=DECLARED | drawn,
        progress=frozenset({"zk-controller", "zk-update", "zk-node", "zk-declare"}),
        usual_steps=12,
        likely=partial(declared, versions),
        enabled_shares=(0.95, 0.85),
        near_shares=(0.0,),
    )


@cache
def zookeeper_updates(name: str) -> Conversations[State, ops.Event]:
    """Conversations with the controller of an edition. Errors: ValueError where it has none."""
    machine = ZooKeeperController(edition(name).release)
    drawn, versions = ({}, VERSIONS) if machine.typed else (FIRST_FORM, VERSIONS[:-1])
    return Conversations(
        machine,
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=EVENTS | drawn,
        progress=frozenset({"zk-controller", "zk-update", "zk-node"}),
        usual_steps=10,
        likely=partial(likely, versions),
        enabled_shares=(0.95, 0.85),
        near_shares=(0.0,),
    )
