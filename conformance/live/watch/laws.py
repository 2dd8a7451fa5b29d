"""Which laws of clients speak about traffic that passes by, and why the others are silent.

A law speaks only where its premise is visible in the traffic of the connections over which a member talks to its
group. Neither the program is seen, nor its user, nor which other connections are its own.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS, Invariant

OTHER_CONNECTIONS: Final = "it is about requests that a member sends over other connections, which do not name it"
PAUSE: Final = "a process that was paused, or whose network was, breaks it without a fault of the client"
SETTINGS: Final = "back-off and intervals are settings of the user, which are not on the wire"
TOPICS: Final = "the topics that a program is given are not on the wire"
PROCESS: Final = "the start, the signals and the end of the process are not on the wire"
CALLBACKS: Final = "the callbacks of a program are not on the wire"
UNREAD: Final = "whether a member has read an answer, or only the capture has, is not on the wire"
SILENT: Final[Mapping[str, str]] = {
    # A consumer without a group may have the same client id, host and even connection, and fetch any partition.
    "client/reads-its-own": OTHER_CONNECTIONS,
    "client/starts-at-the-committed-offset": OTHER_CONNECTIONS,
    "client/commits-what-it-read": OTHER_CONNECTIONS,
    "client/reads-on": OTHER_CONNECTIONS,
    "client/revokes-before-it-acknowledges": OTHER_CONNECTIONS,
    "client/waits-for-offsets": OTHER_CONNECTIONS,
    "client/reads-in-order": OTHER_CONNECTIONS,
    "client/stops-reading-to-join": OTHER_CONNECTIONS,
    "client/reads-what-it-is-assigned": OTHER_CONNECTIONS,
    "client/commits-its-position": OTHER_CONNECTIONS,
    "client/commits-in-time": OTHER_CONNECTIONS,
    "client/commits-before-it-leaves": OTHER_CONNECTIONS,
    # The look-up goes over another connection, and any other may have told the client of its coordinator.
    "client/finds-its-coordinator": OTHER_CONNECTIONS,
    "client/beats": PAUSE,
    "client/beats-in-time": PAUSE,
    "client/commits-with-its-epoch": PAUSE,
    # One request may be written before a process that was paused reads the answer that fences it.
    "client/stays-fenced": PAUSE,
    # The heartbeat thread of a process that was paused may come before the thread that reads the answer.
    "client/syncs": PAUSE,
    "client/does-not-spin": SETTINGS,
    "client/paces-itself": SETTINGS,
    "client/beats-no-more-than-due": SETTINGS,
    "client/leaves-when-it-does-not-poll": SETTINGS,
    # A broker closes such a connection without a word, as for many other reasons.
    "client/asks-what-is-offered": "the reason for which a broker closes a connection is not on the wire",
    # Another user may have asked it to stay out; and the law reads what a script waited for.
    "client/comes-back": PROCESS,
    "client/comes-back-soon": PROCESS,
    # Since Kafka 4.1 (KIP-1092) a user may ask a static member to leave, and a dynamic one to stay.
    "client/leaves": PROCESS,
    # So may one that is closed, or whose program works too long.
    "client/stays": PROCESS,
    "client/joins-once": PROCESS,
    "client/asks-for-offsets-again": OTHER_CONNECTIONS,
    "client/waits-for-the-others": PROCESS,
    "client/rejoins-after-revoking": OTHER_CONNECTIONS,
    "client/beats-at-its-interval": SETTINGS,
    "client/pauses-before-it-repeats": SETTINGS,
    "client/keeps-its-coordinator": OTHER_CONNECTIONS,
    "client/gives-up-a-silent-coordinator": OTHER_CONNECTIONS,
    # A program may commit for a group of which it is no member.
    "client/commits-as-a-member": OTHER_CONNECTIONS,
    "client/joins-for-new-partitions": OTHER_CONNECTIONS,
    "client/repeats-in-full": UNREAD,
    "client/calls-back-once": CALLBACKS,
    "client/calls-back-in-time": CALLBACKS,
    "client/calls-them-lost": CALLBACKS,
    "client/revokes-when-it-closes": CALLBACKS,
    "client/leaves-with-its-epoch": PROCESS,
    "client/ends-when-stopped": PROCESS,
    # A user may call a client again that has raised an error.
    "client/raises-fatal-errors": PROCESS,
    "client/names-its-topics": TOPICS,
    "client/subscribes-by-its-pattern": TOPICS,
    # A member that is closed leaves without SyncGroup.
    "client/leads-other-clients": PROCESS,
    "client/ends-its-share-sessions": PROCESS,
    # A user may pause between polls, and a share consumer fetches when it is polled.
    "client/shares-what-it-is-assigned": PAUSE,
}
"""Law -> why it does not speak."""
CERTAIN_AFTER: Final[Mapping[str, int]] = {"client/stops-when-fenced": 3}
"""Law -> how often a member has to break it. A process that was paused may send a request before it reads the answer
that ends its membership, but not three."""


def reading(history: History) -> frozenset[str]:
    """The laws that read something in a history: in others they are not judged."""
    return frozenset(each.id for each in speaking(history.case.check) if each.premise is None or each.premise(history))


@cache
def speaking(check: str) -> tuple[Invariant, ...]:
    """The laws of a check of ``OF_ALL`` that speak, in the order of verdicts."""
    return tuple(INVARIANTS[id] for id in CHECKS[check].invariants if id not in SILENT)


def violations(history: History) -> Iterator[tuple[Invariant, Violation]]:
    """What breaks the laws that speak: each shape of a law once, its first violation."""
    for law in speaking(history.case.check):
        found = list(law.search(history))
        if not found or len(found) < CERTAIN_AFTER.get(law.id, 1):
            continue
        if law.unsure is not None and law.unsure(history):
            continue
        by_shape: dict[tuple[str, ...], Violation] = {}
        for each in found:
            by_shape.setdefault(each.shape, each)
        yield from ((law, each) for each in by_shape.values())
