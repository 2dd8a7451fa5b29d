"""What the exploration of groups with members of both protocols keeps to."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.machines.product import Did, StepLaw
from kipcheck.conformance.protocols.assignment.model.assignment import Partition, partition_name
from kipcheck.conformance.protocols.migration.ops import Event
from kipcheck.conformance.protocols.migration.state import State


def _owners(state: State) -> Iterator[tuple[str, Partition]]:
    """The members with the partitions that they were assigned last and read.

    A member of a classic group that has joined the current generation has given up its partitions.
    """
    for each in state.group.clients:
        if state.is_consumer and state.group.member(each.client) is not None:
            yield from ((each.client, partition) for partition in each.given)
    for client in state.clients:
        generation = client.generation if client.answer is None else client.answer.generation or client.generation
        behind = state.is_consumer or generation < state.classic.generation
        if behind and _is_member(state, client.id):
            yield from ((client.name, partition) for partition in client.given)


def _is_member(state: State, id: str) -> bool:
    members = state.group.members if state.is_consumer else state.classic.members
    return any(each.id == id for each in members)


def _given(state: State) -> dict[str, set[Partition]]:
    """The last assignment of each client, also that in an answer which the client has not received."""
    given = {each.client: {*each.given} for each in state.group.clients}
    for each in state.clients:
        sent = None if each.answer is None else each.answer.assignment
        given[each.name] = {*(each.given if sent is None else sent)}
    return given


def _one_owner(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    after = did.part
    had, has = _given(before), _given(after)
    for name, partitions in has.items():
        gained = partitions - had.get(name, set())
        for owner, partition in _owners(after):
            if owner != name and partition in gained and partition in had.get(owner, set()):
                return f"{partition_name(partition)} is assigned to {name} while {owner} owns it"
    return None


def _generations_rise(index: int, before: State, event: Event, did: Did[State, Event]) -> str | None:
    for client in did.part.clients:
        former = before.client(client.name)
        if _is_member(before, client.id) and client.id == former.id and client.generation < former.generation:
            return f"the generation of {client.name} falls from {former.generation} to {client.generation}"
    return None


ONE_OWNER: StepLaw[State, Event, Event] = StepLaw("migration/one-owner", _one_owner)
GENERATIONS_RISE: StepLaw[State, Event, Event] = StepLaw("migration/generations-rise", _generations_rise)
LAWS: Final = (ONE_OWNER, GENERATIONS_RISE)
