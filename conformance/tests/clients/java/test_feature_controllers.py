"""Released controllers of feature versions beside ours: drawn updates get the same answers and levels."""

from random import Random

import pytest

from kipcheck.conformance.core.files.releases_table import listed
from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.protocols.features.model.kraft import KraftController
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.ops.kraft import OPERATIONS, KraftUpdate
from kipcheck.conformance.protocols.features.strategies.kraft import kraft_updates
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import observed
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.machines import differences, machine_answers, session_answers

CONTROLLERS = listed("controllers")
A_SWARM = 4
"""Conversations with the same verbs."""


def conversations(release: str, updates: int) -> list[tuple[Step, ...]]:
    """Drawn conversations with at least this many updates in all."""
    talk, random, found = kraft_updates(f"apache@{release}"), Random(f"features {release}"), list[tuple[Step, ...]]()
    while updates > 0:
        swarm = talk.swarm(random)
        for _ in range(A_SWARM):
            found.append(talk.draw(random, swarm))
            updates -= sum(len(each.body["updates"]) for each in found[-1] if each.verb == "kraft-update")
    return found


def alike(step: Step, one: Observation, other: Observation) -> bool:
    """A refusal by its error: its message changes with each release."""
    if isinstance(one, Refused) and isinstance(other, Refused):
        return one.error == other.error
    if isinstance(one, Replied) and isinstance(other, Replied):
        return dict(one.payload) == dict(other.payload)
    return one == other


def parted(release: str, updates: int, model: str = "") -> list[str]:
    """Conversations in which the released class and ours part. ``model``: another release of ours."""
    talks, edition = conversations(release, updates), f"apache@{release}"
    with registry.target(f"java:kafka-metadata:{release}").open(edition, Role.CONTROLLER) as session:
        answers = session_answers(session, edition, Role.CONTROLLER, talks)
    return differences(OPERATIONS, machine_of(model or release), talks, answers, alike)


def machine_of(release: str) -> KraftController:
    return KraftController(Rules.of(release))


def test_answers_are_compared_in_full() -> None:
    steps = tuple(OPERATIONS.parse_shorthand("kraft-update v1 metadata.version:20!,x:1; levels"))
    done, levels = map(observed, machine_answers(OPERATIONS, machine_of("3.9.2"), steps))
    assert isinstance(done, Replied) and [each["error"] for each in done["results"]] == [
        "NONE", "INVALID_UPDATE_VERSION",
    ]  # fmt: skip
    assert isinstance(levels, Replied) and levels["levels"] == [{"feature": "metadata.version", "level": 20}]


@pytest.mark.jars
@pytest.mark.default
def test_the_newest_release_judges_a_few_hundred_updates_as_our_machine_does() -> None:
    assert parted(NEWEST, 400) == []


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(CONTROLLERS, 4, pytest.mark.all_jars))
def test_each_release_judges_hundreds_of_updates_as_our_machine_does(release: str) -> None:
    assert parted(release, 800) == []


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", CONTROLLERS)
def test_each_release_judges_ten_thousand_updates_as_our_machine_does(release: str) -> None:
    assert parted(release, 10_000) == []


@pytest.mark.jars
@pytest.mark.parametrize(("release", "model"), [("4.0.0", "4.0.2"), ("3.6.2", "3.7.2"), ("4.4.0", "4.3.1")])
def test_the_machine_of_another_release_is_told_apart(release: str, model: str) -> None:
    assert parted(release, 800, model)


@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.0.0", NEWEST])
def test_drawn_updates_are_refused_for_every_reason_and_often_accepted(release: str) -> None:
    machine, reasons, count, good = KraftController(Rules.of(release)), set[str](), 0, 0
    for talk in conversations(release, 2_000):
        state = machine.initial()
        for each in map(OPERATIONS.event_of, talk):
            if isinstance(each, KraftUpdate):
                proposed = {**dict(state.levels), **{one.feature: one.level for one in each.updates}}
                found = [[*machine.faults(state, one, proposed)] for one in each.updates]
                reasons |= {why.rstrip(" 012") for whys in found for why in whys[:1]}
                count += len(found)
                good += found.count([])
            state = machine.step(state, each).state
    assert 0.1 < good / count < 0.7
    assert reasons >= {
        "unknown upgrade type", "a level below", "controller", "a downgrade without a downgrade type",
        "an upgrade with a downgrade type", "a downgrade that loses metadata",
    }  # fmt: skip
    assert any(each.startswith("broker") for each in reasons)
