"""Which laws of clients speak about traffic that passes by, and why the others are silent.

A law speaks only where its premise is visible in the traffic of the connections over which a member talks to its
group. Neither the program is seen, nor its user, nor which other connections are its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from kipcheck.conformance.core.history import History
from kipcheck.conformance.core.verdict import Violation
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.client.invariants.identity import PROTOCOL_SINCE
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS
from kipcheck.conformance.protocols.client.invariants.partitions import EAGER
from kipcheck.conformance.protocols.client.trace import FENCING, HEARTBEAT, ILLEGAL_GENERATION
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, Invariant

OTHER_CONNECTIONS: Final = "it is about requests that a member sends over other connections, which do not name it"
PAUSE: Final = "a process that was paused, or whose network was, breaks it without a fault of the client"
SETTINGS: Final = "back-off and intervals are settings of the user, which are not on the wire"
PROCESS: Final = "the start, the signals and the end of the process are not on the wire"
SILENT: Final[Mapping[str, str]] = {
    # A consumer without a group may have the same client id, host and even connection, and fetch any partition.
    "client/reads-its-own": OTHER_CONNECTIONS,
    "client/starts-at-the-committed-offset": OTHER_CONNECTIONS,
    "client/commits-what-it-read": OTHER_CONNECTIONS,
    # The look-up goes over another connection, and any other may have told the client of its coordinator.
    "client/finds-its-coordinator": OTHER_CONNECTIONS,
    "client/beats": PAUSE,
    "client/beats-in-time": PAUSE,
    # One request may be written before a process that was paused reads the answer that fences it.
    "client/stays-fenced": PAUSE,
    # The heartbeat thread of a process that was paused may come before the thread that reads the answer.
    "client/syncs": PAUSE,
    "client/does-not-spin": SETTINGS,
    "client/paces-itself": SETTINGS,
    "client/beats-no-more-than-due": SETTINGS,
    # A broker closes such a connection without a word, as for many other reasons.
    "client/asks-what-is-offered": "the reason for which a broker closes a connection is not on the wire",
    # Another user may have asked it to stay out; and the law reads what a script waited for.
    "client/comes-back": PROCESS,
    "client/comes-back-soon": PROCESS,
    # Since Kafka 4.1 (KIP-1092) a user may ask a static member to leave, and a dynamic one to stay.
    "client/leaves": PROCESS,
    "client/leaves-with-its-epoch": PROCESS,
    "client/ends-when-stopped": PROCESS,
}
"""Law -> why it does not speak."""
CERTAIN_AFTER: Final[Mapping[str, int]] = {"client/stops-when-fenced": 3}
"""Law -> how often a member has to break it. A process that was paused may send a request before it reads the answer
that ends its membership, but not three."""


_AS_MEMBER: Final = ("SyncGroup", "Heartbeat", "OffsetCommit")
_LEADS, _FENCED, _OWNS, _EAGER, _COOPERATIVE = "leads", "is fenced", "owns", "eager", "cooperative"
PREMISES: Final[Mapping[str, tuple[str, ...]]] = {
    "client/encodes-strictly": (),
    "client/embeds-strictly": ("JoinGroup",),
    "client/correlates": (),
    "client/names-its-epoch": (HEARTBEAT,),
    "client/joins-anew-when-fenced": (HEARTBEAT, _FENCED),
    "client/owns-what-it-is-assigned": (HEARTBEAT, _OWNS),
    "client/names-itself": ("as a member",),
    "client/joins-with-its-id": ("JoinGroup",),
    "client/keeps-its-id": ("JoinGroup", f"error {ILLEGAL_GENERATION}"),
    "client/names-its-instance": ("as a member",),
    "client/names-its-protocol": ("SyncGroup v5",),
    "client/keeps-its-settings": ("JoinGroup",),
    "client/assigns-to-everybody": ("SyncGroup",),
    "client/assigns-each-partition-once": ("SyncGroup", _LEADS),
    "client/assigns-evenly": ("SyncGroup", _LEADS),
    "client/hands-over": ("SyncGroup", _LEADS, _COOPERATIVE),
    "client/stops-when-fenced": (_FENCED,),
    "client/commits-its-own": ("OffsetCommit",),
    "client/owns-nothing-when-eager": (_EAGER,),
    "client/claims-what-it-owns": (_COOPERATIVE,),
}
"""Law -> what a history contains, all of it, where the law reads something. In other histories it is not judged."""


def reading(events: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The laws that read something in a history."""
    there = {kind for each in events for kind in _kinds(each)}
    return frozenset(each.id for each in speaking() if there.issuperset(PREMISES[each.id]))


def _kinds(event: Mapping[str, Any]) -> Iterator[str]:
    """What an event is, in the words of ``PREMISES``."""
    if event["what"] == "request":
        api: str = event["api"]
        yield api
        if api in _AS_MEMBER:
            yield "as a member"
        if api == "SyncGroup" and event["version"] >= PROTOCOL_SINCE:
            yield "SyncGroup v5"
        if api == HEARTBEAT and event.get("owned"):
            yield _OWNS
        offered = {name for name, _ in event.get("protocols", ())}
        if offered & EAGER:
            yield _EAGER
        if offered == {COOPERATIVE}:
            yield _COOPERATIVE
    elif event["what"] == "answer":
        error = event.get("error", 0)
        yield f"error {error}"
        if error in FENCING:
            yield _FENCED
        if "sizes" in event and event["api"] == "JoinGroup":
            yield _LEADS


@cache
def speaking() -> tuple[Invariant, ...]:
    """The laws that speak, in the order of verdicts."""
    return tuple(INVARIANTS[id] for id in CHECKS[SURVIVES_GROUPS].invariants if id not in SILENT)


def violations(history: History) -> Iterator[tuple[Invariant, Violation]]:
    """What breaks the laws that speak: each shape of a law once, its first violation."""
    for law in speaking():
        found = list(law.search(history))
        if not found or len(found) < CERTAIN_AFTER.get(law.id, 1):
            continue
        if law.unsure is not None and law.unsure(history):
            continue
        by_shape: dict[tuple[str, ...], Violation] = {}
        for each in found:
            by_shape.setdefault(each.shape, each)
        yield from ((law, each) for each in by_shape.values())
