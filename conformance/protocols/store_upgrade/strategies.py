"""Upgrades of an application's stores: along one of the three paths, with records, kills, losses and wrong modes."""

from collections.abc import Iterator
from random import Random
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.store_upgrade import ops
from kipcheck.conformance.protocols.store_upgrade.model import StoreUpgrade
from kipcheck.conformance.protocols.store_upgrade.state import Instance, State
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

Stage: TypeAlias = tuple[ops.Code, str | None]
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
    return ops.OPERATIONS.step_of(_event(state, PATHS[swarm.traits], random))


def _event(state: State, path: dict[str, tuple[Stage, ...]], random: Random) -> ops.Event:
    """Joins and upgrades go on soon; in between tasks are processed, and instances fail."""
    live = state.live
    if not live:
        return _append(random) if random.random() < 0.2 else _started(state, path, random)
    if random.random() < 0.5 and ({each.name for each in live if not each.joined} or _gone(state)):
        return ops.Rebalance(random.choice(live).name)
    upgrades = [(each, task) for each in live for task in sorted(MACHINE.upgrades(each))]
    chance = random.random()
    if upgrades and chance < 0.3:
        instance, task = random.choice(upgrades)
        if MACHINE.swappable(state, instance, task):
            return random.choice(
                (ops.Swap(instance.name, task), ops.Swap(instance.name, task), ops.Kill(instance.name, task))
            )
        return ops.Replay(instance.name, task, random.choice((None, None, 1)))
    if chance < 0.65:
        return _service(state, random)
    if chance < 0.83:
        return _started(state, path, random)
    if chance < 0.93:
        return random.choice([*_failures(state, random)])
    others = (
        ops.ReadChangelog(random.choice(ops.TASKS)),
        _append(random),
        _converted(random),
        ops.Swap(live[0].name, 0),
    )
    return random.choice(others)


def _gone(state: State) -> bool:
    return any(each.joined and not each.live for each in state.instances)


def _started(state: State, path: dict[str, tuple[Stage, ...]], random: Random) -> ops.Event:
    """An instance is started, restarted, or started as the next stage; seldom with a mode that is wrong there."""
    name = random.choice([*path])
    had, stages = state.instance(name), path[name]
    metadata = 4 if name in "rs" or random.random() < 0.1 else 3
    if random.random() < 0.06:
        return ops.Start(name, "builder", random.choice((*ops.OTHER_MODES, "in_place", "roll_over", None)), metadata)
    at = stages.index((had.code, had.mode)) if _known(state, had) and (had.code, had.mode) in stages else None
    if at is None:
        code, mode = random.choice(stages[: max(1, len(stages) - 1)])
    else:
        code, mode = stages[min(at + (1 if random.random() < 0.8 else 0), len(stages) - 1)]
    return ops.Start(name, code, mode, metadata)


def _known(state: State, instance: Instance) -> bool:
    return instance in state.instances


def _service(state: State, random: Random) -> ops.Event:
    task, key = random.choice((0, 0, 0, 1, 1, 2)), random.choice(ops.KEYS)
    written = [(at, each.key) for at, log in enumerate(state.changelogs) for each in log]
    if written and random.random() < 0.5:
        return ops.Get(*random.choice(written))
    value, timestamp = random.choice(ops.VALUES), random.choice(ops.TIMESTAMPS)
    operator = random.choice(ops.OPERATORS)
    services: tuple[ops.Event, ...] = (
        ops.Put(task, key, value, timestamp, operator), ops.Put(task, key, value, timestamp, operator),
        ops.Put(task, key, None, timestamp), ops.PutIfAbsent(task, key, value, timestamp), ops.Get(task, key),
    )  # fmt: skip
    return random.choice(services)


def _append(random: Random) -> ops.Append:
    value = random.choice((*ops.VALUES, None))
    version = random.choice((1, 1, 2, 2, 2)) if random.random() < 0.97 else 3
    return ops.Append(random.choice(ops.TASKS), random.choice(ops.KEYS), value, random.choice(ops.TIMESTAMPS), version)


def _converted(random: Random) -> ops.Convert:
    return ops.Convert(
        random.choice((*ops.VALUES, None)), random.choice(ops.TIMESTAMPS), random.choice((1, 1, 2, 2, 3))
    )


def _failures(state: State, random: Random) -> Iterator[ops.Event]:
    for each in state.instances:
        if each.live:
            yield from (ops.Kill(each.name), ops.Stop(each.name))
        elif random.random() < 0.3:
            yield ops.Lose(each.name)


UPGRADES: Conversations[State, ops.Event] = Conversations(
    MACHINE,
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=nodes(
        ops.Start,
        ops.Rebalance,
        ops.Put,
        ops.Get,
        ops.Replay,
        ops.Swap,
        ops.Kill,
        ops.Stop,
        ops.Lose,
        ops.Append,
        ops.PutIfAbsent,
        ops.ReadChangelog,
        ops.Convert,
    ),
    progress=frozenset({"start-instance", "rebalance-tasks", "process-record", "query-store"}),
    max_steps=40,
    usual_steps=20,
    likely=likely,
    traits=_path,
    enabled_shares=(0.98, 0.9),
    near_shares=(0.0, 0.1),
)
CONVERSATIONS = {ops.OPERATIONS.machine: lambda edition: UPGRADES}
