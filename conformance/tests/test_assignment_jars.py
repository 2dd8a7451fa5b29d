"""Our assignors beside those of released jars, and the laws beside what Kafka itself does."""

from collections.abc import Iterator
from random import Random

import pytest

from conformance.apis.assignment import assign, shorthand, with_user_data
from conformance.core.case import Case, Role, Step
from conformance.core.history import Replied
from conformance.invariants.rounds import every_round
from conformance.models.assignment import RANGE, ROUNDROBIN, STICKY, Group
from conformance.runner import converse
from conformance.targets import roll
from conformance.targets.leader import ALL, Leader
from conformance.targets.protocol import Session
from conformance.tests.assigned import CHECKED, step_of
from conformance.work import Unit, Worker
from strategies import membership
from strategies.compiled import compiled
from strategies.nodes import Node, OneOf, record

pytestmark = pytest.mark.jars

KAFKA = "java:kafka-clients:3.9.2"
GROUPS = 400
KNOBS: dict[str, dict[str, Node]] = {
    "plain": {},
    "static": {"instances": membership.INSTANCES},
    "racks": {"replicas": membership.REPLICAS, "places": membership.PLACES},
    "both": {
        "instances": membership.INSTANCES, "replicas": membership.REPLICAS, "places": membership.PLACES,
    },
    "others": {"others": membership.OTHERS, "wishes": membership.WISHES},
}  # fmt: skip
EMPTY = {"assign/nothing-else", "assign/stays"}
"""A member that subscribes to nothing, listed first, is taken for one that has not been looked at."""
KNOWN = {
    "assign/one-round": {*EMPTY, "assign/no-needless-move", "survives"},
    "assign/order": EMPTY,
    "assign/rounds": {*EMPTY, "assign/no-needless-move", "survives"},
    # What has to move goes back to whom it belonged before, though that one does not subscribe, or not to anything.
    "assign/claims": {"assign/answers", "assign/nothing-else", "assign/hand-over-older"},
    # Of a claim only the topic is looked at, and not the number.
    "assign/ghosts": {"assign/answers", "assign/nothing-else", "assign/one-owner", "assign/hand-over"},
    "assign/other-topics": {*EMPTY, "assign/no-needless-move"},
}
"""What Kafka 3.9.2 itself breaks."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[Session]:
    with roll.target(KAFKA).open("apache", Role.LEADER) as session:
        yield session


def asked(session: Session, *steps: Step) -> list[Case]:
    return [Case("test", "apache", Role.LEADER, (each,)) for each in steps]


@pytest.mark.parametrize("knobs", KNOBS)
@pytest.mark.parametrize("name", [RANGE, ROUNDROBIN])
def test_range_and_round_robin_give_what_kafka_gives(kafka: Session, name: str, knobs: str) -> None:
    draw = compiled(record(group=OneOf((membership.EQUAL, membership.MIXED)), **KNOBS[knobs]))
    random = Random(f"{name}/{knobs}")
    drawn = [each for each in (membership.turned(draw(random)) for _ in range(GROUPS)) if each.members]
    steps = [assign(name, each.topics, each.members) for each in drawn]
    for history, group in zip(converse(asked(kafka, *steps), kafka), drawn, strict=True):
        (given,) = every_round(history)
        ours = {member: frozenset(partitions) for member, partitions in ALL[name](group).items()}
        assert given.got == ours, shorthand(history.case.steps)


@pytest.mark.parametrize("id", CHECKED)
def test_kafka_keeps_the_laws_but_for_what_is_known(id: str) -> None:
    check = CHECKED[id]
    with Worker(KAFKA, roll.target(KAFKA)) as worker:
        for subject in check.family.subjects("apache"):
            if check.about(subject):
                result = worker.hold(Unit(KAFKA, "apache", id, subject.name, None, 0, 40))
                unknown = [each for each in result.findings if each.invariant not in KNOWN.get(id, ())]
                assert not unknown, [(each.invariant, each.violation.why) for each in unknown]


def test_kafka_reads_what_we_write_and_writes_what_we_write(kafka: Session) -> None:
    settled = step_of("sticky t0:2 t1:2; a[t0 t1]=t0-1,t1-0@7; b[t0 t1]=t0-0,t1-1@7")
    (history,) = converse(asked(kafka, with_user_data(settled, 1)), kafka)
    (given,) = every_round(history)
    assert given.got == {
        "a": frozenset({("t0", 1), ("t1", 0)}), "b": frozenset({("t0", 0), ("t1", 1)})
    }  # fmt: skip
    body = {"assignor": STICKY, "subscription": ["t0"], "owned": [["t0", 1], ["t0", 0]], "generation": 7}
    (history,) = converse(asked(kafka, Step("member", "user-data", body)), kafka)
    assert isinstance(history.ops[0].observation, Replied)
    assert history.ops[0].observation["hex"] == Leader().answer({"op": "user-data", **body})["hex"]


def test_two_rounds_of_ours_and_of_kafka_end_in_the_same_sizes(kafka: Session) -> None:
    """Of a group with equal subscriptions there is one way to be in balance, whoever gets what."""
    draw, random = compiled(record(group=membership.EQUAL)), Random(11)
    drawn: list[Group] = [each for each in (membership.turned(draw(random)) for _ in range(100)) if each.members]
    steps = [assign(STICKY, each.topics, each.members) for each in drawn]
    for history, group in zip(converse(asked(kafka, *steps), kafka), drawn, strict=True):
        (given,) = every_round(history)
        ours = ALL[STICKY](group)
        assert sorted(map(len, given.got.values())) == sorted(map(len, ours.values()))
        kept = [
            sum(len(set(shares[each.id]) & set(each.owned)) for each in group.members) for shares in (given.got, ours)
        ]
        assert kept[0] == kept[1], shorthand(history.case.steps)
