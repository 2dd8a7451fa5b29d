"""Laws of every request, whatever it is about: its bytes, its version, its correlation id, and how many there are."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.premises import EMBEDS, REQUEST
from kipcheck.conformance.protocols.client.trace import (
    DAMAGED,
    GRACE_MS,
    GROUP_REQUESTS,
    OF_GROUPS,
    REBALANCE_IN_PROGRESS,
    Happened,
    disturbance,
    trace,
)
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 10

SPIN: Final = 200
"""Requests of one kind in a second that are a busy loop."""
NO_CONNECTION: Final = -1
BUSY: Final = 20
"""Requests of one kind in a second that are more than any back-off allows."""


@impact(
    "A broker refuses a request of the client, or reads it as another", "refused peer", "layout", "refused-peer",
    accepted="A request is not written as its version says; its broker answered it without an error",
)  # fmt: skip
@law("client/encodes-strictly", "grp-05", premise=(REQUEST,))
def encodes_strictly(history: History) -> Iterator[Violation]:
    """Every request is written as its version says: strict decoding reads it whole."""
    for each in trace(history):
        if each.what == "refused":
            found = each.event
            name, why = f"{found['message']} v{found['version']}", found["why"]
            yield breach(
                each, why if why.startswith(name) else f"{name}: {why}", "bytes of that version",
                found["hex"], "refused", found["message"] or "", found["kind"],
            )  # fmt: skip


@impact(
    "A member of the group stops with an error, because it cannot read what another member wrote", "stuck group",
    "layout", "stuck-group", "refused-peer",
)  # fmt: skip
@law("client/embeds-strictly", "grp-162", premise=(EMBEDS,))
def embeds_strictly(history: History) -> Iterator[Violation]:
    """Subscriptions, assignments and user data of Kafka Streams have all fields of the version in front of them."""
    for each in trace(history):
        if each.what == DAMAGED:
            found = each.event
            at = "" if found["start"] is None else f" (byte {found['start'] + found['at']} of {found['api']})"
            of = f" of {found['member']}" if found["member"] else ""
            where = f"{found['record']} v{found['of']}" + (f" / {found['field']}" if found["field"] else "")
            message = "" if found["version"] is None else f"{found['api']} v{found['version']} / "
            why = f"{message}{found['path']}{of}: {where} at byte {found['at']}{at}: "
            yield breach(
                each, f"{why}{found['cause']}; {found['readers']}", f"the fields of version {found['of']}",
                found["hex"] or f"{found['size']} bytes", "damaged", found["record"], found["kind"],
                re.sub(r"\[\d+\]", "[]", found["field"]),
            )  # fmt: skip


@impact(
    "The broker closes the connection, since it does not have the requested version",
    "refused peer",
    "versions",
    "refused-peer",
)
@law("client/asks-what-is-offered", "grp-94", "grp-163", premise=(REQUEST,))
def asks_what_is_offered(history: History) -> Iterator[Violation]:
    """A client sends only requests and versions that its broker serves: those within the ranges that it asked for."""
    offered = False
    for each in trace(history):
        if each.is_answer("ApiVersions") and not each.error:
            offered = True
        why = each.event.get("why", "") if each.what == "closed" else ""
        if why.endswith("is not served"):
            wanted = "a version that ApiVersions offered" if offered else "ApiVersions first, and a version within it"
            yield breach(each, f"the request with {why}", wanted, why, "not offered", why)


@impact("A client takes an answer for that to another request", "wrong data", "answers", "wrong-data")
@law("client/correlates", "grp-97", grade=Grade.SHOULD, premise=(REQUEST, REQUEST))
def correlates(history: History) -> Iterator[Violation]:
    """While a request waits for its answer, the next one on its connection has another correlation id."""
    last: dict[int, int] = {}
    for each in trace(history):
        if not each.is_request():
            continue
        connection, id = each.event["connection"], each.event["correlation"]
        if each.pipelined and last.get(connection) == id:
            why = f"{each.api} has correlation id {id}, as the request before it has, which was not answered yet"
            yield breach(each, why, "another correlation id", str(id), "correlation id", each.api)
        last[connection] = id


@impact("A consumer sends requests without a pause", "crash or hang", "resources", "hang")
@timed("client/does-not-spin", "grp-96", premise=(REQUEST, REQUEST))
def does_not_spin(history: History) -> Iterator[Violation]:
    """A client sends the same request at most 200 times in a second in which nothing new was sent to it.

    Connections that each send one request, which is answered, repeat nothing.
    """
    for each, number, since_ms in _crowded(history, SPIN, failed_only=False):
        yield breach(each, _often(each, number), f"at most {SPIN}", str(number), each.api, since_ms=since_ms)
        return


@impact("A consumer repeats requests faster than its back-off allows", "trivia", "resources", "needless-move")
@timed("client/paces-itself", "grp-96", grade=Grade.SHOULD, premise=(REQUEST, REQUEST))
def paces_itself(history: History) -> Iterator[Violation]:
    """A client repeats a failed request at most 20 times in a second in which nothing new was sent to it.

    A request failed that was answered with an error, or whose connection ended before it was answered. After a failure
    the requests of the group count too: what failed may be repeated with another generation, or by other requests. A
    client may read each of its partitions over a connection of its own, and such a reader repeats nothing at first.
    """
    most: dict[str, tuple[Happened, int, int]] = {}
    for each, number, since_ms in _crowded(history, BUSY, failed_only=True):
        if each.api not in most or number > most[each.api][1]:
            most[each.api] = each, number, since_ms
    for api, (each, number, since_ms) in most.items():
        if number <= SPIN:  # else it spins
            # A group that rebalances is no disturbance of the script.
            cause = () if each.answered == REBALANCE_IN_PROGRESS else disturbance(history, each.step)
            why = _often(each, number)
            yield breach(each, why, f"at most {BUSY}", str(number), api, *cause, since_ms=since_ms)


def _often(each: Happened, number: int) -> str:
    return f"the same {each.api} request, {number} times in a second in which nothing new was sent to the client"


@dataclass(slots=True)
class _Outcomes:
    """Which requests have failed, by API and contents."""

    waiting: dict[int, deque[tuple[str, int]]] = field(default_factory=dict)
    """The requests of each connection without an answer."""
    failed: set[tuple[str, int]] = field(default_factory=set)
    """Those whose last like failed."""
    failures: int = 0
    before: dict[tuple[str, int], int] = field(default_factory=dict)
    """The failures before the last request of its kind."""

    def repeats_a_failure(self, each: Happened) -> bool:
        """Whether a request repeats one that failed; or one of its group, and another one failed since: a join that
        succeeds and is followed by a SyncGroup that fails is repeated because of that."""
        key = each.api, each.event["digest"]
        before, self.before[key] = self.before.get(key, self.failures), self.failures
        return key in self.failed or (each.api in (*OF_GROUPS, *GROUP_REQUESTS) and self.failures > before)

    def read(self, each: Happened) -> None:
        connection = each.event.get("connection", -1)
        if each.is_request():
            self.waiting.setdefault(connection, deque()).append((each.api, each.event["digest"]))
        elif each.is_answer():
            known = self.waiting.get(connection, deque())
            key = next((one for one in known if one[0] == each.api), None)
            if key is not None:
                known.remove(key)
                (self.failed.add if each.error or each.event.get("missing") else self.failed.discard)(key)
            self.failures += bool(each.error)
        elif each.what == "closed":
            unanswered = self.waiting.pop(connection, ())
            self.failed.update(unanswered)
            self.failures += len(unanswered)


def _crowded(history: History, most: int, failed_only: bool) -> Iterator[tuple[Happened, int, int]]:
    """The requests that were sent more than ``most`` times in the second before them, how many times, and since when.

    Requests of one kind with other contents are other requests: a client may ask for each partition alone. New are
    records, a generation or assignment, and an error that the last answer of its kind did not have. Other answers
    repeat what the client knows. A request repeats one of its group, one that failed, and one of its own connection:
    each connection of a client may begin with the same requests. ``failed_only``: it counts where it repeats a failure.
    Where it goes over several connections, as many do not count as the client has partitions, but for one.
    """
    seen: dict[tuple[str, int, int], deque[tuple[int, int]]] = {}
    errors: dict[str, int] = {}
    outcomes = _Outcomes()
    for each in trace(history):
        if each.is_answer():
            api = each.api
            if each.error != errors.get(api, 0) or each.event.get("records"):
                seen.clear()
            elif api in ("JoinGroup", "SyncGroup") and not each.error:
                seen = {key: times for key, times in seen.items() if key[0] in ("JoinGroup", "SyncGroup")}
            errors[api] = each.error
        elif each.what == "signalled":
            seen.clear()
        elif each.is_request():
            key = each.api, each.event["digest"]
            has_failed = outcomes.repeats_a_failure(each)
            if has_failed or not failed_only:
                of_any = has_failed or each.api in OF_GROUPS
                times = seen.setdefault((*key, NO_CONNECTION if of_any else each.event["connection"]), deque())
                times.append((each.ms, each.event["connection"]))
                while times[0][0] < each.ms - GRACE_MS:
                    times.popleft()
                if len(times) > most and (number := len(times) - _readers(each, times)) > most:
                    yield each, number, times[0][0]
        outcomes.read(each)


def _readers(each: Happened, times: Iterable[tuple[int, int]]) -> int:
    """How many of the like requests may each be the first one of another reader of a partition, but for one."""
    if each.api in (*OF_GROUPS, *GROUP_REQUESTS) or each.now is None:
        return 0
    return max(min(len({connection for _, connection in times}), len(each.now.partitions)) - 1, 0)
