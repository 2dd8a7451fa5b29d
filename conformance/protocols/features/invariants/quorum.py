"""Invariants of three KRaft controllers that are paused, killed and started between updates, and during them.

Each invariant reads answers. An update without an answer may be applied or not, as a whole; what is applied is known
from the next reading with a majority.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Refused
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps

PLACE = 100

QUORUM: Final = "kraft-quorum/interrupted-updates"
quorum = partial(invariant, role=Role.CONTROLLER, checks=(QUORUM,))
FORMAT, SEND, AWAIT, VIEWS = "quorum-format", "quorum-send", "quorum-await", "quorum-views"
KILL, PAUSE, RESUME, START, SNAPSHOT = (f"quorum-{each}" for each in ("kill", "pause", "resume", "start", "snapshot"))
APPLIED, PENDING, LOST = "applied", "pending", "lost"
NODES: Final = frozenset({0, 1, 2})
MAJORITY: Final = 2
METADATA, KRAFT = "metadata.version", "kraft.version"
KIP: Final = ("KIP-584",)
Levels = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KnownQuorum:
    base: Levels | None = None
    """The levels of the last reading, and of what was acknowledged since; None: not known."""
    acknowledged: Levels = field(default_factory=dict)
    """Of the updates that were acknowledged since that reading."""
    open: tuple[Levels, ...] = ()
    """Updates without an answer, which may be applied."""
    refused: tuple[Levels, ...] = ()
    """Updates that were answered with an error since that reading."""
    pending: Levels | None = None
    """The update whose answer is awaited."""
    alone: bool = False
    """Whether no majority has run since it was sent."""
    highest: int = -1
    """The highest epoch of a reading with a majority."""
    paused: frozenset[int] = frozenset()
    killed: frozenset[int] = frozenset()
    spans: Mapping[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """By node: what it supports."""
    beside: bool = False
    """Whether the last node is of another release."""

    @property
    def active(self) -> frozenset[int]:
        return NODES - self.paused - self.killed


@dataclass(frozen=True, slots=True)
class QuorumStep(AnsweredStep[Step, Mapping[str, Any], KnownQuorum]):
    @property
    def asked(self) -> dict[str, int]:
        return {each["feature"]: each["level"] for each in self.request["updates"]}

    @property
    def views(self) -> dict[int, dict[str, int]]:
        """By node, of those that show levels."""
        return {
            each["node"]: {level["feature"]: level["level"] for level in each["levels"]}
            for each in self.answer["nodes"] if each["levels"] is not None
        }  # fmt: skip

    def known_after(self) -> KnownQuorum:
        known = self._known_after()
        return replace(known, alone=False) if len(known.active) >= MAJORITY else known

    def _known_after(self) -> KnownQuorum:
        known = self.before
        match self.verb:
            case "quorum-format":
                return KnownQuorum(beside=self.request.body.get("beside") is not None)
            case "quorum-pause":
                return replace(known, paused=known.paused | {*self.answer["hit"]})
            case "quorum-kill":
                hit = {*self.answer["hit"]}
                return replace(known, killed=known.killed | hit, paused=known.paused - hit)
            case "quorum-resume":
                return replace(known, paused=frozenset())
            case "quorum-start":
                return replace(known, killed=frozenset())
            case "quorum-send":
                return self._sent(replace(known, alone=True), self.asked)
            case "quorum-await":
                return known if known.pending is None else self._sent(replace(known, pending=None), known.pending)
            case "quorum-views":
                return self._read(known)
        return known

    def _sent(self, known: KnownQuorum, asked: Levels) -> KnownQuorum:
        """What an answer, or that there is none, says of an update."""
        others = tuple(each for each in known.open if each != asked) if self.verb == AWAIT else known.open
        if isinstance(self.op.observation, Refused):
            return replace(known, open=others, refused=(*known.refused, asked))
        outcome = self.answer["outcome"]
        if outcome == APPLIED:
            base = None if known.base is None else {**known.base, **asked}
            return replace(known, open=others, base=base, acknowledged={**known.acknowledged, **asked})
        pending = asked if outcome == PENDING else None
        if self.verb == AWAIT:  # a reading may have shown meanwhile what became of it
            return replace(known, pending=pending)
        return replace(known, open=(*others, asked), pending=pending)

    def _read(self, known: KnownQuorum) -> KnownQuorum:
        nodes = {each["node"]: each for each in self.answer["nodes"]}
        spans = {
            number: {one["feature"]: (one["low"], one["high"]) for one in each["supported"]}
            for number, each in nodes.items()
        }
        known = replace(known, spans={**known.spans, **spans})
        views = self.views
        if not self.answer["settled"] or not views or len(known.active) < MAJORITY:
            return known
        levels = next(iter(views.values()))
        highest = max(known.highest, *(nodes[number]["epoch"] for number in views))
        waits = () if known.pending is None else (known.pending,)
        return replace(known, base=levels, acknowledged={}, open=waits, refused=(), highest=highest)


@cached_on_history
def trace(history: History) -> tuple[QuorumStep, ...]:
    return plain_steps(history, KnownQuorum(), QuorumStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _breach(step: QuorumStep, why: str, expected: object, observed: object, shape: str) -> Violation:
    return Violation(why, (step.op.index,), str(expected), str(observed), shape=(shape,))


def _readings(history: History, settled: bool = True) -> Iterator[QuorumStep]:
    """With a majority, whose levels are all that is committed; or without one."""
    for step in trace(history):
        if step.verb == VIEWS and step.accepted and step.answer["settled"] is settled:
            yield step


def _plain(levels: Levels) -> dict[str, int]:
    return {name: level for name, level in levels.items() if level and name != KRAFT}


def _possible(known: KnownQuorum) -> list[dict[str, int]]:
    """The levels that the cluster can have: each update without an answer is applied, or not."""
    assert known.base is not None
    chosen = chain.from_iterable(combinations(known.open, count) for count in range(len(known.open) + 1))
    found = []
    for updates in chosen:
        levels = dict(known.base)
        for each in updates:
            levels |= each
        found.append(_plain(levels))
    return found


@impact("An update that was acknowledged is lost", "wrong data", "durability", "stuck-upgrade", links=KIP)
@quorum("kraft-quorum/acknowledged-stays", "584-57", applies_to=on(FORMAT, SEND, AWAIT, VIEWS))
def acknowledged_stays(history: History) -> Iterator[Violation]:
    """A level that was read or acknowledged stays until an update changes it, whichever nodes end, and start again."""
    for step in _readings(history):
        known = step.before
        if known.base is None:
            continue
        touched = {name for each in (*known.open, *known.refused) for name in each}
        for number, levels in step.views.items():
            for name in sorted({*_plain(known.base), *levels} - touched - {KRAFT}):
                before, now = known.base.get(name, 0), levels.get(name, 0)
                if now != before:
                    shape = "acknowledged" if name in known.acknowledged else "read"
                    yield _breach(step, f"{name} was {shape} as {before}", before, f"{now} on node {number}", shape)


@impact("Half of an update is applied", "wrong data", "atomicity", "stuck-upgrade", links=KIP)
@quorum("kraft-quorum/whole-or-not-at-all", "584-33", "584-57", applies_to=on(SEND, AWAIT, VIEWS))
def whole_or_not_at_all(history: History) -> Iterator[Violation]:
    """An update without an answer is applied as a whole, or not at all."""
    for step in _readings(history):
        known = step.before
        if known.base is None or not known.open or known.refused:
            continue
        possible = _possible(known)
        for number, levels in step.views.items():
            others = {name for each in known.open for name in each}
            found = {name: level for name, level in _plain(levels).items() if name in others}
            if found not in [{name: level for name, level in each.items() if name in others} for each in possible]:
                why = f"levels were {dict(known.base)}, and {[dict(each) for each in known.open]} had no answer"
                yield _breach(step, why, possible, f"{levels} on node {number}", "half")


@impact("An update that was answered with an error is applied", "wrong data", "atomicity", "misled-operator", links=KIP)
@quorum(
    "kraft-quorum/refused-changes-nothing",
    "584-13",
    grade=Grade.SHOULD,
    applies_to=on(SEND, AWAIT, VIEWS),
    right_answer=RightAnswer.SEVERAL,
)
def refused_changes_nothing(history: History) -> Iterator[Violation]:
    """An update that was answered with an error is not applied, whichever node leads later (section Guarantees).

    A warning only: a leader that resigns cannot know what becomes of its log. KIP-584 leaves the outcome open for a
    server that dies meanwhile, and says nothing of one that lives on. ``kraft-features/error-changes-nothing`` is the
    law for errors of a controller that has judged an update.
    """
    for step in _readings(history):
        known = step.before
        if known.base is None:
            continue
        for asked in known.refused:
            for number, levels in step.views.items():
                wrong = [
                    name for name, level in asked.items()
                    if level == levels.get(name, 0) != known.base.get(name, 0) and name not in _touched(known, asked)
                ]  # fmt: skip
                if wrong:
                    why = f"{dict(asked)} was answered with an error, and levels were {dict(known.base)}"
                    yield _breach(step, why, "the same levels", f"{levels} on node {number}", "applied")


def _touched(known: KnownQuorum, asked: Levels) -> set[str]:
    """The features of other updates that may have been applied."""
    return {name for each in (*known.open, known.acknowledged) if each != asked for name in each}


@impact("Nodes show different levels", "wrong data", "epochs", "stale-view", links=KIP)
@quorum("kraft-quorum/one-view", "584-57", "584-43", applies_to=on(VIEWS))
def one_view(history: History) -> Iterator[Violation]:
    """Once they have read what is committed, all nodes show the same levels, also one that was paused or killed."""
    for step in _readings(history):
        views = step.views
        for levels in views.values():
            if levels != next(iter(views.values())):
                yield _breach(step, "levels of the first node", next(iter(views.values())), levels, "levels")


@impact("The epoch of the features falls", "wrong data", "epochs", "stale-view", links=KIP)
@quorum("kraft-quorum/epoch-never-falls", "584-43", applies_to=on(FORMAT, VIEWS))
def epoch_never_falls(history: History) -> Iterator[Violation]:
    """With a majority no node shows a lower epoch than one of them did before."""
    for step in _readings(history):
        for each in step.answer["nodes"]:
            if each["levels"] is not None and each["epoch"] < step.before.highest:
                why = f"epoch {step.before.highest} was shown before"
                yield _breach(step, why, f"at least {step.before.highest}", each["epoch"], "falls")


@impact("An update is acknowledged that one node has", "wrong data", "durability", "stuck-upgrade", links=KIP)
@quorum("kraft-quorum/needs-a-majority", "584-57", applies_to=on(SEND, AWAIT, PAUSE, RESUME, KILL, START, VIEWS))
def needs_a_majority(history: History) -> Iterator[Violation]:
    """Without a majority no update is acknowledged, and no node shows one that has no answer."""
    for step in trace(history):
        known = step.before
        if len(known.active) >= MAJORITY or not step.accepted:
            continue
        alone = step.verb == SEND or (step.verb == AWAIT and known.pending is not None and known.alone)
        if alone and step.answer["outcome"] == APPLIED:
            why = f"nodes {sorted(known.active)} run, and do not pause"
            yield _breach(step, why, "no answer, or an error", "applied", "acknowledged")
        if step.verb == VIEWS and known.base is not None and known.pending is not None and known.alone:
            shown = {level for each in step.views.values() for level in each.items()}
            early = [
                name for name, level in known.pending.items()
                if (name, level) in shown and known.base.get(name, 0) != level
            ]  # fmt: skip
            if early:
                yield _breach(step, "the update has no answer", "the levels before it", f"{early[0]} is shown", "shown")


@impact("An operator cannot raise a level in a quorum that works", "stuck group", "answers", "stuck-upgrade", links=KIP)
@quorum("kraft-quorum/applies-legal-updates", "584-06", "584-57",
        applies_to=on(FORMAT, SEND, AWAIT, PAUSE, RESUME, KILL, START, VIEWS))  # fmt: skip
def applies_legal_updates(history: History) -> Iterator[Violation]:
    """With a majority an upgrade that each node supports is applied, whichever node leads."""
    for step in trace(history):
        known = step.before
        if step.verb != SEND or len(known.active) < MAJORITY or known.open or known.base is None or known.beside:
            continue
        legal = {each["feature"] for each in step.request["updates"] if each["upgrade_type"] == 1}
        spans = [*known.spans.values()]
        for name, level in step.asked.items():
            fits = all(span.get(name, (0, 0))[0] <= level <= span.get(name, (0, 0))[1] for span in spans)
            if not spans or not fits or level <= known.base.get(name, 0) or name == KRAFT:
                legal.discard(name)
        newest = all(known.base.get(METADATA) == span.get(METADATA, (0, 0))[1] for span in spans)
        simple = {*step.asked} == {METADATA} or (newest and METADATA not in step.asked)
        applied = step.accepted and step.answer["outcome"] == APPLIED
        if simple and legal == {*step.asked} and legal and not applied:
            observed = step.error or step.answer.get("outcome")
            yield _breach(step, f"levels are {dict(known.base)}", "applied", observed, "refused")


@impact("A feature is finalized that a controller does not support", "crash or hang", "guards", "incompatible-broker",
        links=("KIP-919",))  # fmt: skip
@quorum("kraft-quorum/within-controllers", "584-76", "584-31", applies_to=on(FORMAT, SEND, AWAIT, VIEWS))
def within_controllers(history: History) -> Iterator[Violation]:
    """A level that a node of the quorum does not support is refused, also one that is paused or killed."""
    for step in trace(history):
        if step.verb != SEND or not step.accepted or step.answer["outcome"] != APPLIED:
            continue
        for number, span in step.before.spans.items():
            for name, level in step.asked.items():
                low, high = span.get(name, (0, 0))
                if not low <= level <= high and name != KRAFT:
                    why = f"node {number} supports {low} to {high} of {name}"
                    yield _breach(step, why, "refused", f"{name} is {level}", "range")


@impact("A node does not come back", "crash or hang", "durability", "stuck-upgrade", links=KIP)
@quorum("kraft-quorum/comes-back", "584-57", applies_to=on(FORMAT, PAUSE, RESUME, KILL, START, SNAPSHOT, VIEWS))
def comes_back(history: History) -> Iterator[Violation]:
    """With a majority one of the running nodes leads, and each of them answers."""
    for step in trace(history):
        known = step.before
        if step.verb != VIEWS or not step.accepted or len(known.active) < MAJORITY:
            continue
        if step.answer["leader"] not in known.active:
            yield _breach(
                step, f"nodes {sorted(known.active)} run", "one of them leads", step.answer["leader"], "leader"
            )
        shown = {each["node"] for each in step.answer["nodes"]}
        if absent := sorted(known.active - shown):
            yield _breach(step, f"nodes {sorted(known.active)} run", "an answer of each", f"none of {absent}", "node")
