"""Released stores with timestamps beside ours: RocksDB gives the same answers in drawn lives, crashes included."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.files.releases_table import judges, rocksdb, span
from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.release import Release, lines, releases
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.mutants import OLD
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.protocols.stores.strategies import lives
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.machines import differences, session_answers

NEWEST = lines("streams")[-1]
RELEASES = [each for each in dict.fromkeys((*judges("streams"), NEWEST)) if rocksdb(each)]
ESTIMATED = "store-count"
"""RocksDB counts what was deleted and is not there."""


def drawn(release: str, count: int) -> list[tuple[Step, ...]]:
    talk, random = lives(f"apache@{release}"), Random(f"stores {release}")
    drawn = [tuple(talk.mended(talk.draw(random, talk.swarm(random)))) for _ in range(count)]
    at_once = Release.parse(release) in releases(span("stores-manage-offsets"))
    return drawn if at_once else [tuple(map(whole, each)) for each in drawn]


def whole(step: Step) -> Step:
    """A crash within a flush becomes one outside of it: our store flushes both formats at once, and most releases do
    not."""
    return replace(step, body={"flushing": False}) if step.verb == "store-crash" else step


def alike(step: Step, one: Observation, other: Observation) -> bool:
    """A refusal is one, whatever is thrown."""
    if isinstance(one, Replied) and isinstance(other, Replied):
        return step.verb == ESTIMATED or dict(one.payload) == dict(other.payload)
    return isinstance(one, Refused) and isinstance(other, Refused)


def answered(release: str, talks: list[tuple[Step, ...]]) -> list[tuple[Observation, ...]]:
    edition = f"apache@{release}"
    with registry.target(f"java:kafka-streams:{release}").open(edition, Role.STORE) as session:
        return session_answers(session, edition, Role.STORE, talks)


def parted(release: str, count: int, model: str = "") -> list[str]:
    """Lives in which the released store and ours part. ``model``: another release of ours."""
    talks = drawn(release, count)
    return differences(OPERATIONS, store_of(model or release), talks, answered(release, talks), alike)


@pytest.mark.jars
@pytest.mark.parametrize("release", [NEWEST, pytest.param("2.3.0", marks=pytest.mark.all_jars)])
def test_a_released_store_answers_as_our_machine(release: str) -> None:
    assert parted(release, 60) == []


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", RELEASES)
def test_each_released_store_answers_as_our_machine(release: str) -> None:
    assert parted(release, 300) == []


@pytest.mark.jars
@pytest.mark.parametrize("model", [NEWEST, pytest.param("2.3.1", marks=pytest.mark.all_jars)])
def test_the_machine_of_another_release_is_told_apart(model: str) -> None:
    assert parted("2.3.0", 60, model)


def killed_within_a_flush(release: str) -> tuple[Observation, ...]:
    """The answers to a kill while a value that a reading moved is flushed, and to what follows."""
    steps = OPERATIONS.parse_shorthand(f"{OLD}; get 61; crash within a flush; open timestamped; get 61")
    ((*_, kill, opened, found),) = answered(release, [tuple(steps)])
    return kill, opened, found


@pytest.mark.jars
@pytest.mark.parametrize(("release", "value"), [("3.9.2", None), (NEWEST, "31")])
def test_a_kill_within_a_flush_loses_what_a_reading_moved_up_to_4_2(release: str, value: str | None) -> None:
    *_, found = killed_within_a_flush(release)
    assert isinstance(found, Replied)
    assert found["value"] == value


@pytest.mark.all_jars
@pytest.mark.jars
def test_a_release_whose_rocksdb_reports_no_flushes_cannot_be_killed_within_one() -> None:
    kill, *_ = killed_within_a_flush("2.3.1")
    assert isinstance(kill, Unsupported)
    assert kill.limit == "flushes"
