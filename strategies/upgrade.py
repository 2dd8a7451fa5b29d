"""Upgrade scripts: an operator upgrades three members step by step, by the documented path or not, with faults."""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Final, TypeAlias

from kipcheck.conformance.apis.upgrade_script import event_of, step_of
from kipcheck.conformance.core.case import Step
from kipcheck.conformance.core.edition import KIP_429, edition
from kipcheck.conformance.models.cluster_components import Node
from kipcheck.conformance.models.operations import (
    COOPERATES,
    DEFAULT_TOPICS,
    KINDS,
    LATER,
    MEMBERS,
    METADATA,
    OLD,
    READY,
    TOPICS,
    Crash,
    Event,
    Expire,
    Lose,
    Move,
    OldBrokers,
    Revive,
    Roll,
    Settle,
    Stop,
)
from kipcheck.conformance.models.upgrade import State, UpgradeModel
from kipcheck.strategies.events import Conversations, Swarm, event
from kipcheck.strategies.nodes import Integer, Pick, Seq

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
Fault: TypeAlias = type[Crash | Lose | Expire | Stop]
FAULTS: Final[Mapping[str, Fault]] = {"crash": Crash, "lose": Lose, "expire": Expire, "stop": Stop}
EVERYTHING: Final = tuple(name for name, _ in TOPICS)


def traits(random: Random) -> str:
    return random.choice([*PLANS])


def likely(state: State, swarm: Swarm, random: Random) -> Step:
    """The next event: an operator's or a fault."""
    nodes = {name: node for name, node in zip(MEMBERS, state.parts[1:], strict=True) if isinstance(node, Node)}
    running = [name for name, node in nodes.items() if node.state is not None or node.starts]
    down = [name for name, node in nodes.items() if node.kind and name not in running]
    faults = [verb for verb in FAULTS if verb in swarm.verbs]
    chance = random.random()
    if not any(node.kind for node in nodes.values()) and "old-brokers" in swarm.verbs and state.by_version:
        found: Event = OldBrokers()
    elif down and chance < 0.2 and "revive" in swarm.verbs:
        found = Revive(random.choice(down))
    elif running and chance < 0.5:
        found = Settle()
    elif running and chance < 0.6 and "move" in swarm.verbs:
        found = Move(random.choice(running), random.randint(1, 4))
    elif running and chance < 0.7 and faults:
        found = fault(nodes, running, random.choice(faults), random)
    else:
        found = rolled(nodes, swarm, random)
    return step_of(found)


def fault(nodes: dict[str, Node], running: list[str], verb: str, random: Random) -> Event:
    """The event of a fault; connections break where a request is under way, if there is one."""
    busy = [name for name in running if nodes[name].busy]
    return FAULTS[verb](random.choice(busy if busy and verb == "lose" else running))


def rolled(nodes: dict[str, Node], swarm: Swarm, random: Random) -> Roll:
    """Upgrades one of the members that are least advanced."""
    plan = PLANS[swarm.traits]
    topics = EVERYTHING if random.random() < 0.15 else DEFAULT_TOPICS
    if not plan:
        return Roll(random.choice(MEMBERS), random.choice([*KINDS]), topics)
    far = {name: plan.index(node.kind) if node.kind in plan else -1 for name, node in nodes.items()}
    least = min(far.values())
    member = random.choice([name for name in MEMBERS if far[name] == least])
    return Roll(member, plan[min(least + 1, len(plan) - 1)], topics)


def possible(state: State, event: Event) -> Event:
    """The event if it can happen (``models.possible_scripts``), else the group comes to rest."""
    nodes = {name: node for name, node in zip(MEMBERS, state.parts[1:], strict=True) if isinstance(node, Node)}
    match event:
        case OldBrokers():
            can = not any(node.kind for node in nodes.values())
        case Revive(member):
            can = bool(nodes[member].kind)
        case Stop(member):
            can = _runs(nodes[member]) and nodes[member].then is None
        case Crash(member) | Lose(member) | Expire(member) | Move(member):
            can = _runs(nodes[member])
        case _:
            can = True
    return event if can else Settle()


def _runs(node: Node) -> bool:
    return node.state is not None or node.starts


MEMBER = Pick(MEMBERS)


@cache
def upgrade_scripts(edition_name: str) -> Conversations[State, Event]:
    """Errors: ValueError for an edition without an upgrade."""
    here = edition(edition_name)
    events = {
        "settle": event("operator", "settle"),
        "roll": event(
            "operator",
            "roll",
            member=MEMBER,
            kind=Pick(tuple(KINDS)),
            topics=Seq(Pick(EVERYTHING), 1, 2),
        ),
        "move": event("operator", "move", member=MEMBER, moves=Integer(1, 6)),
        **{verb: event("operator", verb, member=MEMBER) for verb in (*FAULTS, "revive")},
    }
    if here == KIP_429:
        events["old-brokers"] = event("operator", "old-brokers")
    return Conversations(
        UpgradeModel(here),
        step_of,
        event_of,
        events=events,
        progress=frozenset({"settle", "roll"}),
        likely=likely,
        traits=traits,
        possible=possible,
        enabled_shares=(1.0, 0.95, 0.8),
        near_shares=(0.0, 0.1),
        max_steps=18,
    )


@cache
def streams(edition_name: str) -> Conversations[State, Event]:
    """A Streams group whose instances change to newer metadata, and sometimes back.

    Errors: ValueError for an edition without an upgrade.
    """
    return Conversations(
        UpgradeModel(edition(edition_name)),
        step_of,
        event_of,
        events={
            "roll-streams": event(
                "operator", "roll-streams", member=MEMBER, version=Integer(METADATA.start, METADATA.stop - 1)
            )
        },
        progress=frozenset({"roll-streams"}),
        enabled_shares=(0.0,),
        max_steps=8,
    )
