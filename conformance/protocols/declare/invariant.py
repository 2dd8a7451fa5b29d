"""Declares invariants: a statement, the requirements it covers, and a search for counter-examples."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain
from types import ModuleType
from typing import NamedTuple, TypeAlias

from kipcheck.conformance.core.files import tags
from kipcheck.conformance.core.values import impacts
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Consequence, Grade, Violation
from kipcheck.conformance.protocols.declare.modules import modules_of

Search: TypeAlias = Callable[[History], Iterator[Violation]]
AppliesTo: TypeAlias = Callable[[Case, Step], bool]
ByMessage: TypeAlias = Mapping[tuple[str, str], tuple[str, ...]]
"""(edition, message) -> the ids of the further requirements that an invariant covers there. An edition without a
release stands for all its releases."""


def every_step(case: Case, step: Step) -> bool:
    return True


def steps_of(*verbs: str) -> AppliesTo:
    """The steps with one of these verbs."""
    return lambda case, step: step.verb in verbs


class Leading(NamedTuple):
    """A violation from which others follow."""

    invariant: str
    shape: tuple[str, ...]


class RightAnswer(Enum):
    """The answer to a failing step that would be right: what an exported program compares with."""

    REFERENCE = "that of the reference"
    WITH_CLASS = "that of the reference, with the class of its error"
    EARLIER = "that to an earlier step which asked the same"
    SEVERAL = "there is no one answer: the invariant compares answers, and that to the failing step may be right"


@dataclass(frozen=True, slots=True)
class Invariant:
    id: str
    requirements: tuple[str, ...]
    role: Role | None
    """The role that it applies to; None: every target."""
    grade: Grade
    applies_to: AppliesTo
    """Does it read the answer to this step? Other steps cannot make it UNKNOWN."""
    search: Search
    extra_requirements: ByMessage = field(default_factory=dict)
    needs: AppliesTo | None = None
    """Is the answer to this step one that the statement compares? A target that cannot take such a step leaves the
    invariant undecided. None: every step that it applies to.
    """
    checks: tuple[str, ...] = ()
    """The checks with it, by id, and the sets of invariants that several checks have in common, by name."""
    after: frozenset[str] = frozenset()
    """Verbs: a case can violate it only if the target granted a step with one of them. A case in which the target
    refused all such steps says nothing of it. Empty: every case that it applies to can.
    """
    unsure: Callable[[History], bool] | None = None
    """Of a law about time: whether the violations in a history prove nothing, because this machine was late itself.
    They leave it undecided then. None: a violation is one, whatever the time.
    """
    certain: Callable[[History], History] | None = None
    """The part of a history, up to a step, whose violations prove something even if the whole is unsure. None: none."""
    proven: Callable[[History, str, Violation], bool] | None = None
    """Whether a violation of this law, by its id, proves something even if the history is unsure. None: none does."""
    right_answer: RightAnswer = RightAnswer.REFERENCE
    premise: Callable[[History], bool] | None = None
    """Whether a history has what the statement is about: without it a history that breaks nothing is not judged (SKIP).
    None: every history that it applies to has it.
    """
    follows: Callable[[History, Violation], Leading | None] | None = None
    """The violation of another invariant from which one of this follows, which then is no failure of its own. None: no
    violation follows from another one.
    """
    essential: str = ""
    """Why a run in which no case was judged by it shows too little, whatever passed; empty: it does not."""

    def own_violations(self, history: History) -> tuple[tuple[Violation, ...], tuple[Consequence, ...]]:
        """Those that are failures of their own, and those that follow from another one."""
        own, consequences = list[Violation](), list[Consequence]()
        for each in self.search(history):
            leading = None if self.follows is None else self.follows(history, each)
            if leading is None:
                own.append(each)
            else:
                consequences.append(Consequence(each, *leading))
        return tuple(own), tuple(consequences)

    def lacks(self, case: Case, step: Step) -> bool:
        """Whether nothing is known of the invariant in this case, if the target cannot take this step."""
        return (self.needs or self.applies_to)(case, step)

    @property
    def statement(self) -> str:
        return (self.search.__doc__ or "").strip().splitlines()[0]

    @property
    def all_requirements(self) -> tuple[str, ...]:
        """Those that it covers on any message."""
        return (*self.requirements, *chain(*self.extra_requirements.values()))

    def covers(self, edition: str, message: str) -> tuple[str, ...]:
        """The requirements that a violation on this message breaks."""
        there = self.extra_requirements.get((edition, message)) or self.extra_requirements.get(
            (edition.partition("@")[0], message), ()
        )
        return (*self.requirements, *there)


INVARIANTS: dict[str, Invariant] = {}


def invariant(
    id: str,
    *requirements: str,
    role: Role | None,
    grade: Grade = Grade.MUST,
    applies_to: AppliesTo = every_step,
    extra_requirements: ByMessage | None = None,
    needs: AppliesTo | None = None,
    checks: tuple[str, ...] = (),
    after: tuple[str, ...] = (),
    unsure: Callable[[History], bool] | None = None,
    certain: Callable[[History], History] | None = None,
    proven: Callable[[History, str, Violation], bool] | None = None,
    right_answer: RightAnswer = RightAnswer.REFERENCE,
    premise: Callable[[History], bool] | None = None,
    follows: Callable[[History, Violation], Leading | None] | None = None,
    essential: str = "",
) -> Callable[[Search], Search]:
    def declare(search: Search) -> Search:
        if id in INVARIANTS:
            raise ValueError(f"invariant {id!r} is declared twice")
        INVARIANTS[id] = Invariant(
            id, requirements, role, grade, applies_to, search, extra_requirements or {}, needs, checks,
            frozenset(after), unsure, certain, proven, right_answer, premise, follows, essential,
        )  # fmt: skip
        return search

    return declare


def impact(
    title: str, severity: str, mistake: str, *tagged: str, links: tuple[str, ...] = (), accepted: str = ""
) -> Callable[[Search], Search]:
    """Stands above ``invariant``: what its violation means for users, and its tags.

    ``title``: what a user observes; ``severity``: the value of a ``Severity``; ``mistake`` and ``tagged``: a class and
    effects of ``tags.toml``; ``links``: ``KAFKA-n``, ``KIP-n``, ``CVE-n``, ``CWE-n``. The files ``tags.toml`` and
    ``effects.toml`` have what depends on the shape of a failure. ``accepted``: of an effect that predicts how the other
    side answers, the title where that answered without an error.
    Errors: LookupError for a function that is no invariant.
    """

    def declare(search: Search) -> Search:
        found = [each.id for each in INVARIANTS.values() if each.search is search]
        if not found:
            raise LookupError(f"{search.__qualname__} is not declared as an invariant yet")
        for id in found:
            tags.register(id, tags.Tags(mistake, tagged, links))
            impacts.register(id, title, impacts.Severity(severity), accepted)
        return search

    return declare


def invariants_of(name: str, part: ModuleType | None = None, first: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The ids of the invariants that name this check or set.

    In the order of their modules, but for those that stand ``first``. ``part``: the folder of the invariants, whose
    modules are imported; None where they are imported already. Errors: LookupError if no invariant names it, or not
    those that stand first.
    """
    modules = None if part is None else modules_of(part)
    found = [each for each in INVARIANTS.values() if name in each.checks]
    if modules is not None:
        found = sorted(
            (each for each in found if each.search.__module__ in modules),
            key=lambda each: modules.index(each.search.__module__),
        )
    ids = [each.id for each in found]
    if not ids or {*first} - {*ids}:
        raise LookupError(f"no invariant names {name!r}, or not all of {first} do")
    return (*first, *(id for id in ids if id not in first))
