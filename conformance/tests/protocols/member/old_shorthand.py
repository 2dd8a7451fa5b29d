"""Parses and prints the shorthand of a consumer: ``open range; subscribe t; poll; joined 1; synced t:0; poll; beat``.

=========================  =========================================================================================
``open range,sticky``      a process starts with these assignors (default ``range``); ``as=i rack=r``; in KIP-429's
                           draft ``protocol=cooperative``; ``knows=t:3,u:1``: existing topics, default ``t:2``
``subscribe t,u``          ``unsubscribe``, ``poll`` and ``close`` have no arguments
``commit t:0=5``           offsets
``elapse 3000``            time passes
``metadata t:3``           the brokers report topics; ``disconnected``: requests and answers in flight are lost
``joined 1``               answers JoinGroup: the generation; default ``me=m1 leader=m2 by=range``;
                           ``members=m1,m2/i``: the group's members, all subscribed to ``t``; ``skip``: assign nothing
``joined ERROR``           with ``me=m1`` if the answer carries a member id
``synced t:0 t:1``         answers SyncGroup: the assignment; ``synced``: empty; ``synced nothing``: zero bytes;
                           ``synced error``: the error of KIP-429's draft; ``synced ERROR``; ``by=range`` behind
                           an assignment: the protocol that the answer names since version 5
``beat``, ``beat ERROR``   answers Heartbeat; likewise ``left`` and ``committed``
``VERB {...}``             any step, with its body as JSON
=========================  =========================================================================================
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.case import Step
from kipcheck.conformance.protocols.assignment.model.assignment import RANGE, Partition, Topic
from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Subscription
from kipcheck.conformance.protocols.assignment.model.mixed_group import INCOMPATIBLE
from kipcheck.conformance.protocols.group.model.messages import EMPTY, Beat, Committed, Error, Joined, Left, Synced
from kipcheck.conformance.protocols.member.model.client import AnswerReceived, Elapse, Event, Open
from kipcheck.conformance.protocols.member.model.messages import (
    Answer,
    Close,
    CommitOffsets,
    Disconnected,
    Metadata,
    Poll,
    Subscribe,
    Unsubscribe,
)
from kipcheck.conformance.tests.protocols.member.old_ops import event_of, step_of

KNOWN: Final = (("t", 2),)
SUBSCRIBED: Final = Subscription(("t",))
CONSUMER: Final = "consumer"
ME, LEADER = "m1", "m2"
BARE_EVENTS: Final[Mapping[str, Event]] = {
    "unsubscribe": Unsubscribe(),
    "poll": Poll(),
    "close": Close(),
    "disconnected": Disconnected(),
}
BARE_ANSWERS: Final[Mapping[str, type[Beat] | type[Left] | type[Committed]]] = {
    "beat": Beat,
    "left": Left,
    "committed": Committed,
}


def parse_shorthand(text: str) -> tuple[Step, ...]:
    """Parses shorthand into steps. Errors: ValueError."""
    return tuple(_step(word.strip()) for word in text.split(";") if word.strip())


def shorthand(steps: Iterable[Step]) -> str:
    """The shorthand that parses to these steps."""
    return "; ".join(map(_step_text, steps))


def _step(text: str) -> Step:
    verb, _, body = text.partition(" ")
    try:
        if verb.startswith("member-"):
            return step_of(event_of(Step("", verb, json.loads(body or "{}"))))
        found = step_of(_event(verb, body.split()))
        event_of(found)
        return found
    except (LookupError, TypeError, ValueError) as wrong:
        raise ValueError(f"invalid step {text!r}: {wrong}") from None


def _event(verb: str, words: list[str]) -> Event:
    if verb in BARE_EVENTS and not words:
        return BARE_EVENTS[verb]
    match verb, words:
        case "open", _:
            return _open(words)
        case "subscribe", [topics]:
            return Subscribe(tuple(topics.split(",")))
        case "commit", _:
            return CommitOffsets(tuple((*_partition(of), int(offset)) for of, _, offset in _pairs(words)))
        case "elapse", [ms]:
            return Elapse(int(ms))
        case "metadata", _:
            return Metadata(tuple(Topic(*_partition(each)) for each in words))
        case "joined", [first, *more]:
            return AnswerReceived(_joined(first, more))
        case "synced", _:
            return AnswerReceived(_synced(words))
        case (("beat" | "left" | "committed"), []):
            return AnswerReceived(BARE_ANSWERS[verb](0, Error.NONE))
        case (("beat" | "left" | "committed"), [error]):
            return AnswerReceived(BARE_ANSWERS[verb](0, Error[error]))
    raise ValueError("unknown verb, or wrong arguments")


def _pairs(words: Iterable[str]) -> Iterable[tuple[str, str, str]]:
    return (each.partition("=") for each in words)


def _partition(text: str) -> Partition:
    topic, _, number = text.partition(":")
    return topic, int(number)


def _options(words: Iterable[str], *known: str) -> dict[str, str]:
    found = {name: value for name, _, value in _pairs(words)}
    for name in found.keys() - {*known}:
        raise ValueError(f"unknown option {name!r}: use one of {', '.join(known)}")
    return found


def _open(words: list[str]) -> Open:
    assignors = words.pop(0) if words and "=" not in words[0] else RANGE
    found = _options(words, "as", "rack", "protocol", "knows")
    topics = tuple(map(_partition, found["knows"].split(","))) if "knows" in found else KNOWN
    return Open(tuple(assignors.split(",")), topics, found.get("as"), found.get("rack"), found.get("protocol"))


def _joined(first: str, words: list[str]) -> Joined:
    found = _options(words, "me", "leader", "by", "members", "skip")
    if first in Error.__members__:
        return Joined(0, Error[first], member=found.get("me", ""))
    members: list[tuple[str, str | None, Subscription]] = []
    for each in filter(None, found.get("members", "").split(",")):
        member, _, instance = each.partition("/")
        members.append((member, instance or None, SUBSCRIBED))
    me, leader, by = found.get("me", ME), found.get("leader", LEADER), found.get("by", RANGE)
    return Joined(0, Error.NONE, int(first), CONSUMER, by, leader, me, tuple(members), "skip" in found)


def _synced(words: list[str]) -> Synced:
    if words and words[-1].startswith("by="):
        named = _synced(words[:-1])
        return replace(named, protocol_type=CONSUMER, protocol=words[-1].removeprefix("by="))
    match words:
        case ["nothing"]:
            return Synced(0, Error.NONE)
        case ["error"]:
            return Synced(0, Error.NONE, assignment=Assigned(error=INCOMPATIBLE))
        case [error] if error in Error.__members__:
            return Synced(0, Error[error])
    return Synced(0, Error.NONE, assignment=Assigned(tuple(sorted(map(_partition, words)))))


def _step_text(step: Step) -> str:
    event = event_of(step)
    text = event_text(event)
    if text is not None and step_of(_event(*_split(text))) == step_of(event):
        return text
    return f"{step.verb} {json.dumps(dict(step.body), sort_keys=True)}"


def _split(text: str) -> tuple[str, list[str]]:
    verb, *words = text.split()
    return verb, words


def event_text(event: Event) -> str | None:
    """The event in shorthand, possibly inexact; None if shorthand cannot express it."""
    for word, alone in BARE_EVENTS.items():
        if event == alone:
            return word
    match event:
        case Open():
            return _open_text(event)
        case Subscribe(topics):
            return f"subscribe {','.join(topics)}"
        case CommitOffsets(offsets):
            return " ".join(["commit", *(f"{topic}:{number}={offset}" for topic, number, offset in offsets)])
        case Elapse(ms):
            return f"elapse {ms}"
        case Metadata(topics):
            return " ".join(["metadata", *(f"{each.name}:{each.partitions}" for each in topics)])
        case AnswerReceived(answer):
            return _answer_text(answer)
    return None


def _open_text(event: Open) -> str:
    found = {"as": event.instance, "rack": event.rack, "protocol": event.protocol}
    options = [f"{name}={value}" for name, value in found.items() if value is not None]
    if event.topics != KNOWN:
        options.append(f"knows={','.join(f'{name}:{number}' for name, number in event.topics)}")
    return " ".join(["open", ",".join(event.assignors), *options])


def _answer_text(answer: Answer) -> str | None:
    error = answer.error
    match answer:
        case Joined() if error is not Error.NONE:
            return " ".join(["joined", error.name, *([f"me={answer.member}"] if answer.member else [])])
        case Joined():
            usual: dict[str, tuple[Any, Any]] = {
                "me": (answer.member, ME),
                "leader": (answer.leader, LEADER),
                "by": (answer.protocol, RANGE),
                "members": (",".join(id if i is None else f"{id}/{i}" for id, i, _ in answer.members), ""),
            }
            options = [f"{name}={value}" for name, (value, default) in usual.items() if value != default]
            return " ".join(["joined", str(answer.generation), *options, *(["skip"] if answer.skip_assignment else [])])
        case Synced() if error is not Error.NONE:
            return f"synced {error.name}"
        case Synced():
            return _synced_text(answer)
    word = next(word for word, made in BARE_ANSWERS.items() if isinstance(answer, made))
    return word if error is Error.NONE else f"{word} {error.name}"


def _synced_text(answer: Synced) -> str | None:
    named = [] if answer.protocol is None else [f"by={answer.protocol}"]
    match answer.assignment:
        case Assigned(partitions, error=wrong):
            words = ["error"] if wrong else [f"{topic}:{number}" for topic, number in partitions]
        case assignment if assignment == EMPTY:
            words = ["nothing"]
        case _:
            return None
    return " ".join(["synced", *words, *named])
