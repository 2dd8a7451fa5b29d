"""Commands of Kafka's own tool for operators: levels that a cluster takes and refuses, and options that do not fit."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final, Literal

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import Edition, edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.features.model.commands import FeatureCommands
from kipcheck.conformance.protocols.features.model.kraft import State
from kipcheck.conformance.protocols.features.model.kraft_rules import FIRST, METADATA, Rules
from kipcheck.conformance.protocols.features.ops import commands as ops
from kipcheck.conformance.protocols.features.ops.kraft import Level
from kipcheck.conformance.protocols.features.strategies.kraft import EVERY
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Integer, Node, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

UNKNOWN: Final = "kip.check"
HIGHEST: Final = 120
UNKNOWN_LEVELS: Final = 60
"""So far above the highest level, no tool knows a name."""
BEFORE: Final = (
    "command levels; command describe; command levels; command upgrade-all; command levels; command downgrade-all dry",
    "command levels; command upgrade kip.check:1; command levels; command mapping; command disable x; command levels",
)
"""What releases before 3.3.0 are asked."""


def rules_of(found: Edition) -> Rules | None:
    """None: the release has no controller in KRaft."""
    return Rules.of_edition(found) if Release.parse(found.release) >= FIRST else None


def given(subject: Subject) -> Iterator[Conversation]:
    """The commands of the release, each where it has to be done and where it has to be refused."""
    rules = rules_of(edition(subject.edition))
    for each in BEFORE if rules is None else _texts(rules):
        yield Conversation(tuple(ops.OPERATIONS.parse_shorthand(each)))


def _texts(rules: Rules) -> Iterator[str]:
    newest, unknown = rules.newest, rules.newest + UNKNOWN_LEVELS
    yield _read(
        "describe", f"upgrade metadata.version:{newest}", f"downgrade metadata.version:{newest - 1} dry",
        f"downgrade metadata.version:{newest - 1}", f"upgrade metadata {newest}", "describe",
    )  # fmt: skip
    yield _read(
        f"upgrade metadata.version:{newest + 1}", f"upgrade {UNKNOWN}:1",
        f"upgrade {UNKNOWN}:1,metadata.version:{newest}",
        "disable metadata.version", "upgrade", "downgrade metadata.version:1 unsafe", f"upgrade metadata {unknown}",
    )  # fmt: skip
    if not rules.all_or_nothing:
        yield _read("mapping", "needs metadata.version:7", f"upgrade release {newest}", "upgrade-all")
        return
    yield _read(
        "disable group.version dry", "disable group.version", "upgrade group.version:1",
        "downgrade transaction.version:1 unsafe", "upgrade transaction.version:2", "upgrade transaction.version:1",
        "downgrade group.version:1", f"disable group.version,{UNKNOWN}", "disable group.version,group.version",
        "upgrade group.version:1 unsafe", "upgrade group.version:0", f"upgrade group.version:1 metadata {newest}",
    )  # fmt: skip
    yield _read(
        "mapping", f"mapping {newest - 1}", f"downgrade release {newest - 1} dry", f"downgrade release {newest - 1}",
        f"mapping {newest}", f"upgrade release {newest}",
    )  # fmt: skip
    yield _read(
        "needs eligible.leader.replicas.version:1,group.version:1,transaction.version:2", f"needs {UNKNOWN}:1",
        "needs group.version:7", f"mapping {unknown}",
        f"upgrade metadata.version:{newest} release {newest}", "upgrade-all",
    )  # fmt: skip


def _read(*commands: str) -> str:
    """The commands, and a reading of the levels before and after each."""
    return "; ".join(("command levels", *(f"command {each}; command levels" for each in commands)))


@dataclass(frozen=True, slots=True)
class Likely:
    """Draws commands that the tool takes, or nearly, and readings between them."""

    rules: Rules

    def __call__(self, state: State, swarm: Swarm, random: Random) -> Step:
        return ops.OPERATIONS.step_of(self.event(state, swarm, random))

    def event(self, state: State, swarm: Swarm, random: Random) -> ops.Event:
        chance = random.random()
        if chance < 0.5:
            return ops.CommandLevels()
        dry = random.random() < 0.25
        if chance < 0.6:
            names = random.sample((*self.rules.supported, UNKNOWN), random.choice((0, 1, 1, 1, 2)))
            return ops.CommandDisable(tuple(names), random.random() < 0.2, dry)
        if chance < 0.65:
            return ops.CommandDescribe()
        known = (*range(self.rules.newest - 3, self.rules.newest + 1), self.rules.newest + UNKNOWN_LEVELS)
        if chance < 0.7:
            return ops.CommandMap(random.choice((None, *known)))
        if chance < 0.73:
            return ops.CommandDepends(self.levels(state, random))
        command: Literal["upgrade", "downgrade"] = random.choice(("upgrade", "downgrade"))
        unsafe = command == "downgrade" and random.random() < 0.3
        if chance < 0.78:
            return ops.CommandChange(command, release=random.choice(known), dry_run=dry)
        if chance < 0.83:
            return ops.CommandChange(command, metadata=random.choice(known), unsafe=unsafe, dry_run=dry)
        return ops.CommandChange(command, self.levels(state, random), unsafe=unsafe, dry_run=dry)

    def levels(self, state: State, random: Random) -> tuple[Level, ...]:
        names = (*self.rules.supported, METADATA, METADATA)
        found = []
        for _ in range(random.choice((0, 1, 1, 1, 1, 2))):
            name = UNKNOWN if random.random() < 0.1 else random.choice(names)
            before = state.level(name)
            found.append(Level(name, max(0, before + random.choice((-2, -1, -1, 0, 1, 1, 2)))))
        return tuple(found)


class _Before:
    """Draws commands of any release for one from before 3.3.0."""

    def __call__(self, state: State, swarm: Swarm, random: Random) -> Step:
        events: tuple[ops.Event, ...] = (
            ops.CommandLevels(), ops.CommandLevels(), ops.CommandDescribe(), ops.CommandAll("upgrade-all"),
            ops.CommandAll("downgrade-all", dry_run=True), ops.CommandChange("upgrade", (Level(UNKNOWN, 1),)),
        )  # fmt: skip
        return ops.OPERATIONS.step_of(random.choice(events))


@cache
def feature_commands(name: str) -> Conversations[State, ops.Event]:
    """Conversations with the tool of an edition."""
    rules = rules_of(edition(name))
    names = Pick(tuple(name for name in EVERY if name))
    level = record(feature=names, level=Integer(0, HIGHEST))
    drawn: dict[str, Node] = {
        "features": Seq(level, 0, 2),
        "metadata": OneOf((Pick((None,)), Integer(1, HIGHEST))),
        "release": OneOf((Pick((None,)), Integer(1, HIGHEST))),
    }
    named: dict[str, Node] = {**drawn, "features": Seq(names, 0, 2)}
    return Conversations(
        FeatureCommands(rules),
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events={
            **nodes(
                ops.CommandLevels,
                ops.CommandDescribe,
                ops.CommandChange,
                ops.CommandAll,
                ops.CommandMap,
                ops.CommandDepends,
                drawn=drawn,
            ),
            **nodes(ops.CommandDisable, drawn=named),
        },
        progress=frozenset({"command-change", "command-levels"}),
        max_steps=16,
        usual_steps=6,
        likely=_Before() if rules is None else Likely(rules),
        enabled_shares=(0.98, 0.95),
        near_shares=(0.0, 0.1),
    )
