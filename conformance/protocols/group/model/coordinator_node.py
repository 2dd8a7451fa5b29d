"""A classic group coordinator as the hub of a product machine; expiring timers and results of appends are its moves.

Growing values are relative to the present, so that a search ends. The newest generations have the numbers up to
``newest``: when the group exceeds it, all components subtract the difference from the generations they remember, and
very old generations become equal. Fresh ids come from a small pool for each component. A request has the number of its
component and a serial number, which distinguishes the answer to an abandoned request from the answer to the next.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.values.machine import Driven
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.machines.product import COORDINATOR_INDEX, Did, Sent
from kipcheck.conformance.protocols.assignment.model.membership import Assigned
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.messages import Error
from kipcheck.conformance.protocols.group.model.state import Log, State, armed
from kipcheck.conformance.protocols.group.model.state_bounds import aged, ids

MAX_WRITES: Final = 2
"""Limit of pending appends. While it is reached, the hub refuses requests and timers."""
NUMBERS: Final = 3
"""Number of serial numbers of requests for each component."""


def number(part: int, serial: int) -> int:
    """The number of a request, which its answer repeats. ``serial`` is below ``NUMBERS``."""
    return part * NUMBERS + serial


class Ask(NamedTuple):
    """A request of a component that reaches the coordinator, where a fresh id is filled in."""

    request: messages.Request | None
    """The request, with its ``number``. None: only the cost applies."""
    pool: tuple[str, ...] = ()
    """Ids for this component. The first that the group does not know is used."""
    cost: str = ""
    """The budget it takes one unit from. If the budget is used up, the hub refuses the request."""


class Answer(NamedTuple):
    """An answer, addressed to a component."""

    reply: messages.Reply

    @property
    def serial(self) -> int:
        """The serial number of the request."""
        return self.reply.to % NUMBERS


class Aged(NamedTuple):
    """Generations age: each component subtracts ``by`` from the generations it remembers."""

    by: int


class CoordinatorNode(NamedTuple):
    group: State
    left: tuple[tuple[str, int], ...] = ()
    """Budget -> units left, sorted."""

    def spent(self, cost: str) -> "CoordinatorNode | None":
        """The hub with one unit less of the budget; None if the budget is used up."""
        if not cost:
            return self
        left = dict(self.left)
        if not left.get(cost):
            return None
        left[cost] -= 1
        return self._replace(left=tuple(sorted(left.items())))


class Fire(NamedTuple):
    timer: messages.Timer


class Store(NamedTuple):
    """The oldest append is committed, or fails with an error."""

    error: Error | None = None


Move: TypeAlias = Fire | Store
Message: TypeAlias = Ask | Answer | Aged


def unchanged_blob(blob: messages.Blob, by: int) -> messages.Blob:
    """Ages a blob that contains no generation."""
    return blob


class CoordinatorComponent:
    """The moves and transitions of the hub."""

    def __init__(
        self,
        coordinator: Driven[State, messages.Event, messages.Action],
        sync_deadline: bool,
        parts: int,
        budgets: Mapping[str, int],
        costs: Mapping[str, str] | None = None,
        slow_log: bool = False,
        newest: int = 2,
        blob: Callable[[messages.Blob, int], messages.Blob] = unchanged_blob,
    ) -> None:
        """``parts``: the number of other components.

        ``costs``: kind of timer -> the budget it takes from; timers without a budget may expire any number of times.
        ``slow_log``: an append is committed by a move, or fails by a move that takes from ``failures``.
        ``newest``: the number of generations that states distinguish, the present one included.
        ``blob``: ages metadata and assignments.
        """
        self.coordinator = coordinator
        self.sync_deadline = sync_deadline
        self.parts = parts
        self.budgets = tuple(sorted(budgets.items()))
        self.costs = dict(costs or {})
        self.slow_log = slow_log
        self.newest = newest
        self.blob = blob

    def initial(self) -> CoordinatorNode:
        return CoordinatorNode(self.coordinator.initial(), self.budgets)

    def moves(self, hub: CoordinatorNode) -> Iterator[Move]:
        for timer in dict.fromkeys(armed(hub.group, self.sync_deadline)):
            if len(hub.group.writes) < MAX_WRITES and hub.spent(self.costs.get(timer.kind, "")) is not None:
                yield Fire(timer)
        if hub.group.writes:
            yield Store()
            if hub.spent("failures") is not None:
                yield Store(Error.COORDINATOR_NOT_AVAILABLE)

    def act(self, hub: CoordinatorNode, move: Move) -> Did[CoordinatorNode, Message]:
        match move:
            case Fire(timer):
                event: messages.Event = messages.Fired(timer)
                spent = hub.spent(self.costs.get(timer.kind, ""))
            case Store(error):
                event = messages.Written() if error is None else messages.WriteFailed(error)
                spent = hub if error is None else hub.spent("failures")
        assert spent is not None, "moves are enabled only within the budget"
        return self.done(spent, event)

    def take(self, hub: CoordinatorNode, ask: Ask) -> Did[CoordinatorNode, Message] | None:
        """None if the budget or the pool of ids is used up, or too many appends are pending."""
        spent = hub.spent(ask.cost)
        request = ask.request
        if spent is None or len(hub.group.writes) >= MAX_WRITES:
            return None
        if request is None:
            return Did(spent)
        if isinstance(request, messages.Join):
            known = set(ids(spent.group))
            fresh = next((each for each in ask.pool if each not in known), None)
            if fresh is None:
                return None
            request = replace(request, fresh=fresh)
        return self.done(spent, request)

    def done(self, hub: CoordinatorNode, event: messages.Event) -> Did[CoordinatorNode, Message]:
        group, actions = self.coordinator.step(hub.group, event)
        found = [*actions]
        while group.writes and not self.slow_log:
            group, more = self.coordinator.step(group, messages.Written())
            found += more
        sends: list[Sent[Message]] = []
        for each in found:
            if not isinstance(each, messages.Append | messages.Arm | messages.Disarm):
                sends.append(Sent(each.to // NUMBERS, Answer(each)))
        by = group.generation - self.newest
        if by > 0:
            group = aged(group, by, self.blob)
            sends += [Sent(part, Aged(by)) for part in range(COORDINATOR_INDEX + 1, COORDINATOR_INDEX + 1 + self.parts)]
        return Did(hub._replace(group=without_stale_log(group)), tuple(sends))


def without_stale_log(group: State) -> State:
    """The group without a log that differs from it: the log will be rewritten before it is read."""
    return (
        group if group.phase is messages.Phase.STABLE or group.writes else group._replace(log=Log(None, group.offsets))
    )


def describe(value: Move | Message) -> str:
    """A short text of a move or a message; empty for ``Aged``."""
    match value:
        case Fire(messages.Timer(kind, member)):
            return f"the {kind} timer{f' of {member}' * bool(member)} runs out"
        case Store(error):
            return "a record is written" if error is None else f"a record is not written: {error.name}"
        case Ask(request=request):
            return "" if request is None else _describe_request(request)
        case Answer(reply=reply):
            return _describe_answer(reply)
        case Aged():
            return ""


def _describe_request(request: messages.Request) -> str:
    generation = getattr(request, "generation", None)
    of = "" if generation is None else f", generation {generation}"
    match request:
        case messages.Join() | messages.Sync() | messages.Heartbeat():
            instance = f", instance {request.instance}" if request.instance is not None else ""
            return f"{_api_name(request)} v{request.version}, member {request.member or 'none'}{instance}{of}"
    return f"{_api_name(request)} v{request.version}"


def _api_name(request: messages.Request) -> str:
    name = type(request).__name__
    return f"{name}Group" if isinstance(request, messages.Join | messages.Sync | messages.Leave) else name


def _describe_answer(reply: messages.Reply) -> str:
    if reply.error is not Error.NONE:
        return reply.error.name
    match reply:
        case messages.Joined():
            leads = "leads" if reply.leader == reply.member else f"led by {reply.leader}"
            return f"member {reply.member}, generation {reply.generation}, {leads}"
        case messages.Synced():
            return f"assigned {_describe_assignment(reply.assignment)}"
    return "done"


def _describe_assignment(assignment: messages.Blob) -> str:
    if not isinstance(assignment, Assigned):
        return str(assignment) or "nothing"
    partitions = ", ".join(f"{topic}-{number}" for topic, number in assignment.partitions) or "nothing"
    return f"{partitions}, with error {assignment.error}" if assignment.error else partitions
