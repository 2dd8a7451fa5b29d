"""One classic group in real time: the group machine with timers of the event loop, and a log that commits every record
at once."""

import asyncio
import operator
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Append, Arm, Disarm, Fired, Phase, Reply, Timer, Written
from kipcheck.conformance.protocols.group.model.state import Member, State

Answered: TypeAlias = Callable[[Reply], None]


def ignored(reply: Reply) -> None:
    """For a request whose answer no client receives."""


ENTRY: Final = 100
"""About what an object costs beside its text or bytes."""


class ClassicGroup:
    def __init__(self, machine: Coordinator, changed: Callable[["ClassicGroup"], None] = lambda group: None) -> None:
        """``changed`` is called with this group after each event."""
        self.machine = machine
        self.state: State = machine.initial()
        self.clients: dict[str, tuple[str, str]] = {}
        """Client id and host of each member, for descriptions of the group; of some former members too."""
        self.bytes = 0
        """That the group keeps, about."""
        self._weighed: tuple[object, ...] = ()
        """The parts of the state that determine it."""
        self._changed = changed
        self._timers: dict[Timer, asyncio.TimerHandle] = {}
        self._waiting: dict[int, Answered] = {}
        """What to call with the answer to each request, by its number."""
        self._last = 0

    def send(self, request: messages.Request, answered: Answered = ignored, nameless: bool = False) -> None:
        """Applies the request, whose number is given here. ``answered`` is called with the answer, before this returns
        or later. ``nameless``: the group id is empty."""
        self._last += 1
        numbered = replace(request, request=self._last)
        self._waiting[self._last] = answered
        self.apply(messages.Nameless(numbered) if nameless else numbered)

    def ask(self, request: messages.Request, nameless: bool = False) -> Reply:
        """The answer to a request that is answered at once. Errors: LookupError if it is not."""
        replies: list[Reply] = []
        self.send(request, replies.append, nameless)
        if not replies:
            raise LookupError("the machine has not answered yet")
        return replies[0]

    @property
    def listed(self) -> State:
        """What lists show: of the group with the empty name, the part that has offsets."""
        return self.state.unnamed or self.state

    @property
    def is_gone(self) -> bool:
        """Whether nothing of the group is left."""
        return self.listed.phase is Phase.DEAD and not (self._timers or self._waiting or self.listed.offsets)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def apply(self, event: messages.Event) -> None:
        replies: list[Reply] = []
        events = deque([event])
        while events:
            self.state, actions = self.machine.step(self.state, events.popleft())
            for action in actions:
                match action:
                    case Arm(timer, ms):
                        self._arm(timer, ms)
                    case Disarm(timer):
                        self._disarm(timer)
                    case Append():
                        events.append(Written())
                    case _:
                        replies.append(action)
        for reply in replies:
            if (answered := self._waiting.pop(reply.to, None)) is not None:
                answered(reply)
        self._weigh()
        self._changed(self)

    def _weigh(self) -> None:
        """Sums what the group keeps, if that is another since the last time."""
        state = self.listed
        parts = (state.members, state.pending, state.offsets)
        if len(parts) == len(self._weighed) and all(map(operator.is_, parts, self._weighed)):
            return
        self._weighed = parts
        if len(self.clients) > 2 * len(state.members):
            known = {member.id for member in state.members}
            self.clients = {id: about for id, about in self.clients.items() if id in known}
        self.bytes = (
            sum(map(_weight, state.members))
            + sum(ENTRY + len(id) for id in state.pending)
            + sum(ENTRY + len(id) + len(client) for id, (client, _) in self.clients.items())
            + sum(2 * ENTRY + len(metadata) for *_, metadata in state.offsets)
        )

    def _arm(self, timer: Timer, ms: int) -> None:
        self._disarm(timer)
        self._timers[timer] = asyncio.get_running_loop().call_later(ms / 1000, self._fire, timer)

    def _disarm(self, timer: Timer) -> None:
        if (handle := self._timers.pop(timer, None)) is not None:
            handle.cancel()

    def _fire(self, timer: Timer) -> None:
        del self._timers[timer]
        self.apply(Fired(timer))


def _weight(member: Member) -> int:
    """Bytes."""
    protocols = sum(ENTRY + len(name) + _size(blob) for name, blob in member.protocols)
    return 2 * ENTRY + len(member.id) + len(member.instance or "") + protocols + _size(member.assignment)


def _size(blob: messages.Blob) -> int:
    return len(blob) if isinstance(blob, bytes) else 0
