"""Product machines: several machines joined into one, to be explored and played together.

The first component is the hub (a coordinator or a broker); the others send messages to it and to each other. A move
belongs to one component and reads only that component. It may send messages, which arrive within the same transition: a
network that delays, loses or repeats messages is state of a component, and its faults are moves of that component.

    moves(i, part)          the moves of component i
    act(i, part, move)      its next state, and the messages it sends
    take(j, part, message)  the next state of component j on a message, and the messages it sends (only the hub may)

So each transition is a function of few values, which recur often, and this makes the search fast (``search``). Keep the
number of component states small: values that only grow (generations, request numbers, fresh ids) must be relative to
the present (when the hub moves on, it sends a message to age the numbers of every component) or come from a small pool;
otherwise a search does not end. A budget of the scope (crashes, joins) is counted down in a component; a shared budget
in the hub, which refuses a message (``take`` returns None) once the budget is used up.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kipcheck.conformance.core.values.machine import Transition

P = TypeVar("P", bound=Hashable)
"""The state of a component: any frozen value; of a product machine, the union over its components."""
V = TypeVar("V", bound=Hashable)
"""A move: a frozen value, without the state of the component."""
G = TypeVar("G", bound=Hashable)
"""A message: a frozen value, with its sender if that matters."""

COORDINATOR_INDEX = 0
"""The index of the hub, the only component that may send messages in ``take``."""


class Sent(NamedTuple, Generic[G]):
    to: int
    message: G


class Did(NamedTuple, Generic[P, G]):
    part: P
    sends: tuple[Sent[G], ...] = ()
    """Messages to other components, in the order of arrival. Except for the hub, ``act`` sends at most one message to
    the hub, and ``take`` sends none."""


class ProductMachine(Protocol[P, V, G]):
    """A product machine. Pure, as every machine: equal arguments give equal results."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the components: ``("coordinator", "a", "b", "c")``."""
        ...

    @property
    def laws(self) -> Sequence["Law[P] | StepLaw[P, V, G]"]: ...

    def initial(self) -> tuple[P, ...]: ...

    def moves(self, index: int, part: P, /) -> Iterable[V]:
        """All moves of a component, each once, in an order that depends only on the arguments."""
        ...

    def act(self, index: int, part: P, move: V, /) -> Did[P, G]: ...

    def take(self, index: int, part: P, message: G, /) -> Did[P, G] | None:
        """None, only from the hub: it refuses the message, so that the move that sends it is not enabled."""
        ...

    def describe(self, value: V | G, /) -> str:
        """A short text of a move or a message for diagrams: ``joins with 1 owned``, ``JoinGroup: generation +1``."""
        ...


@dataclass(frozen=True, slots=True)
class Law(Generic[P]):
    """An invariant of all reachable states."""

    id: str
    """The id of the invariant of conversations that it restates, which has the sentence and the requirements."""
    view: Callable[[int, P], Hashable]
    """The data of a component that the law depends on; less data makes a faster search. None if there is none."""
    breach: Callable[[tuple[Any, ...]], str | None]
    """How the views of all components, in order, contradict the law; None if they keep it."""
    at_rest: bool = False
    """True: the law applies only to states without enabled moves."""


@dataclass(frozen=True, slots=True)
class StepLaw(Generic[P, V, G]):
    """An invariant of single steps of a component, whatever the others' states; checked on every act and take."""

    id: str
    """As that of a ``Law``."""
    breach: Callable[[int, P, V | G, Did[P, G]], str | None]
    """Of the component's index, its state before, the move or message, and the result: the contradiction, or None."""


class Event(NamedTuple, Generic[V]):
    """A move, and the index of its component."""

    part: int
    move: V


class ProductAction(NamedTuple):
    """A move of a component (``to`` is None), or a message to another."""

    by: int
    to: int | None
    says: Hashable


class ContractViolation(Exception):
    """A product machine breaks the contract above."""


@dataclass(frozen=True, slots=True)
class Step(Generic[P, V, G]):
    """One step of a component: the input of step laws."""

    index: int
    before: P
    cause: V | G
    did: Did[P, G]


class SimpleProduct(Generic[P, V, G]):
    """Adapts a product machine to an ordinary one, whose state is the tuple of component states.

    Slow, but easy to read: tests compare the packed search with ``explore`` over this machine.
    """

    def __init__(self, made: ProductMachine[P, V, G]) -> None:
        self.made = made

    def initial(self) -> tuple[P, ...]:
        return self.made.initial()

    def enabled(self, state: tuple[P, ...], /) -> Iterator[Event[V]]:
        for event in self.candidate_moves(state):
            if self.run_move(state, event) is not None:
                yield event

    def candidate_moves(self, state: tuple[P, ...]) -> Iterator[Event[V]]:
        """The moves of all components, including those whose messages the hub refuses."""
        for index, part in enumerate(state):
            for move in self.made.moves(index, part):
                yield Event(index, move)

    def step(self, state: tuple[P, ...], event: Event[V], /) -> Transition[tuple[P, ...], ProductAction]:
        """Errors: ValueError for a move that is not enabled in this state."""
        if event.move in self.made.moves(event.part, state[event.part]):
            steps = self.run_move(state, event)
            if steps is not None:
                after = list(state)
                for each in steps:
                    after[each.index] = each.did.part
                return Transition(tuple(after), tuple(_actions(steps)))
        raise ValueError(f"move of {self.made.names[event.part]} is not enabled: {self.made.describe(event.move)}")

    def run_move(self, state: tuple[P, ...], event: Event[V]) -> list[Step[P, V, G]] | None:
        """The steps of all components in this transition, in order; None if the hub refuses a message."""
        parts = list(state)
        did = self.made.act(event.part, parts[event.part], event.move)
        steps: list[Step[P, V, G]] = [Step(event.part, parts[event.part], event.move, did)]
        parts[event.part] = did.part
        waiting = [(event.part, sent) for sent in checked(event.part, did, acting=True).sends]
        for _, (to, message) in waiting:  # grows during the loop
            taken = self.made.take(to, parts[to], message)
            if taken is None:
                if to != COORDINATOR_INDEX:
                    raise ContractViolation(f"{self.made.names[to]} refuses {message!r}, but only the hub may refuse")
                return None
            steps.append(Step(to, parts[to], message, checked(to, taken, acting=False)))
            parts[to] = taken.part
            waiting += [(to, sent) for sent in taken.sends]
        return steps


def checked(index: int, did: Did[P, G], acting: bool) -> Did[P, G]:
    """Returns ``did``. Errors: Disobeyed if it contains messages that the component may not send."""
    to_hub = sum(sent.to == COORDINATOR_INDEX for sent in did.sends)
    if any(sent.to == index for sent in did.sends):
        raise ContractViolation(f"component {index} sends a message to itself")
    if index != COORDINATOR_INDEX and not acting and did.sends:
        raise ContractViolation(f"component {index} answers a message, but only the hub may answer")
    if to_hub > 1:
        raise ContractViolation(f"component {index} sends {to_hub} messages to the hub in one move")
    return did


def _actions(steps: Sequence[Step[P, V, G]]) -> Iterator[ProductAction]:
    yield ProductAction(steps[0].index, None, steps[0].cause)
    for each in steps:
        for sent in each.did.sends:
            yield ProductAction(each.index, sent.to, sent.message)


def broken_laws(made: ProductMachine[P, V, G], state: tuple[P, ...], resting: bool) -> Iterator[tuple[Law[P], str]]:
    """The state laws that this state breaks, each with the contradiction. ``resting``: no move is enabled."""
    for law in made.laws:
        if isinstance(law, Law) and (resting or not law.at_rest):
            why = law.breach(tuple(law.view(index, part) for index, part in enumerate(state)))
            if why is not None:
                yield law, why


def broken_step_laws(made: ProductMachine[P, V, G], step: Step[P, V, G]) -> Iterator[tuple[StepLaw[P, V, G], str]]:
    """The step laws that this step breaks, each with the contradiction."""
    for law in made.laws:
        if isinstance(law, StepLaw):
            why = law.breach(step.index, step.before, step.cause, step.did)
            if why is not None:
                yield law, why
