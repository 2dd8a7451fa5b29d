"""Lives of a store: written without timestamps, upgraded, read, killed, and restored."""

from dataclasses import replace
from functools import cache
from random import Random

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.stores.model import Contents, State, Values, known_to, store_of
from kipcheck.conformance.protocols.stores.ops import (
    HEADERS,
    KEYS,
    NO_HEADERS,
    OPERATIONS,
    TIMESTAMPS,
    VALUES,
    Close,
    Count,
    Crash,
    Delete,
    Event,
    Flush,
    Format,
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


def likely_with_headers(state: State, swarm: Swarm, random: Random) -> Step:
    """Of a release whose stores may have headers, about half of them do; an older one then rarely tries to open it.

    One with two older formats is closed early, and tried with headers, before its old values are moved.
    """
    event = _event(state, random)
    chance = random.random()
    if state.both and state.seen == state.disk and chance < 0.1:
        return OPERATIONS.step_of(Count())
    if state.open == "timestamped" and _mixed(state) and chance > 0.88:
        return OPERATIONS.step_of(Close())
    match event:
        case Open() if "headers" in state.families:
            return OPERATIONS.step_of(event if chance < (0.7 if _mixed(state) else 0.1) else Open("headers"))
        case Open("timestamped") if chance < (0.4 if _mixed(state) else 0.5):
            return OPERATIONS.step_of(Open("headers"))
        case Put(_, str()) | PutIfAbsent() | Restore(_, str()) if chance < (0.7 if state.open == "headers" else 0.1):
            return OPERATIONS.step_of(replace(event, headers=random.choice(HEADERS[1:])))
    return OPERATIONS.step_of(event)


def _mixed(state: State) -> bool:
    """Whether a store with headers refuses the directory, which no store opens from then on."""
    return "timestamped" in state.families and bool(state.seen.plain)


def _event(state: State, random: Random) -> Event:
    """A store begins without timestamps, often; an open one is written and read about as often, and old values first.

    Old keys are written once, often, and counted before anything moves: else the count need not be exact. A store is
    killed while a value that it moved is in memory alone.
    """
    if state.open is None:
        fresh = state.families == {"plain"} and random.random() < 0.7
        return Open("plain" if fresh and len(state.seen.plain) < 3 else "timestamped")
    chance, key = random.random(), random.choice(KEYS)
    old, old_on_disk = (older(each, state.open) for each in (state.seen, state.disk))
    new = state.seen.of(state.open)
    if state.both and old and random.random() < 0.6:
        key = random.choice(old)[0]
    if state.open == "plain" and random.random() < 0.5:
        key = random.choice([each for each in KEYS if each not in new] or KEYS)
    if state.both and state.seen == state.disk and old and not new and random.random() < 0.2:
        return Count()
    if state.both and old_on_disk != old and random.random() < 0.2:
        return Crash(random.random() < 0.5)
    if chance < 0.12 or (state.open == "plain" and len(new) > 2):
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


def older(contents: Contents, format: Format) -> Values:
    """What has the formats before this one."""
    return tuple(each for one in known_to(format)[1:] for each in getattr(contents, one))


def _range(random: Random) -> Range:
    first, last = sorted(random.choices(KEYS, k=2), key=bytes.fromhex)
    return Range(first, last)


def possible(state: State, event: Event) -> Event:
    """A store is opened once, and used while it is open; a range has its bounds in order, and a put a timestamp. What
    deletes has no headers.

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
        case Put(_, str(), None) | PutIfAbsent(_, _, None):
            return replace(event, timestamp=TIMESTAMPS[0])
        case Put(key, None, timestamp, headers) if timestamp is not None or headers:
            return Put(key, None)
        case Restore(_, None, _, headers) if headers:
            return replace(event, headers=NO_HEADERS)
        case _:
            return event


def possible_without_headers(state: State, event: Event) -> Event:
    """The same of a release whose stores have no headers."""
    match event:
        case Open("headers"):
            return possible(state, Open("timestamped"))
        case Put() | PutIfAbsent() | Restore() if event.headers:
            return possible(state, replace(event, headers=NO_HEADERS))
    return possible(state, event)


@cache
def lives(name: str) -> Conversations[State, Event]:
    """The lives of a store of an edition's release."""
    store = store_of(edition(name).release)
    return Conversations(
        store,
        OPERATIONS.step_of,
        OPERATIONS.event_of,
        events=nodes(Get, Put, Open, Range, Flush, Close, Crash, Delete, PutIfAbsent, Restore, Count),
        progress=frozenset({"store-open", "store-put", "store-get"}),
        max_steps=30,
        usual_steps=14,
        likely=likely_with_headers if store.has_headers else likely,
        possible=possible if store.has_headers else possible_without_headers,
        enabled_shares=(0.98, 0.9),
        near_shares=(0.0, 0.1),
    )


CONVERSATIONS = {OPERATIONS.machine: lives}
