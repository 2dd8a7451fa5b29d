"""Invariants of a controller of finalized features in KIP-584's draft.

Each invariant reads the answers, and none compares them with a model: after a violation the state that was answered
counts for the following steps.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Refused
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps

PLACE = 10

EPOCHS: Final = "features/epochs"
GATING: Final = "features/gating"
BROKERS: Final = "features/brokers"
epochs = partial(invariant, role=Role.CONTROLLER, checks=(EPOCHS,))
gating = partial(invariant, role=Role.CONTROLLER, checks=(GATING,))
brokers = partial(invariant, role=Role.CONTROLLER, checks=(BROKERS,))

INVALID, FAILED = "INVALID_REQUEST", "FEATURE_UPDATE_FAILED"
Range: TypeAlias = tuple[int, int] | None
"""The lowest and the highest level; None if the broker does not know the feature."""


@dataclass(frozen=True, slots=True)
class KnownLevel:
    """What is known of the cluster from the answers so far."""

    level: int = 0
    """The finalized level; 0 for none."""
    epoch: int | None = None
    """None: not known yet."""
    brokers: Mapping[int, Range] = field(default_factory=dict)
    """The live brokers."""
    since: tuple[int, ...] = ()
    """The steps since the last answer with an epoch."""


@dataclass(frozen=True, slots=True)
class ControllerStep(AnsweredStep[Step, Mapping[str, Any], KnownLevel]):
    @property
    def level(self) -> int:
        """The level that was finalized before it."""
        return self.before.level

    @property
    def epoch(self) -> int | None:
        """The epoch before it; None: not known yet."""
        return self.before.epoch

    @property
    def brokers(self) -> Mapping[int, Range]:
        """The live brokers before it."""
        return self.before.brokers

    @property
    def since(self) -> tuple[int, ...]:
        """The steps since the last answer with an epoch."""
        return self.before.since

    @property
    def requested(self) -> int:
        level: int = self.request["level"]
        return level

    @property
    def allowed(self) -> bool:
        flag: bool = self.request["allow_downgrade"]
        return flag

    def outside(self, level: int) -> list[str]:
        """The live brokers that do not support the level."""
        return [f"broker {number} {_knows(span)}" for number, span in self.brokers.items() if not suits(span, level)]

    def reported(self, name: str) -> int | None:
        """The level or epoch in the answer; None if it is absent or not a number."""
        found = self.answer.get(name)
        return found if type(found) is int else None

    def known_after(self) -> KnownLevel:
        before, level, brokers = self.before, self.level, {**self.before.brokers}
        match self.verb:
            case "update" if self.accepted:
                level = max(self.requested, 0)
            case "broker-up" | "broker-down":
                brokers.pop(self.request["broker"], None)
                if self.verb == "broker-up" and self.accepted:
                    low, high = self.request["low"], self.request["high"]
                    brokers[self.request["broker"]] = None if low is None else (low, high)
            case "describe":
                reported = self.reported("level")
                level = level if reported is None else reported
        epoch = self.reported("epoch") if self.verb in ("update", "describe") else None
        if epoch is None:
            return KnownLevel(level, before.epoch, brokers, (*before.since, self.op.index))
        return KnownLevel(level, epoch, brokers)


def suits(span: Range, level: int) -> bool:
    return span is not None and span[0] <= level <= span[1]


def _knows(span: Range) -> str:
    return "does not know the feature" if span is None else f"supports {span[0]} to {span[1]}"


@cached_on_history
def trace(history: History) -> tuple[ControllerStep, ...]:
    return plain_steps(history, KnownLevel(), ControllerStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def breach(answered: ControllerStep, why: str, expected: str, *shape: str, at: tuple[int, ...] = ()) -> Violation:
    observation = answered.op.observation
    observed = (
        f"refused: {observation.error}" if isinstance(observation, Refused) else f"accepted{_payload(observation)}"
    )
    return Violation(why, (*at, answered.op.index), expected, observed, shape=shape)


def _payload(observation: Any) -> str:
    return "".join(f", {name} {value}" for name, value in observation.payload)


def updates(history: History, applied: bool) -> Iterator[ControllerStep]:
    return (each for each in trace(history) if each.verb == "update" and each.accepted is applied)


def _flag(answered: ControllerStep) -> str:
    return "with the downgrade flag" if answered.allowed else "without the downgrade flag"


# The epoch


@impact("Two states of the features have the same epoch", "wrong data", "epochs", "stale-view", links=("KIP-584",))
@epochs("features/epoch-grows", "584-16", "584-67", applies_to=on("update"))
def epoch_grows(history: History) -> Iterator[Violation]:
    """Every accepted update raises the epoch by exactly one."""
    for each in updates(history, applied=True):
        epoch = each.reported("epoch")
        if epoch is None:
            yield breach(each, "an update was accepted without an epoch", "the new epoch", "no epoch")
        elif each.epoch is not None and (epoch <= each.epoch or (epoch > each.epoch + 1 and not each.since)):
            way = "stays" if epoch == each.epoch else "falls" if epoch < each.epoch else "leaps"
            why = f"the epoch was {each.epoch}; after an accepted update it is {epoch}"
            yield breach(each, why, f"epoch {each.epoch + 1}", "epoch", way)


@impact(
    "A refused update changes the features",
    "wrong data",
    "atomicity",
    "stale-view",
    "unsafe-downgrade",
    links=("KIP-584",),
)
@epochs("features/only-updates-change", "584-12", "584-16", "584-67", applies_to=on("update", "describe"))
def only_updates_change(history: History) -> Iterator[Violation]:
    """Refused updates, and brokers that register, fail to register or go down, change neither level nor epoch."""
    for each in trace(history):
        if not _restarted(history, each):
            yield from _changed(history, each)


@impact(
    "A finalized feature level is lost at a restart",
    "wrong data",
    "durability",
    "unsafe-downgrade",
    "stale-view",
    links=("KIP-584",),
)
@epochs("features/outlives-restarts", "584-57", "584-16", applies_to=on("restart", "describe"))
def outlives_restarts(history: History) -> Iterator[Violation]:
    """Level and epoch survive a restart of all controllers."""
    for each in trace(history):
        if _restarted(history, each):
            yield from _changed(history, each)


def _restarted(history: History, answered: ControllerStep) -> bool:
    return any(history.ops[index].step.verb == "restart" for index in answered.since)


def _changed(history: History, answered: ControllerStep) -> Iterator[Violation]:
    """Level and epoch that changed since the last answer with an epoch, although no update was accepted."""
    between = _between(history, answered)
    if answered.verb == "describe" and answered.accepted:
        for name, before in (("level", answered.level), ("epoch", answered.epoch)):
            reported = answered.reported(name)
            if before is not None and reported is not None and reported != before:
                why = f"the {name} was {before}; after {between} it is {reported}, without an accepted update"
                yield breach(answered, why, f"{name} {before}", name, "changed", at=answered.since[-1:])
    elif answered.verb == "update" and answered.epoch is not None and answered.since:
        reported = answered.reported("epoch")
        if reported is not None and reported > answered.epoch + 1:
            why = f"the epoch was {answered.epoch}; after {between} the next update is accepted at {reported}"
            yield breach(answered, why, f"epoch {answered.epoch + 1}", "epoch", "changed", at=answered.since[-1:])


def _between(history: History, answered: ControllerStep) -> str:
    ops = [history.ops[index] for index in answered.since]
    observed = (f"a {'refused ' * isinstance(op.observation, Refused)}{op.step.verb}" for op in ops)
    return " and ".join(dict.fromkeys(observed)) or "nothing else"


@impact("An epoch stands for two feature levels", "wrong data", "epochs", "stale-view", links=("KIP-584",))
@epochs("features/epoch-names-contents", "584-16", applies_to=on("update", "describe"))
def epoch_names_contents(history: History) -> Iterator[Violation]:
    """An epoch never stands for two levels."""
    state: dict[int, tuple[int, int]] = {}
    for each in trace(history):
        epoch = each.reported("epoch")
        if epoch is None or each.verb not in ("update", "describe"):
            continue
        level = max(each.requested, 0) if each.verb == "update" else each.reported("level")
        if level is None:
            continue
        first, before = state.setdefault(epoch, (each.op.index, level))
        if before != level:
            why = f"epoch {epoch} stood for level {before}, and stands for level {level}"
            yield breach(each, why, f"level {before} at epoch {epoch}", "epoch", "repeats", at=(first,))


# Updates to refuse


@impact("A feature level falls without permission", "wrong data", "gating", "unsafe-downgrade", links=("KIP-584",))
@gating("features/downgrade-gated", "584-07", applies_to=on("update"))
def downgrade_gated(history: History) -> Iterator[Violation]:
    """No finalized level falls unless the operator allowed it."""
    for each in updates(history, applied=True):
        if 1 <= each.requested < each.level and not each.allowed:
            why = f"the level fell from {each.level} to {each.requested} without the downgrade flag"
            yield breach(each, why, f"refused: {INVALID}", "applied", "downgrade without the flag")


@impact("A feature is deleted without permission", "wrong data", "gating", "unsafe-downgrade", links=("KIP-584",))
@gating("features/deletion-gated", "584-08", applies_to=on("update"))
def deletion_gated(history: History) -> Iterator[Violation]:
    """No finalized feature is deleted unless the operator allowed it."""
    for each in updates(history, applied=True):
        if each.requested < 1 and each.level and not each.allowed:
            why = f"level {each.level} was deleted, by an update to {each.requested} without the downgrade flag"
            yield breach(each, why, f"refused: {INVALID}", "applied", "deletion without the flag")


@impact("The deletion of an unknown feature succeeds", "trivia", "gating", "misled-operator", links=("KIP-584",))
@gating("features/deletes-what-is-there", "584-69", applies_to=on("update"))
def deletes_what_is_there(history: History) -> Iterator[Violation]:
    """An update that deletes a feature that is not finalized is refused."""
    for each in updates(history, applied=True):
        if each.requested < 1 and not each.level:
            why = f"an update to {each.requested} was accepted although no level is finalized"
            yield breach(each, why, f"refused: {INVALID}", "applied", "deletion of nothing")


@impact("A downgrade raises the level of a feature", "wrong data", "gating", "misled-operator", links=("KIP-584",))
@gating("features/flag-only-down", "584-09", applies_to=on("update"))
def flag_only_down(history: History) -> Iterator[Violation]:
    """An update with the downgrade flag never raises a finalized level."""
    for each in updates(history, applied=True):
        if each.requested > each.level > 0 and each.allowed:
            why = f"the level rose from {each.level} to {each.requested} with the downgrade flag"
            yield breach(each, why, f"refused: {INVALID}", "applied", "upgrade with the flag")


@impact("A repeated update counts twice", "trivia", "gating", "stale-view", links=("KIP-584",))
@gating("features/same-level-refused", "584-75", "584-33", applies_to=on("update"))
def same_level_refused(history: History) -> Iterator[Violation]:
    """An update to the level that is finalized already is refused, so that a repeated update never counts twice."""
    for each in updates(history, applied=True):
        if each.requested == each.level > 0:
            why = f"level {each.level} was finalized already, and an update to it, {_flag(each)}, was accepted"
            yield breach(each, why, f"refused: {INVALID}", "applied", "same level")


@impact(
    "A feature level is finalized that a live broker does not support",
    "refused peer",
    "guards",
    "incompatible-broker",
    links=("KIP-584",),
)
@gating("features/level-suits-brokers", "584-06", "584-07", "584-10", "584-31", applies_to=on("update"))
def level_suits_brokers(history: History) -> Iterator[Violation]:
    """A level is finalized only if every live broker supports it, and at least one broker is live."""
    for each in updates(history, applied=True):
        if each.requested < 1:
            continue
        outside = each.outside(each.requested)
        if outside:
            why = f"level {each.requested} was finalized although {outside[0]}"
            kind = "of an unknowing broker" if "not know" in outside[0] else "out of range"
            yield breach(each, why, f"refused: {FAILED}", "applied", kind, at=_registration(history, each))
        elif not each.brokers:
            why = f"level {each.requested} was finalized although no live broker knows the feature"
            yield breach(each, why, f"refused: {INVALID}", "applied", "known to nobody")


def _registration(history: History, answered: ControllerStep) -> tuple[int, ...]:
    """The step that registered the first broker that does not support the level."""
    number = next(number for number, span in answered.brokers.items() if not suits(span, answered.requested))
    ups = [op.index for op in history.ops[: answered.op.index] if op.step.verb == "broker-up"]
    return tuple([index for index in ups if history.ops[index].step["broker"] == number][-1:])


# Updates to apply


def _kept_back(history: History) -> Iterator[ControllerStep]:
    """Refused updates to levels that every live broker supports."""
    return (each for each in updates(history, applied=False) if each.brokers and not each.outside(each.requested))


@impact("An allowed upgrade of a feature is refused", "refused peer", "guards", "stuck-upgrade", links=("KIP-584",))
@gating("features/upgrades", "584-06", applies_to=on("update"))
def upgrades(history: History) -> Iterator[Violation]:
    """An upgrade without the downgrade flag, to a level that every live broker supports, is applied."""
    for each in _kept_back(history):
        if each.requested > each.level and not each.allowed:
            why = (
                f"an upgrade from level {each.level} to {each.requested}, which every live broker supports, was refused"
            )
            yield breach(each, why, "accepted", "refused", "upgrade")


@impact("An allowed downgrade of a feature is refused", "refused peer", "guards", "stuck-upgrade", links=("KIP-584",))
@gating("features/downgrades", "584-11", grade=Grade.INFO, applies_to=on("update"))
def downgrades(history: History) -> Iterator[Violation]:
    """A downgrade with the flag, within the range of every live broker, is applied unless the feature forbids it."""
    for each in _kept_back(history):
        if 1 <= each.requested < each.level and each.allowed:
            why = (
                f"a downgrade with the flag from level {each.level} to {each.requested}, which every live broker "
                "supports, "
                "was refused"
            )
            yield breach(each, why, "accepted", "refused", "downgrade")


@impact("An allowed deletion of a feature is refused", "refused peer", "guards", "stuck-upgrade", links=("KIP-584",))
@gating("features/deletion-is-free", "584-08", "584-68", applies_to=on("update"))
def deletion_is_free(history: History) -> Iterator[Violation]:
    """A deletion of a finalized feature, with the downgrade flag, is applied whatever levels brokers support."""
    for each in updates(history, applied=False):
        if each.requested < 1 and each.level and each.allowed:
            why = f"the deletion of level {each.level}, with the flag, was refused"
            yield breach(each, why, "accepted", "refused", "deletion")


# How it is refused


@impact(
    "An invalid update is refused with another error", "trivia", "error-codes", "misled-operator", links=("KIP-584",)
)
@gating("features/names-the-fault", "584-14", "584-66", applies_to=on("update"), right_answer=RightAnswer.WITH_CLASS)
def names_the_fault(history: History) -> Iterator[Violation]:
    """The error is INVALID_REQUEST if the update itself is wrong, FEATURE_UPDATE_FAILED if a broker forbids it."""
    for each in updates(history, applied=False):
        errors = faults(each)
        observation = each.op.observation
        assert isinstance(observation, Refused)
        if errors and observation.error not in errors:
            why = f"an update from {each.level} to {each.requested} {_flag(each)} was refused as {observation.error}"
            yield breach(each, why, f"refused: {' or '.join(sorted(errors))}", "error", *sorted(errors))


def faults(answered: ControllerStep) -> set[str]:
    """The allowed errors for the update; none if it need not be refused, or if the feature may forbid it."""
    level, requested = answered.level, answered.requested
    if requested < 1:
        return set() if level and answered.allowed else {INVALID}
    found = set()
    if requested == level or (requested < level and not answered.allowed) or (requested > level and answered.allowed):
        found.add(INVALID)
    if all(span is None for span in answered.brokers.values()):
        found.add(INVALID)
    elif answered.outside(requested):
        found.add(FAILED)
    return found


# Brokers


@impact(
    "A broker joins that does not support a finalized level",
    "wrong data",
    "guards",
    "incompatible-broker",
    links=("KIP-584",),
)
@brokers("features/incompatible-broker-stops", "584-23", "584-25", "584-31", applies_to=on("broker-up"))
def incompatible_broker_stops(history: History) -> Iterator[Violation]:
    """A broker that does not support the finalized level, or does not know the feature, cannot register."""
    for each in _arrivals(history):
        span = _span(each.op.step)
        if each.accepted and each.level and not suits(span, each.level):
            newcomer = f"broker {each.op.step['broker']}, which {_knows(span)}"
            why = f"level {each.level} is finalized, and {newcomer}, registered"
            yield breach(each, why, "shut down", "registered", "unknowing" if span is None else "out of range")


@impact("A compatible broker is refused", "refused peer", "guards", "stuck-upgrade", links=("KIP-584",))
@brokers("features/compatible-broker-stays", "584-23", applies_to=on("broker-up"))
def compatible_broker_stays(history: History) -> Iterator[Violation]:
    """A broker that supports the finalized level can register; if no level is finalized, every broker can."""
    for each in _arrivals(history):
        span = _span(each.op.step)
        if not each.accepted and (not each.level or suits(span, each.level)):
            state = f"level {each.level} is finalized" if each.level else "no level is finalized"
            why = f"{state}, and broker {each.op.step['broker']}, which {_knows(span)}, was shut down"
            yield breach(each, why, "registered", "shut down")


def _arrivals(history: History) -> Iterator[ControllerStep]:
    return (each for each in trace(history) if each.verb == "broker-up")


def _span(step: Step) -> Range:
    return None if step["low"] is None else (step["low"], step["high"])
