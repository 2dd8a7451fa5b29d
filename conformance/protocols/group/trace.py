"""Builds the trace of a classic group from a history: requests with their answers, member ids, generations and times in
place of references."""

from dataclasses import dataclass, replace

from kipcheck.conformance.core.values.cached_on_history import cached_on_history
from kipcheck.conformance.core.values.history import History, Observation, Replied, Unsupported
from kipcheck.conformance.protocols.declare.real_time import stated_settings
from kipcheck.conformance.protocols.group.model.answers import Config
from kipcheck.conformance.protocols.group.model.messages import (
    Joined,
    Reply,
    Request,
)
from kipcheck.conformance.protocols.group.model.names import Names
from kipcheck.conformance.protocols.group.model.service import By, Elapse, Event, resolved
from kipcheck.conformance.protocols.group.ops import ANSWERS, OPERATIONS


@dataclass(frozen=True, slots=True)
class TracedRequest:
    """A request of a client."""

    index: int
    """Index of the step, which is also the number that answers refer to."""
    actor: str
    request: Request
    """The request as sent, with ids as they appear in answers, and the resolved generation."""
    nameless: bool
    at_ms: int
    before: Names
    """The ids and generations that clients knew when it was sent."""
    answer: Reply | None = None
    """The first answer; None: the request stayed parked until the end of the trace."""
    by: int | None = None
    """Index of the step that caused the answer."""
    from_ms: int | None = None
    """Start of that step. During ``elapse`` an answer may come at any time within the step."""
    to_ms: int | None = None
    """End of that step."""

    @property
    def parked(self) -> bool:
        """Whether the answer came in a later step than the request."""
        return self.by != self.index


@dataclass(frozen=True, slots=True)
class TracedStep:
    """A step, and all replies that it caused."""

    index: int
    event: Event
    from_ms: int
    to_ms: int
    replies: tuple[Reply, ...]
    after: Names
    """The ids and generations that clients know at the end of the step."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The history up to the first step without an answer, or with one of another kind than its request: later steps
    cannot be judged.
    """

    asked: tuple[TracedRequest, ...]
    """All requests, in the order in which they were sent."""
    steps: tuple[TracedStep, ...]
    """All steps except those that the target does not support."""
    strays: tuple[tuple[int, Reply], ...]
    """Unsolicited and duplicate answers, and one of another kind than its request, with the step that caused them."""
    whole: bool
    """Whether the trace reaches the last step."""

    def request(self, index: int) -> TracedRequest:
        """The request sent in this step. Errors: StopIteration if the step is not a request."""
        return next(each for each in self.asked if each.index == index)

    @property
    def end_ms(self) -> int:
        return self.steps[-1].to_ms if self.steps else 0


def settings(history: History) -> Config:
    """Of the broker: those that conversations count on, where the target does not state others."""
    return Config(**stated_settings(history))


@cached_on_history
def trace(history: History) -> Trace:
    asked: dict[int, TracedRequest] = {}
    steps: list[TracedStep] = []
    strays: list[tuple[int, Reply]] = []
    names, now, whole = Names(), 0, True
    for op in history.ops:
        if isinstance(op.observation, Unsupported):
            continue
        replies = _replies(op.observation)
        if replies is None:
            return Trace(tuple(asked.values()), tuple(steps), tuple(strays), whole=False)
        event, began = OPERATIONS.event_of(op.step), now
        if isinstance(event, Elapse):
            now += event.ms
        elif isinstance(event, By):
            generation = names.generation(event.actor, event.behind)
            request = resolved(event.request, names, generation, number=op.index)
            asked[op.index] = TracedRequest(op.index, event.actor, request, event.nameless, now, names)
        joined: list[tuple[str, Joined]] = []
        for reply in replies:
            request_ = asked.get(reply.to)
            if request_ is None or request_.answer is not None:
                strays.append((op.index, reply))
                continue
            if not isinstance(reply, ANSWERS[type(request_.request)]):
                strays.append((op.index, reply))
                whole = False
                break
            asked[reply.to] = replace(request_, answer=reply, by=op.index, from_ms=began, to_ms=now)
            if isinstance(reply, Joined):
                joined.append((request_.actor, reply))
        names = names.after_answers(joined)
        steps.append(TracedStep(op.index, event, began, now, replies, names))
        if not whole:
            break
    return Trace(tuple(asked.values()), tuple(steps), tuple(strays), whole)


def _replies(observation: Observation) -> tuple[Reply, ...] | None:
    """None if the replies to the step are unknown."""
    if not isinstance(observation, Replied):
        return None
    try:
        return tuple(map(OPERATIONS.answer_from_json, dict(observation.payload)["answers"]))
    except (KeyError, TypeError):
        return None
