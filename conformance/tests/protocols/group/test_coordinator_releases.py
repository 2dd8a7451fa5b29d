"""Where the group coordinator of one release does otherwise than that of the next; KIP-429's draft; random lives."""

from random import Random

import pytest

from kipcheck.conformance.protocols.group.model.coordinator import Coordinator
from kipcheck.conformance.protocols.group.model.draft import DraftCoordinator
from kipcheck.conformance.protocols.group.model.environment_moves import environment_events
from kipcheck.conformance.protocols.group.model.messages import (
    Action,
    Append,
    Arm,
    Delete,
    Describe,
    Disarm,
    Error,
    Event,
    Fetch,
    Fired,
    Join,
    Joined,
    Leave,
    Left,
    ListGroups,
    Load,
    Loaded,
    Nameless,
    Phase,
    Record,
    Sync,
    Synced,
    Timer,
    Unload,
    WriteFailed,
    Written,
)
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.state import REBALANCE, SYNC, Standing, State, armed, session
from kipcheck.conformance.tests.support.coordinator_conversations import BOTH, RANGE, ROBIN, TURNED, Talk, at
from kipcheck.conformance.tests.support.loops import some_by_default


@pytest.mark.parametrize(
    ("release", "versions"), [("1.0.2", 0), ("1.1.0", 1), ("2.0.0", 2), ("2.4.0", 3), ("4.4.0", 4)]
)
def test_groups_can_be_deleted(release: str, versions: int) -> None:
    talk = Talk(release)
    assert [talk.error(Delete(each)) for each in range(-1, versions + 1)] == [35, *([69] * versions), 35]


def error(release: str, phase: str, what: str, *stated: object, **more: object) -> Error | None:
    talk = at(phase, release)
    return talk.error(getattr(talk, what)(*stated, **more))


BOUNDARIES = [
    # heartbeats while the assignment is awaited
    (("0.10.1.1", "2.6.0"), "completing", "beat", ["a"], {}, 27),
    (("2.6.1", "4.4.0"), "completing", "beat", ["a"], {}, 0),
    (("0.10.1.1", "2.2.2"), "completing", "beat", ["a"], {"generation": 7}, 27),
    (("2.3.0", "4.4.0"), "completing", "beat", ["a"], {"generation": 7}, 22),
    (("0.10.1.1", "4.4.0"), "completing", "beat", ["?"], {}, 25),
    (("0.10.0.1",), "completing", "beat", ["?"], {}, 27),
    (("0.10.0.1",), "preparing", "beat", ["?"], {"generation": 7}, 27),
    (("0.10.0.1",), "stable", "beat", ["?"], {}, 25),
    (("0.10.0.1",), "dead", "beat", ["?"], {}, 25),
    # commits
    (("0.10.0.1", "2.3.1"), "completing", "commit", ["?"], {}, 27),
    (("2.4.0", "4.4.0"), "completing", "commit", ["?"], {}, 25),
    (("2.3.1",), "completing", "commit", ["a", "i"], {}, 82),
    (("2.3.1", "3.9.2"), "dead", "commit", ["a"], {"generation": 1}, 22),
    (("4.0.0", "4.4.0"), "dead", "commit", ["a"], {"generation": 1, "version": 8}, 22),
    (("4.0.0", "4.4.0"), "dead", "commit", ["a"], {"generation": 1, "version": 9}, 69),
    # protocols of a first member
    (("0.10.0.1", "0.10.2.2"), "dead", "join", [], {"protocol_type": ""}, 0),
    (("0.10.0.1", "0.11.0.3"), "dead", "join", [], {"protocols": ()}, -1),
    (("1.0.0", "4.4.0"), "dead", "join", [], {"protocol_type": ""}, 23),
    (("1.0.0", "4.4.0"), "dead", "join", [], {"protocols": ()}, 23),
    # ids
    (("0.10.0.1", "0.10.2.2"), "dead", "join", [], {"fresh": "x"}, 0),
    (("0.11.0.0", "2.1.1"), "dead", "join", [], {"fresh": "x"}, None),
    (("2.2.0", "4.4.0"), "dead", "join", [], {"fresh": "x"}, 79),
    (("2.2.0", "4.4.0"), "dead", "join", [], {"fresh": "x", "version": 3}, None),
    (("2.2.2",), "stable", "join", ["a", "i"], {}, 35),
    (("2.3.0", "4.4.0"), "stable", "join", ["a", "i"], {}, 82),
    # instances that nobody has
    (("2.3.0", "4.4.0"), "stable", "join", ["a", "j"], {}, 25),
    (("2.3.0", "2.8.2"), "stable", "beat", ["a", "j"], {}, 0),
    (("3.0.0", "4.4.0"), "stable", "beat", ["a", "j"], {}, 25),
    (("2.8.2",), "stable", "commit", ["a", "j"], {}, 0),
    # JoinGroup 0 and 1 were away for one release
    (("3.9.2", "4.0.1", "4.4.0"), "dead", "join", [], {"version": 1}, None),
    (("4.0.0",), "dead", "join", [], {"version": 1}, 35),
    (("4.0.0",), "dead", "join", [], {"version": 2}, None),
]


@pytest.mark.parametrize(("releases", "phase", "what", "stated", "more", "expected"), BOUNDARIES)
def test_boundaries(releases, phase, what, stated, more, expected) -> None:  # type: ignore[no-untyped-def]
    assert {release: error(release, phase, what, *stated, **more) for release in releases} == dict.fromkeys(
        releases, expected
    )


def test_errors_have_generation_0_up_to_2_1() -> None:
    for release, generation in (("0.10.0.1", 0), ("1.1.1", 0), ("2.1.1", 0), ("2.2.0", -1), ("4.4.0", -1)):
        talk = Talk(release)
        answer = talk.ask(talk.join("?"))
        assert isinstance(answer, Joined)
        assert (answer.error, answer.generation) == (Error.UNKNOWN_MEMBER_ID, generation)


@pytest.mark.parametrize(("release", "expected"), [("1.1.1", 25), ("2.0.0", 24), ("4.4.0", 24)])
def test_requests_that_name_no_group(release: str, expected: int) -> None:
    talk = Talk(release)
    received = []
    for request in (talk.beat("a"), talk.sync("a", protocol_type="", protocol=""), talk.leave("a"), talk.join()):
        _, (answer,) = talk.coordinator.step(talk.state, Nameless(request))
        received.append(answer.error)  # type: ignore[union-attr]
    assert received == [expected, expected, expected, 24]


def test_the_group_with_the_empty_name_has_offsets_and_no_members() -> None:
    """Up to 1.1 it cannot be deleted."""
    for release in ("1.1.1", "2.0.0", "2.8.2", "3.9.2", "4.4.0"):
        talk = at("stable", release)
        received, before = talk.ask_nameless, talk.state
        assert received(talk.commit("", generation=-1)).error is Error.NONE
        assert received(Fetch(2)).offsets == (("t", 0, 5, -1, ""),)
        assert received(Describe(0)).state == "Empty"
        assert received(ListGroups(0)).groups == (("", ""),)
        assert received(talk.commit("a")).error is Error.UNKNOWN_MEMBER_ID
        assert talk.ask(Fetch(2)).offsets == ()  # type: ignore[union-attr]
        assert talk.state._replace(unnamed=None) == before
        for each in (Unload(), Load(), Loaded()):
            talk.say(each)
        assert received(Delete(0)).error is (Error.INVALID_GROUP_ID if release == "1.1.1" else Error.NONE)
        assert received(Fetch(2)).offsets == ((("t", 0, 5, -1, ""),) if release == "1.1.1" else ())


def test_a_commit_to_the_group_with_the_empty_name_that_is_not_written_changes_nothing() -> None:
    for release in ("2.0.0", "4.4.0"):
        talk = Talk(release, deferred=True)
        talk.ask_nameless(talk.commit("", generation=-1))
        talk.say(WriteFailed(Error.NOT_ENOUGH_REPLICAS))
        assert talk.answer(talk.asked).error is Error.COORDINATOR_NOT_AVAILABLE
        assert talk.ask_nameless(Fetch(2)).offsets == ()


@pytest.mark.parametrize(("release", "expected"), [("1.1.1", 24), ("2.0.0", 69), ("4.4.0", 69)])
def test_a_deletion_that_names_no_group(release: str, expected: int) -> None:
    talk = Talk(release)
    _, (answer,) = talk.coordinator.step(talk.state, Nameless(Delete(0)))
    assert answer.error == expected  # type: ignore[union-attr]


@pytest.mark.parametrize("release", ["2.4.0", "2.8.2", "3.0.0", "4.4.0"])
def test_an_id_that_was_given_out_leaves_with_an_instance(release: str) -> None:
    """From 2.4 to 2.8 that fails in the coordinator; the members before it in the batch have left, those after not."""
    talk = at("preparing", release)
    answer = talk.ask(talk.leave("b", ("p", "j"), "a"))
    left: list[tuple[str, str | None, Error]] = []
    if release not in ("2.4.0", "2.8.2"):
        left = [("b", None, Error.NONE), ("p", "j", Error.NONE), ("a", None, Error.NONE)]
    assert answer == Left(talk.asked, Error.NONE if left else Error.UNKNOWN_SERVER_ERROR, tuple(left))
    assert {each.id for each in talk.state.members} == ({"s"} if left else {"a", "s"})
    assert talk.state.pending == (() if left else ("p",))
    fenced = at("preparing", release).ask(talk.leave(("p", "i")))
    assert fenced == Left(1001, Error.NONE, (("p", "i", Error.NONE if left else Error.FENCED_INSTANCE_ID),))


@pytest.mark.parametrize("release", ["1.1.1", "2.0.0"])
def test_a_log_that_is_read_was_not_told_of_up_to_1_1(release: str) -> None:
    talk = at("stable", release)
    for each in (Unload(), Load()):
        talk.say(each)
    received = [talk.error(request) for request in (talk.join("a"), talk.sync("a"), talk.beat("a"), talk.leave("a"))]
    assert received == ([16, 16, 16, 16] if release == "1.1.1" else [14, 27, 0, 14])


def test_0_10_0_forgets_a_group_without_members_and_keeps_its_offsets() -> None:
    for release, phase in (("0.10.0.1", Phase.DEAD), ("0.10.1.1", Phase.EMPTY)):
        talk = at("stable", release)
        talk.ask(talk.commit("a"))
        talk.ask(talk.leave("a", version=0))
        talk.fire(REBALANCE)
        assert talk.phase is phase
        assert talk.ask(Fetch(1)).offsets == (("t", 0, 5, -1, ""),)  # type: ignore[union-attr]
        state = talk.state
        for each in (Unload(), Load(), Loaded()):
            talk.say(each)
        assert talk.state == state._replace(lapsing=())
        talk.enter("c")
        assert talk.state.generation == (1 if phase is Phase.DEAD else state.generation + 1)
        assert talk.ask(Fetch(1)).offsets == (("t", 0, 5, -1, ""),)  # type: ignore[union-attr]


def test_0_10_0_takes_offsets_without_making_a_group() -> None:
    talk = Talk("0.10.0.1")
    assert talk.error(talk.commit("", generation=-1)) is Error.NONE
    assert talk.phase is Phase.DEAD
    assert talk.ask(Fetch(1)).offsets == (("t", 0, 5, -1, ""),)  # type: ignore[union-attr]


@pytest.mark.parametrize(("release", "ms"), [("2.1.0", None), ("2.1.1", 300_000)])
def test_who_is_new_waits_without_a_bound_up_to_2_1_0(release: str, ms: int | None) -> None:
    talk = at("stable", release)
    talk.enter("c")
    assert talk.armed().get(session("c")) == ms


@pytest.mark.parametrize(("release", "ms"), [("2.4.1", None), ("2.5.0", 10_000), ("3.9.2", 10_000), ("4.0.0", None)])
def test_the_successor_of_a_new_static_member_waits_for_one_session_in_scala_from_2_5_on(
    release: str, ms: int | None
) -> None:
    talk = Talk(release)
    talk.ask(talk.join("", "i", fresh="s.1"))
    talk.ask(talk.join("", "i", fresh="s.2"))
    assert [each.id for each in talk.state.members] == ["s.2"]
    assert talk.armed().get(session("s.2")) == ms


@pytest.mark.parametrize(("release", "ms"), [("2.4.1", None), ("2.5.0", 10_000), ("4.0.0", 10_000)])
def test_a_heartbeat_of_a_new_member_that_waits_begins_no_session_up_to_2_4(release: str, ms: int | None) -> None:
    talk = Talk(release)
    talk.enter("a", version=4)
    assert talk.armed()[session("a")] == 300_000
    assert talk.error(talk.beat("a")) is Error.REBALANCE_IN_PROGRESS
    assert talk.armed().get(session("a")) == ms


@pytest.mark.parametrize("release", ["0.11.0.3", "3.9.2", "4.4.0"])
def test_who_joins_in_the_last_round_of_the_first_join_phase_prolongs_the_next_one(release: str) -> None:
    """The rebalance timeout leaves time for two rounds; the group is empty before its second first join phase."""
    talk, phases = Talk(release), []
    events = (
        *(talk.join("", fresh=id, version=2, rebalance_ms=4_000) for id in ("a", "b")), REBALANCE,
        talk.join("", fresh="c", version=2, rebalance_ms=4_000), REBALANCE, *map(session, ("a", "b", "c")),
        talk.join("", fresh="d", version=2), REBALANCE, REBALANCE,
    )  # fmt: skip
    for event in events:
        if isinstance(event, Timer):
            talk.fire(event)
        else:
            talk.ask(event)
        phases.append(talk.phase)
    assert [each.name for each in phases[3:5]] == ["PREPARING", "COMPLETING"]
    assert [each.name for each in phases[-4:]] == ["EMPTY", "PREPARING", "PREPARING", "COMPLETING"]


@pytest.mark.parametrize(("release", "runs"), [("2.0.0", True), ("2.0.1", False)])
def test_the_session_of_a_member_that_missed_a_join_phase_runs_on_up_to_2_0_0(release: str, runs: bool) -> None:
    talk = at("stable", release)
    talk.enter("c")
    talk.fire(REBALANCE)
    assert [each.id for each in talk.state.members] == ["c"]
    assert talk.state.lapsing == (("a", "b") if runs else ())
    talk.fire(session("a"))
    assert talk.phase is (Phase.PREPARING if runs else Phase.COMPLETING)
    talk.fire(session("b"))
    assert talk.error(talk.beat("c")) is Error.REBALANCE_IN_PROGRESS
    talk.ask(talk.join("c"))
    assert (talk.phase, talk.state.generation) == (Phase.COMPLETING, 3 if runs else 2)


@pytest.mark.parametrize(("release", "deadline"), [("2.8.0", False), ("2.8.1", True), ("3.0.0", True)])
def test_there_is_a_deadline_for_syncs(release: str, deadline: bool) -> None:
    talk = Talk(release)
    talk.enter("a")
    talk.over()
    assert (SYNC in talk.armed()) is deadline


@pytest.mark.parametrize(("release", "phase"), [("2.8.2", Phase.STABLE), ("3.0.0", Phase.PREPARING)])
def test_the_deadline_for_syncs_fails_in_2_8_after_a_static_member_was_replaced(release: str, phase: Phase) -> None:
    talk = at("completing", release)
    for id in ("b", "a"):
        talk.ask(talk.sync(id))
    talk.ask(talk.join("", "i", fresh="s.2"))
    talk.deadline()
    assert (talk.phase, talk.state.failed) == (phase, False)
    assert {each.id for each in talk.state.members} == {"a", "b", "s.2"}


@pytest.mark.parametrize(("release", "ms"), [("3.3.1", (10_000, 30_000)), ("3.3.2", (20_000, 60_000))])
def test_timeouts_are_those_of_the_last_join(release: str, ms: tuple[int, int]) -> None:
    talk = at("stable", release)
    talk.ask(talk.join("a", session_ms=20_000, rebalance_ms=60_000))
    member = talk.state.known("a")
    assert (member.session_ms, member.rebalance_ms) == ms
    assert talk.armed()[REBALANCE] == ms[1]


def test_a_superseded_request_is_never_answered_up_to_4_4_0() -> None:
    for release, received in (("4.4.0", None), ("4.5.0", Error.NOT_COORDINATOR)):
        talk = at("completing", release)
        talk.ask(talk.sync("b"))
        former = talk.asked
        talk.ask(talk.sync("b"))
        assert talk.answer(former) == (received and Synced(former, received))
        talk = at("preparing", release)
        talk.ask(talk.join("a"))
        former = talk.asked
        talk.ask(talk.join("a"))
        assert talk.answer(former) == (received and Joined(former, received, member="a"))


# Static members


@pytest.mark.parametrize(("release", "written"), [("2.6.0", 0), ("2.6.1", 1), ("2.7.0", 1)])
def test_a_replacement_is_written(release: str, written: int) -> None:
    """Before, a coordinator that loads the group knows the former id alone."""
    talk = at("stable", release)
    answer = talk.ask(talk.join(instance="i", fresh="s2"))
    assert isinstance(answer, Joined)
    assert (answer.error, answer.member, talk.appended) == (Error.NONE, "s2", written)
    for each in (Unload(), Load(), Loaded()):
        talk.say(each)
    assert talk.error(talk.beat("s2", "i")) == (Error.NONE if written else Error.FENCED_INSTANCE_ID)


def test_a_replacement_without_the_chosen_protocol_makes_the_assignment_fail() -> None:
    """What the coordinator of 2.3 does then is not modelled."""
    talk = Talk("2.3.1")
    talk.enter("s", "i", protocols=BOTH)
    talk.over()
    (other,) = (each for each in (RANGE, ROBIN) if each[0][0] != talk.state.protocol)
    talk.ask(talk.join("", "i", fresh="s2", protocols=other))
    assert not talk.state.failed
    talk.ask(talk.sync("s2", "i"))
    assert talk.state.failed


@pytest.mark.parametrize(("release", "generation"), [("2.6.0", 1), ("2.6.1", 2)])
def test_a_replacement_that_changes_the_vote_begins_a_round(release: str, generation: int) -> None:
    talk = Talk(release)
    talk.enter("s", "i", protocols=BOTH)
    talk.over()
    talk.assign(s="x")
    answer = talk.ask(talk.join(instance="i", fresh="s2", protocols=ROBIN))
    assert isinstance(answer, Joined)
    assert answer.generation == talk.state.generation == generation


@pytest.mark.parametrize(("release", "phase"), [("2.4.1", Phase.COMPLETING), ("2.5.0", Phase.PREPARING)])
def test_a_replacement_while_the_assignment_is_awaited_begins_a_round(release: str, phase: Phase) -> None:
    """Before, the leader's assignment is for the former id."""
    talk = at("completing", release)
    answer = talk.ask(talk.join(instance="i", fresh="s2"))
    assert (answer is not None) is (phase is Phase.COMPLETING)
    assert talk.phase is phase
    if answer:
        talk.ask(talk.sync("a", assignments=(("a", "x"), ("s", "y"))))
        assert talk.ask(talk.sync("s2", "i")).assignment == ""  # type: ignore[union-attr]


# Size


@pytest.mark.parametrize(("release", "refused"), [("2.2.0", "a"), ("2.5.1", "a"), ("2.6.0", "b"), ("4.4.0", "b")])
def test_more_ids_are_given_out_than_there_is_room_for(release: str, refused: str) -> None:
    """Up to 2.5 the first old member that joins again has to go, since the group is too large; later the last one."""
    talk = Talk(release, max_size=3)
    talk.enter("a")
    talk.enter("b")
    talk.over()
    talk.assign()
    for id in "pq":
        assert talk.error(talk.join(fresh=id)) is Error.MEMBER_ID_REQUIRED
    received = {id: talk.error(talk.join(id)) for id in "pqab"}
    assert [id for id, error in received.items() if error is Error.GROUP_MAX_SIZE_REACHED] == [refused]
    assert len(talk.state.members) == 3


def test_up_to_2_1_there_is_no_limit() -> None:
    talk = Talk("2.1.1", max_size=2)
    for id in "abcd":
        assert talk.answer(talk.enter(id)) is None
    assert len(talk.state.members) == 4


@pytest.mark.parametrize(("release", "void"), [("2.8.2", False), ("3.0.0", True)])
def test_an_id_for_which_there_is_no_room_is_void(release: str, void: bool) -> None:
    talk = Talk(release, max_size=1)
    for id in "ab":
        talk.ask(talk.join(fresh=id))
    talk.ask(talk.join("a"))
    talk.over()
    assert talk.error(talk.join("b")) is Error.GROUP_MAX_SIZE_REACHED
    assert talk.state.pending == (() if void else ("b",))


# The draft


def test_the_highest_protocol_version_leads_and_the_first_of_them() -> None:
    talk = Talk("kip-429")
    for id, version in (("a", 0), ("b", 1), ("c", 1)):
        talk.enter(id, protocol_version=version)
    talk.over()
    assert talk.state.leader == "b"
    assert talk.state.members[0].id == "a"


def test_a_leader_among_the_highest_that_joins_again_stays() -> None:
    talk = Talk("kip-429")
    talk.enter("a", protocol_version=0)
    talk.enter("b", protocol_version=1)
    talk.over()
    talk.assign()
    talk.ask(talk.join("a", protocol_version=1))
    talk.ask(talk.join("b", protocol_version=1))
    assert talk.state.leader == "b"
    talk.assign()
    talk.enter("c", protocol_version=2)
    for id in "ab":
        talk.ask(talk.join(id, protocol_version=1))
    assert talk.state.leader == "c", "nobody speaks a higher version"


def test_who_joins_with_a_version_before_5_tells_none_and_leads_nobody_that_does() -> None:
    talk = Talk("kip-429")
    talk.enter("a", version=3)
    talk.enter("b", protocol_version=0)
    talk.over()
    assert talk.state.leader == "b"
    assert talk.error(talk.join(version=4, protocol_version=1)) is Error.UNSUPPORTED_VERSION
    assert talk.error(talk.join(instance="i")) is Error.UNSUPPORTED_VERSION
    assert talk.error(talk.beat("b", "i", version=1)) is Error.UNSUPPORTED_VERSION


def test_when_the_leader_fails_the_next_one_speaks_the_highest_version_too() -> None:
    """Also where a member of an older version joins in that very round."""
    talk = Talk("kip-429")
    for id, version in (("a", 0), ("b", 1), ("c", 1)):
        talk.enter(id, protocol_version=version)
    talk.over()
    talk.assign()
    talk.expire("b")
    talk.enter("d", protocol_version=0)
    for id, version in (("a", 0), ("c", 1)):
        talk.ask(talk.join(id, protocol_version=version))
    assert (talk.state.leader, talk.phase) == ("c", Phase.COMPLETING)


def test_in_the_release_whoever_came_first_leads() -> None:
    talk = Talk("2.2.2")
    talk.enter("a", protocols=RANGE)
    talk.enter("b", protocols=TURNED)
    talk.over()
    assert talk.state.leader == "a"


# Random lives


HAPPENED = (Fired, Written, WriteFailed, Unload, Load, Loaded, Nameless, Leave, Describe)
"""No request; or one whose members hear their errors one by one, or which may be told that there is no group."""
NO_ANSWER = (Arm, Disarm, Append)


class Life:
    """A coordinator in the middle of events at random, most of them in order; and what it must keep to."""

    def __init__(self, coordinator: Coordinator, random: Random) -> None:
        self.coordinator, self.random = coordinator, random
        self.state: State = coordinator.initial()
        self.timers: set[Timer] = set()
        self.under_way: list[Record] = []
        self.committed: list[Record] = []
        self.highest = 0
        """Generation since the group was there, or was loaded."""

    def event(self) -> Event:
        every = list(environment_events(self.state, self.coordinator.rules, self.coordinator.clients))
        accepted = [each for each in every if self.coordinator.accepts(self.state, each)]
        ahead: list[Event] = [
            each for each in accepted if isinstance(each, (Sync, Written)) or each == Fired(REBALANCE)
        ]
        joins: list[Event] = [each for each in accepted if isinstance(each, Join)]
        pools: list[list[Event]] = [ahead, ahead, joins, joins, accepted, every]
        return self.random.choice(self.random.choice(pools) or accepted)

    def live(self) -> None:
        before, event = self.state, self.event()
        self.state, actions = self.coordinator.step(before, event)
        if not isinstance(event, HAPPENED):
            self.check_guard(self.coordinator.accepts(before, event), event.request, actions)
        if isinstance(event, Fired):
            self.timers.discard(event.timer)
        if before.writes and isinstance(event, Written):
            self.committed.append(self.under_way.pop(0))
        if before.writes and isinstance(event, WriteFailed):
            self.under_way.pop(0)
        for action in actions:
            if isinstance(action, Arm):
                self.timers.add(action.timer)
            elif isinstance(action, Disarm):
                assert action.timer in self.timers or event == Fired(action.timer), (event, action)
                self.timers.discard(action.timer)
            elif isinstance(action, Append):
                self.under_way.append(action.record)
        self.check(event)

    def check_guard(self, accepted: bool, request: int, actions: tuple[Action, ...]) -> None:
        """What is refused is answered at once with an error; what is accepted, with none that is its own fault."""
        errors = [each.error for each in actions if not isinstance(each, NO_ANSWER) and each.to == request]
        assert accepted or (errors and Error.NONE not in errors)
        assert not accepted or set(errors) <= {Error.NONE, Error.REBALANCE_IN_PROGRESS, Error.MEMBER_ID_REQUIRED}

    def check(self, event: Event) -> None:
        state = self.state
        hash(state)
        assert self.timers == set(armed(state, self.coordinator.rules.sync_deadline)), event
        assert self.under_way == [each.record for each in state.writes], event
        rebuilt = self.coordinator.replayed(self.committed)
        assert rebuilt.log == state.log, event
        if state.phase is Phase.STABLE and not state.writes and state.standing is Standing.OURS:
            self.check_rebuilt(rebuilt)
        if isinstance(event, Loaded) or state.phase is Phase.DEAD:
            self.highest = state.generation
        assert state.generation >= self.highest, event
        self.highest = state.generation
        ids = [each.id for each in state.members]
        assert len(ids) == len(set(ids))
        assert state.leader in ids if ids else state.leader is None, event
        assert (state.phase is Phase.DEAD) <= (not ids)
        for each in state.members:
            assert each.join is None or state.phase is not Phase.COMPLETING, event
            assert each.sync is None or state.phase is Phase.COMPLETING, event

    def check_rebuilt(self, rebuilt: State) -> None:
        """What the log knows of a stable group: its generation, members and what they have. A leader that a static
        member of 2.3 to 2.6.0 took over is not written, nor are protocols that were not chosen."""
        state = self.state
        assert rebuilt.generation == state.generation
        assert rebuilt.offsets == state.offsets
        if self.coordinator.rules.replacement_written:
            assert rebuilt.leader == state.leader
            assert [(each.id, each.assignment) for each in rebuilt.members] == [
                (each.id, each.assignment) for each in state.members
            ]


@pytest.mark.parametrize(
    "release", some_by_default(["0.10.0.1", "1.1.1", "2.3.1", "2.8.2", "3.9.2", "4.4.0", "4.5.0", "kip-429"], 4)
)
def test_random_lives(release: str) -> None:
    coordinator = DraftCoordinator() if release == "kip-429" else Coordinator(Rules.of(release))
    stable = 0
    for seed in range(20):
        life = Life(coordinator, Random(f"{release} {seed}"))
        for _ in range(50):
            life.live()
            stable += life.state.phase is Phase.STABLE
    assert stable > 20
