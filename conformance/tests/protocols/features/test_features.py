"""The feature controller: the machine by hand and explored in full, the invariants, and what its checks find."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Case, Role, step, steps_from
from kipcheck.conformance.core.values.edition import KIP_584
from kipcheck.conformance.core.values.history import Died, History, Lost, Observation, Op, Replied
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.run import Options, execute
from kipcheck.conformance.machines.plain_search import explore
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.features.checks import CONTROLLER
from kipcheck.conformance.protocols.features.model.controller import ENVIRONMENT_EVENTS, FeatureController, State
from kipcheck.conformance.protocols.features.mutants.controller import MutantController
from kipcheck.conformance.protocols.features.ops.controller import OPERATIONS, BrokerUp, Event, Update
from kipcheck.conformance.protocols.features.strategies.controller import FEATURE_UPDATES
from kipcheck.conformance.protocols.features.target import adapter as features
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import observed, operation
from kipcheck.conformance.targets.registry import target
from kipcheck.conformance.tests.support.sessions import history_of
from kipcheck.strategies.as_hypothesis import strategy
from kipcheck.strategies.parse import belongs

FOUND_WITHIN = 300
"""Cases: so many a check draws at most, and each vice is found among them."""
CONTROLLERS = {name: mutant for name, mutant in MUTANTS.items() if CHECKS[mutant.check].role is Role.CONTROLLER}
OURS = [each for each in all_invariants(Role.CONTROLLER) if each.role is Role.CONTROLLER]


def conversation(text: str) -> Case:
    return Case("features/gating", "kip-584", Role.CONTROLLER, OPERATIONS.parse_shorthand(text))


def answers(text: str) -> list[str]:
    controller = features(KIP_584)
    reported = (controller.answer({"case": 0, **operation(each)}) for each in OPERATIONS.parse_shorthand(text))
    return [
        " ".join(str(value) for key, value in each.items() if key in ("class", "level", "epoch")) for each in reported
    ]


INVALID, FAILED, STOPS = "INVALID_REQUEST", "FEATURE_UPDATE_FAILED", "INCOMPATIBLE_BROKER"


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("update 1", INVALID),  # known to nobody
        ("up 0 -; update 1", INVALID),
        ("up 0 1-2; update 1", "1"),
        ("up 0 1-2; update 3", FAILED),
        ("up 0 1-2; up 1 2-3; update 1", FAILED),
        ("up 0 1-2; up 1 -; update 1", FAILED),
        ("up 0 1-2; up 1 2-3; down 1; update 1", "1"),
        ("up 0 1-2; update 1; update 1", INVALID),
        ("up 0 1-2; update 1; update 1!", INVALID),
        ("up 0 1-2; update 1; update 2!", INVALID),
        ("up 0 1-2; update 2; update 1", INVALID),
        ("up 0 1-2; update 2; update 1!", "2"),
        ("up 0 1-2; update 2; update 0", INVALID),
        ("up 0 1-2; update 2; update 0!; describe", "0 2"),
        ("up 0 1-2; update 2; down 0; update -1!", "2"),  # whatever brokers there are
        ("update 0!", INVALID),
        ("up 0 1-2; update 1; up 1 2-3", STOPS),
        ("up 0 1-2; update 1; up 1 -", STOPS),
        ("up 0 1-2; update 1; up 0 2-3; describe", "1 1"),
        ("up 0 1-3; update 2; up 1 2-2; update 3", FAILED),
        ("up 0 1-2; update 1; up 0 2-3; up 1 1-3; update 3", "2"),  # who was shut down is no more asked
        ("up 0 1-2; update 2; restart; describe", "2 1"),
    ],
)
def test_the_machine_by_hand(text: str, last: str) -> None:
    assert answers(text)[-1] == last


def test_what_is_said_in_shorthand_is_said_back() -> None:
    text = "up 0 1-2; up 1 -; update 2; update -1!; down 1; restart; describe"
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text
    with pytest.raises(ValueError, match=r"use update LEVEL\[!\], up BROKER LOW-HIGH, up BROKER -, "):
        OPERATIONS.parse_shorthand("up 0 1-2; jump")


@pytest.mark.parametrize("event", ENVIRONMENT_EVENTS, ids=str)
def test_an_event_is_its_step(event: Event) -> None:
    assert OPERATIONS.event_of(OPERATIONS.step_of(event)) == event


def small(state: State) -> bool:
    return state.epoch < 3


def test_explored_in_full_no_state_holds_a_level_that_a_live_broker_does_not_support() -> None:
    edges = 0
    for path, before, actions, after in explore(FeatureController(), small, events=lambda state: ENVIRONMENT_EVENTS):
        edges += 1
        assert not after.level or all(each.supports(after.level) for each in after.brokers), path
        assert after.epoch - before.epoch == (isinstance(path[-1], Update) and after.level != before.level), path
        reported = OPERATIONS.answer_of(actions)
        assert (reported["status"] == "accepted") is FeatureController().accepts(before, path[-1]) or not actions, path
    assert edges > 10_000


def test_enabled_is_what_is_accepted() -> None:
    machine = FeatureController()
    state = machine.step(State(), BrokerUp(0, 1, 2)).state
    assert {event for event in machine.enabled(state) if isinstance(event, Update)} == {Update(1), Update(2)}


@given(strategy(FEATURE_UPDATES.declaration))
def test_whatever_is_said_to_the_reference_it_keeps_every_invariant(data: list[dict[str, object]]) -> None:
    case = Case("features/gating", "kip-584", Role.CONTROLLER, steps_from(data))
    verdicts = list(judge(history_of(Reference(), case), all_invariants(Role.CONTROLLER)))
    assert not [each for each in verdicts if each.result is not Result.PASS]


class AddsWithTheFlag(MutantController):
    """What 584-69 leaves open."""

    def faults(self, state: State, update: Update) -> Iterator[str]:
        adds = not state.level and update.level > 0
        return super().faults(state, Update(update.level, False) if adds else update)


def test_where_the_draft_leaves_room_both_ways_pass() -> None:
    AddsWithTheFlag.name = "adds"
    case = conversation("up 0 1-2; update 1!; update 2; describe")
    history = history_of(AddsWithTheFlag(), case)
    assert isinstance(history.ops[1].observation, Replied)
    assert all(each.result is Result.PASS for each in judge(history, OURS))


def test_what_is_drawn_is_declared_and_reaches_deep() -> None:
    verbs: dict[str, int] = {}
    levels = set()
    for sample in CHECKS["features/gating"].samples(CONTROLLER.subject("kip-584", "features", None), 0):
        if not sample.value:  # of the decision table
            continue
        assert belongs(FEATURE_UPDATES.declaration, sample.value)
        for each in sample.case.steps:
            verbs[each.verb] = verbs.get(each.verb, 0) + 1
        for op in history_of(Reference(), sample.case).replies("update"):
            levels.add(sample.case.steps[op[0]]["level"])
    assert set(verbs) == set(FEATURE_UPDATES.events)
    assert min(verbs.values()) > 50
    assert levels == {-1, 0, 1, 2, 3}


def test_some_conversations_do_without_some_verbs() -> None:
    swarms = [FEATURE_UPDATES.swarm(Random(seed)).verbs for seed in range(50)]
    assert all(FEATURE_UPDATES.progress <= set(verbs) for verbs in swarms)
    assert {("restart" in verbs, "broker-down" in verbs) for verbs in swarms} == {
        (left, right) for left in (False, True) for right in (False, True)
    }


def test_every_invariant_has_a_vice_and_a_check() -> None:
    ids = {each.id for each in OURS}
    assert ids == {mutant.invariant for mutant in CONTROLLERS.values()}
    assert ids == {id for check in CHECKS.values() if check.role is Role.CONTROLLER for id in check.invariants}
    assert {each.id for each in OURS if each.grade is not Grade.MUST} == {
        "features/downgrades", "feature-client/asks", "feature-client/takes-answers-as-they-come",
        "feature-app/crashes-rather", "feature-tool/exit-code", "kraft-features/v0-flag-is-ignored",
        "kraft-features/asks-unregistered", "zookeeper-features/nothing-is-finalized",
        "feature-cluster/lowers-with-the-flag", "feature-commands/exit-code", "feature-commands/words",
        "feature-commands/dependencies", "kraft-quorum/refused-changes-nothing",
    }  # fmt: skip


def results(text: str, **instead: Observation) -> dict[str, Result]:
    """With other answers than the reference's: ``at2=...`` to the third step."""
    case = conversation(text)
    ops = [
        Op(op.index, op.step, instead.get(f"at{op.index}", op.observation)) for op in history_of(Reference(), case).ops
    ]
    return {each.invariant: each.result for each in judge(History(case, "somebody", tuple(ops)), OURS)}


def test_a_lost_answer_leaves_open_what_reads_it_and_condemns_nobody() -> None:
    lost = results("up 0 1-2; update 1; update 2; update 1!", at2=Lost("gone"))
    assert Result.FAIL not in lost.values()
    assert lost["features/epoch-grows"] is Result.UNKNOWN
    assert lost["features/incompatible-broker-stops"] is Result.PASS
    died = results("up 0 1-2; update 1; up 1 2-3", at2=Died("crashed"))
    assert died["features/incompatible-broker-stops"] is Result.UNKNOWN
    assert died["features/epoch-grows"] is Result.PASS


@pytest.mark.parametrize("epoch", [None, "1", True])
def test_an_update_that_is_accepted_without_an_epoch_is_a_breach(epoch: object) -> None:
    payload = () if epoch is None else (("epoch", epoch),)
    assert results("up 0 1-2; update 1", at1=Replied(payload))["features/epoch-grows"] is Result.FAIL


def test_the_draft_is_shown_by_a_run_of_apache_and_of_itself_and_of_no_release() -> None:
    assert [each.edition for each in CONTROLLER.subjects("apache")] == ["kip-584"]
    assert [each.edition for each in CONTROLLER.subjects("kip-584")] == ["kip-584"]
    assert not [*CONTROLLER.subjects("apache@3.9.2"), *CONTROLLER.subjects("kip-429")]


def test_a_release_has_none_of_it_and_a_run_says_so(tmp_path: Path) -> None:
    named = ("features/*", "wire/round-trip"), ("HeartbeatResponse",)
    options = Options(("reference",), "apache@3.9.2", *named, cases=1, workers=1, out=tmp_path)
    outcome = execute(options, lambda name: InProcess(Reference()))
    assert outcome.exit_code == 0
    assert outcome.ledger is not None
    skips = {line.check: line.why for line in read(outcome.ledger).skips}
    ours = [check for check in CHECKS if check.startswith("features/")]
    assert skips == dict.fromkeys(ours, "edition apache@3.9.2 has no subject for this check")


def test_each_case_begins_afresh_also_in_a_child() -> None:
    cases = [conversation("up 0 1-2; update 1; describe"), conversation("describe"), conversation("describe")]
    with target("reference").open("kip-584", Role.CONTROLLER) as session:
        together = [history.ops[-1].observation for history in converse(cases, session)]
        alone = [history.ops[-1].observation for case in cases for history in converse([case], session)]
    reported = observed({"status": "accepted", "level": 0, "epoch": 0})
    assert together == alone == [observed({"status": "accepted", "level": 1, "epoch": 1}), reported, reported]


def test_an_operation_that_is_none_is_not_supported() -> None:
    controller = features(KIP_584)
    assert controller.answer({"op": "jump", "case": 0})["status"] == "unsupported"
    assert controller.answer({"op": "update", "case": 0, "levels": 1})["status"] == "unsupported"


def test_a_failure_shows_who_said_what() -> None:
    history = history_of(MUTANTS["admits-the-unknowing"].made(), conversation("up 0 1-2; update 1; up 1 -"))
    (violation,) = next(each for each in judge(history, OURS) if each.violations).violations
    (exhibit,) = CONTROLLER.exhibits(history, violation)
    assert exhibit["kind"] == "sequence"
    assert [(each["from"], each["says"], each["answer"], each["guilty"]) for each in exhibit["steps"]] == [
        ("broker 0", "comes up, supports 1 to 2", "accepted", False),
        ("operator", "update to level 1", "epoch 1", False),
        ("broker 1", "comes up, does not know the feature", "accepted", True),
    ]


def test_a_step_of_another_machine_is_none_of_ours() -> None:
    with pytest.raises(LookupError, match="unknown event 'join': use one of update, "):
        OPERATIONS.event_of(step("member", "join"))
