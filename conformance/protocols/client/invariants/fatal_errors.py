"""Laws of errors that no client recovers from: its user has to be sent them."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import error_name
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.events import AnswerSeen, Launched
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL, breach, law
from kipcheck.conformance.protocols.client.trace import OVER, generation_of, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 55

REPEATS: Final = 3
"""A client that raises an error may have sent one more request meanwhile, of another thread."""


@impact(
    "A consumer goes on with a group that it cannot be in, and its user is sent no error", "stuck group", "waiting",
    "stuck-group", links=("KIP-848",),
)  # fmt: skip
@law("client/stops-at-an-ending", "grp-197", "grp-386", "grp-393", checks=OF_ALL, premise=(premises.ENDING_BEAT,))
def stops_at_an_ending(history: History) -> Iterator[Violation]:
    """After GROUP_ID_NOT_FOUND, or an error that no client recovers from, a heartbeat joins or leaves, or none is sent.

    A member that goes on with its epoch is refused each time, and reads what it may not own any more.
    """
    ended: AnswerSeen | None = None
    for traced in trace(history):
        if is_answer(traced, *terms.HEARTBEATS):
            ended = traced.event if traced.error in terms.ENDING and not traced.in_doubt else None
        elif isinstance(traced.event, OVER):
            ended = None
        elif ended is not None and is_request(traced, *terms.HEARTBEATS) and not traced.event.pipelined:
            epoch, error = generation_of(traced.event), error_name(ended.error or 0)
            if epoch > 0:
                why = f"after {error} a heartbeat has epoch {epoch}"
                yield breach(traced, why, "epoch 0, or no heartbeat", str(epoch), "epoch", error)
                return
            ended = None


@impact(
    "A consumer that cannot join its group waits without a word: only another configuration would help", "stuck group",
    "waiting", "stuck-group",
)  # fmt: skip
@law("client/raises-fatal-errors", "grp-65", premise=(premises.ENDS_ON_ERRORS, premises.REFUSED))
def raises_fatal_errors(history: History) -> Iterator[Violation]:
    """An error of JoinGroup or SyncGroup that no client recovers from is raised, and not repeated in silence.

    Known of programs that end then: they do not send the request three more times, for a second, and run on.
    """
    first: AnswerSeen | None = None
    repeats, ends = 0, False
    for traced in trace(history):
        if isinstance(traced.event, OVER):
            first, repeats = None, 0
            ends = traced.event.ends_on_errors if isinstance(traced.event, Launched) else ends
        elif not is_answer(traced, "JoinGroup", "SyncGroup") or not ends:
            continue
        elif traced.error not in terms.FATAL:
            first, repeats = (first, repeats) if traced.event.api == "JoinGroup" else (None, 0)
        elif first is None or (first.api, first.error) != (traced.event.api, traced.error):
            first, repeats = traced.event, 0
        else:
            repeats += 1
            if repeats >= REPEATS and traced.ms > first.ms + terms.GRACE_MS:
                error, ms = error_name(traced.error), traced.ms - first.ms
                why = f"{traced.event.api} is answered {error}, and sent {repeats} times more in {ms} ms"
                yield breach(traced, why, "an error that the user is sent", "none", traced.event.api, error)
                return
