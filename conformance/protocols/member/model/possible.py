"""What a broker, a network and a user can do to a consumer: the rules that every conversation with one keeps.

``conversation_faults`` names the steps that break a rule. Which requests are pending is known from the consumer's
actions; where they are not given, the machine of the edition predicts them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias, final

from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.core.values.replacing import replace
from kipcheck.conformance.protocols.assignment.model.membership import Subscription
from kipcheck.conformance.protocols.group.model import messages as group
from kipcheck.conformance.protocols.group.ops import Elapse
from kipcheck.conformance.protocols.member import ops
from kipcheck.conformance.protocols.member.model.client import Action, Client, ClientState
from kipcheck.conformance.protocols.member.model.consumer import CONSUMER

REQUEST_MS: Final = 30_000
"""request.timeout.ms: the default of kafka-clients and of kafka-python."""
JOIN_LAPSE_MS: Final = 5_000
"""A JoinGroup may be parked for the rebalance timeout, and has this much time on top."""


@final
@dataclass(frozen=True, slots=True)
class Rule:
    id: str
    sentence: str
    source: str
    """KIP, class of a release, or the part of the protocol from which it follows."""


CALLS_A_CONSUMER: Final = Rule(
    "calls-a-consumer",
    "The user calls a consumer that was opened, and not closed since.",
    "KafkaConsumer.acquireAndEnsureOpen",
)
ONE_CALL: Final = Rule(
    "one-call-at-a-time",
    "While a commit or an unsubscribe waits for its answer, the user makes no other call.",
    "KafkaConsumer: a consumer has one thread, which commitSync blocks; in kafka-python unsubscribe does too",
)
ANSWERS_REQUESTS: Final = Rule(
    "answers-requests",
    "The coordinator answers only requests that are pending.",
    "Kafka protocol guide, request and response headers: an answer repeats the correlation id of its request",
)
IN_ORDER: Final = Rule(
    "in-order",
    "The answers on a connection come in the order of the requests.",
    "Kafka protocol guide, network: a broker processes the requests of a connection in their order",
)
ENDS_IN_TIME: Final = Rule(
    "ends-in-time",
    "No request is pending longer than its timeout: at the deadline the connection is closed.",
    "NetworkClient.handleTimedOutRequests; AbstractCoordinator.sendJoinGroupRequest",
)
OFFERED_PROTOCOL: Final = Rule(
    "offered-protocol",
    "The coordinator chooses a protocol that the member offered, and names the type and the protocol of the group.",
    "GroupMetadata.selectProtocol; KIP-559",
)
SENT_INSTANCES: Final = Rule(
    "sent-instances",
    "Only a request with an instance id is fenced.",
    "KIP-345; GroupCoordinator.validateCurrentMember",
)
KEEPS_ID: Final = Rule(
    "keeps-id",
    "A join that succeeds keeps the member id of its request; a new id comes only to a request without one.",
    "KIP-394; GroupCoordinator.doJoinGroup",
)
GENERATIONS_GROW: Final = Rule(
    "generations-grow",
    "Each generation of the group is greater than the one before; a static member that returns may get the same.",
    "GroupMetadata.initNextGeneration; KIP-345",
)
LEADER_KNOWS: Final = Rule(
    "leader-knows-members",
    "Only the leader gets the members: each once, itself among them with the instance id and the subscription that it "
    "sent, and no subscription of a later generation than theirs.",
    "GroupMetadata.currentMemberMetadata; KIP-792",
)
FITTING_ERROR: Final = Rule(
    "fitting-error",
    "An error is one that a coordinator has for this request.",
    "GroupCoordinator; Kafka protocol guide, error codes",
)
RELAYS: Final = Rule(
    "relays-assignment",
    "A leader gets the assignment that it sent for itself.",
    "GroupCoordinator.doSyncGroup",
)
REMEMBERS: Final = Rule(
    "remembers-members",
    "A member id that is unknown, fenced or has left stays unknown, and a generation that is over stays over.",
    "GroupCoordinator.validateCurrentMember; GroupMetadata.remove",
)
RULES: Final = (
    CALLS_A_CONSUMER, ONE_CALL, ANSWERS_REQUESTS, IN_ORDER, ENDS_IN_TIME, OFFERED_PROTOCOL, SENT_INSTANCES, KEEPS_ID,
    GENERATIONS_GROW, LEADER_KNOWS, FITTING_ERROR, RELAYS, REMEMBERS,
)  # fmt: skip


class Fault(NamedTuple):
    """A step that cannot happen."""

    step: int
    rule: Rule
    why: str
    idle: bool = False
    """An answer that a consumer without the request did not get, so that it did nothing."""


Broken: TypeAlias = tuple[Rule, str]
ANSWER_TO: Final[dict[type[ops.Request], type[ops.Answer]]] = {
    group.Join: group.Joined,
    group.Sync: group.Synced,
    group.Heartbeat: group.Beat,
    group.Leave: group.Left,
    group.Commit: group.Committed,
}
_ANYWHERE: Final = frozenset({
    group.Error.UNKNOWN_SERVER_ERROR, group.Error.COORDINATOR_NOT_AVAILABLE, group.Error.NOT_COORDINATOR,
    group.Error.GROUP_AUTHORIZATION_FAILED, group.Error.UNKNOWN_MEMBER_ID, group.Error.FENCED_INSTANCE_ID,
})  # fmt: skip
_OF_MEMBERS: Final = frozenset({group.Error.ILLEGAL_GENERATION, group.Error.REBALANCE_IN_PROGRESS})
_ENDS_MEMBERSHIP: Final = frozenset({group.Error.UNKNOWN_MEMBER_ID, group.Error.FENCED_INSTANCE_ID})
_OF_THE_GENERATION: Final = frozenset({group.Error.NONE, group.Error.REBALANCE_IN_PROGRESS})
"""Answers to a member of the present generation."""
ERRORS: Final[dict[type[ops.Request], frozenset[group.Error]]] = {
    group.Join: _ANYWHERE
    | {
        group.Error.COORDINATOR_LOAD_IN_PROGRESS,
        group.Error.MEMBER_ID_REQUIRED,
        group.Error.GROUP_MAX_SIZE_REACHED,
        group.Error.INCONSISTENT_GROUP_PROTOCOL,
        group.Error.INVALID_SESSION_TIMEOUT,
        group.Error.REBALANCE_IN_PROGRESS,
    },
    group.Sync: _ANYWHERE | _OF_MEMBERS | {group.Error.INCONSISTENT_GROUP_PROTOCOL},
    group.Heartbeat: _ANYWHERE | _OF_MEMBERS,
    group.Leave: _ANYWHERE | {group.Error.COORDINATOR_LOAD_IN_PROGRESS},
    group.Commit: _ANYWHERE
    | _OF_MEMBERS
    | {
        group.Error.COORDINATOR_LOAD_IN_PROGRESS,
        group.Error.OFFSET_METADATA_TOO_LARGE,
        group.Error.INVALID_COMMIT_OFFSET_SIZE,
    },
}
"""The errors that a coordinator has for a request with a valid group id. To a SyncGroup it reports loading as
REBALANCE_IN_PROGRESS, to a Heartbeat as success."""


class Pending(NamedTuple):
    request: ops.Request
    sent_ms: int
    blocks: bool = False
    """Whether the user's call waits for the answer."""

    @property
    def ends_ms(self) -> int:
        """When its timeout has passed."""
        request = self.request
        if isinstance(request, group.Join):
            return self.sent_ms + max(REQUEST_MS, request.patience_ms + JOIN_LAPSE_MS)
        return self.sent_ms + REQUEST_MS


@final
@dataclass(frozen=True, slots=True)
class Situation:
    """What user, network and coordinator know of a conversation so far."""

    now_ms: int = 0
    opened: ops.Open | None = None
    """None: there is no consumer."""
    pending: tuple[Pending, ...] = ()
    """Requests without an answer, the oldest first."""
    commits: bool = False
    """A blocking commit lasts."""
    generation: int = 0
    """The newest generation of the group."""
    protocol: str | None = None
    """The protocol that the group chose last."""
    gone: frozenset[str] = frozenset()
    """Member ids that the coordinator does not know any more."""
    former: int = 0
    """The newest generation that is known to be over."""

    def begun(self, event: ops.Event) -> "Situation":
        """After the event, without the actions that it causes."""
        match event:
            case ops.Open():
                return replace(self, opened=event, pending=(), commits=False)
            case ops.CommitOffsets() if self.opened is not None:
                return replace(self, commits=True)
            case ops.Disconnected():
                return replace(self, pending=())
            case Elapse(ms):
                return replace(self, now_ms=self.now_ms + ms)
            case ops.AnswerReceived(answer):
                return self._answered(answer)
        return self

    def _answered(self, answer: ops.Answer) -> "Situation":
        kinds = [ANSWER_TO[type(each.request)] for each in self.pending]
        if type(answer) not in kinds:
            return self
        at = kinds.index(type(answer))
        asked = self.pending[at].request
        after = replace(self, pending=(*self.pending[:at], *self.pending[at + 1 :]))
        if isinstance(asked, group.Leave) or answer.error in _ENDS_MEMBERSHIP:
            after = replace(after, gone=after.gone | members_of(asked))
        if answer.error is group.Error.ILLEGAL_GENERATION and not isinstance(asked, group.Join | group.Leave):
            after = replace(after, former=max(after.former, asked.generation))
        if isinstance(answer, group.Joined) and answer.member:
            after = replace(after, gone=after.gone - {answer.member})
        if isinstance(answer, group.Joined) and answer.error is group.Error.NONE:
            newest = max(answer.generation, after.generation)
            return replace(after, generation=newest, former=newest - 1, protocol=answer.protocol)
        return after

    def acted(self, event: ops.Event, actions: Iterable[object], sent_ms: int) -> "Situation":
        """After the consumer's actions, whose requests were sent at ``sent_ms``."""
        if isinstance(event, ops.Close):
            return replace(self, opened=None, pending=(), commits=False)
        unsubscribes = isinstance(event, ops.Unsubscribe)
        sent = tuple(
            [
                Pending(each, sent_ms, blocks=unsubscribes and isinstance(each, group.Leave))
                for each in actions
                if isinstance(each, ops.Request)
            ]
        )
        ends = any(isinstance(each, ops.CommitEnded) for each in actions)
        if not sent and not ends:
            return self
        return replace(self, pending=(*self.pending, *sent), commits=self.commits and not ends)


# The rules


def broken_before(situation: Situation, event: ops.Event) -> Iterator[Broken]:
    """The rules that an event breaks in this situation, except ``ENDS_IN_TIME``."""
    match event:
        case ops.Open() | ops.Subscribe() | ops.Unsubscribe() | ops.Poll() | ops.CommitOffsets() | ops.Close():
            if situation.commits:
                yield ONE_CALL, "the commit before it has not ended"
            if any(each.blocks for each in situation.pending):
                yield ONE_CALL, "the unsubscribe before it waits for the answer to LeaveGroup"
            if situation.opened is None and not isinstance(event, ops.Open):
                yield CALLS_A_CONSUMER, "there is no consumer"
        case ops.AnswerReceived(answer):
            yield from _answer(situation, answer)


def broken_after(situation: Situation) -> Iterator[Broken]:
    """``ENDS_IN_TIME``, if a request is pending longer than it can be."""
    for each in situation.pending:
        if each.ends_ms < situation.now_ms:
            name = type(each.request).__name__
            waits, lasts = situation.now_ms - each.sent_ms, each.ends_ms - each.sent_ms
            yield ENDS_IN_TIME, f"{name} is pending for {waits} ms, and ends after {lasts} ms"


def _answer(situation: Situation, answer: ops.Answer) -> Iterator[Broken]:
    asked = next((each.request for each in situation.pending if ANSWER_TO[type(each.request)] is type(answer)), None)
    if asked is None:
        yield ANSWERS_REQUESTS, f"no request is pending that {type(answer).__name__} answers"
        return
    oldest = situation.pending[0].request
    if oldest is not asked:
        yield IN_ORDER, f"{type(oldest).__name__} was sent before {type(asked).__name__}, and is pending"
    if not is_remembered(situation, asked, answer.error):
        yield REMEMBERS, f"{_request_text(asked)} is of a former member or generation, and gets {answer.error.name}"
    if answer.error is not group.Error.NONE:
        yield from _error(asked, answer)
    elif isinstance(answer, group.Joined) and isinstance(asked, group.Join):
        yield from _joined(situation, asked, answer)
    elif isinstance(answer, group.Synced) and isinstance(asked, group.Sync):
        yield from _synced(situation, asked, answer)


def _error(asked: ops.Request, answer: ops.Answer) -> Iterator[Broken]:
    error, name = answer.error, type(asked).__name__
    if not can_have(asked, error):
        rule = SENT_INSTANCES if error is group.Error.FENCED_INSTANCE_ID else FITTING_ERROR
        yield rule, f"{_request_text(asked)} never gets {error.name}"
    if isinstance(asked, group.Join) and isinstance(answer, group.Joined):
        if error is not group.Error.MEMBER_ID_REQUIRED and answer.member not in ("", asked.member):
            yield KEEPS_ID, f"{error.name} gives {name} another member id"
        elif error is group.Error.MEMBER_ID_REQUIRED and not answer.member:
            yield KEEPS_ID, "MEMBER_ID_REQUIRED gives no member id"


def can_have(asked: ops.Request, error: group.Error) -> bool:
    """Whether a coordinator has this error for the request."""
    if error is group.Error.NONE:
        return True
    if error not in ERRORS[type(asked)]:
        return False
    if error is group.Error.FENCED_INSTANCE_ID:
        return instance_of(asked) is not None
    if error is group.Error.MEMBER_ID_REQUIRED and isinstance(asked, group.Join):
        return asked.version >= 4 and not asked.member and asked.instance is None
    return not (isinstance(asked, group.Commit) and not asked.member and error in _OF_MEMBERS)


def members_of(request: ops.Request) -> frozenset[str]:
    """The member ids in a request."""
    ids = (id for id, _ in request.members) if isinstance(request, group.Leave) else (request.member,)
    return frozenset(filter(None, ids))


def is_remembered(situation: Situation, asked: ops.Request, error: group.Error) -> bool:
    """Whether a coordinator can answer so after its former answers. To a LeaveGroup it can answer anything."""
    if isinstance(asked, group.Leave) or not asked.member:
        return True
    if asked.member in situation.gone:
        return error not in _OF_THE_GENERATION | {group.Error.ILLEGAL_GENERATION}
    if isinstance(asked, group.Join):
        return True
    return asked.generation > situation.former or error not in _OF_THE_GENERATION


def _request_text(request: ops.Request) -> str:
    name = type(request).__name__
    if isinstance(request, group.Leave):
        return name
    about = "with" if request.member else "without"
    return (
        f"{name} v{request.version} {about} a member id and {'with' if request.instance else 'without'} an instance id"
    )


def instance_of(request: ops.Request) -> str | None:
    """The instance id in a request."""
    if isinstance(request, group.Leave):
        return next((instance for _, instance in request.members if instance is not None), None)
    return request.instance


def _joined(situation: Situation, asked: group.Join, answer: group.Joined) -> Iterator[Broken]:
    offered = dict(asked.protocols)
    if answer.protocol not in offered:
        yield OFFERED_PROTOCOL, f"the member did not offer {answer.protocol!r}"
    if answer.protocol_type not in (None, CONSUMER):
        yield OFFERED_PROTOCOL, f"the member's type is {CONSUMER!r}, not {answer.protocol_type!r}"
    if not answer.member or (asked.member and asked.member != answer.member):
        yield KEEPS_ID, f"the request has the member id {asked.member!r}, the answer {answer.member!r}"
    if answer.generation < oldest_generation(situation, asked):
        yield GENERATIONS_GROW, f"generation {answer.generation} follows {situation.generation}"
    yield from ((LEADER_KNOWS, why) for why in _members(asked, answer, offered.get(answer.protocol or "")))


def oldest_generation(situation: Situation, asked: group.Join) -> int:
    """The oldest generation that the member can get: a stable group goes on for a static member that returns."""
    returns = asked.instance is not None and not asked.member and situation.generation > 0
    return situation.generation + (0 if returns else 1)


def _members(asked: group.Join, answer: group.Joined, sent: group.Blob | None) -> Iterator[str]:
    """What is wrong with leader and members."""
    if answer.leader != answer.member:
        if answer.members or answer.skip_assignment or not answer.leader:
            yield "the member is no leader"
        return
    ids = [id for id, _, _ in answer.members]
    instances = [instance for _, instance, _ in answer.members if instance is not None]
    if len({*ids}) < len(ids) or len({*instances}) < len(instances):
        yield "a member occurs twice"
    own = next((each for each in answer.members if each[0] == answer.member), None)
    if own is None:
        yield "the leader is not among the members"
    elif own[1] != asked.instance:
        yield f"the leader's instance id is {asked.instance!r}, not {own[1]!r}"
    elif isinstance(sent, Subscription) and not _is_same(sent, own[2]):
        yield "the leader's subscription is not the one that it sent"
    for id, _, blob in answer.members:
        if id != answer.member and isinstance(blob, Subscription) and blob.generation >= answer.generation:
            yield f"the subscription of {id} is of generation {blob.generation}"
    if answer.skip_assignment and asked.instance is None:
        yield "a dynamic leader has to assign"


def _is_same(sent: Subscription, blob: group.Blob) -> bool:
    """Whether topics and owned partitions are those that were sent."""
    if not isinstance(blob, Subscription):
        return False
    return {*sent.topics} == {*blob.topics} and {*sent.owned} == {*blob.owned}


def _synced(situation: Situation, asked: group.Sync, answer: group.Synced) -> Iterator[Broken]:
    chosen = situation.protocol if asked.protocol is None else asked.protocol
    if answer.protocol not in (None, chosen):
        yield OFFERED_PROTOCOL, f"the group's protocol is {chosen!r}, not {answer.protocol!r}"
    if answer.protocol_type not in (None, CONSUMER):
        yield OFFERED_PROTOCOL, f"the group's type is {CONSUMER!r}, not {answer.protocol_type!r}"
    if asked.assignments and answer.assignment != dict(asked.assignments).get(asked.member, group.EMPTY):
        yield RELAYS, f"{asked.member} sent another assignment for itself"


# Conversations


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A consumer's state, and what the others know. Compared by identity: to hash it costs more than a step."""

    seat: ClientState = field(default_factory=ClientState)
    situation: Situation = field(default_factory=Situation)


STEPS_KEPT: Final = 512
"""A step that was examined is taken next, and the steps of a drawn conversation are checked again as a whole; while one
is reduced, hundreds begin with the same steps."""


class Stage:
    """The machine of a consumer, with the situation of its user, network and coordinator."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._initial = Scene(client.initial())
        self._kept = lru_cache(STEPS_KEPT)(self._step)

    def initial(self) -> Scene:
        return self._initial

    def step(self, scene: Scene, event: ops.Event, /) -> Transition[Scene, Action]:
        return self._kept(scene, event)

    def _step(self, scene: Scene, event: ops.Event) -> Transition[Scene, Action]:
        situation = scene.situation.begun(event)
        if not isinstance(event, Elapse):
            seat, actions = self.client.step(scene.seat, event)
            if isinstance(event, ops.Open) and seat.opened is None:
                situation = replace(situation, opened=None)
            return Transition(Scene(seat, situation.acted(event, actions, situation.now_ms)), actions)
        seat, done, until = scene.seat, list[Action](), scene.seat.clock.now_ms + event.ms
        while True:  # Deadline by deadline, to know when each request is sent.
            due = min([until, *(at for at, _ in seat.clock.timers)])
            seat, actions = self.client.step(seat, Elapse(max(0, due - seat.clock.now_ms)))
            situation = situation.acted(event, actions, situation.now_ms - until + due)
            done += actions
            if due == until:
                return Transition(Scene(seat, situation), tuple(done))

    def broken(self, scene: Scene, event: ops.Event) -> Iterator[Broken]:
        """The rules that the event breaks."""
        yield from broken_before(scene.situation, event)
        if isinstance(event, Elapse):
            yield from broken_after(self.step(scene, event).state.situation)


def conversation_faults(
    client: Client, events: Sequence[ops.Event], answers: Sequence[Sequence[object] | None] | None = None
) -> Iterator[Fault]:
    """The steps that cannot happen.

    ``answers``: the actions that each step caused, None where it was refused; the events after them are not judged.
    A consumer whose actions are given may lack a request that its machine sends: an answer to it is not delivered.
    """
    if answers is None:
        yield from _foreseen_faults(Stage(client), events)
        return
    situation = Situation()
    for at, (event, actions) in enumerate(zip(events, answers, strict=False)):
        for rule, why in broken_before(situation, event):
            if rule is not ANSWERS_REQUESTS:
                yield Fault(at, rule, why)
            elif not actions:
                yield Fault(at, rule, why, idle=True)
        sent_ms, situation = situation.now_ms, situation.begun(event)
        if isinstance(event, ops.Open) and actions is None:
            situation = replace(situation, opened=None)
        # Within a wait the time of a request is not known: it counts as sent at the beginning.
        situation = situation.acted(event, actions or (), sent_ms)
        yield from (Fault(at, *each) for each in (broken_after(situation) if isinstance(event, Elapse) else ()))


def _foreseen_faults(stage: Stage, events: Iterable[ops.Event]) -> Iterator[Fault]:
    scene = stage.initial()
    for at, event in enumerate(events):
        yield from (Fault(at, *each) for each in stage.broken(scene, event))
        scene = stage.step(scene, event).state
