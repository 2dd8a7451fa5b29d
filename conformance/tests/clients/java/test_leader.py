"""The assignors in released jars, asked as a leader asks them: which defects came and went with which release."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import pytest

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.transport.pipe import Pipe
from kipcheck.conformance.tests.support.loops import some_by_day

pytestmark = pytest.mark.jars

RELEASES = (
    "0.10.0.1", "0.11.0.3", "2.2.2", "2.3.0", "2.4.1", "2.5.0", "2.5.1", "2.8.0", "2.8.1", "3.4.0", "3.4.1", "3.7.0",
    "3.7.1", "4.4.0",
)  # fmt: skip
STICKY = ("sticky", "cooperative-sticky")


class Leaders:
    """The leaders of several releases, in one JVM."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def ask(self, *ops: Mapping[str, Any], cpu_ms: int = 5000) -> list[dict[str, Any]]:
        cases = [{"n": n, **op} for n, op in enumerate(ops)]
        reported = self._pipe.exchange(
            {"type": "batch", "id": 1, "deadline_ms": 60_000, "cpu_ms": cpu_ms, "cases": cases}, 90
        )
        assert [each["n"] for each in reported["results"]] == list(range(len(ops)))
        return list(reported["results"])

    def owners(self, release: str, op: Mapping[str, Any]) -> dict[str, list[tuple[str, int]]]:
        (reported,) = self.ask({**op, "release": release})
        assert reported["status"] == "accepted", reported
        return {
            each["id"]: [(topic, number) for topic, number in each["partitions"]] for each in reported["assignment"]
        }


@pytest.fixture(scope="module")
def leaders() -> Iterator[Leaders]:
    programs.program()
    needed = {release: programs.coordinates(release) for release in RELEASES}
    found = maven.fetch({each: None for group in needed.values() for each in group})
    pipe = Pipe(programs.command({release: [found[each] for each in group] for release, group in needed.items()}))
    try:
        pipe.exchange({"type": "hello", "protocol": 1, "run": "test"}, 60)
        assert pipe.exchange({"type": "configure", "role": "leader", "edition": "apache"}, 60).get("ok")
        yield Leaders(pipe)
    finally:
        pipe.kill()


def member(
    name: str, subscription: Sequence[str], owned: str = "", generation: int = -1, **more: str | None
) -> dict[str, Any]:
    """``owned`` as ``t0-1 t1-0``."""
    partitions = [[each.rpartition("-")[0], int(each.rpartition("-")[2])] for each in owned.split()]
    empty = {"instance": None, "rack": None, "userData": None}
    return {
        "id": name, "subscription": list(subscription), "owned": partitions, "generation": generation, **empty, **more
    }  # fmt: skip


def assign(assignor: str, topics: Mapping[str, int], *members: Mapping[str, Any], **racks: Any) -> dict[str, Any]:
    named = [{"name": name, "partitions": count, "racks": racks.get(name)} for name, count in topics.items()]
    return {"op": "assign", "assignor": assignor, "topics": named, "members": members}


def user_data(assignor: str, owned: Sequence[Sequence[Any]], generation: int) -> dict[str, Any]:
    return {
        "op": "user-data", "assignor": assignor, "subscription": ["t"], "owned": owned, "generation": generation
    }  # fmt: skip


def once(owners: Mapping[str, Sequence[tuple[str, int]]]) -> bool:
    return max(Counter(chain.from_iterable(owners.values())).values()) == 1


@pytest.mark.parametrize(
    "release", some_by_day(["0.10.0.1", "2.2.2", "2.3.0", "2.4.1", "4.4.0"], 2, pytest.mark.all_jars)
)
def test_range_and_roundrobin_of_every_age_do_the_same(release: str, leaders: Leaders) -> None:
    group = (member("b", ["t", "u"]), member("a", ["t"]), member("c", ["u"]))
    assert leaders.owners(release, assign("range", {"t": 3, "u": 2}, *group)) == {
        "a": [("t", 0), ("t", 1)], "b": [("t", 2), ("u", 0)], "c": [("u", 1)],
    }  # fmt: skip
    assert leaders.owners(release, assign("roundrobin", {"t": 3, "u": 2}, *group)) == {
        "a": [("t", 0), ("t", 2)], "b": [("t", 1), ("u", 0)], "c": [("u", 1)],
    }  # fmt: skip


def test_what_a_member_owns_travels_as_its_release_writes_it(leaders: Leaders) -> None:
    asked = (
        user_data("sticky", [["t", 1]], 4),
        user_data("cooperative-sticky", [["t", 1]], 4),
        user_data("range", [], 4),
    )
    never = (user_data("sticky", [], -1), user_data("cooperative-sticky", [], -1))

    def reported(release: str) -> list[Any]:
        ops = [{**op, "release": release} for op in (*asked, *never)]
        return [each.get("hex", each["status"]) for each in leaders.ask(*ops)]

    partitions = "000000010001740000000100000001"
    no = "unsupported"
    assert reported("0.11.0.3") == [partitions, no, "", "", no]
    assert reported("2.3.0") == [f"{partitions}00000004", no, "", "", no]
    assert reported("2.4.1") == [f"{partitions}00000004", None, None, None, None]
    assert reported("2.8.1") == reported("4.4.0") == [f"{partitions}00000004", "00000004", None, None, "ffffffff"]


@pytest.mark.parametrize("assignor", STICKY)
@pytest.mark.parametrize("release", some_by_day(["2.4.1", "2.8.1", "3.4.0", "4.4.0"], 2, pytest.mark.all_jars))
def test_what_is_owned_stays(assignor: str, release: str, leaders: Leaders) -> None:
    group = (member("a", ["t"], "t-2 t-3", 5), member("b", ["t"], "t-0 t-1", 5))
    owners = leaders.owners(release, assign(assignor, {"t": 4}, *group))
    assert {name: sorted(each) for name, each in owners.items()} == {
        "a": [("t", 2), ("t", 3)], "b": [("t", 0), ("t", 1)],
    }  # fmt: skip


def test_cooperative_withholds_what_another_one_still_reads(leaders: Leaders) -> None:
    group = (member("a", ["t"], "t-0 t-1", 5), member("b", ["t"]))
    assert leaders.owners("4.4.0", assign("cooperative-sticky", {"t": 2}, *group)) == {"a": [("t", 0)], "b": []}
    assert leaders.owners("4.4.0", assign("sticky", {"t": 2}, *group)) == {"a": [("t", 0)], "b": [("t", 1)]}


def test_user_data_that_is_given_counts_and_not_what_is_owned(leaders: Leaders) -> None:
    data = "00000001000174000000010000000100000007"
    group = (member("a", ["t"], "t-0", 7, userData=data), member("b", ["t"]))
    assert leaders.owners("4.4.0", assign("sticky", {"t": 2}, *group)) == {"a": [("t", 1)], "b": [("t", 0)]}


def test_static_members_are_sorted_by_their_instance(leaders: Leaders) -> None:
    group = (member("a", ["t"], instance="z"), member("b", ["t"], instance="y"))
    op = assign("range", {"t": 1}, *group)
    assert leaders.owners("2.3.0", op) == {"a": [("t", 0)], "b": []}  # it knows of instances, its assignors do not yet
    assert leaders.owners("2.4.1", op) == leaders.owners("4.4.0", op) == {"a": [], "b": [("t", 0)]}


def test_racks_are_followed_since_3_5(leaders: Leaders) -> None:
    group = (member("a", ["t"], rack="r1"), member("b", ["t"], rack="r0"))
    op = assign("range", {"t": 2}, *group, t=[["r0"], ["r1"]])
    assert leaders.owners("3.4.1", op) == {"a": [("t", 0)], "b": [("t", 1)]}
    assert leaders.owners("3.7.0", op) == {"a": [("t", 1)], "b": [("t", 0)]}


# -- defects that came and went, each as the project's own tracker calls it; the releases were found by running them


@pytest.mark.parametrize(("release", "found"), [("2.5.0", False), ("2.5.1", True), ("2.8.0", True), ("2.8.1", False)])
def test_two_members_that_claim_the_same_both_get_it(release: str, found: bool, leaders: Leaders) -> None:
    """KAFKA-12984."""
    group = (member("c1", ["t"], "t-0 t-1", 3), member("c2", ["t"], "t-0 t-2", 3), member("c3", ["t"]))
    assert once(leaders.owners(release, assign("cooperative-sticky", {"t": 3}, *group))) == (not found)


@pytest.mark.parametrize(("release", "found"), [("2.8.0", False), ("2.8.1", True), ("3.4.0", True), ("3.4.1", False)])
def test_a_partition_changes_hands_with_no_round_between(release: str, found: bool, leaders: Leaders) -> None:
    """KAFKA-14639."""
    group = (member("c1", ["t"], "t-2", 10), member("c2", ["t"], "t-0 t-1", 9), member("c3", ["t"], "", 10))
    owners = leaders.owners(release, assign("cooperative-sticky", {"t": 3}, *group))
    assert any(each in owners["c3"] for each in (("t", 0), ("t", 1))) == found


@pytest.mark.parametrize(
    ("release", "topics"),
    [("2.5.0", {"t1": 7, "t2": 5}), ("2.5.1", {"t2": 12}), ("3.7.0", {"t2": 12}), ("3.7.1", {"t1": 6, "t2": 6})],
)
def test_all_of_one_topic_goes_to_the_newcomer(release: str, topics: dict[str, int], leaders: Leaders) -> None:
    """KAFKA-16277."""
    everything = " ".join(f"{topic}-{number}" for topic in ("t1", "t2") for number in range(12))
    group = (member("c1", ["t1", "t2"], everything, 1), member("c2", ["t1", "t2"]))
    owners = leaders.owners(release, assign("sticky", {"t1": 12, "t2": 12}, *group))
    assert Counter(topic for topic, _ in owners["c2"]) == topics


@pytest.mark.parametrize(("release", "found"), [("0.11.0.3", True), ("2.2.2", True), ("2.3.0", False)])
def test_a_member_that_missed_a_generation_claims_what_has_moved(release: str, found: bool, leaders: Leaders) -> None:
    """KAFKA-7026: two who claim the same, one of them of old."""
    group = (member("a", ["t"], "t-0 t-1", 4), member("b", ["t"], "t-1", 5))
    assert once(leaders.owners(release, assign("sticky", {"t": 2}, *group))) == (not found)


@pytest.mark.parametrize(("release", "thrown"), [("2.2.2", "java.lang.NullPointerException"), ("2.3.0", None)])
def test_a_topic_that_vanished_is_not_borne(release: str, thrown: str | None, leaders: Leaders) -> None:
    """KAFKA-7962."""
    group = (member("a", ["t", "gone"], "gone-0 t-0", 2), member("b", ["t"]))
    (reported,) = leaders.ask({**assign("sticky", {"t": 2}, *group), "release": release})
    assert reported.get("class") == thrown and reported["status"] == ("rejected" if thrown else "accepted")


@pytest.mark.parametrize("assignor", STICKY)
@pytest.mark.parametrize(("release", "found"), [("2.5.0", False), ("2.5.1", True), ("4.4.0", True)])
def test_a_member_that_subscribes_to_nothing_gets_something(
    assignor: str, release: str, found: bool, leaders: Leaders
) -> None:
    owners = leaders.owners(release, assign(assignor, {"t": 2}, member("a", []), member("b", ["t"])))
    assert bool(owners["a"]) == found
    assert not leaders.owners(release, assign("range", {"t": 2}, member("a", []), member("b", ["t"])))["a"]


MOST = "t0-1 t0-2 t0-3 t0-4 t0-7 t2-2 t3-1 t3-4 t5-0 t5-1 t5-2 t5-3 t5-4 t5-5 t5-6"
ENDLESS = (
    member("a", ["t0", "t2", "t3", "t5"], MOST, 10),
    member("b", ["t2"], "", 10),
    member("c", ["t3", "t5"], "", 10),
    member("d", ["t0", "t4"], "", 10),
    member("e", ["t0", "t1", "t2", "t3", "t5"], "t0-0 t0-5 t0-6 t0-8 t2-0 t2-1 t2-3 t3-0 t3-3", 10),
)  # fmt: skip
"""A group whose members agree on who owns what, and whose balance the sticky assignors look for without end."""
TOPICS = {"t0": 9, "t1": 2, "t2": 4, "t3": 6, "t4": 9, "t5": 7}


@pytest.mark.parametrize("release", ["0.11.0.3", "4.4.0"])
def test_an_endless_search_is_stopped_with_its_stack_and_the_next_case_is_answered(
    release: str, leaders: Leaders
) -> None:
    endless = {**assign("sticky", TOPICS, *ENDLESS), "release": release}
    after = {**assign("range", TOPICS, *ENDLESS), "release": release}
    first, second, third = leaders.ask(after, endless, after, cpu_ms=400)
    assert (second["status"], second["cause"]) == ("died", "timeout")
    assert "more than 400 ms of processor time" in second["message"]
    assert "StickyAssignor" in second["evidence"] and "kipcheck.Leader.assign" in second["evidence"]
    assert first["status"] == third["status"] == "accepted"
    assert first["assignment"] == third["assignment"]
