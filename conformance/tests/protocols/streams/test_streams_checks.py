"""Checks of Streams fleets: what they begin with, what is drawn, and that our machines keep to it all."""

from collections import Counter
from json import dumps
from random import Random

import pytest

from kipcheck.conformance.core.values.case import steps_from
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.protocols.streams.checks import (
    CHECKS as STREAMS_CHECKS,
    MIXED,
    MIXED_DRAFT,
    RESTARTED,
    STREAMS_GROUPS,
    editions,
    line,
    of_any_release,
    with_failures,
)
from kipcheck.conformance.protocols.streams.group_files import application
from kipcheck.conformance.protocols.streams.model.rules import Rules
from kipcheck.conformance.protocols.streams.ops import OPERATIONS, Deploy, Start
from kipcheck.conformance.protocols.streams.strategies.applications import application_of, groups
from kipcheck.conformance.protocols.streams.strategies.scripts import (
    ANCIENT,
    MODERN,
    PROBING,
    line as line_of,
    mixed_streams_scripts,
    streams_scripts,
)
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.tests.support.streams_groups import OURS, broken, played
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.parse import belongs

NEWEST, DRAFT = "apache", "kip-268"


@pytest.mark.parametrize("where", [NEWEST, DRAFT])
@pytest.mark.parametrize("check", STREAMS_CHECKS, ids=lambda each: each.id)
def test_our_machines_keep_to_what_is_drawn(check: object, where: str) -> None:
    """Of each check the first and two that are drawn; judged by everything that there is."""
    (check,) = [each for each in STREAMS_CHECKS if each is check]
    subject = Subject(where, "streams")
    samples = [*check.samples(subject, 7, len(check.first) + 2)]
    cases = [each.case for each in (samples[0], *samples[-2:])]
    with InProcess(Reference()).open(where, check.role) as session:
        for history in converse(cases, session):
            found = {id: each for id, each in broken(history).items() if OURS[id].grade.value == "MUST"}
            assert not found, OPERATIONS.shorthand(history.case.steps)


@pytest.mark.parametrize("where", [NEWEST, DRAFT])
def test_what_is_drawn_is_declared_and_differs(where: str) -> None:
    found, verbs = streams_scripts(where), Counter[str]()
    releases = Counter[str | None]()
    for seed in range(4):
        random = Random(seed)
        steps = found.draw(random, found.swarm(random))
        value = [{"actor": each.actor, "verb": each.verb, "body": dict(each.body)} for each in steps]
        assert belongs(found.declaration, value)
        verbs.update(each.verb for each in steps)
        releases.update(event.release for each in steps if isinstance(event := OPERATIONS.event_of(each), Start))
    assert verbs.keys() >= {"stream-deploy", "stream-start", "stream-settle", "stream-move"}
    assert releases.keys() == {"own", "future"}


def test_ways_through_mixed_releases_lead_somewhere() -> None:
    """What goes on from an eager release names it first, and nothing later than what knows the eager protocol."""
    found = mixed_streams_scripts(NEWEST)
    kinds = Counter[str]()
    for seed in range(40):
        plan = found.swarm(Random(seed)).traits
        first, *rest = plan.path or plan.any_of
        kinds[first.release] += 1
        for each in rest:
            if first.release in (*PROBING, *ANCIENT):
                assert Rules.of(each.release).supports(line_of(first.release))[0] == "eager"
                assert each.upgrade_from in (None, line_of(first.release))
        if first.release in ANCIENT:
            assert rest[0].upgrade_from == line_of(first.release)
    assert kinds.keys() & {*MODERN}
    assert kinds.keys() & {*PROBING}
    assert kinds.keys() & {*ANCIENT}
    assert [line_of(each) for each in ("0.10.2.2", "1.1.1", "3.9.2")] == ["0.10.2", "1.1", "3.9"]


def test_a_deployment_is_one_that_can_be_read() -> None:
    found = streams_scripts(NEWEST).events["stream-deploy"]
    shapes = set()
    for seed in range(16):
        drawn = compiled(found)(Random(seed))
        event = OPERATIONS.event_of(steps_from([drawn])[0])
        assert isinstance(event, Deploy)
        shapes.add((len(event.topology.subtopologies), bool(event.topics), event.end_points))
    assert len(shapes) > 5


@pytest.mark.parametrize("cooperative", [True, False])
def test_groups_of_members_are_files_of_people(cooperative: bool) -> None:
    sizes = Counter[int]()
    for seed in range(8):
        value = compiled(groups(named=True))(Random(seed))
        read = application(dumps(application_of(value, cooperative)))
        sizes[len(read.members)] += 1
        active = [task for each in read.members for task in each.active]
        assert len(active) == len({*active}), "nobody ran what another ran"
        owned = [partition for each in read.members for partition in each.owned]
        assert len(owned) == len({*owned})
        assert bool(owned) == (cooperative and bool(active))
    assert len(sizes) > 2


def test_editions_and_lines() -> None:
    assert [*of_any_release("apache")] == ["apache", DRAFT]
    assert [*editions("apache")] == ["apache"]
    assert [*editions("apache@2.0.1"), *editions(DRAFT)] == ["apache@2.0.1", DRAFT]
    assert not [*editions("kip-584"), *of_any_release("apache@2.0.1")]
    assert [line(each) for each in (DRAFT, "apache@3.9.2", "apache@4.3.1", "apache@1.1.1")] == [
        "1.1",
        "1.1",
        "2.4",
        "0.10.0",
    ]
    with pytest.raises(ValueError, match="specifies nothing about Streams"):
        streams_scripts("kip-584")
    with pytest.raises(LookupError, match="unknown machine"):
        STREAMS_GROUPS.subject("kip-584", "streams", None)


def test_a_failure_follows_every_step() -> None:
    assert [*with_failures("start a own; settle")] == [
        "start a own; settle",
        "start a own; stop a; restart a; settle",
        "start a own; move a; lose a; settle",
    ]
    assert len([*with_failures(RESTARTED)]) == 3 * RESTARTED.count(";"), "b does not run after the first step"


@pytest.mark.parametrize(("where", "text"), [*((NEWEST, each) for each in MIXED[:3]), (DRAFT, MIXED_DRAFT[0])], ids=str)
def test_ways_that_are_promised_are_kept(where: str, text: str) -> None:
    assert not broken(played(where, text))


def test_a_failure_shows_what_was_seen_step_by_step() -> None:
    history = played("apache@4.4.0", "start a 2.2.1; settle; start b 2.0.1; settle")
    found = broken(history)["streams/adopts-blindly"].violations[0]
    (exhibit,) = STREAMS_GROUPS.exhibits(history, found)
    steps = [each for each in exhibit["steps"] if each.get("first", True)]
    assert [each["says"] for each in steps] == ["start a 2.2.1", "settle", "start b 2.0.1", "settle"]
    assert [each["guilty"] for each in steps] == [False, False, False, True]
    events = [each for each in exhibit["steps"] if each.get("first") is False]
    assert {(each["from"], each["to"]) for each in events} == {("fleet", "fleet")}
    assert any(each["says"].startswith("b dies") and each["guilty"] for each in events)
