"""Checks of upgrades of stores as KIP-258's draft has them."""

from collections.abc import Iterable

from kipcheck.conformance.core.values.edition import APACHE, KIP_258, edition
from kipcheck.conformance.protocols.declare.check import Check, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.store_upgrade.invariants.group import GROUP
from kipcheck.conformance.protocols.store_upgrade.invariants.stores import CHANGELOG, STORES
from kipcheck.conformance.protocols.store_upgrade.ops import OPERATIONS
from kipcheck.conformance.protocols.store_upgrade.strategies import UPGRADES
from kipcheck.conformance.protocols.store_upgrade.tables import changelogs, groups, stores


def editions(name: str) -> Iterable[str]:
    """The draft, which no release adopted; a run of ``apache``, which names no release, includes it."""
    return (KIP_258.name,) if edition(name) in (APACHE, KIP_258) else ()


APPLICATION: Family[Subject] = operations_family(OPERATIONS, editions, lambda edition: UPGRADES, "application")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        CHANGELOG,
        "no upgrade of a store loses, doubles or misreads a record of a changelog in two formats",
        APPLICATION,
        conversation,
        values=200,
        invariants=invariants_of(CHANGELOG),
        given=changelogs,
    ),
    Check(
        STORES,
        "the old store serves until the new one is whole, and a failed upgrade is taken up again",
        APPLICATION,
        conversation,
        values=100,
        invariants=invariants_of(STORES),
        given=stores,
    ),
    Check(
        GROUP,
        "the roll-over is marked and mirrored, and every task has one owner throughout",
        APPLICATION,
        conversation,
        values=100,
        invariants=invariants_of(GROUP),
        given=groups,
    ),
)
