"""Scripts, played in a fleet and judged.

What scripts have in common is played once: a fleet is a pure machine.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from kipcheck.conformance.apis.streams import Plain, step_of, told
from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import History, Op, Replied
from kipcheck.conformance.core.machine import Driven, Transition
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.invariants.registry import Invariant, all_invariants
from kipcheck.conformance.matrix.scenarios import Script
from kipcheck.conformance.models.observed_events import Restless
from kipcheck.conformance.models.operations import Move, Settle
from kipcheck.conformance.models.streams.observed_events import Died, Formed, Happening, Refused, Rests
from kipcheck.conformance.models.streams.operations import Deploy, Event

EDITION: Final = "apache"
"""Scripts name exact releases: it matters to members of the future only."""
Seen: TypeAlias = tuple[tuple[Happening, ...], ...]
"""Step by step."""
S = TypeVar("S", bound=Hashable)


@final
@dataclass(slots=True)
class _Node(Generic[S]):
    """What is so far."""

    state: S
    seen: tuple[Happening, ...] = ()
    after: "dict[Event, _Node[S]]" = field(default_factory=dict)


def played(fleet: Driven[S, Event, Happening], scripts: Iterable[Script]) -> Iterator[tuple[Script, Seen]]:
    """Each script with what was seen."""
    root: _Node[S] = _Node(fleet.initial())
    known: dict[tuple[S, Event], Transition[S, Happening]] = {}
    for script in scripts:
        node, seen = root, []
        for event in script:
            after = node.after.get(event)
            if after is None:
                place = node.state, event
                if place not in known:
                    known[place] = fleet.step(*place)
                after = node.after[event] = _Node(*known[place])
            node = after
            seen.append(node.seen)
        yield script, tuple(seen)


# What it comes to


class Broken(NamedTuple):
    """A violation, and of what."""

    invariant: Invariant
    violation: Violation


@final
@dataclass(frozen=True, slots=True)
class Judged:
    """A script, what was seen, and what is to be said of it."""

    history: History
    seen: Seen
    broken: tuple[Broken, ...]
    """In the order of steps."""

    @property
    def refused(self) -> Refused | None:
        """What refused to start, where something did: then nothing is said of what did not run."""
        return next((each for step in self.seen for each in step if isinstance(each, Refused)), None)

    @property
    def deaths(self) -> Iterator[tuple[int, Died]]:
        """Threads that ended with an exception, and in which step."""
        for number, step in enumerate(self.seen):
            yield from ((number, each) for each in step if isinstance(each, Died))

    @property
    def rounds(self) -> int:
        return rounds(self.events, self.seen)

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(each.verb for each in self.history.case.steps)


def judged(
    script: Script, seen: Seen, check: str, target: str, edition: str = EDITION, outcomes: bool = False
) -> Judged:
    """With all invariants of an operator's fleet; ``outcomes``: only with those of ``OUTCOMES``.

    ``edition``: over whose release members of the future are played.
    """
    case = Case(check, edition, Role.OPERATOR_TOOL, tuple(map(_step, script)))
    ops = tuple(
        Op(number, step, Replied((("status", "accepted"), ("actions", _told(happenings)))), number + 1)
        for number, (step, happenings) in enumerate(zip(case.steps, seen, strict=True))
    )
    history = History(case, target, ops)
    wanted = [each for each in invariants() if each.id in OUTCOMES or not outcomes]
    broken = [Broken(each, violation) for each in wanted for violation in each.search(history)]
    broken.sort(key=lambda each: max(each.violation.at, default=0))
    return Judged(history, seen, tuple(broken))


OUTCOMES: Final = frozenset(
    f"streams/{each}"
    for each in (
        "decodable", "leads-the-future", "probing-ends", "rejoins", "upgraded", "one-owner", "handed-over", "all-owned",
        "assigns", "lives",
    )
)  # fmt: skip
"""Invariants of what becomes of a group, whatever the rules are by which it comes to that."""


@lru_cache(maxsize=1)
def invariants() -> tuple[Invariant, ...]:
    """Those of fleets."""
    return tuple(each for each in all_invariants(Role.OPERATOR_TOOL) if each.id.startswith("streams/"))


@lru_cache(maxsize=4096)
def _step(event: Event) -> Step:
    return step_of(event)


@lru_cache(maxsize=4096)
def _told(happenings: tuple[Happening, ...]) -> list[Plain]:
    return [told(each) for each in happenings]


VERBS_THAT_WAIT: Final = frozenset(_step(each).verb for each in (Deploy(), Move("a"), Settle()))


def rounds(verbs: Sequence[str], seen: Seen) -> int:
    """The largest number of rebalances until the group rests, after any one thing that befell it."""
    most = since = 0
    for verb, happenings in zip(verbs, seen, strict=True):
        if verb not in VERBS_THAT_WAIT:
            since = 0
        for each in happenings:
            since += isinstance(each, Formed)
            if isinstance(each, Rests | Restless):
                most = max(most, since)
    return most
