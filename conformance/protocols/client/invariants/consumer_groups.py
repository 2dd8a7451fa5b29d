"""Laws of members of KIP-848's groups, whose only request is the heartbeat."""

from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.consequences import after_closing
from kipcheck.conformance.protocols.client.invariants.law import breach, law, listed, timed
from kipcheck.conformance.protocols.client.premises import (
    BEATS_ANEW,
    ENDED,
    HAS_EPOCH,
    MEMBERSHIP_OVER,
    OWNS,
    SIGNALLED,
)
from kipcheck.conformance.protocols.client.trace import (
    FENCED_MEMBER_EPOCH,
    HEARTBEAT,
    RACE_MS,
    STARTS,
    UNKNOWN_MEMBER_ID,
    Happened,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 20

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Epochs."""
FENCED: Final = (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID)
INTERVALS: Final = 10
"""A session of a consumer group is longer than its heartbeat interval; by default nine times as long."""
OWN_ID_SINCE: Final = 1
"""The version in which a member chooses its id itself (KIP-1082)."""


@impact(
    "The coordinator fences a member that did nothing wrong", "stuck group", "epochs", "stuck-group",
    links=("KIP-848",),
    accepted="A heartbeat lacks the id or epoch of its member; its coordinator answered it without an error",
)  # fmt: skip
@law("client/names-its-epoch", "grp-99", premise=(HAS_EPOCH, BEATS_ANEW))
def names_its_epoch(history: History) -> Iterator[Violation]:
    """A heartbeat carries one member id, and the epoch of the last answer, 0 to join, or -1 or -2 to leave."""
    id = ""
    epochs: list[int] = []
    for each in trace(history):
        if each.what in STARTS:
            id, epochs = "", []
        if each.is_answer(HEARTBEAT) and not each.error:
            id = each.event["member"] or id
            epochs = [*epochs[-1:], each.event["generation"]]
        if not each.is_request(HEARTBEAT):
            continue
        given, epoch = each.event["member"], each.event["generation"]
        if not given and (each.event["version"] >= OWN_ID_SINCE or epoch != JOINS):
            yield breach(each, f"a heartbeat with epoch {epoch} has no member id", "a member id", "none", "no id")
        elif id and given != id:
            yield breach(each, "a heartbeat has another member id than before", id, given or "none", "another id")
        if epoch > JOINS and epoch not in epochs:
            wanted = str(epochs[-1]) if epochs else "0, to join"
            shape = "never sent" if epochs else "before it joined"
            yield breach(each, f"a heartbeat has epoch {epoch}", wanted, str(epoch), "epoch", shape)
        id = id or given


@impact(
    "A fenced member goes on as if it were one", "double processing", "epochs", "stuck-group", "double-processing",
    links=("KIP-848",),
)  # fmt: skip
@law("client/joins-anew-when-fenced", "grp-99", premise=(MEMBERSHIP_OVER, BEATS_ANEW))
def joins_anew_when_fenced(history: History) -> Iterator[Violation]:
    """After FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID the next heartbeat joins with epoch 0 and owns nothing."""
    fenced: Happened | None = None
    for each in trace(history):
        if each.is_answer(HEARTBEAT):
            fenced = each if each.error in FENCED and not each.in_doubt else None
        elif each.what in STARTS:
            fenced = None
        elif each.is_request(HEARTBEAT) and fenced is not None and not each.pipelined:
            other = each.event["connection"] != fenced.event["connection"] and each.ms <= fenced.ms + RACE_MS
            epoch, owned = each.event["generation"], each.event.get("owned")
            if epoch > JOINS and not other:
                why = f"after error {fenced.error} a heartbeat has epoch {epoch}"
                yield breach(each, why, "epoch 0", str(epoch), "epoch", str(fenced.error))
            elif epoch == JOINS and owned:
                why = f"after error {fenced.error} a heartbeat that joins owns {listed(owned)}"
                yield breach(each, why, "nothing", listed(owned), "owned", str(fenced.error))
            fenced = None


@impact(
    "A member reports partitions that it was not assigned", "double processing", "claims", "double-processing",
    links=("KIP-848",),
)  # fmt: skip
@law("client/owns-what-it-is-assigned", "grp-99", premise=(OWNS,))
def owns_what_it_is_assigned(history: History) -> Iterator[Violation]:
    """The owned partitions in a heartbeat are some that the member was assigned since it joined."""
    assigned: set[str] = set()
    for each in trace(history):
        if each.is_answer(HEARTBEAT):
            fenced = each.error in FENCED and not each.in_doubt
            assigned = set() if fenced else assigned | {*each.event.get("partitions", ())}
        elif each.what in STARTS:
            assigned = set()
        elif each.is_request(HEARTBEAT) and not each.pipelined:
            strange = {*each.event.get("owned", ())} - assigned
            if strange and each.event["generation"] > JOINS:
                why = f"a heartbeat says that the member owns {listed(strange)}"
                yield breach(each, why, f"within {listed(assigned)}", listed(strange), "owned")


@impact(
    "A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group",
    links=("KIP-848",),
)  # fmt: skip
@timed("client/beats-in-time", "grp-99", premise=(HAS_EPOCH,), follows=after_closing)
def beats_in_time(history: History) -> Iterator[Violation]:
    """A member sends its next heartbeat within ten of the heartbeat intervals that the last answer had."""
    since: Happened | None = None
    for each in trace(history):
        if each.is_answer(HEARTBEAT):
            stays = not each.error and each.event["generation"] > JOINS and not each.in_doubt
            since = each if stays else None
        elif each.is_request(HEARTBEAT) or each.what == "signalled" or each.what in STARTS:
            since = None
        elif since is not None and each.ms - since.ms > INTERVALS * since.event["interval_ms"]:
            interval_ms, silent_ms = since.event["interval_ms"], each.ms - since.ms
            why = f"the member sent no heartbeat for {silent_ms} ms, though its interval is {interval_ms} ms"
            bound = f"a heartbeat within {INTERVALS * interval_ms} ms"
            yield breach(each, why, bound, "none", "no heartbeat", since_ms=since.ms)
            return


@impact(
    "A consumer that is closed stays a member until its session ends", "stuck group", "gating", "stuck-group",
    links=("KIP-848",),
)  # fmt: skip
@law("client/leaves-with-its-epoch", "grp-99", premise=(HAS_EPOCH, SIGNALLED, ENDED), follows=after_closing)
def leaves_with_its_epoch(history: History) -> Iterator[Violation]:
    """A dynamic member that is closed sends a heartbeat with epoch -1, a static one -2.

    One whose requests the broker refuses need not.
    """
    last, member, static = LEAVES, False, False
    for each in trace(history):
        if each.is_request("JoinGroup"):
            return
        if each.is_request(HEARTBEAT):
            last = each.event["generation"]
            static = "instance" in each.event if last == JOINS else static
        elif each.what == "signalled":
            member = each.certain is not None
        elif each.what == "ended" and member and not each.shut_out:
            wanted = LEAVES_FOR_A_WHILE if static else LEAVES
            if last != wanted:
                why = f"the last heartbeat of a member that ended has epoch {last}"
                yield breach(each, why, f"epoch {wanted}", str(last), "no leave" if last >= JOINS else "other epoch")
