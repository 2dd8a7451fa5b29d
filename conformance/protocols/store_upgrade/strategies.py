"""Upgrades of an application's stores: along one of the three paths, with records, kills, losses and wrong modes."""

from collections.abc import Iterator
from random import Random
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.store_upgrade.model import StoreUpgrade
from kipcheck.conformance.protocols.store_upgrade.ops import (
    KEYS,
    OPERATIONS,
    OPERATORS,
    OTHER_MODES,
    TASKS,
    TIMESTAMPS,
    VALUES,
    Append,
    Code,
    Convert,
    Event,
    Get,
    Kill,
    Lose,
    Put,
    PutIfAbsent,
    ReadChangelog,
    Rebalance,
    Replay,
    Start,
    Stop,
    Swap,
)
from kipcheck.conformance.protocols.store_upgrade.state import Instance, State
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

Stage: TypeAlias = tuple[Code, str | None]
BUILDER: Final[Stage] = ("builder", None)
PLAIN: Final[tuple[Stage, ...]] = (("old", None), ("plain", None))
ROLL_OVER: Final[Stage] = ("builder", "roll_over")
PATHS: Final[dict[str, dict[str, tuple[Stage, ...]]]] = {
    "in-place": {each: (*PLAIN, ("builder", "in_place"), BUILDER, ("timestamped", None)) for each in "ab"},
    "offline": {each: (*PLAIN, BUILDER, ("timestamped", None)) for each in "ab"},
    "roll-over": {
        **{each: (*PLAIN, BUILDER) for each in "ab"}, **{each: (ROLL_OVER, BUILDER) for each in "rs"},
    },
}  # fmt: skip
"""Path -> instance -> what it is started as, in order. The first ones may be left out."""
MACHINE: Final = StoreUpgrade()


def _path(random: Random) -> str:
    return random.choice([*PATHS])


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    return OPERATIONS.step_of(_event(state, PATHS[swarm.traits], random))


def _event(state: State, path: dict[str, tuple[Stage, ...]], random: Random) -> Event:
    """Joins and upgrades go on soon; in between tasks are processed, and instances fail."""
    live = state.live
    if not live:
        return _append(random) if random.random() < 0.2 else _started(state, path, random)
    if random.random() < 0.5 and ({each.name for each in live if not each.joined} or _gone(state)):
        return Rebalance(random.choice(live).name)
    upgrades = [(each, task) for each in live for task in sorted(MACHINE.upgrades(each))]
    chance = random.random()
    if upgrades and chance < 0.3:
        instance, task = random.choice(upgrades)
        if MACHINE.swappable(state, instance, task):
            return random.choice((Swap(instance.name, task), Swap(instance.name, task), Kill(instance.name, task)))
        return Replay(instance.name, task, random.choice((None, None, 1)))
    if chance < 0.65:
        return _service(state, random)
    if chance < 0.83:
        return _started(state, path, random)
    if chance < 0.93:
        return random.choice([*_failures(state, random)])
    others = (ReadChangelog(random.choice(TASKS)), _append(random), _converted(random), Swap(live[0].name, 0))
    return random.choice(others)


def _gone(state: State) -> bool:
    return any(each.joined and not each.live for each in state.instances)


def _started(state: State, path: dict[str, tuple[Stage, ...]], random: Random) -> Event:
    """An instance is started, restarted, or started as the next stage; seldom with a mode that is wrong there."""
    name = random.choice([*path])
    had, stages = state.instance(name), path[name]
    metadata = 4 if name in "rs" or random.random() < 0.1 else 3
    if random.random() < 0.06:
        return Start(name, "builder", random.choice((*OTHER_MODES, "in_place", "roll_over", None)), metadata)
    at = stages.index((had.code, had.mode)) if _known(state, had) and (had.code, had.mode) in stages else None
    if at is None:
        code, mode = random.choice(stages[: max(1, len(stages) - 1)])
    else:
        code, mode = stages[min(at + (1 if random.random() < 0.8 else 0), len(stages) - 1)]
    return Start(name, code, mode, metadata)


def _known(state: State, instance: Instance) -> bool:
    return instance in state.instances


def _service(state: State, random: Random) -> Event:
    task, key = random.choice((0, 0, 0, 1, 1, 2)), random.choice(KEYS)
    written = [(at, each.key) for at, log in enumerate(state.changelogs) for each in log]
    if written and random.random() < 0.5:
        return Get(*random.choice(written))
    value, timestamp = random.choice(VALUES), random.choice(TIMESTAMPS)
    operator = random.choice(OPERATORS)
    services: tuple[Event, ...] = (
        Put(task, key, value, timestamp, operator), Put(task, key, value, timestamp, operator),
        Put(task, key, None, timestamp), PutIfAbsent(task, key, value, timestamp), Get(task, key),
    )  # fmt: skip
    return random.choice(services)


def _append(random: Random) -> Append:
    value = random.choice((*VALUES, None))
    version = random.choice((1, 1, 2, 2, 2)) if random.random() < 0.97 else 3
    return Append(random.choice(TASKS), random.choice(KEYS), value, random.choice(TIMESTAMPS), version)


def _converted(random: Random) -> Convert:
    return Convert(random.choice((*VALUES, None)), random.choice(TIMESTAMPS), random.choice((1, 1, 2, 2, 3)))


def _failures(state: State, random: Random) -> Iterator[Event]:
    for each in state.instances:
        if each.live:
            yield from (Kill(each.name), Stop(each.name))
        elif random.random() < 0.3:
            yield Lose(each.name)


UPGRADES: Conversations[State, Event] = Conversations(
    MACHINE,
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(
        Start, Rebalance, Put, Get, Replay, Swap, Kill, Stop, Lose, Append, PutIfAbsent, ReadChangelog, Convert
    ),
    progress=frozenset({"start-instance", "rebalance-tasks", "process-record", "query-store"}),
    max_steps=40,
    usual_steps=20,
    likely=likely,
    traits=_path,
    enabled_shares=(0.98, 0.9),
    near_shares=(0.0, 0.1),
)
CONVERSATIONS = {OPERATIONS.machine: lambda edition: UPGRADES}
