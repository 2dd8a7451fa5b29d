"""Which scripts of a user cannot be played, and why: a step that no broker, network, user or other member takes, or
that the program cannot notice where it stands."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.protocols.client import log_ops, model, ops
from kipcheck.conformance.protocols.client.answer_ops import SHARES, STREAMS
from kipcheck.conformance.protocols.declare.check import Impossible

STOP: Final = ops.OPERATIONS.step_of(ops.Stop())
RULE: Final = "script"
OF_BROKERS: Final = (ops.Older, ops.Newer, ops.Offer)
"""The settings that are those of the broker."""
BEATS: Final = {"consumer": "ConsumerGroupHeartbeat", "streams": STREAMS, "share": SHARES[0]}
"""Protocol -> the request by which its members join, stay and leave."""


def finished(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with a ``stop`` at their end: a program ends with its script."""
    return steps if any(step.verb == STOP.verb for step in steps) else (*steps, STOP)


def unplayable(case: Case) -> Iterator[Impossible]:
    """Each step that cannot be played, with the reason and what to write in its place."""
    taken = [ops.OPERATIONS.event_of(step) for step in case.steps]
    state, ended = model.Scripts().initial(), False
    for at, event in enumerate(taken):
        starts_again = any(isinstance(later, ops.Restart) for later in taken[at:])
        why = "stop ended the program: restart, in place of stop, starts it again" if ended else ""
        why = why or _never(event) or _not_here(state, event, starts_again)
        if why:
            yield Impossible(at, RULE, why)
        ended = ended or isinstance(event, ops.Stop)
        state = model.Scripts().step(state, event).state


def errors_of(text: str) -> str:
    """The errors that a step may name where it names none of them; empty: it names no request that has any."""
    word, named, *_ = (*text.split(), "", "")
    kind = next((each for each in model.ERRORS if each == named), None)
    if word not in ("answer", "refuse") or kind is None:
        return ""
    passing, lasting = ", ".join(model.ERRORS[kind]), ", ".join(model.REFUSALS[kind])
    return f"write answer {kind} with {passing}, or refuse {kind} with {lasting}"


def unplayable_beside_a_test(event: ops.Event) -> str:
    """Why a broker cannot take a step whose client a test starts; empty: it can."""
    if isinstance(event, ops.Stop | ops.Restart | ops.Freeze):
        return "the test starts and stops the client: it does that itself"
    if isinstance(event, ops.SETTINGS) and not isinstance(event, OF_BROKERS):
        return "the test starts the client, and gives it that setting itself"
    if getattr(event, "at", "now") in ("start", "stop"):
        way = "refuse it now" if isinstance(event, ops.Refuse) else "use at next"
        return f"the test starts and stops the client, at times that the broker does not know: {way}"
    return _never(event)


def _not_here(state: model.State, event: ops.Event, starts_again: bool) -> str:
    """Why the event has no effect where it stands; empty: it may have one.

    ``starts_again``: whether the program is started again after it.
    """
    kind, phase = getattr(event, "kind", ""), getattr(event, "at", "now")
    if isinstance(event, ops.Committed) and state.started:
        return "offsets are set while the group has no members: write it in front"
    if isinstance(event, ops.Fence) and not state.static:
        return "a member without an instance id cannot be fenced: write static in front"
    if kind in model.UNSENT[state.protocol]:
        wanted = next(name for name, unsent in model.UNSENT.items() if kind not in unsent)
        if state.protocol == "classic":
            return f"a member of a classic group sends no {kind}: write protocol {wanted} in front"
        return f"a member with protocol {state.protocol} sends no {kind}: use {BEATS[state.protocol]}"
    if phase == "stop" and kind and kind not in model.AT_THE_END:
        return f"a program that is stopped sends no {kind}: use {', '.join(sorted(model.AT_THE_END))}"
    if state.started and not starts_again and (isinstance(event, ops.SETTINGS) or phase == "start"):
        return "it takes effect when the program starts: write it in front, or restart behind it"
    return ""


def _never(event: ops.Event) -> str:
    """Why no broker, network, user or other member does that; empty: one does."""
    if model.is_possible(event):
        return ""
    match event:
        case ops.Answer(kind, error) if error not in model.ERRORS[kind]:
            return _no_broker(kind, error, model.ERRORS[kind], f"refuse {kind} has others that do not pass")
        case ops.Refuse(kind, error) if error not in model.REFUSALS[kind]:
            return _no_broker(kind, error, model.REFUSALS[kind], f"answer {kind} has others that pass")
        case ops.Refuse(at="next"):
            return "a refusal lasts from a time on: use at start or at stop, or neither"
        case ops.Others():
            return f"a group has 0 to {model.MOST_OTHERS} other members"
        case ops.Assign():
            return f"partitions are numbered from 0 to {model.MOST_PARTITIONS - 1}"
        case ops.Grow():
            return f"a topic, which has {model.PARTITIONS} partitions, grows to at most {model.MOST_PARTITIONS}"
        case ops.Subscribe():
            return "the program subscribes to 1 or 2 topics"
        case ops.Offer():
            return f"versions are from 0 to {model.MOST_VERSION}, the lowest first"
        case ops.Intervals():
            return f"a session is longer than its heartbeat interval, and at most {model.MOST_SESSION_MS} ms"
        case ops.Committed():
            return f"offsets are from 0 to {model.RECORDS}, the end of the log"
        case log_ops.Trim():
            return "0 or more records are deleted"
        case log_ops.Elect(_, ms) if ms <= model.MOST_MS:
            return f"partitions are numbered from 0 to {model.MOST_PARTITIONS - 1}"
        case ops.MaxPoll():
            return f"a time between polls is {model.LEAST_POLL_MS} to {model.MOST_MS} ms"
    if getattr(event, "ms", 0) not in range(model.MOST_MS + 1):
        return f"a time is 0 to {model.MOST_MS} ms"
    if getattr(event, "times", 1) not in range(1, model.MOST_TIMES + 1):
        return f"1 to {model.MOST_TIMES} answers are changed"
    if getattr(event, "at", "now") == "start":
        return f"a program that starts sends no {getattr(event, 'kind', '')}"
    return "no broker, network, user or other member does that"


def _no_broker(kind: str, error: str, possible: tuple[str, ...], more: str) -> str:
    return f"no broker answers {kind} with {error}: use {', '.join(possible)}; {more}"
