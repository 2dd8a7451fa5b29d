"""Declares the model ``share-partition``: the leader of a share partition, and requests of clients in every order."""

from collections.abc import Iterator

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.declare.play import Bound, Product, Scope
from kipcheck.conformance.protocols.reconciled.play import all_orders, playable
from kipcheck.conformance.protocols.reconciled.terms import Says, memory_of
from kipcheck.conformance.protocols.share_partition.model import ShareLeader, State, in_order
from kipcheck.conformance.protocols.share_partition.ops import (
    CLIENTS,
    LIMIT,
    LOCK_MS,
    OPERATIONS,
    Acknowledge,
    Event,
    Fetch,
    Pass,
    Produce,
    Reload,
    Reset,
)
from kipcheck.conformance.protocols.share_partition.target import MACHINE


def _records(views: tuple[State]) -> str | None:
    (state,) = views
    for offset, record in in_order(state.batches):
        if record.times > LIMIT:
            return f"record {offset} has count {record.times}"
        if record.done and record.holder:
            return f"record {offset} is done, and {record.holder} has it"
    return None


def _done_stays_done(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    for offset in range(before.start or 0, before.end):
        known, record = before.at(offset), did.part.at(offset)
        if known is not None and known.done and record is not None and not record.done:
            return f"record {offset} was done, and is not any more"
    return None


def _one_holder(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    for offset, record in in_order(did.part.batches):
        known = before.at(offset)
        if record.holder and known is not None and known.holder not in ("", record.holder):
            return f"{record.holder} gets record {offset}, which {known.holder} has"
    return None


def _nothing_skipped(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    if before.start is None:
        return None
    for offset in range(before.start, did.part.start or 0):
        if before.at(offset) is None:
            return f"the start offset passes record {offset}, which was never delivered"
    return None


LAWS: tuple[Law[State] | StepLaw[State, Event, Event], ...] = (
    Law("share-partition/counts-deliveries", lambda index, state: state, _records),
    StepLaw("share-partition/done-stays-done", _done_stays_done),
    StepLaw("share-partition/one-holder", _one_holder),
    StepLaw("share-partition/nothing-skipped", _nothing_skipped),
)


def _tried(state: State, scope: Scope) -> Iterator[Event]:
    """Clients fetch one record or all, acknowledge the first or all of what is in flight, and are late together."""
    if not state.end:
        yield from (Reset("earliest"), Produce(scope["records"]))
    for client in CLIENTS[: scope["members"]]:
        known = memory_of(state.clients, client).epoch > 0
        yield Fetch(client, Says.STAY if known else Says.JOIN)
        if not known:
            continue
        yield Fetch(client, Says.STAY, most=1)
        yield Fetch(client, Says.LEAVE)
        for batch in state.batches:
            for kind in ("accept", "release"):
                yield Acknowledge(client, Says.STAY, kind, batch.first, batch.first)
                yield Acknowledge(client, Says.STAY, kind, batch.first, batch.after - 1)
    yield from (Pass(LOCK_MS), Reload())


def product(machine: ShareLeader, scope: Scope) -> Product:
    return all_orders(
        machine,
        OPERATIONS,
        LAWS,
        within=lambda state: all(epoch < scope["requests"] for _, epoch in state.sessions),
        tried=lambda state: _tried(state, scope),
    )


PLAYABLES = (
    playable(
        MACHINE,
        "the leader of a share partition (KIP-932): clients acquire records, acknowledge them, and are late",
        product,
        {
            "members": Bound(2, "number of clients", (1, 2, 3)),
            "records": Bound(2, "number of records", (1, 2, 3)),
            "requests": Bound(3, "the epoch of a session that is not explored further", (2, 3, 4, 5)),
        },
    ),
)
