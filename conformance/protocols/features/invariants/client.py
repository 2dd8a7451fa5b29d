"""Invariants of a client that reads and updates feature versions. Each reads answers, none compares with a model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps

PLACE = 50

DISCOVERY: Final = "feature-client/discovery"
RELEASED: Final = "feature-client/as-released"
discovery = partial(invariant, role=Role.CONTROLLER, checks=(DISCOVERY,))
NONE: Final = "NONE"
NO_EPOCH: Final = -1
DRAFT: Final = "kip-584"
"""Releases keep no order of epochs (584-41)."""
RETRIED: Final = "NOT_CONTROLLER"
"""A top-level error after which released clients look for the controller and send the request again."""
LONG_S: Final = 600
"""After this time a client that depends on features has asked again: the draft says periodically."""
KIP: Final = ("KIP-584",)


@dataclass(frozen=True, slots=True)
class KnownFeatures:
    """What a client was sent so far."""

    needs: Mapping[str, int] | None = None
    """None: it has not started."""
    highest: int = NO_EPOCH
    at: int = 0
    """The step with the highest epoch."""
    finalized: Mapping[str, tuple[int, int]] | None = None
    """Of the newest answer; None: there was none."""


@dataclass(frozen=True, slots=True)
class ClientStep(AnsweredStep[Step, Mapping[str, Any], KnownFeatures]):
    def known_after(self) -> KnownFeatures:
        if self.verb == "client-features":
            return KnownFeatures({each["feature"]: each["level"] for each in self.request["needs"]})
        epoch, highest = self.request.body.get("epoch", NO_EPOCH), self.before.highest
        if self.verb != "broker-answers" or epoch < highest:
            return self.before
        at = self.op.index if epoch > highest else self.before.at
        return replace(self.before, highest=epoch, at=at, finalized=_levels(self.request["finalized"]))


@cached_on_history
def trace(history: History) -> tuple[ClientStep, ...]:
    return plain_steps(history, KnownFeatures(), ClientStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _answers(history: History) -> Iterator[ClientStep]:
    return (step for step in trace(history) if step.verb == "broker-answers" and step.accepted)


def _levels(found: Any) -> dict[str, tuple[int, int]]:
    return {each["feature"]: (each["low"], each["high"]) for each in found}


@impact("A client goes back to older features", "wrong data", "epochs", "stale-view", links=KIP)
@discovery("feature-client/never-goes-back", "584-17", applies_to=on("broker-answers"))
def never_goes_back(history: History) -> Iterator[Violation]:
    """A client that has seen a higher epoch ignores every answer with a lower one, from whichever broker."""
    for step in _answers(history) if history.case.edition == DRAFT else ():
        epoch = step.answer["epoch"]
        if step.request["epoch"] < step.before.highest and (epoch is None or epoch < step.before.highest):
            why = f"epoch {step.before.highest} was seen, and an answer with epoch {step.request['epoch']} was taken"
            expected = f"epoch {step.before.highest}"
            yield Violation(why, (step.before.at, step.op.index), expected, f"epoch {epoch}", shape=("taken",))
        found, newest = _levels(step.answer["finalized"]), step.before.finalized
        if step.request["epoch"] < step.before.highest == epoch and newest is not None and found != newest:
            why = f"an answer with epoch {step.request['epoch']} was to be ignored"
            yield Violation(why, (step.before.at, step.op.index), str(dict(newest)), str(found), shape=("levels",))


@impact("A client does not learn of newer features", "wrong data", "epochs", "stuck-upgrade", links=KIP)
@discovery("feature-client/shows-the-newest", "584-52", "584-58", "584-17", checks=(DISCOVERY, RELEASED),
           applies_to=on("broker-answers"))  # fmt: skip
def shows_the_newest(history: History) -> Iterator[Violation]:
    """A client shows epoch, finalized and supported features of the newest answer; no epoch where there is none."""
    for step in trace(history):
        if step.verb != "broker-answers" or step.request["epoch"] < step.before.highest:  # judged by never-goes-back
            continue
        if not step.accepted:
            yield Violation(
                "a broker answered", (step.op.index,), "a view", f"refused: {step.error}", shape=("refused",)
            )
            continue
        sent = step.request["epoch"] if step.request["epoch"] != NO_EPOCH else None
        for key, expected, found in (
            ("epoch", sent, step.answer["epoch"]),
            ("finalized", _levels(step.request["finalized"]), _levels(step.answer["finalized"])),
            ("supported", _levels(step.request["supported"]), _levels(step.answer["supported"])),
        ):
            if expected != found:
                why = f"a broker answered with {key} {expected}, and the client shows {found}"
                yield Violation(why, (step.op.index,), str(expected), str(found), shape=(key,))


@impact("A client uses a feature before it is finalized", "wrong data", "gating", "double-processing", links=KIP)
@discovery("feature-client/uses-what-is-finalized", "584-74", checks=(DISCOVERY, RELEASED),
           applies_to=on("broker-answers"))  # fmt: skip
def uses_what_is_finalized(history: History) -> Iterator[Violation]:
    """A client uses new behaviour from the level on that is finalized, not from one that some broker supports."""
    for step in _answers(history):
        shown = {name: high for name, (_, high) in _levels(step.answer["finalized"]).items()}
        needs = step.before.needs or {}
        expected = sorted(name for name, level in needs.items() if shown.get(name, 0) >= level)
        found = sorted(step.answer["uses"])
        if found != expected:
            why = f"it needs {dict(needs)}, knows {shown}, and uses {', '.join(found) or 'nothing'}"
            shape = "early" if {*found} - {*expected} else "late"
            yield Violation(why, (step.op.index,), ", ".join(expected) or "nothing", str(found), shape=(shape,))


@impact("A client does not notice that features change", "wrong data", "epochs", "stuck-upgrade", links=KIP)
@discovery("feature-client/asks", "584-58", grade=Grade.SHOULD, applies_to=on("client-features", "client-waits"))
def asks(history: History) -> Iterator[Violation]:
    """A client asks a broker when it starts and, if it depends on features, again from time to time."""
    for step in trace(history):
        starts = step.verb == "client-features"
        waits = step.verb == "client-waits" and step.request["seconds"] >= LONG_S and bool(step.before.needs)
        if (starts or waits) and not step.answer.get("asks"):
            why = "it started" if starts else f"it depends on features, and {step.request['seconds']} s passed"
            yield Violation(why, (step.op.index,), "ApiVersions", "no request", shape=(step.verb,))


@impact("A refused update looks as if it succeeded", "wrong data", "error-codes", "misled-operator", links=KIP)
@discovery("feature-client/futures", "584-53", checks=(DISCOVERY, RELEASED), applies_to=on("controller-results"))
def futures(history: History) -> Iterator[Violation]:
    """The future of an update fails with its error or the top-level one, and that for all if one of them does."""
    for step in trace(history):
        if step.verb != "controller-results":
            continue
        if not step.accepted:
            why = "the response arrived"
            yield Violation(why, (step.op.index,), "futures", f"refused: {step.error}", shape=("refused",))
            continue
        top = step.request["top"]
        if top == RETRIED and history.case.edition != DRAFT:
            continue
        expected = {each["feature"]: top or each["error"] for each in step.request["results"]}
        found = {each["feature"]: each["error"] for each in step.answer["results"]}
        if found != expected:
            yield Violation("results of updates", (step.op.index,), str(expected), str(found), shape=("single",))
        fails = any(error != NONE for error in expected.values())
        if (step.answer["all"] != NONE) is not fails:
            why = f"the updates end with {expected}"
            wanted = "an error" if fails else NONE
            yield Violation(why, (step.op.index,), wanted, step.answer["all"], shape=("all",))


@impact("A client orders answers by their epoch", "trivia", "epochs", "stale-view", links=KIP)
@invariant("feature-client/takes-answers-as-they-come", "584-41", role=Role.CONTROLLER, grade=Grade.INFO,
           checks=(RELEASED,), applies_to=on("broker-answers"))  # fmt: skip
def takes_answers_as_they_come(history: History) -> Iterator[Violation]:
    """A released Java client takes an answer with a lower epoch as it comes."""
    for step in _answers(history) if history.case.edition != DRAFT else ():
        sent = step.request["epoch"]
        if NO_EPOCH < sent < step.before.highest and step.answer["epoch"] != sent:
            why = f"epoch {step.before.highest} was seen, and an answer with epoch {sent} ignored"
            at = (step.before.at, step.op.index)
            yield Violation(why, at, f"epoch {sent}", f"epoch {step.answer['epoch']}", shape=("ordered",))
