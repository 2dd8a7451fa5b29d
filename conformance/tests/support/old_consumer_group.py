"""The codec of KIP-848 groups before their operations were declared once, to compare with."""

from collections.abc import Iterable
from typing import Any, assert_never

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.protocols.consumer_group.ops import Action, Answered, Beat, Event, Pass, Rejected, Says

BEAT, PASS = "consumer-heartbeat", "consumer-elapse"
VERBS = (BEAT, PASS)


def step_of(event: Event) -> Step:
    match event:
        case Beat(client, says, behind, topics, owned):
            subscription = None if topics is None else [*topics]
            return step("client", BEAT, client=client, says=says.value, behind=behind, topics=subscription, owned=owned)
        case Pass(ms):
            return step("time", PASS, ms=ms)
        case _:
            assert_never(event)


def event_of(step: Step) -> Event:
    """Errors: LookupError for an unknown verb; TypeError or ValueError for wrong fields."""
    body = dict(step.body)
    match step.verb:
        case "consumer-heartbeat":
            topics = body.pop("topics")
            subscription = None if topics is None else tuple(topics)
            return Beat(says=Says(body.pop("says")), topics=subscription, **body)
        case "consumer-elapse":
            return Pass(**body)
    raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(VERBS)}")


def answer_of(actions: Iterable[Action]) -> dict[str, Any]:
    """The answer of the testee protocol."""
    for action in actions:
        match action:
            case Answered(_, epoch, assignment):
                given = None if assignment is None else [list(each) for each in assignment]
                return {"status": "accepted", "epoch": epoch, "assignment": given}
            case Rejected(_, error):
                return {"status": "rejected", "class": error}
            case _:
                assert_never(action)
    return {"status": "accepted"}


def shorthand(steps: Iterable[Step]) -> str:
    """``join a on t,u none; beat a; beat a-1 told; beat a on t before; leave a; pass 1000``: -1 is one epoch older."""
    return "; ".join(map(_step_text, steps))


def parse_shorthand(text: str) -> tuple[Step, ...]:
    """Parses shorthand into steps. Errors: ValueError."""
    return tuple(step_of(_event(word.split())) for word in text.split(";") if word.strip())


def _event(words: list[str]) -> Event:
    match words:
        case ["pass", ms]:
            return Pass(int(ms))
        case ["join", client, *rest]:
            return _beat(client, Says.JOIN, rest)
        case ["beat", client, *rest]:
            return _beat(client, Says.STAY, rest)
        case ["leave", client, *rest]:
            return _beat(client, Says.LEAVE, rest)
    raise ValueError(f"invalid event {' '.join(words)!r}: use pass MS, or join, beat or leave with a client")


def _beat(client: str, says: Says, rest: list[str]) -> Beat:
    name, behind = client[:1], int(client[1:] or 0)
    topics = None
    if rest[:1] == ["on"]:
        topics, rest = tuple(rest[1].split(",")), rest[2:]
    match rest:
        case []:
            return Beat(name, says, -behind, topics)
        case [("none" | "told" | "before") as owned]:
            return Beat(name, says, -behind, topics, owned)
    raise ValueError(f"invalid owned partitions {' '.join(rest)!r}: use none, told or before")


def _step_text(step: Step) -> str:
    match event_of(step):
        case Pass(ms):
            return f"pass {ms}"
        case Beat(client, says, behind, topics, owned):
            word = {Says.JOIN: "join", Says.STAY: "beat", Says.LEAVE: "leave"}[says]
            parts = [word, f"{client}{-behind:+d}" if behind else client]
            parts += [] if topics is None else ["on", ",".join(topics)]
            return " ".join([*parts, *([] if owned is None else [owned])])
        case other:
            assert_never(other)
