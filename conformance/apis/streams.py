"""Converts scripts of Streams groups: steps of the operator to events, observed events to answers, and back.

User data stays encoded, as hex.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple, TypeAlias, get_args

from kipcheck.conformance.apis.streams_topology import plain_topics, plain_topology, topics_of, topology_of
from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.core.history import History
from kipcheck.conformance.models.operations import Expire, Lose, Move, Settle
from kipcheck.conformance.models.streams.members import Rejoin, TaskId
from kipcheck.conformance.models.streams.observed_events import Formed, JoinMetadata, ObservedEvent, Present, Rests
from kipcheck.conformance.models.streams.operations import MEMBERS, OWN, Deploy, Event, Restart, ShutDown, Start, Stop

ACTOR = "operator"
EVENTS: Mapping[str, type[Event]] = {
    "stream-deploy": Deploy,
    "stream-start": Start,
    "stream-stop": Stop,
    "stream-restart": Restart,
    "stream-lose": Lose,
    "stream-expire": Expire,
    "stream-shut-down": ShutDown,
    "stream-move": Move,
    "stream-settle": Settle,
}
VERBS = {made: verb for verb, made in EVENTS.items()}
EventJson: TypeAlias = dict[str, Any]
"""An observed event as JSON: ``what``, and its fields."""


def step_of(event: Event) -> Step:
    if isinstance(event, Deploy):
        body = {
            "topology": plain_topology(event.topology),
            "topics": plain_topics(event.topics),
            "end_points": event.end_points,
            "tags": [[*each] for each in event.tags],
            "newest_leads": event.newest_leads,
        }
    else:
        body = {each.name: getattr(event, each.name) for each in fields(event)}
    return step(ACTOR, VERBS[type(event)], **body)


def event_of(step: Step) -> Event:
    """Errors: LookupError for an unknown verb; TypeError for wrong fields; ValueError for an unknown member."""
    if step.verb not in EVENTS:
        raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(EVENTS)}")
    made = EVENTS[step.verb]
    if made is Deploy:
        return _deploy(**step.body)
    return _with_known_member(made(**step.body))


def _with_known_member(event: Event) -> Event:
    if not isinstance(event, Deploy | Settle) and event.member not in MEMBERS:
        raise ValueError(f"unknown member {event.member!r}: use one of {', '.join(MEMBERS)}")
    return event


def _deploy(
    topology: Mapping[str, Any],
    topics: Mapping[str, int],
    end_points: bool = False,
    tags: Iterable[tuple[str, str]] = (),
    newest_leads: bool = False,
) -> Deploy:
    ours = tuple((key, value) for key, value in tags)
    return Deploy(topology_of(topology), topics_of(topics), end_points, ours, newest_leads)


# Texts


def shorthand(steps: Iterable[Step]) -> str:
    """``start a 2.0.1; start b 2.4.1<2.3; start c own; start d future of c; move a 3; lose b; expire b; stop b;
    restart b; shut-down b; settle``; of a deployment, its sizes."""
    return "; ".join(_event_text(event_of(each)) for each in steps)


def parse_shorthand(text: str) -> tuple[Step, ...]:
    """Parses shorthand, which has no form for ``Deploy``, into steps. Errors: ValueError."""
    return tuple(step_of(event_in(word.split())) for word in text.split(";") if word.strip())


def event_in(words: list[str]) -> Event:
    """Parses one event of the shorthand. Errors: ValueError."""
    match words:
        case ["settle"]:
            return Settle()
        case ["start", member, *of] if len(of) in (0, 1, 3):
            release, _, upgrade_from = (of[0] if of else OWN).partition("<")
            if len(of) < 3 or of[1] == "of":
                return _with_known_member(Start(member, release, upgrade_from or None, of[2] if len(of) == 3 else None))
        case ["move", member]:
            return _with_known_member(Move(member))
        case ["move", member, moves] if moves.isdigit():
            return _with_known_member(Move(member, int(moves)))
        case ["stop" | "restart" | "lose" | "expire" | "shut-down" as verb, member]:
            return event_of(step(ACTOR, f"stream-{verb}", member=member))
    raise ValueError(
        f"invalid step {' '.join(words)!r}: use settle, start MEMBER [RELEASE[<UPGRADE_FROM>] [of INSTANCE]], "
        "move MEMBER [MOVES], or one of stop, restart, lose, expire, shut-down with a MEMBER"
    )


def _event_text(event: Event) -> str:
    match event:
        case Deploy(topology, topics):
            sizes = " ".join(f"{each.name}:{each.partitions}" for each in topics)
            standbys = f", {topology.standbys} standbys" if topology.standbys else ""
            leads = ", newest leads" if event.newest_leads else ""
            return f"deploy {sizes or 'no topics'} ({len(topology.subtopologies)} subtopologies{standbys}{leads})"
        case Start(member, release, upgrade_from, instance):
            binary = release if upgrade_from is None else f"{release}<{upgrade_from}"
            return f"start {member} {binary}" + ("" if instance is None else f" of {instance}")
        case Move(member, moves):
            return f"move {member} {moves}"
        case Settle():
            return "settle"
        case _:
            return f"{VERBS[type(event)].removeprefix('stream-')} {event.member}"


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
    made: Any = OBSERVED_EVENTS[data["what"]]
    body = {name: _read(name, value) for name, value in data.items() if name != "what"}
    if made is Formed:
        body["members"] = tuple(JoinMetadata(**_body(each)) for each in data["members"])
    elif made is Rests:
        body["members"] = tuple(Present(**_body(each)) for each in data["members"])
    happening: ObservedEvent = made(**body)
    return happening


def _body(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _read(name, value) for name, value in data.items()}


def _read(name: str, value: Any) -> Any:
    match name:
        case "data":
            return None if value is None else bytes.fromhex(value)
        case "active" | "standby":
            return tuple(map(TaskId.parse, value))
        case "rejoin":
            return Rejoin(*value)
    return _frozen(value)


def _plain(value: Any) -> Any:
    match value:
        case bytes():
            return value.hex()
        case TaskId():
            return str(value)
        case JoinMetadata() | Present():
            return {name: _plain(getattr(value, name)) for name in value._fields}
        case tuple():
            return [_plain(each) for each in value]
    return value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list | tuple) else value


class ObservedAt(NamedTuple):
    """An observed event, and the step that caused it."""

    step: int
    seen: ObservedEvent


def observations(history: History) -> Iterator[ObservedAt]:
    """All observed events up to the first step without an answer."""
    return (ObservedAt(step, from_json(each)) for step, each in history.actions())
