"""``java:kafka-group-coordinator:RELEASE`` as a coordinator: kipcheck plays the clients of a group.

Their requests go to the jar as bytes, with the headers of requests, and its responses come from there as a broker sends
them. The conversations of a batch go on side by side: one exchange has the next operation of each.
"""

import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol, TypeAlias, get_args

from kipcheck.conformance.core.operations import wire_form
from kipcheck.conformance.core.operations.wire_form import SAME, Context, Inexpressible, Unfit, Value
from kipcheck.conformance.core.values.case import Case, Step
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.protocols.consumer_group import heartbeat as consumer_messages, ops as consumer_group
from kipcheck.conformance.protocols.consumer_group.clients import ConsumerClients
from kipcheck.conformance.protocols.consumer_group.model import TOPICS
from kipcheck.conformance.protocols.consumer_group.rules import DEFAULT
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group import ops as group
from kipcheck.conformance.protocols.group.clients import GroupClients
from kipcheck.conformance.protocols.migration import ops as migration
from kipcheck.conformance.protocols.migration.clients import ClassicClients, blobs
from kipcheck.conformance.protocols.reconciled import log_laws, log_ops
from kipcheck.conformance.protocols.reconciled.terms import SETTINGS_OF_GROUPS
from kipcheck.conformance.protocols.share_group import heartbeat as share_messages, ops as share_group
from kipcheck.conformance.protocols.share_group.clients import ShareClients
from kipcheck.conformance.protocols.share_group.rules import DEFAULT as SHARE_DEFAULT
from kipcheck.conformance.protocols.streams_group import heartbeat as streams_messages, ops as streams_group
from kipcheck.conformance.protocols.streams_group.clients import StreamsClients
from kipcheck.conformance.protocols.streams_group.model import DEFAULT as STREAMS_DEFAULT
from kipcheck.conformance.targets.protocol import observed
from kipcheck.conformance.targets.session import LOST, TesteeSession
from kipcheck.conformance.wire import bodies, framing
from kipcheck.conformance.wire.errors import Refused
from kipcheck.conformance.wire.schema import Layout

GROUP: Final = "group"
FIELDS: Final = "fields"
VERSIONS: Final = "versions"
"""The limits of a request that its version cannot express, and of one in a version that no release has."""
USED: Final = {
    consumer_messages.Heartbeat: 1, streams_messages.Heartbeat: 0, streams_messages.Describe: 0,
    share_messages.Heartbeat: 1, **log_ops.VERSIONS,
}  # fmt: skip
"""The versions of requests whose operations have none."""
IDS: Final = {topic: uuid.UUID(int=(1 << 64) + ord(topic)) for topic in (*TOPICS, *consumer_group.LATER)}
"""Of topics, as ``KnownTopics`` of the program in the JVM has them."""
CLASSIC: Final = {**group.VALUES, "topic": SAME, "session": SAME, "timeout": SAME}
VALUES: Final = {
    **CLASSIC, "regex": SAME, "internal_topic": SAME,
    "topic_id": Value(IDS.__getitem__, {id: topic for topic, id in IDS.items()}.__getitem__),
}  # fmt: skip

Order: TypeAlias = Mapping[str, Any]
Result: TypeAlias = Mapping[str, Any]
Doing: TypeAlias = Generator[Order, Result | None, None]
"""Yields an operation of the coordinator, and is sent its result."""
Playing: TypeAlias = Generator[Order, Result | None, Observation]


class CoordinatorSession(TesteeSession):
    """A session with a jar in the role of a coordinator."""

    def _send_batch(self, batch: Sequence[Case]) -> list[tuple[Observation, ...]]:
        if not batch:
            return super()._send_batch(batch)
        plays = [_play(case, Door(number, self.info.claims.limits)) for number, case in enumerate(batch)]
        played: dict[int, tuple[Observation, ...]] = {}
        results: Mapping[int, Result | None] = dict.fromkeys(range(len(plays)))
        while results:
            orders: dict[int, Order] = {}
            for number, result in results.items():
                try:
                    orders[number] = plays[number].send(result)
                except StopIteration as end:
                    played[number] = end.value
            results = dict(zip(orders, self.send([*orders.values()]), strict=True)) if orders else {}
        return [played[number] for number in range(len(plays))]


class NotDone(Exception):
    """The coordinator did not do what it was asked: what is observed."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(str(observation))
        self.observation = observation


@dataclass(slots=True)
class Door:
    """The coordinator of one conversation in the jar."""

    number: int
    limits: Mapping[str, str]
    answers: Mapping[int, Any] = field(default_factory=dict)
    """What the last operation caused, by the steps of the requests."""
    created: Mapping[str, int] = field(default_factory=dict)
    """The topics that the broker created after it, with their numbers of partitions."""
    unread: str = ""
    """The method of the release in which reading the log failed, if it did."""
    is_lost: bool = False
    """The coordinator was given up with the last operation."""
    _sent: dict[int, tuple[SentRequest, Layout, Context]] = field(default_factory=dict)
    """With the layout of the answer, by step."""

    def ask(self, step: int, sent: SentRequest, values: Mapping[str, Value]) -> Doing:
        """Sends a request, which may be answered at a later step. Errors: ``NotDone``."""
        version = getattr(sent.request, "version", None) or USED.get(type(sent.request), 0)
        context = Context(values, {"group": "" if sent.nameless else GROUP})
        message = wire_form.message_of(type(sent.request))
        try:
            form, answer_form = _layouts(sent.request.__class__, sent.answer, version)
            wire_form.check(sent.answer, answer_form, context)
            body = wire_form.write(sent.request, form, context)
            frame = framing.encode_request(APACHE, message, version, step, sent.client, body)
        except Inexpressible as why:
            raise NotDone(Unsupported(str(why), FIELDS)) from None
        except LookupError as why:
            raise NotDone(Unsupported(str(why), VERSIONS)) from None
        self._sent[step] = sent, answer_form, context
        yield from self.do("request", hex=frame.hex())

    def do(self, operation: str, **fields: Any) -> Doing:
        """Errors: ``NotDone``."""
        result = yield {"op": f"coordinator-{operation}", "conversation": self.number, **fields}
        assert result is not None
        self.is_lost = result["status"] == "died"
        if result["status"] != "accepted":
            raise NotDone(observed(result, self.limits))
        try:
            self.answers = dict(self._read(bytes.fromhex(frame)) for frame in result["responses"])
        except (Refused, Unfit) as why:
            raise NotDone(Died("garbled", str(why))) from None
        self.created, self.unread = result["created"], result["unread"]

    def answer(self, step: int) -> Any:
        """The answer to a request that is never parked. Errors: ``NotDone``."""
        if step not in self.answers:
            raise NotDone(Died("garbled", "the coordinator did not answer at once"))
        return self.answers[step]

    def _read(self, frame: bytes) -> tuple[int, Any]:
        number = int.from_bytes(frame[:4], "big")
        sent, form, context = self._sent[number]
        # Behind the correlation id, and the tags of the header, of which there are none.
        body = form.decode(frame[4 + framing.header_version(form) :])
        others = {"to": sent.request.request} if isinstance(sent.request, get_args(group.Request)) else {}
        return number, wire_form.read(sent.answer, form, body, context, **others)


@lru_cache
def _layouts(request: type, answer: type, version: int) -> tuple[Layout, Layout]:
    """Errors: LookupError."""
    return bodies.layout_of(request, version), bodies.layout_of(answer, version)


class Player(Protocol):
    """Plays the clients of one conversation."""

    topics: ClassVar[Mapping[str, int]]
    """Those of the broker, with their numbers of partitions."""

    def step(self, index: int, step: Step, door: Door, /) -> Playing: ...


def _play(case: Case, door: Door) -> Generator[Order, Result | None, tuple[Observation, ...]]:
    player = PLAYERS[case.steps[0].verb]()
    seen: list[Observation] = []
    try:
        yield from door.do("begin", topics=player.topics)
    except NotDone as why:
        return (why.observation,) * len(case.steps)
    for index, step in enumerate(case.steps):
        try:
            seen.append((yield from player.step(index, step, door)))
        except NotDone as why:
            seen.append(why.observation)
        if door.is_lost:
            break
    return (*seen, *[LOST] * (len(case.steps) - len(seen)))


class ClassicGroup:
    topics: ClassVar[Mapping[str, int]] = {}

    def __init__(self) -> None:
        self._clients = GroupClients()

    def step(self, index: int, step: Step, door: Door, /) -> Playing:
        event = group.OPERATIONS.event_of(step)
        match event:
            case group.By():
                yield from door.ask(index, self._clients.sent(index, event), CLASSIC)
            case group.FailWrite(error):
                yield from door.do(step.verb, error=error.name)
            case _:
                yield from door.do(step.verb, **step.body)
        shown = self._clients.observed(door.answers.values())
        return Replied((("answers", [*map(group.OPERATIONS.answer_to_json, shown)]),))


class ReconciledGroup:
    topics: ClassVar[Mapping[str, int]] = TOPICS

    def __init__(self, clients: ConsumerClients | ShareClients | StreamsClients) -> None:
        self._clients = clients

    def step(self, index: int, step: Step, door: Door, /) -> Playing:
        sent = self._clients.sent(index, step)
        seen: Observation = Replied(())
        if sent is None:
            operation, fields = _order(step)
            yield from door.do(operation, **fields)
            if door.unread and operation == "reload":
                seen = Replied(((log_laws.UNREAD, door.unread),))
        else:
            yield from door.ask(index, sent, VALUES)
            seen = self._observed(step, door.answer(index), door.created)
        self._clients.learn(index, step, seen)
        return seen

    def _observed(self, step: Step, answer: Any, created: Mapping[str, int]) -> Observation:
        if isinstance(self._clients, StreamsClients):
            return self._clients.observed(step, answer, created)
        return self._clients.observed(step, answer)


def _order(step: Step) -> tuple[str, Mapping[str, Any]]:
    """The operation of a coordinator for a step without a request, and its fields."""
    match step.verb.rpartition("-")[2]:
        case "create":
            topic = step.body["topic"]
            return "create", {"topics": {topic: consumer_group.LATER[topic]}}
        case "configure":
            named = {SETTINGS_OF_GROUPS[name]: str(value) for name, value in step.body.items()}
            return "configure", {"group": GROUP, "settings": named}
        case operation:
            return operation, step.body


class MixedGroup:
    topics: ClassVar[Mapping[str, int]] = TOPICS

    def __init__(self) -> None:
        self._consumers = ReconciledGroup(ConsumerClients(DEFAULT))
        self._classic = ClassicClients()
        self._values = {**VALUES, "blob": blobs(SAME)}

    def step(self, index: int, step: Step, door: Door, /) -> Playing:
        event = migration.OPERATIONS.event_of(step)
        if isinstance(event, log_ops.Commit) and event.client in migration.CLIENTS:
            yield from door.ask(index, self._classic.commit(event), self._values)
            return log_ops.observed(door.answer(index))
        if isinstance(event, consumer_group.Beat | consumer_group.Pass | log_ops.Event):
            seen = yield from self._consumers.step(index, consumer_group.OPERATIONS.step_of(event), door)
            self._deliver(door)
            return seen
        sent = self._classic.sent(event)
        if sent is not None:
            yield from door.ask(index, sent, self._values)
            self._deliver(door)
        is_busy = sent is None and not isinstance(event, migration.Receive)
        received = migration.Received(event.client, migration.BUSY) if is_busy else self._classic.received(event.client)
        answer = migration.OPERATIONS.answer_of([received])
        return Replied(tuple((key, value) for key, value in answer.items() if key != "status"))

    def _deliver(self, door: Door) -> None:
        for answer in door.answers.values():
            if isinstance(answer, get_args(group.Reply)):
                self._classic.answered(answer)


PLAYERS: Final[Mapping[str, Callable[[], Player]]] = {
    verb: player
    for operations, player in (
        (group.OPERATIONS, ClassicGroup),
        (consumer_group.OPERATIONS, lambda: ReconciledGroup(ConsumerClients(DEFAULT))),
        (streams_group.OPERATIONS, lambda: ReconciledGroup(StreamsClients(STREAMS_DEFAULT))),
        (share_group.OPERATIONS, lambda: ReconciledGroup(ShareClients(SHARE_DEFAULT))),
        (migration.OPERATIONS, MixedGroup),
    )
    for verb in operations.verbs
}
