"""Declares the model ``persistent-metadata``: the cluster of KIP-384's draft."""

from collections.abc import Iterator

from kipcheck.conformance.core.edition import KIP_384, Edition
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.persistent_metadata.laws import LAWS
from kipcheck.conformance.protocols.persistent_metadata.model import PersistentCluster
from kipcheck.conformance.protocols.persistent_metadata.ops import OPERATIONS, Event, Start, Stop, Store, Write

LINES = ("2.1", "2.2")
STORES: tuple[Store, ...] = ("offsets", "snapshot", "zookeeper", "messages")
"""A topic, a file of a broker, what all share, and messages: each kind of store once."""


def _events(brokers: int, stores: int) -> Iterator[Event]:
    """Every binary with all settings that it can have, pinned to one of both versions."""
    for broker in range(brokers):
        yield Start(broker, "2.1", "2.1", "2.1", "2.1")
        for between in LINES:
            for persistent in LINES:
                for format in LINES:
                    yield Start(broker, "2.2", between, persistent, format)
        yield Stop(broker)
        for store in STORES[:stores]:
            yield Write(broker, store)


def _product(edition: Edition, scope: Scope) -> Product:
    events = tuple(_events(scope["brokers"], scope["stores"]))
    return SingleMachine(
        "cluster",
        PersistentCluster(),
        within=lambda state: True,
        tried=lambda state: events,
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=LAWS,
    )


PLAYABLES = (
    Playable(
        name="persistent-metadata",
        about="a cluster with KIP-384's setting: brokers of two releases store in two formats, by three settings",
        editions=lambda edition: None if edition == KIP_384 else str(KIP_384),
        world=_product,
        verbs=verbs(OPERATIONS),
        conversation=lambda edition: Conversation(
            "cluster", PersistentCluster(), OPERATIONS.event_of, OPERATIONS.parse_shorthand
        ),
        dials={
            "brokers": Bound(2, "number of brokers", (1, 2, 3)),
            "stores": Bound(2, "number of stores that are written", (1, 2, 3, 4)),
        },
    ),
)
