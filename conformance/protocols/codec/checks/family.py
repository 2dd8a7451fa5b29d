"""The family of codec checks: every version of every message."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from kipcheck.conformance.core.values.case import Role, Step, step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.codec import invariants
from kipcheck.conformance.protocols.codec.checks.example_values import SYSTEMATIC, bare
from kipcheck.conformance.protocols.codec.checks.samples import Sample, unlike_read, unlike_written
from kipcheck.conformance.protocols.codec.invariants.wire import canonical
from kipcheck.conformance.protocols.codec.two_decoders import brief, kind_at, layout_of
from kipcheck.conformance.protocols.declare.check import Check, Comparison, Conversation, Exhibit, Family, Operation
from kipcheck.conformance.protocols.declare.coverage import Fields, outcome, size
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.targets.claimed_layouts import claimed_layouts
from kipcheck.conformance.targets.protocol import Claims
from kipcheck.conformance.wire import Layout
from kipcheck.conformance.wire.schema import messages, spec
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.messages import from_layout
from kipcheck.strategies.nodes import Node
from kipcheck.strategies.reduce import least

if TYPE_CHECKING:
    from kipcheck.conformance.wire.explain import Explained

TAGS = "_unknownTaggedFields"
EXPLAINED = 2048
"""Only the beginning of longer inputs is shown."""
Value: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """One version of a message in an edition."""

    edition: str
    layout: Layout

    @property
    def name(self) -> str:
        return self.layout.message

    @property
    def version(self) -> int:
        return self.layout.version

    def step(self, verb: str, **body: Any) -> Step:
        return step("codec", verb, message=self.layout.message, version=self.layout.version, **body)

    def encode(self, value: Value) -> Step:
        return self.step("encode", value=self.layout.codec.to_json(value))

    def decode(self, data: bytes) -> Step:
        return self.step("decode", hex=data.hex())

    def recode(self, data: bytes) -> Step:
        return self.step("recode", hex=data.hex())


def subjects(edition_name: str) -> Iterator[Subject]:
    """Errors: LookupError if the edition, or its definitions, do not exist."""
    found = edition(edition_name)
    for message in messages(found):
        for layout in spec(found, message):
            yield Subject(edition_name, layout)


def subject(edition_name: str, message: str, version: int | None) -> Subject:
    assert version is not None
    return Subject(edition_name, layout_of(edition_name, message, version))


def claimed(subject: Subject, claims: Claims) -> bool:
    return claims.has(subject.name, subject.version)


_NODES: dict[int, tuple[Layout, Node]] = {}
"""By identity, since hashing a layout takes longer than drawing from it; keeping the layout keeps its id valid."""


def node_of(layout: Layout) -> Node:
    """The node of a layout's values, cached because building it takes longer than drawing from it."""
    if id(layout) not in _NODES:
        _NODES[id(layout)] = layout, from_layout(layout)
    return _NODES[id(layout)][1]


def drawn(subject: Subject, random: Random) -> Value:
    value: Value = bare(compiled(node_of(subject.layout))(random))
    return value


def annotated(history: History, violation: Violation) -> list[Exhibit]:
    """The bytes of the failing step, a row for each field; for a value to encode, the expected bytes."""
    guilty = history.ops[violation.at[-1]].step
    layout = layout_of(history.case.edition, guilty["message"], guilty["version"])
    data = bytes.fromhex(guilty["hex"]) if "hex" in guilty.body else canonical(layout, guilty)
    return [] if data is None else explained(layout, data, violation)


def explained(layout: Layout, data: bytes, violation: Violation) -> list[Exhibit]:
    """The rows of a message; the one at the violation's path or offset is marked."""
    from kipcheck.conformance.wire.explain import explain  # brings construct: only a run with failures needs it

    if len(data) > EXPLAINED:
        beginning = {"offset": 0, "bytes": data[:32].hex(), "path": "", "type": "", "value": f"... {len(data)} bytes"}
        return [_bytes([{**beginning, "guilty": True}])]
    return [rows_of(explain(layout, data), violation)]


def rows_of(found: "Explained", violation: Violation) -> Exhibit:
    """The rows of explained bytes; the one at the violation's path or offset is marked."""
    data = found.data
    rows: list[dict[str, Any]] = [
        {
            "offset": row.offset,
            "bytes": data[row.offset : row.offset + row.size].hex(),
            "path": row.path,
            "type": row.type,
            "value": brief(row.value) if not isinstance(row.value, bytes) else row.value.hex(),
            "guilty": False,
        }
        for row in found.rows
    ]
    if found.damage is not None and found.damage.offset is not None:
        offset = found.damage.offset
        rows = [row for row in rows if row["type"] != "not read"]
        rows.append(
            {
                "offset": offset,
                "bytes": data[offset : offset + 16].hex(),
                "path": found.damage.path,
                "type": found.damage.kind,
                "value": found.damage.why,
                "guilty": False,
            }
        )
    for row in _guilty(rows, violation):
        row["guilty"] = True
    return _bytes(rows)


def _guilty(rows: list[dict[str, Any]], violation: Violation) -> list[dict[str, Any]]:
    by_path = [row for row in rows if violation.path and row["path"] == violation.path]
    if by_path:
        return by_path
    if violation.offset is None:
        return []
    return [row for row in rows if row["offset"] <= violation.offset][-1:]


def _bytes(rows: list[dict[str, Any]]) -> Exhibit:
    return {"kind": "bytes", "rows": rows}


def remains(subject: Subject, value: Value, shape: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of the fields that still differ from the least value, if the violation itself names no field."""
    if shape[0] != "refused":  # deaths are seldom reduced completely, since each try takes a process
        return ()
    kinds = {kind_at(subject.layout, path) for path in _differing(subject.layout, value, "")}
    return tuple(sorted(kinds - {"tags"}))


def _differing(layout: Layout, value: Value, path: str) -> Iterator[str]:
    """The paths of the fields that differ from the least value; of a list, those in its elements if any does."""
    simplest = least(node_of(layout))
    for slot in layout.slots:
        here, found = f"{path}{slot.name}", value.get(slot.name)
        if found == simplest.get(slot.name):
            continue
        inside: list[str] = []
        if slot.item is not None and found is not None:
            for each in found if slot.array else [found]:
                inside += _differing(slot.item, each, f"{here}{'[0]' if slot.array else ''}.")
        yield from inside or [here]


def coverage(subject: Subject, ops: Sequence[Op]) -> Iterator[list[Fields]]:
    """Which version answered what in which way; and what was in the fields that were read or written, at whatever
    version.
    """
    layout = subject.layout
    for op in ops:
        about = ("codec", subject.name)
        found: list[Fields] = [(*about, op.step.body.get("version"), op.step.verb, outcome(op.observation))]
        told = dict(op.observation.payload) if isinstance(op.observation, Replied) else {}
        value = told.get("value", op.step.body.get("value")) if told else None
        if isinstance(value, dict):
            _add_inside(found, about, layout, value, "")
        yield found


def _add_inside(found: list[Fields], about: Fields, layout: Layout, value: Mapping[str, Any], path: str) -> None:
    """Along the layout, and not along what a target made of it."""
    if TAGS in value:
        found.append((*about, path, TAGS))
    found += [(*about, f"{path}.{name}", _sort(value.get(name))) for name in layout.names]
    for slot in layout.slots:
        if slot.item is not None:
            inner = value.get(slot.name)
            for each in inner if isinstance(inner, list) else [inner]:
                if isinstance(each, dict):
                    _add_inside(found, about, slot.item, each, f"{path}.{slot.name}")


def _sort(value: Any) -> Any:
    """What sort of thing there is in a field."""
    sort = type(value)
    if sort is int:
        return value < 0, min(value.bit_length() // 8, 7)
    if sort in (list, dict, str):
        return size(len(value))
    return value if sort is bool or value is None else sort.__name__


def place(step: Step) -> tuple[str, int | None]:
    return step.body.get("message", ""), step.body.get("version")


def describe(operation: Operation) -> str | None:
    if "message" not in operation:
        return None
    return f"{operation['op']} {operation['message']} v{operation['version']}"


def sample_ops(role: Role, claims: Claims) -> Iterator[Operation]:
    """The defaults of every message, in each operation that is claimed."""
    for layout in claimed_layouts(claims) if role is Role.CODEC else ():
        value = layout.codec.to_json(layout.defaults())
        data = layout.encode(layout.defaults()).hex()
        about = {"message": layout.message, "version": layout.version}
        for op, given in (("encode", {"value": value}), ("decode", {"hex": data}), ("recode", {"hex": data})):
            if claims.performs(op, layout.message):
                yield {"op": op, **about, **given}


def comparisons(claims: Claims) -> Iterator[Comparison]:
    """A sample of each version of a message, to encode and to decode."""
    for sample in map(Sample.of, claimed_layouts(claims)):
        yield Comparison(sample.encode, partial(unlike_written, sample))
        yield Comparison(sample.decode, partial(unlike_read, sample))


def _of_subject(make: Callable[[Layout], Value]) -> Callable[[Subject], Value]:
    return lambda subject: make(subject.layout)


CODEC: Family[Subject] = Family(
    Role.CODEC,
    subjects,
    subject,
    claimed,
    node=lambda subject: node_of(subject.layout),
    draw=drawn,
    exhibits=annotated,
    remains=remains,
    trimmed=bare,
    coverage=coverage,
    place=place,
    describe=describe,
    sample_ops=sample_ops,
    comparisons=comparisons,
    examples=tuple((make.__name__, _of_subject(make)) for make in SYSTEMATIC),
)


def codec_check(
    id: str,
    sentence: str,
    conversations: Callable[[Subject, Value, Random], Iterable[Conversation]],
    values: int,
    first: tuple[Callable[[Layout], Value], ...] = SYSTEMATIC,
    versions: Callable[[Layout], bool] = lambda layout: True,
    given: Callable[[Subject], Iterable[Conversation]] = lambda subject: (),
    again: Callable[[Subject, Value, str], Iterable[Conversation]] | None = None,
    heavy: bool = False,
    shrinks: bool = True,
    listed_first: tuple[str, ...] = (),
    ids: tuple[str, ...] = (),
) -> Check[Subject]:
    """``ids``: those of its invariants, if none names the check."""
    return Check(
        id, sentence, CODEC, conversations, values, ids or invariants_of(id, invariants, listed_first),
        first=tuple(_of_subject(make) for make in first),
        about=lambda subject: versions(subject.layout),
        given=given, again=again, heavy=heavy, shrinks=shrinks,
    )  # fmt: skip
