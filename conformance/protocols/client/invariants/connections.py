"""Laws of every request, whatever it is about: its bytes, its version, its correlation id, and how many there are."""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Grade, Violation
from kipcheck.conformance.protocols.client import events, premises, terms
from kipcheck.conformance.protocols.client.invariants.law import OF_ALL, breach, law, timed
from kipcheck.conformance.protocols.client.trace import TracedEvent, disturbance, is_answer, is_request, trace
from kipcheck.conformance.protocols.declare.invariant import impact

PLACE = 10

SPIN: Final = 200
"""Requests of one kind in a second that are a busy loop."""
NO_CONNECTION: Final = -1
BUSY: Final = 20
"""Requests of one kind in a second that are more than any back-off allows."""
Contents: TypeAlias = tuple[str, int | str]
"""API and digest of a request."""


@impact(
    "A broker refuses a request that is not written as its version says", "refused peer", "layout", "refused-peer",
    accepted="A request is not written as its version says; its broker answered it without an error",
)  # fmt: skip
@law("client/encodes-strictly", "grp-05", checks=OF_ALL, premise=(premises.REQUEST,))
def encodes_strictly(history: History) -> Iterator[Violation]:
    """Every request is written as its version says: strict decoding reads it whole."""
    for traced in trace(history):
        if isinstance(traced.event, events.RequestRefused):
            refused = traced.event
            name, why = f"{refused.message} v{refused.version}", refused.why
            yield breach(
                traced, why if why.startswith(name) else f"{name}: {why}", "bytes of that version",
                refused.hex, "refused", refused.message, refused.kind,
            )  # fmt: skip


@impact(
    "A member of the group stops with an error, because it cannot read what another member wrote", "stuck group",
    "layout", "stuck-group", "refused-peer",
)  # fmt: skip
@law("client/embeds-strictly", "grp-162", premise=(premises.EMBEDS,))
def embeds_strictly(history: History) -> Iterator[Violation]:
    """Subscriptions, assignments and user data of Kafka Streams have all fields of the version in front of them."""
    for traced in trace(history):
        if isinstance(traced.event, events.RecordDamaged):
            damaged = traced.event
            at = "" if damaged.start is None else f" (byte {damaged.start + damaged.at} of {damaged.api})"
            of = f" of {damaged.member}" if damaged.member else ""
            where = f"{damaged.record} v{damaged.of}" + (f" / {damaged.field}" if damaged.field else "")
            message = "" if damaged.version is None else f"{damaged.api} v{damaged.version} / "
            why = f"{message}{damaged.path}{of}: {where} at byte {damaged.at}{at}: "
            yield breach(
                traced, f"{why}{damaged.cause}; {damaged.readers}", f"the fields of version {damaged.of}",
                damaged.hex or f"{damaged.size} bytes", "damaged", damaged.record, damaged.kind,
                re.sub(r"\[\d+\]", "[]", damaged.field),
            )  # fmt: skip


@impact(
    "The broker closes the connection, since it does not have the requested version", "refused peer", "versions",
    "refused-peer",
)  # fmt: skip
@law("client/asks-what-is-offered", "grp-94", "grp-163", checks=OF_ALL, premise=(premises.REQUEST,))
def asks_what_is_offered(history: History) -> Iterator[Violation]:
    """A client sends only requests and versions that its broker serves: those within the ranges that it asked for."""
    offered = False
    for traced in trace(history):
        if is_answer(traced, "ApiVersions") and not traced.error:
            offered = True
        why = traced.event.why if isinstance(traced.event, events.Closed) else ""
        if why.endswith("is not served"):
            wanted = "a version that ApiVersions offered" if offered else "ApiVersions first, and a version within it"
            yield breach(traced, f"the request with {why}", wanted, why, "not offered", why)


@impact("A client takes an answer for that to another request", "wrong data", "answers", "wrong-data")
@law("client/correlates", "grp-97", checks=OF_ALL, grade=Grade.SHOULD, premise=(premises.REQUEST, premises.REQUEST))
def correlates(history: History) -> Iterator[Violation]:
    """While a request waits for its answer, the next one on its connection has another correlation id."""
    last: dict[int, int | str] = {}
    for traced in trace(history):
        if not is_request(traced):
            continue
        connection, id = traced.event.connection, traced.event.correlation
        if traced.event.pipelined and last.get(connection) == id:
            api = traced.event.api
            why = f"{api} has correlation id {id}, as the request before it has, which was not answered yet"
            yield breach(traced, why, "another correlation id", str(id), "correlation id", api)
        last[connection] = id


@impact("A consumer sends requests without a pause", "crash or hang", "resources", "hang")
@timed("client/does-not-spin", "grp-96", checks=OF_ALL, premise=(premises.REQUEST, premises.REQUEST))
def does_not_spin(history: History) -> Iterator[Violation]:
    """A client sends the same request at most 200 times in a second in which nothing new was sent to it.

    Connections that each send one request, which is answered, repeat nothing. Requests that failed are the same if they
    are of one kind, as of each partition alone. Each kind is a breach: where several take turns, such as Metadata and a
    request that fails again with what it says, the first need not be the cause.
    """
    spinning: set[str] = set()
    failed = _crowded(history, SPIN, failed_only=True, is_by_contents=False)
    for traced, number, since_ms in chain(_crowded(history, SPIN, failed_only=False), failed):
        api = traced.event.api
        if api not in spinning:
            spinning.add(api)
            yield breach(traced, _often(traced, number), f"at most {SPIN}", str(number), api, since_ms=since_ms)


@impact("A consumer repeats requests faster than its back-off allows", "trivia", "resources", "needless-move")
@timed("client/paces-itself", "grp-96", grade=Grade.SHOULD, premise=(premises.REQUEST, premises.REQUEST))
def paces_itself(history: History) -> Iterator[Violation]:
    """A client repeats a failed request at most 20 times in a second in which nothing new was sent to it.

    A request failed that was answered with an error, or whose connection ended before it was answered. After a failure
    the requests of the group count too: what failed may be repeated with another generation, or by other requests. A
    client may read each of its partitions over a connection of its own, and such a reader repeats nothing at first.
    """
    most: dict[str, tuple[TracedEvent[events.RequestSeen], int, int]] = {}
    for traced, number, since_ms in _crowded(history, BUSY, failed_only=True):
        if traced.event.api not in most or number > most[traced.event.api][1]:
            most[traced.event.api] = traced, number, since_ms
    for api, (traced, number, since_ms) in most.items():
        if number <= SPIN:  # else it spins
            # A group that rebalances is no disturbance of the script.
            cause = () if traced.answered == KafkaError.REBALANCE_IN_PROGRESS else disturbance(history, traced.step)
            why = _often(traced, number)
            yield breach(traced, why, f"at most {BUSY}", str(number), api, *cause, since_ms=since_ms)


def _often(traced: TracedEvent[events.RequestSeen], number: int) -> str:
    often = f"{number} times in a second in which nothing new was sent to the client"
    return f"the same {traced.event.api} request, {often}"


@dataclass(slots=True)
class _Outcomes:
    """Which requests have failed, by API and contents."""

    waiting: dict[int, deque[Contents]] = field(default_factory=dict)
    """The requests of each connection without an answer."""
    failed: set[Contents] = field(default_factory=set)
    """Those whose last like failed."""
    failures: int = 0
    before: dict[Contents, int] = field(default_factory=dict)
    """The failures before the last request of its kind."""

    def repeats_a_failure(self, request: events.RequestSeen) -> bool:
        """Whether a request repeats one that failed; or one of its group, and another one failed since: a join that
        succeeds and is followed by a SyncGroup that fails is repeated because of that."""
        key = request.api, request.digest
        before, self.before[key] = self.before.get(key, self.failures), self.failures
        of_group = request.api in terms.OF_GROUPS | terms.GROUP_REQUESTS
        return key in self.failed or (of_group and self.failures > before)

    def read(self, traced: TracedEvent[events.Event]) -> None:
        connection = traced.connection
        if is_request(traced):
            self.waiting.setdefault(connection, deque()).append((traced.event.api, traced.event.digest))
        elif is_answer(traced):
            waiting = self.waiting.get(connection, deque())
            key = next((request for request in waiting if request[0] == traced.event.api), None)
            if key is not None:
                waiting.remove(key)
                (self.failed.add if traced.error or traced.event.missing else self.failed.discard)(key)
            self.failures += bool(traced.error)
        elif isinstance(traced.event, events.Closed):
            unanswered = self.waiting.pop(connection, ())
            self.failed.update(unanswered)
            self.failures += len(unanswered)


def _crowded(
    history: History, most: int, failed_only: bool, is_by_contents: bool = True
) -> Iterator[tuple[TracedEvent[events.RequestSeen], int, int]]:
    """The requests that were sent more than ``most`` times in the second before them, how many times, and since when.

    Requests of one kind with other contents are other requests: a client may ask for each partition alone. New are
    records, a generation or assignment, and an error that the last answer of its kind did not have. Other answers
    repeat what the client knows. A request repeats one of its group, one that failed, and one of its own connection:
    each connection of a client may begin with the same requests. ``failed_only``: it counts where it repeats a failure.
    Where it goes over several connections, as many do not count as the client has partitions, but for one. Without
    ``is_by_contents`` requests of one kind are the same, whatever their contents.
    """
    sent: dict[tuple[str, int | str, int], deque[tuple[int, int]]] = {}
    errors: dict[str, int] = {}
    outcomes = _Outcomes()
    for traced in trace(history):
        if is_answer(traced):
            api = traced.event.api
            if traced.error != errors.get(api, 0) or traced.event.records:
                sent.clear()
            elif api in ("JoinGroup", "SyncGroup") and not traced.error:
                sent = {key: times for key, times in sent.items() if key[0] in ("JoinGroup", "SyncGroup")}
            errors[api] = traced.error
        elif isinstance(traced.event, events.Signalled):
            sent.clear()
        elif is_request(traced):
            key = traced.event.api, traced.event.digest if is_by_contents else ""
            has_failed = outcomes.repeats_a_failure(traced.event)
            if has_failed or not failed_only:
                of_any = has_failed or traced.event.api in terms.OF_GROUPS
                times = sent.setdefault((*key, NO_CONNECTION if of_any else traced.event.connection), deque())
                times.append((traced.ms, traced.event.connection))
                while times[0][0] < traced.ms - terms.GRACE_MS:
                    times.popleft()
                if len(times) > most and (number := len(times) - _readers(traced, times)) > most:
                    yield traced, number, times[0][0]
        outcomes.read(traced)


def _readers(traced: TracedEvent[events.RequestSeen], times: Iterable[tuple[int, int]]) -> int:
    """How many of the like requests may each be the first one of another reader of a partition, but for one."""
    if traced.event.api in (*terms.OF_GROUPS, *terms.GROUP_REQUESTS) or traced.now is None:
        return 0
    return max(min(len({connection for _, connection in times}), len(traced.now.partitions)) - 1, 0)
