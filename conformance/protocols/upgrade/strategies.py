"""Upgrade scripts: an operator upgrades three members step by step, by the documented path or not, with faults."""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import KIP_429, edition
from kipcheck.conformance.protocols.cluster.components import Node
from kipcheck.conformance.protocols.cluster.kinds import COOPERATES, DEFAULT_TOPICS, KINDS, LATER, OLD, READY, TOPICS
from kipcheck.conformance.protocols.upgrade import ops
from kipcheck.conformance.protocols.upgrade.model.upgrade import State, upgrade_model
from kipcheck.conformance.protocols.upgrade.script_strategies import Operator
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

PATH: Final = (OLD, READY, COOPERATES)
PLANS: Final = {
    "path": PATH,
    "upgraded": (COOPERATES,),
    "one more": (COOPERATES, LATER),
    "back": (COOPERATES, READY),
    "skipped": (OLD, COOPERATES),
    "any": (),
}
"""The kinds that members go through, one after another."""
OPERATOR: Final = Operator(
    ops.OPERATIONS,
    ops.MEMBERS,
    (ops.Crash, ops.Lose, ops.Expire, ops.Stop),
    restarts=0.2,
    moves=0.6,
    fails=0.7,
    most_moves=6,
)
EVERYTHING: Final = tuple(name for name, _ in TOPICS)


def traits(random: Random) -> str:
    return random.choice([*PLANS])


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    """The next event: an operator's or a fault."""
    group, chance = OPERATOR.group(state), random.random()
    if not any(node.kind for node in group.nodes.values()) and "old-brokers" in swarm.verbs and state.by_version:
        return ops.OPERATIONS.step_of(ops.OldBrokers())
    return ops.OPERATIONS.step_of(OPERATOR.usual(group, swarm, chance, random) or rolled(group.nodes, swarm, random))


def rolled(nodes: Mapping[str, Node], swarm: Swarm, random: Random) -> ops.Roll:
    """Upgrades one of the members that are least advanced."""
    plan = PLANS[swarm.traits]
    topics = EVERYTHING if random.random() < 0.15 else DEFAULT_TOPICS
    if not plan:
        return ops.Roll(random.choice(ops.MEMBERS), random.choice([*KINDS]), topics)
    far = {name: plan.index(node.kind) if node.kind in plan else -1 for name, node in nodes.items()}
    least = min(far.values())
    member = random.choice([name for name in ops.MEMBERS if far[name] == least])
    return ops.Roll(member, plan[min(least + 1, len(plan) - 1)], topics)


@cache
def upgrade_scripts(edition_name: str) -> Conversations[State, ops.Event]:
    """Errors: ValueError for an edition without an upgrade."""
    here = edition(edition_name)
    own = (ops.OldBrokers,) if here == KIP_429 else ()
    return Conversations(
        upgrade_model(here),
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=nodes(ops.Settle, ops.Roll, ops.Move, *OPERATOR.faults, ops.Restart, *own),
        progress=frozenset({"settle", "roll"}),
        likely=likely,
        traits=traits,
        possible=OPERATOR.possible,
        enabled_shares=(1.0, 0.95, 0.8),
        near_shares=(0.0, 0.1),
        max_steps=18,
    )


@cache
def streams(edition_name: str) -> Conversations[State, ops.Event]:
    """A Streams group whose instances change to newer metadata, and sometimes back.

    Errors: ValueError for an edition without an upgrade.
    """
    return Conversations(
        upgrade_model(edition(edition_name)),
        ops.OPERATIONS.step_of,
        ops.OPERATIONS.event_of,
        events=nodes(ops.RollStreams),
        progress=frozenset({"roll-streams"}),
        enabled_shares=(0.0,),
        max_steps=8,
    )


CONVERSATIONS = {"bounce": upgrade_scripts}
