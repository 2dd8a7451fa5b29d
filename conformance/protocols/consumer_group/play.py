"""Declares the model ``consumer-group``: a coordinator, and the heartbeats of its members in every order."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.protocols.consumer_group import ops
from kipcheck.conformance.protocols.consumer_group.laws import LAWS
from kipcheck.conformance.protocols.consumer_group.model import ConsumerGroup, State
from kipcheck.conformance.protocols.consumer_group.target import MACHINE
from kipcheck.conformance.protocols.declare.play import Bound, Product, Scope
from kipcheck.conformance.protocols.reconciled.play import all_orders, playable
from kipcheck.conformance.protocols.reconciled.terms import AWAY, Says

SUBSCRIBED: Final = {"u": (("u",),), "t": (("t",),), "any": ops.SUBSCRIPTIONS}
INTERVAL: Final = ops.Pass(ops.INTERVAL_MS)


@dataclass(frozen=True, slots=True)
class ShortIntervals:
    """A group in which members are never late because of the interval between target assignments, however often it
    passes: so the search ends."""

    group: ConsumerGroup

    def initial(self) -> State:
        return self.group.initial()

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        if event == INTERVAL:
            return Transition(state._replace(aimed_ms=ops.INTERVAL_MS))
        found = self.group.step(state, event)
        aimed_ms = found.state.aimed_ms
        capped = None if aimed_ms is None else min(aimed_ms, ops.INTERVAL_MS)
        return Transition(found.state._replace(aimed_ms=capped), found.actions)

    def enabled(self, state: State, /) -> Iterator[ops.Event]:
        return self.group.enabled(state)


def _tried(state: State, scope: Scope) -> Iterator[ops.Event]:
    """Members join, list their partitions or omit them, repeat an epoch, leave, and fall silent.

    With ``static`` the first and the last client are processes of one instance.
    """
    clients = ops.CLIENTS[: scope["members"]]
    static = {clients[0], clients[-1]} if scope["static"] else set()
    subscriptions = SUBSCRIBED[scope["topics"]]
    for client in clients:
        instance = ops.INSTANCES[0] if client in static else None
        for topics in subscriptions:
            yield ops.Beat(client, Says.JOIN, topics=topics, owned="none", instance=instance)
        member = state.member(client)
        if member is None or member.epoch == AWAY:
            continue
        yield ops.Beat(client, Says.STAY, instance=instance)
        yield ops.Beat(client, Says.STAY, owned="told", instance=instance)
        for topics in subscriptions if len(subscriptions) > 1 else ():
            yield ops.Beat(client, Says.STAY, topics=topics, owned="told", instance=instance)
        if 0 < member.previous < member.epoch:
            yield ops.Beat(client, Says.STAY, member.epoch - member.previous, owned="told", instance=instance)
        yield ops.Beat(client, Says.LEAVE, instance=instance)
        if instance is not None:
            yield ops.Beat(client, Says.AWAY, instance=instance)
    if state.members:
        yield ops.Pass(ops.REBALANCE_MS)
        if state.target_epoch < state.group_epoch:
            yield INTERVAL


def product(group: ConsumerGroup, scope: Scope) -> Product:
    """All orders of events of a group."""
    return all_orders(
        ShortIntervals(group),
        ops.OPERATIONS,
        LAWS,
        within=lambda state: state.group_epoch <= scope["epochs"],
        tried=lambda state: _tried(state, scope),
    )


PLAYABLES = (
    playable(
        MACHINE,
        "a coordinator of a consumer group (KIP-848): partitions move as members join, revoke and leave",
        product,
        {
            "members": Bound(2, "number of clients", (1, 2, 3)),
            "topics": Bound(
                "u", "what members subscribe to: u with 2 partitions, t with 3, or both, changing", (*SUBSCRIBED,)
            ),
            "static": Bound(0, "1: the first and the last client are processes of one instance", (0, 1)),
            "epochs": Bound(4, "the highest epoch of the group that is explored further", (3, 4, 5, 6, 7)),
        },
    ),
)
