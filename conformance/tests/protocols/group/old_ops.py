"""A classic group: converts events of the service to steps, its answers to JSON, and back.

Steps name members by references, answers by canonical ids: see ``kipcheck.conformance.protocols.group.model.names``.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.protocols.group.model.messages import (
    NO_GENERATION,
    Beat,
    Commit,
    Committed,
    Delete,
    Deleted,
    Describe,
    Described,
    Fetch,
    Fetched,
    Heartbeat,
    Join,
    Joined,
    Leave,
    Left,
    Listed,
    ListGroups,
    Load,
    Loaded,
    Reply,
    Request,
    Sync,
    Synced,
    Unload,
)
from kipcheck.conformance.protocols.group.model.service import By, Elapse, Event, FailWrite
from kipcheck.conformance.tests.protocols.group.old_plain_data import (
    Reader,
    body_of,
    error,
    fields_from,
    flag,
    integer,
    known_error,
    optional,
    rows,
    text,
)

TIME: Final = "time"
"""Actor of ``elapse``."""
BROKER: Final = "broker"
"""Actor of all other events that are not requests."""
_INSTANCE: Final = optional(text)
_MEMBER: Final[Mapping[str, Reader]] = {"version": integer, "member": text, "instance": _INSTANCE}
_VERSION: Final[Mapping[str, Reader]] = {"version": integer}
REQUESTS: Final[Mapping[str, tuple[type[Request], Mapping[str, Reader]]]] = {
    "join": (
        Join,
        {
            **_MEMBER,
            "protocol_type": text,
            "protocols": rows(text, text),
            "session_ms": integer,
            "rebalance_ms": integer,
            "protocol_version": optional(integer),
        },
    ),
    "sync": (
        Sync,
        {
            **_MEMBER,
            "assignments": rows(text, text),
            "protocol_type": optional(text),
            "protocol": optional(text),
        },
    ),
    "heartbeat": (Heartbeat, _MEMBER),
    "leave": (Leave, {**_VERSION, "members": rows(text, _INSTANCE)}),
    "commit": (Commit, {**_MEMBER, "offsets": rows(text, integer, integer)}),
    "fetch": (Fetch, _VERSION),
    "describe-group": (Describe, _VERSION),
    "list-groups": (ListGroups, _VERSION),
    "delete-group": (Delete, _VERSION),
}
"""Requests of clients: verb -> class, and the readers of its fields."""
DATED: Final = frozenset({"sync", "heartbeat", "commit"})
"""Requests with a generation."""
_FRAME: Final[Mapping[str, Reader]] = {"nameless": flag}
_DATED_FRAME: Final[Mapping[str, Reader]] = {**_FRAME, "behind": optional(integer)}
OTHER_EVENTS: Final[Mapping[str, tuple[type[Event], Mapping[str, Reader]]]] = {
    "elapse": (Elapse, {"ms": integer}),
    "fail-write": (FailWrite, {"error": known_error}),
    "unload": (Unload, {}),
    "load": (Load, {}),
    "loaded": (Loaded, {}),
}
EVENTS: Final = (*REQUESTS, *OTHER_EVENTS)
"""All verbs."""
ANSWERS: Final[Mapping[str, tuple[type[Reply], Mapping[str, Reader]]]] = {
    "joined": (
        Joined,
        {
            "generation": integer,
            "protocol_type": optional(text),
            "protocol": optional(text),
            "leader": text,
            "member": text,
            "members": rows(text, _INSTANCE, text),
            "skip_assignment": flag,
        },
    ),
    "synced": (Synced, {"protocol_type": optional(text), "protocol": optional(text), "assignment": text}),
    "beat": (Beat, {}),
    "left": (Left, {"members": rows(text, _INSTANCE, error)}),
    "committed": (Committed, {}),
    "fetched": (Fetched, {"offsets": rows(text, integer, integer)}),
    "described": (
        Described,
        {
            "state": text,
            "protocol_type": text,
            "protocol": text,
            "members": rows(text, _INSTANCE, text, text),
        },
    ),
    "listed": (Listed, {"groups": rows(text, text)}),
    "deleted": (Deleted, {}),
}
"""Answers: name -> class, and the readers of its fields other than ``to`` and ``error``, which all answers have."""

_VERBS: Final = {made: verb for verb, (made, _) in (*REQUESTS.items(), *OTHER_EVENTS.items())}
_NAMES: Final = {made: name for name, (made, _) in ANSWERS.items()}
_COMMON_FIELDS: Final[Mapping[str, Reader]] = {"to": integer, "error": error}


def step_of(event: Event) -> Step:
    if not isinstance(event, By):
        verb = _VERBS[type(event)]
        return step(TIME if verb == "elapse" else BROKER, verb, **body_of(event, OTHER_EVENTS[verb][1]))
    verb = _VERBS[type(event.request)]
    body = body_of(event.request, REQUESTS[verb][1])
    if body.get("protocol_version", 0) is None:  # exists only in KIP-429's draft
        del body["protocol_version"]
    if verb in DATED:
        body["behind"] = event.behind
    if event.nameless:
        body["nameless"] = True
    return Step(event.actor, verb, body)


def event_of(step: Step) -> Event:
    """Omitted fields have their defaults.

    Errors: LookupError for an unknown verb; TypeError for wrong fields.
    """
    if step.verb in OTHER_EVENTS:
        made, readers = OTHER_EVENTS[step.verb]
        return made(**fields_from(step.body, readers, made))
    request_class, readers, frame = _request_form(step.verb)
    own_fields = {key: each for key, each in step.body.items() if key not in frame}
    dated: dict[str, Any] = {"generation": NO_GENERATION} if step.verb in DATED else {}
    request = request_class(**fields_from(own_fields, readers, request_class), **dated)
    return By(step.actor, request, **fields_from({key: step[key] for key in frame if key in step.body}, frame))


def lenient_event_of(step: Step) -> Event:
    """Like ``event_of``, but ignores unknown fields, as a testee must: a later protocol version may add fields."""
    if step.verb in OTHER_EVENTS:
        known: Collection[str] = OTHER_EVENTS[step.verb][1]
    else:
        _, readers, frame = _request_form(step.verb)
        known = (*readers, *frame)
    return event_of(Step(step.actor, step.verb, {key: each for key, each in step.body.items() if key in known}))


def _request_form(verb: str) -> tuple[type[Request], Mapping[str, Reader], Mapping[str, Reader]]:
    """The class of a request, the readers of its own fields, and those of the event that carries it."""
    if verb not in REQUESTS:
        raise LookupError(f"unknown event {verb!r}: use one of {', '.join(EVENTS)}")
    return *REQUESTS[verb], _DATED_FRAME if verb in DATED else _FRAME


def answer_of(replies: Iterable[Reply]) -> dict[str, Any]:
    """The answer of the testee protocol: all replies that a step caused, in order."""
    return {"status": "accepted", "answers": [*map(reply_to_json, replies)]}


def reply_to_json(reply: Reply) -> dict[str, Any]:
    name = _NAMES[type(reply)]
    return {"to": reply.to, "answer": name, "error": reply.error.name, **body_of(reply, ANSWERS[name][1])}


def reply_of(found: Any) -> Reply:
    """Omitted fields are empty. Errors: TypeError for an invalid answer."""
    if not isinstance(found, Mapping) or found.get("answer") not in ANSWERS:
        raise TypeError(f"unknown answer {found!r}: use one of {', '.join(ANSWERS)}")
    made, readers = ANSWERS[found["answer"]]
    known = {**_COMMON_FIELDS, **readers}
    return made(**fields_from({key: found[key] for key in known if key in found}, known, made))


def check_answer(found: Any) -> str:
    """Of a coordinator, to this request or to an earlier one: what is wrong with it, as ``core.verbs`` wants it."""
    try:
        reply = reply_of(found)
    except TypeError as wrong:
        return f": {wrong}"
    return f".to: {reply.to} is no step" if reply.to < 0 else ""
