"""Invariants of the leader of a share partition (KIP-932), which read requests and their answers."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.declare.invariant import impact as any_impact, invariant, steps_of
from kipcheck.conformance.protocols.declare.real_time import is_in_doubt
from kipcheck.conformance.protocols.reconciled import terms
from kipcheck.conformance.protocols.share_partition import ops
from kipcheck.conformance.protocols.share_partition.model import (
    INVALID_RECORD_STATE,
    INVALID_SHARE_SESSION_EPOCH,
    SHARE_SESSION_NOT_FOUND,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from kipcheck.conformance.protocols.share_partition.trace import REFUSALS, Record, ShareStep, share_steps

RECORDS: Final = "share-partition/records"
UNAVAILABLE: Final = ("NOT_LEADER_OR_FOLLOWER", "COORDINATOR_NOT_AVAILABLE", "FENCED_STATE_EPOCH", *terms.UNAVAILABLE)
"""Errors of a leader that lost its partition, or whose persister cannot answer."""
records = partial(invariant, role=Role.COORDINATOR, checks=(RECORDS,), unsure=is_in_doubt)
impact = partial(any_impact, links=("KIP-932",))
asks = steps_of("share-fetch", "share-acknowledge")
delivery = partial(records, applies_to=steps_of("share-fetch"), after=("share-fetch",))


def acknowledges(case: Case, step: Step) -> bool:
    return step.verb == "share-acknowledge" or step.body.get("kind", "none") != "none"


def breach(step: ShareStep, why: str, expected: str, *shape: str, since: int | None = None) -> Violation:
    observed = step.refused or f"acquired {[*step.answer.get('acquired', ())]}"
    at = (step.op.index,) if since is None else (since, step.op.index)
    return Violation(why, at, expected, observed, shape=shape)


def _deliveries(history: History) -> Iterator[tuple[ShareStep, int, int, Record | None]]:
    """Each delivery: its step, offset, count, and the record as it was known after the acknowledgement in the step."""
    for step in share_steps(history):
        known = step.acknowledged
        for offset, count in step.acquired.items():
            yield step, offset, count, known.records.get(offset)


@impact("Two members process the same record at once", "double processing", "ownership", "double-processing")
@delivery("share-partition/one-holder", "932-20", "932-29")
def one_holder(history: History) -> Iterator[Violation]:
    """A record that a member has acquired, and whose lock has not expired, is delivered to no member."""
    for step, offset, _, record in _deliveries(history):
        if record is not None and record.fate == "held":
            why = f"{step.asked.client} gets record {offset}, which {record.holder} has for {record.left_ms} ms more"
            yield breach(step, why, "other records", "held", since=record.since)


@impact("A record is never delivered", "double processing", "order", "unread-partition")
@delivery("share-partition/nothing-skipped", "932-21")
def nothing_skipped(history: History) -> Iterator[Violation]:
    """From the start offset on, first deliveries follow the order of the log, and leave no record out."""
    for step in share_steps(history):
        delivered = {*step.before.records, *step.acquired}
        first = step.start
        new = [offset for offset in step.acquired if offset not in step.before.records]
        if skipped := [each for each in range(first, max(new, default=0)) if each not in delivered]:
            why = f"{step.asked.client} gets record {max(new)}, and record {skipped[0]} was never delivered"
            yield breach(step, why, f"record {skipped[0]} before it", "skipped")
        elif before := [each for each in new if each < first]:
            why = f"{step.asked.client} gets record {before[0]}, and the group begins at {first}"
            yield breach(step, why, f"records from {first} on", "before the start")
        elif above := [each for each in new if each >= step.before.end]:
            yield breach(step, f"there is no record {above[0]}", f"records below {step.before.end}", "not there")


@impact("Records are not delivered, or again: the group begins somewhere else", "double processing", "durability",
        "unread-partition", "double-processing")  # fmt: skip
@delivery("share-partition/keeps-its-start", "932-33")
def keeps_its_start(history: History) -> Iterator[Violation]:
    """A group without state begins where share.auto.offset.reset says, once: a reload does not choose it again."""
    for step in share_steps(history):
        known, fetch = step.before, step.asked
        if not step.accepted or not isinstance(fetch, ops.Fetch) or not fetch.fetches or known.first is None:
            continue
        if known.start is None and step.start != known.first:
            why = f"the group began at {known.first}, and begins at {step.start} after a reload"
            yield breach(step, why, f"records from {known.first} on", "chosen again")


@impact("A bad record is delivered without end, or a good one is given up too early", "wrong data",
        "durability", "unread-partition")  # fmt: skip
@delivery("share-partition/counts-deliveries", "932-22")
def counts_deliveries(history: History) -> Iterator[Violation]:
    """The count of a record is 1 with its first delivery, rises by 1 with each other one, and has a limit."""
    for step, offset, count, record in _deliveries(history):
        limit = step.before.config.limit
        due = (1,) if record is None else tuple(each + 1 for each in record.counts)
        if count > limit:
            why = f"record {offset} is delivered for the {count}th time"
            yield breach(step, why, f"{limit} deliveries at most", "above the limit")
        elif count not in due:
            why = f"record {offset} has count {count}"
            since = None if record is None else record.since
            yield breach(step, why, f"count {' or '.join(map(str, due))}", "count", since=since)


@impact("A record is processed again after it was accepted or rejected", "double processing", "ownership",
        "double-processing")  # fmt: skip
@delivery("share-partition/done-stays-done", "932-23", "932-31")
def done_stays_done(history: History) -> Iterator[Violation]:
    """A record that was accepted or rejected, or delivered as often as it may be, is never delivered again."""
    for step, offset, _, record in _deliveries(history):
        if record is not None and record.fate == "done":
            why = f"{step.asked.client} gets record {offset}, which was done"
            yield breach(step, why, "other records", "done", since=record.since)


@impact("A record that no member has is not delivered", "stuck group", "guards", "unread-partition")
@delivery("share-partition/delivers-what-is-free", "932-24", "932-26")
def delivers_what_is_free(history: History) -> Iterator[Violation]:
    """A fetch gets a record if one is new, was released, or has an expired lock."""
    for step in share_steps(history):
        fetch, known = step.asked, step.acknowledged
        if (
            not isinstance(fetch, ops.Fetch)
            or not fetch.fetches
            or not step.accepted
            or step.acquired
            or fetch.kind != "none"
        ):
            continue
        if known.start is None or not known.loaded or fetch.most < 1:
            continue
        free = [each for each, record in known.records.items() if record.fate == "free"]
        free += [each for each in range(known.start, known.end) if each not in known.records]
        if free:
            is_new = min(free) not in known.records
            had = "no member ever had" if is_new else "no member has"
            why = f"{fetch.client} gets nothing, and {had} record {min(free)}"
            yield breach(step, why, f"record {min(free)}, or another one", "new" if is_new else "again")


@impact(
    "A member acknowledges a record that another member processes", "double processing", "ownership", "unread-partition"
)
@records("share-partition/refuses-others", "932-25", applies_to=acknowledges, after=("share-fetch",))
def refuses_others(history: History) -> Iterator[Violation]:
    """An acknowledgement of a record that is not done, and that the member does not have, is refused."""
    for step in share_steps(history):
        if not step.is_valid or not (step.accepted or step.has_failed) or step.error in UNAVAILABLE:
            continue
        known = step.before
        others = [] if known.start is None else [
            each for each in step.offsets if each >= known.start and _is_of_another(known.records.get(each), step.asked)
        ]  # fmt: skip
        owed = (INVALID_RECORD_STATE, terms.INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION, *UNAVAILABLE)
        if others and step.refused not in owed:
            why = f"{step.asked.client} acknowledges record {others[0]}, which it does not have"
            kind = "other error" if step.refused else "accepted"
            yield breach(step, why, f"refused: {INVALID_RECORD_STATE}", kind, *filter(None, [step.refused]))


def _is_of_another(record: Record | None, request: ops.Request) -> bool:
    """Whether certainly not the client has a record; None: it was never delivered."""
    return record is None or record.fate == "free" or (record.fate == "held" and record.holder != request.client)


@impact("A member cannot acknowledge what it has processed", "double processing", "guards", "double-processing")
@records("share-partition/accepts-its-own", "932-27", "932-29", applies_to=acknowledges, after=("share-fetch",))
def accepts_its_own(history: History) -> Iterator[Violation]:
    """An acknowledgement of records that the member has, and whose locks have not expired, is accepted."""
    for step in share_steps(history):
        if not step.is_valid or step.error in REFUSALS or not step.refused or step.refused in UNAVAILABLE:
            continue
        if step.asked.kind == "renew" and step.refused == terms.INVALID_REQUEST:
            continue  # a release before KIP-1222
        held = [step.before.records.get(each) for each in step.offsets]
        if all(record is not None and record.holder == step.asked.client for record in held):
            asked = step.asked
            why = f"{asked.client} has records {asked.first} to {asked.last}, and cannot {asked.kind} them"
            yield breach(step, why, "accepted", "refused", step.refused)


@impact("A leader takes requests for a share session that has ended, or ends one that goes on", "stuck group", "epochs",
        "stale-view")  # fmt: skip
@records("share-partition/session-epochs", "932-28", applies_to=asks, after=())
def session_epochs(history: History) -> Iterator[Violation]:
    """A request is accepted if its epoch is that of the session, or opens or closes one, and refused otherwise."""
    for step in share_steps(history):
        owed = _session_error(step)
        if step.has_failed or step.error == owed or step.asked.client in step.before.failed:
            continue
        if step.error == terms.INVALID_REQUEST and step.asked.kind != "none":
            continue
        if owed or step.error:
            has = "no session" if step.due is None else f"a session with epoch {step.due}"
            why = f"{step.asked.client} has {has}, and sends epoch {step.epoch}"
            yield breach(step, why, f"refused: {owed}" if owed else "accepted", owed or "refused",
                         step.error or "accepted")  # fmt: skip


def _session_error(step: ShareStep) -> str:
    if step.epoch == 0:
        return INVALID_SHARE_SESSION_EPOCH if isinstance(step.asked, ops.Acknowledge) else ""
    if step.due is None:
        return SHARE_SESSION_NOT_FOUND
    return "" if step.epoch in (step.due, terms.LEAVING) else INVALID_SHARE_SESSION_EPOCH


@impact("An invalid acknowledgement is accepted", "trivia", "guards", "misled-operator")
@records("share-partition/refuses-invalid", "932-30", applies_to=acknowledges, after=())
def refuses_invalid(history: History) -> Iterator[Violation]:
    """An acknowledgement without records, of an unknown type, or in the request that opens a session is refused."""
    for step in share_steps(history):
        opens = isinstance(step.asked, ops.Fetch) and step.epoch == 0
        if step.asked.kind == "none" or (step.is_valid and not opens):
            continue
        if step.error and not opens:
            continue
        if step.refused not in (terms.INVALID_REQUEST, *UNAVAILABLE):
            why = "the request opens a session" if opens else "the acknowledgement is invalid"
            yield breach(step, why, f"refused: {terms.INVALID_REQUEST}", "opens" if opens else "invalid",
                         step.refused or "accepted")  # fmt: skip


@impact("A member gets more records than it can process in time", "double processing", "guards", "double-processing")
@delivery("share-partition/keeps-to-the-limit", "932-32")
def keeps_to_the_limit(history: History) -> Iterator[Violation]:
    """A fetch in mode record_limit gets at most as many records as it asks for."""
    for step in share_steps(history):
        fetch = step.asked
        if isinstance(fetch, ops.Fetch) and fetch.strict and len(step.acquired) > fetch.most:
            why = f"{fetch.client} asks for {fetch.most} records, and gets {len(step.acquired)}"
            yield breach(step, why, f"{fetch.most} records at most", "too many")
