"""How a failure of a live client is shown: its script in sentences, and the traffic around the breach."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.client.trace import DAMAGED
from kipcheck.conformance.protocols.codec.checks.family import rows_of
from kipcheck.conformance.protocols.declare.check import Exhibit
from kipcheck.conformance.protocols.declare.conversations import answer
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.group.errors import Error
from kipcheck.conformance.wire.errors import Refused

if TYPE_CHECKING:
    from kipcheck.conformance.wire.explain_inside import Inside

CLIENT: Final = "client"
BROKER: Final = "broker"
BEFORE: Final = 10
"""Exchanges of the step with the breach that are shown before it; of other steps: ``FEW``, the last ones."""
FEW: Final = 3
AFTER: Final = 2
UNSHOWN: Final = frozenset({"idle", "opened"})
NAMES: Final = {each.value: each.name for each in Error}
SAID: Final = {
    "joined": "is a member of the group for the first time", "signalled": "is sent SIGTERM",
    "killed": "is killed with SIGKILL", "restarted": "is started again",
}  # fmt: skip


@dataclass(slots=True)
class Row:
    """One or several equal exchanges, or something else that happened."""

    ms: int
    says: str
    answer: str | None = None
    to_broker: bool = False
    guilty: bool = False
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
    step, place = breach(history, violation)
    names, rows = Names(), []
    for op in history.ops:
        first = {"from": OPERATIONS.sender(op.step), "to": CLIENT, "says": OPERATIONS.sentence(op.step)}
        if not isinstance(op.observation, Replied):
            rows.append({**first, "answer": answer(op.observation, lambda reply: ""), "guilty": op.index == step})
            continue
        rows.append({**first, "answer": None, "guilty": False})
        rows += shown(list(happened(events(op), names, place if op.index == step else None)), op.index == step)
    found: list[Exhibit] = [{"kind": "sequence", "steps": rows}]
    event = next((each for each in events(history.ops[step])[place : place + 1]), {}) if place is not None else {}
    if event.get("what") == "refused" and event["message"]:
        found.append(annotated(history.case.edition, bytes.fromhex(event["hex"]), violation))
    if event.get("what") == DAMAGED and event["hex"]:
        inside = damaged(event).moved
        assert inside.damage is not None
        found.append(rows_of(inside, replace(violation, offset=inside.damage.offset)))
    return found


def damaged(event: Mapping[str, Any]) -> "Inside":
    """The byte map of a damaged record, with offsets in the request or answer where they are known."""
    from kipcheck.conformance.wire.explain_inside import damaged  # brings construct, as below

    refused = Refused(
        event["kind"], event["cause"], message=event["record"], version=event["of"], path=event["field"],
        offset=event["at"],
    )  # fmt: skip
    return damaged(event["record"], bytes.fromhex(event["hex"]), refused, event["path"], event["start"] or 0)


def annotated(edition: str, data: bytes, violation: Violation) -> Exhibit:
    """The bytes of a request with its header; the field that is refused is marked."""
    from kipcheck.conformance.wire.explain_frame import find  # brings construct: only a run with failures needs it

    sent = find(data, edition, None, None).explained
    offset = None if sent.damage is None else sent.damage.offset
    return rows_of(sent, replace(violation, offset=offset))


def events(op: Op) -> Sequence[Mapping[str, Any]]:
    return dict(op.observation.payload).get("actions", ()) if isinstance(op.observation, Replied) else ()


def breach(history: History, violation: Violation) -> tuple[int, int | None]:
    """The step of the breach, and the place of its event: the last of the fewest events that break the law in this way.
    None: no law breaks without the rest of the script."""
    step = violation.at[-1]
    if not isinstance(history.ops[step].observation, Replied):
        return step, None
    laws = [each for id, each in INVARIANTS.items() if id.startswith("client/")]

    def breaks(count: int) -> bool:
        cut = cut_off(history, step, count)
        return any(found.shape == violation.shape for law in laws for found in law.search(cut))

    low, high = 0, len(events(history.ops[step]))
    if not breaks(high):
        return step, None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if breaks(middle) else (middle + 1, high)
    return step, low - 1 if low else None


def cut_off(history: History, step: int, count: int) -> History:
    """The history with the first events of a step, and without the steps after it."""
    op = history.ops[step]
    assert isinstance(op.observation, Replied)
    actions = events(op)[:count]
    payload = tuple((key, actions if key == "actions" else value) for key, value in op.observation.payload)
    last = replace(op, observation=replace(op.observation, payload=payload))
    return replace(history, ops=(*history.ops[:step], last))


def happened(found: Sequence[Mapping[str, Any]], names: Names, guilty: int | None) -> Iterator[Row]:
    """Requests with their answers, and the rest; equal ones in a row once."""
    waiting: dict[tuple[Any, Any], Row] = {}
    last: Row | None = None
    ready: list[Row] = []
    for place, each in enumerate(found):
        key = each.get("connection"), each.get("api")
        if each["what"] == "answer" and key in waiting:
            waiting.pop(key).answer = answered(each, names)
            if place == guilty:
                ready[-1].guilty = True
            continue
        if each["what"] in UNSHOWN or (each["what"] == "closed" and not each["why"]):
            continue
        row = Row(each["ms"], said(each, names), None, each["what"] in ("request", "refused", DAMAGED), place == guilty)
        if each["what"] == "request":
            waiting[key] = row
        elif each["what"] == "refused":
            waiting[each.get("connection"), (each["message"] or "").removesuffix("Request")] = row
        ready.append(row)
    for row in ready:
        same = last is not None and (last.says, last.answer, last.guilty) == (row.says, row.answer, row.guilty)
        if last is not None and same and row.to_broker:
            last.times, last.until_ms = last.times + 1, row.ms
            continue
        if last is not None:
            yield last
        last = row
    if last is not None:
        yield last


def shown(rows: Sequence[Row], has_breach: bool) -> Iterator[Exhibit]:
    """The rows around the breach; of a step without it the last ones."""
    guilty = next((number for number, each in enumerate(rows) if each.guilty), None) if has_breach else None
    low = max(0, (guilty - BEFORE) if guilty is not None else len(rows) - (BEFORE if has_breach else FEW))
    high = len(rows) if guilty is None else guilty + 1 + AFTER
    if low:
        says = f"{low} earlier events are not shown" if low > 1 else "1 earlier event is not shown"
        yield {"from": CLIENT, "to": CLIENT, "says": says, "answer": None, "guilty": False, "first": False}
    yield from (each.data() for each in rows[low:high])


def said(event: Mapping[str, Any], names: Names) -> str:
    """An event as the predicate of a sentence about the client."""
    match event["what"]:
        case "request":
            return ", ".join([f"{event['api']} v{event['version']}", *requested(event, names)])
        case "answer":
            return f"is sent a late answer to {event['api']}: {answered(event, names)}"
        case "refused":
            return f"{event['message']} v{event['version']}, which strict decoding refuses: {event['why']}"
        case "damaged":
            return f"{event['api']} v{event['version']} has a damaged {event['record']}: {event['path']}"
        case "closed":
            return f"loses connection {event['connection']}, which the broker closes: {event['why']}"
        case "settled":
            return f"is a stable member, {seconds(event['waited_ms'])} after the step began"
        case "unsettled":
            return f"is no stable member, {seconds(event['waited_ms'])} after the step began"
        case "confirmed":
            return f"breaks {event['law']} in this way also when a script is played alone, and kipcheck is in time"
        case "ended":
            return f"ends with exit code {event['code']}"
        case other:
            return SAID.get(other, str(other))


def requested(event: Mapping[str, Any], names: Names) -> Iterator[str]:
    if "member" in event:
        yield names.of(event["member"])
    if event.get("generation", -1) >= 0:
        yield f"generation {event['generation']}"
    if "instance" in event:
        yield f"instance {event['instance']}"
    if event["api"] == "JoinGroup":
        yield f"assignors {' '.join(each[0] for each in event['protocols'])}"
    if event.get("assignments"):
        yield "; ".join(f"{names.of(who)} gets {given_to(given)}" for who, given in event["assignments"])
    if "partitions" in event:
        yield listed(event["partitions"])


def answered(event: Mapping[str, Any], names: Names) -> str:
    error = event.get("error", 0)
    if error:
        return NAMES.get(error, f"error {error}")
    if event["api"] == "JoinGroup":
        role = "leads" if event.get("leads") else "follows"
        return f"{names.of(event['member'])}, generation {event['generation']}, {role}"
    return listed(event["partitions"]) if "partitions" in event else "ok"


def given_to(partitions: Any) -> str:
    return "bytes that cannot be read" if partitions is None else listed(partitions)


def listed(partitions: Any) -> str:
    return " ".join(map(str, partitions)) or "no partitions"
