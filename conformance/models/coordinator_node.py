"""A classic group coordinator as the hub of a composed machine: any number of parts ask it, time and luck are moves.

What only grows is told relative to the present, so that a search comes to an end. The newest generations have the
numbers up to ``newest``: where the group goes beyond, everybody is told to take as much off what it remembers, and what
is very old becomes equally old. Fresh ids come from a small pool of each part; a request has the number of its part and
a serial one, so that the answer to one that was given up is told from the answer to the next.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.machine import Driven
from kipcheck.conformance.machines.product import HUB, Did, Sent
from kipcheck.conformance.models.group.aging import aged, ids
from kipcheck.conformance.models.group.messages import (
    Action,
    Append,
    Arm,
    Blob,
    Disarm,
    Error,
    Event,
    Fired,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Phase,
    Reply,
    Request,
    Sync,
    Synced,
    Timer,
    WriteFailed,
    Written,
)
from kipcheck.conformance.models.group.state import Log, State, armed
from kipcheck.conformance.models.membership import Assigned

MOST_WRITES: Final = 2
"""Appends that are under way: until one of them ends, nothing else happens to the group."""
NUMBERS: Final = 3
"""Of requests, for each part."""


def number(part: int, serial: int) -> int:
    """Of a request, of which the coordinator says it in its answer. ``serial`` is below ``NUMBERS``."""
    return part * NUMBERS + serial


class Ask(NamedTuple):
    """A request of a part reaches the coordinator. A fresh id is filled in there."""

    request: Request | None
    """With its ``number``. None: it only costs."""
    pool: tuple[str, ...] = ()
    """Ids that this part may be given. Those that the group knows are passed over."""
    cost: str = ""
    """Of which budget it takes one: what is used up is refused."""


class Answer(NamedTuple):
    """To the part that it reaches."""

    reply: Reply

    @property
    def serial(self) -> int:
        """Of the request."""
        return self.reply.to % NUMBERS


class Aged(NamedTuple):
    """The group has moved on: all that remembers a generation takes so many off."""

    by: int


class Hub(NamedTuple):
    group: State
    left: tuple[tuple[str, int], ...] = ()
    """Of each budget, sorted."""

    def spent(self, cost: str) -> "Hub | None":
        """None: there is nothing left of it."""
        if not cost:
            return self
        left = dict(self.left)
        if not left.get(cost):
            return None
        left[cost] -= 1
        return self._replace(left=tuple(sorted(left.items())))


class Fire(NamedTuple):
    timer: Timer


class Store(NamedTuple):
    """The oldest append is committed, or comes to nothing with an error."""

    error: Error | None = None


Move: TypeAlias = Fire | Store
Message: TypeAlias = Ask | Answer | Aged


def same(blob: Blob, by: int) -> Blob:
    """A blob in which no generation stands."""
    return blob


class Coordinating:
    """What the hub does."""

    def __init__(
        self,
        coordinator: Driven[State, Event, Action],
        sync_deadline: bool,
        parts: int,
        budgets: Mapping[str, int],
        costs: Mapping[str, str] | None = None,
        slow_log: bool = False,
        newest: int = 2,
        blob: Callable[[Blob, int], Blob] = same,
    ) -> None:
        """``parts``: how many others there are.

        ``costs``: of a kind of timer, the budget that it takes from; others run out as often as they like.
        ``slow_log``: appends wait to be committed, which is a move, or to fail, which takes from ``failures``.
        ``newest``: so many generations are told from each other, the present one included.
        ``blob``: metadata and assignments, once the group has aged.
        """
        self.coordinator = coordinator
        self.sync_deadline = sync_deadline
        self.parts = parts
        self.budgets = tuple(sorted(budgets.items()))
        self.costs = dict(costs or {})
        self.slow_log = slow_log
        self.newest = newest
        self.blob = blob

    def initial(self) -> Hub:
        return Hub(self.coordinator.initial(), self.budgets)

    def moves(self, hub: Hub) -> Iterator[Move]:
        for timer in dict.fromkeys(armed(hub.group, self.sync_deadline)):
            if len(hub.group.writes) < MOST_WRITES and hub.spent(self.costs.get(timer.kind, "")) is not None:
                yield Fire(timer)
        if hub.group.writes:
            yield Store()
            if hub.spent("failures") is not None:
                yield Store(Error.COORDINATOR_NOT_AVAILABLE)

    def act(self, hub: Hub, move: Move) -> Did[Hub, Message]:
        match move:
            case Fire(timer):
                event: Event = Fired(timer)
                spent = hub.spent(self.costs.get(timer.kind, ""))
            case Store(error):
                event = Written() if error is None else WriteFailed(error)
                spent = hub if error is None else hub.spent("failures")
        assert spent is not None, "moves are offered while there is something left"
        return self.done(spent, event)

    def take(self, hub: Hub, ask: Ask) -> Did[Hub, Message] | None:
        """None where the budget or the pool is used up, or the log is behind."""
        spent = hub.spent(ask.cost)
        request = ask.request
        if spent is None or len(hub.group.writes) >= MOST_WRITES:
            return None
        if request is None:
            return Did(spent)
        if isinstance(request, Join):
            known = set(ids(spent.group))
            fresh = next((each for each in ask.pool if each not in known), None)
            if fresh is None:
                return None
            request = replace(request, fresh=fresh)
        return self.done(spent, request)

    def done(self, hub: Hub, event: Event) -> Did[Hub, Message]:
        group, actions = self.coordinator.step(hub.group, event)
        found = [*actions]
        while group.writes and not self.slow_log:
            group, more = self.coordinator.step(group, Written())
            found += more
        sends: list[Sent[Message]] = []
        for each in found:
            if not isinstance(each, Append | Arm | Disarm):
                sends.append(Sent(each.to // NUMBERS, Answer(each)))
        by = group.generation - self.newest
        if by > 0:
            group = aged(group, by, self.blob)
            sends += [Sent(part, Aged(by)) for part in range(HUB + 1, HUB + 1 + self.parts)]
        return Did(hub._replace(group=forgetful(group)), tuple(sends))


def forgetful(group: State) -> State:
    """Without a log that says other than the group: before anybody reads it, it will be written again."""
    return group if group.phase is Phase.STABLE or group.writes else group._replace(log=Log(None, group.offsets))


def spoken(said: Move | Message) -> str:
    """A move or a message in a few words; nothing of what only keeps numbers low."""
    match said:
        case Fire(Timer(kind, member)):
            return f"the {kind} timer{f' of {member}' * bool(member)} runs out"
        case Store(error):
            return "a record is written" if error is None else f"a record is not written: {error.name}"
        case Ask(request=request):
            return "" if request is None else _asked(request)
        case Answer(reply=reply):
            return _answered(reply)
        case Aged():
            return ""


def _asked(request: Request) -> str:
    generation = getattr(request, "generation", None)
    of = "" if generation is None else f", generation {generation}"
    match request:
        case Join() | Sync() | Heartbeat():
            instance = f", instance {request.instance}" if request.instance is not None else ""
            return f"{_called(request)} v{request.version}, member {request.member or 'none'}{instance}{of}"
    return f"{_called(request)} v{request.version}"


def _called(request: Request) -> str:
    name = type(request).__name__
    return f"{name}Group" if isinstance(request, Join | Sync | Leave) else name


def _answered(reply: Reply) -> str:
    if reply.error is not Error.NONE:
        return reply.error.name
    match reply:
        case Joined():
            leads = "leads" if reply.leader == reply.member else f"led by {reply.leader}"
            return f"member {reply.member}, generation {reply.generation}, {leads}"
        case Synced():
            return f"assigned {_shown(reply.assignment)}"
    return "done"


def _shown(assignment: Blob) -> str:
    if not isinstance(assignment, Assigned):
        return str(assignment) or "nothing"
    partitions = ", ".join(f"{topic}-{number}" for topic, number in assignment.partitions) or "nothing"
    return f"{partitions}, with error {assignment.error}" if assignment.error else partitions
