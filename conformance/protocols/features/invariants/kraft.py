"""Invariants of controllers of feature versions in KRaft, as released.

Each invariant reads answers, and none compares them with a model. Levels are known from a reading, up to the next
request.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, assert_never

from kipcheck.conformance.core.files.releases_table import span, table
from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, answered_steps, payload
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.ops import kraft as ops

PLACE = 30

UPDATES: Final = "kraft-features/updates"
updates = partial(invariant, role=Role.CONTROLLER, checks=(UPDATES,))
NONE: Final = "NONE"
REFUSED: Final = "INVALID_UPDATE_VERSION"
KRAFT: Final = "kraft.version"
METADATA: Final = "metadata.version"
LEADER: Final = 0
"""The controller that leads."""
REGISTERING: Final = "registered-controllers"
"""The behaviour of releases whose controllers register."""
DOWNGRADES: Final = (2, 3)
ALL: Final = ("kraft-format", "kraft-node", "kraft-update", "kraft-levels", "kraft-fail-over")
Levels = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """What is known of the cluster from the answers so far."""

    levels: Levels | None = None
    """The finalized levels; None: not known."""
    brokers: Mapping[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    controllers: Mapping[int, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    """Others than the one that leads, which declared levels."""
    quorum: tuple[int, ...] = ()
    """The other controllers of the quorum, as far as it was formatted here."""
    stated: Levels | None = None
    """The levels of the last reading, or of the new cluster, which no request followed; None: not known."""
    epoch: int | None = None
    """Of the last reading, which no request followed."""


@dataclass(frozen=True, slots=True)
class KraftStep(AnsweredStep[Step, Mapping[str, Any], KnownCluster]):
    following: Op | None = None
    """The next step."""

    @property
    def levels(self) -> Levels | None:
        """The levels before it."""
        return self.before.levels

    @property
    def after(self) -> Levels | None:
        """The levels that the next step read; None: it read none."""
        return None if self.following is None else _levels(self.following)

    @property
    def applied(self) -> dict[str, int]:
        """The updates that succeeded, by feature; the last one of a feature counts."""
        if self.verb != "kraft-update" or not self.accepted or self.validates:
            return {}
        refused = {each["feature"] for each in self.answer["results"] if each["error"] != NONE}
        asked = {each["feature"]: each["level"] for each in self.request["updates"]}
        return {name: level for name, level in asked.items() if name not in refused}

    @property
    def changes(self) -> dict[str, int]:
        """The updates that succeeded; one of kraft.version only where a reading shows it: 3.9 and 4.0 accept it without
        effect, where the quorum was formatted with a level.
        """
        before, after = (None if each is None else each.get(KRAFT, 0) for each in (self.levels, self.after))
        shown = after is not None and after != before
        return {name: level for name, level in self.applied.items() if name != KRAFT or shown}

    @property
    def validates(self) -> bool:
        """A request of version 0 has no field for it."""
        return bool(self.verb == "kraft-update" and self.request["validate_only"] and self.request["version"])

    @property
    def lowers(self) -> frozenset[str]:
        """The features whose update has a downgrade type, which a request of version 0 has not (584-44)."""
        asked = {each["feature"]: each["upgrade_type"] for each in self.request["updates"]}
        return frozenset(name for name, kind in asked.items() if kind in DOWNGRADES and self.request["version"] > 0)

    @property
    def flagged(self) -> frozenset[str]:
        """The features of a request of version 0 whose update has the downgrade flag, which Kafka does not read."""
        asked = {each["feature"]: each["upgrade_type"] for each in self.request["updates"]}
        return frozenset(name for name, kind in asked.items() if kind in DOWNGRADES and self.request["version"] == 0)

    def known_after(self) -> KnownCluster:
        before = self.before
        match ops.OPERATIONS.event_of(self.request):
            case ops.Format(level, levels, controllers):
                stated = {each.feature: each.level for each in levels if each.level}
                return KnownCluster(quorum=controllers, stated={**stated, METADATA: level})
            case ops.KraftUpdate():
                return replace(before, levels=None, stated=before.stated if self.validates else None, epoch=None)
            case ops.ReadLevels():
                read = _levels(self.op)
                return replace(before, levels=read, stated=read, epoch=self.answer.get("epoch"))
            case ops.FailOver():
                return before
            case ops.DeclareNode(kind, node, supported):
                known = before.brokers if kind == "broker" else before.controllers
                others = {number: declared for number, declared in known.items() if number != node}
                if supported is not None:
                    others[node] = {each.feature: (each.low, each.high) for each in supported}
                return replace(before, brokers=others) if kind == "broker" else replace(before, controllers=others)
            case unknown:
                assert_never(unknown)


@cached_on_history
def trace(history: History) -> tuple[KraftStep, ...]:
    """The steps up to the first one without an answer, or a node or format that was refused."""

    def read(op: Op, known: KnownCluster) -> KraftStep | None:
        if op.step.verb not in ALL or (op.step.verb != "kraft-update" and isinstance(op.observation, Refused)):
            return None
        following = next(iter(history.ops[op.index + 1 : op.index + 2]), None)
        return KraftStep(op, op.step, payload(op), known, following)

    newest = Rules.of_edition(edition(history.case.edition)).newest
    return tuple(answered_steps(history, KnownCluster(stated={METADATA: newest}), read))


def _levels(op: Op) -> Levels | None:
    if op.step.verb != "kraft-levels" or not isinstance(op.observation, Replied):
        return None
    return {each["feature"]: each["level"] for each in op.observation["levels"]}


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def breach(step: KraftStep, why: str, expected: str, observed: Any, *shape: str, read: bool = False) -> Violation:
    """``read``: the next step, which reads the levels, shows it."""
    places = (step.op.index, step.op.index + 1) if read else (step.op.index,)
    return Violation(why, places, expected, str(observed), shape=shape)


READS: Final = on("kraft-update", "kraft-levels")


@impact("A validated request changes features", "wrong data", "atomicity", "misled-operator", links=("KIP-584",))
@updates("kraft-features/validate-changes-nothing", "584-34", applies_to=READS)
def validate_changes_nothing(history: History) -> Iterator[Violation]:
    """A request with validate-only changes no level."""
    for step in trace(history):
        if step.validates and step.levels is not None and step.after is not None and step.levels != step.after:
            why = f"levels were {dict(step.levels)}, and changed with a request that was only validated"
            yield breach(step, why, "the same levels", dict(step.after), "changed", read=True)


@impact("A failed request changes features", "wrong data", "atomicity", "misled-operator", links=("KIP-584",))
@updates("kraft-features/error-changes-nothing", "584-13", "584-40", applies_to=READS)
def error_changes_nothing(history: History) -> Iterator[Violation]:
    """A request with a top-level error changes no level."""
    for step in trace(history):
        if not isinstance(step.op.observation, Refused) or step.levels is None or step.after is None:
            continue
        before, after = dict(step.levels), dict(step.after)
        if before != after:
            why = f"levels were {before}, and the request failed"
            changed = sorted(name for name, _ in before.items() ^ after.items())
            shape = "kraft.version" if {*changed} == {KRAFT} else "changed"
            yield breach(step, why, "the same levels", after, shape, read=True)


@impact("A refused update is applied, or an applied one is not", "wrong data", "atomicity", "misled-operator",
        links=("KIP-584",))  # fmt: skip
@updates("kraft-features/results-are-true", "584-12", "584-36", applies_to=READS)
def results_are_true(history: History) -> Iterator[Violation]:
    """In an answered request the updates that succeed are applied, and other features stay."""
    for step in trace(history):
        known = step.levels is not None and step.after is not None and step.verb == "kraft-update"
        if not known or step.validates or not isinstance(step.op.observation, Replied):
            continue
        assert step.levels is not None and step.after is not None
        expected = {name: level for name, level in {**step.levels, **step.applied}.items() if level and name != KRAFT}
        found = {name: level for name, level in step.after.items() if name != KRAFT}
        if found != expected:
            yield breach(step, f"levels were {dict(step.levels)}", str(expected), found, "levels", read=True)


@impact("Finalized levels are lost when a controller ends", "wrong data", "durability", "stuck-upgrade",
        links=("KIP-584",))  # fmt: skip
@updates("kraft-features/outlives-fail-over", "584-57", applies_to=on("kraft-fail-over", "kraft-levels"))
def outlives_fail_over(history: History) -> Iterator[Violation]:
    """When the leading controller ended and came back, one of the quorum leads, and the levels are the same."""
    for step in trace(history):
        if step.verb != "kraft-fail-over" or not step.accepted:
            continue
        leader = step.answer["controller"]
        if leader not in (LEADER, *step.before.quorum):
            why = f"controller {LEADER} and {sorted(step.before.quorum)} are the quorum"
            yield breach(step, why, "one of these leads", leader, "leader")
        if step.levels is not None and step.after is not None and step.levels != step.after:
            why = f"levels were {dict(step.levels)} before"
            yield breach(step, why, "the same levels", dict(step.after), "levels", read=True)


@impact("A feature is finalized that a broker does not support", "wrong data", "guards", "incompatible-broker",
        links=("KIP-584",))  # fmt: skip
@updates("kraft-features/within-brokers", "584-06", "584-07", "584-31", applies_to=on("kraft-node", "kraft-update"))
def within_brokers(history: History) -> Iterator[Violation]:
    """A level is finalized only if every registered broker supports it; undeclared, a feature has level 0 alone."""
    for step in trace(history):
        for name, level in step.applied.items():
            for number, declared in step.before.brokers.items():
                low, high = declared.get(name, (0, 0))
                if not low <= level <= high:
                    why = f"{name} was set to {level}, and broker {number} supports {low} to {high}"
                    yield breach(step, why, f"refused: {REFUSED}", "applied", "range")


def _behind(step: KraftStep, numbers: Container[int]) -> Iterator[Violation]:
    """Controllers of these numbers that declared levels, and do not support one that was applied."""
    for name, level in step.applied.items():
        for number, declared in step.before.controllers.items():
            low, high = declared.get(name, (0, 0))
            if number in numbers and number != LEADER and not low <= level <= high:
                why = f"{name} was set to {level}, and controller {number} supports {low} to {high}"
                yield breach(step, why, f"refused: {REFUSED}", "applied", "range")


def _registers(step: KraftStep) -> bool | None:
    """Whether controllers have to register at the level of metadata.version; None: it is not known."""
    if step.levels is None:
        return None
    least: int = table()["feature-levels"]["registers-controllers"]
    return step.levels.get(METADATA, 0) >= least


@impact("A feature is finalized that a controller does not support", "crash or hang", "guards", "incompatible-broker",
        links=("KIP-919",))  # fmt: skip
@updates("kraft-features/within-controllers", "584-76", applies_to=on(*ALL))
def within_controllers(history: History) -> Iterator[Violation]:
    """A level is finalized only if every controller that the leader knows supports it, and all that must registered."""
    registering = Release.parse(edition(history.case.edition).release) in releases(span(REGISTERING, "controller"))
    for step in trace(history):
        if not registering:
            yield from _behind(step, step.before.quorum)
        elif step.applied and _registers(step):
            yield from _behind(step, step.before.controllers)
            for number in sorted({*step.before.quorum} - {*step.before.controllers, LEADER}):
                why = f"controller {number} of the quorum has not registered"
                yield breach(step, why, f"refused: {REFUSED}", "applied", "unregistered")


@impact("A controller ends because of a level that it does not support", "crash or hang", "guards",
        "incompatible-broker", links=("KIP-919",))  # fmt: skip
@updates("kraft-features/asks-unregistered", "584-77", grade=Grade.INFO, applies_to=on(*ALL))
def asks_unregistered(history: History) -> Iterator[Violation]:
    """Also below metadata.version 15 a level is finalized only if every known controller of the quorum supports it."""
    registering = Release.parse(edition(history.case.edition).release) in releases(span(REGISTERING, "controller"))
    for step in trace(history) if registering else ():
        if _registers(step) is False:
            yield from _behind(step, step.before.quorum)


@impact("A feature falls without permission", "wrong data", "gating", "unsafe-downgrade", links=("KIP-584",))
@updates("kraft-features/downgrade-gated", "584-07", "584-36", "584-37", applies_to=READS)
def downgrade_gated(history: History) -> Iterator[Violation]:
    """A level falls only with a downgrade type, which a higher level must not have, and is never negative."""
    for step in trace(history):
        for name, level in step.changes.items() if step.levels is not None else ():
            assert step.levels is not None
            before = step.levels.get(name, 0)
            falls = level < before and name not in step.lowers | step.flagged
            if level < 0 or falls or (level > before and name in step.lowers):
                kind = "negative" if level < 0 else "fell" if level < before else "rose"
                yield breach(step, f"{name} {kind} from {before} to {level}", f"refused: {REFUSED}", "applied", kind)


@impact("A downgrade of metadata.version loses records", "wrong data", "gating", "unsafe-downgrade", links=("KIP-778",))
@updates("kraft-features/metadata-downgrades", "584-45", applies_to=READS)
def metadata_downgrades(history: History) -> Iterator[Violation]:
    """metadata.version falls only along steps that change no record, whatever the downgrade type."""
    changing = table()["feature-levels"]["changes-metadata"]
    for step in trace(history):
        level, before = step.applied.get(METADATA), (step.levels or {}).get(METADATA)
        lost = [each for each in changing if level is not None and before is not None and level < each <= before]
        if lost:
            why = f"metadata.version fell from {before} to {level}, and level {lost[-1]} changed a record"
            yield breach(step, why, f"refused: {REFUSED}", "applied", "lossy")


@impact("The downgrade flag of version 0 is read", "trivia", "versions", "misled-operator", links=("KIP-584",))
@updates("kraft-features/v0-flag-is-ignored", "584-44", grade=Grade.INFO, applies_to=READS)
def v0_flag_is_ignored(history: History) -> Iterator[Violation]:
    """A controller of Kafka ignores the downgrade flag of a version 0 request, and refuses the lower level."""
    for step in trace(history):
        for name, level in step.changes.items():
            before = (step.levels or {}).get(name, 0)
            if level < before and name in step.flagged:
                why = f"version 0 asked for level {level} of {name} with the flag, and {before} is finalized"
                yield breach(step, why, f"refused: {REFUSED}", "applied", "read")


@impact("The epoch of the features falls", "wrong data", "epochs", "stale-view", links=("KIP-584",))
@updates("kraft-features/epoch-never-falls", "584-43", applies_to=on("kraft-levels"))
def epoch_never_falls(history: History) -> Iterator[Violation]:
    """The epoch never falls."""
    last = -1
    for step in trace(history):
        if step.verb == "kraft-format":
            last = -1
        elif step.verb == "kraft-levels" and isinstance(step.op.observation, Replied):
            epoch = step.op.observation["epoch"]
            if epoch < last:
                yield breach(step, f"the epoch was {last}", f"at least {last}", epoch, "falls")
            last = epoch


@impact("An update is refused with another error", "trivia", "error-codes", "misled-operator", links=("KIP-584",))
@updates("kraft-features/one-error", "584-39", applies_to=on("kraft-update"), right_answer=RightAnswer.WITH_CLASS)
def one_error(history: History) -> Iterator[Violation]:
    """A refused update has the error INVALID_UPDATE_VERSION."""
    for step in trace(history):
        if step.verb != "kraft-update":
            continue
        observation = step.op.observation
        errors = {observation.error} if isinstance(observation, Refused) else set()
        if isinstance(observation, Replied):
            errors = {each["error"] for each in observation["results"]} - {NONE}
        for each in sorted(errors - {REFUSED}):
            yield breach(step, f"an update was refused with {each}", REFUSED, each, "error")
