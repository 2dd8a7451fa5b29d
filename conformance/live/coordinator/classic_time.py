"""When the steps of a conversation happen in real time, so that timers expire at the steps where they should.

A conversation has a clock that only ``elapse`` advances, and timers that expire to the millisecond. A broker's clock
runs on during requests, and its timers are late by a little. So the machine of the edition is run beside the
conversation: it says which timers are armed. Each ``elapse`` ends when those that expire in it have had time to, and
well before the next one. What no moment suits is in doubt: then violations in the history prove nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from typing import Final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.live.coordinator.classic_races import Armed, Course, orders
from kipcheck.conformance.live.coordinator.time_windows import NEAREST_S, Span
from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.messages import Action, Arm, Error, Event, Join, Joined, Reply, Timer
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import By, Elapse, Served, Service
from kipcheck.conformance.protocols.group.model.state import Member, State, session

AT_ONCE_S: Final = 0.003
"""Two timers whose distance is known to be less may expire while the other is handled, where threads differ."""
EARLY: Final = "a timer of the coordinator may have expired before its time"


@dataclass(frozen=True, slots=True)
class Wait:
    """An ``elapse``."""

    until_s: float
    answered: frozenset[int]
    """The requests that should be answered in it."""
    latest_s: float
    """It may last until then if these are not answered yet: no timer expires before."""
    doubt: str = ""


class _Following(Coordinator):
    """A coordinator whose choices are those that answers show, where Kafka leaves them open."""

    leaders: frozenset[str] = frozenset()
    protocols: frozenset[str] = frozenset()
    armed: frozenset[Timer] = frozenset()
    """Those that it has armed since this was emptied, also if they were armed for the same moment before."""

    def step(self, state: State, event: Event, /) -> Transition[State, Action]:
        after, actions = super().step(state, event)
        self.armed |= {each.timer for each in actions if isinstance(each, Arm)}
        return Transition(after, actions)

    def choose_leader(self, state: State, candidates: tuple[Member, ...]) -> Member:
        shown = (each for each in candidates if each.id in self.leaders)
        return next(shown, None) or super().choose_leader(state, candidates)

    def choose_protocol(self, state: State, candidates: tuple[str, ...]) -> str:
        return next((each for each in candidates if each in self.protocols), None) or super().choose_protocol(
            state, candidates
        )


@dataclass
class Schedule:
    """Of one conversation."""

    rules: Rules
    config: Config
    times: int
    """How much faster than stated the time of the broker passes."""
    margin_s: float
    _machine: _Following = field(init=False)
    _service: Service[State] = field(init=False)
    _state: Served[State] = field(init=False)
    _before: Served[State] = field(init=False)
    _deadlines: dict[Armed, Span] = field(default_factory=dict)
    """When armed timers expire."""
    _idle: dict[Timer, Span] = field(default_factory=dict)
    """When the sessions of members that wait would have ended: up to 3.9 their timers run on, and their end counts only
    if the member does not wait any more."""
    suspect: bool = False
    """Whether such a member was answered, in the last wait, in the moment in which its former session ended. Kafka then
    seldom removes it: what the coordinator answers later shows it."""
    _lengths: set[int] = field(default_factory=set)
    """Of all timers that the coordinator may have armed."""
    _moments: list[tuple[int, Span]] = field(default_factory=list)
    """When requests were sent: by the clock of the conversation, and really."""
    _kept: dict[Armed, Span] = field(default_factory=dict)
    """``_deadlines`` before the wait."""
    _raced: bool = False
    """Whether timers may expire in the wait in another order than the machine's, which comes to something else."""
    _wanted: tuple[Reply, ...] = ()
    """The answers that should come in the wait."""
    apart: bool = False
    """Whether the coordinator answered otherwise than the machine: its timers may be others, too."""

    def __post_init__(self) -> None:
        self._machine = _Following(self.rules, self.config)
        self._service = Service(self._machine)
        self._state = self._before = self._service.initial()
        self._lengths.add(self.config.initial_delay_ms)

    @property
    def now_ms(self) -> int:
        return self._state.clock.now_ms

    def skip(self) -> None:
        """A step is left out."""
        self._state = replace(self._state, actors=(*self._state.actors, ""))

    def ask(self, event: By) -> frozenset[int]:
        """A request is sent: the numbers of those that should be answered at once."""
        self._machine.leaders = self._machine.protocols = frozenset()
        self._before = self._state
        self._state, replies = self._served(event)
        return frozenset(each.to for each in replies)

    def _served(self, event: By) -> Transition[Served[State], Reply]:
        """What comes of a request, with what expires at once where the first join phase has no delay.

        Elsewhere a join phase of no length is one without members, which leaves the next request in doubt.
        """
        self._machine.armed = frozenset()
        if self.config.initial_delay_ms:
            return self._service.step(self._before, event)
        return self._service.step_in_real_time(self._before, event)

    def asked(self, event: By, replies: Iterable[Reply], sent: Span) -> str:
        """What came of it, with canonical ids, and when it was handled. Returns the doubt, if a timer may have expired
        in the meantime."""
        found = tuple(replies)
        number = len(self._before.actors)
        if isinstance(event.request, Join) and not any(each.to == number and _refuses(each) for each in found):
            self._lengths |= {event.request.session_ms, event.request.patience_ms}
        if not self.apart:
            self._follow(event, found)
        doubt = self._overdue(self._before, sent.last)
        self._moments.append((self.now_ms, sent))
        self._arm(self._before, sent)
        # One that the request armed may have expired before the step ended, if this process was held up.
        doubt = doubt or self._overdue(self._state, sent.last)
        return doubt or (EARLY if self.apart and self._is_early(sent.last) else "")

    def _follow(self, event: By, found: tuple[Reply, ...]) -> None:
        """Makes the open choices again as the answers show them."""
        self._hinted(found)
        self._state, wanted = self._served(event)
        self._compare(wanted, found)

    def _hinted(self, found: tuple[Reply, ...]) -> bool:
        """Whether answers show a choice."""
        joined = [each for each in found if isinstance(each, Joined) and each.generation > 0]
        ids = {shown: id for id, shown in self._state.names.ids}
        self._machine.leaders = frozenset(ids[each.leader] for each in joined if each.leader in ids)
        self._machine.protocols = frozenset(each.protocol for each in joined if each.protocol is not None)
        return bool(joined)

    def _compare(self, wanted: tuple[Reply, ...], found: tuple[Reply, ...]) -> None:
        errors = [{each.to: each.error for each in answers} for answers in (wanted, found)]
        if self._state.group.failed or errors[0] != errors[1]:
            self.apart = True

    def elapse(self, ms: int, now_s: float, requests_after_s: float) -> Wait:
        """Time passes. ``requests_after_s``: what the requests up to the next ``elapse`` may take."""
        self._machine.leaders = self._machine.protocols = frozenset()
        self._before, self._kept = self._state, dict(self._deadlines)
        expired, self._wanted = self._pass(ms)
        usual = now_s + ms / 1000 / self.times
        return self._wait(usual, now_s, expired, requests_after_s, frozenset(each.to for each in self._wanted))

    def elapsed(self, ms: int, replies: Iterable[Reply], now_s: float) -> str:
        """What came meanwhile, with canonical ids. Returns the doubt, if this process was late."""
        found = tuple(replies)
        doubt = self._overdue(self._state, now_s)
        if not self.apart:
            if self._hinted(found):
                self._state, self._deadlines = self._before, self._kept
                _, self._wanted = self._pass(ms)
            self._compare(self._wanted, found)
        return doubt

    def _pass(self, ms: int) -> tuple[list[Span], tuple[Reply, ...]]:
        """Lets the machine's time pass: when timers expire, and the answers."""
        until, actors = self.now_ms + ms, (*self._state.actors, "")
        start = Course(self._state, {each[1]: self._deadlines[each] for each in self._state.clock.timers})
        expired: list[Span] = []
        answers: list[Reply] = []
        self.suspect = False
        while (due := self._next_deadline()) is not None and due <= until:
            before = self._state
            expiring = [self._deadlines[each] for each in before.clock.timers if each[0] == due]
            at = Span(min(each.first for each in expiring), max(each.last for each in expiring))
            expired.append(at)
            self._machine.armed = frozenset()
            self._state, replies = self._service.step(before, Elapse(due - self.now_ms))
            self._state = replace(self._state, actors=before.actors)
            answers += replies
            self._arm(before, at)
        self._raced = not self._in_any_order(start, until, tuple(answers))
        self._state, _ = self._service.step(self._state, Elapse(until - self.now_ms))
        self._state = replace(self._state, actors=actors)
        return expired, tuple(answers)

    def _in_any_order(self, start: Course, until: int, answers: tuple[Reply, ...]) -> bool:
        """Whether all possible orders of the timers that expired come to what the machine's order does. When those that
        they armed expire is as uncertain as the order."""
        own = Course(self._state, {each[1]: self._deadlines[each] for each in self._state.clock.timers}, answers)
        for each in orders(self._service, start, until, self.times):
            if each is None or not each.comes_to(own, NEAREST_S * self.times * 1000):
                return False
            for armed in self._state.clock.timers:
                self._deadlines[armed] = self._deadlines[armed].with_(each.spans[armed[1]])
        return True

    def _wait(self, usual: float, now_s: float, expired: list[Span], after: float, answered: frozenset[int]) -> Wait:
        armed = [self._deadlines[each] for each in self._state.clock.timers]
        least = max((each.last for each in expired), default=now_s)
        most = min((each.first for each in armed), default=float("inf"))
        low, high = (least + self.margin_s if expired else now_s), most - self.margin_s - after
        until = min(max(usual, low), high) if low <= high else max(low if not armed else (least + most) / 2, now_s)
        doubt = ""
        if most - least < 2 * NEAREST_S or self._raced:
            doubt = "timers of the coordinator expire too close together"
        elif self.apart and self._is_near(until):
            doubt = "a timer may expire close to the end of the wait"
        return Wait(until, answered, high, doubt)

    def _next_deadline(self) -> int | None:
        return self._state.clock.timers[0][0] if self._state.clock.timers else None

    def _overdue(self, state: Served[State], now_s: float) -> str:
        late = [each for each in state.clock.timers if self._deadlines[each].first <= now_s + NEAREST_S / 2]
        return EARLY if late else ""

    def _arm(self, before: Served[State], at: Span) -> None:
        """Notes when the timers expire that the machine has just armed."""
        for each in self._state.clock.timers:
            if each[1] in self._machine.armed:
                self._deadlines[each] = at.plus((each[0] - self.now_ms) / 1000 / self.times)
                former = self._idle.pop(each[1], None)
                self.suspect |= former is not None and abs(former.first - at.first) < AT_ONCE_S
        if not self.rules.java:
            waiting = {session(each.id) for each in self._state.group.members if each.waits}
            self._idle |= {each[1]: self._deadlines[each] for each in before.clock.timers if each[1] in waiting}

    def _is_near(self, until_s: float) -> bool:
        """Whether any timer that a request may have armed expires around this moment."""
        return self._is_early(until_s) or any(
            stated + length <= self.now_ms and sent.plus(length / 1000 / self.times).last + NEAREST_S > until_s
            for (stated, sent), length in product(self._moments, self._lengths)
        )

    def _is_early(self, until_s: float) -> bool:
        """Whether any timer that a request may have armed may have expired, and not in the time of the conversation.

        An answer that the machine gives and the coordinator does not is awaited for seconds.
        """
        return any(
            stated + length > self.now_ms and sent.plus(length / 1000 / self.times).first - NEAREST_S < until_s
            for (stated, sent), length in product(self._moments, self._lengths)
        )


def _refuses(answer: Reply) -> bool:
    """Whether a JoinGroup with this answer arms no timer."""
    return answer.error not in (Error.NONE, Error.MEMBER_ID_REQUIRED)
