"""A coordinator with the environment that its clients observe: references in place of member ids, a clock that events
advance, and a log that commits every record unless an event makes it fail.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, assert_never, final

from kipcheck.conformance.core.values.machine import Driven, Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.machines.clock import Clock
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.names import Names
from kipcheck.conformance.protocols.group.ops import By, Elapse, Event, FailWrite

__all__ = ["By", "Elapse", "Event", "FailWrite", "Served", "Service", "resolved"]

Group = TypeVar("Group", bound=Hashable)
"""The state of the coordinator."""


@final
@dataclass(frozen=True, slots=True)
class Served(Generic[Group]):
    """The state of a service."""

    group: Group
    clock: Clock[messages.Timer] = field(default_factory=Clock)
    names: Names = field(default_factory=Names)
    actors: tuple[str, ...] = ()
    """The actor of each event so far; the number of a request is its index."""
    failing: Error | None = None
    """The error of the next append; None: it succeeds."""


class Service(Generic[Group]):
    def __init__(self, coordinator: Driven[Group, messages.Event, messages.Action]) -> None:
        self.coordinator = coordinator

    def initial(self) -> Served[Group]:
        return Served(self.coordinator.initial())

    def step(self, state: Served[Group], event: Event, /) -> Transition[Served[Group], messages.Reply]:
        """Its actions are all answers that the event causes, also to earlier requests, with canonical ids."""
        actors = (*state.actors, event.actor if isinstance(event, By) else "")
        group, clock, failing = state.group, state.clock, state.failing
        replies: list[messages.Reply] = []
        match event:
            case By():
                group, clock, failing = self.run(group, clock, failing, _coordinator_event(state, event), replies)
            case Elapse(ms):
                until = clock.now_ms + ms
                while (due := self.due(clock, until)) is not None:
                    timer, clock = due
                    group, clock, failing = self.run(group, clock, failing, messages.Fired(timer), replies)
                clock = Clock(until, clock.timers)
            case FailWrite(error):
                failing = error
            case messages.Unload() | messages.Load() | messages.Loaded():
                group, clock, failing = self.run(group, clock, failing, event, replies)
            case _:
                assert_never(event)
        return _answered(state, Served(group, clock, state.names, actors, failing), replies)

    def due(self, clock: Clock[messages.Timer], until: int) -> tuple[messages.Timer, Clock[messages.Timer]] | None:
        """The timer that expires next, and the clock after it; None if no timer expires until then."""
        return clock.due(until)

    def expire(
        self, state: Served[Group], armed: tuple[int, messages.Timer], /
    ) -> Transition[Served[Group], messages.Reply]:
        """A timer, armed for a deadline, expires, whether or not others should before it."""
        deadline, timer = armed
        clock = Clock(max(state.clock.now_ms, deadline), state.clock.disarmed(timer).timers)
        replies: list[messages.Reply] = []
        group, clock, failing = self.run(state.group, clock, state.failing, messages.Fired(timer), replies)
        return _answered(state, Served(group, clock, state.names, state.actors, failing), replies)

    def step_in_real_time(self, state: Served[Group], event: By, /) -> Transition[Served[Group], messages.Reply]:
        """The same, with what expires in the moment of the request: the first join phase, if its delay is zero."""
        after, replies = self.step(state, event)
        if after.clock.due(after.clock.now_ms) is None:
            return Transition(after, replies)
        last, more = self.step(after, Elapse(0))
        return Transition(replace(last, actors=after.actors), (*replies, *more))

    def run(
        self,
        group: Group,
        clock: Clock[messages.Timer],
        failing: Error | None,
        event: messages.Event,
        replies: list[messages.Reply],
    ) -> tuple[Group, Clock[messages.Timer], Error | None]:
        """Applies the event, and the results of the appends that it causes."""
        waiting = deque([event])
        while waiting:
            group, actions = self.coordinator.step(group, waiting.popleft())
            for action in actions:
                match action:
                    case messages.Arm(timer, ms):
                        clock = clock.armed(timer, ms)
                    case messages.Disarm(timer):
                        clock = clock.disarmed(timer)
                    case messages.Append():
                        waiting.append(messages.Written() if failing is None else messages.WriteFailed(failing))
                        failing = None
                    case _:
                        replies.append(action)
        return group, clock, failing


def _answered(
    before: Served[Group], after: Served[Group], replies: list[messages.Reply]
) -> Transition[Served[Group], messages.Reply]:
    """With the names that the replies show, and canonical ids in these."""
    joined = [(after.actors[each.to], each) for each in replies if isinstance(each, messages.Joined)]
    names = before.names.after_answers(joined) if joined else before.names
    shown = replace(after, names=names) if joined else after
    return Transition(shown, tuple([canonical_reply(each, names) for each in replies]))


def _coordinator_event(state: Served[Group], event: By) -> messages.Event:
    """The event of the coordinator for a request."""
    number, names = len(state.actors), state.names
    fresh = f"{event.actor}-{number}"
    asked = resolved(event.request, names, names.generation(event.actor, event.behind), fresh, number)
    return messages.Nameless(asked) if event.nameless else asked


def resolved(
    request: messages.Request, names: Names, generation: int, fresh: str = "", number: int = 0
) -> messages.Request:
    """The request with ids in place of references, a generation, and the number that its answer repeats."""
    match request:
        case messages.Join():
            return replace(request, member=names.resolved(request.member), fresh=fresh, request=number)
        case messages.Sync():
            given = tuple((names.resolved(member), blob) for member, blob in request.assignments)
            member = names.resolved(request.member)
            return replace(request, member=member, generation=generation, assignments=given, request=number)
        case messages.Heartbeat() | messages.Commit():
            return replace(request, member=names.resolved(request.member), generation=generation, request=number)
        case messages.Leave(members=members):
            left = tuple((names.resolved(member), instance) for member, instance in members)
            return replace(request, members=left, request=number)
        case messages.Fetch() | messages.Describe() | messages.ListGroups() | messages.Delete():
            return replace(request, request=number)
        case _:
            assert_never(request)


def canonical_reply(reply: messages.Reply, names: Names) -> messages.Reply:
    """The reply with canonical ids."""
    canonical = names.canonical
    match reply:
        case messages.Joined():
            members = tuple((canonical(id), instance, blob) for id, instance, blob in reply.members)
            return replace(reply, leader=canonical(reply.leader), member=canonical(reply.member), members=members)
        case messages.Left():
            return replace(
                reply, members=tuple((canonical(id), instance, error) for id, instance, error in reply.members)
            )
        case messages.Described():
            described = ((canonical(id), instance, known, given) for id, instance, known, given in reply.members)
            return replace(reply, members=tuple(sorted(described, key=repr)))
        case _:
            return reply
