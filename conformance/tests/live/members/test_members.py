"""Released consumers and applications as members of a group that is upgraded on a real broker."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.core.operations.declaration import Operations
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Observation, Op, Unsupported
from kipcheck.conformance.core.values.verdict import Result, Verdict
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.live.members import consumers, streams
from kipcheck.conformance.live.members.group import SETTINGS, Cluster, Group, behind_proxy
from kipcheck.conformance.live.members.processes import Line
from kipcheck.conformance.live.members.session import Script
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.streams.ops import (
    OPERATIONS as STREAMS,
    Died,
    Formed as StreamsFormed,
    Refused,
    Rests as StreamsRests,
)
from kipcheck.conformance.protocols.streams.rolling import Pair, script as rolling
from kipcheck.conformance.protocols.upgrade.ops import OPERATIONS as BOUNCE, Failed, Formed, ObservedEvent, Rests
from kipcheck.conformance.protocols.upgrade.orders import UNLIKE, script
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import NotPlayed, Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.targets.toolchains.kafka_broker import Broker

BROKER = "3.9.2"
EDITION = f"apache@{BROKER}"


def played(target: str, edition: str, check: str, texts: list[str]) -> list[History]:
    operations = STREAMS if check.startswith("streams/") else BOUNCE
    cases = [Case(check, edition, Role.OPERATOR_TOOL, tuple(operations.parse_shorthand(each))) for each in texts]
    try:
        with registry.target(target).open(edition, Role.OPERATOR_TOOL) as session:
            found = session.run(cases)
    except Unavailable as why:
        pytest.skip(str(why))
    return [_history(case, target, each) for case, each in zip(cases, found, strict=True)]


def _history(case: Case, target: str, found: tuple[Observation, ...]) -> History:
    ops = tuple(Op(at, *each, at + 1) for at, each in enumerate(zip(case.steps, found, strict=True)))
    return History(case, target, ops)


def verdicts(history: History) -> dict[str, Verdict]:
    ids = CHECKS[history.case.check].invariants
    laws = [each for each in all_invariants(Role.OPERATOR_TOOL) if each.id in ids]
    return {each.invariant: each for each in judge(history, laws)}


def broken(history: History) -> dict[str, list[str]]:
    found = verdicts(history)
    return {id: [one.why for one in each.violations] for id, each in found.items() if each.result is Result.FAIL}


def events(history: History) -> list[Any]:
    """Of a Streams group."""
    assert STREAMS.observed is not None
    return [STREAMS.observed.from_json(each) for _, each in history.actions()]


def seen(history: History) -> list[ObservedEvent]:
    assert BOUNCE.observed is not None
    return [BOUNCE.observed.from_json(each) for _, each in history.actions()]


def test_targets_are_named_by_two_clients_or_a_broker() -> None:
    for name in ("consumers:java@3.9.2", "consumers:java@3.9.2,java", "consumers:java@3.9.2,sarama@1"):
        with pytest.raises(LookupError, match=r"use a form like consumers:java@3\.9\.2,java@2\.3\.1"):
            registry.target(name)
    with pytest.raises(LookupError):
        registry.target("kafka-streams:9.9.9")
    found = registry.target("consumers:java@3.9.2,java@2.3.1")
    with pytest.raises(NotPlayed), found.open(EDITION, Role.MEMBER):
        pass
    for edition in ("kip-429", "apache@2.3.1"):
        with pytest.raises(Unavailable, match=r"use --edition apache@2\.4\.0 or later"):
            found.open(edition, Role.OPERATOR_TOOL).__enter__()
    with pytest.raises(Unavailable, match=r"use --edition apache$"):
        registry.target("kafka-streams:3.9.2").open("kip-268", Role.OPERATOR_TOOL).__enter__()


def test_each_client_has_a_program_of_a_member() -> None:
    assert consumers.PROGRAMS.keys() <= built_in.BUILT_IN.keys()
    for name in ("Member.java", "StreamsMember.java", "member_kafka_python.py", "member_confluent_kafka.py"):
        assert built_in.program(name).is_file()


@pytest.mark.jars
@pytest.mark.timeout(240)
def test_two_bounces_with_a_killed_member_on_a_real_broker() -> None:
    """Java's consumer; kafka-python joins a group in which no assignor is common to all."""
    texts = [script("ab", "ba", killed=2), UNLIKE[0]]
    bounced, unlike = played("consumers:java@3.9.2,java@2.3.1", EDITION, "bounce/orders", texts)
    assert broken(bounced) == {} and broken(unlike) == {}
    last = seen(bounced)[-1]
    assert isinstance(last, Rests) and [each.version for each in last.members] == [1, 1]
    chosen = [each.protocol for each in seen(bounced) if isinstance(each, Formed)]
    assert chosen[0] == "range" and chosen[-1] == "cooperative-sticky"
    refused = [each for each in seen(unlike) if isinstance(each, Failed)]
    assert refused == [Failed("c", "INCONSISTENT_GROUP_PROTOCOL")]


@pytest.mark.jars
@pytest.mark.timeout(240)
def test_a_streams_group_is_upgraded_on_a_real_broker() -> None:
    text = rolling(Pair("3.1.2", "3.2.3"))
    ((history),) = played(f"kafka-streams:{BROKER}", "apache", "streams/rolling", [text])
    assert broken(history) == {}
    last = events(history)[-1]
    assert isinstance(last, StreamsRests) and [each.used for each in last.members] == [11, 11, 11]


ADOPTS = "start a 2.1.1; settle; start b 2.0.1; settle"
"""KAFKA-8649: under a leader of 2.1.1 a member of 2.0.1 adopts version 4, which it cannot write (268-33)."""
BLIND = "start a 1.1.1; start b 1.1.1; settle; start c 2.0.1; settle"
"""A single bounce without upgrade.from: leaders from before version probing cannot read version 3 (268-14)."""
VALUES = "start a 3.5.1<3.4; settle; start b 3.6.1<3.5; settle; start c 4.0.2<2.3; settle; start d 4.0.2<2.4; settle"
"""3.5.1 and 3.6.1 refuse the line before them, which they have to know (268-55); 4.0 refuses 2.3 (268-39)."""
LONG = "start a 0.10.0.1; settle; start b 1.1.1<0.10.0; settle"
"""1.1.1 writes version 1 in the layout of version 2, of which 0.10.0 reads what it knows (268-40, 268-56)."""
NO_FIX = Pair("0.10.0.1", "0.10.1.1")
"""KAFKA-6054, of which no release of 0.10.1 has the fix: there is no way without stopping the group (268-41)."""


@pytest.mark.jars
@pytest.mark.long
@pytest.mark.timeout(600)
def test_known_defects_of_released_applications_are_found_on_a_real_broker() -> None:
    assert NO_FIX.needs_two and not NO_FIX.has_a_way
    texts = [ADOPTS, BLIND, VALUES, LONG, rolling(NO_FIX)]
    adopts, blind, values, long, no_fix = played(f"kafka-streams:{BROKER}", "apache", "streams/rolling", texts)
    assert broken(adopts).keys() == {"streams/lives"} and "was: 4" in broken(adopts)["streams/lives"][0]
    assert broken(blind) == {} and {each.during for each in events(blind) if isinstance(each, Died)} == {"lead"}
    refused = [each.member for each in events(values) if isinstance(each, Refused)]
    assert refused == ["a", "b", "c"] and broken(values).keys() == {"streams/refuses-values"}
    assert len(broken(values)["streams/refuses-values"]) == 2
    assert broken(no_fix).keys() >= {"streams/lives", "streams/decodable"}
    assert broken(long) == {} and isinstance(events(long)[-1], StreamsRests) and len(events(long)[-1].members) == 2
    formed = [each for each in events(long) if isinstance(each, StreamsFormed)][-1]
    data = {each.member: each.data for each in formed.members if isinstance(each.data, bytes)}
    # A version, an instance and two lists of tasks of 8 bytes each; then perhaps the length of an end point.
    assert all(each.startswith(b"\0\0\0\1") for each in data.values())
    assert {member: len(each) % 8 for member, each in data.items()} == {"a": 28 % 8, "b": 32 % 8}


@pytest.mark.jars
@pytest.mark.long
@pytest.mark.timeout(400)
@pytest.mark.parametrize("client", ["kafka-python@3.0.12", "confluent-kafka@2.16.1"])
def test_other_clients_have_no_first_bounce_and_share_a_cooperative_group(client: str) -> None:
    """They refuse an eager assignor beside a cooperative one, so an upgrade stops at its first bounce."""
    texts = ["roll a old; settle; roll a ready; settle", "roll a cooperative; settle; roll b cooperative; settle"]
    bounced, shared = played(f"consumers:{client},{client}", EDITION, "bounce/orders", texts)
    assert broken(bounced).keys() == {"bounce/upgraded"} and broken(shared) == {}


@pytest.mark.jars
@pytest.mark.long
@pytest.mark.timeout(400)
def test_no_release_has_the_metric_of_the_draft() -> None:
    """429-21. From 2.4 on there are metrics of rebalances, of other names."""
    names: dict[str, list[str]] = {}

    async def play(broker: Broker) -> None:
        async with behind_proxy(broker, consumers.SIZES) as cluster:
            for release in ("2.3.1", "2.4.1", BROKER):
                command = consumers.PROGRAMS["java"](release)
                script = consumers.ConsumersScript(Group(cluster), command, command)
                steps = tuple(BOUNCE.parse_shorthand("roll a old; settle; stop a"))
                await script.played(Case("test", EDITION, Role.OPERATOR_TOOL, steps))
                lines = [
                    each.rest for each in script.group.observed if isinstance(each, Line) and each.what == "metrics"
                ]
                names[release] = lines[0].split(",")

    try:
        with kafka_broker.running(BROKER, SETTINGS) as broker:
            asyncio.run(play(broker))
    except Unavailable as why:
        pytest.skip(str(why))
    assert not [each for found in names.values() for each in found if "incompatible" in each]
    assert ["rebalance-total" in found for found in names.values()] == [False, True, True]
    assert all("join-rate" in found for found in names.values())


def limits(operations: Operations[Any, Any], script: Script, *texts: str) -> list[str]:
    """Of scripts that are not played."""
    found = []
    for text in texts:
        steps = tuple(operations.parse_shorthand(text))
        answers = asyncio.run(script.played(Case("test", EDITION, Role.OPERATOR_TOOL, steps)))
        (one,) = {each.limit for each in answers if isinstance(each, Unsupported)}
        assert len(answers) == len(steps)
        found.append(one)
    return found


def test_scripts_with_steps_that_processes_cannot_take_are_not_played() -> None:
    consumer = consumers.ConsumersScript(Group(Cluster(0)), (), ())
    texts = ("old-brokers", "roll a old; move a", "roll a old; lose a", "roll a old; expire a", "streams a 6")
    assert limits(BOUNCE, consumer, *texts) == ["draft", "turns", "connections", "timers", "draft"]
    application = streams.StreamsScript(Group(Cluster(0)), Path())
    others = ("start a own", "start a 3.9.2 of b", "start a 3.9.2; move a", "start a 3.9.2; lose a; settle",
             "start a 3.9.2; expire a", "start a 3.9.2; shut-down a")  # fmt: skip
    found = limits(STREAMS, application, *others)
    assert found == ["releases", "application", "turns", "connections", "timers", "application"]
    assert {*found} <= {*streams.CLAIMS.limits} and not application.group.observed
