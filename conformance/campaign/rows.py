"""The results of shards as plain values: the rows that shards return and the ledger stores.

A row is keyed by (campaign, round, shard). Two rows with one key and two digests are a bug in kipcheck. Nothing that
depends on a clock, a host or an executor is part of a digest.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, TypeAlias

from kipcheck.conformance.core.ledger import check_failure
from kipcheck.conformance.core.operations.field_kinds import from_json, kind_of_class, to_json
from kipcheck.conformance.engine.findings.failures import Kind

Status: TypeAlias = Literal["done", "timeout", "memory", "crashed", "garbled", "lost", "infra", "unlike"]
"""The status of a shard.

``done``: it ran to its end, whatever it found. ``timeout``, ``memory``, ``crashed`` and ``garbled``: its child
failed, at the case that the row names. ``lost``: its worker crashed repeatedly; it is run once more, apart.
``infra``: it crashed apart, too. ``unlike``: Python or kipcheck differ between the worker and the driver."""
FINAL_STATUSES: Final[frozenset[str]] = frozenset({"done", "timeout", "memory", "crashed", "garbled", "infra"})
"""Final statuses: a resumed campaign does not run these shards again."""
Stage: TypeAlias = Literal["hold", "reduce"]
"""The stages of a round: cases are run; then new failures are reduced."""


class Key(NamedTuple):
    campaign: str
    round: int
    shard: int


@dataclass(frozen=True, slots=True)
class Count:
    """A number of cases with the same result."""

    check: str
    subject: str
    version: int | None
    """The version of the message; None for subjects without versions."""
    invariant: str
    """Empty: the result of the case as a whole."""
    result: str
    cases: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A value with new coverage, to be replayed and mutated."""

    check: str
    edition: str
    subject: str
    version: int | None
    value: str
    """``plain_text`` of the declared value."""
    keys: tuple[int, ...]
    """All coverage keys of its cases, sorted."""
    steps: int

    @property
    def id(self) -> str:
        return digest_of([self.check, self.edition, self.subject, self.version, self.value])


@dataclass(frozen=True, slots=True)
class Found:
    """A group of failures in one shard, represented by its first.

    Stage ``reduce``: the same group as in stage ``hold``, with its reduced case.
    """

    check: str
    invariant: str
    edition: str
    subject: str
    """As in ``failures.Kind``."""
    shape: tuple[str, ...]
    why: str
    case_id: str
    case: str
    """JSON of ``Case.plain``."""
    place: tuple[str, int | None]
    """Subject and version of the first failure."""
    value: str
    """``plain_text`` of the declared value; empty if the conversation is given, not drawn."""
    seed: int
    number: int
    """Together with the seed it determines the conversations about the value (``Check.cases``)."""
    kind: str
    cases: int
    """The number of failing cases in the shard."""
    at_case: int
    """The number of cases before the first failure."""
    where: tuple[tuple[str, int | None], ...] = ()
    """Subjects and versions of the failures, sorted."""
    line: str = ""
    """Stage ``reduce``: JSON of ``failures/ID.json`` with the reduced case; empty if the failure did not recur when
    its case was run alone."""
    context: str = ""
    """Stage ``reduce``: JSON of ``causes.Context``, of the reduced case."""

    @property
    def group(self) -> Kind:
        return Kind(self.check, self.invariant, self.subject, self.shape)


_shared: Final = lru_cache(1 << 16)(lambda count: count)
"""The same object for equal counts: shards share hundreds of them."""
_COUNT: Final = kind_of_class(Count)
SHARED_COUNT: Final = replace(_COUNT, read=lambda found: _shared(_COUNT.read(found)))
_FOUND: Final = kind_of_class(Found)


def _checked(plain: Any) -> Found:
    found: Found = _FOUND.read(plain)
    if found.line and "id" in (values := json.loads(found.line)):  # the id becomes a file name
        check_failure(values, "a failure of a row")
    return found


CHECKED_FOUND: Final = replace(_FOUND, read=_checked)


@dataclass(frozen=True, slots=True)
class Row:
    campaign: str
    round: int
    shard: int
    stage: Stage
    target: str
    target_version: str
    engine: str
    seed: int
    planned: int
    """Cases, or groups to reduce."""
    corpus: str
    """Digest of the snapshot it started with; empty: none."""
    status: Status
    deterministic: bool = True
    """False: the target has threads of its own. The row is then not part of the campaign's hash."""
    cases: int = 0
    steps: int = 0
    counts: tuple[Annotated[Count, SHARED_COUNT], ...] = ()
    coverage: tuple[int, ...] = ()
    """Keys that are not in the snapshot, sorted."""
    kept: tuple[Kept, ...] = ()
    found: tuple[Annotated[Found, CHECKED_FOUND], ...] = ()
    troubles: tuple[str, ...] = ()
    """Crashes of the target that belong to no case."""
    breaches: tuple[str, ...] = ()
    """Violations of the testee protocol."""
    unreached: str = ""
    """Why the target could not be used any more."""
    at_case: int | None = None
    """The number of the case at which the child failed."""
    case: str = ""
    """JSON of ``Case.plain`` of that case."""
    detail: str = ""
    """How the child failed; or which versions differ."""
    digest: str = ""
    attempt: int = field(default=0, metadata={"volatile": True})
    host: str = field(default="", metadata={"volatile": True})
    python: str = field(default="", metadata={"volatile": True})
    wall_ms: int = field(default=0, metadata={"volatile": True})
    cpu_ms: int = field(default=0, metadata={"volatile": True})
    started: str = field(default="", metadata={"volatile": True})
    """UTC, ISO 8601."""

    @property
    def key(self) -> Key:
        return Key(self.campaign, self.round, self.shard)

    def sealed(self) -> Self:
        """With its digest, over the cases and their results, but not over messages."""
        sealed_values = {
            "key": list(self.key),
            "stage": self.stage,
            "target": [self.target, self.target_version],
            "seed": self.seed,
            "corpus": self.corpus,
            "status": self.status,
            "at": [self.at_case, self.case],
            "cases": [self.cases, self.steps],
            "counts": sorted(_json_of(to_json(each)) for each in self.counts),
            "coverage": sorted(self.coverage),
            "kept": sorted(each.id for each in self.kept),
            "found": sorted([each.case_id, each.invariant, each.cases, each.at_case] for each in self.found),
        }
        return replace(self, digest=digest_of(sealed_values))

    @property
    def plain(self) -> dict[str, Any]:
        """A line of JSON, or a row of Parquet. ``Row.of`` reads it back."""
        found: dict[str, Any] = to_json(self)
        return found

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Errors: TypeError or ValueError if ``plain`` is not a row."""
        return from_json(cls, plain)


_json_of: Final = json.JSONEncoder(sort_keys=True).encode


def digest_of(sealed_values: Any) -> str:
    """A digest of any JSON value: 16 hex digits, the same in every process."""
    text = json.dumps(sealed_values, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def hash_over(rows: Iterable[Row]) -> str:
    """The hash of a campaign, over the rows of deterministic targets with a final status."""
    return hash_of({row.key: row.digest for row in rows if row.deterministic and row.status in FINAL_STATUSES})


def hash_of(rows: Mapping[Key, str]) -> str:
    """The hash of a campaign, over key -> digest in the order of the keys."""
    return digest_of([[*key, digest] for key, digest in sorted(rows.items())])
