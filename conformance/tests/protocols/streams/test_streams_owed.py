"""What is owed is not what a release does: releases break laws, members better than Kafka's break none."""

import re
from random import Random

import pytest

from kipcheck.conformance.core.values.edition import APACHE, edition
from kipcheck.conformance.core.values.requirement import requirements
from kipcheck.conformance.core.values.verdict import Grade
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.checks import (
    COUNTS,
    LACKING,
    UNEVEN,
    WITH_STANDBYS,
    T,
    restarted,
    started,
    then,
)
from kipcheck.conformance.protocols.streams.invariants.versions import values
from kipcheck.conformance.protocols.streams.model.deviations import DEVIATIONS, UNOWED
from kipcheck.conformance.protocols.streams.model.members import Settings, Subtopology, Topology
from kipcheck.conformance.protocols.streams.model.release_members import binary, owed_binary
from kipcheck.conformance.protocols.streams.model.released import Released
from kipcheck.conformance.protocols.streams.model.rules import Rules
from kipcheck.conformance.protocols.streams.ops import OPERATIONS, STATELESS, Deploy
from kipcheck.conformance.protocols.streams.strategies.scripts import mixed_streams_scripts
from kipcheck.conformance.tests.support.streams_groups import OURS, broken, played, played_steps

RELEASED = "apache@4.3.1"
TWO_TOPICS = Deploy(Topology((Subtopology(0, ("t", "u"), copartition=(("t", "u"),)),)), (Topic("t", 2), Topic("u", 2)))
CHAINED = LACKING[1]
IDLE_STANDBYS = Deploy(Topology(STATELESS.subtopologies, 1), T)
THREADS = "start a {0}; start b {0} of a; settle; start c future; settle"
FAULTS = [
    # Known deviations: the law that the releases break, and a script that shows it
    ("one-owner", THREADS.format("2.0.1"), None),
    ("one-owner", THREADS.format("2.3.0"), None),
    ("pairs", "start a 2.0.1; settle; start b future; settle", TWO_TOPICS),
    ("lives", "start a 2.0.1; settle; start b future; settle", TWO_TOPICS),
    ("used-within-own", "start a 2.2.1; settle; start b 2.0.1; settle", None),
    ("last-rebalance", then(started("2.0.1", "ab"), restarted("2.2.1", "ab")), None),
    ("decodable", "start a 3.9.2; start b 2.8.2; settle", LACKING[0]),
    ("decodable", "start a 4.3.1; start b 2.8.2; settle; shut-down b; settle", None),
    ("even-topics", "start a 3.9.2; settle", UNEVEN),
    ("assigns", started("2.0.1", "ab"), CHAINED),
    ("refuses-values", "start a 3.5.0<3.4; settle", None),
    ("refuses-values", "start a 3.6.1<3.5; settle", None),
    ("idle-standbys", "start a 2.5.1; start b 2.5.1; settle", IDLE_STANDBYS),
]  # fmt: skip


@pytest.mark.parametrize(("law", "text", "deployed"), FAULTS)
def test_a_fault_of_a_release_is_found_and_mended(law: str, text: str, deployed: Deploy | None) -> None:
    """At an exact release members do what theirs do; in ``apache`` they do what they owe, and break nothing."""
    assert f"streams/{law}" in broken(played(RELEASED, text, deployed))
    assert not broken(played("apache", text, deployed))


def test_members_that_are_better_than_kafkas_break_nothing() -> None:
    generated, random = mixed_streams_scripts("apache"), Random("owed")
    for _ in range(12):
        steps = generated.draw(random, generated.swarm(random))
        found = {id for id in broken(played_steps("apache", steps)) if OURS[id].grade is not Grade.INFO}
        assert not found, OPERATIONS.shorthand(steps)


def test_in_a_group_of_too_old_a_version_an_error_may_be_in_the_leaders() -> None:
    """Below version 4 assignments have no errors (268-32): then no version serves all."""
    found = broken(played("apache", "start a 2.0.1; settle; start b 3.9.2; settle; start a 3.9.2; settle", LACKING[0]))
    assert "streams/decodable" not in found
    old = broken(played("apache", "start a 3.9.2<1.1; settle; start b 3.9.2; settle", Deploy(COUNTS, ())))
    assert "streams/decodable" not in old


@pytest.mark.parametrize(
    ("release", "value", "last"),
    [("3.5.0", "3.4", "3.3"), ("3.5.1", "3.4", "3.3"), ("3.6.0", "3.5", "3.4"), ("3.6.1", "3.5", "3.4")],
)
def test_a_value_that_a_release_refuses_by_mistake_is_owed(release: str, value: str, last: str) -> None:
    assert (values(release) or ())[-1] == value
    assert Rules.of(release).accepts[-1] == last


def test_what_requirements_demand_of_a_release_stays() -> None:
    """An exact edition has the release; ``apache`` only what no requirement demands is taken from it."""
    for release in ("0.10.0.1", "1.1.1", "2.0.1", "2.3.0", "2.3.1", "2.5.1", "3.9.2"):
        settings = Settings(release, STATELESS, "")
        released, owed = binary(settings, APACHE), owed_binary(settings, APACHE)
        assert isinstance(released, Released) and isinstance(owed, Released)
        assert owed.rules.departures == released.rules.departures - UNOWED
        exact = owed_binary(settings, edition("apache@2.0.1"))
        assert isinstance(exact, Released) and exact.rules == released.rules
    assert {*DEVIATIONS} > UNOWED


CITED = re.compile(r"\bKIP-\d+, [A-Z]|\(javadoc\)|\bStreams developer guide, \w")
GIVEN = "268-56"
"""The last requirement of KIP-268 that the project did not write itself."""


def test_what_must_be_is_cited_by_section() -> None:
    ours = [each for id, each in requirements().items() if id.startswith("268-") and id > GIVEN]
    assert len(ours) == 8
    assert [each.id for each in ours if not CITED.search(each.clause)] == []


def test_every_law_applies_to_every_release() -> None:
    """A note describes what some releases are known for; the law that they break is not restricted to the others."""
    notes = {each.id for each in OURS.values() if each.grade is Grade.INFO}
    describes = {"one-owner": "shared-while-probing", "used-within-own": "adopts-blindly"}
    for law, text, deployed in FAULTS:
        if law in describes:
            found = broken(played(RELEASED, text, deployed)).keys()
            assert {f"streams/{law}", f"streams/{describes[law]}"} <= found
    assert {f"streams/{each}" for each in describes.values()} < notes


def test_a_standby_of_a_task_with_state_is_no_note() -> None:
    assert not broken(played(RELEASED, "start a 4.3.1; start b 4.3.1; settle", WITH_STANDBYS))
