"""The plan of a campaign: its shards as a function of the options, not of workers, cores or executors."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

from kipcheck.conformance.campaign.rows import Found, Key, Row, Stage

Engine: TypeAlias = Literal["mixed"]
"""How values are generated (``generate``). Rows of earlier releases have others."""
USUAL_CASES: Final = 20_000
"""The default for each target."""
USUAL_ROUNDS: Final = 4
SHARDS_A_ROUND: Final = 8
"""For each target, as long as the shards have a reasonable size."""
LEAST_SHARD: Final = 500
MOST_SHARD: Final = 5_000
REDUCED_TOGETHER: Final = 6
"""The number of failures that one shard reduces."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a shard's child: far above what a normal shard takes."""

    wall_s: float
    cpu_s: float
    """Of the child itself; its testees have limits of their own."""
    case_cpu_s: float = 10.0
    """The part of ``cpu_s`` for the cases of one value, from when they are noted: so a hang ends earlier than the
    whole shard would, and is attributed to its case."""
    memory: int = 4 << 30
    """Bytes of address space."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The arguments of ``run_shard``, except the snapshot of the corpus: plain data."""

    campaign: str
    round: int
    shard: int
    stage: Stage
    target: str
    target_version: str
    edition: str
    checks: tuple[str, ...]
    engine: Engine
    seed: int
    """The seed of the campaign."""
    cases: int
    corpus: str
    """Digest of the snapshot; empty: none."""
    reduces: tuple[Found, ...] = ()
    deterministic: bool = True
    label: str = ""
    """The name of the target in stored failures, if it is another."""

    @property
    def key(self) -> Key:
        return Key(self.campaign, self.round, self.shard)

    @property
    def own_seed(self) -> int:
        """The seed of all draws in this shard: 63 bits, the same in every process."""
        text = "/".join(map(str, (self.campaign, self.seed, self.round, self.shard, self.target)))
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1

    @property
    def bounds(self) -> Bounds:
        number = self.cases if self.stage == "hold" else 300 * len(self.reduces)
        # Hanging testees may use up the time limits of two sessions.
        return Bounds(wall_s=1500 + 2.0 * number, cpu_s=60 + 0.5 * number)

    def empty_row(self) -> Row:
        """The row of a shard that has run nothing yet."""
        planned = self.cases if self.stage == "hold" else len(self.reduces)
        return Row(
            self.campaign, self.round, self.shard, self.stage, self.target, self.target_version, self.engine,
            self.seed, planned, self.corpus, "done", self.deterministic,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Aim:
    """A target of a campaign."""

    name: str
    """How it is opened."""
    version: str
    deterministic: bool = True
    label: str = ""
    """The name in results, if it is another: that in the hello of a command, or the one of ``--name``."""
    states_version: bool = True
    """Whether the version is what the target says itself, and not what its user says."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that determines what is drawn, as the manifest stores it."""

    campaign: str
    aims: tuple[Aim, ...]
    edition: str
    checks: tuple[str, ...]
    engine: Engine
    seed: int
    cases: int | None
    """For each target over all rounds; None: limited by time only."""
    rounds: int | None
    """None: limited by time only."""
    shard_cases: int
    round_shards: int = SHARDS_A_ROUND
    """For each target, if there is no number of cases to divide."""
    corpus: str = ""
    """Digest of the snapshot of the first round; empty: none."""

    def shards(self, round_: int, corpus: str) -> Iterator[Shard]:
        """The shards of the first stage. ``corpus``: the digest of the round's snapshot."""
        number = 0
        for aim in self.aims:
            for cases in self.sizes(round_):
                yield self._shard(aim, round_, number, "hold", cases, corpus)
                number += 1

    def sizes(self, round_: int) -> Iterator[int]:
        """The number of cases of each shard of a target in that round."""
        if self.cases is None:
            yield from [self.shard_cases] * self.round_shards
            return
        assert self.rounds is not None
        cases = self.cases // self.rounds + (round_ < self.cases % self.rounds)
        number = max(round(cases / self.shard_cases), -(-cases // max(self.shard_cases, MOST_SHARD)))
        for shard in range(number):
            yield cases // number + (shard < cases % number)

    def reductions(self, round_: int, after: int, aim: Aim, found: tuple[Found, ...]) -> Iterator[Shard]:
        """The shards of the second stage, numbered from ``after``."""
        for at in range(0, len(found), REDUCED_TOGETHER):
            some = found[at : at + REDUCED_TOGETHER]
            yield self._shard(aim, round_, after + at // REDUCED_TOGETHER, "reduce", 0, "", some)

    def _shard(
        self, aim: Aim, round_: int, number: int, stage: Stage, cases: int, corpus: str, found: tuple[Found, ...] = ()
    ) -> Shard:
        return Shard(
            self.campaign, round_, number, stage, aim.name, aim.version, self.edition, self.checks, self.engine,
            self.seed, cases, corpus, found, aim.deterministic, aim.label,
        )  # fmt: skip


def shard_size(cases: int, rounds: int) -> int:
    """For a plan with so many cases for each target."""
    return min(max(-(-cases // (rounds * SHARDS_A_ROUND)), LEAST_SHARD), MOST_SHARD)
