"""Checks of the leaders of share partitions (KIP-932)."""

from collections.abc import Iterable
from random import Random
from typing import Final

from kipcheck.conformance.core.values.case import steps_from
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.share_partition import invariants
from kipcheck.conformance.protocols.share_partition.ops import OPERATIONS
from kipcheck.conformance.protocols.share_partition.strategies import SHARE_PARTITIONS
from kipcheck.conformance.protocols.share_partition.target import MACHINE

BEGUN: Final = "reset earliest; produce 3; open a; open b"
RELOADED: Final = "reload; open c; pass 30000; fetch c; pass 30000; fetch c most 1"
KNOWN: Final = {
    "types": f"{BEGUN}; ack a accept 0-0; ack a release 1-1; ack a reject 2-2; fetch b; ack b gap 1-1; {RELOADED}",
    "not its own": f"{BEGUN}; ack b accept 0-0; ack b release 0-2; ack a accept 1-3; ack a accept 3-4; "
    "ack a unknown 0-0; ack a accept 1-0; ack a accept 0-2; ack b accept 0-0; ack b accept 2-3; "
    "fetch b; ack a accept 0-5",
    "lock": f"{BEGUN}; pass 10000; ack a renew 1-2; pass 20000; fetch b; ack a accept 0-0; ack a accept 1-2; "
    "pass 10000; fetch b; pass 20000; fetch b; ack b accept 0-0",
    "limit": f"{BEGUN}; {4 * 'pass 30000; fetch b; '}produce 2; fetch a; fetch b; {RELOADED}",
    "released too often": f"{BEGUN}; {3 * 'ack a release 0-2; fetch a; fetch a; fetch a; '}fetch b; produce 1; fetch b",
    "with a fetch": f"{BEGUN}; fetch a accept 0-1; produce 1; fetch b accept 0-0; fetch b renew 3-3; "
    "fetch a accept 2-2; close a; close b reject 3-3; close b; fetch b-1; ack b-1 accept 3-3",
    "epochs": f"{BEGUN}; fetch a-1; fetch a+1; ack a-1 accept 0-0; ack-opening a accept 0-0; open c accept 0-0; "
    "fetch a; ack-closing a accept 0-0; ack a accept 1-1; fetch b; open b; fetch b+1; fetch b",
    "closed": f"{BEGUN}; close a; fetch b; disconnect b; open c; open c; fetch c; pass 30000; fetch c",
    "few": f"{BEGUN}; ack a release 0-2; fetch b most 1; fetch a most 1 strictly; fetch b most 2 strictly; "
    "produce 3; fetch a most 2; fetch b most 2 strictly; fetch b",
    "latest": f"produce 2; open a; produce 2; fetch a; {RELOADED}; produce 1; fetch c",
    "gaps": f"{BEGUN}; ack a accept 1-1; produce 2; fetch b; ack b accept 4-4; {RELOADED}; ack c accept 0-4; fetch c",
    "reset": "reset earliest; produce 2; open a; ack a release 0-0; reset latest; reload; open a; ack a accept 0-1; "
    "reload; produce 1; fetch a; reload; fetch a",
}  # fmt: skip


def with_end(subject: Subject, value: Value, random: Random) -> Iterable[Conversation]:
    """In half of the cases records are there first; in half of them locks expire at the end, and a reload follows."""
    begun = OPERATIONS.parse_shorthand(BEGUN) if random.random() < 0.5 else ()
    ended = OPERATIONS.parse_shorthand(f"pass 30000; open c; {RELOADED}") if random.random() < 0.5 else ()
    yield Conversation((*begun, *steps_from(value), *ended))


def known_ones(subject: Subject) -> Iterable[Conversation]:
    for name, text in KNOWN.items():
        yield Conversation(OPERATIONS.parse_shorthand(text), name)


LEADERS: Family[Subject] = operations_family(OPERATIONS, MACHINE.editions, lambda edition: SHARE_PARTITIONS, "leader")

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        invariants.RECORDS,
        "a record has one holder, is delivered again until it is done, and never after that",
        LEADERS,
        with_end,
        values=200,
        invariants=invariants_of(invariants.RECORDS),
        given=known_ones,
    ),
)
