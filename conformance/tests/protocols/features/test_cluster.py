"""The controller of the draft in full: conversations by hand, all orders of a small cluster, two racing writes."""

import json
from collections.abc import Iterator

import pytest

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.machine import Transition
from kipcheck.conformance.machines.plain_search import Edge, explore
from kipcheck.conformance.machines.product import Step, broken_laws, broken_step_laws
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.features.laws.cluster import LAWS
from kipcheck.conformance.protocols.features.model.cluster import FeatureCluster, Node, PendingWrite, State
from kipcheck.conformance.protocols.features.model.ranges import unsupported
from kipcheck.conformance.protocols.features.ops.cluster import (
    OPERATIONS,
    Action,
    Answered,
    Elect,
    Event,
    HandleRegistration,
    StartBroker,
    Stops,
    TopLevel,
    UpdateFeatures,
    ValidateFeatures,
    Watch,
    Write,
)

INVALID, FAILED, STOPS = "INVALID_REQUEST", "FEATURE_UPDATE_FAILED", "INCOMPATIBLE_BROKER"
TWO = "start 0 a:1-2,b:1-3; start 1 a:1-2,b:1-2; elect 0; "
"""A new cluster: a 1 to 2 and b 1 to 2 are finalized."""
OLD = "start 0 a:1-2,b:1-3 old; start 1 a:1-2,b:1-2 old; elect 0; start 1 a:1-2,b:1-2; start 0 a:1-2,b:1-3; elect 0; "
"""An upgraded one, where nothing is finalized."""


def played(text: str, machine: FeatureCluster | None = None) -> tuple[State, list[tuple[Action, ...]]]:
    machine = machine or FeatureCluster()
    state, actions = machine.initial(), []
    for each in OPERATIONS.parse_shorthand(text):
        state, done = machine.step(state, OPERATIONS.event_of(each))
        actions.append(done)
    return state, actions


def reported(text: str) -> str:
    """The last answer, and the node after it."""
    state, actions = played(text)
    answer = OPERATIONS.answer_of(actions[-1])
    results = " ".join(f"{each['feature']}={each['error']}" for each in answer.get("results", ()))
    return f"{answer.get('class', results)} | {node(state)}"


def node(state: State) -> str:
    if state.node is None:
        return "-"
    features = " ".join(f"{name}:{span.low}-{span.high}" for name, span in state.node.features)
    return f"{state.node.epoch}{'' if state.node.enabled else ' disabled'} {features}".rstrip()


@pytest.mark.parametrize(
    ("text", "last"),
    [
        # The node's life (584-19 to 584-22).
        (TWO + "node", " | 0 a:1-2 b:1-2"),
        (OLD + "node", " | 1"),
        ("start 0 a:1-2 old; elect 0; node", " | 0 disabled"),
        ("start 0 a:1-2 old; elect 0; update-features a:1", f"a={FAILED} | 0 disabled"),
        (TWO + "start 0 a:1-2 old; elect 0; node", " | 1 disabled"),
        (TWO + "stop 0; elect 1; node", " | 0 a:1-2 b:1-2"),
        # Several updates, each with its own result, in one write (584-12, 584-67).
        (OLD + "update-features a:2,b:2", "a=NONE b=NONE | 2 a:1-2 b:1-2"),
        (OLD + "update-features a:2,b:3", f"a=NONE b={FAILED} | 2 a:1-2"),
        (OLD + "update-features b:3", f"b={FAILED} | 1"),
        (OLD + "update-features", " | 1"),
        (OLD + "update-features a:2,a:1", f"a={INVALID} a={INVALID} | 1"),
        (OLD + "update-features c:1", f"c={INVALID} | 1"),
        (OLD + "update-features :1", f"={INVALID} | 1"),
        (OLD + "update-features :0!", f"={INVALID} | 1"),
        (OLD + "update-features a:1!", f"a={INVALID} | 1"),
        (OLD + "update-features a:0!", f"a={INVALID} | 1"),
        (TWO + "update-features a:2", f"a={INVALID} | 0 a:1-2 b:1-2"),
        (TWO + "update-features a:2!", f"a={INVALID} | 0 a:1-2 b:1-2"),
        (TWO + "update-features a:1", f"a={INVALID} | 0 a:1-2 b:1-2"),
        (TWO + "update-features a:1!", "a=NONE | 1 a:1-1 b:1-2"),
        (TWO + "update-features a:0", f"a={INVALID} | 0 a:1-2 b:1-2"),
        (TWO + "update-features a:-1!", "a=NONE | 1 b:1-2"),
        (TWO + "update-features a:1! at 1", "NOT_CONTROLLER | 0 a:1-2 b:1-2"),
        (TWO + "update-features a:1! unauthorized", "CLUSTER_AUTHORIZATION_FAILED | 0 a:1-2 b:1-2"),
        ("start 0 a:1-2; update-features a:2", "NOT_CONTROLLER | -"),
        # Brokers (584-23, 584-24), and one below the migration version, which checks nothing.
        (TWO + "start 2 a:1-2", f"{STOPS} | 0 a:1-2 b:1-2"),
        (TWO + "start 2 a:1-1,b:1-2", f"{STOPS} | 0 a:1-2 b:1-2"),
        (TWO + "start 2 old; handle 2; node", " | 0 a:1-2 b:1-2"),
        (TWO + "start 2 a:1-9,b:1-9; handle 2; update-features b:3", f"b={FAILED} | 0 a:1-2 b:1-2"),
        (TWO + "stop 1; update-features b:3", "b=NONE | 1 a:1-2 b:1-3"),
        # Deprecation (584-18): the minimum rises with the brokers, never by the call, and no level falls below it.
        (TWO + "start 2 a:2-2,b:1-2; handle 2; node", " | 1 a:2-2 b:1-2"),
        (TWO + "start 2 a:2-2,b:1-2; handle 2; stop 2; update-features a:1!", f"a={FAILED} | 1 a:2-2 b:1-2"),
        # The race of the draft in both orders (584-25).
        (OLD + "start 2 a:1-1,b:1-1; handle 2; update-features a:2", f"a={FAILED} | 1"),
        (OLD + "start 2 a:1-1,b:1-1; update-features a:2", "a=NONE | 2 a:1-2"),
        (OLD + "start 2 a:1-1,b:1-1; update-features a:2; handle 2; watch 2", f"{STOPS} | 2 a:1-2"),
        # One request at a time (584-15), and the death of a controller between validation and write.
        (OLD + "validate-features a:2; update-features a:1!", "a=NONE | 3 a:1-1"),
        (OLD + "validate-features a:2; write 0", "a=NONE | 2 a:1-2"),
        (OLD + "validate-features a:2; stop 0; elect 1; node", " | 1"),
        (OLD + "validate-features a:2; elect 1; write 0", "NOT_CONTROLLER | 1"),
        (OLD + "validate-features a:2; elect 1; update-features b:1; write 0", "NOT_CONTROLLER | 2 b:1-1"),
        (OLD + "write 1", "NOT_CONTROLLER | 1"),
    ],
)  # fmt: skip
def test_by_hand(text: str, last: str) -> None:
    assert reported(text) == last


def test_answers_come_from_the_cache_of_a_broker() -> None:
    text = OLD + "update-features a:1; watch 1; update-features a:2; features 1"
    *_, (before,) = played(text)[1]
    *_, (after,) = played(text + "; watch 1; features 1")[1]
    answers = [OPERATIONS.answer_of((each,)) for each in (before, after)]
    assert [(each["epoch"], each["finalized"]) for each in answers] == [
        (2, [{"feature": "a", "low": 1, "high": 1}]),
        (3, [{"feature": "a", "low": 1, "high": 2}]),
    ]
    *_, (gone,) = played("features 0")[1]
    assert isinstance(gone, TopLevel)


def test_shorthand_comes_back() -> None:
    text = (
        "start 0 a:1-2,b:1-3 static 2; start 1 old; stop 1; elect 0; handle 1; watch 1; update-features a:2,b:0!; "
        "update-features a:1 at 1 unauthorized; validate-features a:-1!; write 0; features 0; node; lose a:2 arrived; "
        "lose b:1; version 0"
    )
    assert OPERATIONS.shorthand(OPERATIONS.parse_shorthand(text)) == text


def events(spans: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[Event, ...]:
    """Everything that can happen to two brokers with these binaries."""
    texts = [f"start {number} {span}".strip() for number in (0, 1) for span in spans[number]]
    texts += [f"{verb} {number}" for number in (0, 1) for verb in ("stop", "elect", "handle", "watch", "write")]
    texts += [f"{verb}-features {each}" for each in ("a:2", "a:1!", "a:0!") for verb in ("update", "validate")]
    return tuple(map(OPERATIONS.event_of, OPERATIONS.parse_shorthand("; ".join(texts))))


SPANS = ("a:1-1", "a:1-2", "a:2-2", "")
FEW, ALL = events((("a:1-2",), SPANS[:3])), events((SPANS, SPANS))


def unsuited(state: State) -> list[int]:
    """Registered brokers that do not support a finalized range."""
    features = state.node.features if state.node is not None and state.node.enabled else ()
    registered = (each for each in state.brokers if each.number in state.registered)
    return [each.number for each in registered if next(unsupported(features, each.declared, whole=True), None)]


class ComparesTheVersionAlone(FeatureCluster):
    """A write is conditional on the version of the node, and not on the term of the controller."""

    def succeeds(self, state: State, node: Node, write: PendingWrite) -> bool:
        return write.version == node.epoch


def edges(
    machine: FeatureCluster, tried: tuple[Event, ...] = FEW, most: int = 2
) -> Iterator[Edge[State, Event, Action]]:
    """All transitions with fewer than ``most`` elections and writes."""

    def within(state: State) -> bool:
        return state.term < most + 1 and (state.node is None or state.node.epoch < most)

    return explore(machine, within, lambda state: tried)  # type: ignore[arg-type]


@pytest.mark.integration
def test_in_every_order_of_a_small_cluster_the_rules_hold() -> None:
    assert explored(FEW, 2) > 20_000


@pytest.mark.long
@pytest.mark.timeout(900)
def test_in_every_order_of_brokers_with_any_binary_the_rules_hold() -> None:
    assert explored(ALL, 3) > 500_000


def explored(tried: tuple[Event, ...], most: int) -> int:
    count = 0
    for path, before, actions, after in edges(FeatureCluster(), tried, most):
        count += 1
        event = path[-1]
        assert not unsuited(after), path
        _node_moves_forward(before, after, event)
        if any(isinstance(each, TopLevel) for each in actions):
            assert before.node == after.node, path
        if isinstance(event, Watch) and not any(isinstance(each, Stops) for each in actions):
            assert all(
                after.node is None or not [*unsupported(after.node.features, each.declared)]
                for each in after.brokers
                if each.number == event.broker
            ), path
    return count


def _node_moves_forward(before: State, after: State, event: Event) -> None:
    """The epoch counts writes; only updates, elections and registrations write."""
    assert before.node is None or after.node is not None
    if before.node is not None and after.node is not None and before.node != after.node:
        steps = after.node.epoch - before.node.epoch
        assert steps >= 1
        assert isinstance(event, UpdateFeatures | ValidateFeatures | Write | Elect | HandleRegistration)
        assert steps <= 2 or isinstance(event, Elect)


def test_the_version_of_the_node_is_no_protection_from_a_deposed_controller() -> None:
    """The write was validated without a broker that the next controller registered, which writes no node by that."""
    broken = next(path for path, _, _, after in edges(ComparesTheVersionAlone()) if unsuited(after))
    assert isinstance(broken[-1], Write)
    text = OLD + "validate-features a:2; start 1 a:1-1,b:1-1; elect 1; write 0"
    state, actions = played(text, ComparesTheVersionAlone())
    assert isinstance(actions[-1][0], Answered) and unsuited(state) == [1]
    state, actions = played(text)
    assert isinstance(actions[-1][0], TopLevel) and not unsuited(state)


@pytest.mark.parametrize("model", [("feature-cluster", "kip-584", 5_000), ("kraft-features", "apache@3.9.2", 10)])
def test_the_models_are_explored_in_full(model: tuple[str, str, int], capsys: pytest.CaptureFixture[str]) -> None:
    name, edition, least = model
    assert run(["explore", name, "--edition", edition, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["complete"] and found["counter_example"] is None and found["states"] > least


def test_laws_of_the_search_find_the_write_of_a_deposed_controller() -> None:
    product = SingleMachine(
        "cluster",
        ComparesTheVersionAlone(),
        within=lambda state: state.term < 3 and (state.node is None or state.node.epoch < 2),
        tried=lambda state: FEW,
        step_of=OPERATIONS.step_of,
        shorthand=OPERATIONS.shorthand,
        laws=LAWS,
    )
    found = plain_laws(product)
    assert found == {"feature-cluster/within-brokers"}


def plain_laws(product: SingleMachine) -> set[str]:
    """The laws that are broken in any state or step within the bound."""
    found, seen = set[str](), {product.initial()}
    waiting = [*seen]
    while waiting:
        (part,) = waiting.pop()
        for move in product.moves(0, part):
            did = product.act(0, part, move)
            found |= {law.id for law, _ in broken_laws(product, (did.part,), False)}
            found |= {law.id for law, _ in broken_step_laws(product, Step(0, part, move, did))}
            if (did.part,) not in seen:
                seen.add((did.part,))
                waiting.append((did.part,))
    return found


def test_a_lost_answer_hides_whether_the_update_was_applied() -> None:
    assert node(played(OLD + "lose a:2 arrived")[0]) == "2 a:1-2"
    assert node(played(OLD + "lose a:2")[0]) == "1"
    assert reported(OLD + "lose a:2; update-features a:2") == "a=NONE | 2 a:1-2"
    assert reported(OLD + "lose a:2 arrived; update-features a:2") == f"a={INVALID} | 2 a:1-2"


@pytest.mark.parametrize(
    ("text", "version"),
    [("start 0 ibp_feature:1-3 static 2; elect 0", (2, False)),
     ("start 0 ibp_feature:1-3; elect 0; watch 0", (3, True)),
     ("start 0 ibp_feature:1-3 static 2 old; elect 0; watch 0", (0, False)),
     ("start 0 ibp_feature:1-3; elect 0; watch 0; update-features ibp_feature:2!; watch 0", (2, True)),
     ("start 0 ibp_feature:1-3 static 3; elect 0; update-features ibp_feature:0!; watch 0", (3, False))],
)  # fmt: skip
def test_the_static_setting_decides_until_the_feature_is_finalized(text: str, version: tuple[int, bool]) -> None:
    *_, (answer,) = played(f"{text}; version 0")[1]
    assert OPERATIONS.answer_of((answer,)) == {"status": "accepted", "level": version[0], "dynamic": version[1]}


def test_a_repeat_changes_nothing_again() -> None:
    for text in ("a:2", "a:1,b:2", "a:2,b:3,c:1"):
        once, _ = played(f"{OLD}update-features {text}")
        twice, actions = played(f"{OLD}update-features {text}; update-features {text}")
        assert once == twice
        assert isinstance(actions[-1][0], Answered)
        assert all(each.error != "NONE" for each in actions[-1][0].results)


def test_a_step_is_a_pure_function_of_state_and_event() -> None:
    machine = FeatureCluster()
    state = played(TWO)[0]
    done: list[Transition[State, Action]] = [machine.step(state, StartBroker(2)) for _ in range(2)]
    assert done[0] == done[1]
