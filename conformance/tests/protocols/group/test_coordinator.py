"""The classic group coordinator by hand: what each request hears in each phase, static members, timers, the log.

Where a row needs no release it speaks of 3.9.2, whose answers are those of 3.3.2 to 3.9.2.
"""

import pytest

from kipcheck.conformance.protocols.group.model.messages import (
    Append,
    Arm,
    Commit,
    Delete,
    Deleted,
    Describe,
    Described,
    Disarm,
    Error,
    Fetch,
    GroupRecord,
    Joined,
    Leave,
    Listed,
    ListGroups,
    Load,
    Loaded,
    OffsetBatch,
    OffsetRecord,
    Phase,
    Sync,
    Synced,
    Tombstone,
    Unload,
    WriteFailed,
    Written,
)
from kipcheck.conformance.protocols.group.model.state import REBALANCE, SYNC, pending, session
from kipcheck.conformance.tests.support.coordinator_conversations import BOTH, RANGE, ROBIN, TURNED, Talk, at

PHASES = ("dead", "empty", "preparing", "completing", "stable")


# What each request hears: the first thing that is wrong with it counts


JOINS = [
    ("stable", {"id": "?", "session_ms": 5999}, 26),
    ("stable", {"session_ms": 1_800_001}, 26),
    ("dead", {"id": "?"}, 25),
    ("dead", {"protocol_type": ""}, 23),
    ("dead", {"protocols": ()}, 23),
    ("empty", {"protocols": ()}, 23),
    ("empty", {"protocol_type": ""}, 23),
    ("stable", {"protocol_type": "connect"}, 23),
    ("stable", {"protocols": ROBIN}, 23),
    ("stable", {"protocols": ()}, 23),
    ("stable", {"id": "?", "protocols": ROBIN}, 23),
    ("empty", {"protocol_type": "connect", "protocols": ROBIN}, 79),
    ("dead", {}, 79),
    ("stable", {}, 79),
    ("stable", {"version": 4}, 79),
    ("stable", {"version": 3}, None),
    ("stable", {"instance": "j"}, None),
    ("stable", {"version": 5, "instance": "j"}, None),
    ("stable", {"instance": "i", "protocols": RANGE}, 0),
    ("preparing", {"id": "p"}, None),
    ("preparing", {"id": "p", "instance": "j"}, -1),
    ("stable", {"id": "s", "instance": "j"}, 25),
    ("stable", {"id": "a", "instance": "j"}, 25),
    ("stable", {"id": "?", "instance": "i"}, 82),
    ("stable", {"id": "a", "instance": "i"}, 82),
    ("stable", {"id": "?"}, 25),
    ("empty", {"id": "a"}, 25),
    ("preparing", {"id": "a"}, None),
    ("completing", {"id": "a"}, 0),
    ("completing", {"id": "b"}, 0),
    ("completing", {"id": "b", "protocols": BOTH}, None),
    ("completing", {"id": "a", "protocols": TURNED}, None),
    ("stable", {"id": "a"}, None),
    ("stable", {"id": "b", "protocols": BOTH}, None),
    ("stable", {"id": "b"}, 0),
    ("stable", {"id": "s", "instance": "i"}, 0),
    ("stable", {"id": "s"}, 0),
]


@pytest.mark.parametrize(("phase", "stated", "error"), JOINS)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_join(release: str, phase: str, stated: dict, error: int | None) -> None:  # type: ignore[type-arg]
    talk = at(phase, release)
    assert talk.error(talk.join(**{"fresh": "new", **stated})) == error


def test_refused_joins_echo_the_id() -> None:
    talk = at("stable")
    for stated, id in (({"id": "?", "session_ms": 1}, "?"), ({"id": "?"}, "?"), ({"protocols": ROBIN}, "")):
        answer = talk.ask(talk.join(**stated))
        assert isinstance(answer, Joined)
        assert (answer.generation, answer.member, answer.leader, answer.members) == (-1, id, "", ())


def test_a_member_that_changes_nothing_hears_of_the_generation() -> None:
    """Members are listed to the leader alone, and not even to it once the group is stable."""
    talk = at("completing")
    leader, follower = talk.ask(talk.join("a")), talk.ask(talk.join("b"))
    assert isinstance(leader, Joined)
    assert isinstance(follower, Joined)
    assert [each[0] for each in leader.members] == ["a", "b", "s"]
    assert (follower.members, follower.leader, follower.generation, follower.protocol) == ((), "a", 1, "range")
    assert talk.state == at("completing").state


SYNCS = [
    ("stable", {"id": "?", "generation": 7, "protocol": None}, 23),
    ("stable", {"id": "a", "protocol_type": None}, 23),
    ("dead", {"id": "a", "protocol_type": "consumer", "protocol": "range"}, 25),
    ("stable", {"id": "a", "instance": "j"}, 25),
    ("stable", {"id": "a", "instance": "i", "generation": 7}, 82),
    ("stable", {"id": "?", "generation": 7}, 25),
    ("stable", {"id": "a", "generation": 7, "protocol": "?"}, 22),
    ("stable", {"id": "a", "generation": 0}, 22),
    ("stable", {"id": "a", "protocol_type": "connect"}, 23),
    ("stable", {"id": "a", "protocol": "roundrobin"}, 23),
    ("empty", {"id": "a", "protocol_type": "consumer", "protocol": "range"}, 25),
    ("preparing", {"id": "a"}, 27),
    ("completing", {"id": "b"}, None),
    ("completing", {"id": "b", "version": 0}, None),
    ("completing", {"id": "a"}, 0),
    ("stable", {"id": "b"}, 0),
    ("stable", {"id": "s"}, 0),
]


@pytest.mark.parametrize(("phase", "stated", "error"), SYNCS)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_sync(release: str, phase: str, stated: dict, error: int | None) -> None:  # type: ignore[type-arg]
    talk = at(phase, release)
    assert talk.error(talk.sync(**stated)) == error


HEARTBEATS = [
    ("dead", {"id": "a"}, 25),
    ("empty", {"id": "a"}, 25),
    ("stable", {"id": "?", "generation": 7}, 25),
    ("stable", {"id": "a", "instance": "j"}, 25),
    ("stable", {"id": "a", "instance": "i", "generation": 7}, 82),
    ("stable", {"id": "a", "generation": 2}, 22),
    ("stable", {"id": "a", "generation": 0}, 22),
    ("preparing", {"id": "a", "generation": 7}, 22),
    ("preparing", {"id": "a"}, 27),
    ("completing", {"id": "a"}, 0),
    ("stable", {"id": "a"}, 0),
    ("stable", {"id": "s", "instance": "i"}, 0),
]


@pytest.mark.parametrize(("phase", "stated", "error"), HEARTBEATS)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_heartbeat(release: str, phase: str, stated: dict, error: int) -> None:  # type: ignore[type-arg]
    talk = at(phase, release)
    assert talk.error(talk.beat(**stated)) == error
    assert (session(stated["id"]) in talk.armed()) == (error in (0, 27))


LEAVES = [
    ("dead", [("a", None), ("", "i")], [25, 25]),
    ("empty", [("a", None)], [25]),
    ("stable", [("", "i"), ("", "i")], [0, 25]),
    ("stable", [("", None), ("", "j")], [25, 25]),
    ("stable", [("?", "i"), ("a", "i"), ("a", "j"), ("?", None), ("a", None), ("a", None)], [82, 82, 25, 25, 0, 25]),
    ("stable", [("s", None)], [0]),
    ("stable", [("s", "i"), ("b", None), ("a", None)], [0, 0, 0]),
    ("preparing", [("p", None), ("p", None)], [0, 25]),
]


@pytest.mark.parametrize(("phase", "members", "errors"), LEAVES)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_leave(release: str, phase: str, members: list[tuple[str, str | None]], errors: list[int]) -> None:
    talk = at(phase, release)
    answer = talk.ask(talk.leave(*members))
    assert answer is not None
    assert answer.error == 0
    assert answer.members == tuple((*each, error) for each, error in zip(members, errors, strict=True))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("phase", "id", "error"), [("dead", "a", 25), ("stable", "?", 25), ("stable", "a", 0), ("preparing", "p", 0)]
)
def test_a_leave_of_one_member_says_its_error_at_the_top(phase: str, id: str, error: int) -> None:
    talk = at(phase)
    answer = talk.ask(talk.leave(id, version=2))
    assert answer is not None
    assert (answer.error, answer.members) == (error, ())  # type: ignore[union-attr]


COMMITS = [
    ("dead", {"id": "", "generation": -1}, 0),
    ("dead", {"id": "a", "generation": 1, "version": 8}, 22),
    ("empty", {"id": "", "generation": -1}, 0),
    ("empty", {"id": "?", "generation": -1}, 0),
    ("empty", {"id": "a", "generation": 2}, 25),
    ("stable", {"id": "", "generation": -1}, 25),
    ("stable", {"id": "?", "generation": 7}, 25),
    ("stable", {"id": "a", "instance": "j"}, 25),
    ("stable", {"id": "a", "instance": "i", "generation": 7}, 82),
    ("stable", {"id": "a", "generation": 0}, 22),
    ("stable", {"id": "a", "generation": -1}, 22),
    ("completing", {"id": "?", "generation": 7}, 25),
    ("completing", {"id": "a", "generation": 0}, 22),
    ("completing", {"id": "a"}, 27),
    ("preparing", {"id": "a"}, 0),
    ("stable", {"id": "a"}, 0),
    ("stable", {"id": "s", "instance": "i"}, 0),
]


@pytest.mark.parametrize(("phase", "stated", "error"), COMMITS)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_commit(release: str, phase: str, stated: dict, error: int) -> None:  # type: ignore[type-arg]
    talk = at(phase, release)
    assert talk.error(talk.commit(**stated)) == error
    fetched = talk.ask(Fetch(talk.newest(Fetch)))
    assert fetched is not None
    assert fetched.offsets == ((("t", 0, 5, -1, ""),) if error == 0 else ())  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("phase", "state", "groups"),
    [
        ("dead", "Dead", ()),
        ("empty", "Empty", (("consumer", "Empty"),)),
        ("preparing", "PreparingRebalance", (("consumer", "PreparingRebalance"),)),
        ("completing", "CompletingRebalance", (("consumer", "CompletingRebalance"),)),
        ("stable", "Stable", (("consumer", "Stable"),)),
    ],
)
def test_what_is_told_of_a_group(phase: str, state: str, groups: tuple[tuple[str, str], ...]) -> None:
    talk = at(phase)
    reported = talk.ask(Describe(5))
    assert isinstance(reported, Described)
    assert (reported.error, reported.state) == (0, state)
    members = [("a", None, "r", "x"), ("b", None, "r", "y"), ("s", "i", "r", "z")]
    if phase == "stable":
        assert (reported.protocol, reported.members) == ("range", tuple(members))
    elif phase in ("preparing", "completing"):
        assert (reported.protocol, reported.members) == ("", tuple((*each[:2], "", "") for each in members))
    assert talk.ask(ListGroups(5)) == Listed(talk.asked, Error.NONE, groups)
    assert talk.ask(ListGroups(3)) == Listed(talk.asked, Error.NONE, tuple((kind, "") for kind, _ in groups))


def test_an_unknown_group_is_dead_to_older_requests_and_not_found_by_newer_ones() -> None:
    talk = at("dead", "4.4.0")
    assert talk.ask(Describe(5)) == Described(talk.asked, Error.NONE, "Dead")
    assert talk.ask(Describe(6)) == Described(talk.asked, Error.GROUP_ID_NOT_FOUND, "Dead")


@pytest.mark.parametrize(
    ("phase", "error"), [("dead", 69), ("empty", 0), ("preparing", 68), ("completing", 68), ("stable", 68)]
)
@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_deletion(release: str, phase: str, error: int) -> None:
    talk = at(phase, release)
    assert talk.error(Delete(2)) == error
    assert (talk.phase is Phase.DEAD) == (phase in ("dead", "empty"))


@pytest.mark.parametrize(
    ("standing", "errors"),
    [
        ([Unload()], {"join": 16, "sync": 16, "beat": 16, "leave": 16, "commit": 16, "fetch": 16, "list": 0}),
        ([Unload(), Load()], {"join": 14, "sync": 27, "beat": 0, "leave": 14, "commit": 14, "fetch": 14, "list": 14}),
    ],
)
def test_a_broker_that_does_not_hold_the_group(standing: list[Unload | Load], errors: dict[str, int]) -> None:
    talk = at("stable")
    for each in standing:
        talk.say(each)
    asked = {
        "join": talk.join("a"),
        "sync": talk.sync("a", protocol_type="consumer", protocol="range"),
        "beat": talk.beat("a"),
        "leave": talk.leave("a"),
        "commit": talk.commit("a"),
        "fetch": Fetch(8),
        "list": ListGroups(5),
    }
    assert {name: talk.error(request) for name, request in asked.items()} == errors
    assert talk.error(Describe(5)) == errors["leave"] == talk.error(Delete(2))


def test_requests_that_name_no_group() -> None:
    talk = at("stable", "4.4.0")
    requests = (
        (talk.join(), 24),
        (talk.sync("a"), 24),
        (talk.sync("a", protocol=None), 23),
        (talk.beat("a"), 24),
        (talk.leave("a"), 24),
        (talk.commit("a", generation=1), 69),
        (talk.commit("a", generation=1, version=8), 22),
        (Fetch(9), 0),
        (Describe(6), 69),
        (Delete(2), 69),
        (talk.beat("a", version=9), 35),
        (talk.commit("", generation=-1), 0),
        (talk.commit("a", generation=1), 25),
        (Describe(6), 0),
        (Delete(2), 0),
        (Delete(2), 69),
    )
    for request, error in requests:
        assert talk.ask_nameless(request).error == error, request


@pytest.mark.parametrize(
    "request_",
    [
        Commit(6, "a", "i", 1, ()),
        Leave(2, (("a", None), ("b", None))),
        Leave(2, (("a", "i"),)),
        Sync(2, "a", "i", 1),
        at("stable").join("a", "i", version=4),
        at("stable").join("a", protocol_version=1),
        at("stable").join("a", version=10),
    ],
    ids=str,
)
def test_what_a_version_cannot_say_is_not_supported(request_: object) -> None:
    assert at("stable").error(request_) is Error.UNSUPPORTED_VERSION


# A round


def test_the_first_round_waits_for_more_members() -> None:
    talk = Talk(deferred=True)
    first = talk.enter("a")
    assert talk.armed()[REBALANCE] == 3000
    second = talk.enter("b")
    talk.fire(REBALANCE)
    assert talk.armed() == {REBALANCE: 3000}, "somebody joined in this round"
    assert talk.answer(first) is None
    talk.fire(REBALANCE)
    reported = {number: talk.answer(number) for number in (first, second)}
    assert [each.members for each in reported.values()] == [(("a", None, "r"), ("b", None, "r")), ()]
    assert {(each.generation, each.leader, each.protocol, each.protocol_type) for each in reported.values()} == {
        (1, "a", "range", "consumer")
    }
    assert talk.armed() == {session("a"): 10_000, session("b"): 10_000, SYNC: 30_000}


def test_the_first_round_ends_when_the_longest_member_has_no_more_time() -> None:
    """Seven seconds: 3 of the first round, and then as much as remains, which shrinks only by rounds that are over."""
    talk = Talk()
    talk.enter("a", rebalance_ms=7000)
    waited = []
    for id in "bcdefg":
        talk.enter(id, version=3)
        talk.fire(REBALANCE)
        if REBALANCE not in talk.armed():
            break
        waited.append(talk.armed()[REBALANCE])
    assert waited == [3000, 1000]


@pytest.mark.parametrize(("release", "prolonged"), [("3.9.2", False), ("4.4.0", True)])
def test_a_group_that_was_empty_waits_longer_in_java_alone(release: str, prolonged: bool) -> None:
    talk = at("empty", release)
    talk.enter("c")
    talk.enter("d")
    talk.fire(REBALANCE)
    assert talk.state.initial is prolonged


def test_a_round_ends_when_all_have_joined() -> None:
    talk = at("stable")
    joins = [talk.enter("c", version=3)]
    assert talk.armed()[REBALANCE] == 30_000
    for id, instance in (("a", None), ("b", None), ("s", "i")):
        assert talk.answer(joins[0]) is None
        talk.ask(talk.join(id, instance))
        joins.append(talk.asked)
    assert {(talk.answer(each).generation, talk.answer(each).leader) for each in joins} == {(2, "a")}
    assert Disarm(REBALANCE) in talk.last


def test_a_round_waits_for_ids_that_were_given_out() -> None:
    talk = at("preparing")
    talk.ask(talk.join("a"))
    talk.ask(talk.join("s", "i"))
    assert talk.phase.called == "PreparingRebalance", "p may still join"
    talk.forget("p")
    assert talk.phase is Phase.COMPLETING
    assert talk.state.generation == 2


def test_when_time_is_over_dynamic_members_that_did_not_join_go_and_static_ones_stay() -> None:
    talk = at("preparing")
    talk.fire(REBALANCE)
    assert [each.id for each in talk.state.members] == ["b", "s"]
    assert (talk.state.leader, talk.phase) == ("b", Phase.COMPLETING)
    assert talk.error(talk.beat("a")) is Error.UNKNOWN_MEMBER_ID


def test_a_round_in_which_nobody_joined_goes_on_while_there_are_static_members() -> None:
    talk = at("stable")
    talk.enter("c", version=3)
    talk.expire("c")
    talk.fire(REBALANCE)
    assert [each.id for each in talk.state.members] == ["s"]
    assert (talk.phase, talk.state.generation) == (Phase.PREPARING, 1)
    assert talk.armed() == {REBALANCE: 30_000}
    talk.ask(talk.join("s", "i"))
    assert (talk.phase, talk.state.leader, talk.state.generation) == (Phase.COMPLETING, "s", 2)


def test_a_group_that_loses_its_last_member_has_a_generation_without_members() -> None:
    talk = at("empty")
    assert (talk.state.generation, talk.state.protocol, talk.state.leader) == (2, None, None)
    assert talk.state.log.group == GroupRecord(2, "consumer", None, None, ())
    talk.enter("c")
    talk.over()
    assert talk.state.generation == 3


def test_members_vote_for_the_first_protocol_that_all_speak() -> None:
    talk = Talk("2.1.1")
    talk.enter("a", protocols=(("x", "1"), ("y", "2"), ("z", "3")))
    talk.enter("b", protocols=(("q", "4"), ("y", "5"), ("z", "6")))
    talk.enter("c", protocols=(("z", "7"), ("y", "8")))
    talk.over()
    assert talk.state.protocol == "y"
    assert talk.answer(1).members == (("a", None, "2"), ("b", None, "5"), ("c", None, "8"))


@pytest.mark.parametrize(
    ("release", "first", "second", "taken"),
    [
        ("1.1.1", "range", "rr", "range"),
        ("2.3.1", "rr", "range", "range"),
        ("2.7.0", "range", "rr", "rr"),
        ("3.9.2", "rr", "range", "rr"),
        ("4.4.0", "range", "rr", "rr"),
        ("4.4.0", "roundrobin", "range", "range"),
        ("4.4.0", "range", "sticky", "sticky"),
        ("4.4.0", "q", "p", "p"),
    ],
)
def test_a_tie_of_protocols_is_as_it_was_seen(release: str, first: str, second: str, taken: str) -> None:
    talk = Talk(release)
    talk.enter("a", protocols=((first, ""), (second, "")), version=2)
    talk.enter("b", protocols=((second, ""), (first, "")), version=2)
    talk.over()
    assert talk.state.protocol == taken


def test_the_leaders_assignment_goes_to_members_alone_and_who_is_forgotten_gets_nothing() -> None:
    talk = at("completing")
    talk.ask(talk.sync("b", assignments=(("a", "bad"), ("b", "bad"))))
    follower = talk.asked
    assert talk.answer(follower) is None
    answer = talk.ask(talk.sync("a", assignments=(("a", "x"), ("?", "stray"))))
    assert answer == Synced(talk.asked, Error.NONE, "consumer", "range", "x")
    assert talk.answer(follower) == Synced(follower, Error.NONE, "consumer", "range", "")
    assert talk.ask(talk.sync("s", "i")) == Synced(talk.asked, Error.NONE, "consumer", "range", "")
    assert talk.ask(talk.sync("a", version=4)) == Synced(talk.asked, Error.NONE, None, None, "x")


def test_a_new_round_sends_those_away_that_wait_for_their_assignment() -> None:
    talk = at("completing")
    talk.ask(talk.sync("b"))
    waiting = talk.asked
    talk.enter("c", version=3)
    assert talk.answer(waiting) == Synced(waiting, Error.REBALANCE_IN_PROGRESS)
    assert session("b") in talk.armed(), "it has to be heard of again"


def test_an_assignment_that_comes_after_the_next_round_began_is_void() -> None:
    talk = at("completing")
    talk.deferred = True
    talk.ask(talk.sync("a", assignments=(("a", "x"),)))
    talk.enter("c", version=3)
    talk.say(Written())
    assert talk.phase is Phase.PREPARING
    assert talk.answer(1001).error is Error.REBALANCE_IN_PROGRESS


def test_the_leader_leads_on_and_who_leads_after_it_has_joined() -> None:
    talk = at("stable")
    talk.ask(talk.leave("a"))
    talk.ask(talk.join("s", "i"))
    talk.fire(REBALANCE)
    assert talk.state.leader == "s"


def test_a_leave_answers_the_parked_join_of_the_member() -> None:
    talk = at("preparing")
    waiting = next(each.join.to for each in talk.state.members if each.join)
    talk.ask(talk.leave("b"))
    assert talk.answer(waiting) == Joined(waiting, Error.UNKNOWN_MEMBER_ID)


@pytest.mark.parametrize(("release", "error"), [("3.9.2", 27), ("4.4.0", None)])
def test_who_leaves_with_others_is_sent_away_from_its_parked_sync_in_scala_alone(
    release: str, error: int | None
) -> None:
    """Member by member the first one that goes begins a round; at once, the parked sync is forgotten."""
    talk = at("completing", release)
    talk.ask(talk.sync("b"))
    waiting = talk.asked
    talk.ask(talk.leave("s", "b"))
    assert (talk.answer(waiting) and talk.answer(waiting).error) == error
    assert talk.phase is Phase.PREPARING


@pytest.mark.parametrize(("release", "phase"), [("3.9.2", Phase.STABLE), ("4.4.0", Phase.PREPARING)])
def test_an_id_that_is_given_back_begins_a_round_in_java_alone(release: str, phase: Phase) -> None:
    talk = at("stable", release)
    talk.ask(talk.join(fresh="p"))
    talk.ask(talk.leave("p"))
    assert talk.phase is phase


# Time


def test_a_session_that_ends_removes_the_member_and_begins_a_round() -> None:
    talk = at("stable")
    talk.expire("b")
    assert [each.id for each in talk.state.members] == ["a", "s"]
    assert talk.phase is Phase.PREPARING
    talk.expire("s")
    talk.expire("a")
    assert (talk.phase, talk.state.generation) == (Phase.EMPTY, 2)


def test_who_waits_is_alive_without_heartbeats() -> None:
    talk = at("preparing")
    before = talk.state
    talk.expire("b")
    assert talk.state == before, "this timer does not run"
    talk = at("completing")
    talk.ask(talk.sync("b"))
    assert Disarm(session("b")) in talk.last


def test_an_id_that_is_not_used_is_void_after_its_session() -> None:
    talk = at("stable")
    talk.ask(talk.join(fresh="p", session_ms=7000))
    assert talk.armed() == {pending("p"): 7000}
    talk.forget("p")
    assert talk.error(talk.join("p")) is Error.UNKNOWN_MEMBER_ID


def test_who_is_new_waits_five_minutes_at_most() -> None:
    talk = at("stable")
    waiting = talk.enter("c", version=3)
    assert talk.armed()[session("c")] == 300_000
    talk.expire("c")
    assert talk.answer(waiting) == Joined(waiting, Error.UNKNOWN_MEMBER_ID)


def test_who_does_not_ask_for_its_assignment_is_removed() -> None:
    talk = at("completing")
    talk.ask(talk.sync("b"))
    waiting = talk.asked
    talk.deadline()
    assert [each.id for each in talk.state.members] == ["b"], "static or not"
    assert talk.answer(waiting).error is Error.REBALANCE_IN_PROGRESS
    assert talk.phase is Phase.PREPARING
    assert REBALANCE in talk.armed()


def test_there_is_no_deadline_once_all_have_asked() -> None:
    talk = at("completing")
    talk.ask(talk.sync("b"))
    talk.ask(talk.sync("a"))
    assert Disarm(SYNC) not in talk.last
    talk.ask(talk.sync("s"))
    assert Disarm(SYNC) in talk.last
    before = talk.state
    talk.deadline()
    assert talk.state == before


# Size


def test_a_full_group_refuses_new_members_and_tells_them_no_id() -> None:
    talk = at("stable", max_size=3)
    assert talk.ask(talk.join("?")) == Joined(talk.asked, Error.GROUP_MAX_SIZE_REACHED)
    assert talk.error(talk.join()) is Error.GROUP_MAX_SIZE_REACHED
    assert talk.error(talk.join("b")) is Error.NONE


def test_a_group_that_is_loaded_too_large_sheds_who_joins_last() -> None:
    talk = at("stable", max_size=2)
    for each in (Unload(), Load(), Loaded()):
        talk.say(each)
    assert talk.phase.called == "PreparingRebalance"
    talk.ask(talk.join("b"))
    talk.ask(talk.join("s", "i"))
    assert talk.error(talk.join("a")) is Error.GROUP_MAX_SIZE_REACHED
    assert [each.id for each in talk.state.members] == ["b", "s"]
    assert talk.phase is Phase.COMPLETING


def test_a_refused_member_lets_the_round_end_in_scala_alone() -> None:
    talk = at("stable", "4.4.0", max_size=2)
    for each in (Unload(), Load(), Loaded()):
        talk.say(each)
    for id in "bsa":
        talk.ask(talk.join(id))
    assert talk.phase is Phase.PREPARING


# Static members


def test_a_static_member_that_comes_back_takes_its_place_without_a_round() -> None:
    talk = at("stable")
    answer = talk.ask(talk.join(instance="i", fresh="s2"))
    assert answer == Joined(talk.asked, Error.NONE, 1, "consumer", "range", "a", "s2")
    assert talk.state.known("s2").assignment == "z"
    for request in (talk.beat("s", "i"), talk.sync("s", "i"), talk.commit("s", "i"), talk.join("s", "i")):
        assert talk.error(request) is Error.FENCED_INSTANCE_ID
    assert talk.error(talk.beat("s")) is Error.UNKNOWN_MEMBER_ID
    assert talk.error(talk.beat("s2", "i")) is Error.NONE
    assert talk.ask(talk.leave(("s", "i"))).members == (("s", "i", 82),)  # type: ignore[union-attr]


@pytest.mark.parametrize(("version", "leader", "skips"), [(8, "s", False), (9, "s2", True)])
def test_a_static_leader_that_comes_back_does_not_assign(version: int, leader: str, skips: bool) -> None:
    talk = Talk()
    talk.enter("s", "i")
    talk.enter("b")
    talk.over()
    talk.assign(s="x", b="y")
    answer = talk.ask(talk.join(instance="i", fresh="s2", version=version))
    members = (("s2", "i", "r"), ("b", None, "r")) if skips else ()
    assert answer == Joined(talk.asked, Error.NONE, 1, "consumer", "range", leader, "s2", members, skips)
    assert talk.state.leader == "s2"
    assert talk.state.log.group is not None
    assert [each[0] for each in talk.state.log.group.members] == ["s2", "b"]


def test_a_static_member_that_changes_the_vote_begins_a_round() -> None:
    talk = Talk("4.4.0")
    talk.enter("a", protocols=BOTH)
    talk.enter("s", "i", protocols=BOTH)
    talk.over()
    talk.assign(a="x", s="y")
    assert talk.state.protocol == "range"
    talk.ask(talk.join(instance="i", fresh="s2", protocols=ROBIN))
    assert talk.phase is Phase.PREPARING


def test_a_static_member_that_comes_back_while_the_assignment_is_awaited_begins_a_round() -> None:
    talk = at("completing")
    talk.ask(talk.sync("s", "i"))
    former = talk.asked
    talk.ask(talk.join(instance="i", fresh="s2"))
    assert talk.answer(former) == Synced(former, Error.FENCED_INSTANCE_ID)
    assert talk.phase is Phase.PREPARING
    assert talk.state.known("s2").join is not None


def test_a_static_member_that_comes_back_while_it_waits_has_its_former_join_fenced() -> None:
    talk = at("preparing")
    talk.ask(talk.join("s", "i"))
    former = talk.asked
    talk.ask(talk.join(instance="i", fresh="s2"))
    assert talk.answer(former) == Joined(former, Error.FENCED_INSTANCE_ID, member="s")
    assert talk.answer(talk.asked) is None
    talk.forget("p")
    talk.ask(talk.join("a"))
    assert talk.answer(talk.asked - 1).member == "s2"


def test_a_new_static_member_that_comes_back_while_it_waits_may_do_so_for_a_session_in_scala_alone() -> None:
    for release, ms in (("3.9.2", 10_000), ("4.4.0", None)):
        talk = at("preparing", release)
        talk.enter("t", "j")
        talk.ask(talk.join(instance="j", fresh="t2"))
        assert talk.armed().get(session("t2")) == ms
        assert Disarm(session("t")) in talk.last


def test_a_replaced_member_is_still_owed_a_sync_and_costs_a_round() -> None:
    talk = at("completing")
    talk.ask(talk.sync("b"))
    talk.ask(talk.sync("a"))
    talk.ask(talk.join(instance="i", fresh="s2"))
    talk.ask(talk.sync("s2", "i"))
    assert talk.state.owing == ("s",)
    talk.deadline()
    assert talk.phase is Phase.PREPARING
    assert [each.id for each in talk.state.members] == ["a", "b", "s2"]


@pytest.mark.parametrize(("release", "protocols"), [("3.9.2", BOTH), ("4.4.0", RANGE)])
def test_a_replacement_that_is_not_written_is_taken_back(release: str, protocols: tuple[tuple[str, str], ...]) -> None:
    """With the protocols that the new process said in Scala, with those of the former one in Java."""
    talk = at("stable", release)
    before, talk.deferred = talk.state.known("s"), True
    talk.ask(talk.join(instance="i", fresh="s2", protocols=BOTH, session_ms=20_000))
    talk.say(WriteFailed(Error.NOT_ENOUGH_REPLICAS))
    answer = talk.answer(talk.asked)
    assert answer == Joined(talk.asked, Error.COORDINATOR_NOT_AVAILABLE, 1, "consumer", "range", "a", "")
    assert talk.state.known("s") == before._replace(protocols=protocols)
    assert talk.error(talk.beat("s", "i")) is Error.NONE


# The log


def test_what_is_written_and_when_it_counts() -> None:
    talk = at("completing")
    talk.deferred = True
    assert talk.ask(talk.sync("a", assignments=(("a", "x"),))) is None
    (write,) = talk.state.writes
    assert talk.last[-1] == Append(write.record)
    assert isinstance(write.record, GroupRecord)
    assert write.record.members[0] == ("a", None, 10_000, 30_000, "r", "x")
    assert [each[::5] for each in write.record.members] == [("a", "x"), ("b", ""), ("s", "")]
    talk.say(Written())
    assert talk.phase is Phase.STABLE
    assert talk.ask(talk.commit("a", offsets=(("t", 1, 7), ("t", 0, 5)))) is None
    assert Append(OffsetBatch((OffsetRecord("t", 1, 7), OffsetRecord("t", 0, 5)))) in talk.last
    assert talk.ask(Fetch(8)).offsets == ()  # type: ignore[union-attr]
    talk.say(Written())
    assert talk.ask(Fetch(8)).offsets == (("t", 0, 5, -1, ""), ("t", 1, 7, -1, ""))  # type: ignore[union-attr]


FAILURES = [
    (Error.NOT_ENOUGH_REPLICAS, 15, 15, 15, 15),
    (Error.UNKNOWN_TOPIC_OR_PARTITION, 15, 15, 15, 15),
    (Error.REQUEST_TIMED_OUT, 27, 7, 15, 15),
    (Error.NOT_LEADER_OR_FOLLOWER, 16, 16, 16, 16),
    (Error.KAFKA_STORAGE_ERROR, 16, 16, 16, 16),
    (Error.MESSAGE_TOO_LARGE, -1, 28, -1, -1),
    (Error.COORDINATOR_LOAD_IN_PROGRESS, 14, 14, 14, 14),
]


@pytest.mark.parametrize(("failure", "scala", "scala_commit", "java", "java_commit"), FAILURES)
def test_an_append_that_fails(failure: Error, scala: int, scala_commit: int, java: int, java_commit: int) -> None:
    for release, error, commit_error in (("3.9.2", scala, scala_commit), ("4.4.0", java, java_commit)):
        talk = at("completing", release)
        talk.deferred = True
        talk.ask(talk.sync("b"))
        talk.ask(talk.sync("a", assignments=(("a", "x"),)))
        talk.say(WriteFailed(failure))
        assert [talk.answer(number).error for number in (talk.asked - 1, talk.asked)] == [error, error]
        assert talk.phase is Phase.PREPARING
        assert not any(each.assignment for each in talk.state.members)
        talk.ask(talk.commit("a"))
        talk.say(WriteFailed(failure))
        assert talk.answer(talk.asked).error == commit_error
        assert talk.state.offsets == ()


def test_java_answers_a_deletion_once_it_is_written() -> None:
    for release, at_once in (("3.9.2", True), ("4.4.0", False)):
        talk = at("empty", release)
        talk.deferred = True
        assert (talk.ask(Delete(2)) is not None) is at_once
        assert Append(Tombstone()) in talk.last
        talk.say(Written())
        assert talk.answer(talk.asked) == Deleted(talk.asked, Error.NONE)


def test_java_writes_that_a_group_is_there() -> None:
    for release, written in (("3.9.2", 0), ("4.4.0", 1)):
        talk = Talk(release)
        talk.ask(talk.join(fresh="a"))
        assert talk.appended == written
        talk.ask(talk.join(fresh="b"))
        assert talk.appended == written


def test_java_has_no_group_that_could_not_be_founded() -> None:
    talk = Talk("4.4.0", deferred=True)
    waiting = talk.enter("a", version=3)
    talk.say(WriteFailed(Error.NOT_ENOUGH_REPLICAS))
    assert talk.answer(waiting).error is Error.COORDINATOR_NOT_AVAILABLE
    assert talk.state == Talk("4.4.0").state


def test_a_partition_that_moves_sends_everybody_away_who_waits() -> None:
    for phase, request in (("preparing", at("preparing").join("a")), ("completing", at("completing").sync("b"))):
        talk = at(phase)
        talk.ask(request)
        waiting = talk.asked
        talk.say(Unload())
        assert talk.answer(waiting).error is Error.NOT_COORDINATOR
        assert not [each for each in talk.last if isinstance(each, Arm)]


def test_a_group_is_loaded_as_it_was_written() -> None:
    talk = at("stable")
    talk.ask(talk.commit("a"))
    before = talk.state
    for each in (Unload(), Load(), Loaded()):
        talk.say(each)
    assert talk.state == before
    assert talk.armed() == {session(id): 10_000 for id in "abs"}


def test_a_round_that_was_not_written_is_forgotten_when_the_partition_moves() -> None:
    talk = at("stable")
    talk.ask(talk.join("a"))
    talk.ask(talk.leave("b", "s"))
    assert (talk.phase, talk.state.generation) == (Phase.COMPLETING, 2)
    for each in (Unload(), Load(), Loaded()):
        talk.say(each)
    assert (talk.phase, talk.state.generation) == (Phase.STABLE, 1)
    assert [each.id for each in talk.state.members] == ["a", "b", "s"]


def test_a_group_that_only_has_offsets_is_loaded_empty() -> None:
    talk = Talk()
    talk.ask(talk.commit("", generation=-1))
    for each in (Unload(), Load(), Loaded()):
        talk.say(each)
    assert (talk.phase, talk.state.offsets) == (Phase.EMPTY, (("t", 0, 5, -1, ""),))
