"""Upgrades of stores of KIP-258's draft: by hand, explored, least cases of mutants, the mark, and drawn upgrades."""

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import KIP_258
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.explore.exploration import explored
from kipcheck.conformance.machines.product import Law
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.protocols.store_upgrade.laws import LAWS
from kipcheck.conformance.protocols.store_upgrade.model import StoreUpgrade
from kipcheck.conformance.protocols.store_upgrade.mutants import (
    AssignsToAll,
    AssignsTwice,
    EmptiesInTheSwap,
    SkipsTombstones,
    TrustsTheCheckpoint,
    Upgrading,
)
from kipcheck.conformance.protocols.store_upgrade.ops import OPERATIONS, Logged
from kipcheck.conformance.protocols.store_upgrade.play import PLAYABLES
from kipcheck.conformance.protocols.store_upgrade.state import Store
from kipcheck.conformance.protocols.store_upgrade.strategies import PATHS, UPGRADES
from kipcheck.conformance.protocols.store_upgrade.subscription import Subscription, read, written
from kipcheck.conformance.protocols.streams.blobs import read_subscription
from kipcheck.conformance.targets.protocol import Adapter
from kipcheck.conformance.tests.support.machines import machine_answers
from kipcheck.conformance.tests.support.sessions import history_of
from kipcheck.strategies import changelogs

OURS = {id: each for id, each in INVARIANTS.items() if id.startswith("store-upgrade/")}
PLANTED = {id: each for id, each in MUTANTS.items() if each.invariant in OURS}
OLD = "start a plain; rebalance; put 0 61=31 at 5"
IN_PLACE = f"{OLD}; start a builder mode in_place; rebalance"
SECOND_BOUNCE = f"{IN_PLACE}; put 0 61=32 at 7; start a builder; rebalance"
ROLL_OVER = f"{OLD}; start r builder mode roll_over metadata 4; rebalance led by a"


def last(text: str) -> str:
    """What the last step is answered."""
    answer = machine_answers(OPERATIONS, StoreUpgrade(), OPERATIONS.parse_shorthand(text))[-1]
    if "shares" in answer:
        return "; ".join(
            f"{each['instance']} {each['active']} {each['standby']} {each['upgrade']}" for each in answer["shares"]
        )
    return " ".join(str(value) for name, value in answer.items() if name not in ("status", "instance"))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        (f"{OLD}; get 0 61", "old 31 -1"),
        (IN_PLACE, "a [0, 1, 2] [] [0, 1]"),
        (f"{IN_PLACE}; get 0 61", "old 31 -1"),
        (f"{IN_PLACE}; replay a 0", "1 1 None"),
        (f"{IN_PLACE}; replay a 0; swap a 0", "NOT_READY"),
        (f"{SECOND_BOUNCE}; get 0 61", "NOT_SERVING"),
        (f"{SECOND_BOUNCE}; swap a 0", "NOT_READY"),
        (f"{SECOND_BOUNCE}; replay a 0; swap a 0; get 0 61", "new 32 7"),
        (f"{SECOND_BOUNCE}; replay a 0; kill a swapping 0; start a builder; rebalance; get 0 61", "new 32 7"),
        (f"{OLD}; start a builder; rebalance; replay a 0 1 records", "1 1 True"),
        (ROLL_OVER, "a [0, 1, 2] [] []; r [] [0, 1, 2] [0, 1]"),
        (f"{ROLL_OVER}; replay r 0; stop a; rebalance", "r [0, 1, 2] [] [0, 1]"),
        (f"{ROLL_OVER}; replay r 0; stop a; rebalance; swap r 0; get 0 61", "new 31 5"),
        ("start a builder mode offline", "INVALID_CONFIG"),
        ("append 0 61=31 at 5 version 3; start a timestamped; rebalance; get 0 61", "NOT_SERVING 0"),
    ],
)
def test_upgrades_by_hand(text: str, right: str) -> None:
    assert last(text) == right


def test_a_mark_is_one_byte_that_a_leader_without_it_refuses_and_version_probing_keeps() -> None:
    plain, marked = (Subscription("r", 3, 4, mark) for mark in (False, True))
    assert written(marked) == written(plain) + "01"
    assert (read(written(plain)), read(written(marked))) == (plain, marked)
    assert read_subscription(bytes.fromhex(written(plain)), "kip-268").latest == 4


def executed(made: Adapter, text: str) -> History:
    return history_of(made, Case("store-upgrade/stores", KIP_258.name, Role.STORE, OPERATIONS.parse_shorthand(text)))


def broken(history: History) -> dict[str, list[str]]:
    return {id: found for id, each in OURS.items() if (found := [one.why for one in each.search(history)])}


@pytest.mark.parametrize("mutant", sorted(PLANTED))
def test_the_least_case_of_a_mutant_breaks_its_invariant_and_the_reference_keeps_all(mutant: str) -> None:
    planted = PLANTED[mutant]
    assert isinstance(planted.least, str)
    assert broken(executed(planted.made(), planted.least)).get(planted.invariant)
    assert broken(executed(Reference(), planted.least)) == {}


def test_every_invariant_has_a_mutant() -> None:
    assert {each.invariant for each in PLANTED.values()} == {*OURS}


def test_drawn_upgrades_reach_each_end_and_keep_all_laws() -> None:
    random, swapped = Random(0), 0
    for _ in range(6):
        steps = UPGRADES.draw(random, UPGRADES.swarm(random))
        history = history_of(Reference(), Case("store-upgrade/stores", KIP_258.name, Role.STORE, steps))
        assert broken(history) == {}, OPERATIONS.shorthand(steps)
        swapped += "'store': 'new'" in str([each.observation for each in history.ops]) or "new" in str(history.ops)
    assert swapped > 1


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (SkipsTombstones, "reads-back"),
        (TrustsTheCheckpoint, "reads-back"),
        (EmptiesInTheSwap, "reads-back"),
        (AssignsTwice, "one-owner"),
        (AssignsToAll, "one-owner"),
    ],
)
def test_a_law_of_the_search_is_broken_by_a_defect(mutant: type[Upgrading], law: str) -> None:
    text = next(each.least for each in PLANTED.values() if each.made is mutant)
    assert isinstance(text, str)
    (check,) = (each for each in LAWS if each.id == f"store-upgrade/{law}" and isinstance(each, Law))
    for machine, broken in ((StoreUpgrade(), False), (mutant(), True)):
        state, found = machine.initial(), False
        for each in OPERATIONS.parse_shorthand(text):
            state = machine.step(state, OPERATIONS.event_of(each)).state
            found = found or check.breach((state,)) is not None
        assert found is broken


@settings(max_examples=25, deadline=None)
@given(changelogs())
def test_a_store_is_the_same_from_any_changelog(records: list[dict[str, Any]]) -> None:
    machine, owed = StoreUpgrade(), dict[str, str]()
    log = tuple(
        Logged(each["key"].hex(), None if each["value"] is None else each["value"].hex(), each["timestamp"],
               each["version"])
        for each in records
    )  # fmt: skip
    for each, row in zip(log, records, strict=True):
        owed.pop(each.key, None)
        if row["value"] is not None:
            plain = row["value"] if row["version"] == 1 else row["value"][8:]
            owed[each.key] = (row["timestamp"].to_bytes(8, "big", signed=True) + plain).hex()
    assert dict(machine.filled(Store("new"), log, None).contents) == owed


@pytest.mark.integration
@pytest.mark.parametrize("path", PATHS)
def test_each_path_is_explored_in_full(path: str) -> None:
    (model,) = PLAYABLES
    scope = model.scope(f"path={path},instances=1,records=2", KIP_258)
    found = explored(model, KIP_258, scope, model.world(KIP_258, scope), 100_000, None, lambda *_: None)
    assert found.exit_code == 0
