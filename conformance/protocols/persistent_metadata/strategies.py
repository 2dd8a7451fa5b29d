"""Rolls of a cluster: brokers start with binaries and settings, write, read, and go back."""

from random import Random

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.persistent_metadata import ops
from kipcheck.conformance.protocols.persistent_metadata.model import PersistentCluster, State
from kipcheck.strategies.events import Conversations, Swarm
from kipcheck.strategies.operations import nodes

CLUSTER = PersistentCluster()


def likely(state: State, swarm: Swarm, random: Random) -> Step | None:
    """Often a broker reads a topic that contains the new format, or writes a topic; else any event that is accepted."""
    live = [each for each, _ in state.live()]
    reads = [ops.Read(each.number, store) for each in live for store in sorted(each.new & ops.REPLICATED)]
    if reads and random.random() < 0.5:
        return ops.OPERATIONS.step_of(random.choice(reads))
    if len(live) > 1 and random.random() < 0.3:
        return ops.OPERATIONS.step_of(ops.Write(random.choice(live).number, "offsets"))
    kinds: dict[type, list[ops.Event]] = {}
    for each in CLUSTER.enabled(state):
        if ops.OPERATIONS.verb_of[type(each)] in swarm.verbs:
            kinds.setdefault(type(each), []).append(each)
    return ops.OPERATIONS.step_of(random.choice(random.choice([*kinds.values()]))) if kinds else None


ROLLS: Conversations[State, ops.Event] = Conversations(
    CLUSTER,
    ops.OPERATIONS.step_of,
    ops.OPERATIONS.event_of,
    events=nodes(ops.Start, ops.Write, ops.Read, ops.TopicFormat, ops.Stop),
    progress=frozenset({"start-binary", "write-store", "read-store"}),
    usual_steps=8,
    likely=likely,
)
CONVERSATIONS = {ops.OPERATIONS.machine: lambda edition: ROLLS}
