"""Replaces events of a conversation that cannot happen by events that can, so that none is lost.

An answer that comes too early becomes the answer to the oldest pending request, a wait beyond a timeout becomes a
shorter one or the disconnect at its end, and a call beside a blocking one becomes what the consumer waits for.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Subscription
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.member.model import possible
from kipcheck.conformance.protocols.member.model.client import BACKOFF_MS
from kipcheck.conformance.protocols.member.model.consumer import CONSUMER
from kipcheck.conformance.protocols.member.ops import Answer, AnswerReceived, Disconnected, Event, Open, Poll, Request

GENERATIONS: Final = 60
"""The newest generation: more than a conversation has rebalances, unless some are skipped."""
ID: Final = "m1"
LEADER: Final = "n1"
"""Ids of the member and of another one, where a request and its answer have none."""
WAITS: Final = (60_000, 20_000, 10_000, 3_000, 2 * BACKOFF_MS, BACKOFF_MS // 2)
"""Durations in milliseconds, the longest first."""
START: Final = Open(topics=(("t", 2), ("u", 2)))


def mended(stage: possible.Stage, events: Iterable[Event]) -> Iterator[Event]:
    """As many events as there are, each of which can happen."""
    scene = stage.initial()
    for each in events:
        event = possible_event(stage, scene, each)
        yield event
        scene = stage.step(scene, event).state


def possible_event(stage: possible.Stage, scene: possible.Scene, event: Event) -> Event:
    """The event itself if it can happen, else one that can, and is like it as far as possible."""
    for each in _candidates(scene.situation, event):
        if not any(stage.broken(scene, each)):
            return each
    raise AssertionError(f"nothing can happen instead of {event}")


def _candidates(situation: possible.Situation, event: Event) -> Iterator[Event]:
    yield event
    oldest = situation.pending[0].request if situation.pending else None
    match event:
        case AnswerReceived(answer) if oldest is not None:
            yield AnswerReceived(fitting(situation, oldest, answer))
        case Elapse(ms):
            yield from (Elapse(each) for each in WAITS if each < ms)
        case _ if situation.opened is None:
            yield START
        case _ if oldest is not None:
            yield AnswerReceived(fitting(situation, oldest, None))
    if situation.opened is None:
        yield START
    elif not situation.pending:
        yield Elapse(2 * BACKOFF_MS) if situation.commits else Poll()
    yield Disconnected()


# Answers


def fitting(situation: possible.Situation, asked: Request, answer: Answer | None) -> Answer:
    """A possible answer to the request, with what the given one has in common with it."""
    if answer is not None and type(answer) is not possible.ANSWER_TO[type(asked)]:
        answer = None
    for error in (
        messages.Error.NONE if answer is None else answer.error,
        messages.Error.NONE,
        messages.Error.ILLEGAL_GENERATION,
    ):
        if possible.can_have(asked, error) and possible.is_remembered(situation, asked, error):
            break
    else:
        error = messages.Error.UNKNOWN_MEMBER_ID
    if isinstance(asked, messages.Join) and error is messages.Error.NONE and situation.generation >= GENERATIONS:
        error = messages.Error.COORDINATOR_NOT_AVAILABLE
    match asked:
        case messages.Join():
            return fitting_join(situation, asked, error, answer if isinstance(answer, messages.Joined) else None)
        case messages.Sync():
            return fitting_sync(asked, error, answer if isinstance(answer, messages.Synced) else None)
        case messages.Heartbeat():
            return messages.Beat(0, error)
        case messages.Leave():
            return messages.Left(0, error)
        case messages.Commit():
            return messages.Committed(0, error)


def fitting_join(
    situation: possible.Situation, asked: messages.Join, error: messages.Error, answer: messages.Joined | None
) -> messages.Joined:
    """The error; as a success, the answer with an id, a protocol, a generation and members that fit."""
    if answer is None or answer.error is not messages.Error.NONE:
        answer = messages.Joined(0, error, leader=LEADER, member="" if answer is None else answer.member)
    if error is not messages.Error.NONE:
        return messages.Joined(
            0, error, member=(answer.member or ID) if error is messages.Error.MEMBER_ID_REQUIRED else ""
        )
    member = asked.member or answer.member or ID
    leads = answer.leader in (answer.member, member)
    offered = dict(asked.protocols)
    protocol = answer.protocol if answer.protocol in offered else asked.protocols[0][0]
    generation = max(answer.generation, possible.oldest_generation(situation, asked))
    others = [_other(each, generation) for each in answer.members if each[0] not in (member, answer.member)]
    own: tuple[str, str | None, messages.Blob] = (member, asked.instance, offered[protocol or ""])
    return replace(
        answer,
        generation=generation,
        protocol_type=CONSUMER if asked.version >= 7 else None,
        protocol=protocol,
        leader=member if leads else answer.leader or LEADER,
        member=member,
        members=_once((own, *others)) if leads else (),
        skip_assignment=answer.skip_assignment and leads and asked.instance is not None,
    )


def _other(row: tuple[str, str | None, messages.Blob], generation: int) -> tuple[str, str | None, messages.Blob]:
    """Another member, whose subscription is of a former generation."""
    id, instance, blob = row
    if isinstance(blob, Subscription) and blob.generation >= generation:
        blob = replace(blob, generation=max(generation - 1, messages.NO_GENERATION))
    return id, instance, blob


def _once(rows: Sequence[tuple[str, str | None, messages.Blob]]) -> tuple[tuple[str, str | None, messages.Blob], ...]:
    """The first of the rows with an id; of those with one instance id, the others lose it."""
    found: dict[str, tuple[str, str | None, messages.Blob]] = {}
    instances: set[str | None] = set()
    for id, instance, blob in rows:
        if id not in found:
            found[id] = (id, None if instance in instances else instance, blob)
            instances.add(instance)
    return tuple(found.values())


def fitting_sync(asked: messages.Sync, error: messages.Error, answer: messages.Synced | None) -> messages.Synced:
    """The error; as a success, the group's protocol and the assignment, to a leader the one that it sent for itself."""
    if error is not messages.Error.NONE:
        return messages.Synced(0, error)
    assignment: messages.Blob = (
        Assigned() if answer is None or answer.error is not messages.Error.NONE else answer.assignment
    )
    if asked.assignments:
        assignment = dict(asked.assignments).get(asked.member, messages.EMPTY)
    newest = asked.version >= 5
    return messages.Synced(
        0, messages.Error.NONE, CONSUMER if newest else None, asked.protocol if newest else None, assignment
    )
