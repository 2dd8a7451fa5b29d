"""Invariants of KRaft controllers that register brokers, and of answers to ApiVersions. Each reads answers alone."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact, invariant
from kipcheck.conformance.protocols.declare.trace import AnsweredStep, plain_steps
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules

PLACE = 70

BROKERS: Final = "kraft-brokers/registrations"
registrations = partial(invariant, role=Role.CONTROLLER, checks=(BROKERS,))
METADATA, UNSUPPORTED = "metadata.version", "UNSUPPORTED_VERSION"
UNDECLARED: Final = (1, 1)
"""What a broker supports of metadata.version that does not declare it."""
REFUSES_UNDECLARED: Final = Release.parse(since("undeclared-finalized-refused", "controller"))
HIDES_ZERO: Final = Release.parse(since("hides-level-0", "controller"))
SHOWS_ZERO: Final = 4
KIP: Final = ("KIP-584",)
Levels = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class BrokerStep(AnsweredStep[Step, Mapping[str, Any], Levels | None]):
    """``before``: the levels of the cluster; None: its format was refused, and its levels are not known."""

    def known_after(self) -> Levels | None:
        if self.verb != "kraft-cluster":
            return self.before
        if not self.accepted:
            return None
        others = {each["feature"]: each["level"] for each in self.request["levels"]}
        return {**others, METADATA: self.request["level"]}


@cached_on_history
def trace(history: History) -> tuple[BrokerStep, ...]:
    """A conversation begins with a cluster at the newest metadata.version."""
    return plain_steps(history, {METADATA: _rules(history).newest}, BrokerStep)


def on(*verbs: str) -> Callable[[Case, Step], bool]:
    return lambda case, step: step.verb in verbs


def _rules(history: History) -> Rules:
    return Rules.of_edition(edition(history.case.edition))


def _release(history: History) -> Release:
    return Release.parse(edition(history.case.edition).release)


def _breach(step: BrokerStep, why: str, expected: object, observed: object, shape: str) -> Violation:
    return Violation(why, (step.op.index,), str(expected), str(observed), shape=(shape,))


def _obstacles(step: BrokerStep, release: Release) -> Iterator[str]:
    """The finalized features that the broker of a registration does not support. The quorum has kraft.version."""
    own = {each["feature"]: (each["low"], each["high"]) for each in step.request["supported"]}
    for name, level in (step.before or {}).items():
        span = own.get(name, UNDECLARED if name == METADATA else None)
        if name == "kraft.version" or not level:
            continue
        if span is None:
            if release >= REFUSES_UNDECLARED:
                yield f"{name} is at {level}, and the broker does not declare it"
        elif not span[0] <= level <= span[1]:
            yield f"{name} is at {level}, and the broker supports {span[0]} to {span[1]}"


def _registrations(history: History) -> Iterator[tuple[BrokerStep, list[str]]]:
    release = _release(history)
    for step in trace(history):
        if step.verb == "kraft-register" and step.before is not None:
            yield step, [*_obstacles(step, release)]


@impact("An incompatible broker is registered", "wrong data", "guards", "incompatible-broker", links=KIP)
@registrations("kraft-brokers/refuses-incompatible", "584-46", "584-31", applies_to=on("kraft-register"))
def refuses_incompatible(history: History) -> Iterator[Violation]:
    """A broker that does not support a finalized level is refused with UNSUPPORTED_VERSION."""
    for step, obstacles in _registrations(history):
        if obstacles and step.error != UNSUPPORTED:
            yield _breach(step, obstacles[0], f"refused: {UNSUPPORTED}", step.error or "registered", "registered")


@impact("A compatible broker is not registered", "refused peer", "guards", "stuck-upgrade", links=KIP)
@registrations("kraft-brokers/admits-compatible", "584-46", applies_to=on("kraft-register"))
def admits_compatible(history: History) -> Iterator[Violation]:
    """A broker that supports every finalized level is registered."""
    for step, obstacles in _registrations(history):
        own = {each["feature"]: each["low"] for each in step.request["supported"]}
        levels = step.before or {}
        # Releases differ: what is not finalized may count as level 0, and metadata.version may have to be declared.
        unclear = METADATA not in own or any(low > 0 and not levels.get(name, 0) for name, low in own.items())
        unclear = unclear or bool(levels.get("kraft.version", 0))
        if not obstacles and not unclear and not step.accepted:
            yield _breach(step, f"levels are {dict(step.before or {})}", "registered", step.error, "refused")


def _pictures(history: History) -> Iterator[BrokerStep]:
    return (step for step in trace(history) if step.verb == "kraft-picture" and step.accepted)


@impact("A client reads wrong finalized features", "wrong data", "epochs", "stale-view", links=KIP)
@registrations("kraft-brokers/finalized-as-they-are", "584-47", applies_to=on("kraft-cluster", "kraft-picture"))
def finalized_as_they_are(history: History) -> Iterator[Violation]:
    """A finalized level is minimum and maximum in an answer to ApiVersions, and level 0 is not listed."""
    for step in _pictures(history):
        if step.before is not None:
            expected = {name: (level, level) for name, level in step.before.items() if level}
            found = {each["feature"]: (each["low"], each["high"]) for each in step.answer["finalized"]}
            for name in sorted((expected.keys() | found.keys()) - {"kraft.version"}):
                if expected.get(name) != found.get(name):
                    shape = "missing" if name not in found else "listed" if name not in expected else "range"
                    yield _breach(step, f"{name} in {dict(step.before)}", expected.get(name), found.get(name), shape)


@impact("Older clients cannot read an answer to ApiVersions", "refused peer", "versions", "refused-peer", links=KIP)
@registrations("kraft-brokers/hides-minimum-0", "584-47", applies_to=on("kraft-picture"))
def hides_minimum_0(history: History) -> Iterator[Violation]:
    """From 3.9 on a request below version 4 is not shown supported features whose minimum is 0."""
    for step in _pictures(history):
        if step.request["version"] < SHOWS_ZERO and _release(history) >= HIDES_ZERO:
            for each in step.answer["supported"]:
                if each["low"] == 0:
                    why = f"ApiVersions v{step.request['version']}, and {each['feature']} begins at 0"
                    yield _breach(step, why, "not listed", f"{each['low']} to {each['high']}", "minimum 0")


@impact("A broker does not answer clients", "refused peer", "answers", "stale-view", links=KIP)
@registrations("kraft-brokers/answers-clients", "584-55", "584-26", "584-47", applies_to=on("kraft-picture"))
def answers_clients(history: History) -> Iterator[Violation]:
    """A broker answers ApiVersions with what its release supports, each feature with its whole range."""
    for step in trace(history):
        if step.verb != "kraft-picture":
            continue
        if not step.accepted:
            yield _breach(step, "a client asked", "an answer", step.error, "refused")
            continue
        shows = step.request["version"] >= SHOWS_ZERO or _release(history) < HIDES_ZERO
        expected = {name: (low, high) for name, (low, high) in _rules(history).declares() if low > 0 or shows}
        found = {
            each["feature"]: (each["low"], each["high"])
            for each in step.answer["supported"]
            if each["low"] > 0 or shows
        }
        if found != expected:
            shape = "missing" if expected.keys() - found.keys() else "range"
            yield _breach(step, f"release {_rules(history).release}", expected, found, shape)
