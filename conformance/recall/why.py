"""States why a change to a client was missed, from what was counted while it ran and while the unchanged client did."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.core.ledger import Ledger
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.recall.facts import CaseFacts, Usual

NOT_REACHED: Final = "not reached"
NO_DIFFERENCE: Final = "no difference"
NO_LAW: Final = "no law"
IN_DOUBT: Final = "in doubt"
WHYS: Final[Mapping[str, str]] = {
    NOT_REACHED: "no case ran the changed line",
    NO_DIFFERENCE: "the line was run, and in no case the client sent anything else",
    NO_LAW: "in some case the client sent something else, and no verdict changed",
    IN_DOUBT: "a verdict changed, to one that is no failure, or to a known one",
}

By = Mapping[str, frozenset[str]]
"""Invariant -> its results in a case, of one run or several. Descriptions (INFO) are left out."""


@dataclass(frozen=True, slots=True)
class Missed:
    """Why, and the counts that say it."""

    why: str
    reached: int
    """Cases that ran the changed line."""
    differing: tuple[str, ...]
    """Cases in which the client sent something else, by id; noisy ones are left out."""
    doubted: int
    """Those of them in which a verdict changed."""
    nearest: CaseFacts | None
    """The case that came nearest to the changed line: one of the last kind that there is, the shortest."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What is known of whether the changed line was run."""

    by_case: bool
    """Whether it was counted in each case."""
    otherwise: bool
    """Whether it was run in no case, as when its module is imported; where no case is counted, whether cases of the
    checks run it in the unchanged client."""

    def may_show(self, facts: CaseFacts) -> bool:
        """Whether the change can make a difference in the case: elsewhere a difference is noise."""
        return facts.reached or self.otherwise or not self.by_case


def missed(
    facts: Mapping[str, CaseFacts], by: Mapping[str, By], usual: Usual, usually: Mapping[str, By], counted: Counted
) -> Missed:
    """``by``: the verdicts of the run, by case; ``usually``: those of the unchanged client."""
    noisy = usual.noisy
    reached = [each for each in facts.values() if each.reached]
    differing = [
        each for each in facts.values() if each.case not in noisy and counted.may_show(each) and usual.differs(each)
    ]
    doubted = [each for each in differing if any(changed(by.get(each.case, {}), usually.get(each.case, {})))]
    if not (reached or counted.otherwise or differing):
        why = NOT_REACHED
    else:
        why = IN_DOUBT if doubted else NO_LAW if differing else NO_DIFFERENCE
    nearest = min(doubted or differing or reached, key=lambda each: (not each.steps, len(each.steps)), default=None)
    return Missed(why, len(reached), tuple(each.case for each in differing), len(doubted), nearest)


def changed(by: By, usually: By) -> Iterator[str]:
    """The invariants with a result that the unchanged client does not have."""
    return (invariant for invariant, results in by.items() if results - usually.get(invariant, frozenset()))


def newly_failing(by: By, usually: By) -> Iterator[str]:
    return (each for each in changed(by, usually) if Result.FAIL.name in by[each] - usually.get(each, frozenset()))


def verdicts(ledgers: Iterable[Ledger]) -> dict[str, dict[str, frozenset[str]]]:
    """Those of several runs, by case and invariant."""
    described = {
        each.id for role in {check.role for check in CHECKS.values()} for each in all_invariants(role)
        if each.grade is Grade.INFO
    }  # fmt: skip
    found: dict[str, dict[str, frozenset[str]]] = {}
    for ledger in ledgers:
        for line in ledger.verdicts():
            if line.case is None:
                continue
            mine = found.setdefault(line.case, {})
            for invariant, result in (line.by or {}).items():
                if invariant not in described:
                    mine[invariant] = mine.get(invariant, frozenset()) | {result}
    return found
