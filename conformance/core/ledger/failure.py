"""A distinct failure as the ledger and ``failures/ID.json`` hold it, with the exhibits that show it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final, TypeAlias

from kipcheck.conformance.core.ledger.record import KEY, LENIENT, NULLABLE, UNDECLARED, Record, one_of_records
from kipcheck.conformance.core.operations.field_kinds import described, schema

Grade: TypeAlias = Annotated[str, schema(enum=["MUST", "SHOULD", "INFO"])]
Number: TypeAlias = Annotated[int, schema(minimum=0)]
Versions: TypeAlias = Annotated[str, described("Versions: 0-4, 6; empty for a subject without versions.")]
Where: TypeAlias = Annotated[Mapping[str, Versions], described("Subject -> versions.")]
Results: TypeAlias = Annotated[Mapping[str, Number], described("Result -> cases.")]


FAILURE_FORMAT: Final = 2
"""The format of failures: what their shapes consist of, and so their ids. It is that of ``failures/ID.json``.

1: coarser shapes, and with them other ids. Files of format 1 are read, and their cases replayed; ids and shapes of
different formats cannot be compared.
"""
FAILURE_FORMATS: Final = (1, FAILURE_FORMAT)
"""Those that are read. Files that state none are of format 1."""


Step: TypeAlias = Annotated[Mapping[str, Any], schema(required=["verb"])]
"""An operation of the case, with its fields as the testee protocol names them."""


# ---- exhibits


@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRow(Record):
    """A field of an encoded message."""

    offset: Number
    bytes: str
    """hex"""
    path: str
    type: str
    value: str
    guilty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesExhibit(Record):
    """An encoded message, field by field."""

    kind: Annotated[str, schema(const="bytes")] = field(default="bytes", metadata=LENIENT)
    rows: tuple[ByteRow, ...]
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow(Record):
    """A row of a table."""

    cells: tuple[Any, ...]
    guilty: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TableExhibit(Record):
    """A table, for example of the members of a group and their partitions."""

    kind: Annotated[str, schema(const="table")] = field(default="table", metadata=LENIENT)
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceStep(Record):
    """A message from one participant to another, with its answer. A participant alone: what it does or observes."""

    sender: str = field(metadata={KEY: "from"})
    receiver: str = field(metadata={KEY: "to"})
    says: str
    answer: str | None
    guilty: bool
    first: bool | None = None
    """Whether a step of the case begins with it. Absent: it does; false: it follows from the step before."""
    reply: bool | None = None
    """Whether it answers an earlier message. Absent: it does not."""

    @property
    def follows(self) -> bool:
        """Whether it belongs to the step before."""
        return self.first is False


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceExhibit(Record):
    """The case as a sequence diagram."""

    kind: Annotated[str, schema(const="sequence")] = field(default="sequence", metadata=LENIENT)
    steps: tuple[SequenceStep, ...]
    title: str | None = None


Exhibit: TypeAlias = BytesExhibit | TableExhibit | SequenceExhibit
"""Evidence that a report shows."""
_Exhibit: TypeAlias = Annotated[Exhibit, one_of_records("exhibit", BytesExhibit, TableExhibit, SequenceExhibit)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Exhibits(Record):
    exhibits: tuple[_Exhibit, ...]


def exhibits_of(found: Sequence[Mapping[str, Any]]) -> tuple[Exhibit, ...]:
    """Exhibits as the families of cases draw them up. Errors: ``Malformed``."""
    return _Exhibits.of({"exhibits": found}).exhibits


# ---- failures


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenRequirement(Record):
    """A requirement that the failure breaks."""

    id: str
    clause: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownEntry(Record):
    """An entry of a list of known deviations."""

    file: str
    line: int
    reason: str
    link: str
    expires: str | None
    where: Where | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstFound(Record):
    """Where a campaign first found the failure, after so many cases with the target."""

    campaign: str
    round: Number
    shard: Number
    cases: Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Follower(Record):
    """A violation that follows from the failure in its cases, and is no failure of its own."""

    invariant: str
    why: str
    """Of one of them."""
    cases: Number


def united_followers(several: Iterable[Follower]) -> tuple[Follower, ...] | None:
    """One for each invariant, with the cases of all; None if there are none."""
    found: dict[str, Follower] = {}
    for each in several:
        before = found.get(each.invariant)
        found[each.invariant] = each if before is None else before.update(cases=before.cases + each.cases)
    return tuple(found.values()) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure(Record):
    """A distinct failure, with its smallest case."""

    TYPE: ClassVar[str] = "failure"

    id: str
    """A hash of target, invariant and shape: the same defect has the same id in every run."""
    target: str
    version: str
    """Of the target."""
    command: str | None = None
    """The target of the command line (``cmd:...``) if ``target`` is another name: that of hello, or of ``--name``."""
    check: str
    checks: tuple[str, ...]
    """All checks that found it."""
    shrunk: bool = True
    """Whether a smaller case was searched for. If not, ``shape`` may be the beginning of the shape after shrinking."""
    invariant: str
    grade: Grade
    sentence: str
    """The statement of the invariant that is broken."""
    requirements: tuple[BrokenRequirement, ...]
    tags: tuple[str, ...] = ()
    """The kind of mistake, its effects, and known defects of that kind, as far as they fit this failure."""
    fix: str | None = None
    """How to fix it; absent if no remedy is about this failure."""
    edition: str
    subject: str
    """Message, assignor or machine."""
    subject_version: int | None
    why: str
    """Why it is wrong."""
    expected: str
    observed: str
    path: str
    """Of the field that is wrong; empty if no single field is."""
    offset: Number | None
    shape: tuple[Any, ...]
    """The kind of failure, in words that do not depend on the subject."""
    cases: Number
    where: Where
    steps: tuple[Step, ...]
    guilty_step: Number
    exhibits: tuple[_Exhibit, ...]
    case_id: str
    """Of the smallest case; empty if no case shows the failure."""
    reproduce: str
    """The command that reproduces it."""
    first: FirstFound | None = None
    raised_by: str | None = field(default=None, metadata=UNDECLARED)
    """The profile that makes a MUST of the SHOULD that is broken."""
    known: KnownEntry | None = field(default=None, metadata=NULLABLE)
    """The known deviation that covers all of it."""
    beyond: KnownEntry | None = None
    """The known deviation that covers a part of it; ``where`` of the entry lists the places that it does not cover."""
    changed: KnownEntry | None = None
    """The known deviation that expects another failure there."""
    played: str | None = None
    """The release of Kafka whose broker kipcheck played for the target, if it played one."""
    followed_by: tuple[Follower, ...] | None = None
    """What follows from it in the same cases, such as that the client does not come back; absent: nothing."""
    unlisted: bool | None = None
    """True for a warning of a run with a list of known deviations for its target, which does not have the warning: it
    fails the run."""
    cut_early: bool | None = None
    """True if the search for the smallest case ended early, so that a smaller one may fail too."""
    rate: tuple[Number, Number] | None = None
    """Of a race: in how many plays beside copies of its case it occurs, and of how many; alone it did not."""
    script: str | None = None
    """The steps of the smallest case in shorthand, as ``run --script`` takes them; absent: they have none."""

    @property
    def decides(self) -> bool:
        """Whether it fails a run: a MUST is broken, or a SHOULD that a list of known deviations does not have."""
        return self.known is None and (self.grade == "MUST" or bool(self.unlisted))

    @property
    def opened(self) -> str:
        """The name under which the target is opened again."""
        return self.command or self.target


BESIDES: Final = ("format", "case", "stderr")
"""Keys of ``failures/ID.json`` that the line of the ledger does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FiledFailure(Failure):
    """The content of ``failures/ID.json``: the failure and its case."""

    format: int | None = None
    """Absent: 1."""
    case: Any = None
    """The case as ``Case.plain`` has it."""
    stderr: str | None = None
    """What the target wrote to stderr before it crashed or was killed."""

    @property
    def failure_format(self) -> int:
        return 1 if self.format is None else self.format

    @property
    def line(self) -> Failure:
        """The line of the ledger."""
        keys = tuple(key for key in self.present if key not in BESIDES)
        return Failure(**self.shared(Failure), keys=keys, others=self.others)

    @classmethod
    def holding(cls, line: Failure, case: Mapping[str, Any], stderr: str | None) -> "FiledFailure":
        """The content of a file with this failure and case."""
        last = ("case", "stderr") if stderr is not None else ("case",)
        keys = ("format", *line.present, *last)
        return cls(
            **line.shared(Failure), format=FAILURE_FORMAT, case=case, stderr=stderr, keys=keys, others=line.others
        )

    def with_line(self, line: Failure) -> "FiledFailure":
        """The same with all that the line holds."""
        keys = tuple(dict.fromkeys((*self.present, *line.present)))
        return replace(self, **line.shared(Failure), keys=keys, others={**self.others, **line.others})
