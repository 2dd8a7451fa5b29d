"""Runs scripts with a model of a Streams group, and judges the histories.

Common prefixes of scripts run once, since the model is a pure machine.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.machine import Driven, Transition
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.matrix.scenarios import Script
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.streams import ops as streams_ops
from kipcheck.conformance.protocols.upgrade.ops import Move, Restless, Settle

EDITION: Final = "apache"
"""Scripts name exact releases, so the edition matters to members of the future only."""
ObservedEvents: TypeAlias = tuple[tuple[streams_ops.ObservedEvent, ...], ...]
"""The observed events of each step."""
S = TypeVar("S", bound=Hashable)


@final
@dataclass(slots=True)
class _Node(Generic[S]):
    """The state after a prefix of scripts."""

    state: S
    seen: tuple[streams_ops.ObservedEvent, ...] = ()
    after: "dict[streams_ops.Event, _Node[S]]" = field(default_factory=dict)


def played(
    group: Driven[S, streams_ops.Event, streams_ops.ObservedEvent], scripts: Iterable[Script]
) -> Iterator[tuple[Script, ObservedEvents]]:
    """Each script with its observed events."""
    root: _Node[S] = _Node(group.initial())
    known: dict[tuple[S, streams_ops.Event], Transition[S, streams_ops.ObservedEvent]] = {}
    for script in scripts:
        node, events = root, []
        for event in script:
            after = node.after.get(event)
            if after is None:
                key = node.state, event
                if key not in known:
                    known[key] = group.step(*key)
                after = node.after[event] = _Node(*known[key])
            node = after
            events.append(node.seen)
        yield script, tuple(events)


# Judging


class Broken(NamedTuple):
    """A violation with its invariant."""

    invariant: Invariant
    violation: Violation


@final
@dataclass(frozen=True, slots=True)
class JudgedScript:
    """A script with its observed events and the violations in them."""

    history: History
    seen: ObservedEvents
    broken: tuple[Broken, ...]
    """In the order of steps; in one step, descriptions of what releases are known for come first."""

    @property
    def refused(self) -> streams_ops.Refused | None:
        """The first refusal to start, if any; the history then says nothing about what did not start."""
        return next((each for step in self.seen for each in step if isinstance(each, streams_ops.Refused)), None)

    @property
    def deaths(self) -> Iterator[tuple[int, streams_ops.Died]]:
        """Threads that ended with an exception, with their steps."""
        for number, step in enumerate(self.seen):
            yield from ((number, each) for each in step if isinstance(each, streams_ops.Died))

    @property
    def rounds(self) -> int:
        return rounds(self.events, self.seen)

    @property
    def events(self) -> tuple[str, ...]:
        return tuple(each.verb for each in self.history.case.steps)


def judged(
    script: Script, events: ObservedEvents, check: str, target: str, edition: str = EDITION, outcomes: bool = False
) -> JudgedScript:
    """Checks all invariants of Streams groups; ``outcomes``: only those in ``OUTCOMES``.

    ``edition``: the one whose rebalance protocols members of the future offer.
    """
    case = Case(check, edition, Role.OPERATOR_TOOL, tuple(map(_step, script)))
    ops = tuple(
        Op(number, step, Replied((("status", "accepted"), ("actions", _plain_events(happenings)))), number + 1)
        for number, (step, happenings) in enumerate(zip(case.steps, events, strict=True))
    )
    history = History(case, target, ops)
    selected = [each for each in invariants() if each.id in OUTCOMES or not outcomes]
    broken = [Broken(each, violation) for each in selected for violation in each.search(history)]
    broken.sort(key=lambda each: (max(each.violation.at, default=0), each.invariant.grade is not Grade.INFO))
    return JudgedScript(history, events, tuple(broken))


OUTCOMES: Final = frozenset(
    f"streams/{each}"
    for each in (
        "decodable", "leads-the-future", "probing-ends", "rejoins", "upgraded", "one-owner", "handed-over", "all-owned",
        "assigns", "lives",
    )
)  # fmt: skip
"""Invariants about the state that a group reaches, whatever the rules that led to it."""


@lru_cache(maxsize=1)
def invariants() -> tuple[Invariant, ...]:
    """The invariants of Streams groups."""
    return tuple(each for each in all_invariants(Role.OPERATOR_TOOL) if each.id.startswith("streams/"))


@lru_cache(maxsize=4096)
def _step(event: streams_ops.Event) -> Step:
    return streams_ops.OPERATIONS.step_of(event)


@lru_cache(maxsize=4096)
def _plain_events(happenings: tuple[streams_ops.ObservedEvent, ...]) -> list[dict[str, Any]]:
    return [streams_ops.OBSERVED.to_json(each) for each in happenings]


VERBS_THAT_WAIT: Final = frozenset(_step(each).verb for each in (streams_ops.Deploy(), Move("a"), Settle()))


def rounds(verbs: Sequence[str], events: ObservedEvents) -> int:
    """The largest number of rebalances until the group is stable, after any one event."""
    most = since = 0
    for verb, happenings in zip(verbs, events, strict=True):
        if verb not in VERBS_THAT_WAIT:
            since = 0
        for each in happenings:
            since += isinstance(each, streams_ops.Formed)
            if isinstance(each, streams_ops.Rests | Restless):
                most = max(most, since)
    return most
