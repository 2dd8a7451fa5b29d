"""Laws of what a request says of its sender: member id, generation, instance id, protocol and timeouts."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client.invariants.law import breach, law, listed
from kipcheck.conformance.protocols.client.premises import (
    AS_MEMBER,
    HAS_TOPICS,
    JOINED,
    JOINS,
    OLD_GENERATION,
    PROTOCOL_SINCE,
    SUBSCRIBES,
    SYNCS_WITH_PROTOCOL,
)
from kipcheck.conformance.protocols.client.trace import (
    FATAL,
    FENCED_INSTANCE_ID,
    GROUP_REQUESTS,
    HEARTBEAT,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    RACE_MS,
    REBALANCE_IN_PROGRESS,
    STARTS,
    UNKNOWN_MEMBER_ID,
    Happened,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 30

INSTANCE_SINCE: Final = {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "OffsetCommit": 7}
KEYS: Final = {"JoinGroup": "11", "SyncGroup": "14", "Heartbeat": "12", "OffsetCommit": "8"}
CONSUMER: Final = "consumer"
SESSION_MS: Final = 3000


@impact(
    "The coordinator refuses the requests of a member", "stuck group", "identity", "stuck-group",
    accepted="A request lacks the id or generation of its member; its coordinator answered it without an error",
)  # fmt: skip
@law("client/names-itself", "grp-64", premise=(JOINED, AS_MEMBER))
def names_itself(history: History) -> Iterator[Violation]:
    """Each request of a member carries the member id and the generation of its last successful JoinGroup."""
    for each in trace(history):
        if not each.is_request(*GROUP_REQUESTS) or not each.memberships:
            continue
        given = each.event.get("member", ""), each.event.get("generation", -1)
        if given == ("", -1):
            if each.api != "OffsetCommit" and each.certain is not None:
                yield breach(each, "a request without a member id", "its member id", "none", each.api, "nameless")
            continue
        known = [(one.member, one.generation) for one in each.memberships]
        if given in known:
            continue  # what was over is judged by stops-when-fenced
        now = each.memberships[-1]
        wrong = "generation" if given[0] == now.member else "member id"
        why = f"{each.api} carries another {wrong} than the answer to the last JoinGroup"
        expected, observed = f"{now.member}, generation {now.generation}", f"{given[0]}, generation {given[1]}"
        yield breach(each, why, expected, observed, each.api, wrong)


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
    session_ms: int = SESSION_MS

    def read(self, each: Happened) -> None:
        if each.what in STARTS:
            self.right = self.before = {""}
        elif each.is_request("LeaveGroup"):
            self._set(each, self.right | {""}, "LeaveGroup")
        elif each.is_request("JoinGroup"):
            self.session_ms = each.event.get("session_ms", SESSION_MS)
        elif each.is_answer(*GROUP_REQUESTS, "JoinGroup", "LeaveGroup"):
            if each.api != "OffsetCommit" and each.error in (0, REBALANCE_IN_PROGRESS):
                self.answered_ms = each.ms
            self._answered(each)

    def _answered(self, each: Happened) -> None:
        to = each.event.get("to", [each.event.get("member", "")])[0]
        if each.api == "LeaveGroup":
            if not each.error:
                self._set(each, {""}, "LeaveGroup")
        elif each.api == "JoinGroup" and each.error in (0, MEMBER_ID_REQUIRED):
            self._set(each, {each.event["member"]}, "JoinGroup" if not each.error else "MEMBER_ID_REQUIRED")
        elif each.error in (ILLEGAL_GENERATION, FENCED_INSTANCE_ID):
            self._set(each, self.right | {""}, "ILLEGAL_GENERATION")  # client/keeps-its-id
        elif each.error == UNKNOWN_MEMBER_ID and to in self.right:
            known = self.right if each.api == "OffsetCommit" or each.now is None else set[str]()
            current = each.api == "JoinGroup" or (each.now is not None and each.event["to"][1] == each.now.generation)
            self._set(each, {"", *(known if current else self.right)}, "UNKNOWN_MEMBER_ID")
        elif each.error in FATAL:
            self._set(each, self.right | {""}, "a fatal error")

    def _set(self, each: Happened, right: set[str], since: str) -> None:
        self.before, self.since = self.right, since
        self.right = right | self.right if each.in_doubt else right
        self.changed_ms, self.changed_on = each.ms, each.event["connection"]

    def allowed(self, each: Happened) -> set[str]:
        raced = each.pipelined or (each.ms <= self.changed_ms + RACE_MS and each.event["connection"] != self.changed_on)
        expired = each.ms - self.answered_ms >= self.session_ms  # as far as the client can know
        return self.right | (self.before if raced else set()) | ({""} if expired else set())


@impact(
    "A consumer joins as a member that it is not, or leaves behind a member that no process serves",
    "stuck group",
    "identity",
    "stuck-group",
    "needless-move",
)
@law("client/joins-with-its-id", "grp-64", premise=(JOINS,))
def joins_with_its_id(history: History) -> Iterator[Violation]:
    """JoinGroup carries the last member id that the client was sent, and none at first or after UNKNOWN_MEMBER_ID."""
    ids = _Ids()
    for each in trace(history):
        if each.is_request("JoinGroup"):
            given, allowed = each.event.get("member", ""), ids.allowed(each)
            if given not in allowed:
                kind = "no id" if not given else "an id" if allowed == {""} else "another id"
                wanted = " or ".join(sorted(one or "none" for one in allowed))
                why = f"JoinGroup carries the member id {given or 'none'} after {ids.since}"
                yield breach(each, why, wanted, given or "none", kind, ids.since)
        ids.read(each)


@impact(
    "A consumer gives up its member id, and leaves a member behind that no process serves",
    "trivia",
    "identity",
    "needless-move",
    links=("KAFKA-13419",),
)
@law("client/keeps-its-id", "grp-83", grade=Grade.SHOULD, premise=(OLD_GENERATION, JOINS))
def keeps_its_id(history: History) -> Iterator[Violation]:
    """After ILLEGAL_GENERATION a client joins again with its member id."""
    id = ""
    for each in trace(history):
        if each.what in STARTS or each.is_request("LeaveGroup"):
            id = ""
        elif each.is_answer(*GROUP_REQUESTS) and each.error == ILLEGAL_GENERATION:
            id = each.event["to"][0] if each.now is not None and each.event["to"][0] == each.now.member else ""
        elif each.is_answer() and (each.error == UNKNOWN_MEMBER_ID or each.error in FATAL):
            id = ""
        elif each.is_request("JoinGroup"):
            if id and not each.pipelined and not each.event.get("member"):
                why = "JoinGroup carries no member id after ILLEGAL_GENERATION, which says nothing of the id"
                yield breach(each, why, id, "none", "no id", "ILLEGAL_GENERATION")
            id = ""


@impact(
    "A static member is not fenced, or loses its partitions when it restarts",
    "double processing",
    "identity",
    "double-processing",
    "needless-move",
    links=("KIP-345",),
)
@law("client/names-its-instance", "grp-85", premise=(JOINED, AS_MEMBER))
def names_its_instance(history: History) -> Iterator[Violation]:
    """A member whose JoinGroup has an instance id puts it into all group requests; another puts it into none."""
    static: str | None = None
    highest: dict[str, int] = {}
    for each in trace(history):
        if each.is_answer("ApiVersions"):
            highest = each.event.get("highest") or highest
        if not each.is_request(*INSTANCE_SINCE):
            continue
        given, since = each.event.get("instance", ""), INSTANCE_SINCE[each.api]
        if each.api == "JoinGroup" and (static is None or not each.memberships):
            static = given if each.event["version"] >= since else None
            continue
        if static is None or given == static or not each.event.get("member"):
            continue
        if each.event["version"] < since:
            offered = highest.get(KEYS[each.api], -1)
            if offered < since:
                continue
            why = f"{each.api} v{each.event['version']} has no instance id; the broker offers v{offered}, which has it"
            yield breach(each, why, f"instance id {static}", "none", each.api, "version without it")
            continue
        why = f"{each.api} carries the instance id {given or 'none'}, JoinGroup {static or 'none'}"
        kind = "no instance id" if not given else "an instance id" if not static else "another instance id"
        yield breach(each, why, static or "none", given or "none", each.api, kind)


@impact(
    "The coordinator refuses SyncGroup as inconsistent", "stuck group", "identity", "stuck-group", links=("KIP-559",),
    accepted="SyncGroup names another protocol than its generation has; its coordinator answered it without an error",
)  # fmt: skip
@law("client/names-its-protocol", "grp-86", premise=(JOINED, SYNCS_WITH_PROTOCOL))
def names_its_protocol(history: History) -> Iterator[Violation]:
    """From version 5 on SyncGroup carries the type of consumers and the protocol in the answer to JoinGroup."""
    chosen: dict[int, str] = {}
    for each in trace(history):
        if each.is_answer("JoinGroup") and not each.error:
            chosen[each.event["generation"]] = each.event["protocol"]
        if each.is_request("SyncGroup") and each.event["version"] >= PROTOCOL_SINCE:
            wanted = chosen.get(each.event["generation"])
            given = each.event.get("type"), each.event.get("protocol")
            if wanted is not None and given != (CONSUMER, wanted):
                wrong = "protocol" if given[0] == CONSUMER else "type"
                why = f"SyncGroup carries the type {given[0] or 'none'} and the protocol {given[1] or 'none'}"
                yield breach(each, why, f"{CONSUMER}, {wanted}", f"{given[0]}, {given[1]}", wrong)


@impact(
    "A group uses other timeouts or assignors than the user configured",
    "stuck group",
    "gating",
    "stuck-group",
    "needless-move",
)
@law("client/keeps-its-settings", "grp-84", "grp-87", premise=(JOINS,))
def keeps_its_settings(history: History) -> Iterator[Violation]:
    """Each JoinGroup offers the same assignors in the same order, with the timeouts that the client was given."""
    wanted: dict[str, Any] = {"type": CONSUMER}
    started: dict[str, Any] = {}
    for each in trace(history):
        if each.what == "launched":
            names = ("session_ms", "rebalance_ms", "assignors")
            started = {name: each.event[name] for name in names if each.event.get(name)}
            wanted |= started
        if not each.is_request("JoinGroup"):
            continue
        offered = [name for name, _ in each.event["protocols"]]
        given = {name: each.event[name] for name in ("type", "session_ms", "rebalance_ms") if name in each.event}
        for name, value in {**given, "assignors": offered}.items():
            if value != wanted.setdefault(name, value):
                shown = WORDS.get(name, name)
                given_as = f", and the program is started with {started[name]} as {{{name}}}" if name in started else ""
                why = f"JoinGroup has the {shown} {value}{given_as}"
                yield breach(each, why, str(wanted[name]), str(value), "setting", shown)
        if not offered or len({*offered}) < len(offered):
            why = "JoinGroup offers one assignor twice" if offered else "JoinGroup offers no assignor"
            yield breach(each, why, "each assignor once", ", ".join(offered), "setting", "repeated assignors")


WORDS: Final = {"session_ms": "session timeout", "rebalance_ms": "rebalance timeout", "type": "protocol type"}


@impact("Topics that the user subscribed to have no reader, or others are read", "stuck group", "gating", "stuck-group")
@law("client/names-its-topics", "grp-62", premise=(HAS_TOPICS, SUBSCRIBES))
def names_its_topics(history: History) -> Iterator[Violation]:
    """Each subscription, in JoinGroup or a heartbeat of KIP-848, names the topics that the program was given.

    One that the client was not shown to exist may be missing, as in franz-go, which joins again once it is. A client
    that is closed may have unsubscribed.
    """
    given: frozenset[str] | None = None
    undescribed = frozenset[str]()
    for each in trace(history):
        if each.what in STARTS:
            given, undescribed = frozenset(each.event.get("topics", ())) or None, frozenset()
        elif each.what == "signalled":
            given = None
        elif each.is_answer("Metadata") and given is not None:
            undescribed = given.difference(each.event.get("sizes", ())) if each.error else frozenset()
        if given is None:
            continue
        for named in _named(each):
            if named - given or given - named - undescribed:
                how, topics = ("adds", named - given) if named - given else ("omits", given - named - undescribed)
                why = f"the subscription in {each.api} {how} {listed({*topics})}; the program was given {listed(given)}"
                yield breach(each, why, listed(given), listed(named), "topics", how)
                break


def _named(each: Happened) -> Iterator[frozenset[str]]:
    """The topics of each subscription of a request that can be read."""
    if each.is_request("JoinGroup"):
        yield from (frozenset(found["topics"]) for found in each.event["subscriptions"] if found is not None)
    elif each.is_request(HEARTBEAT) and each.event.get("generation", -1) >= 0 and "topics" in each.event:
        yield frozenset(each.event["topics"])
