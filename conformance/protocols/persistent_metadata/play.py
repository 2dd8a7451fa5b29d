"""Declares the model ``persistent-metadata``: the cluster of KIP-384's draft."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kipcheck.conformance.core.values.edition import KIP_384, Edition
from kipcheck.conformance.machines.symmetry import Renumbering, Symmetry
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.persistent_metadata import ops
from kipcheck.conformance.protocols.persistent_metadata.laws import LAWS
from kipcheck.conformance.protocols.persistent_metadata.model import Broker, PersistentCluster, State

LINES = ("2.1", "2.2")
STORES: tuple[ops.Store, ...] = ("offsets", "snapshot", "zookeeper", "messages")
"""A topic, a file of a broker, what all share, and messages: each kind of store once."""


def _of_broker(broker: int, stores: int) -> Iterator[ops.Event]:
    """Every binary with all settings that it can have, pinned to one of both versions."""
    yield ops.Start(broker, "2.0")
    yield ops.Start(broker, "2.1", "2.1", "2.1", "2.1")
    for between in LINES:
        for persistent in LINES:
            for format in LINES:
                yield ops.Start(broker, "2.2", between, persistent, format)
    yield ops.Stop(broker)
    for store in STORES[:stores]:
        yield ops.Write(broker, store)


def _product(edition: Edition, scope: Scope) -> Product:
    brokers: int = scope["brokers"]
    of_broker = tuple(tuple(_of_broker(number, scope["stores"])) for number in range(brokers))
    of_topic = tuple(map(ops.TopicFormat, (None, *LINES) if scope["overrides"] else ()))

    def tried(state: State) -> Iterator[ops.Event]:
        """Of brokers that are alike, the events of the first one."""
        yield from of_topic
        seen = set()
        for number in range(brokers):
            alike = replace(state.broker(number), number=0)
            if alike not in seen:
                seen.add(alike)
                yield from of_broker[number]

    return SingleMachine(
        "cluster",
        PersistentCluster(),
        within=lambda state: True,
        tried=tried,
        step_of=ops.OPERATIONS.step_of,
        shorthand=ops.OPERATIONS.shorthand,
        laws=LAWS,
        symmetry=Symmetry(partial(_canonical, brokers), _renumbered),
    )


def _canonical(brokers: int, state: State) -> tuple[State, Renumbering]:
    """Brokers in the order of their settings and stores; those that never ran, or left nothing, are the last."""
    kept = sorted((each for each in state.brokers if each.settings is not None or each.new), key=_order)
    unused = sorted({*range(brokers)} - {each.number for each in kept})
    there = {each: place for place, each in enumerate([*(one.number for one in kept), *unused])}
    made = replace(state, brokers=tuple(replace(each, number=place) for place, each in enumerate(kept)))
    return made, tuple(there[number] for number in range(brokers))


def _order(broker: Broker) -> tuple[object, ...]:
    each = broker.settings
    settings = () if each is None else (each.binary, each.inter_broker, each.persistent or (), each.format)
    return settings, tuple(sorted(broker.new))


def _renumbered(event: ops.Event, numbers: Renumbering) -> ops.Event:
    return event if isinstance(event, ops.TopicFormat) else replace(event, broker=numbers[event.broker])


PLAYABLES = (
    Playable(
        name="persistent-metadata",
        about="a cluster with KIP-384's setting: brokers of three releases store in two formats, by three settings",
        editions=lambda edition: None if edition == KIP_384 else str(KIP_384),
        world=_product,
        verbs=verbs(ops.OPERATIONS),
        conversation=lambda edition: Conversation(
            "cluster", PersistentCluster(), ops.OPERATIONS.event_of, ops.OPERATIONS.parse_shorthand
        ),
        dials={
            "brokers": Bound(3, "number of brokers", (1, 2, 3)),
            "stores": Bound(2, "number of stores that are written", (1, 2, 3, 4)),
            "overrides": Bound(0, "whether the topic of messages has a format of its own, too", (0, 1)),
        },
    ),
)
