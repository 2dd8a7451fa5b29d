"""Laws of members of KIP-848's groups, whose only request is the heartbeat."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client import premises, terms
from kipcheck.conformance.protocols.client.consequences import after_closing
from kipcheck.conformance.protocols.client.events import AnswerSeen, Ended, Signalled
from kipcheck.conformance.protocols.client.invariants.law import breach, law, listed, timed
from kipcheck.conformance.protocols.client.trace import OVER, STARTS, generation_of, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 20

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Epochs."""
FENCED: Final = (KafkaError.FENCED_MEMBER_EPOCH, KafkaError.UNKNOWN_MEMBER_ID)
INTERVALS: Final = 10
"""A session of a consumer group is longer than its heartbeat interval; by default nine times as long."""
OWN_ID_SINCE: Final = 1
"""The version in which a member chooses its id itself (KIP-1082)."""


@impact(
    "The coordinator fences a member that did nothing wrong", "stuck group", "epochs", "stuck-group",
    links=("KIP-848",),
    accepted="A heartbeat lacks the id or epoch of its member; its coordinator answered it without an error",
)  # fmt: skip
@law("client/names-its-epoch", "grp-99", premise=(premises.HAS_EPOCH, premises.BEATS_ANEW))
def names_its_epoch(history: History) -> Iterator[Violation]:
    """A heartbeat carries one member id, and the epoch of the last answer, 0 to join, or -1 or -2 to leave."""
    id = ""
    epochs: list[int] = []
    for traced in trace(history):
        if isinstance(traced.event, STARTS):
            id, epochs = "", []
        if is_answer(traced, terms.HEARTBEAT) and not traced.error:
            id = traced.event.member or id
            epochs = [*epochs[-1:], generation_of(traced.event)]
        if not is_request(traced, terms.HEARTBEAT):
            continue
        given, epoch = traced.event.member or "", generation_of(traced.event)
        if not given and (traced.event.version >= OWN_ID_SINCE or epoch != JOINS):
            yield breach(traced, f"a heartbeat with epoch {epoch} has no member id", "a member id", "none", "no id")
        elif id and given != id:
            yield breach(traced, "a heartbeat has another member id than before", id, given or "none", "another id")
        if epoch > JOINS and epoch not in epochs:
            wanted = str(epochs[-1]) if epochs else "0, to join"
            shape = "never sent" if epochs else "before it joined"
            yield breach(traced, f"a heartbeat has epoch {epoch}", wanted, str(epoch), "epoch", shape)
        id = id or given


@impact(
    "A fenced member goes on as if it were one", "double processing", "epochs", "stuck-group", "double-processing",
    links=("KIP-848",),
)  # fmt: skip
@law("client/joins-anew-when-fenced", "grp-99", premise=(premises.MEMBERSHIP_OVER, premises.BEATS_ANEW))
def joins_anew_when_fenced(history: History) -> Iterator[Violation]:
    """After FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID the next heartbeat joins with epoch 0 and owns nothing."""
    fenced: AnswerSeen | None = None
    for traced in trace(history):
        if is_answer(traced, terms.HEARTBEAT):
            fenced = traced.event if traced.error in FENCED and not traced.in_doubt else None
        elif isinstance(traced.event, STARTS):
            fenced = None
        elif is_request(traced, terms.HEARTBEAT) and fenced is not None and not traced.event.pipelined:
            other = traced.event.connection != fenced.connection and traced.ms <= fenced.ms + terms.RACE_MS
            epoch, owned = generation_of(traced.event), traced.event.owned
            if epoch > JOINS and not other:
                why = f"after error {fenced.error} a heartbeat has epoch {epoch}"
                yield breach(traced, why, "epoch 0", str(epoch), "epoch", str(fenced.error))
            elif epoch == JOINS and owned:
                why = f"after error {fenced.error} a heartbeat that joins owns {listed(owned)}"
                yield breach(traced, why, "nothing", listed(owned), "owned", str(fenced.error))
            fenced = None


@impact(
    "A member reports partitions that it was not assigned", "double processing", "claims", "double-processing",
    links=("KIP-848",),
)  # fmt: skip
@law("client/owns-what-it-is-assigned", "grp-99", premise=(premises.OWNS,))
def owns_what_it_is_assigned(history: History) -> Iterator[Violation]:
    """The owned partitions in a heartbeat are some that the member was assigned since it joined."""
    assigned: set[str] = set()
    for traced in trace(history):
        if is_answer(traced, terms.HEARTBEAT):
            fenced = traced.error in FENCED and not traced.in_doubt
            assigned = set() if fenced else assigned | {*(traced.event.partitions or ())}
        elif isinstance(traced.event, STARTS):
            assigned = set()
        elif is_request(traced, terms.HEARTBEAT) and not traced.event.pipelined:
            strange = {*(traced.event.owned or ())} - assigned
            if strange and generation_of(traced.event) > JOINS:
                why = f"a heartbeat says that the member owns {listed(strange)}"
                yield breach(traced, why, f"within {listed(assigned)}", listed(strange), "owned")


@impact(
    "A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group",
    links=("KIP-848",),
)  # fmt: skip
@timed("client/beats-in-time", "grp-99", premise=(premises.HAS_EPOCH,), follows=after_closing)
def beats_in_time(history: History) -> Iterator[Violation]:
    """A member sends its next heartbeat within ten of the heartbeat intervals that the last answer had."""
    since: AnswerSeen | None = None
    for traced in trace(history):
        if is_answer(traced, terms.HEARTBEAT):
            stays = not traced.error and generation_of(traced.event) > JOINS and not traced.in_doubt
            since = traced.event if stays else None
        elif is_request(traced, terms.HEARTBEAT) or isinstance(traced.event, OVER):
            since = None
        elif since is not None and (silent_ms := traced.ms - since.ms) > INTERVALS * (since.interval_ms or 0):
            interval_ms = since.interval_ms or 0
            why = f"the member sent no heartbeat for {silent_ms} ms, though its interval is {interval_ms} ms"
            bound = f"a heartbeat within {INTERVALS * interval_ms} ms"
            yield breach(traced, why, bound, "none", "no heartbeat", since_ms=since.ms)
            return


@impact(
    "A consumer that is closed stays a member until its session ends", "stuck group", "gating", "stuck-group",
    links=("KIP-848",),
)  # fmt: skip
@law(
    "client/leaves-with-its-epoch", "grp-99", premise=(premises.HAS_EPOCH, premises.SIGNALLED, premises.ENDED),
    follows=after_closing,
)  # fmt: skip
def leaves_with_its_epoch(history: History) -> Iterator[Violation]:
    """A dynamic member that is closed sends a heartbeat with epoch -1, a static one -2.

    One whose requests the broker refuses need not.
    """
    last, member, static = LEAVES, False, False
    for traced in trace(history):
        if is_request(traced, "JoinGroup"):
            return
        if is_request(traced, terms.HEARTBEAT):
            last = generation_of(traced.event)
            static = traced.event.instance is not None if last == JOINS else static
        elif isinstance(traced.event, Signalled):
            member = traced.certain is not None
        elif isinstance(traced.event, Ended) and member and not traced.shut_out:
            wanted = LEAVES_FOR_A_WHILE if static else LEAVES
            if last != wanted:
                why = f"the last heartbeat of a member that ended has epoch {last}"
                yield breach(traced, why, f"epoch {wanted}", str(last), "no leave" if last >= JOINS else "other epoch")
