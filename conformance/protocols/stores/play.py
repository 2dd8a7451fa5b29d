"""Declares the model ``timestamped-store``: a released store with timestamps, from its plain predecessor on."""

from collections.abc import Iterator

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.stores import ops
from kipcheck.conformance.protocols.stores.laws import LAWS
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.target import HAS_STORES

FLUSHES = 2
"""More flushes of a store that manages offsets are not explored."""


def _events(keys: int, values: int, has_headers: bool) -> Iterator[ops.Event]:
    if has_headers:
        yield ops.Open("headers")
        yield from (ops.Put(key, ops.VALUES[0], 5, ops.HEADERS[1]) for key in ops.KEYS[:keys])
    yield from (
        ops.Open("plain"),
        ops.Open("timestamped"),
        ops.Flush(),
        ops.Close(),
        ops.Crash(),
        ops.Crash(flushing=True),
        ops.Range(),
    )
    for key in ops.KEYS[:keys]:
        yield ops.Get(key)
        yield ops.Put(key, None)
        for place, value in enumerate(ops.VALUES[:values]):
            yield ops.Put(key, value, 5 + place)
        yield ops.Restore(key, ops.VALUES[0], 9)


def _product(edition: Edition, scope: Scope) -> Product:
    store = store_of(edition.release)
    events = tuple(_events(scope["keys"], scope["values"], store.has_headers))
    return SingleMachine(
        "store",
        store,
        within=lambda state: (state.flushes or 0) <= FLUSHES,
        tried=lambda state: tuple(each for each in events if store.accepts(state, each)),
        step_of=ops.OPERATIONS.step_of,
        shorthand=ops.OPERATIONS.shorthand,
        laws=LAWS,
    )


PLAYABLES = (
    Playable(
        name="timestamped-store",
        about="a store over what one of an older format left: readings move values, crashes lose the rest",
        editions=lambda edition: None if HAS_STORES(edition) else f"apache@{since('timestamped-stores')} or later",
        world=_product,
        verbs=verbs(ops.OPERATIONS),
        conversation=lambda edition: Conversation(
            "store", store_of(edition.release), ops.OPERATIONS.event_of, ops.OPERATIONS.parse_shorthand
        ),
        dials={
            "keys": Bound(2, "number of keys", (1, 2, 3)),
            "values": Bound(1, "number of values that are put", (1, 2)),
        },
    ),
)
