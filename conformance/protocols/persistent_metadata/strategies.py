"""Rolls of a cluster: brokers start with binaries and settings, write, read, and go back."""

from random import Random

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.persistent_metadata.model import PersistentCluster, State
from kipcheck.conformance.protocols.persistent_metadata.ops import (
    OPERATIONS,
    REPLICATED,
    Event,
    Read,
    Start,
    Stop,
    TopicFormat,
    Write,
)
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

CLUSTER = PersistentCluster()


def likely(state: State, swarm: Swarm, random: Random) -> Step | None:
    """Often a broker reads a topic that contains the new format, or writes a topic; else any event that is accepted."""
    live = [each for each, _ in state.live()]
    reads = [Read(each.number, store) for each in live for store in sorted(each.new & REPLICATED)]
    if reads and random.random() < 0.5:
        return OPERATIONS.step_of(random.choice(reads))
    if len(live) > 1 and random.random() < 0.3:
        return OPERATIONS.step_of(Write(random.choice(live).number, "offsets"))
    kinds: dict[type, list[Event]] = {}
    for each in CLUSTER.enabled(state):
        if OPERATIONS.verb_of[type(each)] in swarm.verbs:
            kinds.setdefault(type(each), []).append(each)
    return OPERATIONS.step_of(random.choice(random.choice([*kinds.values()]))) if kinds else None


ROLLS: Conversations[State, Event] = Conversations(
    CLUSTER,
    OPERATIONS.step_of,
    OPERATIONS.event_of,
    events=nodes(Start, Write, Read, TopicFormat, Stop),
    progress=frozenset({"start-binary", "write-store", "read-store"}),
    usual_steps=8,
    likely=likely,
)
CONVERSATIONS = {OPERATIONS.machine: lambda edition: ROLLS}
