"""A classic group: an event of the service as the step that carries it, its answers as plain data, and back.

Steps name members by references, answers by ids as they show: ``kipcheck.conformance.models.group.names``.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from kipcheck.conformance.apis.plain_data import (
    Reader,
    body_of,
    error,
    fields_from,
    flag,
    known_error,
    maybe,
    rows,
    text,
    whole,
)
from kipcheck.conformance.core import verbs
from kipcheck.conformance.core.case import Step, step
from kipcheck.conformance.models.group.messages import (
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
from kipcheck.conformance.models.group.service import By, Elapse, Event, FailWrite

TIME: Final = "time"
"""Who lets time pass."""
BROKER: Final = "broker"
"""To whom the rest happens."""
_INSTANCE: Final = maybe(text)
_MEMBER: Final[Mapping[str, Reader]] = {"version": whole, "member": text, "instance": _INSTANCE}
_VERSION: Final[Mapping[str, Reader]] = {"version": whole}
REQUESTS: Final[Mapping[str, tuple[type[Request], Mapping[str, Reader]]]] = {
    "join": (
        Join,
        {
            **_MEMBER,
            "protocol_type": text,
            "protocols": rows(text, text),
            "session_ms": whole,
            "rebalance_ms": whole,
            "protocol_version": maybe(whole),
        },
    ),
    "sync": (
        Sync,
        {
            **_MEMBER,
            "assignments": rows(text, text),
            "protocol_type": maybe(text),
            "protocol": maybe(text),
        },
    ),
    "heartbeat": (Heartbeat, _MEMBER),
    "leave": (Leave, {**_VERSION, "members": rows(text, _INSTANCE)}),
    "commit": (Commit, {**_MEMBER, "offsets": rows(text, whole, whole)}),
    "fetch": (Fetch, _VERSION),
    "describe-group": (Describe, _VERSION),
    "list-groups": (ListGroups, _VERSION),
    "delete-group": (Delete, _VERSION),
}
"""What clients ask: verb -> class, and how its fields are read."""
DATED: Final = frozenset({"sync", "heartbeat", "commit"})
"""What says of which generation it is."""
_FRAME: Final[Mapping[str, Reader]] = {"nameless": flag}
_DATED_FRAME: Final[Mapping[str, Reader]] = {**_FRAME, "behind": maybe(whole)}
HAPPENINGS: Final[Mapping[str, tuple[type[Event], Mapping[str, Reader]]]] = {
    "elapse": (Elapse, {"ms": whole}),
    "fail-write": (FailWrite, {"error": known_error}),
    "unload": (Unload, {}),
    "load": (Load, {}),
    "loaded": (Loaded, {}),
}
EVENTS: Final = (*REQUESTS, *HAPPENINGS)
"""All verbs."""
ANSWERS: Final[Mapping[str, tuple[type[Reply], Mapping[str, Reader]]]] = {
    "joined": (
        Joined,
        {
            "generation": whole,
            "protocol_type": maybe(text),
            "protocol": maybe(text),
            "leader": text,
            "member": text,
            "members": rows(text, _INSTANCE, text),
            "skip_assignment": flag,
        },
    ),
    "synced": (Synced, {"protocol_type": maybe(text), "protocol": maybe(text), "assignment": text}),
    "beat": (Beat, {}),
    "left": (Left, {"members": rows(text, _INSTANCE, error)}),
    "committed": (Committed, {}),
    "fetched": (Fetched, {"offsets": rows(text, whole, whole)}),
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
"""What comes back: name -> class, and how its fields are read, besides ``to`` and ``error``, which all have."""

_VERBS: Final = {made: verb for verb, (made, _) in (*REQUESTS.items(), *HAPPENINGS.items())}
_NAMES: Final = {made: name for name, (made, _) in ANSWERS.items()}
_ALL: Final[Mapping[str, Reader]] = {"to": whole, "error": error}


def step_of(event: Event) -> Step:
    if not isinstance(event, By):
        verb = _VERBS[type(event)]
        return step(TIME if verb == "elapse" else BROKER, verb, **body_of(event, HAPPENINGS[verb][1]))
    verb = _VERBS[type(event.request)]
    body = body_of(event.request, REQUESTS[verb][1])
    if body.get("protocol_version", 0) is None:  # KIP-429's draft alone has it
        del body["protocol_version"]
    if verb in DATED:
        body["behind"] = event.behind
    if event.nameless:
        body["nameless"] = True
    return Step(event.actor, verb, body)


def event_of(step: Step) -> Event:
    """A field that is left out is what it mostly is.

    Errors: LookupError where no event is called so; TypeError where it has other fields.
    """
    if step.verb in HAPPENINGS:
        made, readers = HAPPENINGS[step.verb]
        return made(**fields_from(step.body, readers, made))
    asked, readers, frame = _asked(step.verb)
    said = {key: each for key, each in step.body.items() if key not in frame}
    dated: dict[str, Any] = {"generation": NO_GENERATION} if step.verb in DATED else {}
    request = asked(**fields_from(said, readers, asked), **dated)
    return By(step.actor, request, **fields_from({key: step[key] for key in frame if key in step.body}, frame))


def heard(step: Step) -> Event:
    """As ``event_of``, but a testee passes over what it does not know: a later version of its protocol may add it."""
    if step.verb in HAPPENINGS:
        known: Collection[str] = HAPPENINGS[step.verb][1]
    else:
        _, readers, frame = _asked(step.verb)
        known = (*readers, *frame)
    return event_of(Step(step.actor, step.verb, {key: each for key, each in step.body.items() if key in known}))


def _asked(verb: str) -> tuple[type[Request], Mapping[str, Reader], Mapping[str, Reader]]:
    """The class of a request, its own fields, and what an event says of it besides."""
    if verb not in REQUESTS:
        raise LookupError(f"no event is called {verb!r}; there are {', '.join(EVENTS)}")
    return *REQUESTS[verb], _DATED_FRAME if verb in DATED else _FRAME


def answer_of(replies: Iterable[Reply]) -> dict[str, Any]:
    """In the words of the testee protocol: everything that a step led to, in order."""
    return {"status": "accepted", "answers": [*map(reply_to_json, replies)]}


def reply_to_json(reply: Reply) -> dict[str, Any]:
    name = _NAMES[type(reply)]
    return {"to": reply.to, "answer": name, "error": reply.error.name, **body_of(reply, ANSWERS[name][1])}


def reply_of(found: Any) -> Reply:
    """Fields that are left out are empty. Errors: TypeError for what is no answer."""
    if not isinstance(found, Mapping) or found.get("answer") not in ANSWERS:
        raise TypeError(f"{found!r} is none of the answers {', '.join(ANSWERS)}")
    made, readers = ANSWERS[found["answer"]]
    known = {**_ALL, **readers}
    return made(**fields_from({key: found[key] for key in known if key in found}, known, made))


def check_answer(found: Any) -> str:
    """Of a coordinator, to this request or to an earlier one: what is wrong with it, as ``core.verbs`` wants it."""
    try:
        reply = reply_of(found)
    except TypeError as wrong:
        return f": {wrong}"
    return f".to: {reply.to} is no step" if reply.to < 0 else ""


verbs.register(EVENTS, "answers", check_answer, sent_by_clients=REQUESTS)
