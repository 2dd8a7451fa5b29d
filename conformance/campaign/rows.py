"""What came of a shard, as plain values: the only thing that travels back, and what the ledger of a campaign holds.

A row is keyed by (campaign, round, shard). Two rows with one key and two digests are a defect of ours. Nothing that a
clock, a host or an executor has a say in enters a digest.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from kipcheck.conformance.core.ledger import check_failure

Status: TypeAlias = Literal["done", "timeout", "memory", "crashed", "garbled", "lost", "infra", "unlike"]
"""Of a shard.

``done``: it came to its end, whatever it found. ``timeout``, ``memory``, ``crashed`` and ``garbled``: its child did
not, at the case that the row names. ``lost``: what ran it went down again and again; it is run once more, apart.
``infra``: apart it went down too. ``unlike``: there is another Python or kipcheck there than here.
"""
ENDED: Final[frozenset[str]] = frozenset({"done", "timeout", "memory", "crashed", "garbled", "infra"})
"""Those that count as held: a campaign that is resumed does not run them again."""
Stage: TypeAlias = Literal["hold", "reduce"]
"""Of a round: conversations are held; then the least case of each new failure is looked for."""


class Key(NamedTuple):
    campaign: str
    round: int
    shard: int


@dataclass(frozen=True, slots=True)
class Count:
    """What came of cases in one place."""

    check: str
    subject: str
    version: int | None
    """Of the message; None for what has no versions."""
    invariant: str
    """Empty: of the case as a whole."""
    result: str
    cases: int


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that showed what had not been seen: worth to be replayed and changed."""

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
    """Failures of one shard that are likely one, by the first of them.

    Of the stage ``reduce``: the same again, as the stage ``hold`` had it, with what came of looking for the least case.
    """

    check: str
    invariant: str
    edition: str
    subject: str
    """Of the group: see there."""
    shape: tuple[str, ...]
    why: str
    case_id: str
    case: str
    """JSON of ``Case.plain``."""
    place: tuple[str, int | None]
    """Subject and version of the first of them."""
    value: str
    """``plain_text`` of the declared value behind it; empty where its conversation is given, and not drawn."""
    seed: int
    number: int
    """With the seed: what draws the conversations about the value (``Check.cases``)."""
    kind: str
    cases: int
    """So many of them in the shard."""
    at_case: int
    """How many cases the shard had held before."""
    where: tuple[tuple[str, int | None], ...] = ()
    """Subjects and versions in which it was seen, sorted."""
    line: str = ""
    """Stage ``reduce``: JSON of what ``failures/ID.json`` holds, with the least case, its shape and the id of them;
    empty where it did not come again when it was run alone.
    """

    @property
    def group(self) -> "Group":
        return Group(self.check, self.invariant, self.subject, self.shape)


class Group(NamedTuple):
    """What failures of one target have in common that are reduced once: a campaign counts by it."""

    check: str
    invariant: str
    subject: str
    """Of the first of them; empty where cases of the check are not made smaller, and subjects make no difference."""
    shape: tuple[str, ...]


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
    """Cases, or failures to reduce."""
    corpus: str
    """Digest of the snapshot that it began with; empty: of none."""
    status: Status
    deterministic: bool = True
    """False: the target has threads of its own. Then the row stays out of the hash of the campaign."""
    cases: int = 0
    steps: int = 0
    counts: tuple[Count, ...] = ()
    coverage: tuple[int, ...] = ()
    """Keys that the snapshot does not have, sorted."""
    kept: tuple[Kept, ...] = ()
    found: tuple[Found, ...] = ()
    troubles: tuple[str, ...] = ()
    """Deaths of the target that belong to no case."""
    breaches: tuple[str, ...] = ()
    """Of the testee protocol."""
    unreached: str = ""
    """Why no more could be asked of the target."""
    at_case: int | None = None
    """Where the child went down: the number of the case in the shard."""
    case: str = ""
    """JSON of ``Case.plain`` of that case."""
    detail: str = ""
    """In which way it went down; or what is unlike."""
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
        """With its digest: over which cases were held and what came of them, not over the words for it."""
        said = {
            "key": list(self.key),
            "stage": self.stage,
            "target": [self.target, self.target_version],
            "seed": self.seed,
            "corpus": self.corpus,
            "status": self.status,
            "at": [self.at_case, self.case],
            "cases": [self.cases, self.steps],
            "counts": sorted(_json_of(_plain(each)) for each in self.counts),
            "coverage": sorted(self.coverage),
            "kept": sorted(each.id for each in self.kept),
            "found": sorted([each.case_id, each.invariant, each.cases, each.at_case] for each in self.found),
        }
        return replace(self, digest=digest_of(said))

    @property
    def plain(self) -> dict[str, Any]:
        """Names to plain values, nested rows too: a line of JSON, or a row of Parquet. ``Row.of`` reads it back."""
        found: dict[str, Any] = _plain(self)
        return found

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Self:
        """Errors: KeyError, TypeError or ValueError where ``plain`` is no row."""
        names = {each.name for each in fields(cls)}
        if strange := plain.keys() - names:
            raise ValueError(f"a row has no {', '.join(sorted(strange))}")
        nested: Mapping[str, Any] = {
            "counts": lambda each: _count(**each),
            "kept": lambda each: Kept(**{**each, "keys": tuple(each["keys"])}),
            "found": _found_of,
        }
        told = dict(plain)
        for name, made in nested.items():
            told[name] = tuple(made(each) for each in plain.get(name) or ())
        for name in ("coverage", "troubles", "breaches"):
            told[name] = tuple(plain.get(name) or ())
        return cls(**told)


_json_of: Final = json.JSONEncoder(sort_keys=True).encode
_NAMES: Final = {kind: tuple(each.name for each in fields(kind)) for kind in (Row, Count, Kept, Found)}


def _plain(value: Any) -> Any:
    """As ``asdict`` has it, which copies what cannot change and takes many times as long."""
    if (names := _NAMES.get(type(value))) is not None:
        return {name: _plain(getattr(value, name)) for name in names}
    return tuple(map(_plain, value)) if type(value) is tuple else value


@lru_cache(1 << 16, typed=True)
def _count(**told: Any) -> Count:
    """The same object for the same count: shard after shard has hundreds that hundreds of others have too."""
    return Count(**told)


def _found_of(plain: Mapping[str, Any]) -> Found:
    if plain.get("line") and "id" in (told := json.loads(plain["line"])):  # it becomes a file of that name
        check_failure(told, "a failure of a row")
    where = tuple((str(subject), version) for subject, version in map(_pair, plain["where"]))
    place = _pair(plain["place"])
    return Found(**{**plain, "shape": tuple(plain["shape"]), "where": where, "place": place})


def _pair(each: Any) -> tuple[Any, Any]:
    return (each["subject"], each["version"]) if isinstance(each, Mapping) else tuple(each)


def digest_of(said: Any) -> str:
    """Of anything that is JSON: 16 hex digits, the same in every process."""
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def hash_over(rows: Iterable[Row]) -> str:
    """Of a campaign, over what has a say in it."""
    return hash_of({row.key: row.digest for row in rows if row.deterministic and row.status in ENDED})


def hash_of(rows: Mapping[Key, str]) -> str:
    """Of a campaign: over key -> digest, in the order of the keys, whatever order they came in."""
    return digest_of([[*key, digest] for key, digest in sorted(rows.items())])
