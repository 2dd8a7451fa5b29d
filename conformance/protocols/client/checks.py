"""Checks of live clients: scripts of a broker and of the other members of a group."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.protocols.client import cells, invariants, plan
from kipcheck.conformance.protocols.client.answer_ops import SHARES, STREAMS
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_GROUPS, SURVIVES_SHARES, SURVIVES_STREAMS
from kipcheck.conformance.protocols.client.model import REFUSALS
from kipcheck.conformance.protocols.client.ops import OPERATIONS, SHARE_CLIENT, STREAMS_CLIENT
from kipcheck.conformance.protocols.client.playable import finished, unplayable
from kipcheck.conformance.protocols.client.strategies import SCRIPTS, script
from kipcheck.conformance.protocols.client.wording import exchanges, exhibits
from kipcheck.conformance.protocols.declare.check import Cells, Check, Conversation, Family
from kipcheck.conformance.protocols.declare.conversations import Subject, Value, machine_family
from kipcheck.conformance.protocols.declare.invariant import invariants_of

FIRST: Final = (
    "pass 500; late OffsetFetch 1500; restart",
    "others 2 follow; assign 0,1,2; pass 1200; assign 3; rebalance; pass 1200",
    "assignors cooperative-sticky; pass 200; others 1 lead; rebalance; rebalance",
    "answer Heartbeat COORDINATOR_NOT_AVAILABLE times 6; pass 3500",
    "static; pass 1400; rebalance; restart; rebalance",
    "protocol consumer; assign 0,1; rebalance; answer ConsumerGroupHeartbeat FENCED_MEMBER_EPOCH; pass 1200",
    "others 1 follow; pass 500; assign 1,2; rebalance; pass 500; assign 0,3; rebalance; pass 1500",
    "pass 500; late FindCoordinator 400 times 4 at next; answer OffsetCommit NOT_COORDINATOR times 4; pass 3500",
    "member reads t,u owns 0,1 of 1 v3; rebalance; tags JoinGroup; reset SyncGroup amid",
    "pause 2000; pass 500; late JoinGroup 1500; pass 4000",
    (
        "commit late; others 1 follow; assign 0,1; pass 700; assign 1,2; rebalance; pass 1500; "
        "answer Heartbeat UNKNOWN_MEMBER_ID; pass 1200"  # which no commit shows before
    ),
    "move; pass 1400; silent Heartbeat 6000",
    "protocol consumer; pass 200; reset ConsumerGroupHeartbeat; assign 1,2; rebalance; pass 600",
    "protocol consumer; pattern; pass 1400",
    "protocol consumer; max-poll 3000; pause 6000; pass 7500",
    "assignors roundrobin,range; member reads t takes range; rebalance",  # not in the order of the alphabet
    "begin latest; pass 500; rebalance; pass 500",
    "begin latest; committed 0; pass 800; others 1 follow; assign 1,2; rebalance; pass 500",
    "others 1 follow; assign 0,1; pass 500; assign 2,3; refuse OffsetFetch TOPIC_AUTHORIZATION_FAILED",
    "intervals 3000 of 10000; pass 500; answer OffsetCommit ILLEGAL_GENERATION; pass 1500",
    "assignors cooperative-sticky; others 1 follow; assign 0,1,2; pass 700; assign 1,3; rebalance; pass 1500",
    "commit seldom; others 1 follow; assign 0,1; pass 1500; assign 1,2; rebalance; pass 1500; restart; pass 1500",
    "assignors sticky; pass 500; others 1 lead; rebalance; pass 300; rebalance; grow 8; elect; pass 4500",
    "assignors range; commit revoked; pause 500; others 1 follow; assign 0,1; pass 2500; assign 2,3; rebalance",
    (
        "assignors cooperative-sticky; commit async; others 1 follow; assign 0,1,2; pass 700; "
        "late JoinGroup 600 times 2 at next; assign 1,3; rebalance; pass 1500"
    ),
    "others 1 follow; assign; pass 500; rebalance; pass 4500",
    (
        "pass 500; late OffsetForLeaderEpoch 800 at next; elect; elect; pass 1500; "
        "late JoinGroup 5600 at next; rebalance; pass 500"
    ),
    "static; tags Metadata times 20 at start; pass 1500; fence; pass 1500",
    "protocol consumer; assign 0; late ConsumerGroupHeartbeat 400 at stop; rebalance at stop; pass 700",
    "pause 5000; pass 1000; rebalance; pass 3000",
    "static; protocol consumer; pass 500",
    (
        "assignors cooperative-sticky; others 1 follow; assign 0; pass 500; assign 1,2; "
        "late OffsetFetch 800 at next; rebalance; pass 3500"  # it joins again before it has the offsets
    ),
    "commit revoked; max-poll 10000; pause 3500; pass 500; rebalance; pass 500",
    "max-poll 3000; pause 6000; pass 7500",
    "others 1 follow; pass 500; late JoinGroup 600 at next; reset Fetch times 8 at next; rebalance; pass 4200",
    "poll 0; pass 3000",
    "commit late; pause 400; pass 700; down coordinator 400; pass 4000",
    "poll 1000; commit late; pass 500; silent Heartbeat 1500; pass 1000",
    "assignors cooperative-sticky; resume; others 1 follow; assign 0,1; pass 700; assign 1,2; rebalance; pass 1200",
    "assignors cooperative-sticky,range; others 1 follow; assign 0,1; pass 500; assign 1,2; rebalance; pass 3500",
)
"""How the first scripts begin: where the order of several steps matters. The plan goes on with them."""

IN_STREAMS_GROUPS: Final = (
    "rebalance; pass 1200; restart; pass 600",
    "assign 0,1; pass 600; assign 1,2; rebalance; pass 1200; assign; rebalance; pass 600",
    "assign 0,1,2; pass 1500; answer StreamsGroupHeartbeat FENCED_MEMBER_EPOCH; pass 1200; rebalance",
    "assign 0,1; pass 1500; answer StreamsGroupHeartbeat UNKNOWN_MEMBER_ID; pass 600; assign 2; rebalance; pass 600",
    "answer StreamsGroupHeartbeat NOT_COORDINATOR times 3; pass 600; move; pass 600",
    "answer StreamsGroupHeartbeat COORDINATOR_NOT_AVAILABLE times 2; pass 600",
    "answer StreamsGroupHeartbeat COORDINATOR_LOAD_IN_PROGRESS times 3; pass 600",
    "answer StreamsGroupHeartbeat COORDINATOR_LOAD_IN_PROGRESS times 2 at start; pass 600",
    "late StreamsGroupHeartbeat 900; pass 600; late StreamsGroupHeartbeat 400 at next; rebalance; pass 600",
    "silent StreamsGroupHeartbeat 1500; pass 1200",
    "reset StreamsGroupHeartbeat; pass 600; reset StreamsGroupHeartbeat amid; pass 600",
    "assign 0; pass 600; reset StreamsGroupHeartbeat after at next; assign 0,1; rebalance; pass 1200",
    "pieces StreamsGroupHeartbeat; tags StreamsGroupHeartbeat; throttle StreamsGroupHeartbeat 400; pass 600",
    "down coordinator 800; pass 1200",
    "down all 800; pass 1200",
    "freeze 1500; pass 600",
    "late StreamsGroupHeartbeat 400 at stop; pass 600",
    "answer OffsetCommit STALE_MEMBER_EPOCH; pass 1200; rebalance; pass 600",
    "intervals 1000 of 10000; pass 4500",
    *(f"pass 600; refuse StreamsGroupHeartbeat {error}; pass 600" for error in REFUSALS[STREAMS]),
)
"""Scripts of an application of Streams: each error of a heartbeat, each disturbance, revoked tasks, and restarts."""

IN_SHARE_GROUPS: Final = (
    "pass 1200; restart; pass 600",
    "assign 0,1; pass 600; assign 1,2; rebalance; pass 1200; assign; rebalance; assign 0; rebalance; pass 3600",
    "commit sync; assign 0,1; pass 1200; rebalance; pass 600",
    "commit async; assign 0,1; pass 1200; rebalance; pass 600",
    "assign 0,1,2; pass 600; answer ShareGroupHeartbeat FENCED_MEMBER_EPOCH; pass 1200; rebalance",
    "assign 0,1; pass 600; answer ShareGroupHeartbeat UNKNOWN_MEMBER_ID; pass 600; assign 2; rebalance; pass 600",
    "answer ShareGroupHeartbeat NOT_COORDINATOR times 3; pass 600; move; pass 600",
    "answer ShareGroupHeartbeat COORDINATOR_NOT_AVAILABLE times 2; pass 600",
    "answer ShareGroupHeartbeat COORDINATOR_LOAD_IN_PROGRESS times 3; pass 600",
    "assign 0,1; pass 600; answer ShareFetch SHARE_SESSION_NOT_FOUND; pass 1200",
    "assign 0,1; pass 600; answer ShareFetch INVALID_SHARE_SESSION_EPOCH times 2; pass 1200",
    "commit sync; pass 600; answer ShareAcknowledge SHARE_SESSION_NOT_FOUND; pass 1200",
    "commit async; pass 600; answer ShareAcknowledge INVALID_SHARE_SESSION_EPOCH; pass 1200",
    "late ShareFetch 900; pass 600; silent ShareFetch 1500; pass 1200",
    "reset ShareFetch; pass 600; reset ShareFetch amid; pass 600; reset ShareFetch after; pass 1200",
    "commit sync; reset ShareAcknowledge; pass 600; reset ShareAcknowledge after; pass 1200",
    "commit sync; late ShareAcknowledge 900; pass 600; late ShareAcknowledge 400 at stop; pass 600",
    "pieces ShareFetch; tags ShareFetch; throttle ShareFetch 400; pass 600",
    "reset ShareGroupHeartbeat; pass 600; silent ShareGroupHeartbeat 1500; pass 1200",
    "down coordinator 800; pass 1200",
    "down all 800; pass 1200",
    "freeze 1500; pass 600",
    "elect 0,1; pass 1200; elect 0; pass 1200",
    "topics 2; assign 0,1 and 0,1; pass 1200; rebalance; pass 600",
    *(f"commit sync; pass 600; refuse {kind} {error}; pass 600" for kind in SHARES for error in REFUSALS[kind]),
)
"""Scripts of a share consumer: acknowledgements with fetches and by themselves, sessions that are lost, and errors."""


def editions(name: str) -> Iterable[str]:
    """Live clients are tested against brokers of Apache Kafka."""
    return (name,) if edition(name).name.startswith("apache") else ()


def editions_since(behaviour: str, name: str) -> Iterable[str]:
    """The same, of brokers that have this behaviour of the table of releases."""
    here = edition(name)
    return editions(name) if not here.exact or Release.parse(here.release) >= Release.parse(since(behaviour)) else ()


def value_of(steps: Iterable[Step]) -> Value:
    return [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]


def first_values(*scripts: str) -> tuple[Callable[[Subject], Value], ...]:
    def value(text: str) -> Callable[[Subject], Value]:
        steps = OPERATIONS.parse_shorthand(f"{text}; stop")
        return lambda subject: value_of(steps)

    return tuple(map(value, scripts))


def planned(subject: Subject, seed: int, limits: frozenset[str]) -> Iterator[Value]:
    """The scripts of a seed."""
    first = [OPERATIONS.parse_shorthand(each) for each in FIRST]
    return map(value_of, plan.planned(seed, first, limits))


def client_family(machine: str, editions: Callable[[str], Iterable[str]]) -> Family[Subject]:
    """The family of live clients of one machine: ``OPERATIONS`` has them all."""
    return replace(
        machine_family(OPERATIONS.role, machine, editions, lambda edition: SCRIPTS, exhibits),
        steps_are_apart=False,
        finished=finished,
        unplayable=unplayable,
        exchanges=exchanges,
    )


CLIENT: Final = replace(client_family(OPERATIONS.machine, editions), cells=Cells(cells.played, cells.table))


def scripts_of(protocol: str, scripts: Iterable[str], subject: Subject) -> Iterator[Conversation]:
    for text in scripts:
        yield Conversation(tuple(OPERATIONS.parse_shorthand(f"protocol {protocol}; {text}; stop")), text)


def of_scripts(id: str, sentence: str, machine: str, kip: str, protocol: str, scripts: Iterable[str]) -> Check[Subject]:
    """A check of clients of a protocol of its own: of these scripts alone."""
    return Check(
        id,
        sentence,
        client_family(machine, partial(editions_since, kip)),
        script,
        values=0,
        invariants=invariants_of(id, invariants),
        given=partial(scripts_of, protocol, scripts),
    )


CHECKS: tuple[Check[Subject], ...] = (
    Check(
        SURVIVES_GROUPS,
        "a program that consumes keeps the rules of its group through rebalances and errors",
        CLIENT,
        script,
        values=40,
        invariants=invariants_of(SURVIVES_GROUPS, invariants),
        first=first_values(*FIRST),
        planned=planned,
    ),
    of_scripts(
        SURVIVES_STREAMS,
        "an application of Streams keeps the rules of its streams group through rebalances and errors",
        STREAMS_CLIENT,
        "kip-1071",
        "streams",
        IN_STREAMS_GROUPS,
    ),
    of_scripts(
        SURVIVES_SHARES,
        "a share consumer keeps the rules of its group and its share sessions, and acknowledges what it acquired",
        SHARE_CLIENT,
        "kip-932",
        "share",
        IN_SHARE_GROUPS,
    ),
)
