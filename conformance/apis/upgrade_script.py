"""Converts upgrade scripts: steps of the operator to events, observed events of the members to answers, and back."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias, get_args

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.core.history import History
from kipcheck.conformance.models.assignment import partition_names
from kipcheck.conformance.models.observed_events import (
    Assigned,
    Counted,
    Ended,
    Failed,
    Formed,
    Gave,
    Joining,
    ObservedEvent,
    PutOut,
    Restless,
    Rests,
    SteppedDown,
    StreamsLed,
    Took,
)
from kipcheck.conformance.models.operations import (
    DEFAULT_TOPICS,
    KINDS,
    MEMBERS,
    TOPICS,
    Crash,
    Event,
    Expire,
    Lose,
    Move,
    OldBrokers,
    Revive,
    Roll,
    RollStreams,
    Settle,
    Stop,
)

ACTOR = "operator"
EVENTS: Mapping[str, type[Event]] = {
    "old-brokers": OldBrokers,
    "roll": Roll,
    "stop": Stop,
    "crash": Crash,
    "revive": Revive,
    "lose": Lose,
    "expire": Expire,
    "move": Move,
    "settle": Settle,
    "roll-streams": RollStreams,
}
VERBS = {made: verb for verb, made in EVENTS.items()}
EventJson: TypeAlias = dict[str, Any]
"""An observed event as JSON: ``what``, and its fields."""


def step_of(event: Event) -> Step:
    body = {each.name: _plain(getattr(event, each.name)) for each in fields(event)}
    return step(ACTOR, VERBS[type(event)], **body)


def event_of(step: Step) -> Event:
    """Errors: LookupError for an unknown verb; TypeError for wrong fields; ValueError for an unknown member, kind or
    topic."""
    if step.verb not in EVENTS:
        raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(EVENTS)}")
    event = EVENTS[step.verb](**{name: _frozen(value) for name, value in step.body.items()})
    if isinstance(event, Roll):
        _check_known("kind of member", event.kind, KINDS)
        for each in event.topics:
            _check_known("topic", each, dict(TOPICS))
    if not isinstance(event, OldBrokers | Settle):
        _check_known("member", event.member, MEMBERS)
    return event


def _check_known(what: str, name: str, there: Collection[str]) -> None:
    if name not in there:
        raise ValueError(f"unknown {what} {name!r}: use one of {', '.join(there)}")


# Texts


def shorthand(steps: Iterable[Step]) -> str:
    """``roll a old; roll b ready t,u; settle; crash a; revive a; lose b; expire b; move b 3; stop c; old-brokers;
    streams a 6``."""
    return "; ".join(_event_text(event_of(each)) for each in steps)


def parse_shorthand(text: str) -> tuple[Step, ...]:
    """Parses shorthand into steps. Errors: ValueError."""
    return tuple(step_of(_event(word.split())) for word in text.split(";") if word.strip())


def _event(words: list[str]) -> Event:
    match words:
        case ["old-brokers"]:
            return OldBrokers()
        case ["settle"]:
            return Settle()
        case ["roll", member, kind] if kind in KINDS:
            return Roll(member, kind)
        case ["roll", member, kind, topics] if kind in KINDS:
            return Roll(member, kind, tuple(topics.split(",")))
        case ["move", member]:
            return Move(member)
        case ["move", member, moves]:
            return Move(member, int(moves))
        case ["streams", member, version]:
            return RollStreams(member, int(version))
        case ["stop" | "crash" | "revive" | "lose" | "expire" as verb, member]:
            return event_of(step(ACTOR, verb, member=member))
    raise ValueError(
        f"invalid step {' '.join(words)!r}: use old-brokers, settle, roll MEMBER KIND [TOPICS], move MEMBER [MOVES], "
        "streams MEMBER VERSION, or one of stop, crash, revive, lose, expire with a MEMBER"
    )


def _event_text(event: Event) -> str:
    match event:
        case Roll(member, kind, topics):
            return f"roll {member} {kind}" + (f" {','.join(topics)}" if topics != DEFAULT_TOPICS else "")
        case Move(member, moves):
            return f"move {member} {moves}"
        case RollStreams(member, version):
            return f"streams {member} {version}"
        case OldBrokers() | Settle():
            return VERBS[type(event)]
        case Stop() | Crash() | Revive() | Lose() | Expire():
            return f"{VERBS[type(event)]} {event.member}"


def describe(event: ObservedEvent) -> str:
    """A sentence for reports."""
    match event:
        case Took(member, generation, partitions):
            return f"{member} takes over {partition_names(partitions)} (generation {generation})"
        case Gave(member, partitions, lost):
            return f"{member} {'loses' if lost else 'revokes'} {partition_names(partitions)}"
        case Ended(member):
            return f"the process of {member} ends"
        case PutOut(member):
            return f"the coordinator removes {member} from the group"
        case Formed(generation, leader, protocol, members):
            participants = ", ".join(f"{each.member} uses version {each.version}" for each in members)
            return f"generation {generation}: {participants}; {leader} leads, with assignor {protocol}"
        case Assigned(member, _, partitions, error):
            return f"{member} receives the assignment {partition_names(partitions)}" + (
                f", error {error}" if error else ""
            )
        case Counted(member, total):
            return f"num.incompatible.rebalance of {member} is {total}"
        case StreamsLed(generation, leader, version):
            return f"generation {generation}: {leader} leads, and supports versions up to {version}"
        case SteppedDown(member, version):
            return f"the leader makes {member} downgrade to version {version}"
        case Failed(member, error):
            return f"{member} fails with {error}"
        case Rests(generation, members):
            return f"the group with {len(members)} members is at rest in generation {generation}"
        case Restless():
            return "the group does not come to rest"


# Answers


def answer_of(happenings: Iterable[ObservedEvent]) -> dict[str, Any]:
    """The answer of the testee protocol: all observed events, in order."""
    return {"status": "accepted", "actions": [to_json(each) for each in happenings]}


OBSERVED_EVENTS = {made.__name__.lower(): made for made in get_args(ObservedEvent)}


def to_json(event: ObservedEvent) -> EventJson:
    body = {each.name: _plain(getattr(event, each.name)) for each in fields(event)}
    return {"what": type(event).__name__.lower(), **body}


def from_json(data: Mapping[str, Any]) -> ObservedEvent:
    """Errors: LookupError, TypeError, AttributeError or ValueError for a malformed event."""
    body = {name: _frozen(value) for name, value in data.items() if name != "what"}
    made: Any = OBSERVED_EVENTS[data["what"]]
    if made in (Formed, Rests):
        body["members"] = tuple(Joining(**{**each, "topics": tuple(each["topics"])}) for each in data["members"])
    happening: ObservedEvent = made(**body)
    return happening


class ObservedAt(NamedTuple):
    """An observed event, and the step that caused it."""

    step: int
    seen: ObservedEvent


def observations(history: History) -> Iterator[ObservedAt]:
    """All observed events up to the first step without an answer."""
    return (ObservedAt(step, from_json(each)) for step, each in history.actions())


def _plain(value: Any) -> Any:
    if isinstance(value, Joining):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value
