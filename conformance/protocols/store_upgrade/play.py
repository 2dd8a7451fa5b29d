"""Declares the model ``store-upgrade``: an application whose stores are upgraded as KIP-258's draft has it."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.edition import KIP_258, Edition
from kipcheck.conformance.protocols.declare.play import Bound, Conversation, Playable, Product, Scope, verbs
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.store_upgrade import ops
from kipcheck.conformance.protocols.store_upgrade.laws import LAWS
from kipcheck.conformance.protocols.store_upgrade.model import StoreUpgrade
from kipcheck.conformance.protocols.store_upgrade.state import State
from kipcheck.conformance.protocols.store_upgrade.strategies import PATHS, Stage


def _stages(scope: Scope) -> dict[str, tuple[Stage, ...]]:
    """What each instance is started as, in order; a roll-over has as many new instances as old ones."""
    found = PATHS[scope["path"]]
    names = [each for kind in ("ab", "rs") for each in [name for name in found if name in kind][: scope["instances"]]]
    stages = {name: tuple(each for each in found[name] if each[0] != "timestamped") for name in names}
    if scope["path"] == "roll-over":
        return {name: each[:2] for name, each in stages.items()}
    return stages


def _events(state: State, scope: Scope, stages: dict[str, tuple[Stage, ...]]) -> Iterator[ops.Event]:
    """Starts and restarts go along the path; kills and records are limited."""
    tasks = ops.TASKS[: scope["tasks"]]
    for name, own in stages.items():
        had = state.instance(name)
        ran = had in state.instances
        at = own.index((had.code, had.mode)) if ran else -1
        if not had.live and ran:
            yield ops.Start(name, *own[at], metadata=4 if name in "rs" else 3)
        if at + 1 < len(own):
            yield ops.Start(name, *own[at + 1], metadata=4 if name in "rs" else 3)
        if had.live:
            if scope["path"] == "roll-over":
                yield ops.Stop(name)
            if state.kills < scope["crashes"]:
                yield ops.Kill(name)
                yield from (ops.Kill(name, task) for task in tasks)
            for task in tasks:
                yield ops.Replay(name, task)
                yield ops.Swap(name, task)
    if any(not each.joined for each in state.live) or any(each.joined and not each.live for each in state.instances):
        yield from (ops.Rebalance(each.name) for each in state.live)
    for task in tasks:
        if len(state.changelogs[task]) < scope["records"]:
            yield ops.Put(task, ops.KEYS[0], ops.VALUES[len(state.changelogs[task])], 5)


def _product(edition: Edition, scope: Scope) -> Product:
    stages = _stages(scope)
    machine = StoreUpgrade(ops.TASKS[: scope["tasks"]])
    return SingleMachine(
        "application",
        machine,
        within=lambda state: True,
        tried=lambda state: tuple(each for each in _events(state, scope, stages) if machine.accepts(state, each)),
        step_of=ops.OPERATIONS.step_of,
        shorthand=ops.OPERATIONS.shorthand,
        laws=LAWS,
    )


PLAYABLES = (
    Playable(
        name="store-upgrade",
        about="an application whose stores get timestamps as in KIP-258's draft: in place, offline or by roll-over",
        editions=lambda edition: None if edition == KIP_258 else str(KIP_258),
        world=_product,
        verbs=verbs(ops.OPERATIONS),
        conversation=lambda edition: Conversation(
            "application", StoreUpgrade(), ops.OPERATIONS.event_of, ops.OPERATIONS.parse_shorthand
        ),
        dials={
            "path": Bound("in-place", "upgrade path", tuple(PATHS)),
            "instances": Bound(2, "number of instances; of the roll-over, of each kind", (1, 2)),
            "tasks": Bound(1, "number of tasks; the third one is in memory", (1, 2, 3)),
            "records": Bound(2, "number of records of a task", (1, 2, 3)),
            "crashes": Bound(1, "number of kills", (0, 1, 2)),
        },
    ),
)
