"""Laws of a classic group coordinator, checked in every state and step of the product machine of ``clients``.

They restate those invariants of conversations (``invariants``) that concern single states or steps.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.protocols.group.model.clients import Client, ClientMove, Part
from kipcheck.conformance.protocols.group.model.coordinator_node import (
    Aged,
    Answer,
    Ask,
    CoordinatorNode,
    Message,
    number,
)
from kipcheck.conformance.protocols.group.model.messages import EMPTY, Error, Heartbeat, Join, Phase, Sync
from kipcheck.conformance.protocols.group.model.state import Member, State
from kipcheck.conformance.protocols.group.model.storage import Storage

Contradiction: TypeAlias = str | None
FORMED = (Phase.COMPLETING, Phase.STABLE)


# Of states


def _instances(index: int, part: Part) -> tuple[str, ...] | None:
    if not isinstance(part, CoordinatorNode):
        return None
    return tuple(each.instance for each in part.group.members if each.instance is not None)


def _one_id(views: tuple[Any, ...]) -> Contradiction:
    instances: tuple[str, ...] = views[0]
    twice = [each for each in instances if instances.count(each) > 1]
    return f"two members have the instance id {twice[0]}" if twice else None


ONE_ID: Law[Part] = Law("group/one-id-per-instance", _instances, _one_id)


def _leading(index: int, part: Part) -> Any:
    if isinstance(part, CoordinatorNode):
        group = part.group
        if group.phase not in FORMED:
            return None
        return group.generation, group.leader, tuple(each.id for each in group.members)
    return (part.generation, part.id) if part.leads else None


def _one_leader(views: tuple[Any, ...]) -> Contradiction:
    hub, *clients = views
    if hub is None:
        return None
    generation, leader, members = hub
    if leader not in members:
        return f"{leader} leads generation {generation}, but is not a member of it"
    # A client that was replaced may not know yet that it no longer leads.
    leading = [id for led, id in filter(None, clients) if led == generation > 1 and id in members]
    return f"{' and '.join(leading)} both lead one generation" if len(leading) > 1 else None


ONE_LEADER: Law[Part] = Law("group/one-leader", _leading, _one_leader)


def _assigned(index: int, part: Part) -> Any:
    if not isinstance(part, CoordinatorNode) or part.group.phase is not Phase.STABLE:
        return None
    leader = part.group.member(part.group.leader or "")
    return _known(leader), tuple((_known(each), each.assignment) for each in part.group.members)


def _known(member: Member | None) -> str:
    """Names a member by its instance id, or by its client, whose name begins its member id."""
    return "no member" if member is None else member.instance or member.id[:-1]


def _from_leader(views: tuple[Any, ...]) -> Contradiction:
    if views[0] is None:
        return None
    leader, members = views[0]
    for member, assignment in members:
        if assignment == EMPTY:
            return f"{member} gets no assignment, in a generation that {leader} leads"
        if assignment != (member, leader):
            owner, by = assignment
            return f"{member} gets the assignment by {by} for {owner}, in a generation that {leader} leads"
    return None


FROM_LEADER: Law[Part] = Law("group/assignment-from-leader", _assigned, _from_leader)


def outlives(storage: Storage) -> Law[Part]:
    """Applies to states that keep the log (see ``coordinator_node.without_stale_log``)."""

    def kept(index: int, part: Part) -> Any:
        if not isinstance(part, CoordinatorNode) or part.group.phase is not Phase.STABLE or part.group.writes:
            return None
        return _recorded(part.group), _recorded(storage.recalled(part.group.log))

    return Law("group/outlives-moves", kept, lambda views: _differ(*views[0]) if views[0] is not None else None)


def _recorded(group: State) -> tuple[Any, ...]:
    def member(each: Member) -> tuple[Any, ...]:
        return each.id, each.instance, each.assignment

    return group.phase, group.generation, group.protocol, group.leader, tuple(map(member, group.members))


def _differ(group: tuple[Any, ...], log: tuple[Any, ...]) -> Contradiction:
    names = ("phase", "generation", "protocol", "leader", "members")
    for name, one, other in zip(names, group, log, strict=True):
        if one != other:
            return f"the {name} of the group is {one}, but its records say {other}"
    return None


def _waiting(index: int, part: Part) -> Any:
    if isinstance(part, Client):
        return number(index, part.serial) if part.waits else None
    return parked(part.group)


def parked(group: State) -> tuple[int, ...]:
    """The numbers of all parked requests, sorted."""
    return tuple(sorted(_parked(group)))


def _parked(group: State) -> Iterator[int]:
    for each in group.members:
        yield from (asked.to for asked in (each.join, each.sync) if asked is not None)
    for write in group.writes:
        yield getattr(write, "to", -1)


def _not_forgotten(views: tuple[Any, ...]) -> Contradiction:
    hub, *clients = views
    unanswered = [each for each in clients if each is not None and each not in hub]
    if not unanswered:
        return None
    return f"client {clients.index(unanswered[0]) + 1} waits for a response, but the coordinator has no such request"


PARKED: Law[Part] = Law(
    "group/parked-answered",
    _waiting,
    _not_forgotten,
)


# Of steps


def _answers(did: Did[Part, Message], ask: Ask) -> list[Error]:
    """The errors of the immediate answers to a request."""
    return [
        sent.message.reply.error
        for sent in did.sends
        if isinstance(sent.message, Answer) and ask.request is not None and sent.message.reply.to == ask.request.request
    ]


def _grows(index: int, before: Part, cause: ClientMove | Message, did: Did[Part, Message]) -> Contradiction:
    if not isinstance(before, CoordinatorNode) or not isinstance(did.part, CoordinatorNode):
        return None
    aged = max((sent.message.by for sent in did.sends if isinstance(sent.message, Aged)), default=0)
    after = did.part.group
    risen = after.generation + aged - before.group.generation
    if after.phase is Phase.DEAD or risen in (0, 1):
        return None
    return f"the generation changes by {risen}"


GROWS: StepLaw[Part, ClientMove, Message] = StepLaw("group/generation-grows", _grows)


def _stale(index: int, before: Part, cause: ClientMove | Message, did: Did[Part, Message]) -> Contradiction:
    if not isinstance(before, CoordinatorNode) or not isinstance(cause, Ask):
        return None
    request, group = cause.request, before.group
    if not isinstance(request, Heartbeat | Sync):
        return None
    current = group.member(request.member) is not None and request.generation == group.generation
    if current or any(error is not Error.NONE for error in _answers(did, cause)):
        return None
    return f"{request.member} of generation {request.generation} is not rejected in generation {group.generation}"


STALE: StepLaw[Part, ClientMove, Message] = StepLaw("group/stale-never-wins", _stale)


def _fenced(index: int, before: Part, cause: ClientMove | Message, did: Did[Part, Message]) -> Contradiction:
    if not isinstance(before, CoordinatorNode) or not isinstance(cause, Ask):
        return None
    request = cause.request
    if not isinstance(request, Heartbeat | Sync | Join) or request.instance is None or not request.member:
        return None
    holder = before.group.static(request.instance)
    if holder is None or holder.id == request.member or any(each is not Error.NONE for each in _answers(did, cause)):
        return None
    return f"{request.member} is not rejected, although {holder.id} has its instance id"


FENCED: StepLaw[Part, ClientMove, Message] = StepLaw("group/fenced-never-wins", _fenced)


def _once(index: int, before: Part, cause: ClientMove | Message, did: Did[Part, Message]) -> Contradiction:
    if isinstance(before, Client) and isinstance(cause, Answer) and cause.serial == before.serial and not before.waits:
        return "a client gets a response, but has no pending request"
    return None


ONCE: StepLaw[Part, ClientMove, Message] = StepLaw("group/answered-once", _once)


def laws(storage: Storage) -> tuple[Law[Part] | StepLaw[Part, ClientMove, Message], ...]:
    return ONE_ID, ONE_LEADER, FROM_LEADER, outlives(storage), PARKED, GROWS, STALE, FENCED, ONCE
