"""Declares the model ``streams-group``: a coordinator, and the heartbeats of its members in every order."""

from collections.abc import Iterator

from kipcheck.conformance.protocols.declare.play import Bound, Product, Scope
from kipcheck.conformance.protocols.reconciled.play import all_orders, playable
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.streams_group.laws import LAWS
from kipcheck.conformance.protocols.streams_group.model import StreamsGroup
from kipcheck.conformance.protocols.streams_group.ops import CLIENTS, OPERATIONS, SESSION_MS, Beat, Event, Pass
from kipcheck.conformance.protocols.streams_group.state import State
from kipcheck.conformance.protocols.streams_group.target import MACHINE


def _tried(state: State, members: int) -> Iterator[Event]:
    """Members join with one topology, list their tasks or omit them, leave, and fall silent together."""
    for client in CLIENTS[:members]:
        yield Beat(client, Says.JOIN, topology=("t",), owned="none")
        if state.member(client) is not None:
            yield Beat(client, Says.STAY)
            yield Beat(client, Says.STAY, owned="told")
            yield Beat(client, Says.LEAVE)
    if state.members:
        yield Pass(SESSION_MS)


def product(machine: StreamsGroup, scope: Scope) -> Product:
    return all_orders(
        machine,
        OPERATIONS,
        LAWS,
        within=lambda state: state.epoch <= scope["epochs"],
        tried=lambda state: _tried(state, scope["members"]),
    )


PLAYABLES = (
    playable(
        MACHINE,
        "a coordinator of a streams group (KIP-1071): tasks move between members that join, revoke and leave",
        product,
        {
            "members": Bound(2, "number of members", (1, 2, 3)),
            "epochs": Bound(5, "the highest epoch of the group that is explored further", (3, 4, 5, 6, 7)),
        },
    ),
)
