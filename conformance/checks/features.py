"""What checks of controllers are about: a machine that they play, in conversations drawn with our model at hand."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from conformance.checks.declared import Check, Conversation, Exhibit, Family
from conformance.core.case import Role, Step, steps_from
from conformance.core.edition import APACHE, KIP_584, edition
from conformance.core.history import Died, History, Lost, Observation, Refused, Replied, Silent, Unsupported
from conformance.core.verdict import Violation
from conformance.targets.protocol import FEATURES
from strategies.features import FEATURE_UPDATES

Value: TypeAlias = list[dict[str, Any]]
"""Steps as plain data."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A machine, in an edition."""

    edition: str
    name: str = FEATURES
    version: int | None = None


def subjects(edition_name: str) -> Iterator[Subject]:
    """Of the draft, which is all that has rules so far: a run of ``apache``, which names no release, has it too."""
    if edition(edition_name) in (APACHE, KIP_584):
        yield Subject(KIP_584.name)


def subject(edition_name: str, name: str, version: int | None) -> Subject:
    if (edition_name, name) != (KIP_584.name, FEATURES):
        raise LookupError(f"no machine {name!r} in {edition_name}; there is {FEATURES} in {KIP_584.name}")
    return Subject(edition_name, name)


def drawn(subject: Subject, random: Random) -> Value:
    steps = FEATURE_UPDATES.draw(random, FEATURE_UPDATES.swarm(random))
    return [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]


def conversation(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    yield Conversation(steps_from(value))


def sequence(history: History, violation: Violation) -> list[Exhibit]:
    """Who said what to the controller, and what it answered."""
    steps = [
        {
            "from": _actor(op.step),
            "to": "controller",
            "says": _says(op.step),
            "answer": _answer(op.observation),
            "guilty": op.index in violation.at,
        }
        for op in history.ops
    ]
    return [{"kind": "sequence", "steps": steps}]


def _actor(step: Step) -> str:
    return f"broker {step['broker']}" if "broker" in step.body else step.actor


def _says(step: Step) -> str:
    match step.verb:
        case "update":
            return f"update to level {step['level']}" + (", downgrade allowed" if step["allow_downgrade"] else "")
        case "broker-up":
            span = "does not know the feature" if step["low"] is None else f"supports {step['low']} to {step['high']}"
            return f"comes up, {span}"
        case "broker-down":
            return "goes down"
        case "restart":
            return "all controllers restart"
    return step.verb


def _answer(observation: Observation) -> str:
    match observation:
        case Replied(payload):
            return ", ".join(f"{name} {value}" for name, value in payload) or "accepted"
        case Refused(error):
            return f"refused: {error}"
        case Died(cause):
            return cause
        case Lost() | Silent():
            return "no answer"
        case Unsupported():
            return "not supported"


CONTROLLER: Family[Subject] = Family(
    Role.CONTROLLER,
    subjects,
    subject,
    claimed=lambda subject, claims: subject.name in claims.machines,
    node=lambda subject: FEATURE_UPDATES.declaration,
    draw=drawn,
    exhibits=sequence,
)

FEATURE_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "features/epochs",
        "the epoch counts the updates that were applied, and nothing else moves it",
        CONTROLLER,
        conversation,
        values=300,
        invariants=(
            "features/epoch-grows",
            "features/only-updates-change",
            "features/outlives-restarts",
            "features/epoch-names-contents",
        ),
    ),
    Check(
        "features/gating",
        "a level rises, falls and goes only as the rules, the operator and every live broker allow",
        CONTROLLER,
        conversation,
        values=300,
        invariants=(
            "features/downgrade-gated",
            "features/deletion-gated",
            "features/deletes-what-is-there",
            "features/flag-only-down",
            "features/same-level-refused",
            "features/level-suits-brokers",
            "features/upgrades",
            "features/downgrades",
            "features/deletion-is-free",
            "features/names-the-fault",
        ),
    ),
    Check(
        "features/brokers",
        "no broker lives with a level that it does not support",
        CONTROLLER,
        conversation,
        values=150,
        invariants=("features/incompatible-broker-stops", "features/compatible-broker-stays"),
    ),
)
