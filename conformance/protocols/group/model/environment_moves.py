"""Generates requests of a few clients, and other events of a coordinator, for searches and random generation."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE, Rules
from kipcheck.conformance.protocols.group.model.state import Committing, Deleting, Emptying, State, armed
from kipcheck.conformance.protocols.group.model.state_bounds import ids
from kipcheck.conformance.protocols.group.ops import NO_MORE


class Client(NamedTuple):
    """A client; its member ids begin with its name."""

    name: str
    instance: str | None = None
    protocols: tuple[tuple[str, messages.Blob], ...] = (("range", ""),)


CLIENTS: Final = (Client("a"), Client("b"), Client("c", "i"))
OTHER_PROTOCOLS: Final[tuple[tuple[str, messages.Blob], ...]] = (("roundrobin", ""), ("range", ""))
"""Protocols with which any member may join again."""
Newest: TypeAlias = Mapping[type[messages.Request], int]


def environment_events(state: State, rules: Rules, clients: tuple[Client, ...]) -> Iterator[messages.Event]:
    """Distinct events, many of them invalid in this state. Requests have the newest version, and the lowest numbers and
    fresh ids that the state does not contain."""
    newest = {request: versions[-1] for request, versions in rules.versions.items() if versions}
    number = _free_number(state)
    for client in clients:
        yield from _by_client(state, newest, client, number)
    yield messages.Commit(newest[messages.Commit], "", None, messages.NO_GENERATION, (("t", 0, 1, *NO_MORE),), number)
    yield messages.Fetch(newest[messages.Fetch], number)
    yield messages.Describe(newest[messages.Describe], number)
    yield messages.ListGroups(newest[messages.ListGroups], number)
    if messages.Delete in newest:
        yield messages.Delete(newest[messages.Delete], number)
    for timer in armed(state, rules.sync_deadline):
        yield messages.Fired(timer)
    yield from (
        messages.Written(),
        messages.WriteFailed(Error.NOT_ENOUGH_REPLICAS),
        messages.Unload(),
        messages.Load(),
        messages.Loaded(),
    )


def _by_client(state: State, newest: Newest, client: Client, number: int) -> Iterator[messages.Event]:
    def instance(request: type[messages.Request]) -> str | None:
        return client.instance if newest[request] >= INSTANCE_SINCE[request] else None

    fresh, static = _fresh(state, client), instance(messages.Join)
    known = [id for id in (*state.pending, *(each.id for each in state.members)) if _is_of(client, id)]
    if static is not None or not known:
        yield messages.Join(
            newest[messages.Join], "", static, "consumer", client.protocols, fresh=fresh, request=number
        )
    for id in known:
        for protocols in (client.protocols, OTHER_PROTOCOLS):
            yield messages.Join(newest[messages.Join], id, static, "consumer", protocols, request=number)
        yield _sync(state, newest[messages.Sync], id, instance(messages.Sync), number)
        yield messages.Heartbeat(newest[messages.Heartbeat], id, instance(messages.Heartbeat), state.generation, number)
        yield messages.Leave(newest[messages.Leave], ((id, instance(messages.Leave)),), number)
        yield messages.Commit(
            newest[messages.Commit], id, instance(messages.Commit), state.generation, (("t", 0, 2, *NO_MORE),), number
        )


def _sync(state: State, version: int, id: str, instance: str | None, number: int) -> messages.Sync:
    """A leader gives each member a different assignment."""
    given = tuple([(each.id, each.id) for each in state.members]) if state.leader == id else ()
    return messages.Sync(version, id, instance, state.generation, given, state.protocol_type, state.protocol, number)


def _is_of(client: Client, id: str) -> bool:
    return id.startswith(f"{client.name}.")


def _fresh(state: State, client: Client) -> str:
    taken, serial = set(ids(state)), 1
    while f"{client.name}.{serial}" in taken:
        serial += 1
    return f"{client.name}.{serial}"


def _free_number(state: State) -> int:
    """A number that no parked request has."""
    taken = {parked.to for each in state.members for parked in (each.join, each.sync) if parked is not None}
    taken.update(each.to for each in state.writes if isinstance(each, (Committing, Deleting)))
    taken.update(each.reply.to for each in state.writes if isinstance(each, Emptying) and each.reply is not None)
    number = 0
    while number in taken:
        number += 1
    return number
