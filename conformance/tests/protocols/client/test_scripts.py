"""Scripts for live clients: what is drawn, what is possible, and what a command needs for it."""

from collections.abc import Iterable
from itertools import islice
from random import Random
from typing import Any

import pytest

from kipcheck.conformance.core.values.case import Case, Role, Step
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.live.server.answered_errors import with_error
from kipcheck.conformance.protocols.client.answer_ops import UNDRAWN
from kipcheck.conformance.protocols.client.cells import (
    DISTURBANCES,
    HAD_ENDED,
    UNSENT,
    Cell,
    cells,
    pairs,
    placed,
    played,
    table,
)
from kipcheck.conformance.protocols.client.checks import FIRST, IN_SHARE_GROUPS, IN_STREAMS_GROUPS
from kipcheck.conformance.protocols.client.invariants.membership import ends_when_stopped
from kipcheck.conformance.protocols.client.model import (
    CLASSIC_ONLY,
    CONSUMER_ONLY,
    ERRORS,
    PLACEHOLDERS,
    REFUSALS,
    SINCE,
    STATIC_ONLY,
    Scripts,
    State,
    is_possible,
    is_worth,
    needs,
)
from kipcheck.conformance.protocols.client.ops import OPERATIONS, Answer, Refuse
from kipcheck.conformance.protocols.client.plan import planned
from kipcheck.conformance.protocols.client.strategies import DRAWN, SCRIPTS, STOP, refusal, script
from kipcheck.conformance.protocols.client.terms import FATAL
from kipcheck.conformance.protocols.declare.conversations import Subject
from kipcheck.conformance.targets.protocol import observed
from kipcheck.conformance.wire.schema import spec


def drawn(number: int) -> list[str]:
    random = Random("scripts")
    return [OPERATIONS.shorthand(SCRIPTS.draw(random, SCRIPTS.swarm(random))) for _ in range(number)]


def test_every_step_is_drawn_possible_and_read_back() -> None:
    verbs = set()
    for text in drawn(3000):
        steps = OPERATIONS.parse_shorthand(text)
        assert OPERATIONS.shorthand(steps) == text
        ends = next((at for at, each in enumerate(steps) if each.verb == "client-fence"), len(steps))
        assert all(is_possible(OPERATIONS.event_of(each)) for each in steps[:ends])  # nothing that follows matters
        verbs |= {each.verb for each in steps}
    assert verbs == {*DRAWN}


def as_value(steps: Iterable[Step]) -> list[dict[str, Any]]:
    return [{"actor": each.actor, "verb": each.verb, "body": each.body} for each in steps]


def test_a_quarter_of_the_drawn_scripts_ends_with_a_refusal() -> None:
    random, refused = Random("refusals"), 0
    for text in drawn(600):
        before = OPERATIONS.parse_shorthand(text)
        ((steps, _),) = script(Subject("apache", "client"), as_value(before), random)
        assert steps[: len(before)] == before and steps[-1] == STOP
        refused += len(steps) - len(before) - 1
    assert 90 < refused < 160


def test_each_refusal_is_drawn_where_a_client_can_notice_it() -> None:
    random, found = Random("refusals"), dict[str, set[tuple[str, str]]]()
    for text in ("rebalance", "static", "protocol consumer", "static; protocol consumer"):
        steps = OPERATIONS.parse_shorthand(text)
        events = (OPERATIONS.event_of(each) for _ in range(700) for each in refusal(steps, random))
        found[text] = {(each.kind, each.error) for each in events if isinstance(each, Refuse)}
    drawn = {kind: errors for kind, errors in REFUSALS.items() if kind not in UNDRAWN}
    assert set().union(*found.values()) == {(kind, error) for kind, errors in drawn.items() for error in errors}
    assert found["static"] - found["rebalance"] == {each for each in STATIC_ONLY if each[0] not in CONSUMER_ONLY}
    assert not {kind for kind, _ in found["protocol consumer"]} & CLASSIC_ONLY
    assert not refusal(OPERATIONS.parse_shorthand("static; fence"), random)


def test_each_error_of_streams_groups_and_share_groups_is_in_a_script() -> None:
    taken = [OPERATIONS.event_of(each) for text in (*IN_STREAMS_GROUPS, *IN_SHARE_GROUPS)
             for each in OPERATIONS.parse_shorthand(text)]  # fmt: skip
    for made, errors in ((Answer, ERRORS), (Refuse, REFUSALS)):
        found = {(each.kind, each.error) for each in taken if isinstance(each, made)}
        assert found >= {(kind, error) for kind in UNDRAWN for error in errors[kind]}


def test_a_script_that_says_where_it_ends_has_no_refusal() -> None:
    value = as_value((STOP,))
    for seed in range(20):
        ((steps, _),) = script(Subject("apache", "client"), value, Random(seed))
        assert OPERATIONS.shorthand(steps) == "stop"


def test_few_drawn_scripts_need_an_optional_placeholder() -> None:
    found = [needs(OPERATIONS.parse_shorthand(each)) for each in drawn(600)]
    assert sum(map(bool, found)) < 120
    assert frozenset[str]().union(*found) == {*PLACEHOLDERS.values()}


def test_a_script_names_the_placeholders_that_it_needs() -> None:
    steps = OPERATIONS.parse_shorthand("static; protocol consumer; assignors range,sticky; topics 2; restart; stop")
    assert needs(steps) == {"instance", "protocol", "assignors"}
    assert not needs(OPERATIONS.parse_shorthand("others 2 follow; topics 2; older 2.8.2; move; stop"))


@pytest.mark.parametrize(
    "text",
    ["answer Fetch UNKNOWN_MEMBER_ID", "answer FindCoordinator NOT_COORDINATOR", "others 17 lead", "others -1 lead",
     "member v4", "member of 10", "assign 1000", "assign 0 and -1", "grow 3", "grow 1001", "topics 3", "pass 10001",
     "late Fetch -1", "refuse Fetch INVALID_GROUP_ID",
     "answer Heartbeat NOT_COORDINATOR times 0", "late Heartbeat 400 times 21", "late LeaveGroup 400 at start",
     "down coordinator 400 then 3.9.2",
     "offer Fetch 4-3", "offer Fetch 4-101", "intervals 3000 of 3000", "intervals 0 of 3000", "intervals 1 of 60001"],
)  # fmt: skip
def test_what_no_broker_and_no_user_can_do_is_impossible(text: str) -> None:
    (step,) = OPERATIONS.parse_shorthand(text)
    assert not is_possible(OPERATIONS.event_of(step))


@pytest.mark.parametrize(
    ("before", "text"),
    [("", "fence"), ("protocol consumer", "answer Heartbeat NOT_COORDINATOR"), ("protocol consumer", "others 1 lead"),
     ("", "answer ConsumerGroupHeartbeat UNKNOWN_MEMBER_ID"), ("rebalance", "static"), ("static; fence", "rebalance"),
     ("", "refuse Heartbeat FENCED_INSTANCE_ID"), ("", "refuse ConsumerGroupHeartbeat INVALID_REQUEST"),
     ("refuse JoinGroup INVALID_GROUP_ID", "rebalance")],
)  # fmt: skip
def test_what_a_client_cannot_notice_is_not_drawn(before: str, text: str) -> None:
    state = State()
    for each in OPERATIONS.parse_shorthand(before) if before else ():
        state = Scripts().step(state, OPERATIONS.event_of(each)).state
    (step,) = OPERATIONS.parse_shorthand(text)
    assert not is_worth(state, OPERATIONS.event_of(step))


def test_first_scripts_are_possible() -> None:
    for text in FIRST:
        assert all(is_possible(OPERATIONS.event_of(each)) for each in OPERATIONS.parse_shorthand(text))


def planned_cells(seed: int, number: int, limits: tuple[str, ...] = ()) -> list[Cell]:
    return [each.cell for steps in islice(planned(seed, [], limits), number) for each in placed(steps)]


def test_forty_planned_scripts_play_more_pairs_than_four_hundred_drawn_ones() -> None:
    for seed in range(3):
        found = {pair for cell in planned_cells(seed, 40) for pair in cell.pairs}
        assert len(found) > 500 and found <= pairs()
    random = Random("pairs")
    drawn = (SCRIPTS.draw(random, SCRIPTS.swarm(random)) for _ in range(400))
    assert len({pair for steps in drawn for each in placed(steps) for pair in each.cell.pairs}) < 500


def test_a_client_that_lacks_other_groups_meets_each_error_of_each_request_in_forty_scripts() -> None:
    """Besides those of static members, whose scripts are few; what groups of other kinds play is not counted."""
    first = [*map(OPERATIONS.parse_shorthand, FIRST)]
    of_static = {each.happens for each in cells() if (each.request, each.happens) in STATIC_ONLY}
    known = {
        (each.request, each.happens) for each in cells()
        if each.group == "eager" and each.happens not in {*DISTURBANCES, *of_static}
    }  # fmt: skip
    for seed in range(3):
        scripts = islice(planned(seed, first, ["{protocol}"]), 40)
        met = {(each.cell.request, each.cell.happens) for steps in scripts for each in placed(steps)
               if each.cell.group in ("eager", "static")}  # fmt: skip
        assert len(known - met) <= 3, known - met


def test_planned_scripts_are_possible_and_end_with_stop() -> None:
    for steps in islice(planned(7, []), 200):
        assert OPERATIONS.parse_shorthand(OPERATIONS.shorthand(steps)) == steps
        assert all(is_possible(OPERATIONS.event_of(each)) for each in steps)
        assert [each.verb for each in steps].index(STOP.verb) == len(steps) - 1


def test_a_plan_depends_on_seed_and_limits_alone() -> None:
    first, again, other = ([*islice(planned(seed, []), 30)] for seed in (4, 4, 5))
    assert first == again != other and first == [*islice(planned(4, []), 60)][:30]


def test_a_target_is_given_no_script_that_needs_what_it_lacks() -> None:
    limits = [f"{{{each}}}" for each in PLACEHOLDERS.values()]
    scripts = [*islice(planned(0, [], limits), 80)]
    assert not {name for steps in scripts for name in needs(steps)}
    assert {each.group for each in planned_cells(0, 80, tuple(limits))} == {"eager"}
    lacks = table({}, {"{protocol}": "the command lacks {protocol}"}).missing
    assert lacks["the command lacks {protocol}"] > 30


@pytest.mark.parametrize(
    ("text", "cells"),
    [("answer Heartbeat NOT_COORDINATOR times 6",
      [("Heartbeat", "NOT_COORDINATOR", "stable", "several times", "eager")]),
     ("late JoinGroup 400 at start; pass 1", [("JoinGroup", "late", "first join", "once", "eager")]),
     ("static; others 1 follow; late JoinGroup 400", [("JoinGroup", "late", "following", "once", "static")]),
     ("reset OffsetFetch amid at next; rebalance", [("OffsetFetch", "cut off", "first join", "once", "eager")]),
     ("pass 1; reset OffsetFetch amid at next; rebalance", [("OffsetFetch", "cut off", "leading", "once", "eager")]),
     ("silent LeaveGroup 400 at stop; pass 1; stop", [("LeaveGroup", "silent", "closing", "once", "eager")]),
     ("pass 1; answer JoinGroup NOT_COORDINATOR at start; stop", []),
     ("protocol consumer; refuse Fetch TOPIC_AUTHORIZATION_FAILED",
      [("Fetch", "TOPIC_AUTHORIZATION_FAILED", "stable", "for good", "KIP-848")])],
)  # fmt: skip
def test_the_cells_of_a_script(text: str, cells: list[tuple[str, ...]]) -> None:
    assert [tuple(each.cell) for each in placed(OPERATIONS.parse_shorthand(text))] == cells


def test_a_cell_is_played_if_the_client_sent_such_a_request() -> None:
    steps = OPERATIONS.parse_shorthand("answer ListOffsets OFFSET_NOT_AVAILABLE; late JoinGroup 400; reset Fetch; stop")
    request = {"what": "request", "ms": 1, "connection": 1, "api": "JoinGroup", "version": 5}
    settled = {"what": "settled", "ms": 2, "waited_ms": 1, "unsent": ["ListOffsets"]}
    events = [[settled], [request, {"what": "ended", "ms": 3, "code": 1, "stderr": ""}], [], []]
    answers = (observed({"status": "accepted", "actions": each}) for each in events)
    ops = (Op(at, *each, at + 1) for at, each in enumerate(zip(steps, answers, strict=True)))
    found = played(History(Case("client/groups", "apache", Role.CLIENT, steps), "it", tuple(ops)))
    assert [(cell.request, why) for cell, why in found] == [
        ("ListOffsets", UNSENT), ("JoinGroup", ""), ("Fetch", HAD_ENDED)
    ]  # fmt: skip


def test_each_error_of_a_script_has_a_code_and_versions_that_exist() -> None:
    every = {kind: {*ERRORS[kind], *REFUSALS[kind]} for kind in ERRORS}
    assert frozenset[str]().union(*every.values()) <= {*KafkaError.__members__} and ERRORS.keys() == REFUSALS.keys()
    assert {KafkaError[error] for errors in REFUSALS.values() for error in errors} <= FATAL
    passing = {KafkaError[error] for errors in ERRORS.values() for error in errors}
    assert passing & FATAL <= {KafkaError.GROUP_ID_NOT_FOUND}  # which some clients raise, and some recover from
    for (kind, error), version in SINCE.items():
        highest = spec(APACHE, f"{kind}Request").versions.high
        assert error in every[kind] and highest is not None and 0 < version <= highest


BODIES = {
    "FindCoordinator": ({"nodeId": 1, "host": "h", "port": 1, "errorCode": 0},
                        {"coordinators": [{"key": "g", "nodeId": 1, "host": "h", "port": 1, "errorCode": 0}]}),
    "Metadata": ({"topics": [{"errorCode": 0, "name": "t", "partitions": [{"errorCode": 0, "leaderId": 1}]}]},),
    "OffsetFetch": ({"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}], "errorCode": 0},
                    {"groups": [{"groupId": "g", "errorCode": 0,
                                 "topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]}]}),
    "ListOffsets": ({"topics": [{"name": "t", "partitions": [{"partitionIndex": 0, "errorCode": 0}]}]},),
}  # fmt: skip


@pytest.mark.parametrize("api", BODIES)
def test_an_answer_has_exactly_the_error_of_the_script(api: str) -> None:
    for error in (*ERRORS[api], *REFUSALS[api]):  # type: ignore[index]
        for version, body in enumerate(BODIES[api], start=7):
            assert codes(with_error(api, version, body, error)) == {KafkaError[error]}


def codes(value: object) -> set[int]:
    """The error codes in a body, but 0."""
    if isinstance(value, dict):
        own = {value["errorCode"]} - {0} if "errorCode" in value else set()
        return own.union(*map(codes, value.values()))
    return set[int]().union(*map(codes, value)) if isinstance(value, list) else set()


@pytest.mark.parametrize(
    ("text", "code", "broken"),
    [("member damaged cut; rebalance", 1, 0), ("member damaged cut; rebalance", -6, 1),
     ("member damaged future; rebalance", 1, 1), ("rebalance; member damaged cut", 1, 1)],
)  # fmt: skip
def test_a_program_that_ends_is_judged_in_a_healthy_group_and_a_crash_in_any(text: str, code: int, broken: int) -> None:
    steps = OPERATIONS.parse_shorthand(text)
    at = text.split("; ").index("rebalance")
    events = [[{"what": "ended", "ms": 1, "code": code, "stderr": ""}] if step == at else [] for step in range(2)]
    answers = (observed({"status": "accepted", "actions": each}) for each in events)
    ops = (Op(at, *each, at + 1) for at, each in enumerate(zip(steps, answers, strict=True)))
    history = History(Case("client/groups", "apache", Role.CLIENT, steps), "it", tuple(ops))
    assert len(list(ends_when_stopped(history))) == broken
