"""The declaration of every step with the coordinator of a classic group, by release.

Members are named by references, so that a case keeps its meaning when a reducer removes steps.
"""

from collections.abc import Mapping
from functools import cache

from kipcheck.conformance.protocols.group.model.messages import Commit, Fetch, Heartbeat, Join, Leave, Request, Sync
from kipcheck.conformance.protocols.group.model.names import OLD, UNKNOWN_MEMBER
from kipcheck.conformance.protocols.group.model.rules import INSTANCE_SINCE, Ranges
from kipcheck.conformance.protocols.group.ops import BROKER, DRAFT_JOIN, OPERATIONS, TIME, usual_version
from kipcheck.strategies.events import event
from kipcheck.strategies.nodes import Integer, Node, OneOf, Pick, Record, Row, Seq, nullable, record

CLIENTS = ("a", "b", "c", "d", "e")
"""One more than the members that a group may have."""
REFERENCES = (*CLIENTS, "", UNKNOWN_MEMBER, *(f"{each}{OLD}" for each in CLIENTS))
INSTANCES = ("i", "j")
TYPES = ("consumer", "connect", "")
TEXTS = ("x", "y", "")
NAMES = ("p", "q")
LISTS: tuple[tuple[str, ...], ...] = (("p",), ("q",), ("p", "q"), ("q", "p"), ())
"""Protocol names, the preferred one first."""
SESSIONS = (10_000, 6_000, 30_000, 5_999, 1_800_000, 1_800_001)
"""Two of them are outside the limits."""
REBALANCES = (30_000, 10_000, 60_000, 4_000)
BEHIND = (0, 1, -1, 2, None)
LOG_ERRORS = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE", "KAFKA_STORAGE_ERROR")
LONGEST_MS = 400_000
"""More than the five minutes after which a new member that does not join is removed."""
TOPICS = ("t", "u")
PARTITIONS = (0, 1)
MOST = 9
"""The highest offset."""
PROTOCOL_VERSIONS = (0, 1, 2)
"""Of KIP-429's draft."""

_REFERENCE = Pick(REFERENCES)
_OR_NONE = Pick(("", *(each for each in REFERENCES if each)))
_TEXT = Pick(TEXTS)
_DYNAMIC, _STATIC = Pick((None,)), Pick(INSTANCES)


def distinct_versions(versions: Ranges) -> Mapping[type[Request], range]:
    """The versions that can be distinguished here: without offsets in ZooKeeper, and without topics that are named
    by id.
    """
    distinct: dict[type[Request], range] = dict(versions)
    for request in (Commit, Fetch):
        first = max(1 if request is Commit else 2, versions[request].start)
        distinct[request] = range(first, min(versions[request].stop, 10))
    return distinct


@cache
def _declared(versions: tuple[tuple[type[Request], range], ...], draft: bool) -> Mapping[str, Node]:
    span = dict(versions)
    declared: dict[str, Record] = {
        "join": _by("join", _join(span[Join], draft)),
        "sync": _by("sync", _sync(span[Sync])),
        "heartbeat": _by("heartbeat", _with_member("heartbeat", Heartbeat, span[Heartbeat], behind=Pick(BEHIND))),
        "leave": _by("leave", _leave(span[Leave])),
        "commit": _by("commit", _commit(span[Commit])),
    }
    for verb in ("fetch", "describe-group", "list-groups", "delete-group"):
        asked = span[OPERATIONS.requests[verb].made]
        if asked:
            declared[verb] = _by(verb, record(version=_version(verb, asked)))
    return declared | {
        "elapse": event(TIME, "elapse", ms=Integer(1, LONGEST_MS, (3_000, 6_000, 10_000, 30_000, 300_000))),
        "fail-write": event(BROKER, "fail-write", error=Pick(LOG_ERRORS)),
        "unload": event(BROKER, "unload"),
        "load": event(BROKER, "load"),
        "loaded": event(BROKER, "loaded"),
    }


def declared(versions: Ranges, draft: bool = False) -> Mapping[str, Node]:
    """The declaration of every step by verb, for a broker that supports these versions. ``draft``: of KIP-429."""
    return _declared(tuple(distinct_versions(versions).items()), draft)


def _by(verb: str, body: Node) -> Record:
    return record(actor=Pick(CLIENTS), verb=Pick((verb,)), body=body)


def _version(verb: str, span: range) -> Pick:
    """The usual version is the simplest."""
    usual = usual_version(verb)
    order: list[int] = sorted(span, key=lambda each: abs(each - usual))
    return Pick(tuple(order))


def _since(span: range, first: int) -> range:
    return range(max(span.start, first), span.stop)


def _nameless(body: Record) -> Record:
    """Adds the variant without a group id."""
    return Record(body.fields, (("nameless", Pick((True,))),))


def _join(span: range, draft: bool) -> Node:
    lists = tuple(Row(tuple(Row((Pick((name,)), _TEXT)) for name in names)) for names in LISTS)
    fields: dict[str, Node] = {
        "protocol_type": Pick(TYPES),
        "protocols": OneOf(lists),
        "session_ms": Pick(SESSIONS),
        "rebalance_ms": Pick(REBALANCES),
    }
    more = record(protocol_version=Pick(PROTOCOL_VERSIONS), **fields) if draft else record(**fields)
    later = _since(span, DRAFT_JOIN if draft else INSTANCE_SINCE[Join])
    known = range(span.start, DRAFT_JOIN) if draft else span
    options = [_member("join", known, _DYNAMIC, record(**fields))]
    if later:
        options.append(_member("join", later, _DYNAMIC if draft else _STATIC, more))
    return _any(options)


def _sync(span: range) -> Node:
    given = Seq(Row((_REFERENCE, _TEXT)), 0, len(CLIENTS))
    fields: dict[str, Node] = {"behind": Pick(BEHIND), "assignments": given}
    plain = record(**fields, protocol_type=Pick((None,)), protocol=Pick((None,)))
    named = record(**fields, protocol_type=nullable(Pick(TYPES)), protocol=nullable(Pick(("p", "q"))))
    before, after = range(span.start, min(span.stop, 5)), _since(span, 5)
    options = [_member("sync", before, _DYNAMIC, plain)]
    if _since(before, INSTANCE_SINCE[Sync]):
        options.append(_member("sync", _since(before, INSTANCE_SINCE[Sync]), _STATIC, plain))
    if after:
        options.append(_member("sync", after, Pick((None, *INSTANCES)), named))
    return _any(options)


def _with_member(verb: str, request: type[Request], span: range, **fields: Node) -> Node:
    options = [_member(verb, span, _DYNAMIC, record(**fields))]
    if later := _since(span, INSTANCE_SINCE[request]):
        options.append(_member(verb, later, _STATIC, record(**fields)))
    return _any(options)


def _member(verb: str, span: range, instance: Pick, more: Record) -> Record:
    member = _OR_NONE if verb == "join" else _REFERENCE
    who = record(version=_version(verb, span), member=member, instance=instance)
    body = Record((*who.fields, *more.fields))
    return body if verb == "commit" else _nameless(body)


def _commit(span: range) -> Node:
    offset = Integer(0, MOST)
    one = Row((Row((Pick(TOPICS), Pick(PARTITIONS), offset)),))
    two = Row(tuple(Row((Pick(TOPICS[:1]), Pick((each,)), offset)) for each in PARTITIONS))
    return _with_member("commit", Commit, span, behind=Pick(BEHIND), offsets=OneOf((one, two)))


def _leave(span: range) -> Node:
    first = INSTANCE_SINCE[Leave]
    options = []
    if later := _since(span, first):
        batch = Seq(Row((_REFERENCE, Pick((None, *INSTANCES)))), 0, 3)
        options.append(_nameless(record(version=_version("leave", later), members=batch)))
    if before := range(span.start, min(span.stop, first)):
        alone = Row((Row((_REFERENCE, _DYNAMIC)),))
        options.append(_nameless(record(version=_version("leave", before), members=alone)))
    return _any(options)


def _any(options: list[Record]) -> Node:
    return options[0] if len(options) == 1 else OneOf(tuple(options))
