"""All invariants, by role, and the tags and effects of their failures."""

from collections.abc import Sequence
from functools import cache

from kipcheck.conformance.core.files import tags
from kipcheck.conformance.core.values import impacts
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols import registry
from kipcheck.conformance.protocols.declare import claims, survival
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, Invariant

OF_EVERY_TARGET = (survival.__name__, claims.__name__)


@cache
def all_invariants(role: Role) -> tuple[Invariant, ...]:
    """Those of the role, and those of every role.

    In the order of their modules, whatever was imported first: the order of verdicts depends on it.
    """
    modules = {name: at for at, name in enumerate((*OF_EVERY_TARGET, *registry.modules("invariants")))}
    found = sorted(INVARIANTS.values(), key=lambda each: modules.get(each.search.__module__, len(modules)))
    return tuple(each for each in found if each.role in (role, None))


def invariant_of(id: str) -> Invariant:
    """Errors: LookupError."""
    registry.parts("invariants")
    if id not in INVARIANTS:
        raise LookupError(f"no invariant {id!r}")
    return INVARIANTS[id]


def tags_vocabulary() -> tags.Vocabulary:
    """With the tags that invariants declare."""
    registry.parts("invariants")
    return tags.vocabulary()


def tags_of(invariant: str, shape: Sequence[str], subject: str, answered: int | None = None) -> list[str]:
    """The tags of a failure; empty if nothing fits. ``answered``: as ``Violation`` has it."""
    found = effect_of(invariant, shape, subject)
    observed = found is None or found.given(answered) == found
    return [
        each for each in tags.tags_of(invariant, shape, subject) if observed or each not in tags.vocabulary().effects
    ]


def all_effects() -> tuple[impacts.Effect, ...]:
    """With those that invariants declare."""
    registry.parts("invariants")
    return impacts.effects()


def effect_of(invariant: str, shape: Sequence[str], subject: str, answered: int | None = None) -> impacts.Effect | None:
    """The effect of a failure; None if nothing fits. ``answered``: as ``Violation`` has it."""
    registry.parts("invariants")
    return impacts.effect_of(invariant, shape, subject, answered)
