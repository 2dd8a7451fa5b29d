"""Laws of share consumers (KIP-932): what they acknowledge, and their share sessions with each node."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.consequences import after_closing
from kipcheck.conformance.protocols.client.events import AnswerSeen, Closed, Ended, Frozen, RequestSeen, Signalled
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_SHARES, breach, law, listed, timed
from kipcheck.conformance.protocols.client.trace import OVER, STARTS, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 80

FETCH, ACKNOWLEDGE = "ShareFetch", "ShareAcknowledge"
BEGINS, ENDS = 0, -1
"""Epochs of share sessions."""
RENEWS: Final = 4
"""The type of an acknowledgement that leaves the record acquired (KIP-1222)."""
OVER_ERRORS: Final = (KafkaError.SHARE_SESSION_NOT_FOUND, KafkaError.INVALID_SHARE_SESSION_EPOCH)
"""The errors after which the broker has no such session."""
SHARE_MS: Final = 3000
"""The longest time until an assigned partition is in a share session: ten heartbeat intervals of a script."""
MOST_OFFSETS: Final = 10_000
"""Of one acknowledgement that are read."""


def _records(ranges: tuple[tuple[str, int, int], ...]) -> Iterator[tuple[str, int]]:
    for partition, first, last in ranges:
        yield from ((partition, offset) for offset in range(first, min(last, first + MOST_OFFSETS) + 1))


def _acknowledged(request: RequestSeen) -> Iterator[tuple[str, int]]:
    """The records that a request gives back to the broker."""
    return _records(tuple(each[:3] for each in request.acknowledged or () if each[3] != RENEWS))


def _named(record: tuple[str, int]) -> str:
    return f"{record[0]}@{record[1]}"


@impact(
    "A consumer acknowledges records that it was not given: those of another member may be lost", "wrong data",
    "claims", "lost-offsets", links=("KIP-932",),
)  # fmt: skip
@law(
    "client/acknowledges-what-it-acquired", "grp-394", premise=(premises.ACQUIRED, premises.ACKNOWLEDGES),
    checks=(SURVIVES_SHARES,),
)  # fmt: skip
def acknowledges_what_it_acquired(history: History) -> Iterator[Violation]:
    """Acknowledgements name only records that the client acquired since it was started."""
    acquired = set[tuple[str, int]]()
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            acquired.clear()
        elif is_answer(traced, FETCH):
            acquired.update(_records(traced.event.acquired or ()))
        elif is_request(traced, FETCH, ACKNOWLEDGE):
            whole = tuple(each[:3] for each in traced.event.acknowledged or ())
            strange = sorted({*_records(whole)} - acquired)
            if strange:
                shown = listed(map(_named, strange))
                yield breach(traced, f"{traced.event.api} acknowledges {shown}", "acquired records", shown, "strange")


@impact(
    "A consumer acknowledges a record again, which another member may have by now", "wrong data", "claims",
    "lost-offsets",    links=("KIP-932",),
)  # fmt: skip
@law(
    "client/acknowledges-once", "grp-395", premise=(premises.ACQUIRED, premises.ACKNOWLEDGES),
    checks=(SURVIVES_SHARES,),
)  # fmt: skip
def acknowledges_once(history: History) -> Iterator[Violation]:
    """A record whose acknowledgement was answered without an error is acknowledged again only if it is acquired again.

    One that renews the acquisition does not count.
    """
    done = set[tuple[str, int]]()
    waiting: dict[int, RequestSeen] = {}
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            done.clear()
            waiting.clear()
        elif is_request(traced, FETCH, ACKNOWLEDGE):
            again = sorted(done.intersection(_acknowledged(traced.event)))
            if again:
                shown = listed(map(_named, again))
                yield breach(traced, f"{traced.event.api} acknowledges {shown} again", "once", "twice", "again")
            waiting[traced.event.connection] = traced.event
        elif is_answer(traced, FETCH, ACKNOWLEDGE):
            request = waiting.pop(traced.event.connection, None)
            if request is not None and not traced.error and not traced.in_doubt:
                done.update(_acknowledged(request))
            done.difference_update(_records(traced.event.acquired or ()))


@impact(
    "A consumer sends the epochs of a share session out of order", "double processing",
    "epochs", "double-processing", links=("KIP-932",),
)  # fmt: skip
@law(
    "client/numbers-its-share-sessions",
    "grp-396",
    premise=(premises.SHARES, premises.SHARES),
    checks=(SURVIVES_SHARES,),
)
def numbers_its_share_sessions(history: History) -> Iterator[Violation]:
    """Epochs of a share session begin with 0 and rise by one; -1 ends it, and so does an error about the session.

    A session is one of a connection. One that begins on another connection may have any epoch: it may go on.
    """
    last: dict[int, int] = {}
    over: dict[int, AnswerSeen] = {}
    for traced in trace(history):
        connection = traced.connection
        if isinstance(traced.event, STARTS):
            last.clear()
            over.clear()
        elif is_answer(traced, FETCH, ACKNOWLEDGE) and traced.error in OVER_ERRORS:
            over[connection] = traced.event
        elif is_request(traced, FETCH, ACKNOWLEDGE) and (epoch := traced.event.session_epoch) is not None:
            before = last.get(connection)
            if epoch > BEGINS and connection in over and not traced.event.pipelined:
                why = f"{traced.event.api} has epoch {epoch} after error {over[connection].error}"
                yield breach(traced, why, "0, to begin a session", str(epoch), "after an error")
            elif epoch > BEGINS and before is not None and epoch != before + 1:
                wanted = "0, to begin a session" if before == ENDS else str(before + 1)
                why = f"{traced.event.api} has epoch {epoch} after {before}"
                yield breach(traced, why, wanted, str(epoch), "after its end" if before == ENDS else "epoch")
            over.pop(connection, None)
            last[connection] = epoch


@impact(
    "Records that a closed consumer has are delivered to others only when their locks expire", "stuck group", "gating",
    "unread-partition", links=("KIP-932",),
)  # fmt: skip
@law(
    "client/ends-its-share-sessions", "grp-397", grade=Grade.SHOULD,
    premise=(premises.SHARES, premises.SIGNALLED, premises.ENDED), follows=after_closing, checks=(SURVIVES_SHARES,),
)  # fmt: skip
def ends_its_share_sessions(history: History) -> Iterator[Violation]:
    """A consumer that is closed ends each of its share sessions with epoch -1.

    Not one whose connection was lost, or whose last request was answered with an error.
    """
    going = set[int]()
    signalled = False
    for traced in trace(history):
        connection = traced.connection
        if isinstance(traced.event, Signalled):
            signalled = True
        elif isinstance(traced.event, Closed) and traced.event.why:
            going.discard(connection)
        elif is_answer(traced, FETCH, ACKNOWLEDGE):
            if traced.error or traced.in_doubt:
                going.discard(connection)
        elif is_request(traced, FETCH, ACKNOWLEDGE):
            (going.discard if traced.event.session_epoch == ENDS else going.add)(connection)
        elif isinstance(traced.event, Ended) and signalled and going and not traced.shut_out:
            yield breach(traced, f"{len(going)} share sessions had no last request", "epoch -1", "none", "no end")
        if isinstance(traced.event, STARTS):
            going.clear()
            signalled = False


@impact(
    "Records of a partition are delivered to no member", "stuck group", "ownership", "unread-partition",
    links=("KIP-932",),
)  # fmt: skip
@timed(
    "client/shares-what-it-is-assigned", "grp-398", premise=(premises.BEATS_TO_SHARE, premises.ASSIGNED),
    checks=(SURVIVES_SHARES,),
)  # fmt: skip
def shares_what_it_is_assigned(history: History) -> Iterator[Violation]:
    """Each assigned partition is in a share session within 3 s.

    They begin when it is assigned, and anew with the last error or lost connection.
    """
    sessions: dict[int, set[str]] = {}
    quiet_ms, is_shared = 0, False
    for traced in trace(history):
        connection = traced.connection
        is_shared = is_shared or is_request(traced, terms.SHARE_HEARTBEAT)
        if isinstance(traced.event, (*OVER, Frozen)) or traced.stopped:
            sessions, quiet_ms = ({} if isinstance(traced.event, STARTS) else sessions), terms.NEVER
        elif isinstance(traced.event, Closed) or traced.error:
            quiet_ms = traced.ms
            if isinstance(traced.event, Closed) or traced.error in OVER_ERRORS:
                sessions.pop(connection, None)
        elif is_request(traced, FETCH):
            quiet_ms = 0 if quiet_ms == terms.NEVER else quiet_ms
            known = set[str]() if traced.event.session_epoch == BEGINS else sessions.get(connection, set())
            sessions[connection] = (known | {*(traced.event.partitions or ())}) - {*(traced.event.forgotten or ())}
        elif is_shared and traced.certain is not None and quiet_ms != terms.NEVER:
            since_ms = max(quiet_ms, traced.certain.since_ms)
            missing = traced.certain.partitions.difference(*sessions.values())
            if missing and traced.ms > since_ms + SHARE_MS:
                why = f"{traced.ms - since_ms} ms after it was assigned {listed(missing)}, no share session has them"
                yield breach(traced, why, "a share session", "none", "no session", since_ms=since_ms)
                return
