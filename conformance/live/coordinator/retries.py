"""Which conversations with a broker are played again: what they show proves nothing."""

from collections.abc import Sequence
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Died, History, Observation
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.invariants import all_invariants

PAUSES_S: Final = (0.0, 0.03)
"""A conversation that breaks a law in doubt is played again, as long as it does: with so long a pause before each
request, which separates more timers, and makes more of them expire too early."""


def proves_nothing(target: str, case: Case, found: Sequence[Observation], repeats: bool) -> bool:
    """Whether the history breaks a law only in doubt, a description aside. ``repeats``: the broker has answered a
    request twice. Kafka closes the connection then, on which the request of another conversation may wait."""
    if repeats and lost_its_answer(found):
        return True
    history = History.of(case, target, found)
    if not is_in_doubt(history):
        return False
    laws = [
        each for each in all_invariants(Role.COORDINATOR)
        if each.id in CHECKS[case.check].invariants and each.unsure is not None and each.grade is not Grade.INFO
    ]  # fmt: skip
    return any(_breaks(each, history) and not (each.certain and _breaks(each, each.certain(history))) for each in laws)


def lost_its_answer(found: Sequence[Observation]) -> bool:
    """Whether the broker closed the connection of a conversation, or accepted none any more."""
    return any(isinstance(each, Died) and each.cause == "crashed" for each in found)


def _breaks(law: Invariant, history: History) -> bool:
    return next(law.search(history), None) is not None
