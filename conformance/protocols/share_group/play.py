"""Declares the model ``share-group``: a coordinator, and the heartbeats of its members in every order."""

from collections.abc import Iterator
from typing import Any

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.declare.play import Bound, Product, Scope
from kipcheck.conformance.protocols.reconciled.model import member_of
from kipcheck.conformance.protocols.reconciled.play import all_orders, playable
from kipcheck.conformance.protocols.reconciled.terms import Says
from kipcheck.conformance.protocols.share_group.model import ShareGroup, State
from kipcheck.conformance.protocols.share_group.ops import CLIENTS, OPERATIONS, SESSION_MS, Beat, Event, Pass
from kipcheck.conformance.protocols.share_group.target import MACHINE


def _epochs_rise(index: int, before: State, event: Event, did: Did[State, Any]) -> str | None:
    known = {member.id: member.epoch for member in before.members}
    for member in did.part.members:
        if member.epoch < known.get(member.id, 0):
            return f"the epoch of {member.id} falls from {known[member.id]} to {member.epoch}"
    return None


def _co_subscription(views: tuple[State]) -> str | None:
    for member in views[0].members:
        topics = {topic for topic, _ in member.assigned}
        if member.epoch == views[0].group_epoch and topics != {*member.topics}:
            return f"{member.id} subscribes to {', '.join(member.topics)}, and has partitions of {', '.join(topics)}"
    return None


LAWS: tuple[Law[State] | StepLaw[State, Event, Event], ...] = (
    Law("share-group/co-subscription", lambda index, state: state, _co_subscription),
    StepLaw("share-group/epochs-rise", _epochs_rise),
)


def _tried(state: State, members: int) -> Iterator[Event]:
    """Members join with one topic, send heartbeats, leave, and fall silent together."""
    for client in CLIENTS[:members]:
        yield Beat(client, Says.JOIN, topics=("u",))
        if member_of(state.members, client) is not None:
            yield Beat(client, Says.STAY)
            yield Beat(client, Says.LEAVE)
    if state.members:
        yield Pass(SESSION_MS)


def product(machine: ShareGroup, scope: Scope) -> Product:
    return all_orders(
        machine,
        OPERATIONS,
        LAWS,
        within=lambda state: state.group_epoch <= scope["epochs"],
        tried=lambda state: _tried(state, scope["members"]),
    )


PLAYABLES = (
    playable(
        MACHINE,
        "a coordinator of a share group (KIP-932): members share partitions as they join, fall silent and leave",
        product,
        {
            "members": Bound(2, "number of members", (1, 2, 3)),
            "epochs": Bound(5, "the highest epoch of the group that is explored further", (3, 4, 5, 6, 7)),
        },
    ),
)
