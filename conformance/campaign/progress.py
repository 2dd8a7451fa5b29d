"""Reports the progress of a campaign on standard error: a live line on a terminal, otherwise a line now and then."""

import time
from dataclasses import dataclass, field

from kipcheck.conformance.campaign.executors.local import Progress as Shards
from kipcheck.conformance.engine.execution.progress import Progress, span

LINE_INTERVAL_S = 20.0
"""Seconds between two lines about one stage, if lines are not live."""


@dataclass(slots=True)
class CampaignProgress:
    """Totals of the campaign so far, and its current stage."""

    progress: Progress = field(default_factory=Progress)
    total: int | None = None
    """Cases of the whole campaign; None: limited by time only."""
    ends: float | None = None
    """End of the budget (``time.monotonic``)."""
    cases: int = 0
    keys: int = 0
    failures: int = 0
    cases_here: int = 0
    """Cases run since ``begun``."""
    started_at: float = field(default_factory=time.monotonic)
    where: str = ""
    shards: Shards = field(default_factory=lambda: Shards(0, 0, 0))
    _last_line_at: float = 0.0

    def stage(self, where: str, total: int) -> None:
        self.where, self.shards = where, Shards(0, 0, total)
        self.look(force=True)

    def tick(self, shards: Shards) -> None:
        self.shards = shards
        self.look()

    def add_cases(self, cases: int) -> None:
        self.cases += cases
        self.cases_here += cases
        self.look()

    def look(self, force: bool = False) -> None:
        now = time.monotonic()
        if force or self.progress.live or now - self._last_line_at >= LINE_INTERVAL_S:
            self._last_line_at = now
            self.progress.say(self.line(now))

    def line(self, now: float) -> str:
        shards = self.shards
        parts = [
            self.where,
            f"{shards.done}/{shards.total} shards" + (f", {shards.running} running" if shards.running else ""),
            f"{self.cases:,} cases",
            f"{self.rate(now):,.0f}/s",
            f"{self.keys:,} keys",
            f"{self.failures} failures",
        ]
        left = self.left_s(now)
        return "  ".join(parts if left is None else [*parts, f"{span(left)} left"])

    def rate(self, now: float) -> float:
        """Cases per second since this process started."""
        return self.cases_here / max(now - self.started_at, 0.001)

    def left_s(self, now: float) -> float | None:
        """Seconds until the cases or the budget are used up, whichever is first; None: not known yet."""
        found = []
        if self.ends is not None:
            found.append(max(0.0, self.ends - now))
        if self.total is not None and self.cases_here:
            found.append(max(0, self.total - self.cases) / self.rate(now))
        return min(found, default=None)

    def note(self, line: str) -> None:
        self.progress.close()
        self.progress.note(line)

    def close(self) -> None:
        self.progress.close()
