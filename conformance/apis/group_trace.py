"""A history of a classic group as what was asked and what came of it: ids, generations and times in the place of
references."""

from dataclasses import dataclass, replace

from kipcheck.conformance.apis.group import event_of, reply_of
from kipcheck.conformance.core.history import History, Observation, Replied, Unsupported
from kipcheck.conformance.core.once import once
from kipcheck.conformance.models.group.messages import Joined, Reply, Request
from kipcheck.conformance.models.group.names import Names
from kipcheck.conformance.models.group.service import By, Elapse, Event, resolved


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a client."""

    index: int
    """Of the step, and so the number by which answers name it."""
    actor: str
    request: Request
    """As it was sent: with ids as answers show them, and the generation that was meant."""
    nameless: bool
    at_ms: int
    before: Names
    """What clients had been told when it was sent."""
    answer: Reply | None = None
    """The first one; None: it was parked to the end of what is known."""
    by: int | None = None
    """The step that led to the answer."""
    from_ms: int | None = None
    """When that step began. While time passes, an answer may come at any moment of it."""
    to_ms: int | None = None
    """When that step was over."""

    @property
    def parked(self) -> bool:
        """Was it not answered at once?"""
        return self.by != self.index


@dataclass(frozen=True, slots=True)
class Moment:
    """A step, and everything that it led to."""

    index: int
    event: Event
    from_ms: int
    to_ms: int
    replies: tuple[Reply, ...]
    after: Names
    """What clients have been told when it is over."""


@dataclass(frozen=True, slots=True)
class Trace:
    """As far as each step was answered: what comes after a lost answer is nobody's fault."""

    asked: tuple[Asked, ...]
    """In the order in which they were sent."""
    moments: tuple[Moment, ...]
    """Without the steps that the target cannot be told."""
    strays: tuple[tuple[int, Reply], ...]
    """Answers to what nobody asked, or that was answered already, with the step that led to them."""
    whole: bool
    """Is it known to the last step?"""

    def request(self, index: int) -> Asked:
        """Errors: KeyError where that step is no request."""
        return next(each for each in self.asked if each.index == index)

    @property
    def end_ms(self) -> int:
        return self.moments[-1].to_ms if self.moments else 0


@once
def trace(history: History) -> Trace:
    asked: dict[int, Asked] = {}
    moments: list[Moment] = []
    strays: list[tuple[int, Reply]] = []
    names, now = Names(), 0
    for op in history.ops:
        if isinstance(op.observation, Unsupported):
            continue
        replies = _replies(op.observation)
        if replies is None:
            return Trace(tuple(asked.values()), tuple(moments), tuple(strays), whole=False)
        event, began = event_of(op.step), now
        if isinstance(event, Elapse):
            now += event.ms
        elif isinstance(event, By):
            generation = names.generation(event.actor, event.behind)
            request = resolved(event.request, names, generation, number=op.index)
            asked[op.index] = Asked(op.index, event.actor, request, event.nameless, now, names)
        joined: list[tuple[str, Joined]] = []
        for reply in replies:
            request_ = asked.get(reply.to)
            if request_ is None or request_.answer is not None:
                strays.append((op.index, reply))
                continue
            asked[reply.to] = replace(request_, answer=reply, by=op.index, from_ms=began, to_ms=now)
            if isinstance(reply, Joined):
                joined.append((request_.actor, reply))
        names = names.told(joined)
        moments.append(Moment(op.index, event, began, now, replies, names))
    return Trace(tuple(asked.values()), tuple(moments), tuple(strays), whole=True)


def _replies(observation: Observation) -> tuple[Reply, ...] | None:
    """None where it is not known what the step led to."""
    if not isinstance(observation, Replied):
        return None
    try:
        return tuple(map(reply_of, dict(observation.payload)["answers"]))
    except (KeyError, TypeError):
        return None
