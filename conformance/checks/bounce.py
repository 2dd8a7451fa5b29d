"""What checks of upgrades are about: scripts of an operator over a group, drawn and written by hand, with failures."""

from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Final

from conformance.apis.bounce import shorthand, spoken
from conformance.checks.declared import Check, Conversation, Family
from conformance.checks.machines import Subject, Value, Wording, conversation, machine_family
from conformance.core.case import Role, Step
from conformance.core.edition import APACHE, KIP_429, edition
from conformance.core.history import Replied
from conformance.models.rolling_bounce import bounces_in
from conformance.targets.protocol import BOUNCE
from strategies.bounce import bounces, streams
from strategies.nodes import Node

Scripts = Callable[[Subject], Iterable[Conversation]]

START: Final = "roll a {0}; roll b {0}; roll c {0}; settle"
ROLL: Final = "roll a {0}; settle; roll b {0}; settle; roll c {0}; settle"
HASTY: Final = "roll a {0}; move b 3; roll b {0}; move c 2; roll c {0}; settle"
"""Without waiting."""
TWO_BOUNCES: Final = (
    "; ".join((START.format("old"), ROLL.format("ready"), ROLL.format("cooperative"))),
    "; ".join((START.format("old"), HASTY.format("ready"), HASTY.format("cooperative"))),
)
ONE_BOUNCE: Final = "; ".join((START.format("cooperative"), ROLL.format("later")))
"""With leader choice by version (429-09)."""
STRAY: Final = "roll a cooperative; roll b cooperative; settle; roll c {0}; settle; settle; stop b; settle; stop c; settle"
"""A member of version 0 in an upgraded group, and another that leaves (429-10, 429-11)."""
FAILED_LEADER: Final = START.format("cooperative") + "; crash a; roll a old; settle; crash b; roll b ready; settle"
"""429-12"""
MIXED_FOR_EVER: Final = "roll a cooperative; roll b ready; roll c ready; settle; settle; settle; settle; stop a; settle"
"""429-13"""
SKIPPED: Final = "old-brokers; roll a old; settle; roll b cooperative; settle; roll c old; settle; stop c; settle"
"""429-06"""
NEWER_STREAMS: Final = "streams a 6; streams b 6; streams c 6; streams a 11; streams b 11; streams c 11"


def with_failures(text: str) -> Iterator[Conversation]:
    """As it is written, and with a failure after each step: a crash, and somebody starts it again; a broken connection,
    when something is under way."""
    steps = spoken(text)
    yield Conversation(steps)
    for at in range(1, len(steps)):
        for fault in (f"crash {_busy(steps[at - 1])}; revive {_busy(steps[at - 1])}", "move b; lose b"):
            yield Conversation((*steps[:at], *spoken(fault), *steps[at:]), "with a failure")


def _busy(step: Step) -> str:
    """Who was just spoken to, or else the first: it leads."""
    member: str = step.body.get("member", "a")
    return member


def upgrades(subject: Subject) -> Iterator[Conversation]:
    for text in TWO_BOUNCES:
        yield from with_failures(text)
    if subject.edition == KIP_429.name:
        yield from with_failures("old-brokers; " + TWO_BOUNCES[0])
        yield from with_failures(ONE_BOUNCE)
        yield from with_failures(FAILED_LEADER)


def mixes(subject: Subject) -> Iterator[Conversation]:
    for text in (STRAY.format("ready"), STRAY.format("old"), MIXED_FOR_EVER):
        yield from with_failures(text)


def editions(name: str) -> Iterable[str]:
    """Itself; a run of ``apache``, which names no release, has the draft too."""
    here = edition(name)
    found = (name,) if bounces_in(here) else ()
    return (*found, KIP_429.name) if here == APACHE else found


def _says(step: Step) -> str:
    return shorthand([step])


def _replied(reply: Replied) -> str:
    """What was seen, one after the other."""
    actions = dict(reply.payload).get("actions", ())
    return "; ".join(" ".join(str(value) for value in each.values()) for each in actions) or "nothing is seen"


def is_drafted(subject: Subject) -> bool:
    return subject.edition == KIP_429.name


UPGRADES: Family[Subject] = machine_family(
    Role.OPERATOR_TOOL, BOUNCE, editions, bounces, Wording("group", lambda step: step.actor, _says, _replied)
)


def _streams_node(subject: Subject) -> Node:
    return streams(subject.edition).declaration


def _streams_drawn(subject: Subject, random: Random) -> Value:
    found = streams(subject.edition)
    return [
        {"actor": each.actor, "verb": each.verb, "body": dict(each.body)}
        for each in found.draw(random, found.swarm(random))
    ]


BOUNCE_CHECKS: tuple[Check[Subject], ...] = (
    Check(
        "bounce/ownership",
        "nobody reads what another member reads, and in the end everything is read",
        UPGRADES,
        conversation,
        values=150,
        invariants=(
            "bounce/one-owner",
            "bounce/revoked-first",
            "bounce/skipped-path",
            "bounce/all-owned",
            "bounce/subscribed",
            "bounce/lost-is-neither",
        ),
        given=lambda subject: [Conversation(spoken(SKIPPED))] if is_drafted(subject) else [],
    ),
    Check(
        "bounce/upgrade",
        "two bounces bring a group from eager to cooperative, whatever fails on the way",
        UPGRADES,
        conversation,
        values=80,
        invariants=(
            "bounce/eager-gives-up",
            "bounce/incremental",
            "bounce/newest-leads",
            "bounce/rests",
            "bounce/upgraded",
            "bounce/one-owner",
            "bounce/revoked-first",
            "bounce/all-owned",
        ),
        given=upgrades,
    ),
    Check(
        "bounce/mixed",
        "a group that is left mixed tells so, and nobody reads twice",
        UPGRADES,
        conversation,
        values=80,
        invariants=("bounce/mixed", "bounce/metric", "bounce/one-owner", "bounce/revoked-first"),
        given=mixes,
        about=is_drafted,
    ),
    Check(
        "bounce/streams",
        "a Streams group led by its newest instance needs no probing round",
        UPGRADES,
        conversation,
        values=60,
        invariants=("bounce/no-probing",),
        given=lambda subject: [Conversation(spoken(NEWER_STREAMS))],
        about=is_drafted,
        draw=_streams_drawn,
        node=_streams_node,
    ),
)
