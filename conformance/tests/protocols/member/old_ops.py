"""The codec of consumers that was written by hand: events and steps, actions and JSON."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.core.edition import KIP_429, Edition, Standing
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER, Assigned, Subscription
from kipcheck.conformance.protocols.group.model.messages import (
    EMPTY,
    Beat,
    Blob,
    Commit,
    Committed,
    Error,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Sync,
    Synced,
)
from kipcheck.conformance.protocols.member.model.client import (
    OFFERED,
    Action,
    AnswerReceived,
    Elapse,
    Event,
    Open,
    Unfit,
)
from kipcheck.conformance.protocols.member.model.messages import (
    Answer,
    Close,
    CommitEnded,
    CommitOffsets,
    Disconnected,
    Given,
    Lost,
    Metadata,
    Metric,
    Poll,
    Raised,
    Reads,
    Request,
    Revoked,
    Subscribe,
    Unsubscribe,
    UserEvent,
)
from kipcheck.conformance.protocols.member.model.rules import Rules
from kipcheck.conformance.tests.protocols.member.old_plain_data import (
    Reader,
    body_of,
    error,
    fields_from,
    flag,
    integer,
    list_of,
    optional,
    rows,
    text,
)

MEMBER: Final = "member"
"""The machine of a consumer that is a member of a classic group."""
USER: Final = "user"
COORDINATOR: Final = "coordinator"
TIME: Final = "time"
INVALID_CONFIG: Final = "ILLEGAL_ARGUMENT"
"""Error class of the answer if the consumer's configuration is invalid."""
ANSWER_VERB: Final = "member-told"

_partitions: Final = rows(text, integer)
_SUBSCRIPTION: Final[Mapping[str, Reader]] = {
    "topics": list_of(text),
    "version": integer,
    "owned": _partitions,
    "generation": integer,
    "rack": optional(text),
    "data": _partitions,
    "data_generation": integer,
}
_ASSIGNED: Final[Mapping[str, Reader]] = {"partitions": _partitions, "error": integer}


def _known_fields(found: Mapping[str, Any], readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Ignores unknown fields of a testee's answer."""
    return {key: found[key] for key in readers if key in found}


def _subscription(found: Any) -> Subscription:
    if not isinstance(found, Mapping):
        raise TypeError(f"invalid subscription {found!r}: expected an object")
    return Subscription(**fields_from(_known_fields(found, _SUBSCRIPTION), _SUBSCRIPTION, Subscription))


def _assigned(found: Any) -> Blob:
    """``""`` stands for zero bytes."""
    if found == EMPTY:
        return EMPTY
    if not isinstance(found, Mapping):
        raise TypeError(f"invalid assignment {found!r}: expected an object or an empty string")
    return Assigned(**fields_from(_known_fields(found, _ASSIGNED), _ASSIGNED, Assigned))


def _topics(found: Any) -> tuple[Topic, ...]:
    return tuple(Topic(*each) for each in rows(text, integer)(found))


def _some_topics(found: Any) -> tuple[str, ...]:
    topics: tuple[str, ...] = list_of(text)(found)
    if not topics:
        raise TypeError("must not be empty: use unsubscribe")
    return topics


def _assignors(found: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = list_of(text)(found)
    if not names or any(each not in OFFERED for each in names) or len({*names}) < len(names):
        raise TypeError(f"invalid assignors {found!r}: use at least one of {', '.join(OFFERED)}, each once")
    return names


def _protocol(found: Any) -> str:
    if found not in (EAGER, COOPERATIVE):
        raise TypeError(f"must be {EAGER} or {COOPERATIVE}, got {found!r}")
    return str(found)


_INSTANCE: Final = optional(text)
CALLS: Final[Mapping[str, tuple[str, type[Event], Mapping[str, Reader]]]] = {
    "member-open": (
        USER,
        Open,
        {
            "assignors": _assignors,
            "topics": rows(text, integer),
            "instance": _INSTANCE,
            "rack": optional(text),
            "protocol": optional(_protocol),
        },
    ),
    "member-subscribe": (USER, Subscribe, {"topics": _some_topics}),
    "member-unsubscribe": (USER, Unsubscribe, {}),
    "member-poll": (USER, Poll, {}),
    "member-commit": (USER, CommitOffsets, {"offsets": rows(text, integer, integer)}),
    "member-close": (USER, Close, {}),
    "member-metadata": (COORDINATOR, Metadata, {"topics": _topics}),
    "member-disconnected": (COORDINATOR, Disconnected, {}),
    "member-elapse": (TIME, Elapse, {"ms": integer}),
}
"""Verb -> actor, class of the event, and the readers of its fields; all verbs except ``member-told``."""
EVENTS: Final = (*CALLS, ANSWER_VERB)
"""All verbs."""
ANSWERS: Final[Mapping[str, tuple[type[Answer], Mapping[str, Reader]]]] = {
    "joined": (
        Joined,
        {
            "error": error,
            "generation": integer,
            "protocol_type": optional(text),
            "protocol": optional(text),
            "leader": text,
            "member": text,
            "members": rows(text, _INSTANCE, _subscription),
            "skip_assignment": flag,
        },
    ),
    "synced": (
        Synced,
        {"error": error, "protocol_type": optional(text), "protocol": optional(text), "assignment": _assigned},
    ),
    "beat": (Beat, {"error": error}),
    "left": (Left, {"error": error}),
    "committed": (Committed, {"error": error}),
}
"""Answers of the coordinator: name -> class, and the readers of its fields."""
_REQUEST: Final[Mapping[str, Reader]] = {"version": integer, "member": text, "instance": _INSTANCE}
ACTIONS: Final[Mapping[str, tuple[type[Request] | type[UserEvent], Mapping[str, Reader]]]] = {
    "join": (
        Join,
        {
            **_REQUEST,
            "protocol_type": text,
            "protocols": rows(text, _subscription),
            "session_ms": integer,
            "rebalance_ms": integer,
            "protocol_version": optional(integer),
        },
    ),
    "sync": (
        Sync,
        {
            **_REQUEST,
            "generation": integer,
            "assignments": rows(text, _assigned),
            "protocol_type": optional(text),
            "protocol": optional(text),
        },
    ),
    "heartbeat": (Heartbeat, {**_REQUEST, "generation": integer}),
    "leave": (Leave, {"version": integer, "members": rows(text, _INSTANCE)}),
    "commit": (Commit, {**_REQUEST, "generation": integer, "offsets": rows(text, integer, integer)}),
    "revoked": (Revoked, {"partitions": _partitions}),
    "lost": (Lost, {"partitions": _partitions}),
    "assigned": (Given, {"partitions": _partitions}),
    "reads": (Reads, {"partitions": _partitions}),
    "raised": (Raised, {"error": text, "exception": text}),
    "commit-ended": (CommitEnded, {"error": text, "exception": text}),
    "metric": (Metric, {"value": integer}),
}
"""Actions of the member: name -> class, and the readers of its fields."""

_VERBS: Final = {made: verb for verb, (_, made, _) in CALLS.items()}
_ANSWERS: Final = {made: name for name, (made, _) in ANSWERS.items()}
_ACTIONS: Final = {made: name for name, (made, _) in ACTIONS.items()}


def rules_of(edition: Edition) -> Rules | None:
    """The rules of an edition's consumers; None if the edition does not specify any."""
    if edition.name == KIP_429.name:
        return Rules.drafted()
    if edition.standing is not Standing.RELEASED:
        return None
    try:
        return Rules.of(edition.release)
    except ValueError:
        return None


def step_of(event: Event) -> Step:
    if isinstance(event, AnswerReceived):
        return step(COORDINATOR, ANSWER_VERB, **_answer_body(event.answer))
    verb = _VERBS[type(event)]
    actor, _, readers = CALLS[verb]
    body = body_of(event, readers)
    if isinstance(event, Metadata):
        body["topics"] = [[each.name, each.partitions] for each in event.topics]
    return Step(actor, verb, body)


def _answer_body(answer: Answer) -> dict[str, Any]:
    """The fields of an answer; of an error answer only those that differ from their defaults."""
    name = _ANSWERS[type(answer)]
    body = body_of(answer, ANSWERS[name][1])
    if answer.error is not Error.NONE:
        usual = body_of(type(answer)(0, answer.error), ANSWERS[name][1])
        body = {key: each for key, each in body.items() if key == "error" or each != usual[key]}
    return {"answer": name, **body}


def event_of(step: Step) -> Event:
    """Omitted fields have their defaults.

    Errors: LookupError for an unknown verb; TypeError for wrong fields.
    """
    if step.verb == ANSWER_VERB:
        name = str(step.body.get("answer"))
        if name not in ANSWERS:
            raise TypeError(f"unknown answer {name!r}: use one of {', '.join(ANSWERS)}")
        made, readers = ANSWERS[name]
        body = {key: each for key, each in step.body.items() if key != "answer"}
        return AnswerReceived(made(to=0, **fields_from({"error": "NONE", **body}, readers)))
    if step.verb not in CALLS:
        raise LookupError(f"unknown event {step.verb!r}: use one of {', '.join(EVENTS)}")
    _, called, readers = CALLS[step.verb]
    return called(**fields_from(step.body, readers, called))


def answer_of(actions: Iterable[Action]) -> dict[str, Any]:
    """The answer of the testee protocol: all actions that a step caused, in order."""
    done = []
    for each in actions:
        if isinstance(each, Unfit):
            return {"status": "rejected", "class": INVALID_CONFIG, "message": each.why}
        name = _ACTIONS[type(each)]
        body = body_of(each, ACTIONS[name][1])
        if body.get("exception") == "":
            del body["exception"]
        done.append({"action": name, **body})
    return {"status": "accepted", "actions": done}


def action_of(found: Any) -> Request | UserEvent:
    """Omitted fields are empty. Errors: TypeError for an invalid action."""
    if not isinstance(found, Mapping) or found.get("action") not in ACTIONS:
        raise TypeError(f"unknown action {found!r}: use one of {', '.join(ACTIONS)}")
    made, readers = ACTIONS[found["action"]]
    return made(**fields_from(_known_fields(found, readers), readers, made))


def check_answer(found: Any) -> str:
    """Of a member: what is wrong with one of its actions, as ``core.verbs`` wants it."""
    try:
        action_of(found)
    except TypeError as wrong:
        return f": {wrong}"
    return ""
