"""Checks of rolling upgrades: scripts of an operator over a group, drawn or written by hand, with failures."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Final

from kipcheck.conformance.core.values.edition import APACHE, KIP_429, edition
from kipcheck.conformance.protocols.declare.check import Check, Conversation
from kipcheck.conformance.protocols.declare.conversations import Subject, Value
from kipcheck.conformance.protocols.declare.invariant import invariants_of
from kipcheck.conformance.protocols.upgrade import invariants, script_checks as scripts
from kipcheck.conformance.protocols.upgrade.model.upgrade import has_upgrade
from kipcheck.conformance.protocols.upgrade.ops import BOUNCE, OPERATIONS
from kipcheck.conformance.protocols.upgrade.orders import bounce_scripts
from kipcheck.conformance.protocols.upgrade.script_checks import possible_script, script_family, value_of
from kipcheck.conformance.protocols.upgrade.strategies import streams, upgrade_scripts
from kipcheck.strategies.nodes import Node

START: Final = "roll a {0}; roll b {0}; roll c {0}; settle"
ROLL: Final = "roll a {0}; settle; roll b {0}; settle; roll c {0}; settle"
WITHOUT_WAITING: Final = "roll a {0}; move b 3; roll b {0}; move c 2; roll c {0}; settle"
"""The next member is restarted before the group is at rest."""
TWO_BOUNCES: Final = (
    "; ".join((START.format("old"), ROLL.format("ready"), ROLL.format("cooperative"))),
    "; ".join((START.format("old"), WITHOUT_WAITING.format("ready"), WITHOUT_WAITING.format("cooperative"))),
)
ONE_BOUNCE: Final = "; ".join((START.format("cooperative"), ROLL.format("later")))
"""With leader choice by version (429-09)."""
TWO: Final = "roll a cooperative; roll b cooperative; settle; "
STRAY: Final = TWO + "roll c {0}; settle; settle; stop b; settle; stop c; settle"
"""A member of version 0 in an upgraded group, and another that leaves (429-10, 429-11)."""
FAILED_LEADER: Final = START.format("cooperative") + "; crash a; roll a old; settle; crash b; roll b ready; settle"
"""429-12"""
MIXED_FOR_EVER: Final = "roll a cooperative; roll b ready; roll c ready; settle; settle; settle; settle; stop a; settle"
"""429-13"""
RESOLVED: Final = tuple(
    f"{TWO}roll c {kind}; settle; stop b; settle; {then}; settle; revive b; settle"
    for kind in ("old", "ready")
    for then in ("stop c", "roll c cooperative")
)
"""The member of version 0 leaves, or is upgraded (429-26)."""
HAND_OVER: Final = "roll a cooperative; settle; roll b cooperative; move b 4; settle; roll c ready; move c 4; settle"
SKIPPED: Final = "old-brokers; roll a old; settle; roll b cooperative; settle; roll c old; settle; stop c; settle"
"""429-06"""
NEWER_STREAMS: Final = "streams a 6; streams b 6; streams c 6; streams a 11; streams b 11; streams c 11"


def with_failures(text: str) -> Iterator[str]:
    return scripts.with_failures(OPERATIONS, text, "crash {0}; revive {0}")


def first_values(*scripts: str) -> tuple[Callable[[Subject], Value], ...]:
    """The scripts as first values of a check."""

    def value(text: str) -> Callable[[Subject], Value]:
        return lambda subject: value_of(subject, OPERATIONS.parse_shorthand(text))

    return tuple(map(value, scripts))


UPGRADED: Final = first_values(*with_failures(TWO_BOUNCES[0]), TWO_BOUNCES[1], "old-brokers; " + TWO_BOUNCES[0])
HANDED: Final = first_values(*with_failures(HAND_OVER))
MIXED: Final = first_values(STRAY.format("ready"), STRAY.format("old"), *with_failures(MIXED_FOR_EVER), *RESOLVED)
LED: Final = first_values(SKIPPED, ONE_BOUNCE, *with_failures(FAILED_LEADER))
DRAWN: Final = 60


def editions(name: str) -> Iterable[str]:
    """The edition itself; a run of ``apache``, which names no release, includes the draft too."""
    here = edition(name)
    found = (name,) if has_upgrade(here) else ()
    return (*found, KIP_429.name) if here == APACHE else found


def is_drafted(subject: Subject) -> bool:
    return subject.edition == KIP_429.name


def is_released(subject: Subject) -> bool:
    return subject.edition != KIP_429.name


def in_every_order(subject: Subject) -> Iterator[Conversation]:
    for text in bounce_scripts():
        yield Conversation(tuple(OPERATIONS.parse_shorthand(text)), "order")


UPGRADES: Final = script_family(OPERATIONS, "group", BOUNCE, editions, upgrade_scripts)
conversation: Final = possible_script(OPERATIONS)


def _streams_node(subject: Subject) -> Node:
    return streams(subject.edition).declaration


def _streams_drawn(subject: Subject, random: Random) -> Value:
    found = streams(subject.edition)
    return [
        {"actor": each.actor, "verb": each.verb, "body": dict(each.body)}
        for each in found.draw(random, found.swarm(random))
    ]


of: Final = partial(invariants_of, part=invariants)
OWNERS: Final = of(invariants.OWNERS)

CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "bounce/ownership",
        "no two members read a partition at once, and in the end every partition is read",
        UPGRADES,
        conversation,
        values=len(HANDED) + 2 * DRAWN,
        invariants=of("bounce/ownership"),
        first=HANDED,
    ),
    Check(
        "bounce/upgrade",
        "two rolling bounces bring a group from eager to cooperative, whatever fails on the way",
        UPGRADES,
        conversation,
        values=len(UPGRADED) + DRAWN,
        invariants=(*of("bounce/upgrade"), *OWNERS, *of(invariants.SERVED)),
        first=UPGRADED,
    ),
    Check(
        "bounce/mixed",
        "a mixed group reports it by an error and a metric, and no two members read a partition at once",
        UPGRADES,
        conversation,
        values=len(MIXED) + DRAWN,
        invariants=(*of("bounce/mixed"), *OWNERS),
        first=MIXED,
        about=is_drafted,
    ),
    Check(
        "bounce/leaders",
        "the newest member leads, and conflicts under an older leader are reported",
        UPGRADES,
        conversation,
        values=len(LED) + DRAWN,
        invariants=(*of("bounce/leaders", first=("bounce/newest-leads",)), *OWNERS),
        first=LED,
        about=is_drafted,
    ),
    Check(
        "bounce/streams",
        "a Streams group led by its newest instance needs no probing round",
        UPGRADES,
        conversation,
        values=60,
        invariants=of("bounce/streams"),
        first=first_values(NEWER_STREAMS),
        about=is_drafted,
        draw=_streams_drawn,
        node=_streams_node,
    ),
    Check(
        "bounce/orders",
        "released members are upgraded by two bounces in every order, also if one is killed; unlike ones are refused",
        UPGRADES,
        conversation,
        values=0,
        invariants=(*of("bounce/upgrade", first=("bounce/eager-gives-up",)), *of("bounce/ownership")),
        about=is_released,
        given=in_every_order,
    ),
)
