"""Laws of callbacks, of programs that report them: a user is called for each change of what it has, once."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import events, premises, terms
from kipcheck.conformance.protocols.client.invariants.law import breach, law, listed, timed
from kipcheck.conformance.protocols.client.trace import (
    OVER,
    STARTS,
    Membership,
    TracedEvent,
    events_of,
    is_answer,
    is_request,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 65

REMOVED: Final = terms.OF_THE_ID
"""The errors of a member that the coordinator has removed: others may have its partitions."""


@dataclass(slots=True)
class _User:
    """What the user of a client has, as its callbacks say."""

    has: frozenset[str] = frozenset()
    pause_ms: int = 0

    def read(self, traced: TracedEvent[events.Event]) -> None:
        event = traced.event
        if isinstance(event, STARTS):
            self.has = frozenset()
        if isinstance(event, events.Launched):
            self.pause_ms = event.pause_ms or 0
        elif isinstance(event, events.CalledBack):
            is_more = event.callback == "assigned"
            self.has = self.has.union(event.partitions) if is_more else self.has.difference(event.partitions)


@impact(
    "A user is called twice for one change, and sets up again what it has, or gives up what it has not", "wrong data",
    "ownership", "double-processing", links=("KIP-429",),
)  # fmt: skip
@law("client/calls-back-once", "grp-232", premise=(premises.CALLED, premises.CALLED))
def calls_back_once(history: History) -> Iterator[Violation]:
    """The callback for an assignment has partitions that its user had not, and one for others those that it had."""
    user, closes = _User(), tuple[str, ...]()
    for traced in trace(history):
        event = traced.event
        if isinstance(event, OVER):
            closes = ("closes",) if isinstance(event, events.Signalled) else ()
        if isinstance(event, events.CalledBack):
            is_more, named = event.callback == "assigned", frozenset(event.partitions)
            wrong = named & user.has if is_more else named - user.has
            if wrong:
                has = "which it has" if is_more else "which it has not"
                why = f"the callback for {event.callback} partitions has {listed(wrong)}, {has}"
                right = listed(named - wrong)
                yield breach(traced, why, right, listed(named), event.callback, *closes)
        user.read(traced)


@impact(
    "A user is not called for partitions that it gets or loses, and reads what it has not, or not what it has",
    "stuck group", "ownership", "double-processing", links=("KIP-429",),
)  # fmt: skip
@timed("client/calls-back-in-time", "grp-233", premise=(premises.CALLED,))
def calls_back_in_time(history: History) -> Iterator[Violation]:
    """A second after its assignment a member has called its user for it, also without partitions: it has them all.

    Where it works between two polls, it may do so that much later. Assignments of KIP-848 have ids: without metadata
    of a topic a member cannot name its partitions.
    """
    user, called, way = _User(), False, "cooperative"
    named, has_ids = None, False
    judged: Membership | None = None
    reports = any(isinstance(event, events.CalledBack) for _, event in events_of(history))
    for traced in trace(history) if reports else ():
        user.read(traced)
        now = traced.certain
        if isinstance(traced.event, events.CalledBack) and traced.event.callback == "assigned":
            called = True
        elif is_request(traced, "JoinGroup"):
            called = False
            way = "cooperative" if premises.EAGER.isdisjoint(traced.event.assignors) else "eager"
        elif is_answer(traced, "Metadata") and traced.event.sizes is not None:
            named = frozenset(traced.event.sizes)
        has_ids = has_ids or is_answer(traced, *terms.HEARTBEATS)
        if isinstance(traced.event, (*STARTS, events.CalledBack)):
            continue  # a program that ends by itself takes back what it gave: the next event of a member says more
        if now is None or now.synced_ms is None or not now.adopted or now.unread or now is judged or traced.stopped:
            continue
        is_unnamed = has_ids and named is not None and not named.issuperset(map(terms.topic_of, now.partitions))
        if _is_disturbed(traced) or is_unnamed:
            judged = now  # an error of its group may take the assignment back
        elif traced.ms > now.synced_ms + terms.GRACE_MS + 2 * user.pause_ms:
            judged = now
            kind = ("assigned",) if now.partitions - user.has else () if called else ("no call", way)
            kind = ("given up",) if user.has - now.partitions else kind
            if kind:
                why = f"the member has {listed(now.partitions)}; its callbacks gave its user {listed(user.has)}"
                yield breach(traced, why, listed(now.partitions), listed(user.has), *kind, since_ms=now.synced_ms)


def _is_disturbed(traced: TracedEvent[events.Event]) -> bool:
    fails = is_answer(traced, *terms.OF_GROUPS, *terms.GROUP_REQUESTS) and bool(traced.error)
    # A client whose user gets readers, and no list, needs the offsets at which they begin: sarama 1.61.1.
    fails = fails or (is_request(traced, "OffsetFetch") and traced.answered is None)
    return fails or is_request(traced, "JoinGroup", "LeaveGroup") or isinstance(traced.event, events.Signalled)


@impact(
    "A user takes lost partitions for revoked ones, and commits what another member reads", "double processing",
    "ownership", "double-processing", links=("KIP-429",),
)  # fmt: skip
@law("client/calls-them-lost", "grp-234", grade=Grade.SHOULD, premise=(premises.MEMBERSHIP_OVER, premises.GIVES_BACK))
def calls_them_lost(history: History) -> Iterator[Violation]:
    """Partitions of a member that its coordinator has removed are reported as lost, where its user has a callback.

    One that was to join before it was removed may have begun to revoke them.
    """
    joins = True
    for traced in trace(history):
        event = traced.event
        is_member = traced.now is not None  # else its JoinGroup is read before the line that it wrote first
        if (is_request(traced, "JoinGroup") and is_member) or traced.error == KafkaError.REBALANCE_IN_PROGRESS:
            joins = True
        elif is_answer(traced, "SyncGroup") and not traced.error:
            joins = False
        joins = joins or isinstance(event, events.Signalled)
        if not (isinstance(event, events.CalledBack) and event.callback == "revoked" and event.partitions):
            continue
        last = traced.memberships[-1] if traced.memberships else None
        if last is not None and last.error in REMOVED and not joins:
            why = (
                f"the coordinator has removed the member, and the client reports {listed(event.partitions)} as revoked"
            )
            yield breach(traced, why, "lost", "revoked", "revoked")


@impact(
    "A consumer closes without a word to its user, who cannot finish what it began", "trivia", "ownership",
    "lost-offsets",
)  # fmt: skip
@law("client/revokes-when-it-closes", "grp-235", grade=Grade.SHOULD, premise=(premises.CALLED, *premises.CLOSES))
def revokes_when_it_closes(history: History) -> Iterator[Violation]:
    """A consumer that is closed calls its user for all partitions that it gives up.

    A program that ends with an error did not close it.
    """
    user, closes = _User(), False
    for traced in trace(history):
        if isinstance(traced.event, events.Signalled):
            closes = traced.certain is not None
        elif isinstance(traced.event, events.Ended) and closes and user.has and not traced.event.code:
            why = f"the client ends, and its user has {listed(user.has)} for all that it was called"
            yield breach(traced, why, "nothing", listed(user.has), "closes")
        user.read(traced)
