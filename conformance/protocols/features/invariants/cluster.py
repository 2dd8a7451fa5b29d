"""Invariants of a cluster of KIP-584's draft: several features, registrations, elections, caches.

Each invariant reads answers, and none compares them with a model. What is finalized is known from a reading of the
node, up to the next step that may write it, and not while a validated request waits for its write.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Op, Refused, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import RightAnswer, impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps
from kipcheck.conformance.protocols.features.ops import cluster as ops

PLACE = 20

NODE: Final = "feature-cluster/node"
UPDATES: Final = "feature-cluster/updates"
BROKERS: Final = "feature-cluster/brokers"
node = partial(invariant, role=Role.CONTROLLER, checks=(NODE,))
updates = partial(invariant, role=Role.CONTROLLER, checks=(UPDATES,))
brokers = partial(invariant, role=Role.CONTROLLER, checks=(BROKERS,))

INVALID, FAILED, NONE = "INVALID_REQUEST", "FEATURE_UPDATE_FAILED", "NONE"
WRITERS: Final = (
    "elect-controller", "handle-registration", "update-features", "validate-features", "write-features", "lose-update",
)  # fmt: skip
"""Steps after which the node may have other contents."""
KIP: Final = ("KIP-584",)


class Span(NamedTuple):
    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low} to {self.high}"


Spans: TypeAlias = Mapping[str, Span]


@dataclass(frozen=True, slots=True)
class Contents:
    """The node, as a step read it."""

    at: int
    """The step."""
    epoch: int
    enabled: bool
    finalized: Spans
    registered: frozenset[int]


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """What is known of the cluster from the answers so far."""

    brokers: Mapping[int, Spans] = field(default_factory=dict)
    """What each live broker declares."""
    old: frozenset[int] = frozenset()
    """Live brokers below the migration version."""
    contents: Contents | None = None
    """None: not known."""
    elected: int | None = None
    """The live broker that was elected last."""
    waiting: int | None = None
    """The broker whose validated request waits for its write."""
    static: Mapping[int, int] = field(default_factory=dict)
    """The static inter-broker version of each live broker; 0: below the migration version."""
    read: Mapping[int, Contents] = field(default_factory=dict)
    """The contents of the node that each live broker read last, where they are known."""
    answered: Mapping[int, Spans] = field(default_factory=dict)
    """The finalized features that each live broker answered since it read the node last."""

    def without(self, number: int) -> "KnownCluster":
        """A broker is not live any more."""
        brokers = {each: own for each, own in self.brokers.items() if each != number}
        elected = None if self.elected == number else self.elected
        contents = self.contents
        if contents is not None:
            contents = replace(contents, registered=contents.registered - {number} if elected else frozenset())
        known = replace(self, brokers=brokers, old=self.old - {number}, contents=contents, elected=elected)
        return known.reads(number, None)

    def reads(self, number: int, contents: Contents | None) -> "KnownCluster":
        """A broker reads the node; None: it is not live, or what it reads is not known."""
        read = {each: own for each, own in self.read.items() if each != number}
        answered = {each: own for each, own in self.answered.items() if each != number}
        return replace(self, read=read if contents is None else {**read, number: contents}, answered=answered)


@dataclass(frozen=True, slots=True)
class ClusterStep(AnsweredStep[Step, Mapping[str, Any], KnownCluster]):
    @property
    def brokers(self) -> Mapping[int, Spans]:
        return self.before.brokers

    @property
    def contents(self) -> Contents | None:
        return self.before.contents

    def known_after(self) -> KnownCluster:
        known = self.before
        match ops.OPERATIONS.event_of(self.request):
            case ops.StartBroker(number, supported, old, static):
                known = known.without(number)
                if self.accepted:
                    brokers = {**known.brokers, number: {} if old else spans_of(supported)}
                    at = {**known.static, number: 0 if old else static}
                    known = replace(known, brokers=brokers, old=known.old | {number} if old else known.old, static=at)
                    known = known.reads(number, known.contents)
            case ops.StopBroker(number):
                known = known.without(number)
            case ops.Watch(number) if not self.accepted:
                known = known.without(number)
            case ops.Watch(number) if number in known.brokers:
                known = known.reads(number, known.contents)
            case ops.AskFeatures(number) if self.accepted:
                known = replace(known, answered={**known.answered, number: spans(self.answer["finalized"])})
            case ops.Elect(number) if number in known.brokers:
                known = replace(known, elected=number)
            case ops.LoseUpdate(arrives=False):
                return known
        if self.verb in WRITERS:
            waits = self.verb == "validate-features" and self.accepted and "results" not in self.answer
            known = replace(known, contents=None, waiting=known.elected if waits else None)
        elif self.verb == "features-node" and self.accepted and known.waiting is None:
            known = replace(known, contents=contents_of(self.op))
        return known if known.waiting == known.elected else replace(known, waiting=None)


@cached_on_history
def trace(history: History) -> tuple[ClusterStep, ...]:
    return plain_steps(history, KnownCluster(), ClusterStep)


def spans(found: Any) -> Spans:
    return {each["feature"]: Span(each["low"], each["high"]) for each in found}


def spans_of(declared: Iterable[ops.Supported]) -> Spans:
    return {each.feature: Span(each.low, each.high) for each in declared}


def contents_of(op: Op) -> Contents:
    assert isinstance(op.observation, Replied)
    found = dict(op.observation.payload)
    return Contents(
        op.index, found["epoch"], found["enabled"], spans(found["finalized"]), frozenset(found["registered"])
    )


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def breach(step: ClusterStep, why: str, expected: str, observed: str, *shape: str, at: int | None = None) -> Violation:
    places = (step.op.index,) if at is None else tuple(sorted((at, step.op.index)))
    return Violation(why, places, expected, observed, shape=shape)


class Update(NamedTuple):
    """One update of a request, with its result, where the node was known before."""

    step: ClusterStep
    before: Contents
    feature: str
    level: int
    flag: bool
    error: str

    @property
    def span(self) -> Span | None:
        return self.before.finalized.get(self.feature)

    @property
    def why(self) -> str:
        was = f"levels {self.span} are finalized" if self.span else "nothing is finalized"
        return f"{was} of {self.feature}, and an update to {self.level}{' with the downgrade flag' * self.flag}"


def results(step: ClusterStep) -> Mapping[str, str]:
    """Of an answered request, by feature; none of one that waits for its write."""
    if step.verb not in ("update-features", "validate-features") or not isinstance(step.op.observation, Replied):
        return {}
    return {each["feature"]: each["error"] for each in dict(step.op.observation.payload).get("results", ())}


def judged(history: History, applied: bool = True) -> Iterator[Update]:
    """The updates that were applied, or refused, while the node was known and enabled."""
    for step in trace(history):
        found = results(step)
        names = [each["feature"] for each in step.op.step["updates"]] if found else []
        for each in step.op.step["updates"] if found and step.contents and step.contents.enabled else ():
            name = each["feature"]
            if names.count(name) == 1 and name in found and (found[name] == NONE) is applied:
                assert step.contents is not None
                yield Update(step, step.contents, name, each["level"], each["allow_downgrade"], found[name])


class Around(NamedTuple):
    """A step that may write, between two readings of the node."""

    step: ClusterStep
    before: Contents
    after: Contents


def surrounded(history: History, *verbs: str) -> Iterator[Around]:
    """Steps with a reading of the node before and after, and no other step between that may write it."""
    found = trace(history)
    for place, step in enumerate(found):
        if step.verb not in verbs or step.contents is None:
            continue
        for later in found[place + 1 :]:
            if later.verb == "features-node" and later.accepted:
                yield Around(step, step.contents, contents_of(later.op))
            if later.verb in (*WRITERS, "features-node"):
                break


# The node


@impact(
    "A level is finalized that a registered broker does not support", "wrong data", "guards", "incompatible-broker",
    links=KIP,
)  # fmt: skip
@node("feature-cluster/within-brokers", "584-31", "584-25", "584-10", applies_to=on("features-node"))
def within_brokers(history: History) -> Iterator[Violation]:
    """Each finalized range lies within the supported range of every registered broker."""
    for step in trace(history):
        if step.verb != "features-node" or not step.accepted:
            continue
        found = contents_of(step.op)
        for number in sorted(found.registered & step.brokers.keys()):
            for name, span in found.finalized.items():
                own = step.brokers[number].get(name)
                if own is None or not own.low <= span.low <= span.high <= own.high:
                    knows = f"supports {own}" if own else "does not know it"
                    why = f"levels {span} of {name} are finalized, and broker {number} {knows}"
                    shape = "out of range" if own else "unknowing"
                    yield breach(step, why, "a range that it supports", f"{name} {span}", shape)


@impact("The epoch of the features falls", "wrong data", "epochs", "stale-view", links=KIP)
@node("feature-cluster/epoch-never-falls", "584-16", applies_to=on("features-node"))
def epoch_never_falls(history: History) -> Iterator[Violation]:
    """The epoch of the node never falls."""
    last: Contents | None = None
    for step in trace(history):
        if step.verb == "features-node" and step.accepted:
            found = contents_of(step.op)
            if last is not None and found.epoch < last.epoch:
                why = f"the epoch was {last.epoch} and is {found.epoch}"
                yield breach(step, why, f"at least {last.epoch}", str(found.epoch), "falls", at=last.at)
            last = found


@impact("An epoch stands for two contents", "wrong data", "epochs", "stale-view", links=KIP)
@node(
    "feature-cluster/one-content-per-epoch", "584-16", "584-26", right_answer=RightAnswer.SEVERAL,
    applies_to=on("features-node", "broker-features"),
)  # fmt: skip
def one_content_per_epoch(history: History) -> Iterator[Violation]:
    """An epoch never stands for two contents, in the node and in answers of brokers alike."""
    known: dict[int, tuple[int, Spans]] = {}
    for step in trace(history):
        if step.verb not in ("features-node", "broker-features") or not isinstance(step.op.observation, Replied):
            continue
        epoch, found = step.op.observation["epoch"], spans(step.op.observation["finalized"])
        if step.verb == "features-node" and epoch >= 0:
            known.setdefault(epoch, (step.op.index, found))
        at, before = known.get(epoch, (0, found))
        if before != found:
            why = f"epoch {epoch} stood for {listed(before)}, and stands for {listed(found)}"
            yield breach(step, why, listed(before), listed(found), step.verb, at=at)


def listed(found: Spans) -> str:
    return ", ".join(f"{name} {span}" for name, span in sorted(found.items())) or "no features"


@impact("An epoch skips a change or counts none", "wrong data", "epochs", "stale-view", links=KIP)
@node("feature-cluster/one-epoch-per-request", "584-67", applies_to=on("update-features", "features-node"))
def one_epoch_per_request(history: History) -> Iterator[Violation]:
    """A request with a good update raises the epoch by one, and another one leaves it."""
    for step, before, after in surrounded(history, "update-features"):
        if not step.accepted:
            continue
        grown = int(NONE in results(step).values())
        if after.epoch != before.epoch + grown:
            why = f"the epoch was {before.epoch}, and is {after.epoch} after a request with {grown or 'no'} good update"
            yield breach(step, why, str(before.epoch + grown), str(after.epoch), "counted", at=after.at)


@impact("The status of the features is wrong", "wrong data", "durability", "stuck-upgrade", links=KIP)
@node("feature-cluster/status-follows-version", "584-19", "584-20", "584-21", "584-22",
      applies_to=on("elect-controller", "features-node"))  # fmt: skip
def status_follows_version(history: History) -> Iterator[Violation]:
    """After an election the node is enabled exactly if the controller is at the migration version, or else empty."""
    last: tuple[int, bool] | None = None
    for step in trace(history):
        if step.verb == "elect-controller" and step.op.step["broker"] in step.brokers:
            last = (step.op.index, step.op.step["broker"] not in step.before.old)
        elif step.verb == "features-node" and step.accepted and last is not None:
            found = contents_of(step.op)
            if found.enabled is not last[1]:
                why = f"the controller is {'at' if last[1] else 'below'} the migration version"
                status = "enabled" if found.enabled else "disabled"
                wanted = "enabled" if last[1] else "disabled"
                yield breach(step, f"{why}, and the node is {status}", wanted, status, status, at=last[0])
            elif found.finalized and not found.enabled:
                why = "the node is disabled, and has features"
                yield breach(step, why, "no features", listed(found.finalized), "not empty", at=last[0])


@impact("A request changes a minimum level", "wrong data", "gating", "incompatible-broker", links=KIP)
@node("feature-cluster/minimum-stays", "584-18", applies_to=on("update-features", "features-node"))
def minimum_stays(history: History) -> Iterator[Violation]:
    """No request changes the minimum level of a finalized feature."""
    for step, before, after in surrounded(history, "update-features"):
        for name in before.finalized.keys() & after.finalized.keys():
            one, other = before.finalized[name].low, after.finalized[name].low
            if one != other:
                why = f"the minimum of {name} was {one}, and is {other} after a request"
                yield breach(step, why, str(one), str(other), "minimum", at=after.at)


# Updates


@impact("A top-level error changes features", "wrong data", "atomicity", "misled-operator", links=KIP)
@updates("feature-cluster/top-level-changes-nothing", "584-13", "584-54",
         applies_to=on("update-features", "write-features", "features-node"))  # fmt: skip
def top_level_changes_nothing(history: History) -> Iterator[Violation]:
    """A request with a top-level error changes nothing."""
    for step, before, after in surrounded(history, "update-features", "write-features"):
        observation = step.op.observation
        if isinstance(observation, Refused) and (before.epoch, before.finalized) != (after.epoch, after.finalized):
            why = f"a request failed with {observation.error}, and the node changed"
            yield breach(step, why, listed(before.finalized), listed(after.finalized), "changed", at=after.at)


@impact("A refused update is applied", "wrong data", "atomicity", "misled-operator", links=KIP)
@updates("feature-cluster/refused-stays", "584-12", applies_to=on("update-features", "features-node"))
def refused_stays(history: History) -> Iterator[Violation]:
    """A refused update leaves its feature as it was, as does a request that does not name it."""
    for step, before, after in surrounded(history, "update-features"):
        good = {name for name, error in results(step).items() if error == NONE}
        for name in before.finalized.keys() | after.finalized.keys():
            if step.accepted and name not in good and before.finalized.get(name) != after.finalized.get(name):
                why = f"no update of {name} succeeded, and it changed"
                expected, observed = str(before.finalized.get(name)), str(after.finalized.get(name))
                yield breach(step, why, expected, observed, "changed", at=after.at)


@impact("An update succeeds without effect", "wrong data", "atomicity", "misled-operator", links=KIP)
@updates("feature-cluster/accepted-is-applied", "584-12", applies_to=on("update-features", "features-node"))
def accepted_is_applied(history: History) -> Iterator[Violation]:
    """An update that succeeds is in the node."""
    for step, _, after in surrounded(history, "update-features"):
        found = results(step)
        for each in step.op.step["updates"]:
            span = after.finalized.get(each["feature"])
            if found.get(each["feature"]) == NONE and (span.high if span else 0) != max(each["level"], 0):
                why = f"an update of {each['feature']} to {each['level']} succeeded"
                yield breach(step, why, f"level {max(each['level'], 0)}", f"levels {span}", "missing", at=after.at)


@impact("A feature rises above what a broker supports", "wrong data", "gating", "incompatible-broker", links=KIP)
@updates("feature-cluster/range-gated", "584-06", "584-07", "584-10", applies_to=on("update-features"))
def range_gated(history: History) -> Iterator[Violation]:
    """A level is finalized only if every registered broker supports it."""
    for each in judged(history):
        for number in sorted(each.before.registered & each.step.brokers.keys()) if each.level >= 1 else ():
            own = each.step.brokers[number].get(each.feature)
            if own is None or not own.low <= each.level <= own.high:
                why = f"{each.why} was applied; broker {number} {f'supports {own}' if own else 'does not know it'}"
                yield breach(each.step, why, f"refused: {FAILED}", "applied", "range" if own else "unknown")


@impact("A feature falls without permission", "wrong data", "gating", "unsafe-downgrade", links=KIP)
@updates("feature-cluster/flag-gated", "584-07", "584-08", applies_to=on("update-features"))
def flag_gated(history: History) -> Iterator[Violation]:
    """A level falls, or a feature is deleted, only with the downgrade flag."""
    for each in judged(history):
        if each.span is not None and each.level < each.span.high and not each.flag:
            kind = "deletion" if each.level < 1 else "downgrade"
            yield breach(each.step, f"{each.why} was applied", f"refused: {INVALID}", "applied", kind)


@impact("An update that changes nothing succeeds", "trivia", "gating", "misled-operator", links=KIP)
@updates("feature-cluster/moves", "584-09", "584-75", "584-33", "584-69", applies_to=on("update-features"))
def moves(history: History) -> Iterator[Violation]:
    """A repeated level, a flag on a level that is not lower, and a deletion of what is not finalized are refused."""
    for each in judged(history):
        if each.span is None:
            wrong = "deletion of nothing" if each.level < 1 else ""
        elif each.level == each.span.high:
            wrong = "same level"
        else:
            wrong = "rises with the flag" if each.flag and each.level > each.span.high else ""
        if wrong:
            yield breach(each.step, f"{each.why} was applied", f"refused: {INVALID}", "applied", wrong)


@impact("A deposed controller changes features", "wrong data", "guards", "incompatible-broker", links=KIP)
@updates("feature-cluster/deposed-writes-nothing", "584-59", "584-15", applies_to=on("write-features"))
def deposed_writes_nothing(history: History) -> Iterator[Violation]:
    """The write of a controller that was deposed after it validated a request fails."""
    for step in trace(history):
        number = step.op.step.body.get("broker")
        if step.verb == "write-features" and step.accepted and step.before.elected not in (None, number):
            why = f"broker {step.before.elected} was elected, and a write of broker {number} was applied"
            yield breach(step, why, "refused: NOT_CONTROLLER", "applied", "deposed")


# Brokers


def _arrivals(history: History) -> Iterator[tuple[ClusterStep, Contents, str]]:
    """Brokers that read a known node, as they start or are notified, and the feature that they do not support."""
    for step in trace(history):
        if step.contents is None:
            continue
        match ops.OPERATIONS.event_of(step.request):
            case ops.StartBroker(_, supported, False):
                own: Spans | None = spans_of(supported)
            case ops.Watch(number) if number not in step.before.old:
                own = step.brokers.get(number)
            case _:
                own = None
        if own is not None and step.contents.enabled:
            wrong = (name for name, span in step.contents.finalized.items()
                     if name not in own or not own[name].low <= span.high <= own[name].high)  # fmt: skip
            yield step, step.contents, next(wrong, "")


@impact("An incompatible broker stays", "wrong data", "guards", "incompatible-broker", links=KIP)
@brokers("feature-cluster/incompatible-broker-stops", "584-23", "584-24", "584-25",
         applies_to=on("start-broker", "broker-watch"))  # fmt: skip
def incompatible_broker_stops(history: History) -> Iterator[Violation]:
    """A broker that does not support a finalized level stops when it reads the node."""
    for step, contents, wrong in _arrivals(history):
        if wrong and step.accepted:
            why = f"{wrong} is at level {contents.finalized[wrong].high}, and broker {step.op.step['broker']} stays"
            yield breach(step, why, "it stops", "it stays", step.verb, at=contents.at)


@impact("A compatible broker stops", "refused peer", "guards", "stuck-upgrade", links=KIP)
@brokers("feature-cluster/compatible-broker-stays", "584-23", "584-24", applies_to=on("start-broker", "broker-watch"))
def compatible_broker_stays(history: History) -> Iterator[Violation]:
    """A broker that supports every finalized level does not stop."""
    for step, contents, wrong in _arrivals(history):
        if not wrong and not step.accepted:
            why = f"broker {step.op.step['broker']} supports {listed(contents.finalized)}, and was stopped"
            yield breach(step, why, "it stays", "it stops", step.verb, at=contents.at)
