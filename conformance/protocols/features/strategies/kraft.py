"""Updates of features in KRaft: clusters at any level, nodes of neighbouring releases, requests good and bad."""

from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Final, Literal

from kipcheck.conformance.core.files.releases_table import listed, span, table
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State
from kipcheck.conformance.protocols.features.model.kraft_brokers import KraftBrokers
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops import kraft as ops, kraft_brokers as brokers
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Integer, Node, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

EVERY: Final = (
    METADATA, "kraft.version", "transaction.version", "group.version", "eligible.leader.replicas.version",
    "share.version", "streams.version", "kip.check", "",
)  # fmt: skip
"""Names of features: some releases lack some of them, and all lack the last two."""
TYPES: Final = (ops.SAFE_DOWNGRADE, ops.SAFE_DOWNGRADE, ops.UNSAFE_DOWNGRADE, ops.UPGRADE, 0, 4, 99)
KINDS: Final[tuple[Literal["broker", "controller"], ...]] = ("broker", "controller")
REGISTERS: Final[int] = table()["feature-levels"]["registers-controllers"]
HIGH: Final = 40
"""Above every level of metadata.version."""


@dataclass(frozen=True, slots=True)
class Likely:
    """Draws requests that a controller of these rules accepts, or nearly."""

    rules: Rules

    def __call__(self, state: State, swarm: Swarm, random: Random) -> Step:
        return ops.OPERATIONS.step_of(self.event(state, swarm, random))

    def event(self, state: State, swarm: Swarm, random: Random) -> ops.Event:
        chance = random.random()
        fresh = state.epoch == 1 and not state.brokers and not state.controllers
        if chance < (0.4 if fresh else 0.02) and "kraft-format" in swarm.verbs:
            return self.format(random)
        if chance < (0.6 if fresh else 0.15) and "kraft-node" in swarm.verbs:
            return ops.DeclareNode(random.choice(KINDS), random.randint(1, 2), self.declared(state, random))
        silent = sorted({*state.quorum[1:]} - {number for number, _ in state.controllers})
        if silent and random.random() < 0.4:
            return ops.DeclareNode("controller", silent[0], self.declared(state, random))
        if "kraft-fail-over" in swarm.verbs and random.random() < 0.04:
            return ops.FailOver()
        return ops.ReadLevels() if random.random() < 0.4 else self.update(state, random)

    def format(self, random: Random) -> ops.Format:
        metadata = self.rules.supported[METADATA]
        least = max(metadata.low, self.rules.first_bootstrap)
        others = [name for name in self.rules.supported if name != METADATA]
        chosen = random.sample(others, random.randint(0, len(others)))
        levels = tuple(ops.Level(name, random.randint(0, self.rules.supported[name].high)) for name in chosen)
        quorum = random.choice(((), (), (1,), (1, 2)))
        # Other controllers count in another way below the level from which on they register.
        high = min(REGISTERS, metadata.high) if quorum and random.random() < 0.5 else metadata.high
        return ops.Format(random.randint(least, high), levels, quorum)

    def declared(self, state: State, random: Random) -> tuple[ops.Declared, ...] | None:
        """What a node of about this release supports, or one that supports what is finalized, and no more."""
        if random.random() < 0.15:
            return None
        if random.random() < 0.3:
            release = random.choice(listed("controllers"))
            return tuple(ops.Declared(name, *each) for name, each in Rules.of(release).declares())
        found, old = [], random.random() < (0.2 if state.level(METADATA) >= REGISTERS else 0.6)
        for name, own in self.rules.declares():
            if old and state.level(name) >= own.low:
                found.append(ops.Declared(name, own.low, state.level(name)))
                continue
            if random.random() < 0.95:
                low = min(own.low + random.choice((0, 0, 0, 0, 1)), own.high)
                found.append(ops.Declared(name, low, max(low, own.high + random.choice((0, 0, 0, 0, -1, -2, 1)))))
        return tuple(found)

    def update(self, state: State, random: Random) -> ops.KraftUpdate:
        updates = tuple(self.one(state, random) for _ in range(random.choice((1, 1, 1, 2, 3))))
        version = min(random.choice((0, 1, 1, 2, 2)), self.newest_version)
        return ops.KraftUpdate(version, updates, random.random() < 0.15)

    def one(self, state: State, random: Random) -> ops.TypedUpdate:
        supported = self.rules.supported
        likely = (*supported, METADATA, *(name for name, _ in state.levels))
        name = random.choice(EVERY) if random.random() < 0.1 else random.choice(likely)
        before = state.level(name)
        if name == METADATA and random.random() < 0.3:
            level = random.randint(supported[name].low - 1, supported[name].high + 1)
        elif name == METADATA:
            level = before + random.choice((-2, -1, -1, 0, 1, 1, 2))
        else:
            level = random.choice((-1, 0, 0, 1, 1, 1, 2, 3, *((before - 1,) * 4 if before else ())))
        usual, other = (ops.SAFE_DOWNGRADE, ops.UPGRADE) if level < before else (ops.UPGRADE, ops.SAFE_DOWNGRADE)
        kind = random.choices((usual, other, random.choice(TYPES)), (75, 13, 12))[0]
        return ops.TypedUpdate(name, level, kind)

    def possible(self, state: State, event: ops.Event) -> ops.Event:
        """A cluster is formatted once, with levels that it supports, and nodes declare ranges that a release can have.

        Anything else is replaced by a reading of the levels. A request has a version that the release knows.
        """
        match event:
            case ops.Format():
                fresh = state == KraftController(self.rules).initial()
                return event if fresh and self.can_format(event) else ops.ReadLevels()
            case ops.DeclareNode() if event.supported is not None:
                names = [each.feature for each in event.supported]
                well = all(each.feature and self.lowest <= each.low <= each.high for each in event.supported)
                return event if well and len({*names}) == len(names) else ops.ReadLevels()
            case ops.KraftUpdate():
                return replace(event, version=min(event.version, self.newest_version))
            case _:
                return event

    @property
    def newest_version(self) -> int:
        """Of UpdateFeatures."""
        return 2 if self.rules.all_or_nothing else 1

    @property
    def lowest(self) -> int:
        """The least level that a node can declare."""
        return 0 if Release.parse(self.rules.release) in releases(span("lowest-level-0")) else 1

    def can_format(self, event: ops.Format) -> bool:
        names = [METADATA, *(each.feature for each in event.levels)]
        numbers = [0, *event.controllers]
        return (
            event.level >= self.rules.first_bootstrap
            and all(
                each.feature in self.rules.supported and self.rules.supported[each.feature].holds(each.level)
                for each in (*event.levels, ops.Level(METADATA, event.level))
            )
            and len({*names}) == len(names)
            and len({*numbers}) == len(numbers)
        )


def declared() -> Node:
    """What a node declares, possible or not."""
    return Seq(record(feature=Pick(EVERY), low=Integer(0, HIGH), high=Integer(0, HIGH)), 0, 8)


def drawn() -> dict[str, Node]:
    """Fields whose values are records."""
    levels, names = Integer(-1, HIGH), Pick(EVERY)
    supported = declared()
    return {
        "level": Integer(1, HIGH),
        "levels": Seq(record(feature=names, level=Integer(0, 3)), 0, 8),
        "controllers": Seq(Integer(1, 2), 0, 2),
        "supported": OneOf((supported, Pick((None,)))),
        "updates": Seq(record(feature=names, level=levels, upgrade_type=Pick((1, 2, 3, 0, 4, 99))), 0, 3),
    }


@dataclass(frozen=True, slots=True)
class LikelyBrokers:
    """Draws brokers of neighbouring releases that register in clusters of any level."""

    updates: Likely

    def __call__(self, state: State, swarm: Swarm, random: Random) -> Step:
        return brokers.OPERATIONS.step_of(self.event(state, random))

    def event(self, state: State, random: Random) -> brokers.Event:
        chance = random.random()
        if chance < (0.7 if state == KraftController(self.updates.rules).initial() else 0.1):
            return self.updates.format(random)
        if chance < 0.8:
            return brokers.Register(random.randint(1, 2), self.updates.declared(state, random) or ())
        return brokers.AskPicture(random.choice((3, 4)))

    def possible(self, state: State, event: brokers.Event) -> brokers.Event:
        """Clusters are formatted with levels that they support, and brokers declare ranges that a release can have."""
        match event:
            case ops.Format():
                return event if self.updates.can_format(event) else brokers.AskPicture(3)
            case brokers.Register(number, supported):
                declared = ops.DeclareNode("broker", number, supported)
                return event if self.updates.possible(state, declared) == declared else brokers.AskPicture(3)
            case _:
                return event


@cache
def kraft_brokers(name: str) -> Conversations[State, brokers.Event]:
    """Conversations about registrations with the controller of an edition. Errors: ValueError where it has none."""
    rules = Rules.of(edition(name).release)
    likely = LikelyBrokers(Likely(rules))
    return Conversations(
        KraftBrokers(rules),
        brokers.OPERATIONS.step_of,
        brokers.OPERATIONS.event_of,
        events=nodes(brokers.AskPicture, brokers.FORMAT, brokers.Register, drawn={**drawn(), "supported": declared()}),
        progress=frozenset({"kraft-cluster", "kraft-register"}),
        max_steps=12,
        usual_steps=4,
        likely=likely,
        possible=likely.possible,
        enabled_shares=(0.98, 0.95),
        near_shares=(0.0, 0.1),
    )


@cache
def kraft_updates(name: str) -> Conversations[State, ops.Event]:
    """Conversations with the controller of an edition. Errors: ValueError where it has none."""
    rules = Rules.of(edition(name).release)
    likely = Likely(rules)
    return Conversations(
        KraftController(rules),
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=nodes(ops.ReadLevels, ops.KraftUpdate, ops.DeclareNode, ops.Format, ops.FailOver, drawn=drawn()),
        progress=frozenset({"kraft-update", "kraft-levels"}),
        max_steps=24,
        usual_steps=8,
        likely=likely,
        possible=likely.possible,
        enabled_shares=(0.98, 0.95),
        near_shares=(0.0, 0.1),
    )
