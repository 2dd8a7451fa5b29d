"""The declaration of every step with a consumer of a classic group: by its user, its coordinator and time.

The coordinator's responses are complete, ids included, so that a case keeps its meaning when a reducer removes steps.
"""

from collections.abc import Mapping
from functools import cache

from kipcheck.conformance.protocols.assignment.model.assignment import (
    COOPERATIVE as COOPERATIVE_STICKY,
    RANGE,
    ROUNDROBIN,
    STICKY,
)
from kipcheck.conformance.protocols.assignment.model.membership import COOPERATIVE, EAGER
from kipcheck.conformance.protocols.member.model.conversation_repair import GENERATIONS
from kipcheck.conformance.protocols.member.model.rules import Rules
from kipcheck.conformance.protocols.member.ops import ANSWER_VERB, COORDINATOR, INCREMENTAL, OPERATIONS
from kipcheck.strategies.events import event
from kipcheck.strategies.nodes import Flag, Integer, Node, OneOf, Pick, Record, Row, Scalar, Seq, record

TOPICS = ("t", "u")
SIZES = (2, 1, 3)
"""Numbers of partitions of a topic."""
ME = ("m1", "m2")
"""Ids of the member under test."""
OTHERS = ("n1", "n2")
INSTANCE = "i"
RACK = "r"
EAGER_LISTS: tuple[tuple[str, ...], ...] = ((RANGE,), (STICKY,), (ROUNDROBIN, RANGE))
LISTS: tuple[tuple[str, ...], ...] = (
    *EAGER_LISTS,
    (COOPERATIVE_STICKY,),
    (RANGE, COOPERATIVE_STICKY),
    (COOPERATIVE_STICKY, RANGE),
    (INCREMENTAL,),
    (INCREMENTAL, COOPERATIVE_STICKY),
    (INCREMENTAL, RANGE),
)
"""Assignors. The assignors of the last list have no protocol in common."""
SEARCHES = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
JOIN_ERRORS = (
    "UNKNOWN_MEMBER_ID", "NOT_COORDINATOR", "FENCED_INSTANCE_ID", "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS", "MEMBER_ID_REQUIRED", "GROUP_MAX_SIZE_REACHED", "INCONSISTENT_GROUP_PROTOCOL",
    "INVALID_SESSION_TIMEOUT", "GROUP_AUTHORIZATION_FAILED",
)  # fmt: skip
SYNC_ERRORS = (
    "REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", *SEARCHES, "FENCED_INSTANCE_ID",
    "GROUP_AUTHORIZATION_FAILED",
)  # fmt: skip
BEAT_ERRORS = ("REBALANCE_IN_PROGRESS", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", *SEARCHES, "FENCED_INSTANCE_ID")
LEAVE_ERRORS = ("UNKNOWN_MEMBER_ID", *SEARCHES)
COMMIT_ERRORS = (
    "ILLEGAL_GENERATION", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "REBALANCE_IN_PROGRESS",
    "UNKNOWN_MEMBER_ID", "COORDINATOR_NOT_AVAILABLE", "FENCED_INSTANCE_ID", "GROUP_AUTHORIZATION_FAILED",
    "OFFSET_METADATA_TOO_LARGE",
)  # fmt: skip
FENCED = "FENCED_INSTANCE_ID"
ELAPSES = (200, 3_000, 10_000, 20_000, 60_000, 50)
"""The end of a back-off, of a heartbeat interval, of a session, of a third of the poll interval, of all of it; and less
than any of them. No request is pending for all of the poll interval, except a JoinGroup.
"""


def _row(*names: Scalar) -> Row:
    return Row(tuple(Pick((each,)) for each in names))


MOST = len(TOPICS) * max(SIZES)
"""The number of partitions."""
_SOME_TOPICS = OneOf((_row("t"), _row("t", "u"), _row("u")))
_CLUSTER = Row(tuple(Row((Pick((name,)), Pick(SIZES))) for name in TOPICS))
_PARTITIONS = Seq(Row((Pick(TOPICS), Integer(0, 2))), 0, MOST)


def known_lists(rules: Rules) -> tuple[tuple[str, ...], ...]:
    """The draft's members have one assignor; the cooperative ones came with 2.4.0."""
    if rules.draft:
        return EAGER_LISTS[:1]
    return LISTS if rules.incremental else EAGER_LISTS


def known_errors(errors: tuple[str, ...], rules: Rules) -> tuple[str, ...]:
    """Members without an instance id are never fenced."""
    return errors if rules.static else tuple(each for each in errors if each != FENCED)


@cache
def declared(rules: Rules) -> Mapping[str, Node]:
    """The declaration of every step by verb, for consumers of a release or the draft."""
    return {
        "member-open": _called("member-open", _open(rules)),
        "member-subscribe": _called("member-subscribe", record(topics=_SOME_TOPICS)),
        "member-poll": _called("member-poll", record()),
        ANSWER_VERB: event(COORDINATOR, ANSWER_VERB, OneOf((*_joined(rules), *_synced(rules), *_plain(rules)))),
        "member-elapse": _called("member-elapse", record(ms=Pick(ELAPSES))),
        "member-disconnected": _called("member-disconnected", record()),
        "member-commit": _called(
            "member-commit", record(offsets=Seq(Row((Pick(TOPICS), Integer(0, 2), Integer(0, 9))), 1, 2))
        ),
        "member-metadata": _called("member-metadata", record(topics=_CLUSTER)),
        "member-unsubscribe": _called("member-unsubscribe", record()),
        "member-close": _called("member-close", record()),
    }


def _called(verb: str, body: Node) -> Record:
    return event(OPERATIONS.by_verb[verb].actor, verb, body)


def _open(rules: Rules) -> Node:
    return record(
        assignors=OneOf(tuple(_row(*each) for each in known_lists(rules))),
        topics=_CLUSTER,
        instance=Pick((None, INSTANCE) if rules.static else (None,)),
        rack=Pick((None, RACK) if rules.subscription >= 3 else (None,)),
        protocol=Pick((None, EAGER, COOPERATIVE) if rules.draft else (None,)),
    )


def _types(named: bool) -> Pick:
    """The protocol type of a response, in versions that have it."""
    return Pick(("consumer",) if named else (None,))


def _names(rules: Rules) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in known_lists(rules) for name in names))


def _joined(rules: Rules) -> tuple[Record, ...]:
    subscription = record(
        topics=_SOME_TOPICS,
        version=Integer(0, rules.subscription),
        owned=_PARTITIONS,
        generation=Integer(-1, GENERATIONS),
        rack=Pick((None, RACK)),
        data=_PARTITIONS,
        data_generation=Integer(-1, GENERATIONS),
    )
    member = Row((Pick((*OTHERS, *ME)), Pick((None, INSTANCE)), subscription))
    well = record(
        answer=Pick(("joined",)),
        error=Pick(("NONE",)),
        generation=Integer(1, GENERATIONS),
        protocol_type=_types(rules.join >= 7),
        protocol=Pick(_names(rules)),
        leader=Pick((*OTHERS, *ME)),
        member=Pick(ME),
        members=Seq(member, 0, 3),
        skip_assignment=Flag() if rules.join >= 9 else Pick((False,)),
    )
    errors = known_errors(JOIN_ERRORS, rules)
    failed = record(answer=Pick(("joined",)), error=Pick(errors))
    return well, Record(failed.fields, (("member", Pick(ME)),))


def _synced(rules: Rules) -> tuple[Record, ...]:
    assigned = record(partitions=_PARTITIONS, error=Pick((0, 1) if rules.draft else (0,)))
    well = record(
        answer=Pick(("synced",)),
        error=Pick(("NONE",)),
        protocol_type=_types(rules.sync >= 5),
        protocol=Pick(_names(rules) if rules.sync >= 5 else (None,)),
        assignment=OneOf((assigned, Pick(("",)))),
    )
    return well, record(answer=Pick(("synced",)), error=Pick(known_errors(SYNC_ERRORS, rules)))


def _plain(rules: Rules) -> tuple[Record, ...]:
    answers = (("beat", BEAT_ERRORS), ("committed", COMMIT_ERRORS), ("left", LEAVE_ERRORS))
    return tuple(
        record(answer=Pick((name,)), error=Pick(("NONE", *known_errors(errors, rules)))) for name, errors in answers
    )
