"""Our assignors beside those of released jars, and the laws beside what Kafka itself does."""

from collections.abc import Iterator
from random import Random

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.history import Replied
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.worker import Unit, Worker
from kipcheck.conformance.protocols.assignment import strategies as membership
from kipcheck.conformance.protocols.assignment.invariants.rounds import every_round
from kipcheck.conformance.protocols.assignment.model.assignment import COOPERATIVE, RANGE, ROUNDROBIN, STICKY
from kipcheck.conformance.protocols.assignment.model.sticky import decided
from kipcheck.conformance.protocols.assignment.model.sticky.deviations import ENDLESS, Deviation
from kipcheck.conformance.protocols.assignment.ops import assign, group_of, shorthand, with_user_data
from kipcheck.conformance.protocols.assignment.target import ALL, Leader
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Session
from kipcheck.conformance.tests.protocols.assignment.test_sticky import GIVEN, OTHERWISE
from kipcheck.conformance.tests.support.groups import CHECKED, anything, case, got, step_of
from kipcheck.strategies.compiled import compiled
from kipcheck.strategies.nodes import Node, OneOf, record

pytestmark = pytest.mark.jars

KAFKA = "java:kafka-clients:3.9.2"
GROUPS = 400
FEW = 15
SMALL = OneOf((membership.EQUAL, membership.MIXED))
RACKS: dict[str, Node] = {"replicas": membership.REPLICAS, "places": membership.PLACES}
KNOBS: dict[str, dict[str, Node]] = {
    "plain": {},
    "static": {"instances": membership.INSTANCES},
    "racks": RACKS,
    "both": {"instances": membership.INSTANCES, **RACKS},
    "others": {"others": membership.OTHERS, "wishes": membership.WISHES},
}  # fmt: skip
EMPTY = {"assign/nothing-else", "assign/stays"}
"""A member that subscribes to nothing, listed first, is taken for one that has not been looked at."""
KNOWN = {
    "assign/one-round": {*EMPTY, "assign/no-needless-move", "survives"},
    "assign/order": EMPTY,
    "assign/rounds": {*EMPTY, "assign/no-needless-move", "survives"},
    # What has to move goes back to whom it belonged before, though that one does not subscribe, or not to anything, and
    # though another partition could move.
    "assign/claims": {"assign/answers", "assign/nothing-else", "assign/hand-over-older", "assign/newest-wins"},
    # Of a claim only the topic is looked at, and not the number.
    "assign/ghosts": {"assign/answers", "assign/nothing-else", "assign/one-owner", "assign/hand-over"},
    "assign/other-topics": {*EMPTY, "assign/no-needless-move"},
}
"""What Kafka 3.9.2 itself breaks."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[Session]:
    with registry.target(KAFKA).open("apache", Role.LEADER) as session:
        yield session


def asked(session: Session, *steps: Step) -> list[Case]:
    return [Case("test", "apache", Role.LEADER, (each,)) for each in steps]


@pytest.mark.parametrize("knobs", KNOBS)
@pytest.mark.parametrize("name", [RANGE, ROUNDROBIN])
def test_range_and_round_robin_give_what_kafka_gives(kafka: Session, name: str, knobs: str) -> None:
    draw = compiled(record(group=SMALL, **KNOBS[knobs]))
    random = Random(f"{name}/{knobs}")
    drawn = [each for each in (membership.group_with_knobs(draw(random)) for _ in range(GROUPS)) if each.members]
    steps = [assign(name, each.topics, each.members) for each in drawn]
    for history, group in zip(converse(asked(kafka, *steps), kafka), drawn, strict=True):
        (given,) = every_round(history)
        ours = {member: frozenset(partitions) for member, partitions in ALL[name](group).items()}
        assert given.got == ours, shorthand(history.case.steps)


@pytest.mark.parametrize("id", CHECKED)
def test_kafka_keeps_the_laws_but_for_what_is_known(id: str) -> None:
    check = CHECKED[id]
    with Worker(KAFKA, registry.target(KAFKA)) as worker:
        for subject in check.family.subjects("apache"):
            if check.about(subject):
                result = worker.run(Unit(KAFKA, "apache", id, subject.name, None, 0, 40))
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


def test_kafka_compares_one_generation_of_a_member_with_the_other_one_of_another(kafka: Session) -> None:
    """What is not modelled: there the older claim wins, for the subscriptions say nothing of the newer one."""
    claimed = step_of("sticky t0:2; a[t0]=t0-0,t0-1@6; b[t0]=t0-0,t0-1@5")
    in_user_data = with_user_data(claimed, 1)
    nameless = [{**each, "generation": -1} for each in in_user_data["members"]]
    mixed_up = Step("leader", "assign", {**in_user_data.body, "members": nameless})
    theirs = [got(every_round(each)[0].got) for each in converse(asked(kafka, in_user_data, mixed_up), kafka)]
    assert theirs == ["a t0-0; b t0-1", "a t0-1; b t0-0"]
    assert got(decided(STICKY, group_of(mixed_up)).assignment) == "a t0-0; b t0-1"


SORTS: dict[str, dict[str, Node]] = {
    "equal": {"group": membership.EQUAL},
    "mixed": {"group": membership.MIXED},
    "chained": {"group": membership.CHAINED},
    "crossed": {"group": membership.CROSSED},
    "contested, equal": {"group": membership.EQUAL, "claims": membership.CLAIMS},
    "contested, mixed": {"group": membership.MIXED, "claims": membership.CLAIMS},
    "stale, equal": {"group": membership.EQUAL, "claims": membership.CLAIMS, "generations": membership.STALE},
    "stale, mixed": {"group": membership.MIXED, "claims": membership.CLAIMS, "generations": membership.STALE},
    "gone": {"group": SMALL, "ghosts": membership.GHOSTS},
    "other topics": {"group": SMALL, "wishes": membership.WISHES, "others": membership.OTHERS},
    "static": {"group": SMALL, "instances": membership.INSTANCES},
    "racks, equal": {"group": membership.EQUAL, **RACKS},
    "racks, mixed": {"group": membership.MIXED, **RACKS},
    "racks, stale": {"group": SMALL, **RACKS, "claims": membership.CLAIMS, "generations": membership.STALE},
    "anything": dict(anything().fields),
}


@pytest.mark.all_jars
@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("name", [STICKY, COOPERATIVE])
def test_sticky_gives_what_kafka_gives_but_for_the_departures_that_are_listed(
    kafka: Session, name: str, sort: str
) -> None:
    agree_but_for_departures(kafka, name, sort, GROUPS)


@pytest.mark.parametrize("name", [STICKY, COOPERATIVE])
def test_some_of_each_sort_are_given_what_kafka_gives(kafka: Session, name: str) -> None:
    for sort in SORTS:
        agree_but_for_departures(kafka, name, sort, FEW)


def agree_but_for_departures(kafka: Session, name: str, sort: str, groups: int) -> None:
    draw = compiled(record(**SORTS[sort]))
    random = Random(f"{name}/{sort}")
    drawn = [each for each in (membership.group_with_knobs(draw(random)) for _ in range(groups)) if each.members]
    decisions = [decided(name, each) for each in drawn]
    # Those over which Kafka's search goes in circles would take seconds each, and are asked about elsewhere.
    pairs = [each for each in zip(drawn, decisions, strict=True) if ENDLESS not in each[1].departures]
    steps = [assign(name, each.topics, each.members) for each, _ in pairs]
    alike = 0
    for history, (_, decision) in zip(converse(asked(kafka, *steps), kafka), pairs, strict=True):
        ours = {member: frozenset(partitions) for member, partitions in decision.assignment.items()}
        theirs = [each.got for each in every_round(history)]
        alike += theirs == [ours]
        assert theirs == [ours] or decision.departures, shorthand(history.case.steps)
    assert alike > len(drawn) // 2


def test_what_is_told_of_kafka_it_gives(kafka: Session) -> None:
    for history, wanted in zip(converse([*map(case, GIVEN)], kafka), GIVEN.values(), strict=True):
        (given,) = every_round(history)
        assert got(given.got) == wanted, shorthand(history.case.steps)


@pytest.mark.parametrize(
    "departure",
    [pytest.param(each, marks=[pytest.mark.all_jars] if each is ENDLESS else []) for each in OTHERWISE],
    ids=[each.id for each in OTHERWISE],
)
def test_where_we_depart_from_kafka_it_breaks_the_law(kafka: Session, departure: Deviation) -> None:
    laws = {law.id: law for law in all_invariants(Role.LEADER)}
    broken: set[str] = set()
    for text in OTHERWISE[departure]:
        # Where cooperative members have something to give up first, the harm comes a round later.
        asked = text if " | " in text else f"{text} | {text.replace(' ', ' again ', 1)}"
        (history,) = converse([case(asked)], kafka)
        found = {id for id, law in laws.items() if list(law.search(history))}
        assert found & {*departure.laws}, text
        broken |= found
    assert {*departure.laws} <= broken
