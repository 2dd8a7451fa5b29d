"""How a failure of a live client is shown: its script in sentences, and the traffic around the breach."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import events as client_events
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.silences import Silence, silences_of
from kipcheck.conformance.protocols.client.terms import HEARTBEATS
from kipcheck.conformance.protocols.client.trace import generation_of, parsed
from kipcheck.conformance.protocols.codec.checks.family import rows_of
from kipcheck.conformance.protocols.declare.check import Exhibit
from kipcheck.conformance.protocols.declare.conversations import answer
from kipcheck.conformance.wire.errors import Refused

if TYPE_CHECKING:
    from kipcheck.conformance.wire.explain_inside import Inside

CLIENT: Final = "client"
BROKER: Final = "broker"
BEFORE: Final = 10
"""Exchanges of the step with the breach that are shown before it; of other steps: ``FEW``, the last ones."""
FEW: Final = 3
AFTER: Final = 2
MOST: Final = 200
"""Rows of a step that are shown of a script whose exchanges are shown whole."""
UNSHOWN: Final = (client_events.Idle, client_events.Opened)


@dataclass(slots=True)
class Row:
    """One or several equal exchanges, or something else that happened."""

    ms: int
    says: str
    answer: str | None = None
    to_broker: bool = False
    guilty: bool = False
    is_kept: bool = False
    """Whether it is shown however far it is from the breach: a silence, and the request in front of it."""
    times: int = 1
    until_ms: int = 0

    def data(self) -> Exhibit:
        often = f" ({self.times} times until {seconds(self.until_ms)})" if self.times > 1 else ""
        to = BROKER if self.to_broker else CLIENT
        says = f"{seconds(self.ms)} {self.says}{often}"
        return {"from": CLIENT, "to": to, "says": says, "answer": self.answer, "guilty": self.guilty, "first": False}


@dataclass(slots=True)
class Names:
    """Short names of member ids, in their order: m1, m2."""

    given: dict[str, str] = field(default_factory=dict)

    def of(self, member: str) -> str:
        return self.given.setdefault(member, f"m{len(self.given) + 1}") if member else "no member id"


def seconds(ms: int) -> str:
    return f"{ms / 1000:.2f} s"


def exhibits(history: History, violation: Violation) -> list[Exhibit]:
    """The steps and the traffic around the breach; the annotated bytes of a request that was refused."""
    step = violation.at[-1]
    place = violation.event if isinstance(history.ops[step].observation, Replied) else None
    rows = sequence(history, violation, step, place)
    found: list[Exhibit] = [{"kind": "sequence", "steps": rows}]
    guilty = None if place is None else next(iter(events(history.ops[step])[place : place + 1]), None)
    if isinstance(guilty, client_events.RequestRefused) and guilty.message:
        found.append(annotated(history.case.edition, bytes.fromhex(guilty.hex), violation))
    if isinstance(guilty, client_events.RecordDamaged) and guilty.hex:
        inside = damaged(guilty).moved
        assert inside.damage is not None
        found.append(rows_of(inside, replace(violation, offset=inside.damage.offset)))
    return found


def exchanges(history: History) -> list[Exhibit]:
    """The steps and all their traffic, of long steps without what is in the middle."""
    return sequence(history, None, None, None)


def sequence(history: History, violation: Violation | None, step: int | None, place: int | None) -> list[Exhibit]:
    """``step`` and ``place``: those of the breach, around which the traffic is shown; no step: all of it is."""
    names, rows, quiet, before = Names(), [], silences_of(history, violation), 0
    for op in history.ops:
        first = {"from": OPERATIONS.sender(op.step), "to": CLIENT, "says": OPERATIONS.sentence(op.step)}
        if not isinstance(op.observation, Replied):
            rows.append({**first, "answer": answer(op.observation, lambda reply: ""), "guilty": op.index == step})
            continue
        rows.append({**first, "answer": None, "guilty": False})
        happening = events(op)
        mine = {at - before: silence for at, silence in quiet.items()}
        before += len(happening)
        happened_rows = list(happened(happening, names, place if op.index == step else None, mine))
        rows += shown(happened_rows, op.index == step) if step is not None else whole(happened_rows)
    return rows


def damaged(event: client_events.RecordDamaged) -> "Inside":
    """The byte map of a damaged record, with offsets in the request or answer where they are known."""
    from kipcheck.conformance.wire.explain_inside import damaged  # brings construct, as below

    refused = Refused(
        event.kind, event.cause, message=event.record, version=event.of, path=event.field, offset=event.at
    )
    return damaged(event.record, bytes.fromhex(event.hex), refused, event.path, event.start or 0)


def annotated(edition: str, data: bytes, violation: Violation) -> Exhibit:
    """The bytes of a request with its header; the field that is refused is marked."""
    from kipcheck.conformance.wire.explain_frame import find  # brings construct: only a run with failures needs it

    sent = find(data, edition, None, None).explained
    offset = None if sent.damage is None else sent.damage.offset
    return rows_of(sent, replace(violation, offset=offset))


def events(op: Op) -> list[client_events.Event]:
    actions = dict(op.observation.payload).get("actions", ()) if isinstance(op.observation, Replied) else ()
    return [parsed(action) for action in actions]


def happened(
    events: Sequence[client_events.Event], names: Names, guilty: int | None, silences: Mapping[int, Silence]
) -> Iterator[Row]:
    """Requests with their answers, and the rest; equal ones in a row once.

    ``silences``: by the place of the last request in front of it.
    """
    waiting: dict[tuple[int, str], Row] = {}
    last: Row | None = None
    ready: list[Row] = []
    for place, event in enumerate(events):
        if isinstance(event, client_events.AnswerSeen) and (event.connection, event.api) in waiting:
            waiting.pop((event.connection, event.api)).answer = answered(event, names)
            if place == guilty:
                ready[-1].guilty = True
            continue
        if isinstance(event, UNSHOWN) or (isinstance(event, client_events.Closed) and not event.why):
            continue
        to_broker = isinstance(
            event, client_events.RequestSeen | client_events.RequestRefused | client_events.RecordDamaged
        )
        row = Row(event.ms, said(event, names), None, to_broker, place == guilty)
        if isinstance(event, client_events.RequestSeen | client_events.RequestRefused):
            waiting[event.connection, event.api] = row
        ready.append(row)
        if place in silences:
            row.is_kept = True
            lasting = f"sends nothing more to its group for {seconds(silences[place].ms)}"
            ready.append(Row(event.ms, lasting, guilty=silences[place].is_breach, is_kept=True))
    for row in ready:
        same = last is not None and (last.says, last.answer, last.guilty) == (row.says, row.answer, row.guilty)
        if last is not None and same and row.to_broker:
            last.times, last.until_ms, last.is_kept = last.times + 1, row.ms, last.is_kept or row.is_kept
            continue
        if last is not None:
            yield last
        last = row
    if last is not None:
        yield last


def shown(rows: Sequence[Row], has_breach: bool) -> Iterator[Exhibit]:
    """The rows around the breach; of a step without it the last ones. Silences are shown wherever they are."""
    guilty = [number for number, row in enumerate(rows) if row.guilty]
    ends = next((number + 1 + AFTER for number in guilty if not rows[number].is_kept), len(rows))
    last = range(ends - (BEFORE if has_breach else FEW), ends)
    return _cut(rows[:ends], {*last, *(near for at in guilty for near in range(at - BEFORE, at + 1 + AFTER))})


def whole(rows: Sequence[Row]) -> Iterator[Exhibit]:
    """All rows; of a great many those at both ends."""
    return _cut(rows, {*range(MOST // 2), *range(len(rows) - MOST // 2, len(rows))})


def _cut(rows: Sequence[Row], places: Collection[int]) -> Iterator[Exhibit]:
    """The rows in these places, and those that are kept; others are counted."""
    omitted = 0
    for number, row in enumerate([*rows, None]):
        if row is not None and number not in places and not row.is_kept:
            omitted += 1
            continue
        if omitted:
            earlier = "earlier " if omitted == number else ""
            says = f"{omitted} {earlier}events are not shown" if omitted > 1 else f"1 {earlier}event is not shown"
            yield {"from": CLIENT, "to": CLIENT, "says": says, "answer": None, "guilty": False, "first": False}
            omitted = 0
        if row is not None:
            yield row.data()


def said(event: client_events.Event, names: Names) -> str:
    """An event as the predicate of a sentence about the client."""
    match event:
        case client_events.RequestSeen():
            return ", ".join([f"{event.api} v{event.version}", *requested(event, names)])
        case client_events.AnswerSeen():
            return f"is sent a late answer to {event.api}: {answered(event, names)}"
        case client_events.Settled() | client_events.Unsettled() if event.unsent:
            return f"{client_events.EVENTS.describe(event)}, and sent no {' and no '.join(event.unsent)}"
    return client_events.EVENTS.describe(event)


def requested(event: client_events.RequestSeen, names: Names) -> Iterator[str]:
    if event.member is not None:
        yield names.of(event.member)
    if event.api in HEARTBEATS:
        yield f"epoch {event.generation}"
    elif generation_of(event) >= 0:
        yield f"generation {event.generation}"
    if event.instance is not None:
        yield f"instance {event.instance}"
    if event.api == "JoinGroup":
        yield f"assignors {' '.join(event.assignors)}"
    if event.topics is not None or event.regex:
        yield f"subscribes to {event.regex or ' '.join(event.topics or ()) or 'no topics'}"
    if event.owned is not None:
        yield f"owns {listed(event.owned)}"
    if event.assignments:
        yield "; ".join(f"{names.of(member)} gets {given_to(given)}" for member, given in event.assignments)
    if event.session_epoch is not None:
        yield f"session epoch {event.session_epoch}"
    if event.acknowledged:
        yield "acknowledges " + " ".join(f"{name}@{first}-{last}" for name, first, last, _ in event.acknowledged)
    if event.partitions is not None:
        yield positions(event.placed) or listed(event.partitions)


def answered(event: client_events.AnswerSeen, names: Names) -> str:
    if event.error:
        return error_name(event.error)
    if event.api == "JoinGroup":
        role = "leads" if event.leads else "follows"
        return f"{names.of(event.member or '')}, generation {event.generation}, {role}"
    if event.acquired:
        return "acquired " + " ".join(f"{name}@{first}-{last}" for name, first, last in event.acquired)
    placed = event.committed or event.offsets or event.ends
    if placed:
        return positions(placed.items())
    given = "ok" if event.partitions is None else listed(event.partitions)
    return f"epoch {event.generation}, {given}" if event.api in HEARTBEATS else given


def positions(placed: Iterable[tuple[str, int]]) -> str:
    """Partitions with their offsets: t-0@7. An offset that is -1 is none."""
    return " ".join(f"{partition}@{offset}" if offset >= 0 else f"{partition}@none" for partition, offset in placed)


def given_to(partitions: Sequence[str] | None) -> str:
    return "bytes that cannot be read" if partitions is None else listed(partitions)


def listed(partitions: Sequence[str]) -> str:
    return " ".join(partitions) or "no partitions"
