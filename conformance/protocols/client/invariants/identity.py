"""Laws of what a request says of its sender: member id, generation, instance id, protocol and timeouts."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import premises, terms, trace as client_trace
from kipcheck.conformance.protocols.client.events import AnswerSeen, Event, Launched, RequestSeen, Signalled, Thawed
from kipcheck.conformance.protocols.client.invariants.law import breach, law, listed
from kipcheck.conformance.protocols.declare.invariant import impact
from kipcheck.conformance.protocols.group import request_rules

PLACE = 30

INSTANCE_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}
ANOTHER: Final = "another instance id"
KEYS: Final = {"JoinGroup": "11", "SyncGroup": "14", "Heartbeat": "12", "OffsetCommit": "8"}


@impact(
    "The coordinator refuses the requests of a member", "stuck group", "identity", "stuck-group",
    accepted="A request lacks the id or generation of its member; its coordinator answered it without an error",
)  # fmt: skip
@law("client/names-itself", "grp-64", premise=(premises.JOINED, premises.AS_MEMBER))
def names_itself(history: History) -> Iterator[Violation]:
    """Each request of a member carries the member id and the generation of its last successful JoinGroup."""
    for traced in client_trace.trace(history):
        if not client_trace.is_request(traced, *terms.GROUP_REQUESTS) or not traced.memberships:
            continue
        given = traced.event.member or "", client_trace.generation_of(traced.event)
        if given == ("", -1):
            if traced.event.api != "OffsetCommit" and traced.certain is not None:
                yield breach(
                    traced, "a request without a member id", "its member id", "none", traced.event.api, "nameless"
                )
            continue
        if given in [(membership.member, membership.generation) for membership in traced.memberships]:
            continue  # what was over is judged by stops-when-fenced
        now = traced.memberships[-1]
        wrong = "generation" if given[0] == now.member else "member id"
        why = f"{traced.event.api} carries another {wrong} than the answer to the last JoinGroup"
        expected, observed = f"{now.member}, generation {now.generation}", f"{given[0]}, generation {given[1]}"
        yield breach(traced, why, expected, observed, traced.event.api, wrong)


@dataclass(slots=True)
class _Ids:
    """The member ids that a JoinGroup may carry."""

    right: set[str] = field(default_factory=lambda: {""})
    before: set[str] = field(default_factory=lambda: {""})
    """Those up to the last answer, which the client may not have read yet."""
    since: str = "the start"
    changed_ms: int = 0
    changed_on: int = 0
    """The connection of the last answer."""
    answered_ms: int = 0
    """The last answer with which a session begins anew, as clients count it: librdkafka counts no commits."""
    session_ms: int = terms.SESSION_MS
    thawed_ms: int = -terms.GRACE_MS
    """When the process went on that was stopped, and had yet to read what came meanwhile."""
    hangs: bool = False
    """Whether the program works longer than it may: a static member leaves then too, without a request."""

    def read(self, traced: client_trace.TracedEvent[Event]) -> None:
        if isinstance(traced.event, client_trace.STARTS):
            self.right = self.before = {""}
            if isinstance(traced.event, Launched):
                self.hangs = (traced.event.pause_ms or 0) > (traced.event.max_poll_ms or terms.NEVER)
        elif isinstance(traced.event, Thawed):
            self.thawed_ms = traced.ms
        elif client_trace.is_request(traced, "LeaveGroup"):
            self._set(traced, self.right | {""}, "LeaveGroup")
        elif client_trace.is_request(traced, "JoinGroup"):
            self.session_ms = client_trace.session_of(traced.event)
        elif client_trace.is_answer(traced, *terms.GROUP_REQUESTS, "JoinGroup", "LeaveGroup"):
            if traced.event.api != "OffsetCommit" and traced.error in (0, KafkaError.REBALANCE_IN_PROGRESS):
                self.answered_ms = traced.ms
            self._answered(traced)

    def _answered(self, traced: client_trace.TracedEvent[AnswerSeen]) -> None:
        event = traced.event
        to, generation = event.to or (event.member or "", None)
        if event.api == "LeaveGroup":
            if not traced.error:
                self._set(traced, {""}, "LeaveGroup")
        elif event.api == "JoinGroup" and traced.error in (0, KafkaError.MEMBER_ID_REQUIRED):
            self._set(traced, {event.member or ""}, "JoinGroup" if not traced.error else "MEMBER_ID_REQUIRED")
        elif traced.error in (KafkaError.ILLEGAL_GENERATION, KafkaError.FENCED_INSTANCE_ID):
            if "" not in self.right:  # else an answer of before forbids the id
                self._set(traced, self.right | {""}, "ILLEGAL_GENERATION")  # client/keeps-its-id
        elif traced.error == KafkaError.UNKNOWN_MEMBER_ID and to in self.right:
            now = traced.now
            known = self.right if event.api == "OffsetCommit" or now is None else set[str]()
            current = event.api == "JoinGroup" or (now is not None and generation == now.generation)
            self._set(traced, {"", *(known if current else self.right)}, "UNKNOWN_MEMBER_ID")
        elif traced.error in terms.FATAL:
            self._set(traced, self.right | {""}, "a fatal error")

    def _set(self, traced: client_trace.TracedEvent[RequestSeen | AnswerSeen], right: set[str], since: str) -> None:
        self.before, self.since = self.right, since
        self.right = right | self.right if traced.in_doubt else right
        self.changed_ms, self.changed_on = traced.ms, traced.event.connection

    def allowed(self, traced: client_trace.TracedEvent[RequestSeen]) -> set[str]:
        elsewhere = traced.event.connection != self.changed_on
        raced = traced.event.pipelined or (traced.ms <= self.changed_ms + terms.RACE_MS and elsewhere)
        raced = raced or traced.ms <= self.thawed_ms + terms.RACE_MS
        expired = traced.ms - self.answered_ms >= self.session_ms  # as far as the client can know
        return self.right | (self.before if raced else set()) | ({""} if expired or self.hangs else set())


@impact(
    "A consumer joins as a member that it is not, or leaves behind a member that no process serves", "stuck group",
    "identity", "stuck-group", "needless-move",
)  # fmt: skip
@law("client/joins-with-its-id", "grp-64", premise=(premises.JOINS,))
def joins_with_its_id(history: History) -> Iterator[Violation]:
    """JoinGroup carries the last member id that the client was sent, and none at first or after UNKNOWN_MEMBER_ID."""
    ids = _Ids()
    for traced in client_trace.trace(history):
        if client_trace.is_request(traced, "JoinGroup"):
            given, allowed = traced.event.member or "", ids.allowed(traced)
            if given not in allowed:
                kind = request_rules.Identity(given).differs(request_rules.Identity(max(allowed)))
                wanted = " or ".join(sorted(id or "none" for id in allowed))
                why = f"JoinGroup carries the member id {given or 'none'} after {ids.since}"
                yield breach(traced, why, wanted, given or "none", kind, ids.since)
        ids.read(traced)


@impact(
    "A consumer gives up its member id, and leaves a member behind that no process serves", "trivia", "identity",
    "needless-move", links=("KAFKA-13419",),
)  # fmt: skip
@law("client/keeps-its-id", "grp-83", grade=Grade.SHOULD, premise=(premises.OLD_GENERATION, premises.JOINS))
def keeps_its_id(history: History) -> Iterator[Violation]:
    """After ILLEGAL_GENERATION a client joins again with its member id."""
    id = ""
    for traced in client_trace.trace(history):
        if isinstance(traced.event, client_trace.STARTS) or client_trace.is_request(traced, "LeaveGroup"):
            id = ""
        elif client_trace.is_answer(traced, *terms.GROUP_REQUESTS) and traced.error == KafkaError.ILLEGAL_GENERATION:
            to, _ = traced.event.to or ("", -1)
            id = to if traced.now is not None and to == traced.now.member else ""
        elif client_trace.is_answer(traced) and (
            traced.error == KafkaError.UNKNOWN_MEMBER_ID or traced.error in terms.FATAL
        ):
            id = ""
        elif client_trace.is_request(traced, "JoinGroup"):
            if id and not traced.event.pipelined and not traced.event.member:
                why = "JoinGroup carries no member id after ILLEGAL_GENERATION, which says nothing of the id"
                yield breach(traced, why, id, "none", "no id", "ILLEGAL_GENERATION")
            id = ""


@impact(
    "A static member is not fenced, or loses its partitions when it restarts", "double processing", "identity",
    "double-processing", "needless-move", links=("KIP-345",),
)  # fmt: skip
@law("client/names-its-instance", "grp-85", premise=(premises.JOINED, premises.AS_MEMBER))
def names_its_instance(history: History) -> Iterator[Violation]:
    """A member whose JoinGroup has an instance id puts it into all group requests, also after it is started again.

    Another member puts an instance id into none.
    """
    static: str | None = None
    before = ""
    """The instance id of the last JoinGroup that had one."""
    highest: Mapping[str, int] = {}
    for traced in client_trace.trace(history):
        if client_trace.is_answer(traced, "ApiVersions"):
            highest = traced.event.highest or highest
        if not client_trace.is_request(traced, *INSTANCE_SINCE):
            continue
        given, since = traced.event.instance or "", INSTANCE_SINCE[traced.event.api]
        if traced.event.api == "JoinGroup" and (static is None or not traced.memberships):
            static = given if traced.event.version >= since else None
            if before and given and given != before:
                why = f"JoinGroup carries the instance id {given}, the one before it {before}"
                yield breach(traced, why, before, given, "JoinGroup", ANOTHER)
            before = given or before
            continue
        if static is None or given == static or not traced.event.member:
            continue
        if traced.event.version < since:
            offered = highest.get(KEYS[traced.event.api], -1)
            if offered < since:
                continue
            api, version = traced.event.api, traced.event.version
            why = f"{api} v{version} has no instance id; the broker offers v{offered}, which has it"
            yield breach(traced, why, f"instance id {static}", "none", api, "version without it")
            continue
        why = f"{traced.event.api} carries the instance id {given or 'none'}, JoinGroup {static or 'none'}"
        words = "no instance id", "an instance id", ANOTHER
        kind = request_rules.way(given or None, static or None, *words)
        yield breach(traced, why, static or "none", given or "none", traced.event.api, kind)


@impact(
    "The coordinator refuses SyncGroup as inconsistent", "stuck group", "identity", "stuck-group", links=("KIP-559",),
    accepted="SyncGroup names another protocol than its generation has; its coordinator answered it without an error",
)  # fmt: skip
@law("client/names-its-protocol", "grp-86", premise=(premises.JOINED, premises.SYNCS_WITH_PROTOCOL))
def names_its_protocol(history: History) -> Iterator[Violation]:
    """From version 5 on SyncGroup carries the type of consumers and the protocol in the answer to JoinGroup."""
    chosen: dict[int, str | None] = {}
    for traced in client_trace.trace(history):
        if client_trace.is_answer(traced, "JoinGroup") and not traced.error:
            chosen[client_trace.generation_of(traced.event)] = traced.event.protocol
        if client_trace.is_request(traced, "SyncGroup") and traced.event.version >= request_rules.PROTOCOL_SINCE:
            wanted = chosen.get(client_trace.generation_of(traced.event))
            given = {"type": traced.event.type, "protocol": traced.event.protocol}
            wrong = next(request_rules.unequal(given, request_rules.chosen_protocol(wanted)), None)
            if wanted is not None and wrong is not None:
                type, protocol = given.values()
                why = f"SyncGroup carries the type {type or 'none'} and the protocol {protocol or 'none'}"
                yield breach(traced, why, f"{request_rules.CONSUMER}, {wanted}", f"{type}, {protocol}", wrong[0])


@impact(
    "A group uses other timeouts or assignors than the user configured", "stuck group", "gating", "stuck-group",
    "needless-move",
)  # fmt: skip
@law("client/keeps-its-settings", "grp-84", "grp-87", premise=(premises.JOINS,))
def keeps_its_settings(history: History) -> Iterator[Violation]:
    """Each JoinGroup offers the same assignors in the same order, with the timeouts that the client was given."""
    wanted: dict[str, Any] = {"type": request_rules.CONSUMER}
    started: dict[str, Any] = {}
    for traced in client_trace.trace(history):
        event = traced.event
        if isinstance(event, Launched):
            started = _settings(event, [*(event.assignors or ())])
            started = {name: value for name, value in started.items() if value}
            wanted |= started
        if not client_trace.is_request(traced, "JoinGroup"):
            continue
        offered = [*traced.event.assignors]
        given = {"type": traced.event.type, **_settings(traced.event, offered)}
        for name, value in given.items():
            if value is not None and value != wanted.setdefault(name, value):
                shown = WORDS.get(name, name)
                given_as = f", and the program is started with {started[name]} as {{{name}}}" if name in started else ""
                why = f"JoinGroup has the {shown} {value}{given_as}"
                yield breach(traced, why, str(wanted[name]), str(value), "setting", shown)
        if not offered or len({*offered}) < len(offered):
            why = "JoinGroup offers one assignor twice" if offered else "JoinGroup offers no assignor"
            yield breach(traced, why, "each assignor once", ", ".join(offered), "setting", "repeated assignors")


def _settings(event: Launched | RequestSeen, assignors: list[str]) -> dict[str, Any]:
    """A program that is given the longest time between two polls, and no rebalance timeout, uses the one for both."""
    rebalance_ms = event.rebalance_ms
    if isinstance(event, Launched) and rebalance_ms is None:
        rebalance_ms = event.max_poll_ms
    return {"session_ms": event.session_ms, "rebalance_ms": rebalance_ms, "assignors": assignors}


WORDS: Final = {"session_ms": "session timeout", "rebalance_ms": "rebalance timeout", "type": "protocol type"}


@impact("Topics that the user subscribed to have no reader, or others are read", "stuck group", "gating", "stuck-group")
@law("client/names-its-topics", "grp-62", premise=(premises.HAS_TOPICS, premises.SUBSCRIBES))
def names_its_topics(history: History) -> Iterator[Violation]:
    """Each subscription, in JoinGroup or a heartbeat of KIP-848, names the topics that the program was given.

    One that the client was not shown to exist may be missing, as in franz-go, which joins again once it is. A client
    that is closed may have unsubscribed. A program that subscribes by a pattern names topics that match it, as far as
    it knows them; a heartbeat may have the pattern instead.
    """
    given: frozenset[str] | None = None
    undescribed = frozenset[str]()
    pattern: str | None = None
    for traced in client_trace.trace(history):
        if isinstance(traced.event, client_trace.STARTS):
            topics = traced.event.topics if isinstance(traced.event, Launched) else None
            pattern = traced.event.pattern if isinstance(traced.event, Launched) else None
            given, undescribed = frozenset(topics or ()) or None, frozenset()
        elif isinstance(traced.event, Signalled):
            given = None
        elif client_trace.is_answer(traced, "Metadata") and given is not None:
            lacks = traced.error or traced.event.missing
            undescribed = given.difference(traced.event.sizes or ()) if lacks else frozenset()
        if given is None:
            continue
        for api, named in _named(traced):
            if pattern is not None and all(re.fullmatch(pattern, topic) for topic in named):
                continue
            if named - given or given - named - undescribed:
                how, wrong = ("adds", named - given) if named - given else ("omits", given - named - undescribed)
                why = f"the subscription in {api} {how} {listed(wrong)}; the program was given {listed(given)}"
                yield breach(traced, why, listed(given), listed(named), "topics", how)
                break


def _named(traced: client_trace.TracedEvent[Event]) -> Iterator[tuple[str, frozenset[str]]]:
    """The API and the topics of each subscription of a request that can be read."""
    if client_trace.is_request(traced, "JoinGroup"):
        subscriptions = filter(None, traced.event.subscriptions or ())
        yield from (("JoinGroup", frozenset(subscription.topics)) for subscription in subscriptions)
    elif (
        client_trace.is_request(traced, *terms.HEARTBEATS)
        and client_trace.generation_of(traced.event) >= 0
        and traced.event.topics is not None
    ):
        yield traced.event.api, frozenset(traced.event.topics)
