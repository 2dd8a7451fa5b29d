"""The first line of a ledger: the options of the command, and what they select."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias

from kipcheck.conformance.core.ledger.failure import Grade, Number
from kipcheck.conformance.core.ledger.record import LENIENT, NULLABLE, Record
from kipcheck.conformance.core.operations.field_kinds import described, schema

FORMAT: Final = 2
Nested: TypeAlias = Mapping[str, Mapping[str, tuple[str, ...]]]
Index: TypeAlias = Annotated[int, schema(minimum=1)]
PartOf: TypeAlias = Annotated[tuple[Index, Index], described("I and N of --part I/N.")]
Seconds: TypeAlias = Annotated[float, schema(minimum=0)]
Shards: TypeAlias = Annotated[Mapping[str, Number], described("Status of a shard at its end -> shards.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(Record):
    """The options of the command."""

    closed: ClassVar[bool] = False

    targets: tuple[str, ...] = field(default=(), metadata=LENIENT)
    edition: str = field(default="", metadata=LENIENT)
    checks: tuple[str, ...] = field(default=(), metadata=LENIENT)
    messages: tuple[str, ...] = field(default=(), metadata=LENIENT)
    seed: int = field(default=0, metadata=LENIENT)
    cases: int | None = field(default=None, metadata=LENIENT)
    out: str = field(default="", metadata=LENIENT)

    @property
    def known(self) -> tuple[str, ...]:
        """Files of known deviations."""
        return tuple(self.others.get("known") or ())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the targets that are commands, instead of those in their hello."""
        return tuple(self.others.get("names") or ())

    @property
    def profiles(self) -> tuple[str, ...]:
        return tuple(self.others.get("profiles") or ())

    @property
    def require(self) -> tuple[str, ...]:
        """Globs over the checks that have to judge a case."""
        return tuple(self.others.get("require") or ())

    @property
    def scripts(self) -> tuple[str, ...]:
        """Conversations that were played in place of drawn ones."""
        return tuple(self.others.get("scripts") or ())

    @property
    def budget(self) -> float | None:
        """Seconds after which no further work begins."""
        found: float | None = self.others.get("budget")
        return found

    @property
    def part(self) -> tuple[int, int] | None:
        found: tuple[int, int] | None = self.others.get("part")
        return found

    def with_place(self, out: str, names: tuple[str, ...]) -> Self:
        """The options of a merged ledger: of no part, and with another folder. ``names``: of all its commands."""
        more = {"part": None, **({"names": list(names)} if self.names or names else {})}
        keys = tuple(dict.fromkeys((*self.present, "out", *more)))
        return replace(self, out=out, others={**self.others, **more}, keys=keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutInvariant(Record):
    """An invariant that the selected checks apply."""

    sentence: str = field(default="", metadata=LENIENT)
    grade: Grade = field(default="MUST", metadata=LENIENT)
    checks: tuple[str, ...] = field(default=(), metadata=LENIENT)
    requirements: tuple[str, ...] = field(default=(), metadata=LENIENT)
    besides: Mapping[str, tuple[str, ...]] = field(default_factory=dict, metadata=LENIENT)
    """Subject -> further requirements that it covers there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutRequirement(Record):
    """A requirement; with its text if this run can reach it."""

    clause: str
    grade: Grade
    role: str
    edition: str = field(default="", metadata=LENIENT)
    releases: str | None = None
    text: str | None = None
    means: str | None = None
    fix: str | None = None
    parts: tuple[tuple[str, ...], ...] | None = None
    """For each part of the sentence, the invariants that find it broken; absent: it has one part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFrom(Record):
    """A ledger that was merged into this one."""

    folder: str
    part: PartOf | None
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign(Record):
    """The options of a campaign and its totals."""

    id: str
    """A digest of all that decides what is drawn."""
    targets: Mapping[str, bool]
    """Target -> deterministic; if not, its rows are left out of the hash."""
    engine: Annotated[str, schema(enum=["mixed", "hypothesis", "compiled"])]
    settings: Mapping[str, Any]
    """Executor, workers, master: options that do not change what is drawn."""
    host: Mapping[str, Any]
    """Of the driver."""
    seed: int
    cases: int | None
    """Requested, for each target over all rounds; null: as many as the time allows."""
    rounds: int | None
    """Requested; null: as many as the time allows."""
    shard_cases: Number
    complete: bool
    stopped_by: str | None
    """Set for a complete campaign too, if its time ran out."""
    planned: Number
    """Shards, of both stages."""
    shards: Shards
    held: Number
    """Cases that were run."""
    seconds: Seconds
    cpu_seconds: Seconds
    coverage: Number
    """Kinds of behaviour that were observed."""
    corpus: Number
    """Values kept."""
    hash: str
    """Over the results of all shards; it does not depend on the executor."""
    clashes: tuple[str, ...]
    """Shards with several different results: a defect of kipcheck."""
    set_aside: tuple[str, ...]
    """Damaged files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header(Record):
    """The first line: the options, and the checks, invariants and requirements that they select."""

    TYPE: ClassVar[str] = "header"

    format: Annotated[int, schema(const=FORMAT)] = field(default=2, metadata=LENIENT)
    kipcheck: str = field(default="", metadata=LENIENT)
    python: str = field(default="", metadata=LENIENT)
    begun: str = field(default="", metadata=LENIENT)
    """UTC: 2026-01-31T23:59:59Z."""
    options: RunOptions = field(default_factory=RunOptions, metadata=LENIENT)
    part: PartOf | None = field(default=None, metadata=LENIENT)
    checks: Mapping[str, str] = field(default_factory=dict, metadata=LENIENT)
    """Id -> sentence."""
    invariants: Mapping[str, AboutInvariant] = field(default_factory=dict, metadata=LENIENT)
    requirements: Mapping[str, AboutRequirement] = field(default_factory=dict, metadata=LENIENT)
    """All of them; with their texts those that this run can reach."""
    editions: Nested | None = None
    """Check -> subject -> editions, where not that of the run."""
    campaigns: tuple[Campaign, ...] | None = None
    """The campaigns of the ledger; absent in a ledger of runs alone."""
    merged: tuple[MergedFrom, ...] | None = field(default=None, metadata=NULLABLE)
    """The ledgers that were merged into this one."""
    failure_format: Annotated[int, schema(minimum=1)] | None = None
    """The format of the failures, that is of their shapes and ids; absent: 1."""
