"""Updates in a quorum of three controllers: some pause or are killed before an update, during it, or after."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.declare.check import Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.model.quorum import KraftQuorum, State
from kipcheck.conformance.protocols.features.ops import quorum as ops
from kipcheck.conformance.protocols.features.ops.kraft import UPGRADE, Level, TypedUpdate
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.nodes import Integer, Node, OneOf, Pick, Seq, record
from kipcheck.strategies.operations import nodes

GROUP, TRANSACTION = "group.version", "transaction.version"
CUT: Final = (
    "views; pause followers; send {first}; kill leader; resume; views; await; start; views; send {second}; views"
)
"""The leader is killed when it has an update in its log that no follower has."""
LONGEST_LOG: Final = (
    "views; pause followers; send {first}; await; kill follower; resume; views; start; views; send {second}; views"
)
"""Only the leader has an update that was not acknowledged, and only it can lead with the follower that goes on."""
RESUMED: Final = "views; pause followers; send {first}; resume; await; views; send {second}; views"
"""The followers come back while the leader waits for them."""
ACKNOWLEDGED: Final = (
    "views; send {first}; kill leader; views; send {second}; views; start; views; snapshot; kill all; start; views"
)
LAGGING: Final = "views; pause follower; send {first}; kill leader; resume; views; send {second}; start; views"
"""A follower that has read nothing of an update is one of the two that go on."""


def given(subject: Subject) -> Iterator[Conversation]:
    """Each way in which nodes end or pause around an update."""
    rules = Rules.of_edition(edition(subject.edition))
    start, first, second = _plan(rules)
    for each in (CUT, LONGEST_LOG, ACKNOWLEDGED, LAGGING, RESUMED):
        yield _conversation(f"{start}; {each.format(first=first, second=second)}")
    if (older := _older(rules)) is not None:
        release, level = older
        if _asks_others(rules, level - 1):
            yield _conversation(
                f"quorum {level - 1} beside {release}; views; send metadata.version:{level + 1}; views; "
                f"send metadata.version:{level}; views"
            )


def _conversation(text: str) -> Conversation:
    return Conversation(tuple(ops.OPERATIONS.parse_shorthand(text)))


def _plan(rules: Rules) -> tuple[str, str, str]:
    """A new cluster, and two updates of it."""
    if GROUP in rules.supported:
        return f"quorum {rules.newest}", f"{GROUP}:1,{TRANSACTION}:1", f"{TRANSACTION}:2"
    level = max(rules.first_bootstrap, rules.newest - 2)
    return f"quorum {level}", f"{METADATA}:{level + 1}", f"{METADATA}:{level + 2}"


def _older(rules: Rules) -> tuple[str, int] | None:
    """The release before this one whose highest metadata.version is lower, and that level."""
    for release in reversed(listed("controllers")):
        other = Rules.of(release)
        if Release.parse(release) < Release.parse(rules.release) and other.newest < rules.newest:
            return (release, other.newest) if other.newest > rules.first_bootstrap else None
    return None


def _asks_others(rules: Rules, level: int) -> bool:
    """Whether a leader knows what the other controllers support: from 3.7 on not at levels without registrations,
    where ``kraft-features/asks-unregistered`` describes what is finalized (584-77).
    """
    return not rules.registered_controllers or rules.registers_controllers(level)


@dataclass(frozen=True, slots=True)
class Likely:
    """Draws updates that are applied, and what happens to nodes around them."""

    rules: Rules

    def __call__(self, state: State, swarm: Swarm, random: Random) -> Step:
        return ops.OPERATIONS.step_of(self.event(state, random))

    def event(self, state: State, random: Random) -> ops.Event:
        if state == KraftQuorum(self.rules).initial() and random.random() < 0.7:
            return self.format(random)
        chance = random.random()
        if chance < 0.3:
            return ops.QuorumRead()
        if chance < 0.52:
            return ops.QuorumSend(self.updates(state, random))
        if state.pending is not None and chance < 0.62:
            return ops.QuorumAwait()
        if state.killed and chance < 0.75:
            return ops.QuorumStart()
        if state.paused and chance < 0.85:
            return ops.QuorumResume()
        if chance < 0.9:
            return ops.QuorumKill(random.choice(("leader", "leader", "follower", "followers", "all")))
        if chance < 0.93:
            return ops.QuorumSnapshot()
        return ops.QuorumPause(random.choice(("followers", "followers", "follower", "leader")))

    def format(self, random: Random) -> ops.QuorumFormat:
        newest, least = self.rules.newest, self.rules.first_bootstrap
        if random.random() < 0.15 and (older := _older(self.rules)) is not None:
            release, level = older
            beside = ops.QuorumFormat(random.randint(max(least, level - 2), level), (), release)
            return beside if self.can_be_beside(beside) else ops.QuorumFormat(newest)
        level = newest if GROUP in self.rules.supported and random.random() < 0.8 else random.randint(least, newest)
        names = [name for name in self.rules.supported if name not in (METADATA, "kraft.version")]
        chosen = random.sample(names, random.randint(0, min(2, len(names)))) if level == newest else []
        return ops.QuorumFormat(level, tuple(Level(name, self.rules.supported[name].high) for name in sorted(chosen)))

    def updates(self, state: State, random: Random) -> tuple[TypedUpdate, ...]:
        """Mostly legal: two features, or the next level of one."""
        names = [name for name in self.rules.supported if name not in (METADATA, "kraft.version")]
        low = [name for name in names if state.cluster.level(name) < self.rules.supported[name].high]
        metadata = state.cluster.level(METADATA)
        if low and metadata == self.rules.newest and random.random() < 0.85:
            chosen = random.sample(low, min(len(low), random.choice((1, 2, 2))))
            return tuple(TypedUpdate(name, state.cluster.level(name) + 1, UPGRADE) for name in sorted(chosen))
        return (TypedUpdate(METADATA, metadata + random.choice((1, 1, 1, 2)), UPGRADE),)

    def possible(self, state: State, event: ops.Event) -> ops.Event:
        """A cluster has levels that it supports, features are named once, and updates wait for each other."""
        match event:
            case ops.QuorumFormat():
                return event if self.can_format(event) else ops.QuorumRead()
            case ops.QuorumSend(updates):
                once = len({each.feature for each in updates}) == len(updates) > 0
                return event if once and state.pending is None else ops.QuorumRead()
            case _:
                return event

    def can_format(self, event: ops.QuorumFormat) -> bool:
        supported = self.rules.supported
        levels = [Level(METADATA, event.level), *event.levels]
        fits = all(each.feature in supported and supported[each.feature].holds(each.level) for each in levels)
        once = len({each.feature for each in levels}) == len(levels)
        bounded = event.level >= self.rules.first_bootstrap and not any(e.feature == "kraft.version" for e in levels)
        return fits and once and bounded and self.can_be_beside(event)

    def can_be_beside(self, event: ops.QuorumFormat) -> bool:
        older = _older(self.rules)
        if event.beside is None:
            return True
        fits = older is not None and event.beside == older[0] and event.level <= older[1]
        return fits and _asks_others(self.rules, event.level)


@cache
def kraft_quorums(name: str) -> Conversations[State, ops.Event]:
    """Conversations with a quorum of an edition. Errors: ValueError where it has none."""
    rules = Rules.of_edition(edition(name))
    likely = Likely(rules)
    names: Sequence[str] = (*rules.supported, "kip.check")
    older = _older(rules)
    drawn: dict[str, Node] = {
        "level": Integer(1, 40),
        "levels": Seq(record(feature=Pick(tuple(names)), level=Integer(0, 3)), 0, 3),
        "beside": Pick((None,) if older is None else (None, older[0])),
        "updates": Seq(record(feature=Pick(tuple(names)), level=Integer(0, 40), upgrade_type=Pick((1, 2))), 0, 3),
    }
    which: dict[str, Node] = {"which": OneOf((Pick(("leader", "follower", "followers", "all")),))}
    return Conversations(
        KraftQuorum(rules),
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events={
            **nodes(
                ops.QuorumRead,
                ops.QuorumSend,
                ops.QuorumFormat,
                ops.QuorumAwait,
                ops.QuorumStart,
                ops.QuorumResume,
                drawn=drawn,
            ),
            **nodes(ops.QuorumKill, ops.QuorumPause, drawn=which),
            **nodes(ops.QuorumSnapshot),
        },
        progress=frozenset({"quorum-send", "quorum-views"}),
        max_steps=18,
        usual_steps=8,
        likely=likely,
        possible=likely.possible,
        enabled_shares=(0.98, 0.95),
        near_shares=(0.0, 0.1),
    )
