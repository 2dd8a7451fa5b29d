"""A coordinator as its clients meet it: members that are told apart by references, a clock that is moved by hand, and a
log that takes every record unless it is told to fail.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar, assert_never, final

from conformance.core.machine import Driven, Transition
from conformance.models.clock import Clock
from conformance.models.group import words
from conformance.models.group.names import Names
from conformance.models.group.words import (
    Append,
    Arm,
    Commit,
    Delete,
    Describe,
    Described,
    Disarm,
    Error,
    Fetch,
    Fired,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    ListGroups,
    Load,
    Loaded,
    Nameless,
    Reply,
    Request,
    Sync,
    Unload,
    WriteFailed,
    Written,
)

Group = TypeVar("Group", bound=Hashable)
"""The state of the coordinator."""


@final
@dataclass(frozen=True, slots=True)
class By:
    """A client asks. Members are named by references (``models.group.names``); what the request says of a generation, a
    fresh id or its own number does not count."""

    actor: str
    request: Request
    behind: int | None = 0
    """Its generation: the one that the actor was told last, so many before that, or none at all (-1)."""
    nameless: bool = False
    """It names no group."""


@final
@dataclass(frozen=True, slots=True)
class Elapse:
    """Timers that are due meanwhile run out in the order of their deadlines."""

    ms: int


@final
@dataclass(frozen=True, slots=True)
class FailWrite:
    """The next append comes to nothing, with this error of the log."""

    error: Error


Event: TypeAlias = By | Elapse | FailWrite | Unload | Load | Loaded


@final
@dataclass(frozen=True, slots=True)
class Served(Generic[Group]):
    """The state of a service."""

    group: Group
    clock: Clock = field(default_factory=Clock)
    names: Names = field(default_factory=Names)
    actors: tuple[str, ...] = ()
    """Of each event so far: the number of a request is its place among them."""
    failing: Error | None = None
    """What the next append comes to."""


class Service(Generic[Group]):
    def __init__(self, coordinator: Driven[Group, words.Event, words.Action]) -> None:
        self.coordinator = coordinator

    def initial(self) -> Served[Group]:
        return Served(self.coordinator.initial())

    def step(self, state: Served[Group], event: Event, /) -> Transition[Served[Group], Reply]:
        """Its actions are all the answers that the event leads to, also to earlier requests, with ids as they show."""
        actor = event.actor if isinstance(event, By) else ""
        state = replace(state, actors=(*state.actors, actor))
        replies: list[Reply] = []
        match event:
            case By():
                state = self._run(state, _put(state, event), replies)
            case Elapse(ms):
                state = self._elapsed(state, state.clock.now_ms + ms, replies)
            case FailWrite(error):
                state = replace(state, failing=error)
            case Unload() | Load() | Loaded():
                state = self._run(state, event, replies)
            case _:
                assert_never(event)
        joined = ((state.actors[each.to], each) for each in replies if isinstance(each, Joined))
        state = replace(state, names=state.names.told(joined))
        return Transition(state, tuple(_shown(each, state.names) for each in replies))

    def _elapsed(self, state: Served[Group], until: int, replies: list[Reply]) -> Served[Group]:
        while (due := state.clock.due(until)) is not None:
            timer, clock = due
            state = self._run(replace(state, clock=clock), Fired(timer), replies)
        return replace(state, clock=replace(state.clock, now_ms=until))

    def _run(self, state: Served[Group], event: words.Event, replies: list[Reply]) -> Served[Group]:
        """The event, and what becomes of the appends that it leads to."""
        waiting = deque([event])
        group, clock, failing = state.group, state.clock, state.failing
        while waiting:
            group, actions = self.coordinator.step(group, waiting.popleft())
            became = Written() if failing is None else WriteFailed(failing)
            for action in actions:
                match action:
                    case Arm(timer, ms):
                        clock = clock.armed(timer, ms)
                    case Disarm(timer):
                        clock = clock.disarmed(timer)
                    case Append():  # all records of one request are one append
                        waiting.append(became)
                        failing = None
                    case _:
                        replies.append(action)
        return replace(state, group=group, clock=clock, failing=failing)


def _put(state: Served[Group], event: By) -> words.Event:
    """As the coordinator hears it."""
    number, names = len(state.actors) - 1, state.names
    fresh = f"{event.actor}-{number}"
    asked = resolved(event.request, names, names.generation(event.actor, event.behind), fresh, number)
    return Nameless(asked) if event.nameless else asked


def resolved(request: Request, names: Names, generation: int, fresh: str = "", number: int = 0) -> Request:
    """With ids in the place of references, a generation, and the number by which the answer names it."""
    match request:
        case Join():
            return replace(request, member=names.resolved(request.member), fresh=fresh, request=number)
        case Sync():
            given = tuple((names.resolved(member), blob) for member, blob in request.assignments)
            member = names.resolved(request.member)
            return replace(request, member=member, generation=generation, assignments=given, request=number)
        case Heartbeat() | Commit():
            return replace(request, member=names.resolved(request.member), generation=generation, request=number)
        case Leave(members=members):
            left = tuple((names.resolved(member), instance) for member, instance in members)
            return replace(request, members=left, request=number)
        case Fetch() | Describe() | ListGroups() | Delete():
            return replace(request, request=number)
        case _:
            assert_never(request)


def _shown(reply: Reply, names: Names) -> Reply:
    """With ids as a conversation tells them."""
    shown = names.shown
    match reply:
        case Joined():
            members = tuple((shown(id), instance, blob) for id, instance, blob in reply.members)
            return replace(reply, leader=shown(reply.leader), member=shown(reply.member), members=members)
        case Left():
            return replace(reply, members=tuple((shown(id), instance, error) for id, instance, error in reply.members))
        case Described():
            described = ((shown(id), instance, known, given) for id, instance, known, given in reply.members)
            return replace(reply, members=tuple(sorted(described, key=repr)))
        case _:
            return reply
