"""Cells of the scenario ``store-upgrade``: a store that one release wrote is opened by another, and the way back.

A writer puts records into its store. A newer release, or for headers the same one, opens it in a newer format, moves
half of the records, and writes. A process of its own reads it back; then the writer opens it in its own format, and the
newest release reads it. What is read is judged by the invariants of stores; for the way back the text says nothing, so
that its result is only described.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from kipcheck.conformance.core.files.releases_table import plain_rocksdb, rocksdb, since
from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History, Refused
from kipcheck.conformance.core.values.release import Release, lines
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.declare.invariant import Invariant
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.stores.ops import OPERATIONS, Format
from kipcheck.conformance.targets.protocol import observed

Verdict: TypeAlias = Literal["opens", "refuses", "loses", "misreads"]
FIRST: Final = Release.parse(since("stores-open"))
FIRST_TIMESTAMPED: Final = Release.parse(since("timestamped-stores"))
FIRST_WITH_HEADERS: Final = Release.parse(since("stores-with-headers"))
OFFSETS_INSIDE: Final = Release.parse(since("stores-manage-offsets"))
"""A store has one more column family, which older releases do not open."""
GENERATIONS: Final = {"5": 0, "6": 1, "7": 1, "9": 2, "10": 2}
"""By the first number of RocksDB's version: those of one generation read each other's files."""
MIXED_FORMATS: Final = "1271-05"
"""The only requirement by which a release refuses what a law does not make it open."""
EMPTY_SCAN: Final = "conformance/docs/findings/kafka-streams-takes-damage-for-a-finished-upgrade.md"


def _steps(shorthand: str) -> Sequence[Step]:
    return OPERATIONS.parse_shorthand(shorthand)


RECORDS: Final = (
    "put 61=31 at 5; put 62= at 5; put 6162=0000000000000005 at 5; put ff=ffffffffffffffff32 at 5; put 00=34 at 5;"
    "put 01=35 at 5; put 02=36 at 5; flush; close"
)
"""Values that begin as if they had a timestamp, an empty one, and keys at both ends."""
WRITES: Final = _steps(f"open plain; {RECORDS}")
STAMPED_WRITES: Final = _steps(f"open timestamped; {RECORDS}")
HEADERS_WRITES: Final = _steps(f"open headers; put 05=33 at 5 with h=31,i=,h=32,j; {RECORDS}")
PARTLY_MOVED: Final = _steps("open timestamped; get 61; put 05=33 at 5; close")
"""Leaves values with and without timestamps."""
UPGRADES: Final = _steps(
    "open timestamped; all; get 61; get 6162; put 00=37 at 7; put 02 null; put-if-absent 01=38 at 9; put 03=39 at 9; "
    "restore 04=3a at 11; flush; close"
)
HEADERS_UPGRADES: Final = _steps(
    "open headers; all; get 61; get 6162; put 00=37 at 7 with h=31; put 02 null; put-if-absent 01=38 at 9 with h=31; "
    "put 03=39 at 9 with h=32,i=,h=31,j; restore 04=3a at 11 with i; flush; close"
)


def _reads(format: Format) -> Sequence[Step]:
    return _steps(f"open {format}; all; get 61; get 62; get 6162; get ff; get 02; close")


READS: Final = _reads("timestamped")
HEADERS_READS: Final = _reads("headers")
PLAIN_READS: Final = _steps("open plain; all; get 61; get 62; close")


Wrote: TypeAlias = Literal["plain", "timestamped", "both", "headers"]
"""``both``: a store with timestamps has moved some of the values of a plain one."""
PATHS: Final[Sequence[tuple[Wrote, Format]]] = (
    ("plain", "timestamped"),
    ("plain", "headers"),
    ("timestamped", "headers"),
    ("both", "headers"),
    ("headers", "headers"),
)
"""What the directory has, and the store that opens it."""


@dataclass(frozen=True, slots=True, order=True)
class StoreCell:
    old: str
    """The release that writes the store."""
    new: str
    wrote: Wrote = "plain"
    opened: Format = "timestamped"

    @property
    def writes(self) -> Sequence[Step]:
        return {"timestamped": STAMPED_WRITES, "headers": HEADERS_WRITES}.get(self.wrote, WRITES)

    @property
    def mover(self) -> str:
        """The release that moves some of the values."""
        return self.old if Release.parse(self.old) >= FIRST_TIMESTAMPED else self.new

    @property
    def moves(self) -> Sequence[Step]:
        return PARTLY_MOVED if self.wrote == "both" else ()

    @property
    def upgrades(self) -> Sequence[Step]:
        return HEADERS_UPGRADES if self.opened == "headers" else UPGRADES

    @property
    def reads(self) -> Sequence[Step]:
        return HEADERS_READS if self.opened == "headers" else READS

    @property
    def back(self) -> Sequence[Step]:
        """What the writer does with the store in the end: to headers it goes back to what it had, else with
        timestamps if it has them."""
        if self.wrote == "headers":
            return HEADERS_READS
        plain = self.wrote == "plain" and self.opened == "headers"
        return PLAIN_READS if plain or Release.parse(self.old) < FIRST_TIMESTAMPED else READS


@dataclass(frozen=True, slots=True)
class Prediction:
    verdict: Verdict
    back: Verdict | None
    """None: neither the text nor a known fact says."""
    rule: str
    """``foreseen``, ``fitted`` or ``observed``, as in the matrix of groups."""
    page: str | None = None
    """About a known loss."""


@dataclass(frozen=True, slots=True)
class StoreResult:
    cell: StoreCell
    verdict: Verdict
    back: Verdict
    requirement: str | None
    """The first requirement that the upgrade breaks."""
    reason: str
    """Empty where it opens."""
    back_reason: str
    history: str
    """In shorthand."""


def releases() -> tuple[str, ...]:
    """The newest patches from 1.0 on, and the first release with timestamps: it opens new stores otherwise."""
    found = {each for each in lines("streams") if Release.parse(each) >= FIRST} | {str(FIRST_TIMESTAMPED)}
    return tuple(sorted(found, key=Release.parse))


def cells(old: Sequence[str], new: Sequence[str]) -> list[StoreCell]:
    """All pairs of a writer and a release that opens its store, in each format. Empty arguments: all releases."""
    every = releases()
    return [
        StoreCell(one, other, *path)
        for path in PATHS
        for one in old or every
        for other in new or every
        if not impossible(one, other, *path)
    ]  # fmt: skip


def impossible(old: str, new: str, wrote: Wrote = "plain", opened: Format = "timestamped") -> str:
    """The reason why a cell does not exist; empty if it does."""
    one, other = Release.parse(old), Release.parse(new)
    if one < FIRST:
        return f"the store of {old} is not run: use a release from {FIRST} on"
    if opened == "headers" and other < FIRST_WITH_HEADERS:
        return f"{new} has no store with headers: use {FIRST_WITH_HEADERS} or later"
    if (wrote == "timestamped" and one < FIRST_TIMESTAMPED) or (wrote == "headers" and one < FIRST_WITH_HEADERS):
        return f"{old} writes no such store"
    if other < FIRST_TIMESTAMPED:
        return f"{new} has no store with timestamps: use {FIRST_TIMESTAMPED} or later"
    if one < other or (one == other and wrote != opened and opened == "headers"):
        return ""
    return f"{new} is not newer than {old}: the way back is a part of each cell"


def predicted(cell: StoreCell) -> Prediction:
    """By the text every store opens (258-30); a plain store does not know the second format.

    Observed: which files of one RocksDB another one reads, in all pairs of releases up to 4.4.0. One from before 6.0
    takes the tables of 6 and 7 for empty ones, and the store does not ask it for an error.
    """
    if cell.opened == "headers" and cell.wrote != "headers":
        # 1271-03, 1271-04; a directory with two older formats is refused, and left with a place for headers (1271-05).
        return Prediction("refuses" if cell.wrote == "both" else "opens", "refuses", "foreseen")
    if Release.parse(cell.old) < FIRST_TIMESTAMPED:
        return Prediction("opens", "refuses", "foreseen")
    one, other = Release.parse(cell.old), Release.parse(cell.new)
    if one < OFFSETS_INSIDE <= other:
        return Prediction("opens", "refuses", "observed")
    before, after = (GENERATIONS.get(library(each).partition(".")[0]) for each in (cell.old, cell.new))
    if before is None or after is None:
        return Prediction("opens", None, "foreseen")
    if before == after:
        return Prediction("opens", "opens", "fitted" if library(cell.old) == library(cell.new) else "observed")
    if (before, after) == (0, 1):
        return Prediction("opens", "loses", "observed", EMPTY_SCAN)
    return Prediction("opens", "refuses", "observed")


def library(release: str) -> str:
    return rocksdb(release) or plain_rocksdb(release) or ""


# Judging

Answers: TypeAlias = Sequence[tuple[Step, Mapping[str, Any]]]


def history_of(answers: Answers, release: str) -> History:
    steps = tuple(step for step, _ in answers)
    case = Case("stores/upgrades", f"apache@{release}", Role.STORE, steps)
    return History.of(case, f"java:kafka-streams:{release}", [observed(result) for _, result in answers])


def laws() -> Iterator[Invariant]:
    """The invariants of released stores."""
    return (each for each in all_invariants(Role.STORE) if each.id.startswith("stores/") and each.grade is Grade.MUST)


def broken(history: History) -> list[tuple[Invariant, Violation]]:
    """The invariants that a store breaks, the first step first."""
    found = [(law, each) for law in laws() for each in law.search(history)]
    return sorted(found, key=lambda each: each[1].at[-1])


def upgrade_result(history: History) -> tuple[Verdict, str | None, str]:
    """The verdict of an upgrade, the requirement that it breaks, and why."""
    found = broken(history)
    if not found:
        for op in history.ops:
            if op.step.verb == "store-open" and isinstance(op.observation, Refused):
                return "refuses", MIXED_FORMATS, op.observation.why or op.observation.error
        return "opens", None, ""
    law, violation = found[0]
    lost = law.id == "stores/survives" or "lost" in violation.shape or "lacks" in violation.shape
    verdict: Verdict = (
        "refuses" if law.id in ("stores/opens-old", "stores/opens-older") else "loses" if lost else "misreads"
    )
    return verdict, law.requirements[0], violation.why


def back_result(before: Answers, back: Answers) -> tuple[Verdict, str]:
    """What the writer finds: against what the last reading with timestamps found, value by value."""
    (_, opened), *rest = back
    if opened["status"] != "accepted":
        return "refuses", str(opened.get("message", ""))
    right = next(_rows(result) for step, result in before if step.verb == "store-range")
    found = next((_rows(result) for step, result in rest if step.verb == "store-range"), None)
    if found is None:
        return "refuses", "the store cannot be read"
    if missing := sorted(right.keys() - found.keys()):
        failed = next((str(result.get("message", "")) for _, result in rest if result["status"] != "accepted"), "")
        return "loses", f"a scan lacks {len(missing)} of {len(right)} keys" + (f"; a get: {failed}" if failed else "")
    for key in sorted(right):
        if found[key] != right[key]:
            return "misreads", f"key {key} reads as {found[key]}, and has {right[key]}"
    return "opens", ""


def _rows(result: Mapping[str, Any]) -> dict[str, str]:
    return {row["key"]: row["value"] for row in result.get("rows", ())}
