"""Lives of a store: written without timestamps, upgraded, read, killed, and restored."""

from dataclasses import replace
from functools import cache
from random import Random

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.protocols.stores import ops
from kipcheck.conformance.protocols.stores.model import Contents, State, Values, known_to, store_of
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

ENDS_AND_MAINTENANCE = (ops.Flush(), ops.Flush(), ops.Close(), ops.Crash(), ops.Crash(flushing=True))


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    return ops.OPERATIONS.step_of(_event(state, random))


def likely_with_headers(state: State, swarm: Swarm, random: Random) -> Step:
    """Of a release whose stores may have headers, about half of them do; an older one then rarely tries to open it.

    One with two older formats is closed early, and tried with headers, before its old values are moved.
    """
    event = _event(state, random)
    chance = random.random()
    if state.both and state.seen == state.disk and chance < 0.1:
        return ops.OPERATIONS.step_of(ops.Count())
    if state.open == "timestamped" and _mixed(state) and chance > 0.88:
        return ops.OPERATIONS.step_of(ops.Close())
    match event:
        case ops.Open() if "headers" in state.families:
            return ops.OPERATIONS.step_of(event if chance < (0.7 if _mixed(state) else 0.1) else ops.Open("headers"))
        case ops.Open("timestamped") if chance < (0.4 if _mixed(state) else 0.5):
            return ops.OPERATIONS.step_of(ops.Open("headers"))
        case ops.Put(_, str()) | ops.PutIfAbsent() | ops.Restore(_, str()) if chance < (
            0.7 if state.open == "headers" else 0.1
        ):
            return ops.OPERATIONS.step_of(replace(event, headers=random.choice(ops.HEADERS[1:])))
    return ops.OPERATIONS.step_of(event)


def _mixed(state: State) -> bool:
    """Whether a store with headers refuses the directory, which no store opens from then on."""
    return "timestamped" in state.families and bool(state.seen.plain)


def _event(state: State, random: Random) -> ops.Event:
    """A store begins without timestamps, often; an open one is written and read about as often, and old values first.

    Old keys are written once, often, and counted before anything moves: else the count need not be exact. A store is
    killed while a value that it moved is in memory alone.
    """
    if state.open is None:
        fresh = state.families == {"plain"} and random.random() < 0.7
        return ops.Open("plain" if fresh and len(state.seen.plain) < 3 else "timestamped")
    chance, key = random.random(), random.choice(ops.KEYS)
    old, old_on_disk = (older(each, state.open) for each in (state.seen, state.disk))
    new = state.seen.of(state.open)
    if state.both and old and random.random() < 0.6:
        key = random.choice(old)[0]
    if state.open == "plain" and random.random() < 0.5:
        key = random.choice([each for each in ops.KEYS if each not in new] or ops.KEYS)
    if state.both and state.seen == state.disk and old and not new and random.random() < 0.2:
        return ops.Count()
    if state.both and old_on_disk != old and random.random() < 0.2:
        return ops.Crash(random.random() < 0.5)
    if chance < 0.12 or (state.open == "plain" and len(new) > 2):
        return random.choice(ENDS_AND_MAINTENANCE)
    if chance < 0.45:
        return random.choice((ops.Get(key), ops.Get(key), ops.Range(), ops.Range(), _range(random), ops.Count()))
    value, timestamp = random.choice(ops.VALUES), random.choice(ops.TIMESTAMPS)
    writes: tuple[ops.Event, ...] = (
        ops.Put(key, value, timestamp), ops.Put(key, value, timestamp), ops.Put(key, value, timestamp), ops.Put(key,
        None),
        ops.Delete(key), ops.PutIfAbsent(key, value, timestamp), ops.PutIfAbsent(key, value, timestamp),
        ops.Restore(key, value, timestamp), ops.Restore(key, None, timestamp),
    )  # fmt: skip
    return random.choice(writes)


def older(contents: Contents, format: ops.Format) -> Values:
    """What has the formats before this one."""
    return tuple(each for one in known_to(format)[1:] for each in getattr(contents, one))


def _range(random: Random) -> ops.Range:
    first, last = sorted(random.choices(ops.KEYS, k=2), key=bytes.fromhex)
    return ops.Range(first, last)


def possible(state: State, event: ops.Event) -> ops.Event:
    """A store is opened once, and used while it is open; a range has its bounds in order, and a put a timestamp. What
    deletes has no headers.

    An event that cannot happen is replaced.
    """
    if state.open is None:
        return event if isinstance(event, ops.Open) else ops.Open("timestamped")
    match event:
        case ops.Open():
            return ops.Close()
        case ops.Range(first, last) if (first is None) != (last is None) or (
            first is not None and last is not None and bytes.fromhex(first) > bytes.fromhex(last)
        ):
            return ops.Range()
        case ops.Put(_, str(), None) | ops.PutIfAbsent(_, _, None):
            return replace(event, timestamp=ops.TIMESTAMPS[0])
        case ops.Put(key, None, timestamp, headers) if timestamp is not None or headers:
            return ops.Put(key, None)
        case ops.Restore(_, None, _, headers) if headers:
            return replace(event, headers=ops.NO_HEADERS)
        case _:
            return event


def possible_without_headers(state: State, event: ops.Event) -> ops.Event:
    """The same of a release whose stores have no headers."""
    match event:
        case ops.Open("headers"):
            return possible(state, ops.Open("timestamped"))
        case ops.Put() | ops.PutIfAbsent() | ops.Restore() if event.headers:
            return possible(state, replace(event, headers=ops.NO_HEADERS))
    return possible(state, event)


@cache
def lives(name: str) -> Conversations[State, ops.Event]:
    """The lives of a store of an edition's release."""
    store = store_of(edition(name).release)
    return Conversations(
        store,
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=nodes(
            ops.Get,
            ops.Put,
            ops.Open,
            ops.Range,
            ops.Flush,
            ops.Close,
            ops.Crash,
            ops.Delete,
            ops.PutIfAbsent,
            ops.Restore,
            ops.Count,
        ),
        progress=frozenset({"store-open", "store-put", "store-get"}),
        max_steps=30,
        usual_steps=14,
        likely=likely_with_headers if store.has_headers else likely,
        possible=possible if store.has_headers else possible_without_headers,
        enabled_shares=(0.98, 0.9),
        near_shares=(0.0, 0.1),
    )


CONVERSATIONS = {ops.OPERATIONS.machine: lives}
