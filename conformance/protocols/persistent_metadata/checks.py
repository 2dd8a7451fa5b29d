"""Checks of clusters with KIP-384's setting."""

from collections.abc import Iterable
from itertools import pairwise, product
from typing import Final, get_args

from kipcheck.conformance.core.edition import APACHE, KIP_384, edition
from kipcheck.conformance.protocols.declare.check import Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, conversation, operations_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.persistent_metadata.invariants import CONFIGURATION, FORMATS, ROLLS
from kipcheck.conformance.protocols.persistent_metadata.ops import OPERATIONS, Start
from kipcheck.conformance.protocols.persistent_metadata.settings import (
    LINES,
    STEPS,
    Binary,
    edge_names,
    knows_setting,
    name,
)
from kipcheck.conformance.protocols.persistent_metadata.strategies import ROLLS as DRAWN


def editions(name: str) -> Iterable[str]:
    """The draft, which no release adopted; a run of ``apache``, which names no release, includes it."""
    return (KIP_384.name,) if edition(name) in (APACHE, KIP_384) else ()


A_CASE: Final = 20
"""Starts of an enumerated case."""


def settings(subject: Subject) -> Iterable[Conversation]:
    """Every edge of the names in each setting of each binary; and each version of the message format beside its bound.

    What a start is depends on no start before it.
    """
    names, starts = edge_names(), list[Start]()
    for binary in get_args(Binary):
        starts += (Start(0, binary, inter_broker=each) for each in names)
        starts += (Start(0, binary, persistent=each, format=LINES[0]) for each in names)
        starts += (Start(0, binary, format=each) for each in names)
    ranks = [(line, step) for line, count in enumerate(STEPS.values()) for step in range(max(count, 1))]
    for (before, at), newest in product(pairwise(map(name, ranks)), filter(knows_setting, get_args(Binary))):
        starts += (
            Start(0, newest, persistent=one, format=other) for one, other in ((before, at), (at, before), (at, at))
        )
    for first in range(0, len(starts), A_CASE):
        steps = map(OPERATIONS.step_of, starts[first : first + A_CASE])
        yield Conversation(tuple(steps), f"settings {first}")


CLUSTER: Family[Subject] = operations_family(OPERATIONS, editions, lambda edition: DRAWN, "cluster")
CHECKS: tuple[Check[Subject], ...] = (
    Check(
        CONFIGURATION,
        "settings have known names, the draft's defaults and its one bound",
        CLUSTER,
        conversation,
        values=200,
        invariants=invariants_of(CONFIGURATION),
        given=settings,
    ),
    Check(
        FORMATS,
        "every store is written in the format that its setting allows, and replicated as it was written",
        CLUSTER,
        conversation,
        values=300,
        invariants=invariants_of(FORMATS),
    ),
    Check(
        ROLLS,
        "a roll can be undone until the setting is raised, and not unnoticed after that",
        CLUSTER,
        conversation,
        values=300,
        invariants=invariants_of(ROLLS),
    ),
)
