"""What an operator of a Streams fleet may rely on: kept by our machines, and told where something else was seen."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kipcheck.conformance.core.values.history import History, Lost
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.assignment.model.assignment import Topic
from kipcheck.conformance.protocols.streams.checks import (
    CHECKS as STREAMS_CHECKS,
    COUNTS,
    LACKING,
    UNEVEN,
    WITH_STANDBYS,
    T,
    restarted,
    started,
    then,
)
from kipcheck.conformance.protocols.streams.invariants.trace import (
    ObservedAt,
    binds,
    is_draft,
    observations,
    streams_trace,
)
from kipcheck.conformance.protocols.streams.invariants.versions import values
from kipcheck.conformance.protocols.streams.model.group_model import process_of
from kipcheck.conformance.protocols.streams.model.members import (
    ENDLESS,
    NEVER,
    Rejoin,
    Store,
    Subtopology,
    TaskId,
    Topology,
)
from kipcheck.conformance.protocols.streams.ops import (
    Applied,
    Began,
    Deploy,
    Died,
    Formed,
    ObservedEvent,
    Refused,
    Rests,
    Sent,
)
from kipcheck.conformance.protocols.upgrade.ops import Gave, Restless
from kipcheck.conformance.tests.support.streams_groups import (
    OURS,
    Change,
    after,
    at_rest,
    broken,
    changed,
    instead,
    of,
    played,
    resaid,
    resent,
)

NEWEST, DRAFT = "apache", "kip-268"
RELEASED = "apache@4.4.0"
"""Members of any release do what that release does; in ``apache`` they do what the requirements owe."""
UP = then(started("own", "ab"), restarted("future", "ab"))
"""Generation 1 is old, 2 and 3 probe a, 4 and 5 bring both to the newest version; the last is step 7."""
FOUND = then(started("own<1.1", "ab"), restarted("own", "ab"))
ECHO = then(started("2.3.1"), "start c future; settle")
STATE = Deploy(COUNTS, T)
TWO_TOPICS = Deploy(Topology((Subtopology(0, ("t", "u"), copartition=(("t", "u"),)),)), (Topic("t", 2), Topic("u", 2)))
SEPARATE = Deploy(
    Topology((Subtopology(0, ("t",)), Subtopology(1, ("u",), stores=(Store("s"),)))), (Topic("t", 2), Topic("u", 2))
)
T00, T01 = TaskId(0, 0), TaskId(0, 1)


@pytest.mark.parametrize(
    ("where", "text", "deployed"),
    [
        (NEWEST, UP, None), (DRAFT, UP, None), (NEWEST, UP, WITH_STANDBYS), (DRAFT, UP, WITH_STANDBYS),
        (DRAFT, FOUND, None), (NEWEST, ECHO, None), (NEWEST, UP, TWO_TOPICS), (NEWEST, UP, SEPARATE),
        (NEWEST, started("own<9.9"), None), (NEWEST, "start a 1.1.1; settle; start b 2.0.1; settle; settle", None),
        (NEWEST, started("own", "ab"), LACKING[1]), (NEWEST, then(started("own", "ab"), "shut-down b; settle"), None),
        (NEWEST, "start a 3.9.2<1.1; start b 3.9.2<1.1; settle; start c 4.3.1; settle", None),
        (NEWEST, "start a 2.6.3<1.1; settle; start b 2.8.2; settle", None),
        (NEWEST, then(started("2.0.1", "ab"), restarted("2.2.1", "ab")), None),
        ("apache@2.3.1", UP, None), (NEWEST, "start a 3.1.2; settle", UNEVEN),
    ],
)  # fmt: skip
def test_what_is_as_it_should_be_is_not_told_of(where: str, text: str, deployed: Deploy | None) -> None:
    assert not broken(played(where, text, deployed))


# As released, without anything changed


@pytest.mark.parametrize(
    ("id", "text", "deployed", "why"),
    [
        ("streams/adopts-blindly", "start a 2.2.1; settle; start b 2.0.1; settle", None,
         "b (2.0.1) knows up to 3, was sent version 3 with supported version 4 in generation 2 and uses 4 from now on"),
        ("streams/decodable", "start a 0.10.2.1; start b 0.10.0.1; settle", None,
         "b (0.10.0.1) cannot decode its assignment .* it has version 2, and the member knows up to 1"),
        ("streams/errors-decodable", "start a 3.9.2; start b 2.8.2; settle", LACKING[0],
         "b (2.8.2) cannot decode error 1 .* it has version 11, and the member knows up to 9"),
        ("streams/shared-while-probing", "start a 2.0.1; start b 2.0.1 of a; settle; start c future; settle", None,
         "a (2.0.1) and b (2.0.1) both get 0_0, 0_1, 0_2"),
        ("streams/even-topics", "start a 3.9.2; settle", UNEVEN,
         "a (3.9.2) assigns u-2 without a partner in generation 1 .* t has 2, u has 3 partitions"),
        ("streams/assigns", started("2.0.1", "ab"), LACKING[1], "never returns from lead"),
        ("streams/pairs", "start a 2.0.1; settle; start b future; settle", TWO_TOPICS, "t-0, t-1, u-0, u-1 with tasks"),
        ("streams/lives", "start a 2.0.1; settle; start b future; settle", TWO_TOPICS,
         "4 assigned partitions and 2 active tasks"),
        ("streams/handed-over", "start a 2.3.1; settle; start b 3.9.2; settle; start d 2.3.1; settle", None,
         "and has not given it up; d (2.3.1) adds it"),
    ],
)  # fmt: skip
def test_what_releases_are_known_for_is_told(id: str, text: str, deployed: Deploy | None, why: str) -> None:
    """By members that do what their releases do; members that do what they owe break nothing."""
    found = broken(played(RELEASED, text, deployed))
    assert id in found, found.keys()
    pattern = re.escape(why).replace(r"\ \.\*\ ", " .* ")
    assert any(re.search(pattern, each.why) for each in found[id].violations), [
        each.why for each in found[id].violations
    ]


# One thing is changed


def cases() -> Iterator[tuple[str, str, str, Deploy | None, Change, tuple[str, ...]]]:
    """The invariant, the edition, the script, what is deployed, what is seen instead, and the shape of what is told."""

    def case(
        id: str,
        shape: tuple[str, ...],
        change: Change,
        text: str = UP,
        where: str = NEWEST,
        deployed: Deploy | None = None,
    ) -> tuple[str, str, str, Deploy | None, Change, tuple[str, ...]]:
        return f"streams/{id}", where, text, deployed, change, shape

    died = Died("b", "lead", "Oops", "it was too much")
    yield case("restarts-afresh", ("begins", "below"), resaid(2, "a", used=11))
    yield case("upgrade-from", ("upgrade.from", "ignored"), resaid(1, "a", used=3, latest=3), FOUND, DRAFT)
    yield case("refuses-values", ("value", "taken"), instead(of(Began), upgrade_from="9.9"))
    yield case("refuses-values", ("value", "refused"), instead(of(Refused), upgrade_from="3.9"), "start a own<9.9")
    yield case("protocols", ("protocol", "eager"), resaid(1, "a", cooperative=False))
    yield case("protocols", ("protocol", "cooperative"), resaid(1, "a", cooperative=True), UP, "apache@2.3.1")
    yield case("used-within-own", ("above own", "uses"), instead(of(Applied, member="b"), used=12))
    yield case("used-within-own", ("above own", "says"), resaid(3, "b", used=12, latest=12))
    yield case("used-within-told", ("above told",), resaid(3, "a", used=12))
    yield case("follows", ("follows", "falls"), instead(of(Applied, member="a", generation=2), used=12))
    yield case("follows", ("follows", "rises"), instead(of(Applied, member="a", generation=4), used=11))
    yield case("follows", ("follows", "stays"), instead(of(Applied, member="b", generation=2), used=10))
    yield case("old-data-moves-nobody", ("old data", "moves"), instead(of(Applied), used=3), FOUND, DRAFT)
    yield case("refuses-newer", ("taken", "second number"), resent(1, "b", supported=12))
    yield case("refuses-newer", ("taken", "version"), resent(2, "a", used=12, supported=12),
               "start a future; start b own; settle; start c own; settle")  # fmt: skip
    yield case("decodable", ("undecodable", "assignment"), resent(2, "b", used=12))
    yield case("decodable", ("undecodable", "assignment"), instead(of(Sent), data=b"\0\0\0\3"))
    yield case("leads-the-future", ("future", "fatal"), after(of(Formed, generation=2), died))
    yield case("old-leader-fails", ("future", "survived"), _leads_on("a", 2),
               "start a 1.1.1; settle; start b 2.0.1; settle")  # fmt: skip
    yield case("lowest-version", ("version", "below"), resent(2, "b", used=10))
    yield case("lowest-version", ("version", "above"), resent(4, "a", used=12))
    yield case("second-int", ("second number", "below"), resent(4, "a", supported=11))
    yield case("second-int", ("second number", "above"), resent(2, "a", supported=12))
    yield case("future-gets", ("future", "version"), resent(2, "a", used=10))
    yield case(
        "future-gets", ("future", "left out"), resent(1, "b", (), active=()), "start a own; start b future; settle"
    )
    yield case("future-gets", ("future", "given"), resent(2, "a", (("t", 0),), active=(T00,)), where=DRAFT)
    yield case("others-get", ("others", "idle"), resent(2, "b", (("t", 0),), active=(T00,)), where=DRAFT)
    yield case("others-get", ("others", "more"), resent(2, "a", (("t", 0), ("t", 2)), active=(T00, TaskId(0, 2))), ECHO)
    yield case("others-get", ("others", "less"), resent(2, "a", (), active=()), ECHO)
    yield case("hard-mix", ("hard mix", "thrown"), after(of(Formed, generation=1), Died("a", "lead", "Oops", "no")),
               "start a 2.7.2<1.1; start b 2.8.2; settle")  # fmt: skip
    yield case("hard-mix", ("hard mix", "not told"), resent(2, "a", error=1),
               "start a 2.8.2<1.1; settle; start b 3.9.2; settle")  # fmt: skip
    yield case(
        "hard-mix", ("hard mix", "assigned"), _leads_on("a", 2), "start a 2.6.3<1.1; settle; start b 2.8.2; settle"
    )
    yield case("probing-ends", ("restless",), instead(of(Rests), Restless(80)))
    yield case("probing-ends", ("generations",), _longer(3))
    yield case("last-rebalance", ("rejoin", "none"), instead(of(Applied, member="a", generation=2), rejoin=NEVER))
    yield case("last-rebalance", ("rejoin", "needless"), instead(of(Applied), rejoin=Rejoin("again")), where=DRAFT)
    yield case("last-rebalance", ("rejoin", "again"),
               instead(of(Applied, member="a", generation=2), rejoin=Rejoin("again")))  # fmt: skip
    yield case(
        "last-rebalance", ("rejoin", "none"), instead(of(Applied, member="a", generation=4), rejoin=NEVER), where=DRAFT
    )
    yield case("rejoins", ("no rebalance",), _stops_in(2))
    yield case("successive-differ", ("the same",), resaid(3, "b", unique=3))
    yield case("upgraded", ("upgraded", "missing"), at_rest(2, "b"))
    yield case("upgraded", ("upgraded", "uses less"), at_rest(2, "b", used=11))
    yield case("upgraded", ("upgraded", "below"), resaid(5, "b", used=11))
    yield case("no-probing", ("probing", "says"), resaid(1, "b", used=10), started("own", "ab"))
    yield case("no-probing", ("probing", "rejoins"), instead(of(Applied), rejoin=Rejoin("again")), started("own", "ab"))
    yield case("one-owner", ("two owners", "one generation"), resent(1, "b", (("t", 0),), active=(T00,)))
    yield case("one-owner", ("two owners", "at rest"), at_rest(2, "b", active=(T00, T01)))
    yield case("handed-over", ("two owners", "across generations"), _forgets(Gave, "b"), where=DRAFT)
    yield case("all-owned", ("idle",), at_rest(2, "b", active=()))
    yield case("all-owned", ("unread",), at_rest(2, "b", partitions=()))
    yield case("tasks-match", ("match", "active"), instead(of(Applied), active=(T01,)))
    yield case("tasks-match", ("match", "active"), instead(of(Applied), applied=False))
    yield case("tasks-match", ("match", "partitions"), instead(of(Applied), partitions=()))
    yield case("tasks-match", ("match", "standby"), instead(of(Applied), standby=()), deployed=STATE)
    yield case("tasks-match", ("match", "applied"), instead(of(Applied, member="b", applied=False), applied=True),
               "start a 2.0.1; settle; start b 2.3.1; settle")  # fmt: skip
    yield case("pairs", ("pairs", "order"), resent(1, "a", active=(TaskId(0, 2), T00)))
    yield case("pairs", ("pairs", "number"), resent(1, "a", active=(T00,)))
    yield case("standbys", ("standbys", "few"), resent(1, "a", standby=()), started("own", "ab"), deployed=STATE)
    where_it_runs = (T00, (("t", 0),))
    yield case("standbys", ("standbys", "where it runs"), resent(1, "a", standby=(where_it_runs,)), deployed=STATE)
    one_more = (where_it_runs, (TaskId(0, 1), (("t", 1),)))
    three = started("2.5.1", "abc")
    yield case("standbys", ("standbys", "many"), resent(1, "c", standby=one_more), three, deployed=STATE)
    yield case("idle-standbys", ("standbys", "no state"), resent(1, "b", standby=(where_it_runs,)), deployed=SEPARATE)
    yield case("standbys", ("standbys", "partitions"), resent(1, "b", standby=((T00, (("t", 1),)),)), deployed=STATE)
    yield case("hosts", ("hosts", "active", "missing"), resent(1, "a", hosts=()), deployed=WITH_STANDBYS)
    less = (("a:9092", (("t", 0),)), ("b:9092", (("t", 1),)))
    yield case("hosts", ("hosts", "active", "less"), resent(1, "a", hosts=less), deployed=WITH_STANDBYS)
    more = (("a:9092", (("t", 0), ("t", 2))), ("b:9092", (("t", 0), ("t", 1))))
    yield case("hosts", ("hosts", "active", "more"), resent(1, "a", hosts=more), deployed=WITH_STANDBYS)
    strange = (("a:9092", (("t", 0), ("t", 2))), ("b:9092", (("t", 1),)), ("z:1", ()))
    yield case("hosts", ("hosts", "active", "unknown"), resent(1, "a", hosts=strange), deployed=WITH_STANDBYS)
    yield case("hosts", ("hosts", "active", "missing"), resent(1, "a", hosts=()), "start a 0.10.1.1; settle",
               deployed=WITH_STANDBYS)  # fmt: skip
    yield case("hosts", ("hosts", "standby", "missing"), resent(1, "a", standby_hosts=()), deployed=WITH_STANDBYS)
    yield case("lives", ("ends", "assigned", "Oops"), after(of(Applied), Died("a", "assigned", "Oops", "no")))
    yield case("lives", ("ends", "lead", "Oops"), after(of(Applied), Died("a", "lead", "Oops", "no")))
    yield case("lives", ("ends", "subscribe", "Oops"), after(of(Applied), Died("a", "subscribe", "Oops", "no")))
    yield case("lives", ("ends", "error", "4"), after(of(Applied), Died("a", "error", "4", "no")))
    yield case("assigns", ("endless",), after(of(Formed), Died("a", "lead", ENDLESS, "no end")))
    yield from (case(*each) for each in _subscriptions())
    yield case("acts", ("acts", "not started"), _forgets(Began, "a"), started("own", "ab"))
    yield case("acts", ("acts", "no end"), lambda moment: () if isinstance(moment.seen, Rests) else moment.seen)


def _subscriptions() -> Iterator[tuple[Any, ...]]:
    yield "states-its-latest", ("states", "below"), resaid(3, "a", latest=11)
    yield "states-its-latest", ("states", "above"), resaid(2, "b", latest=13), UP, DRAFT
    yield "states-its-tasks", ("tasks", "active", "less"), resaid(3, "b", active=()), UP, DRAFT
    yield "states-its-tasks", ("tasks", "active", "more"), resaid(1, "b", active=(T00,)), UP, DRAFT
    yield "states-its-tasks", ("tasks", "standby", "more"), resaid(1, "b", standby=(T00,)), UP, DRAFT
    yield "states-its-instance", ("instance", "shared"), resaid(1, "b", process=process_of("a"))
    yield "states-its-instance", ("instance", "changes"), resaid(2, "b", process=process_of("z"))
    yield "states-its-instance", ("end point", "missing"), resaid(1, "a", end_point=None), UP, NEWEST, WITH_STANDBYS
    yield "states-its-instance", ("end point", "other"), resaid(1, "a", end_point="z:1")


def _leads_on(leader: str, generation: int) -> Change:
    """It does not die, but assigns."""
    seen = (each.seen for each in observations(played(NEWEST, started("2.6.3", "ab"))))
    data = next(each.data for each in seen if isinstance(each, Sent))
    return instead(of(Died, during="lead"), Sent(generation, leader, leader, (), data))


def _longer(times: int) -> Change:
    which = of(Formed, generation=2)
    return lambda moment: (moment.seen,) * times if which(moment.seen) else moment.seen


def _stops_in(generation: int) -> Change:
    """What comes after it is not seen, and the group rests in it."""

    def change(moment: ObservedAt) -> ObservedEvent | tuple[ObservedEvent, ...]:
        if isinstance(moment.seen, Rests) and moment.seen.generation == generation + 1:
            return replace(moment.seen, generation=generation)
        return () if getattr(moment.seen, "generation", 0) > generation else moment.seen

    return change


def _forgets(kind: type[ObservedEvent], member: str) -> Change:
    def change(moment: ObservedAt) -> ObservedEvent | tuple[ObservedEvent, ...]:
        return () if isinstance(moment.seen, kind) and getattr(moment.seen, "member", "") == member else moment.seen

    return change


CASES = [*cases()]
NAMES = [f"{number}-{each[0]}-{'-'.join(each[-1])}" for number, each in enumerate(CASES)]


@pytest.mark.parametrize(("id", "where", "text", "deployed", "change", "shape"), CASES, ids=NAMES)
def test_what_should_not_be_is_told_of(
    id: str, where: str, text: str, deployed: Deploy | None, change: Change, shape: tuple[str, ...]
) -> None:
    good = played(where, text, deployed)
    assert id not in broken(good)
    found = broken(changed(good, change)).get(id)
    assert found is not None
    reported = {each.shape: each for each in found.violations}
    assert shape in reported
    assert reported[shape].why
    assert reported[shape].at
    assert reported[shape].expected != reported[shape].observed


@pytest.mark.parametrize("release", ["0.10.1.1", "0.10.2.2", "3.9.2"])
def test_hosts_that_read_nothing_stand_in_the_map_of_every_release(release: str) -> None:
    deployed = Deploy(COUNTS, (Topic("t", 1),), end_points=True)
    good = played(NEWEST, f"start a {release}; start b {release}; settle", deployed)
    assert "streams/hosts" not in broken(good)
    reader = next(each.info.hosts for each in streams_trace(good).rounds[0].given if each.info is not None)
    busy = tuple((name, read) for name, read in reader if read)
    assert len(busy) == 1
    assert "streams/hosts" in broken(changed(good, resent(1, "a", hosts=busy)))


def test_each_invariant_is_broken_somewhere_and_checked_somewhere() -> None:
    notes = ("adopts-blindly", "errors-decodable", "idle-standbys", "shared-while-probing")
    known = {f"streams/{each}" for each in notes}
    assert {each[0] for each in CASES} | known | {"streams/even-topics"} == OURS.keys()
    assert {id for check in STREAMS_CHECKS for id in check.invariants} == OURS.keys()
    assert {each.id for each in OURS.values() if each.grade is Grade.INFO} == known


def test_an_answer_that_is_lost_leaves_open_what_came_after() -> None:
    history = played(NEWEST, UP)
    cut = History(history.case, "somebody", (*history.ops[:4], *(
        type(op)(op.index, op.step, Lost("the connection broke"), None) for op in history.ops[4:]
    )))  # fmt: skip
    assert {each.result for each in judge(cut, OURS.values())} == {Result.UNKNOWN}
    assert [each.number for each in streams_trace(cut).rounds] == [1, 2, 3][: len(streams_trace(cut).rounds)]


def test_requirements_speak_of_releases_and_editions() -> None:
    releases = ("kip-268", "future@kip-268", "1.1.1", "2.0.1", "2.2.2", "2.3.0", "future")
    assert [each for each in releases if is_draft(each)] == ["kip-268", "future@kip-268"]
    assert [each for each in releases if binds("268-21", each)] == ["kip-268", "future@kip-268"]
    assert [each for each in releases if binds("268-37", each)] == ["2.2.2", "future"]
    assert [each for each in releases if not binds("268-17", each)] == ["1.1.1"]


def test_what_upgrade_from_may_say() -> None:
    assert values("kip-268") == ("0.10.0", "0.10.1", "0.10.2", "0.11.0", "1.0", "1.1") == values("2.3.1")
    assert values("1.1.0") is values("future") is None
    assert values("1.1.1") == ("0.10.0",)
