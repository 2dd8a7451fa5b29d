"""Checks of controllers: the feature updates of KIP-584's draft."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kipcheck.conformance.checks.conversations import Subject, Wording, conversation, listed, machine_family
from kipcheck.conformance.checks.declare import Check, Family, Operation
from kipcheck.conformance.core.case import Role, Step
from kipcheck.conformance.core.edition import APACHE, KIP_584, edition
from kipcheck.conformance.targets.protocol import FEATURES, Claims
from kipcheck.strategies.features import FEATURE_UPDATES


def editions(name: str) -> Iterable[str]:
    """The draft, the only edition with rules so far; a run of ``apache``, which names no release, includes it too."""
    return (KIP_584.name,) if edition(name) in (APACHE, KIP_584) else ()


def _actor(step: Step) -> str:
    return f"broker {step['broker']}" if "broker" in step.body else step.actor


def _described(step: Step) -> str:
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


def sample_ops(role: Role, claims: Claims) -> Iterator[Operation]:
    if role is Role.CONTROLLER:
        yield {"op": "broker-up", "broker": 1, "low": 1, "high": 3}
        yield {"op": "update", "level": 1, "allow_downgrade": False}


CONTROLLER: Family[Subject] = replace(
    machine_family(
        Role.CONTROLLER,
        FEATURES,
        editions,
        lambda edition: FEATURE_UPDATES,
        Wording("controller", _actor, _described, listed).sequence,
    ),
    sample_ops=sample_ops,
)

FEATURE_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "features/epochs",
        "the epoch counts the applied updates, and nothing else changes it",
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
        "a level is raised, lowered and deleted only as the rules, the operator and every live broker allow",
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
        "no broker is live with a finalized level that it does not support",
        CONTROLLER,
        conversation,
        values=150,
        invariants=("features/incompatible-broker-stops", "features/compatible-broker-stays"),
    ),
)
