"""Judges the histories of members, and says each broken law of a member once."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.live.recording.log import annotated
from kipcheck.conformance.live.recording.traffic import Finding
from kipcheck.conformance.live.watch.laws import reading, violations
from kipcheck.conformance.live.watch.track import Member, Track
from kipcheck.conformance.protocols.client.events import (
    EVENTS,
    AnswerSeen,
    Event,
    Idle,
    RecordDamaged,
    RequestRefused,
)
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS
from kipcheck.conformance.protocols.client.ops import OPERATIONS, Pass
from kipcheck.conformance.protocols.client.trace import events_of
from kipcheck.conformance.protocols.client.wording import damaged
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, Invariant
from kipcheck.conformance.wire.errors import Refused

QUIET_MS: Final = 300
"""A history is judged when nothing came for so long: an answer is in doubt if its connection ends right after it."""
LATEST_MS: Final = 3000
"""It is judged so long after something came at the latest."""
MOST_REPORTED: Final = 1000
"""Violations that are shown."""
MOST_OF_A_KIND: Final = 5
"""Violations of one law by one client in one way whose histories are kept for the reports."""
MOST_KEPT: Final = 200
"""Of all kinds."""
SHOWN_BYTES: Final = 2000
OTHERS: Final = "others"
COORDINATOR: Final = "the coordinator"
"""The name of what answers: brokers do not say which software they are."""
MOST_NAMES: Final = 50
"""Different clients in a ledger."""


@dataclass(frozen=True, slots=True)
class Reported:
    """A broken law, with the history that shows it."""

    member: Member
    id: str
    law: Invariant
    violation: Violation
    history: History
    by_answer: bool = False
    """Whether an answer breaks it."""


@dataclass(slots=True)
class Judging:
    edition: Edition
    say: Callable[[str], None]
    reported: list[Reported] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)
    """Client -> histories that were judged."""
    laws: dict[str, Counter[str]] = field(default_factory=dict)
    """Client -> law -> histories in which it read something."""
    unreported: int = 0
    """Violations that are not in the reports."""
    unreported_must: bool = False
    """Whether one of them is of grade MUST."""
    _shown: int = 0
    _kinds: Counter[tuple[str, str, tuple[str, ...]]] = field(default_factory=Counter)
    _refused: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)

    def is_due(self, track: Track, now_ms: int) -> bool:
        if track.dirty_ms is None:
            return True
        return now_ms >= track.last_ms + QUIET_MS or now_ms >= track.dirty_ms + LATEST_MS

    def judge(self, track: Track, late_ms: int) -> None:
        """Reports what is new in a history. ``late_ms``: how late this machine was, for laws about time."""
        track.dirty_ms = None
        if not track.is_judged or not track.events:
            track.pending.leave(track.unjudged)
            return
        track.pending.judged()
        history = self._history(track.events, late_ms, track.check)
        laws = reading(history)
        self._count(track.about, laws, track.counted)
        track.counted |= laws
        for law, violation in violations(history):
            key = law.id, violation.shape
            place = track.reported.get(key)
            if key in track.reported and (place is None or not self._is_answered_now(place, violation)):
                continue
            report = Reported(track.about, track.member, law, violation, history)
            if place is not None:
                self.reported[place] = report
                continue
            at = _place(track.events, law, violation, lambda events: self._history(events, check=track.check))
            track.reported[key] = self._report(report, track.payloads.get(id(track.events[at])))
        track.shorten()

    def judge_bytes(
        self, about: Member, id: str, event: RequestRefused | RecordDamaged, payload: bytes | None = None
    ) -> int | None:
        """Reports a request that strict decoding refuses, or a damaged record inside a message: bytes need no history.

        ``about``, ``id``: the member that wrote it. Each kind is reported once for a client, or for a member whose
        client is unknown. Returns its place in ``reported``.
        """
        law = INVARIANTS["client/encodes-strictly" if isinstance(event, RequestRefused) else "client/embeds-strictly"]
        history = self._history([event])
        for violation in law.search(history):
            key = f"{about.software} {about.client_id or id}", about.group, violation.shape
            if key not in self._refused and len(self._refused) < MOST_REPORTED:
                self._refused.add(key)
                self._count(about, frozenset({law.id}))
                return self._report(Reported(about, id, law, violation, history), payload)
        return None

    def answered(self, place: int, event: AnswerSeen) -> None:
        """The request of ``judge_bytes`` was answered: what is reported of it has the answer. ``event``: the answer."""
        report = self.reported[place]
        ((_, request),) = events_of(report.history)
        history = self._history([request, event])
        shape = report.violation.shape
        violation = next(violation for violation in report.law.search(history) if violation.shape == shape)
        self.reported[place] = replace(report, violation=violation, history=history)

    def _is_answered_now(self, place: int, violation: Violation) -> bool:
        """Whether the request was answered since that was reported."""
        return self.reported[place].violation.answered is None and violation.answered is not None

    def answer_breaks(
        self, about: Member, id: str, law: str, violation: Violation, events: Sequence[Event], payload: bytes
    ) -> None:
        """Reports what a coordinator answered, each kind once for a group. ``payload``: header and body."""
        key = law, about.group, violation.shape
        if key in self._refused or len(self._refused) >= MOST_REPORTED:
            return
        self._refused.add(key)
        history = self._history(events)
        self._report(Reported(about, id, INVARIANTS[law], violation, history, by_answer=True), payload)

    def _count(self, about: Member, laws: frozenset[str], before: frozenset[str] = frozenset()) -> None:
        """Counts a history, if nothing was read of it ``before``, and the laws that read something of it now."""
        name = about.software if about.software in self.judged or len(self.judged) < MOST_NAMES else OTHERS
        self.judged[name] = self.judged.get(name, 0) + (not before)
        self.laws.setdefault(name, Counter()).update(laws - before)

    def _history(self, events: Sequence[Event], late_ms: int = 0, check: str = SURVIVES_GROUPS) -> History:
        idle = [Idle(events[-1].ms, late_ms)] if late_ms else []
        ms = events[-1].ms - events[0].ms
        step = Step(OPERATIONS.sender(_PASS), _PASS.verb, {"ms": ms})
        case = Case(check, str(self.edition), Role.CLIENT, (step,))
        return History(case, "watch", (Op(0, step, Replied((("actions", [*events, *idle]),)), 1),))

    def _report(self, report: Reported, payload: bytes | None) -> int | None:
        """The place in ``reported``; None: it is beyond the limits."""
        kind = report.member.software, report.law.id, report.violation.shape
        self._shown += 1
        is_kept = len(self.reported) < MOST_KEPT and self._kinds[kind] < MOST_OF_A_KIND
        if is_kept:
            self._kinds[kind] += 1
            self.reported.append(report)
        else:
            self.unreported += 1
            self.unreported_must |= report.law.grade is Grade.MUST
        for line in lines(report, payload, str(self.edition)) if self._shown <= MOST_REPORTED else ():
            self.say(line)
        return len(self.reported) - 1 if is_kept else None


_PASS: Final = OPERATIONS.parse_shorthand("pass 1")[0]
assert OPERATIONS.verb_of[Pass] == _PASS.verb


def _place(events: list[Event], law: Invariant, violation: Violation, history: Callable[[list[Event]], History]) -> int:
    """The event with which the law is broken in this way: the last of the fewest that show it."""
    low, high = 1, len(events)
    while low < high:
        middle = (low + high) // 2
        shown = any(found.shape == violation.shape for found in law.search(history(events[:middle])))
        low, high = (low, middle) if shown else (middle + 1, high)
    return low - 1


def seen_by_client(judging: Judging) -> Iterator[tuple[str, str, History, Violation]]:
    """Client, law, history and violation of all that was reported: what a ledger holds."""
    for report in judging.reported:
        software = report.member.software
        name = software if report.by_answer or software in judging.judged else OTHERS
        violation = replace(report.violation, why=f"{report.violation.why} ({who(report)})")
        yield name, report.law.id, _in_json(report.history), violation


def _in_json(history: History) -> History:
    actions = [EVENTS.to_json(event) for _, event in events_of(history)]
    return replace(history, ops=(replace(history.ops[0], observation=Replied((("actions", actions),))),))


def who(report: Reported) -> str:
    about = report.member
    named = f"member {report.id}" if report.id else "no member id"
    group = f"group {about.group}" if about.group else "no group"
    if report.by_answer:
        return f"{group}, {named}, {about.software} at {about.host or '-'}"
    return f"{group}, {named}, client id {about.client_id or '-'} ({about.software}) at {about.host}"


def lines(report: Reported, payload: bytes | None, edition: str) -> list[str]:
    """What is shown of a broken law at once: who, what, the clauses, and the bytes of the request or answer."""
    law, violation = report.law, report.violation
    broken = map(requirements().__getitem__, law.requirements)
    clauses = [f"  {requirement.id}: {requirement.clause}" for requirement in broken]
    shown = [
        f"{law.grade.word} {law.id} ({law.grade.value}): {who(report)}",
        f"  broken: {law.statement}",
        *clauses,
        f"  {violation.why}; expected {violation.expected}, observed {violation.observed}",
    ]
    if payload is not None and report.by_answer:
        shown.append(f"    answer: {payload[:SHOWN_BYTES].hex()}")
    elif payload is not None:
        finding = Finding(0.0, 0, Refused("trailing", "", message="", version=0), payload, answered=True)
        shown += [f"    {line}" for line in annotated(finding, edition).splitlines()]
    for _, event in events_of(report.history):
        if isinstance(event, RecordDamaged) and event.hex:
            shown += [f"    {line}" for line in damaged(event).text().splitlines()]
    return shown
