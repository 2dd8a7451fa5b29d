"""Laws of a client's traffic: what a consumer owes its broker and its group, seen on the wire alone."""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Final

from kipcheck.conformance.core.case import Role
from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.protocols.client.trace import (
    GRACE_MS,
    GROUP_REQUESTS,
    Happened,
    Membership,
    trace,
    was_late,
)
from kipcheck.conformance.protocols.declare.invariant import impact, invariant

SURVIVES_GROUPS: Final = "client/groups"
law = partial(invariant, role=Role.CLIENT, checks=(SURVIVES_GROUPS,))
timed = partial(law, unsure=was_late)
"""Declares a law with a bound in time."""

SESSION_MS: Final = 3000
"""Where a JoinGroup names none."""
SPIN: Final = 200
"""Requests of one kind in a second."""
NOT_SPINNING: Final = frozenset({"Fetch"})
"""Their answers bring records."""


def breach(each: Happened, why: str, expected: str, observed: str, *shape: str) -> Violation:
    return Violation(why, (each.step,), expected, observed, shape=shape)


@impact("A broker refuses a request of the client, or reads it as another", "refused peer", "layout", "refused-peer")
@law("client/encodes-strictly", "grp-05")
def encodes_strictly(history: History) -> Iterator[Violation]:
    """Every request is written as its version says: strict decoding reads it whole."""
    for each in trace(history):
        if each.event["what"] == "refused":
            found = each.event
            yield breach(
                each, f"{found['message']} v{found['version']}: {found['why']}", "bytes of that version",
                found["hex"], "refused", found["message"] or "", found["kind"],
            )  # fmt: skip


@impact(
    "The broker closes the connection, since it does not have the requested version",
    "refused peer",
    "versions",
    "refused-peer",
)
@law("client/asks-what-is-offered", "grp-94")
def asks_what_is_offered(history: History) -> Iterator[Violation]:
    """Once it has the broker's ranges, a client sends only requests and versions within them."""
    offered = False
    for each in trace(history):
        if each.is_answer("ApiVersions") and not each.event.get("error"):
            offered = True
        why = each.event.get("why", "") if each.event["what"] == "closed" else ""
        if offered and why.endswith("is not served"):
            yield breach(each, f"the request with {why}", "a version that ApiVersions offered", why, "not offered", why)


@impact("The coordinator refuses the requests of a member", "stuck group", "identity", "stuck-group")
@law("client/names-itself", "grp-64")
def names_itself(history: History) -> Iterator[Violation]:
    """Each request of a member carries the member id and the generation of its last successful JoinGroup."""
    for each in trace(history):
        if not each.is_request(*GROUP_REQUESTS) or not each.memberships:
            continue
        given = each.event["member"], each.event["generation"]
        if given == ("", -1):
            if each.event["api"] != "OffsetCommit":
                yield breach(
                    each, "a request without a member id", "its member id", "none", each.event["api"], "nameless"
                )
            continue
        known = [(one.member, one.generation) for one in each.memberships]
        if given in known:
            continue  # what was over is judged by stops-when-fenced
        now = each.memberships[-1]
        wrong = "generation" if given[0] == now.member else "member id"
        why = f"{each.event['api']} carries another {wrong} than the answer to the last JoinGroup"
        expected, observed = f"{now.member}, generation {now.generation}", f"{given[0]}, generation {given[1]}"
        yield breach(each, why, expected, observed, each.event["api"], wrong)


@impact(
    "A consumer that was removed from its group goes on as if it were a member",
    "double processing",
    "identity",
    "stuck-group",
)
@timed("client/stops-when-fenced", "grp-64")
def stops_when_fenced(history: History) -> Iterator[Violation]:
    """A second after it was sent that its membership is over, a member sends no request with that id and generation."""
    for each in trace(history):
        if not each.is_request(*GROUP_REQUESTS):
            continue
        given = each.event["member"], each.event["generation"]
        same = [one for one in each.memberships if (one.member, one.generation) == given]
        if same and not any(one.is_current(each.ms) for one in same):
            late = each.ms - max(one.until_ms or 0 for one in same)
            yield breach(
                each, f"{late} ms after its membership ended, the client sends {each.event['api']} with it",
                "no request with that generation", f"generation {given[1]}", each.event["api"], "fenced",
            )  # fmt: skip


@impact("A consumer stops its heartbeats, and is removed from its group", "stuck group", "gating", "stuck-group")
@timed("client/beats", "grp-69")
def beats(history: History) -> Iterator[Violation]:
    """A stable member sends a heartbeat, or another request of its group, before its session ends."""
    last, session_ms = -1, SESSION_MS
    for each in trace(history):
        now = each.memberships[-1] if each.memberships else None
        if each.is_request("JoinGroup"):
            session_ms = each.event.get("session_ms", SESSION_MS)
        stable = now is not None and now.until_ms is None and now.synced_ms is not None
        if not stable or each.event["what"] in ("signalled", "ended", "killed"):
            last = -1
            if each.event["what"] == "signalled":
                return
            continue
        last = max(last, now.synced_ms or 0) if now is not None else last
        if each.ms - last > session_ms:
            why = f"a stable member sent nothing to its group for {each.ms - last} ms"
            yield breach(each, why, f"a heartbeat within {session_ms} ms", "none", "no heartbeat")
            return
        if each.is_request(*GROUP_REQUESTS):
            last = each.ms


@impact("A consumer does not return to its group after an error that passes", "stuck group", "waiting", "stuck-group")
@timed("client/comes-back", "grp-66")
def comes_back(history: History) -> Iterator[Violation]:
    """After an error that it can recover from, or a rebalance, a client is a stable member again."""
    last = ""
    for each in trace(history):
        if each.is_answer() and each.event.get("error"):
            last = f"{each.event['api']} {each.event['error']}"
        if each.event["what"] == "unsettled":
            waited = each.event["waited_ms"]
            why = f"{waited} ms after {last or 'the rebalance'} the client is no stable member"
            yield breach(each, why, "JoinGroup and SyncGroup", "no stable member", "lost", last)
        if each.event["what"] == "settled":
            last = ""


@impact("A consumer reads partitions of other members", "double processing", "ownership", "double-processing")
@timed("client/reads-its-own", "grp-61")
def reads_its_own(history: History) -> Iterator[Violation]:
    """A client fetches only partitions that it is assigned, or was until a second ago."""
    for each in trace(history):
        if not each.is_request("Fetch"):
            continue
        mine = frozenset[str]().union(*(one.partitions for one in each.memberships if one.is_current(each.ms)))
        strange = sorted({*each.event["partitions"]} - mine)
        if strange and not _is_new(each):
            ever = frozenset[str]().union(*(one.partitions for one in each.memberships))
            how = "taken away" if ever.issuperset(strange) else "never assigned"
            why = f"the client fetches {', '.join(strange)}, {how}"
            yield breach(each, why, f"within {', '.join(sorted(mine)) or 'nothing'}", ", ".join(strange), how)


def _is_new(each: Happened) -> bool:
    """Whether there was no assignment yet."""
    return not any(one.synced_ms is not None for one in each.memberships)


@impact("A consumer that is closed stays a member until its session ends", "stuck group", "gating", "stuck-group")
@law("client/leaves", "grp-69")
def leaves(history: History) -> Iterator[Violation]:
    """A dynamic member that is closed sends LeaveGroup; a static one does not."""
    static, left, signalled = False, False, None
    member: Membership | None = None
    for each in trace(history):
        if each.is_request("JoinGroup"):
            static = "instance" in each.event
        if each.event["what"] == "signalled":
            signalled = each
            member = each.memberships[-1] if each.memberships else None
        if signalled is not None and each.is_request("LeaveGroup"):
            left = True
        if each.event["what"] == "ended" and signalled is not None and _is_member(member):
            if not left and not static:
                yield breach(each, "the client ended without LeaveGroup", "LeaveGroup", "none", "no LeaveGroup")
            if left and static:
                yield breach(each, "a static member sent LeaveGroup", "no LeaveGroup", "LeaveGroup", "static")


def _is_member(member: Membership | None) -> bool:
    return member is not None and member.until_ms is None and member.synced_ms is not None


@impact("A consumer sends requests without a pause", "crash or hang", "resources", "hang")
@timed("client/does-not-spin", "grp-96")
def does_not_spin(history: History) -> Iterator[Violation]:
    """A client sends at most 200 requests of one kind in a second, but for those that bring records."""
    seen: dict[str, deque[int]] = {}
    for each in trace(history):
        if not each.is_request() or each.event["api"] in NOT_SPINNING:
            continue
        times = seen.setdefault(each.event["api"], deque())
        times.append(each.ms)
        while times[0] < each.ms - GRACE_MS:
            times.popleft()
        if len(times) > SPIN:
            why = f"{len(times)} {each.event['api']} requests in a second"
            yield breach(each, why, f"at most {SPIN}", str(len(times)), each.event["api"])
            return


@impact("A consumer ends by itself, or does not end when it is closed", "crash or hang", "waiting", "hang")
@law("client/ends-when-stopped", "grp-95")
def ends_when_stopped(history: History) -> Iterator[Violation]:
    """A program ends within 10 s of SIGTERM, and not before it."""
    signalled = False
    for each in trace(history):
        match each.event["what"]:
            case "signalled":
                signalled = True
            case "killed":
                yield breach(each, "10 s after SIGTERM the program still runs", "its end", "it runs", "hangs")
            case "ended" if not signalled:
                how = f"exit code {each.event['code']}"
                last = each.event["stderr"].rstrip().rpartition("\n")[2]
                yield breach(each, f"the program ended by itself, {how}: {last}", "it consumes", how, "ended", how)
