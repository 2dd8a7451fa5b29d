"""A machine made of parts: the form in which several machines are joined, explored and played together.

The first part is the hub (a coordinator, a broker); the others speak to it and, if they like, to each other. A move
belongs to one part and reads nothing but that part. It may send messages, which arrive at once, within the same
transition: a network that delays, loses or repeats is a slot in some part, and what it does is a move of that part.

    moves(i, part)          what part i may do, by itself
    act(i, part, move)      what becomes of it, and what it sends
    take(j, part, message)  what becomes of part j on a message, and what it sends (the hub alone sends here)

So all that happens is a function of few values, each of which comes again and again: that is what makes a search
fast (``packed``). Keep parts small and alike: numbers that only grow (generations, request numbers, fresh ids) have to
be told relative to the present (the hub, as it moves on, sends every part a message to age its numbers) or taken from a
small pool, or no search ever ends. What is bounded by a scope (crashes, joins) is counted down in a part: in the hub if
all share it, which then refuses (``take`` gives None) once it is used up.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from kipcheck.conformance.core.machine import Transition

P = TypeVar("P", bound=Hashable)
"""The state of a part: any frozen value; of a composed machine, the union of its kinds."""
V = TypeVar("V", bound=Hashable)
"""A move: a frozen value that says what the part does, without its state."""
G = TypeVar("G", bound=Hashable)
"""A message: a frozen value that says who sent it, if that matters."""

HUB = 0
"""The number of the part that may answer at once."""


class Sent(NamedTuple, Generic[G]):
    to: int
    message: G


class Did(NamedTuple, Generic[P, G]):
    part: P
    sends: tuple[Sent[G], ...] = ()
    """To others, never to itself, in the order of their arrival. ``act`` of another part than the hub sends at most
    one message to the hub; ``take`` of another part sends none."""


class Composed(Protocol[P, V, G]):
    """Pure, as every machine: equal arguments give equal results."""

    @property
    def names(self) -> Sequence[str]:
        """Of the parts, for people: ``("coordinator", "a", "b", "c")``."""
        ...

    @property
    def laws(self) -> Sequence["Law[P] | StepLaw[P, V, G]"]: ...

    def initial(self) -> tuple[P, ...]: ...

    def moves(self, index: int, part: P, /) -> Iterable[V]:
        """All of them, each once, in an order that depends on nothing else."""
        ...

    def act(self, index: int, part: P, move: V, /) -> Did[P, G]: ...

    def take(self, index: int, part: P, message: G, /) -> Did[P, G] | None:
        """None, of the hub alone: it does not take that now, so that the move that sent it cannot be made."""
        ...

    def says(self, said: V | G, /) -> str:
        """A move or a message in a few words, for a diagram: ``joins with 1 owned``, ``JoinGroup: generation +1``."""
        ...


@dataclass(frozen=True, slots=True)
class Law(Generic[P]):
    """What no reachable state may break."""

    id: str
    requirements: tuple[str, ...]
    sentence: str
    view: Callable[[int, P], Hashable]
    """What the law looks at in a part, given its number: the less, the faster. None where it looks at nothing."""
    breach: Callable[[tuple[Any, ...]], str | None]
    """Why the views of all parts, in their order, contradict the law; None where they keep it."""
    at_rest: bool = False
    """It concerns only states out of which no move leads."""


@dataclass(frozen=True, slots=True)
class StepLaw(Generic[P, V, G]):
    """What no part may do, whatever the others are: judged wherever a part acts or takes."""

    id: str
    requirements: tuple[str, ...]
    sentence: str
    breach: Callable[[int, P, V | G, Did[P, G]], str | None]
    """Of the part's number, its state before, the move or message, and what it did: why that is wrong, or None."""


class Event(NamedTuple, Generic[V]):
    """A move, and whose it is."""

    part: int
    move: V


class Word(NamedTuple):
    """Somebody does something (``to`` is None), or tells somebody."""

    by: int
    to: int | None
    says: Hashable


class Disobeyed(Exception):
    """A composed machine does not keep to the rules above."""


@dataclass(frozen=True, slots=True)
class Step(Generic[P, V, G]):
    """A part at work: what a step law is shown."""

    index: int
    before: P
    cause: V | G
    did: Did[P, G]


class Whole(Generic[P, V, G]):
    """A composed machine as a plain one, whose state is the tuple of its parts: slow and easy to read.

    What the packed search says is held against ``explore`` over this.
    """

    def __init__(self, made: Composed[P, V, G]) -> None:
        self.made = made

    def initial(self) -> tuple[P, ...]:
        return self.made.initial()

    def enabled(self, state: tuple[P, ...], /) -> Iterator[Event[V]]:
        for event in self.offered(state):
            if self.followed(state, event) is not None:
                yield event

    def offered(self, state: tuple[P, ...]) -> Iterator[Event[V]]:
        """What each part would do, whether the hub goes along with it or not."""
        for index, part in enumerate(state):
            for move in self.made.moves(index, part):
                yield Event(index, move)

    def step(self, state: tuple[P, ...], event: Event[V], /) -> Transition[tuple[P, ...], Word]:
        """Errors: ValueError for a move that cannot be made in this state."""
        if event.move in self.made.moves(event.part, state[event.part]):
            steps = self.followed(state, event)
            if steps is not None:
                after = list(state)
                for each in steps:
                    after[each.index] = each.did.part
                return Transition(tuple(after), tuple(_words(steps)))
        raise ValueError(f"{self.made.names[event.part]} cannot do that now: {self.made.says(event.move)}")

    def followed(self, state: tuple[P, ...], event: Event[V]) -> list[Step[P, V, G]] | None:
        """The part acts, and others take, one after another; None where the hub does not take it."""
        parts = list(state)
        did = self.made.act(event.part, parts[event.part], event.move)
        steps: list[Step[P, V, G]] = [Step(event.part, parts[event.part], event.move, did)]
        parts[event.part] = did.part
        waiting = [(event.part, sent) for sent in checked(event.part, did, acting=True).sends]
        for _, (to, message) in waiting:  # which grows on the way
            taken = self.made.take(to, parts[to], message)
            if taken is None:
                if to != HUB:
                    raise Disobeyed(f"{self.made.names[to]} refuses {message!r}: only the hub may")
                return None
            steps.append(Step(to, parts[to], message, checked(to, taken, acting=False)))
            parts[to] = taken.part
            waiting += [(to, sent) for sent in taken.sends]
        return steps


def checked(index: int, did: Did[P, G], acting: bool) -> Did[P, G]:
    """Errors: Disobeyed where it sends what a part may not send."""
    to_hub = sum(sent.to == HUB for sent in did.sends)
    if any(sent.to == index for sent in did.sends):
        raise Disobeyed(f"part {index} sends to itself")
    if index != HUB and not acting and did.sends:
        raise Disobeyed(f"part {index} answers at once: only the hub may")
    if to_hub > 1:
        raise Disobeyed(f"part {index} sends {to_hub} messages to the hub in one move")
    return did


def _words(steps: Sequence[Step[P, V, G]]) -> Iterator[Word]:
    yield Word(steps[0].index, None, steps[0].cause)
    for each in steps:
        for sent in each.did.sends:
            yield Word(each.index, sent.to, sent.message)


def broken(made: Composed[P, V, G], state: tuple[P, ...], resting: bool) -> Iterator[tuple[Law[P], str]]:
    """The laws of states that this one breaks, and why. ``resting``: no move leads out of it."""
    for law in made.laws:
        if isinstance(law, Law) and (resting or not law.at_rest):
            why = law.breach(tuple(law.view(index, part) for index, part in enumerate(state)))
            if why is not None:
                yield law, why


def misdone(made: Composed[P, V, G], step: Step[P, V, G]) -> Iterator[tuple[StepLaw[P, V, G], str]]:
    """The laws of steps that this one breaks, and why."""
    for law in made.laws:
        if isinstance(law, StepLaw):
            why = law.breach(step.index, step.before, step.cause, step.did)
            if why is not None:
                yield law, why
