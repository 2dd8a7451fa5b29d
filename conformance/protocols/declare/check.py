"""What a check is: cases drawn for every subject of its family, and the invariants that they have to keep."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.answer_digest import answer_digest
from kipcheck.conformance.protocols.declare.coverage import Fields, of_conversations
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.strategies.nodes import Node

Value: TypeAlias = Any
Drawing: TypeAlias = Callable[[Random, Value | None], Value]
"""Draws a value. If one is given, the drawn value begins like it and continues at random."""
Exhibit: TypeAlias = dict[str, Any]
"""Plain data of one ``kind`` that reports can render: ``bytes``, ``table`` or ``sequence``."""


Operation: TypeAlias = Mapping[str, Any]
"""An operation of the testee protocol."""
Completes: TypeAlias = Callable[[Step, Sequence[Op]], Step | None]
"""A step and the observations before it in its case -> the step as it is sent: the same object if it is complete;
None if it continues from an answer that is missing.
"""


class Impossible(NamedTuple):
    """A step that its sender cannot take where it stands in its case."""

    step: int
    rule: str
    why: str
    idle: bool = False
    """Whether the target did nothing: as if the step were not there."""


Impossibilities: TypeAlias = Callable[[Case, Sequence[Op]], Iterator[Impossible]]
"""A case and what a target answered to its steps -> the steps that cannot happen, in order. Without answers: to a
conforming target.
"""


class Comparison(NamedTuple):
    """An operation, and how the answer to it differs from the reference's."""

    operation: Operation
    fault: Callable[[Mapping[str, Any]], str | None]
    """None if there is nothing to compare, else what is wrong, or an empty text."""


class StateProbe(NamedTuple):
    """Shows whether a machine begins each case anew."""

    before: tuple[Operation, ...]
    """They change its state."""
    after: Operation
    is_new: Callable[[Mapping[str, Any]], bool]
    """Whether a new machine gives this answer to ``after``."""


class Subject(Protocol):
    """What a check is applied to: a version of a message, an assignor, a machine."""

    @property
    def edition(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int | None:
        """Of a message; None for what has no versions."""
        ...


S = TypeVar("S", bound=Subject)
S_ = TypeVar("S_", bound=Subject)


class Table(NamedTuple):
    """How much of a table of cells the cases of a check played, as the line of a ledger has it."""

    dimensions: tuple[str, ...]
    played: int
    """Pairs of values."""
    pairs: int
    missing: Mapping[str, int]
    """Reason -> pairs."""
    rows: Mapping[str, Mapping[str, tuple[int, int]]]


class Cells(NamedTuple):
    """The table of cells from which the cases of a family are chosen."""

    played: Callable[[History], Iterator[tuple[Any, str]]]
    """The cells of a case, each with the reason why it was not played; empty: it was."""
    table: Callable[[Mapping[Any, str], Mapping[str, str]], Table]
    """The whole, of cells with reasons, and the limits of the target."""


def as_it_is(value: Value) -> Value:
    return value


def nothing_remains(subject: Any, value: Value, shape: tuple[str, ...]) -> tuple[str, ...]:
    """Where the violation itself says what sort of thing is wrong."""
    return ()


def nothing_is_granted(history: History) -> frozenset[str]:
    return frozenset()


def no_operations(role: Role, claims: Claims) -> Iterable[Operation]:
    return ()


def no_comparisons(claims: Claims) -> Iterable[Comparison]:
    return ()


def no_state_probe(claims: Claims) -> None:
    return None


def no_place(step: Step) -> None:
    return None


def no_description(operation: Operation) -> None:
    return None


def no_exchanges(history: History) -> list[Exhibit]:
    return []


def all_is_possible(case: Case, answers: Sequence[Op]) -> Iterator[Impossible]:
    return iter(())


@dataclass(frozen=True, slots=True)
class Family(Generic[S]):
    """Subjects of one role, and how their values are drawn, sent, reduced, counted, compared and shown.

    What the rest of kipcheck has to know of a protocol it asks its family.
    """

    role: Role
    subjects: Callable[[str], Iterable[S]]
    """All that an edition has, in an order that stays."""
    subject: Callable[[str, str, int | None], S]
    """By edition, name and version. Errors: LookupError."""
    claimed: Callable[[S, Claims], bool]
    node: Callable[[S], Node]
    """The declaration of the values; the shrinker reduces along it."""
    draw: Callable[[S, Random], Value]
    exhibits: Callable[[History, Violation], list[Exhibit]]
    """Evidence of a failure: steps and answers as text, and the bytes that violate the invariant."""
    exchanges: Callable[[History], list[Exhibit]] = no_exchanges
    """All that was sent and answered in a conversation, as the steps of a ``sequence``."""
    remains: Callable[[S, Value, tuple[str, ...]], tuple[str, ...]] = nothing_remains
    """The kinds of parts left in a shrunk value. They distinguish failures whose violations have one shape."""
    batch: Callable[[S, Random], Drawing] | None = None
    """Draws the part that several values share, and returns how they are drawn; None: values share nothing."""
    trimmed: Callable[[Value], Value] = as_it_is
    """The value without parts that the declaration allows and ``draw`` omits, since other checks cover them."""
    complete: Completes | None = None
    """None: the steps of the family are complete as drawn."""
    digest: Callable[[History], str] = answer_digest
    """A short digest of a target's answers to a case: equal if the answers mean the same."""
    coverage: Callable[[S, Sequence[Op]], Iterator[list[Fields]]] = of_conversations
    """The coverage keys of each step, by which a campaign recognises new behaviour."""
    place: Callable[[Step], tuple[str, int | None] | None] = no_place
    """The subject that a step names, and its version; None if it names none, as steps for a machine."""
    describe: Callable[[Operation], str | None] = no_description
    """An operation of the family as text for people; None for those of other families."""
    impossible: Impossibilities = all_is_possible
    """The steps of a case that no peer, network or user can take. Idle ones are left out before the case is judged;
    what follows the first other one is not judged.
    """
    finished: Callable[[tuple[Step, ...]], tuple[Step, ...]] = as_it_is
    """A script that a user wrote, as it is played."""
    unplayable: Callable[[Case], Iterator[Impossible]] | None = None
    """The steps that keep a script of a user from being played; None: those that are impossible."""
    steps_are_apart: bool = False
    """Whether the case goes on as if a step that the target cannot take were not there: true for requests to a server,
    false for scripts whose later steps rely on earlier ones.
    """
    granted: Callable[[History], frozenset[str]] = nothing_is_granted
    """The verbs of the steps that the target granted, for the invariants that need one (``Invariant.after``)."""
    sample_ops: Callable[[Role, Claims], Iterable[Operation]] = no_operations
    """Harmless operations within the testee's claims, which the doctor sends. One family provides those of a role."""
    comparisons: Callable[[Claims], Iterable[Comparison]] = no_comparisons
    """Operations on all that is claimed, whose answers the doctor compares."""
    state_probe: Callable[[Claims], StateProbe | None] = no_state_probe
    """None: nothing that is claimed has a state."""
    cells: Cells | None = None
    """None: its cases are not chosen from a table."""
    examples: tuple[tuple[str, Callable[[S], Value]], ...] = ()
    """Systematic values by name, in the order in which they are tried before random ones."""


class Conversation(NamedTuple):
    steps: tuple[Step, ...]
    kind: str = ""
    """Of what is done to the value, where a check does several things."""


Conversations: TypeAlias = Callable[[S_, Value, Random], Iterable[Conversation]]
"""All conversations about one value. Same value, same state of the random source, same conversations."""


def none_given(subject: Any) -> Iterable[Conversation]:
    return ()


@dataclass(frozen=True, slots=True)
class Sample:
    """A case, and the value behind it, which is what a shrinker reduces."""

    case: Case
    value: Value
    number: int
    """Of the value in its check and subject."""
    kind: str


@dataclass(frozen=True, slots=True)
class Check(Generic[S]):
    id: str
    sentence: str
    family: Family[S]
    conversations: Conversations[S]
    values: int
    """How many values are drawn for every subject."""
    invariants: tuple[str, ...]
    """What its cases have to keep, besides what binds every target."""
    first: tuple[Callable[[S], Value], ...] = ()
    """The values to begin with; the rest are whatever the declaration allows."""
    about: Callable[[S], bool] = lambda subject: True
    """Which subjects of its family it is about."""
    given: Callable[[S], Iterable[Conversation]] = none_given
    """Conversations that are not drawn: no number of values changes them, and no shrinker."""
    again: Callable[[S, Value, str], Iterable[Conversation]] | None = None
    """All conversations of one kind about a value, which is what a shrinker tries; None: the same ones again."""
    draw: Callable[[S, Random], Value] | None = None
    """None: as its family draws."""
    node: Callable[[S], Node] | None = None
    """None: its family's."""
    heavy: bool = False
    """Its cases are so large that more values than its own number are never drawn."""
    shrinks: bool = True
    """Is it worth the time to look for a smaller case? Not where every try runs into a time limit."""
    batch: Callable[[S, Random], Drawing] | None = None
    """Draws the part that several values share, with what this check needs more often; None: as its family does."""
    planned: Callable[[S, int, frozenset[str]], Iterator[Value]] | None = None
    """The values of a seed after the first ones, without end, if they are chosen together, for a target with these
    limits; None: each is drawn by itself."""
    given_is_large: bool = False
    """Whether ``given`` is left out where fewer values than the check's own are asked for: over the wire a case of a
    decision table takes seconds.
    """

    @property
    def role(self) -> Role:
        return self.family.role

    def number(self, asked: int | None) -> int:
        """How many values are drawn where ``asked`` are asked for."""
        return self.values if asked is None or (self.heavy and asked > self.values) else asked

    def declaration(self, subject: S) -> Node:
        """What values there are."""
        return (self.node or self.family.node)(subject)

    def samples(
        self, subject: S, seed: int, values: int | None = None, limits: frozenset[str] = frozenset()
    ) -> Iterator[Sample]:
        """Seed, check, subject and number determine a sample, and the names of the target's ``limits`` a planned one:
        no clock, no order, no worker."""
        few = self.given_is_large and values is not None and values < self.values
        for number, (steps, kind) in enumerate(() if few else self.given(subject)):
            yield Sample(Case(self.id, subject.edition, self.role, steps), {}, number, kind)
        planned = None if self.planned is None else self.planned(subject, seed, limits)
        for number in range(self.values if values is None else values):
            random = self._random(subject, seed, number)
            if number < len(self.first):
                value = self.first[number](subject)
            else:
                value = self.drawing(subject, random)(random, None) if planned is None else next(planned)
            yield from self.about_value(subject, value, seed, number)

    def about_value(self, subject: S, value: Value, seed: int, number: int) -> Iterator[Sample]:
        """All samples of one value, drawn or reduced: ``cases`` makes the same samples of a smaller value."""
        random = self._random(subject, seed, number, "conversations")
        for steps, kind in self.conversations(subject, value, random):
            yield Sample(Case(self.id, subject.edition, self.role, steps), value, number, kind)

    def drawing(self, subject: S, random: Random) -> Drawing:
        """How the values of a batch are drawn. ``random`` has a say in what they have in common."""
        batch = self.batch or self.family.batch
        if self.draw is None and batch is not None:
            return batch(subject, random)
        draw = self.draw or self.family.draw
        return lambda random, begun: draw(subject, random)

    def cases(self, subject: S, value: Value, seed: int, number: int, kind: str) -> Iterator[Case]:
        """The same choices for another value: what a shrinker makes of a smaller one."""
        if self.again is not None:
            conversations = self.again(subject, value, kind)
        else:
            conversations = self.conversations(subject, value, self._random(subject, seed, number, "conversations"))
        for steps, _ in conversations:
            yield Case(self.id, subject.edition, self.role, steps)

    def _random(self, subject: S, seed: int, number: int, *more: str) -> Random:
        return Random("/".join((str(seed), self.id, subject.name, str(subject.version), str(number), *more)))
