"""Timers of a coordinator that expire close together: in which orders they may, and whether the order matters.

A machine lets timers expire in the order of their deadlines. A broker has them in milliseconds of its own clock, and
expires those of about the same moment in any order. Mostly all orders come to the same: of two members whose sessions
end together, both are gone afterwards.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from kipcheck.conformance.live.coordinator.time_windows import NEAREST_S, Span
from kipcheck.conformance.protocols.group.model.messages import Reply, Timer
from kipcheck.conformance.protocols.group.model.service import Served, Service
from kipcheck.conformance.protocols.group.model.state import State

MOST: Final = 500
"""States on the way; with more than that the order is taken to matter."""
Armed: TypeAlias = tuple[int, Timer]
"""Deadline, by the clock of the conversation, and timer."""


@dataclass(frozen=True, slots=True)
class Course:
    """One order in which timers expire."""

    state: Served[State]
    spans: Mapping[Timer, Span]
    """When the armed timers expire."""
    answers: tuple[Reply, ...] = ()

    def comes_to(self, other: "Course", ms: float) -> bool:
        """Whether it ends as another one does, and its timers at most so much earlier or later by the clock of the
        conversation."""
        (own, there), (one, two) = (each.state for each in (self, other)), (self._by_timer(), other._by_timer())
        same = own.group == there.group and own.names == there.names and own.failing == there.failing
        near = one.keys() == two.keys() and all(abs(one[each] - two[each]) <= ms for each in one)
        return same and near and self._by_request() == other._by_request()

    def _by_timer(self) -> dict[Timer, int]:
        return {timer: deadline for deadline, timer in self.state.clock.timers}

    def _by_request(self) -> dict[int, Reply]:
        return {each.to: each for each in self.answers}

    def possible(self, until_ms: int) -> list[Armed]:
        """Those of the timers that are due which may be the next one to expire."""
        due = [each for each in self.state.clock.timers if each[0] <= until_ms]
        soonest = min((self.spans[timer].last for _, timer in due), default=0.0)
        return [each for each in due if self.spans[each[1]].first < soonest + NEAREST_S]

    def after(self, service: Service[State], armed: Armed, times: int) -> "Course":
        """The course after one of its timers has expired."""
        state, answers = service.expire(self.state, armed)
        at, known = self.spans[armed[1]], {*self.state.clock.timers}
        spans = {
            timer: self.spans[timer] if (deadline, timer) in known else at.plus(_seconds(state, deadline, times))
            for deadline, timer in state.clock.timers
        }
        return Course(state, spans, (*self.answers, *answers))


def _seconds(state: Served[State], deadline: int, times: int) -> float:
    return (deadline - state.clock.now_ms) / 1000 / times


def orders(service: Service[State], start: Course, until_ms: int, times: int) -> Iterator[Course | None]:
    """What the timers that are due come to, in all orders that are possible; None: there are too many."""
    waiting, known = [start], set[Served[State]]()
    while waiting:
        course = waiting.pop()
        possible = course.possible(until_ms)
        if not possible:
            yield course
        for each in possible:
            after = course.after(service, each, times)
            if after.state not in known:
                known.add(after.state)
                waiting.append(after)
        if len(known) > MOST:
            yield None
            return
