"""Statistics of the rounds of a campaign: a line of the ledger for each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.campaign.rows import Row
from kipcheck.conformance.core.ledger import Failure, Round

POINTS: Final = 40
"""The most points of a round that show how coverage grew with a target."""


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """The data of a round that its rows do not contain."""

    round: int
    planned: int
    """Shards, of both stages."""
    corpus: int
    """Values kept at its end."""
    seconds: float
    """From its beginning until it ended or was stopped."""


def rounds_of(rows: Sequence[Row], rounds: Sequence[RoundEnd], failures: Sequence[Failure]) -> Iterator[Round]:
    """``rows``: of one campaign, in the order of their keys; ``failures``: distinct ones, with ``first``."""
    by_round: dict[int, list[Row]] = {}
    for row in rows:
        by_round.setdefault(row.round, []).append(row)
    seen: set[int] = set()
    targets: dict[str, _Target] = {}
    for about in rounds:
        here = by_round.get(about.round, [])
        before = len(seen)
        growth: dict[str, list[tuple[int, int]]] = {}
        for row in here:
            seen.update(row.coverage)
            target = targets.setdefault(row.target, _Target(set()))
            growth.setdefault(row.target, [target.point]).append(target.grown(row))
        yield Round(
            campaign=here[0].campaign if here else "",
            round=about.round,
            planned=about.planned,
            shards=dict(Counter(row.status for row in here)),
            cases=sum(row.cases for row in here if row.stage == "hold"),
            steps=sum(row.steps for row in here),
            seconds=round(about.seconds, 1),
            cpu_seconds=round(sum(row.cpu_ms for row in here) / 1000, 1),
            coverage=len(seen),
            new=len(seen) - before,
            corpus=about.corpus,
            failures=tuple(each.id for each in failures if each.first is not None and each.first.round == about.round),
            growth={name: tuple(_thinned(points)) for name, points in growth.items()},
        )


@dataclass(slots=True)
class _Target:
    keys: set[int]
    cases: int = 0

    @property
    def point(self) -> tuple[int, int]:
        return self.cases, len(self.keys)

    def grown(self, row: Row) -> tuple[int, int]:
        self.keys.update(row.coverage)
        self.cases += row.cases if row.stage == "hold" else 0
        return self.point


def _thinned(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The first and the last, and as many between them as a drawing shows."""
    some = list(dict.fromkeys(points))
    every = -(-len(some) // POINTS)
    return [each for number, each in enumerate(some) if number % every == 0 or number == len(some) - 1]
