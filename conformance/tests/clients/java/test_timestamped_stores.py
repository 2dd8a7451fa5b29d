"""Released stores with timestamps beside ours: RocksDB gives the same answers in drawn lives, crashes included."""

from random import Random

import pytest

from kipcheck.conformance.core.case import Case, Role, Step
from kipcheck.conformance.core.history import Observation, Refused, Replied
from kipcheck.conformance.core.releases_table import judges, rocksdb
from kipcheck.conformance.protocols.stores.ops import OPERATIONS
from kipcheck.conformance.protocols.stores.strategies import lives
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import BATCH, observed
from kipcheck.conformance.tests.support.stores import machine_answers

NEWEST = judges("streams")[-1]
RELEASES = [each for each in judges("streams") if rocksdb(each)]
ESTIMATED = "store-count"
"""RocksDB counts what was deleted and is not there."""


def drawn(release: str, count: int) -> list[tuple[Step, ...]]:
    talk, random = lives(f"apache@{release}"), Random(f"stores {release}")
    return [talk.mended(talk.draw(random, talk.swarm(random))) for _ in range(count)]


def alike(step: Step, one: Observation, other: Observation) -> bool:
    """A refusal is one, whatever is thrown."""
    if isinstance(one, Replied) and isinstance(other, Replied):
        return step.verb == ESTIMATED or dict(one.payload) == dict(other.payload)
    return isinstance(one, Refused) and isinstance(other, Refused)


def differences(release: str, count: int, model: str = "") -> list[str]:
    """Lives in which the released store and ours part, up to that step. ``model``: another release of ours."""
    talks, found = drawn(release, count), []
    with registry.target(f"java:kafka-streams:{release}").open(f"apache@{release}", Role.STORE) as session:
        for at in range(0, len(talks), BATCH):
            cases = [Case("stores", f"apache@{release}", Role.STORE, each) for each in talks[at : at + BATCH]]
            for talk, answers in zip(talks[at : at + BATCH], session.run(cases), strict=True):
                ours = map(observed, machine_answers(model or release, talk))
                for place, (step, one, other) in enumerate(zip(talk, ours, answers, strict=True)):
                    if not alike(step, one, other):
                        found.append(f"{OPERATIONS.shorthand(talk[: place + 1])}\n  ours {one}\n  {release} {other}")
                        break
    return found


@pytest.mark.jars
@pytest.mark.parametrize("release", ["2.3.0", "3.9.2", NEWEST])
def test_a_released_store_answers_as_our_machine(release: str) -> None:
    assert differences(release, 60) == []


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", RELEASES)
def test_each_released_store_answers_as_our_machine(release: str) -> None:
    assert differences(release, 300) == []


@pytest.mark.jars
@pytest.mark.parametrize("model", ["2.3.1", NEWEST])
def test_the_machine_of_another_release_is_told_apart(model: str) -> None:
    assert differences("2.3.0", 60, model)
