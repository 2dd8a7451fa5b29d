"""Invariants of the endpoints of streams groups, at which members answer queries about their tasks."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.streams_group.described import lists_differ
from kipcheck.conformance.protocols.streams_group.invariants import answered, breach, impact, tasks
from kipcheck.conformance.protocols.streams_group.ops import Endpoints
from kipcheck.conformance.protocols.streams_group.topology import source
from kipcheck.conformance.protocols.streams_group.trace import GroupStep

PLACE = 40


def endpoints_after(step: GroupStep) -> Endpoints:
    """The partitions whose active tasks members with an endpoint have after an answer."""
    rows = sorted(
        (client.endpoint, source(name), number)
        for client in step.known_after().members
        if client.endpoint is not None
        for name, number in client.memory.given
    )
    return tuple(rows)


@impact("Queries go to a client that does not have the data", "wrong data", "answers", "stale-view", "misled-operator",
        links=("KIP-1071", "KAFKA-10199"))  # fmt: skip
@tasks("streams-group/endpoints-current", "grp-270")
def endpoints_current(history: History) -> Iterator[Violation]:
    """Endpoint information of an answer has the source partitions of all active tasks of members with an endpoint."""
    for step in answered(history):
        after = step.known_after()
        unsure = not all(each.is_certain_member for each in after.members)
        if step.endpoints is None or unsure or not after.is_drawn or after.instances:
            continue  # a successor has the endpoint of the process before it
        name = f"the endpoints in the answer to {step.client.name}"
        yield from lists_differ(step, name, endpoints_after(step), step.endpoints, "endpoints")


@impact("A client does not learn where the data is", "wrong data", "answers", "stale-view",
        links=("KIP-1071",))  # fmt: skip
@tasks("streams-group/endpoints-spread", "grp-271")
def endpoints_spread(history: History) -> Iterator[Violation]:
    """A client whose endpoint information has another epoch than the group's gets it anew, and another one does not."""
    for step in answered(history):
        own, epoch = step.stated_endpoint_epoch, step.endpoint_epoch
        if epoch is None:
            continue
        if own != epoch and step.endpoints is None:
            why = f"{step.client.name} has endpoint epoch {own}, and the group {epoch}"
            yield breach(step, why, "endpoint information", "missing")
        elif own == epoch and step.endpoints is not None:
            why = f"{step.client.name} has endpoint epoch {own}, which is that of the group"
            yield breach(step, why, "no endpoint information", "needless")


@impact("A client does not learn where the data is", "wrong data", "answers", "stale-view",
        links=("KIP-1071",))  # fmt: skip
@tasks("streams-group/endpoint-epoch-rises", "grp-271")
def endpoint_epoch_rises(history: History) -> Iterator[Violation]:
    """The epoch of the endpoint information never falls; it rises when a member with an endpoint gets other tasks."""
    for step in answered(history):
        epoch, highest = step.endpoint_epoch, step.before.endpoint_epoch
        own, given = step.client, step.given
        moved = given is not None and {*given} != {*own.memory.given} and own.endpoint is not None
        least = 0 if highest is None else highest + (moved and own.is_certain_member)
        if epoch is not None and epoch < least:
            falls = highest is not None and epoch < highest
            why = f"the endpoint epoch was {highest}"
            why += "" if falls else f", and {own.name}, which has an endpoint, gets other tasks"
            yield breach(step, why, f"{least} or above", "falls" if falls else "stays")
