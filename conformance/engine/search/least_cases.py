"""Searches for the least cases of the failures of a run, and counts what became of the searches."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kipcheck.conformance.core.ledger import LeastCases
from kipcheck.conformance.core.values.failure_group import FailureGroup
from kipcheck.conformance.engine.execution.progress import Progress
from kipcheck.conformance.engine.execution.worker import Finding, Worker
from kipcheck.conformance.engine.execution.workers import Workers
from kipcheck.conformance.engine.known.match import KnownDeviations
from kipcheck.conformance.engine.search import races
from kipcheck.conformance.engine.search.live_search import LIMIT_S
from kipcheck.conformance.engine.search.shrink import unshrunk
from kipcheck.conformance.engine.search.unshrunk_groups import ShrunkGroup, selected
from kipcheck.conformance.targets.registry import is_live

MOST_RACES: Final = 4
"""A race takes as long as its script, and so long as a dozen programs need to start."""


@dataclass(slots=True)
class LeastCaseSearches:
    """Those of a run."""

    targets: Sequence[str]
    option: float | None
    """``Options.least``"""
    progress: Progress
    races: int = 0
    """Failures that were played as races."""
    _counts: Counter[str] = field(default_factory=Counter)
    """By the fields of ``LeastCases``."""

    @property
    def limit_s(self) -> float | None:
        """Of each search."""
        return LIMIT_S if self.option is None and any(map(is_live, self.targets)) else self.option

    @property
    def line(self) -> LeastCases | None:
        counts = self._counts
        if not counts.total():
            return None
        return LeastCases(
            found=counts["found"], cut=counts["cut"], gone=counts["gone"], left_out=counts["left_out"],
            limit_s=self.limit_s,
        )  # fmt: skip

    def least(
        self,
        name: str,
        workers: Workers | None,
        groups: Sequence[FailureGroup[Finding]],
        account: KnownDeviations,
        unsteady: Callable[[Finding], None],
    ) -> list[FailureGroup[Finding]]:
        """The groups by what they shrink to; as they are if there are no workers, or if the options leave it out.

        Of a group without a finding that fails again alone, the first one is played as a race. ``name``: of the target.
        ``unsteady``: called with each finding whose case alone does not fail again, and that is no failure as a race.
        """
        if workers is None or self.option == 0:
            self._counts["left_out"] += len(groups)
            return [FailureGroup((unshrunk(group.first), *group.rest)) for group in groups]
        chosen = [selected(group, workers.worker.lasts_s) for group in groups]
        listed = {id(each) for findings in chosen for each in findings if account.lists_live(each)}
        every = [finding for findings in chosen for finding in findings if id(finding) not in listed]
        found = iter(self.progress.shrinking(workers.least_cases(every, self.option), len(every), self.limit_s))
        parts: list[FailureGroup[Finding]] = []
        for group, findings in zip(groups, chosen, strict=True):
            pairs = [(each, unshrunk(each) if id(each) in listed else next(found)) for each in findings]
            if all(each is None for _, each in pairs) and self.races < MOST_RACES:
                race = self._race(workers.worker, findings[0])
                pairs = [race, *(pairs[1:] if race[1] is None else [])]
            for finding, each in pairs:
                if id(finding) not in listed:
                    self._counts["gone" if each is None else "cut" if each.cut else "found"] += 1
                if each is None:
                    unsteady(finding)
            least = [(finding, least) for finding, least in pairs if least is not None]
            parts += ShrunkGroup(group, least).parts() if least else []
        for cost in workers.searched:
            self.progress.note(f"{name}  {cost}")
        return parts

    def _race(self, worker: Worker, finding: Finding) -> tuple[Finding, Finding | None]:
        """The finding with its rate as a race, and the least case that it has then; None if it fails too seldom."""
        rated = races.rated(worker, finding)
        self.races += 1
        return rated, replace(unshrunk(rated), cut=False) if races.is_failure(rated) else None
