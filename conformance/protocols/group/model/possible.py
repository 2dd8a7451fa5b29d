"""What a broker can do with the partition of a group: it moves away, comes back, and is read, in this order.

Clients of a coordinator may send anything at any time, over as many connections as they like.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kipcheck.conformance.protocols.group.model.messages import Load, Loaded, Unload
from kipcheck.conformance.protocols.group.model.service import Elapse, Event
from kipcheck.conformance.protocols.group.model.state import Standing

RULE: Final = "broker-order"
SENTENCE: Final = "A broker loads a partition that is away, has read it after it began to, and gives up what it has."
"""GroupCoordinator.onElection and onResignation; GroupMetadataManager.loadGroupsAndOffsets"""
WAIT_MS: Final = 3_000
BrokerEvent: TypeAlias = Unload | Load | Loaded
_AFTER: Final[dict[type[BrokerEvent], Standing]] = {
    Unload: Standing.AWAY,
    Load: Standing.LOADING,
    Loaded: Standing.OURS,
}
_CAN_HAPPEN: Final[dict[Standing, tuple[type[BrokerEvent], ...]]] = {
    Standing.OURS: (Unload,),
    Standing.AWAY: (Load,),
    Standing.LOADING: (Loaded, Unload),
}


def can_happen(standing: Standing, event: Event) -> bool:
    return not isinstance(event, BrokerEvent) or type(event) in _CAN_HAPPEN[standing]


def possible_event(standing: Standing, event: Event) -> Event:
    """The event if it can happen, else the broker's next one; while the partition is there, time passes instead."""
    if can_happen(standing, event):
        return event
    return Elapse(WAIT_MS) if standing is Standing.OURS else _CAN_HAPPEN[standing][0]()


def impossible_events(events: Iterable[Event]) -> Iterator[tuple[int, Standing]]:
    """The events that cannot happen, each with the state of the partition."""
    standing = Standing.OURS
    for at, event in enumerate(events):
        if not can_happen(standing, event):
            yield at, standing
        elif isinstance(event, BrokerEvent):
            standing = _AFTER[type(event)]
