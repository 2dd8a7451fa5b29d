"""Laws of LeaveGroup: a membership ends with it, and no rebalance is a reason for it."""

from collections.abc import Iterator

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import events, premises, terms
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.trace import OVER, STARTS, has_failed, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 54


@impact(
    "A consumer that has left its group goes on as its member", "double processing", "identity", "double-processing",
)  # fmt: skip
@timed("client/ends-with-its-leave", "grp-64", premise=(premises.SYNCED, premises.LEAVES))
def ends_with_its_leave(history: History) -> Iterator[Violation]:
    """A member that has sent LeaveGroup sends no heartbeat, commit or SyncGroup before it has joined again."""
    left: events.RequestSeen | None = None
    for traced in trace(history):
        if is_request(traced, "LeaveGroup"):
            left = left or traced.event
        elif is_request(traced, "JoinGroup") or isinstance(traced.event, STARTS):
            left = None
        elif left is not None and is_request(traced, *terms.GROUP_REQUESTS) and not traced.event.pipelined:
            api, late_ms = traced.event.api, traced.ms - left.ms
            if late_ms > terms.RACE_MS:
                why = f"{late_ms} ms after LeaveGroup the client sends {api}"
                yield breach(traced, why, "no request of that membership", api, api, "left", since_ms=left.ms)
                return


@impact("A consumer that reads gives up its membership", "stuck group", "gating", "needless-move")
@law("client/stays", "grp-69", premise=(premises.SYNCED, premises.AS_MEMBER))
def stays(history: History) -> Iterator[Violation]:
    """A member to which nothing fails does not leave, and joins again after REBALANCE_IN_PROGRESS.

    One whose other requests fail may leave, as kafka-go does, and so may one that is closed, that works too long
    between two polls, or that was stopped.
    """
    is_told, is_to_stay, closes, is_judged = False, False, False, True
    for traced in trace(history):
        event = traced.event
        if isinstance(event, OVER):
            closes = isinstance(event, events.Signalled)
        if isinstance(event, events.Launched) and (pause_ms := event.pause_ms or 0) > 0:
            is_judged = pause_ms + terms.GRACE_MS <= (event.max_poll_ms or 0)
        if is_answer(traced, "SyncGroup") and not traced.error:
            is_told, is_to_stay = False, is_judged and not closes
        elif is_answer(traced, "Heartbeat") and traced.error == KafkaError.REBALANCE_IN_PROGRESS:
            is_told = True
        elif is_answer(traced, "JoinGroup") or has_failed(traced) or traced.stopped:
            is_to_stay = False
        elif is_to_stay and is_request(traced, "LeaveGroup"):
            why = "the client leaves its group, which rebalances" if is_told else "the client leaves without a reason"
            kind = "rebalance" if is_told else "no reason"
            yield breach(traced, why, "a member that stays", "LeaveGroup", "LeaveGroup", kind)
            is_to_stay = False
