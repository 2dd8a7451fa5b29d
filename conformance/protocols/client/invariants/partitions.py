"""Laws of partitions: what a client reads, commits and claims is what it was assigned."""

from collections.abc import Iterator
from typing import Any, Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.assignment.model.assignment import (
    COOPERATIVE,
    NO_GENERATION,
)
from kipcheck.conformance.protocols.client.invariants.law import breach, law, listed, timed
from kipcheck.conformance.protocols.client.premises import (
    ASSIGNED,
    COMMITS_AS_MEMBER,
    EAGER,
    NEVER_READ,
    OFFERS_COOPERATIVE,
    OFFERS_EAGER,
    READS,
)
from kipcheck.conformance.protocols.client.trace import (
    FENCING,
    ILLEGAL_GENERATION,
    NEVER,
    OF_GROUPS,
    RACE_MS,
    Happened,
    Membership,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 60

LOOKED_UP: Final = "offset looked up"
"""The client sent ListOffsets for partitions that it had not any more."""


@impact("A consumer reads partitions of other members", "double processing", "ownership", "double-processing")
@timed("client/reads-its-own", "grp-61", premise=READS, essential=NEVER_READ)
def reads_its_own(history: History) -> Iterator[Violation]:
    """A client fetches only partitions that it is assigned, or was until a second ago."""
    looked_up: set[str] = set()
    for each in trace(history):
        if each.is_request("ListOffsets") and each.memberships:
            looked_up |= {*each.event.get("partitions", ())} - each.memberships[-1].partitions
        if not each.is_request("Fetch"):
            continue
        mine = _all(one for one in each.memberships if one.is_current(each.ms))
        strange = {*each.event["partitions"]} - mine
        if strange and _is_known(each):
            how = (LOOKED_UP,) if strange <= looked_up else ()
            yield _strange(each, "fetches", strange, mine, _all(iter(each.memberships)), *how)


@impact("A consumer overwrites the offsets of other members", "wrong data", "ownership", "double-processing")
@timed("client/commits-its-own", "grp-61", "grp-88", premise=(ASSIGNED, COMMITS_AS_MEMBER))
def commits_its_own(history: History) -> Iterator[Violation]:
    """A client commits only partitions that it was assigned in the generation of its OffsetCommit."""
    for each in trace(history):
        if not each.is_request("OffsetCommit") or not each.event.get("member"):
            continue
        given = each.event["member"], each.event.get("generation", -1)
        allowed = _all(
            one for at, one in enumerate(each.memberships)
            if (one.member, one.generation) == given and (one.synced_ms is not None or one.is_current(each.ms))
        )  # fmt: skip
        allowed |= _all(one for one in each.memberships if one.until_ms is not None and one.is_current(each.ms))
        strange = {*each.event["partitions"]} - allowed
        known = any((one.member, one.generation) == given for one in each.memberships)
        if strange and known and _is_known(each):
            yield _strange(each, "commits", strange, allowed, _all(iter(each.memberships)))


def _all(memberships: Iterator[Membership]) -> frozenset[str]:
    return frozenset[str]().union(*(one.partitions for one in memberships))


def _is_new(each: Happened) -> bool:
    """Whether there was no assignment yet."""
    return not any(one.synced_ms is not None for one in each.memberships)


def _is_known(each: Happened) -> bool:
    """Whether there was an assignment, and all could be read."""
    return not _is_new(each) and not _has_unread(each)


def _has_unread(each: Happened) -> bool:
    return any(one.unread for one in each.memberships)


def _strange(
    each: Happened, does: str, strange: set[str], mine: frozenset[str], ever: frozenset[str], *more: str
) -> Violation:
    how = "taken away" if ever.issuperset(strange) else "never assigned"
    last = each.memberships[-1]
    by = (f"{last.ended_by} {FENCING[last.error]}",) if last.ended_by else ()
    why = f"the client {does} {listed(strange)}, {how}"
    ended_ms = [one.until_ms for one in each.memberships if one.until_ms is not None and one.partitions & strange]
    since_ms = max(ended_ms, default=last.since_ms)
    return breach(each, why, f"within {listed(mine)}", listed(strange), how, *by, *more, since_ms=since_ms)


# What it claims when it joins


@impact(
    "An eager consumer claims partitions, so that a leader may take them for still owned",
    "trivia",
    "claims",
    "needless-move",
    links=("KIP-429",),
)
@law("client/owns-nothing-when-eager", "grp-60", premise=(ASSIGNED, OFFERS_EAGER))
def owns_nothing_when_eager(history: History) -> Iterator[Violation]:
    """A member that offers an eager assignor owns nothing when it joins."""
    for each in trace(history):
        if not each.is_request("JoinGroup") or EAGER.isdisjoint(name for name, _ in each.event["protocols"]):
            continue
        for (name, _), found in zip(each.event["protocols"], each.event["subscriptions"], strict=True):
            if found is not None and found.get("owned"):
                why = f"the subscription of an eager member for {name} claims {listed(found['owned'])}"
                yield breach(each, why, "nothing", listed(found["owned"]), "eager claim")
                break


@impact(
    "A subscription claims partitions that the member does not own, or omits some",
    "double processing",
    "claims",
    "double-processing",
    links=("KIP-429", "KAFKA-12984"),
)
@law("client/claims-what-it-owns", "grp-62", premise=(ASSIGNED, OFFERS_COOPERATIVE))
def claims_what_it_owns(history: History) -> Iterator[Violation]:
    """A cooperative member joins with the partitions of its last assignment, and the generation that it has."""
    unseen, unanswered, lost_ms = False, set[int](), NEVER
    for each in trace(history):
        if each.is_request(*OF_GROUPS) and each.answered is None:
            unanswered.add(each.event.get("connection", -1))
        elif each.what == "closed" and each.event["connection"] in unanswered:
            lost_ms = min(lost_ms, each.ms)
        elif each.is_answer("SyncGroup") or (each.is_request("Fetch") and each.earliest_ms > lost_ms + RACE_MS):
            lost_ms = NEVER
        if not each.is_request("JoinGroup") or each.pipelined:
            continue
        unseen |= "member" not in each.event
        # A history that begins amid a membership does not say what the member had before, and a client that raised an
        # error that is fatal may have given everything up.
        unsaid = (unseen and _is_new(each)) or each.shut_out or _has_unread(each)
        if {name for name, _ in each.event["protocols"]} != {COOPERATIVE} or unsaid:
            continue
        found = each.event["subscriptions"][0]
        # One whose request to its group failed may take its partitions for lost, if it does not read on.
        gave_up = lost_ms <= each.ms and found is not None and not found.get("owned")
        if found is not None and "owned" in found and not gave_up:
            yield from _claims(each, found)


def _claims(each: Happened, found: dict[str, Any]) -> Iterator[Violation]:
    right = [{one for one in owned if one.rpartition("-")[0] in found["topics"]} for owned in _owned(each)]
    claimed = {*found["owned"]}
    if claimed not in right:
        more = claimed - set().union(*right)
        shape = "after its membership ended" if each.now is None else "too many" if more else "too few"
        why = f"the subscription claims {listed(claimed)}; the member owns {listed(right[0])}"
        yield breach(each, why, listed(right[0]), listed(claimed), "owned", shape)
    if each.now is not None and "generation" in found and found["generation"] not in _generations(each, each.now):
        why = f"the subscription is of generation {found['generation']}, the member of {each.now.generation}"
        yield breach(each, why, f"generation {each.now.generation}", str(found["generation"]), "generation")


def _generations(each: Happened, now: Membership) -> set[int]:
    """That of the member, or of its last assignment: a SyncGroup that fails gives it a generation without one."""
    last = next((one for one in reversed(each.memberships) if one.synced_ms is not None), None)
    known = {now.generation, *(() if last is None else (last.generation,))}
    return known if last is not None and not last.error else known | {NO_GENERATION}


def _owned(each: Happened) -> list[frozenset[str]]:
    """What the member may own, the likeliest first."""
    nothing = frozenset[str]()
    if each.now is None:
        last = each.memberships[-1] if each.memberships else None
        return [nothing, last.partitions] if last is not None and last.error == ILLEGAL_GENERATION else [nothing]
    right = [each.now.partitions, *(one.partitions for one in each.memberships[:-1] if one.until_ms is None)]
    recent = each.now.synced_ms is not None and each.ms <= each.now.synced_ms + RACE_MS
    if len(each.memberships) > 1 and (recent or not each.now.adopted):
        right.append(each.memberships[-2].partitions)
    return right
