"""The cluster of KIP-384: its table of settings, the machine by hand and explored, and least cases of its mutants."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import KIP_384
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.explore.exploration import Explored, explored
from kipcheck.conformance.machines.product import Did, Law, StepLaw
from kipcheck.conformance.machines.search import Search
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.declare.single_machine import SingleMachine
from kipcheck.conformance.protocols.mutants import MUTANTS
from kipcheck.conformance.protocols.persistent_metadata import mutants
from kipcheck.conformance.protocols.persistent_metadata.laws import LAWS
from kipcheck.conformance.protocols.persistent_metadata.model import PersistentCluster
from kipcheck.conformance.protocols.persistent_metadata.ops import OPERATIONS
from kipcheck.conformance.protocols.persistent_metadata.play import PLAYABLES
from kipcheck.conformance.protocols.persistent_metadata.settings import LINES, name, rank, resolved
from kipcheck.conformance.protocols.persistent_metadata.target import adapter
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets.protocol import Adapter, operation
from kipcheck.conformance.tests.support.sessions import history_of

OURS = {id: each for id, each in INVARIANTS.items() if id.startswith("persistent-metadata/")}
PLANTED = {id: each for id, each in MUTANTS.items() if each.invariant in OURS}
PINNED = "ibp 2.2 pmv 2.1 format 2.1"


def answers(text: str) -> list[str]:
    cluster = adapter(KIP_384)
    found = [cluster.answer({"case": 0, **operation(each)}) for each in OPERATIONS.parse_shorthand(text)]
    return [str(each.get("class", each.get("format", ""))) for each in found]


@pytest.mark.parametrize(
    ("text", "binary", "version"),
    [
        ("2.1", "2.2", "2.1-IV2"), ("2.1.0", "2.1", "2.1-IV2"), ("2.1-IV0", "2.1", "2.1-IV0"),
        ("0.8.2", "2.0", "0.8.2"), ("0.10.2.1", "2.0", "0.10.2-IV0"), ("2.2", "2.1", None), ("2.1-IV3", "2.2", None),
        ("2.1-IV00", "2.2", None), ("latest", "2.2", None), ("", "2.2", None), ("2", "2.2", None),
        ("0.10", "2.2", None), ("0.8.0-IV0", "2.2", None),
    ],
)  # fmt: skip
def test_names(text: str, binary: str, version: str | None) -> None:
    found = rank(text, binary)
    assert (found and name(found)) == version


def test_the_setting_follows_the_message_format_and_its_default() -> None:
    pinned, unset, old = (
        resolved("2.2", None, None, "2.0"), resolved("2.2", None, None, None), resolved("2.0", None, "nothing", None),
    )  # fmt: skip
    assert pinned and unset and old
    assert pinned.persistent == pinned.format and LINES[pinned.format[0]] == "2.0"
    assert unset.persistent == unset.format == unset.inter_broker and LINES[unset.format[0]] == "2.2"
    assert old.persistent is None


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (f"start 0 2.2 {PINNED}; write 0 offsets", "1"),
        (f"start 0 2.2 {PINNED}; write 0 zookeeper~", "2"),
        (f"start 0 2.2 {PINNED}; write 0 offsets; write 0 snapshot~; start 0 2.0", "2.0-IV1"),
        ("start 0 2.2 ibp 2.1 format 2.1; write 0 zookeeper~", "1"),
        ("start 0 2.2 ibp 2.1 pmv 2.2 format 2.1; write 0 snapshot", "2"),  # above the inter-broker version: allowed
        ("start 0 2.2 pmv 2.1", "INVALID_CONFIG"),  # the message format's default is above it
        ("start 0 2.1 pmv 2.2 format 2.1", "INVALID_CONFIG"),
        ("start 0 2.0 pmv 2.2", "2.0-IV1"),  # unknown to the binary, and ignored
        (f"start 0 2.2 {PINNED}; topic-format 2.2", "INVALID_CONFIG"),
        (f"topic-format 2.2; start 0 2.2 {PINNED}", "INVALID_CONFIG"),
        ("start 0 2.2; write 0 snapshot; start 0 2.1", "UNREADABLE"),
        ("start 0 2.2; write 0 offsets; start 1 2.1", "UNREADABLE"),
        ("start 0 2.2; write 0 snapshot; start 1 2.1", "2.1-IV2"),  # a file of the other broker
        ("start 0 2.2; start 1 2.1; write 0 offsets; read 1 offsets", "UNREADABLE"),
        (f"start 0 2.2; start 1 2.2 {PINNED}; write 0 offsets; read 1 offsets", "2"),
        ("start 0 2.2 pmv 2.2 format 2.1; write 0 messages", "1"),
        ("start 0 2.2 pmv 2.2 format 2.1; topic-format 2.2; write 0 messages", "2"),
        ("start 0 2.2; stop 0; write 0 offsets", "NOT_RUNNING"),
    ],
)
def test_the_machine_by_hand(text: str, last: str) -> None:
    assert answers(text)[-1] == last


def executed(made: Adapter, text: str) -> History:
    steps = OPERATIONS.parse_shorthand(text)
    return history_of(made, Case("persistent-metadata/rolls", "kip-384", Role.BROKER, steps))


@pytest.mark.parametrize("mutant", sorted(PLANTED))
def test_the_least_case_of_a_mutant_breaks_its_invariant_and_the_reference_keeps_all(mutant: str) -> None:
    planted = PLANTED[mutant]
    assert isinstance(planted.least, str)
    found = executed(planted.made(), planted.least)
    assert [*OURS[planted.invariant].search(found)], found
    kept = executed(Reference(), planted.least)
    assert {id: broken for id, each in OURS.items() if (broken := [*each.search(kept)])} == {}


def test_every_invariant_has_a_mutant() -> None:
    assert {each.invariant for each in PLANTED.values()} == {*OURS}


def search(
    brokers: int, stores: int, overrides: int = 0, made: type[PersistentCluster] = PersistentCluster
) -> Explored:
    (model,) = PLAYABLES
    scope = model.scope(f"brokers={brokers},stores={stores},overrides={overrides}", KIP_384)
    world = model.world(KIP_384, scope)
    assert isinstance(world, SingleMachine)
    return explored(model, KIP_384, scope, replace(world, machine=made()), 100_000, None)


def test_two_brokers_are_explored_in_full() -> None:
    found = search(2, 2)
    assert found.exit_code == 0 and found.search.states > 400


@pytest.mark.all_jars
@pytest.mark.parametrize(("brokers", "stores", "overrides"), [(3, 2, 0), (3, 3, 0), (2, 4, 1)])
def test_larger_clusters_are_explored_in_full(brokers: int, stores: int, overrides: int) -> None:
    found = search(brokers, stores, overrides)
    assert found.exit_code == 0 and found.search.states > 5_000


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (mutants.GatesByTheInterBrokerVersion, "way-back"), (mutants.FollowersConvert, "leaders-format"),
        (mutants.StartsOnAnything, "no-blind-downgrade"), (mutants.IgnoresTheBound, "format-bound"),
        (mutants.BoundsBrokersOnly, "format-bound"), (mutants.ConvertsAtTheStart, "gated"),
    ],
)  # fmt: skip
def test_laws_find_mutants_by_a_path_that_the_machine_takes(mutant: type[PersistentCluster], law: str) -> None:
    found = search(2, 1, int(mutant is mutants.BoundsBrokersOnly), mutant)
    breach = found.search.breach
    assert breach is not None and breach.law == f"persistent-metadata/{law}"
    world = found.world
    assert isinstance(world, SingleMachine)
    plain = Search(replace(world, symmetry=None))
    plain.run(100_000)
    assert plain.breach is not None and len(plain.breach.path) == len(breach.path)
    state = world.machine.initial()
    for event in breach.path[:-1]:
        state = world.machine.step(state, event.move).state
    last = breach.path[-1].move
    after = world.machine.step(state, last).state
    broken = [each.breach((after,)) for each in LAWS if isinstance(each, Law)] + [
        each.breach(0, state, last, Did(after)) for each in LAWS if isinstance(each, StepLaw)
    ]
    assert breach.why in broken


def test_a_cluster_with_other_numbers_takes_the_same_steps_with_other_numbers() -> None:
    """What the symmetry assumes, in drawn walks of three brokers."""
    (model,) = PLAYABLES
    world = model.world(KIP_384, model.scope("brokers=3,stores=4,overrides=1", KIP_384))
    assert isinstance(world, SingleMachine) and world.symmetry is not None
    symmetry, random = world.symmetry, Random(0)
    state = world.initial()[0]
    for _ in range(400):
        kept, there = symmetry.canonical(state)
        assert symmetry.canonical(kept)[0] == kept and sorted(there) == [0, 1, 2]
        move = random.choice([*world.tried(state)])
        after = world.machine.step(state, move).state
        renumbered = world.machine.step(kept, symmetry.renumbered(move, there)).state
        assert symmetry.canonical(after)[0] == symmetry.canonical(renumbered)[0]
        state = after
