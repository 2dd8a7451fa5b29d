"""Released stores with timestamps beside ours: RocksDB gives the same answers in drawn lives, crashes included."""

from dataclasses import replace
from random import Random

import pytest

from kipcheck.conformance.core.case import Role, Step
from kipcheck.conformance.core.history import Observation, Refused, Replied
from kipcheck.conformance.core.releases_table import judges, rocksdb
from kipcheck.conformance.protocols.stores.model import store_of
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.protocols.stores.strategies import lives
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.machines import differences, session_answers

NEWEST = judges("streams")[-1]
RELEASES = [each for each in judges("streams") if rocksdb(each)]
ESTIMATED = "store-count"
"""RocksDB counts what was deleted and is not there."""


def drawn(release: str, count: int) -> list[tuple[Step, ...]]:
    talk, random = lives(f"apache@{release}"), Random(f"stores {release}")
    return [tuple(map(whole, talk.mended(talk.draw(random, talk.swarm(random))))) for _ in range(count)]


def whole(step: Step) -> Step:
    """A crash within a flush is none here: our store has flushed all or nothing, and most releases have not."""
    return replace(step, body={"flushing": False}) if step.verb == "store-crash" else step


def alike(step: Step, one: Observation, other: Observation) -> bool:
    """A refusal is one, whatever is thrown."""
    if isinstance(one, Replied) and isinstance(other, Replied):
        return step.verb == ESTIMATED or dict(one.payload) == dict(other.payload)
    return isinstance(one, Refused) and isinstance(other, Refused)


def parted(release: str, count: int, model: str = "") -> list[str]:
    """Lives in which the released store and ours part. ``model``: another release of ours."""
    talks, edition = drawn(release, count), f"apache@{release}"
    with registry.target(f"java:kafka-streams:{release}").open(edition, Role.STORE) as session:
        answers = session_answers(session, edition, Role.STORE, talks)
    return differences(OPERATIONS, store_of(model or release), talks, answers, alike)


@pytest.mark.jars
@pytest.mark.parametrize("release", ["2.3.0", "3.9.2", NEWEST])
def test_a_released_store_answers_as_our_machine(release: str) -> None:
    assert parted(release, 60) == []


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", RELEASES)
def test_each_released_store_answers_as_our_machine(release: str) -> None:
    assert parted(release, 300) == []


@pytest.mark.jars
@pytest.mark.parametrize("model", ["2.3.1", NEWEST])
def test_the_machine_of_another_release_is_told_apart(model: str) -> None:
    assert parted("2.3.0", 60, model)
