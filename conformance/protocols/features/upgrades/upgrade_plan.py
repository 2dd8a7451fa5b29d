"""What an upgrade of releases lets features do, explored with the models of controllers.

The cluster has three nodes beside the leading controller, which is of the new release: two brokers and a controller.
They are restarted one by one, in every order, while the operator asks for every level at every moment.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final, Literal

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.release import Release, known_release
from kipcheck.conformance.machines.plain_search import explore
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_rules import KRAFT, METADATA, Rules
from kipcheck.conformance.protocols.features.model.ranges import Range
from kipcheck.conformance.protocols.features.ops import kraft as ops
from kipcheck.conformance.protocols.features.upgrades.ways_back import TOGETHER, By, as_run, by_rule

NODES: Final[tuple[tuple[Literal["broker", "controller"], int], ...]] = (
    ("broker", 1), ("broker", 2), ("controller", 1),
)  # fmt: skip
VERSION: Final = 1
"""Of UpdateFeatures."""


@dataclass(frozen=True, slots=True)
class Step:
    """A level that rises."""

    feature: str
    before: int
    after: int
    needs: str
    """What has to rise before; empty: nothing."""
    lowered: bool
    """Whether the controller lowers it again, by the safe type."""
    by: By
    """How the old release comes back after this step alone."""

    @property
    def undone(self) -> bool:
        """Whether the level is lowered, and the old release comes back then, at once or after a snapshot."""
        return self.lowered and self.by.leads_back


@dataclass(frozen=True, slots=True)
class Plan:
    old: str
    new: str
    steps: tuple[Step, ...]
    """In an order in which each is accepted."""
    early: tuple[str, ...]
    """The features that rise, in some order, while a node is still of the old release."""
    unguarded: str
    """The first level that is finalized although a node does not support it; empty: there is none in any order."""
    states: int
    transitions: int

    @property
    def unknown(self) -> bool:
        """Whether no run shows how the cluster goes back from the first step that leads to no way back, or from all."""
        first = next((each.by for each in self.steps if not each.by.leads_back), None)
        return first is By.NOT_RUN or not run_together(self.old, self.new, self.steps)


def run_together(old: str, new: str, steps: Iterable[Step]) -> bool:
    """Whether runs show the way back from all steps before the first without one. From one step, its own runs do."""
    undone = [*takewhile(lambda step: step.by.leads_back, steps)]
    return len(undone) < 2 or as_run(By.SNAPSHOT, old, new, TOGETHER) is By.SNAPSHOT


class Upgrade(KraftController):
    """The leading controller of a cluster that is upgraded. States do not count records."""

    def __init__(self, old: Rules, new: Rules) -> None:
        super().__init__(new)
        self.old = old

    def initial(self) -> State:
        levels = tuple(sorted((name, level) for name, level in self.old.defaults().items() if level))
        state = State(levels, quorum=(0, 1))
        for kind, number in NODES:
            state = self.declared(state, ops.DeclareNode(kind, number, declared(self.old)))
        return state

    def upgraded(self) -> State:
        """Every node is new, and no level was raised."""
        state = self.initial()
        for kind, number in NODES:
            state = self.declared(state, ops.DeclareNode(kind, number, declared(self.rules)))
        return state

    def step(self, state: State, event: ops.Event, /) -> Transition[State, ops.Action]:
        after, actions = super().step(state, event)
        return Transition(replace(after, epoch=1), actions)

    def enabled(self, state: State, /) -> Iterator[ops.Event]:
        for kind, number in NODES:
            yield ops.DeclareNode(kind, number, declared(self.rules))
        for name, level in target(self.rules).items():
            yield requested(name, level)


def declared(rules: Rules) -> tuple[ops.Declared, ...]:
    """What a node declares to a controller."""
    return tuple(ops.Declared(name, *span) for name, span in rules.declares())


def levels(release: str) -> dict[str, int]:
    """The finalized levels of a new cluster of a release, without those that are 0. Errors: LookupError."""
    return {name: level for name, level in _rules(release).defaults().items() if level}


def target(rules: Rules) -> dict[str, int]:
    """The levels at which an upgrade ends: those of a new cluster, and the highest kraft.version."""
    found = rules.defaults()
    if rules.kraft_version_in_quorum:
        found[KRAFT] = rules.supported[KRAFT].high
    return found


def requested(name: str, level: int, upgrade_type: int = ops.UPGRADE) -> ops.KraftUpdate:
    return ops.KraftUpdate(VERSION, (ops.TypedUpdate(name, level, upgrade_type),))


def plan(old: str, new: str) -> Plan:
    """Errors: LookupError for releases that are unknown, have no such controllers, or are in the wrong order."""
    first, last = _rules(old), _rules(new)
    if Release.parse(old) > Release.parse(new):
        raise LookupError(f"{old} is newer than {new}: a plan leads to a newer release")
    machine = Upgrade(first, last)
    rolled = machine.upgraded()
    states, transitions, early, unguarded = {machine.initial()}, 0, set[str](), ""
    for path, before, _, after in explore(machine, lambda state: True):
        transitions += 1
        states.add(after)
        mixed = (before.brokers, before.controllers) != (rolled.brokers, rolled.controllers)
        if mixed and isinstance(path[-1], ops.KraftUpdate) and before.levels != after.levels:
            early.add(path[-1].updates[0].feature)
        unguarded = unguarded or unfit(after)
    steps = tuple(_steps(machine, rolled))
    return Plan(old, new, steps, tuple(sorted(early)), unguarded, len(states), transitions)


def _rules(release: str) -> Rules:
    try:
        return Rules.of(str(known_release(release)))
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None


def unfit(state: State) -> str:
    """A finalized level that a node does not support; empty if there is none."""
    disabled = Range(0, 0)
    for kind, nodes in (("broker", state.brokers), ("controller", state.controllers)):
        for number, supported in nodes:
            for name, level in state.levels:
                own = dict(supported).get(name, disabled)
                if not own.holds(level):
                    return f"{name} {level} with {kind} {number}, which supports {own}"
    return ""


def _steps(machine: Upgrade, state: State) -> Iterator[Step]:
    """One accepted update after another: a feature that is refused waits for those after it."""
    wanted = {name: level for name, level in target(machine.rules).items() if state.level(name) < level}
    rank = sorted(wanted, key=lambda name: (name == KRAFT, name != METADATA, name))
    while rank:
        for name in rank:
            after = machine.step(state, requested(name, wanted[name])).state
            if after.level(name) == wanted[name]:
                break
        else:
            return  # the controller refuses the rest
        rank.remove(name)
        lowered = machine.step(after, requested(name, state.level(name), ops.SAFE_DOWNGRADE)).state
        least = machine.rules.needs.get((name, wanted[name]), 0)
        needs = f"{METADATA} {least}" if least > machine.old.newest else ""
        yield _step(machine, name, state.level(name), wanted[name], needs, lowered.level(name) == state.level(name))
        state = after


def _step(machine: Upgrade, feature: str, before: int, after: int, needs: str, lowered: bool) -> Step:
    old, new = machine.old, machine.rules
    rule = By.IMPOSSIBLE if needs else by_rule(old, old.defaults(), feature, after, lowered)
    return Step(feature, before, after, needs, lowered, as_run(rule, old.release, new.release, feature))
