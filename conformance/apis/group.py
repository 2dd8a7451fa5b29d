"""A classic group: an event of the service as the step that carries it, its answers as plain data, and back.

Steps name members by references, answers by ids as they show: ``conformance.models.group.names``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final, TypeAlias

from conformance.core.case import Step, step
from conformance.models.group.service import By, Elapse, Event, FailWrite
from conformance.models.group.words import (
    NO_GENERATION,
    Beat,
    Commit,
    Committed,
    Delete,
    Deleted,
    Describe,
    Described,
    Error,
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

TIME: Final = "time"
"""Who lets time pass."""
BROKER: Final = "broker"
"""To whom the rest happens."""
Reader: TypeAlias = Callable[[Any], Any]
"""From plain data. Errors: TypeError."""


def _text(found: Any) -> str:
    if isinstance(found, str):
        return found
    raise TypeError(f"{found!r} is no text")


def _whole(found: Any) -> int:
    if type(found) is int:
        return found
    raise TypeError(f"{found!r} is no whole number")


def _flag(found: Any) -> bool:
    if isinstance(found, bool):
        return found
    raise TypeError(f"{found!r} is neither true nor false")


def _error(found: Any) -> Error:
    """One that this protocol has not is none that we can tell apart from a failure of the broker."""
    return Error.__members__.get(_text(found), Error.UNKNOWN_SERVER_ERROR)


def _of_the_log(found: Any) -> Error:
    if found not in Error.__members__:
        raise TypeError(f"{found!r} is none of {', '.join(Error.__members__)}")
    return Error[found]


def _maybe(reader: Reader) -> Reader:
    return lambda found: None if found is None else reader(found)


def _rows(*readers: Reader) -> Reader:
    def read(found: Any) -> tuple[tuple[Any, ...], ...]:
        if not isinstance(found, list | tuple):
            raise TypeError(f"{found!r} is no list")
        for row in found:
            if not isinstance(row, list | tuple) or len(row) != len(readers):
                raise TypeError(f"{row!r} is no row of {len(readers)}")
        return tuple(tuple(reader(each) for reader, each in zip(readers, row, strict=True)) for row in found)

    return read


_INSTANCE: Final = _maybe(_text)
_MEMBER: Final[Mapping[str, Reader]] = {"version": _whole, "member": _text, "instance": _INSTANCE}
_VERSION: Final[Mapping[str, Reader]] = {"version": _whole}
REQUESTS: Final[Mapping[str, tuple[type[Request], Mapping[str, Reader]]]] = {
    "join": (
        Join,
        {
            **_MEMBER,
            "protocol_type": _text,
            "protocols": _rows(_text, _text),
            "session_ms": _whole,
            "rebalance_ms": _whole,
            "protocol_version": _maybe(_whole),
        },
    ),
    "sync": (
        Sync,
        {
            **_MEMBER,
            "assignments": _rows(_text, _text),
            "protocol_type": _maybe(_text),
            "protocol": _maybe(_text),
        },
    ),
    "heartbeat": (Heartbeat, _MEMBER),
    "leave": (Leave, {**_VERSION, "members": _rows(_text, _INSTANCE)}),
    "commit": (Commit, {**_MEMBER, "offsets": _rows(_text, _whole, _whole)}),
    "fetch": (Fetch, _VERSION),
    "describe-group": (Describe, _VERSION),
    "list-groups": (ListGroups, _VERSION),
    "delete-group": (Delete, _VERSION),
}
"""What clients ask: verb -> class, and how its fields are read."""
DATED: Final = frozenset({"sync", "heartbeat", "commit"})
"""What says of which generation it is."""
HAPPENINGS: Final[Mapping[str, tuple[type[Event], Mapping[str, Reader]]]] = {
    "elapse": (Elapse, {"ms": _whole}),
    "fail-write": (FailWrite, {"error": _of_the_log}),
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
            "generation": _whole,
            "protocol_type": _maybe(_text),
            "protocol": _maybe(_text),
            "leader": _text,
            "member": _text,
            "members": _rows(_text, _INSTANCE, _text),
            "skip_assignment": _flag,
        },
    ),
    "synced": (Synced, {"protocol_type": _maybe(_text), "protocol": _maybe(_text), "assignment": _text}),
    "beat": (Beat, {}),
    "left": (Left, {"members": _rows(_text, _INSTANCE, _error)}),
    "committed": (Committed, {}),
    "fetched": (Fetched, {"offsets": _rows(_text, _whole, _whole)}),
    "described": (
        Described,
        {
            "state": _text,
            "protocol_type": _text,
            "protocol": _text,
            "members": _rows(_text, _INSTANCE, _text, _text),
        },
    ),
    "listed": (Listed, {"groups": _rows(_text, _text)}),
    "deleted": (Deleted, {}),
}
"""What comes back: name -> class, and how its fields are read, besides ``to`` and ``error``, which all have."""

_VERBS: Final = {made: verb for verb, (made, _) in (*REQUESTS.items(), *HAPPENINGS.items())}
_NAMES: Final = {made: name for name, (made, _) in ANSWERS.items()}
_ALL: Final[Mapping[str, Reader]] = {"to": _whole, "error": _error}


def step_of(event: Event) -> Step:
    if not isinstance(event, By):
        verb = _VERBS[type(event)]
        return step(TIME if verb == "elapse" else BROKER, verb, **_body(event, HAPPENINGS[verb][1]))
    verb = _VERBS[type(event.request)]
    body = _body(event.request, REQUESTS[verb][1])
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
        return made(**_read(step.body, readers, made))
    if step.verb not in REQUESTS:
        raise LookupError(f"no event is called {step.verb!r}; there are {', '.join(EVENTS)}")
    asked, readers = REQUESTS[step.verb]
    frame: dict[str, Reader] = {"nameless": _flag, **({"behind": _maybe(_whole)} if step.verb in DATED else {})}
    said = {key: each for key, each in step.body.items() if key not in frame}
    dated: dict[str, Any] = {"generation": NO_GENERATION} if step.verb in DATED else {}
    request = asked(**_read(said, readers, asked), **dated)
    return By(step.actor, request, **_read({key: step[key] for key in frame if key in step.body}, frame))


def answer_of(replies: Iterable[Reply]) -> dict[str, Any]:
    """In the words of the testee protocol: everything that a step led to, in order."""
    return {"status": "accepted", "answers": [*map(reply_to_json, replies)]}


def reply_to_json(reply: Reply) -> dict[str, Any]:
    name = _NAMES[type(reply)]
    return {"to": reply.to, "answer": name, "error": reply.error.name, **_body(reply, ANSWERS[name][1])}


def reply_of(found: Any) -> Reply:
    """Fields that are left out are empty. Errors: TypeError for what is no answer."""
    if not isinstance(found, Mapping) or found.get("answer") not in ANSWERS:
        raise TypeError(f"{found!r} is none of the answers {', '.join(ANSWERS)}")
    made, readers = ANSWERS[found["answer"]]
    known = {**_ALL, **readers}
    return made(**_read({key: found[key] for key in known if key in found}, known, made))


def _body(spoken: Any, readers: Iterable[str]) -> dict[str, Any]:
    return {name: _plain(getattr(spoken, name)) for name in readers}


def _plain(value: Any) -> Any:
    if isinstance(value, Error):
        return value.name
    return [*map(_plain, value)] if isinstance(value, tuple) else value


def _read(body: Mapping[str, Any], readers: Mapping[str, Reader], made: type[Any] | None = None) -> dict[str, Any]:
    """The fields of a class. Errors: TypeError."""
    for name in body.keys() - readers.keys():
        raise TypeError(f"there is no field {name}; there are {', '.join(readers) or 'none'}")
    for each in fields(made) if made is not None else ():
        if each.default is MISSING and each.name in readers.keys() - body.keys():
            raise TypeError(f"the field {each.name} is missing")
    read = {}
    for name, value in body.items():
        try:
            read[name] = readers[name](value)
        except TypeError as wrong:
            raise TypeError(f"{name}: {wrong}") from None
    return read
