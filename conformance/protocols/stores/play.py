"""Declares the model ``timestamped-store``: a released store with timestamps, from its plain predecessor on."""

from collections.abc import Iterator

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.stores.laws import LAWS
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.ops import (
    HEADERS,
    KEYS,
    OPERATIONS,
    VALUES,
    Close,
    Crash,
    Event,
    Flush,
    Get,
    Open,
    Put,
    Range,
    Restore,
)
from kipcheck.conformance.protocols.stores.target import HAS_STORES

FLUSHES = 2
"""More flushes of a store that manages offsets are not explored."""


def _events(keys: int, values: int, has_headers: bool) -> Iterator[Event]:
    if has_headers:
        yield Open("headers")
        yield from (Put(key, VALUES[0], 5, HEADERS[1]) for key in KEYS[:keys])
    yield from (Open("plain"), Open("timestamped"), Flush(), Close(), Crash(), Crash(flushing=True), Range())
    for key in KEYS[:keys]:
        yield Get(key)
        yield Put(key, None)
        for place, value in enumerate(VALUES[:values]):
            yield Put(key, value, 5 + place)
        yield Restore(key, VALUES[0], 9)


def _product(edition: Edition, scope: Scope) -> Product:
    store = store_of(edition.release)
    events = tuple(_events(scope["keys"], scope["values"], store.has_headers))
    return SingleMachine(
        "store",
        store,
        within=lambda state: (state.flushes or 0) <= FLUSHES,
        tried=lambda state: tuple(each for each in events if store.accepts(state, each)),
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=LAWS,
    )


PLAYABLES = (
    Playable(
        name="timestamped-store",
        about="a store over what one of an older format left: readings move values, crashes lose the rest",
        editions=lambda edition: None if HAS_STORES(edition) else f"apache@{since('timestamped-stores')} or later",
        world=_product,
        verbs=verbs(OPERATIONS),
        conversation=lambda edition: Conversation(
            "store", store_of(edition.release), OPERATIONS.event_of, OPERATIONS.parse_shorthand
        ),
        dials={
            "keys": Bound(2, "number of keys", (1, 2, 3)),
            "values": Bound(1, "number of values that are put", (1, 2)),
        },
    ),
)
