"""Laws of every request, whatever it is about: its bytes, its version, its correlation id, and how many there are."""

import re
from collections import deque
from collections.abc import Iterator
from typing import Final

from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Grade, Violation
from kipcheck.conformance.protocols.client.invariants.law import breach, law, timed
from kipcheck.conformance.protocols.client.premises import EMBEDS, REQUEST
from kipcheck.conformance.protocols.client.trace import DAMAGED, GRACE_MS, Happened, disturbance, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 10

SPIN: Final = 200
"""Requests of one kind in a second that are a busy loop."""
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
            yield breach(
                each, f"{found['message']} v{found['version']}: {found['why']}", "bytes of that version",
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
@law("client/asks-what-is-offered", "grp-94", premise=(REQUEST,))
def asks_what_is_offered(history: History) -> Iterator[Violation]:
    """Once it has the broker's ranges, a client sends only requests and versions within them."""
    offered = False
    for each in trace(history):
        if each.is_answer("ApiVersions") and not each.error:
            offered = True
        why = each.event.get("why", "") if each.what == "closed" else ""
        if offered and why.endswith("is not served"):
            yield breach(each, f"the request with {why}", "a version that ApiVersions offered", why, "not offered", why)


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
    """A client sends the same request at most 200 times in a second in which nothing new was sent to it."""
    for each, number, since_ms in _crowded(history, SPIN):
        yield breach(each, _often(each, number), f"at most {SPIN}", str(number), each.api, since_ms=since_ms)
        return


@impact("A consumer repeats requests faster than its back-off allows", "trivia", "resources", "needless-move")
@timed("client/paces-itself", "grp-96", grade=Grade.SHOULD, premise=(REQUEST, REQUEST))
def paces_itself(history: History) -> Iterator[Violation]:
    """A client sends the same request at most 20 times in a second in which nothing new was sent to it."""
    most: dict[str, tuple[Happened, int, int]] = {}
    for each, number, since_ms in _crowded(history, BUSY):
        if each.api not in most or number > most[each.api][1]:
            most[each.api] = each, number, since_ms
    for api, (each, number, since_ms) in most.items():
        if number <= SPIN:  # else it spins
            cause = disturbance(history, each.step)
            why = _often(each, number)
            yield breach(each, why, f"at most {BUSY}", str(number), api, *cause, since_ms=since_ms)


def _often(each: Happened, number: int) -> str:
    return f"the same {each.api} request, {number} times in a second in which nothing new was sent to the client"


def _crowded(history: History, most: int) -> Iterator[tuple[Happened, int, int]]:
    """The requests that were sent more than ``most`` times in the second before them, how many times, and since when.

    Requests of one kind with other contents are other requests: a client may ask for each partition alone. New are
    records, a generation or assignment, and an error that the last answer of its kind did not have. Other answers
    repeat what the client knows.
    """
    seen: dict[tuple[str, int], deque[int]] = {}
    errors: dict[str, int] = {}
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
            times = seen.setdefault((each.api, each.event["digest"]), deque())
            times.append(each.ms)
            while times[0] < each.ms - GRACE_MS:
                times.popleft()
            if len(times) > most:
                yield each, len(times), times[0]
