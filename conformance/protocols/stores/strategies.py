"""Lives of a store: written without timestamps, upgraded, read, killed, and restored."""

from functools import cache
from random import Random

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import edition
from kipcheck.conformance.protocols.stores.model import State, store_of
from kipcheck.conformance.protocols.stores.ops import (
    KEYS,
    OPERATIONS,
    TIMESTAMPS,
    VALUES,
    Close,
    Count,
    Crash,
    Delete,
    Event,
    Flush,
    Get,
    Open,
    Put,
    PutIfAbsent,
    Range,
    Restore,
)
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

ENDS_AND_MAINTENANCE = (Flush(), Flush(), Close(), Crash(), Crash(flushing=True))


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    return OPERATIONS.step_of(_event(state, random))


def _event(state: State, random: Random) -> Event:
    """A store begins without timestamps, often; an open one is written and read about as often, and old values first.

    Old keys are written once, often, and counted before anything moves: else the count need not be exact. A store is
    killed while a value that it moved is in memory alone.
    """
    if state.open is None:
        fresh = not state.family and random.random() < 0.7
        return Open("plain" if fresh and len(state.seen.old) < 3 else "timestamped")
    chance, key = random.random(), random.choice(KEYS)
    if state.both and state.seen.old and random.random() < 0.6:
        key = random.choice(state.seen.old)[0]
    if state.open == "plain" and random.random() < 0.5:
        key = random.choice([each for each in KEYS if each not in dict(state.seen.old)] or KEYS)
    if state.both and state.seen == state.disk and state.seen.old and not state.seen.new and random.random() < 0.2:
        return Count()
    if state.both and state.disk.old != state.seen.old and random.random() < 0.2:
        return Crash(random.random() < 0.5)
    if chance < 0.12 or (state.open == "plain" and len(state.seen.old) > 2):
        return random.choice(ENDS_AND_MAINTENANCE)
    if chance < 0.45:
        return random.choice((Get(key), Get(key), Range(), Range(), _range(random), Count()))
    value, timestamp = random.choice(VALUES), random.choice(TIMESTAMPS)
    writes: tuple[Event, ...] = (
        Put(key, value, timestamp), Put(key, value, timestamp), Put(key, value, timestamp), Put(key, None),
        Delete(key), PutIfAbsent(key, value, timestamp), PutIfAbsent(key, value, timestamp),
        Restore(key, value, timestamp), Restore(key, None, timestamp),
    )  # fmt: skip
    return random.choice(writes)


def _range(random: Random) -> Range:
    first, last = sorted(random.sample(KEYS, 2), key=bytes.fromhex)
    return Range(first, last)


def possible(state: State, event: Event) -> Event:
    """A store is opened once, and used while it is open; a range has its bounds in order, and a put a timestamp.

    An event that cannot happen is replaced.
    """
    if state.open is None:
        return event if isinstance(event, Open) else Open("timestamped")
    match event:
        case Open():
            return Close()
        case Range(first, last) if (first is None) != (last is None) or (
            first is not None and last is not None and bytes.fromhex(first) > bytes.fromhex(last)
        ):
            return Range()
        case Put(key, str(value), None):
            return Put(key, value, TIMESTAMPS[0])
        case Put(key, None, int()):
            return Put(key, None)
        case PutIfAbsent(key, value, None):
            return PutIfAbsent(key, value, TIMESTAMPS[0])
        case _:
            return event


@cache
def lives(name: str) -> Conversations[State, Event]:
    """The lives of a store of an edition's release."""
    return Conversations(
        store_of(edition(name).release),
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        events=nodes(Get, Put, Open, Range, Flush, Close, Crash, Delete, PutIfAbsent, Restore, Count),
        progress=frozenset({"store-open", "store-put", "store-get"}),
        max_steps=30,
        usual_steps=14,
        likely=likely,
        possible=possible,
        enabled_shares=(0.98, 0.9),
        near_shares=(0.0, 0.1),
    )


CONVERSATIONS = {OPERATIONS.machine: lives}
