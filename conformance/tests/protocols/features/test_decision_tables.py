"""Decision tables are whole: every combination that a rule reads is played, and any one broker forbids alone."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.protocols.features.model.controller import FeatureController, State
from kipcheck.conformance.protocols.features.model.kraft import KraftController, State as KraftState
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.ops import controller, kraft
from kipcheck.conformance.protocols.features.tables.draft import LEVELS, PLACES, REQUESTED
from kipcheck.conformance.protocols.features.tables.kraft import NODES

RELEASES = ("3.3.2", "3.9.2", "4.4.0")


def given(check: str, edition: str, machine: str) -> list[tuple[Step, ...]]:
    return [each.steps for each in CHECKS[check].given(Subject(edition, machine))]


@pytest.mark.parametrize(
    ("check", "edition"),
    [
        ("features/gating", "kip-584"), ("features/brokers", "kip-584"), ("feature-cluster/node", "kip-584"),
        ("feature-cluster/updates", "kip-584"), ("feature-cluster/brokers", "kip-584"),
        ("feature-client/discovery", "kip-584"), ("feature-app/upgrades", "kip-584"),
        ("feature-tool/commands", "kip-584"), *(("kraft-features/updates", f"apache@{each}") for each in RELEASES),
        *(("kraft-brokers/registrations", f"apache@{each}") for each in RELEASES),
    ],
)  # fmt: skip
def test_no_case_is_played_twice(check: str, edition: str) -> None:
    cases = given(check, edition, check.partition("/")[0])
    assert cases
    assert len(cases) == len({str(each) for each in cases})


def before_update(steps: Sequence[Step]) -> Iterator[tuple[State, Step]]:
    """The last update, and the state before it."""
    machine = FeatureController()
    state, found = machine.initial(), []
    for each in steps:
        if each.verb == "update":
            found.append((state, each))
        state = machine.step(state, controller.OPERATIONS.event_of(each)).state
    yield found[-1]


def test_every_level_meets_every_request_and_each_broker_forbids_alone() -> None:
    crossed, forbids = set(), set()
    for steps in given("features/gating", "kip-584", "features"):
        for state, update in before_update(steps):
            level, flag = update["level"], update["allow_downgrade"]
            crossed.add((state.level, level, flag))
            behind = [each.number for each in state.brokers if not each.supports(level)]
            if len(state.brokers) == len(PLACES) and len(behind) == 1:
                forbids.add((behind[0], flag))
    assert crossed == {*product(LEVELS, REQUESTED, (False, True))}
    assert forbids == {*product(PLACES, (False, True))}


@pytest.mark.parametrize("release", RELEASES)
def test_each_broker_of_a_kraft_cluster_forbids_alone_and_none_does(release: str) -> None:
    machine, forbids = KraftController(Rules.of(release)), set[tuple[int, ...]]()
    for steps in given("kraft-features/updates", f"apache@{release}", "kraft-features"):
        state: KraftState = machine.initial()
        for each in steps:
            event = kraft.OPERATIONS.event_of(each)
            if isinstance(event, kraft.KraftUpdate) and len(state.brokers) == len(NODES):
                (update,) = event.updates
                without = [
                    number for number, own in state.brokers
                    if update.feature not in dict(own) or not dict(own)[update.feature].holds(update.level)
                ]  # fmt: skip
                forbids.add(tuple(without))
            state = machine.step(state, event).state
    assert forbids == {(), *((number,) for number in NODES)}


def test_fewer_cases_than_usual_leave_the_tables_of_controllers_out() -> None:
    check, subject = CHECKS["kraft-features/updates"], Subject("apache@3.9.2", "kraft-features")
    assert len([*check.samples(subject, 0, 5)]) == 5
    assert len([*check.samples(subject, 0)]) > 5 + check.values
