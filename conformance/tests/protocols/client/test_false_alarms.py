"""What released clients do, and no law forbids: traffic that was once taken for a breach."""

from typing import Any

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History, Op
from kipcheck.conformance.protocols.client.invariants.identity import joins_with_its_id, names_itself
from kipcheck.conformance.protocols.client.invariants.leading import assigns_each_partition_once, assigns_to_everybody
from kipcheck.conformance.protocols.client.invariants.membership import (
    comes_back,
    ends_when_stopped,
    finds_its_coordinator,
    leaves,
)
from kipcheck.conformance.protocols.client.invariants.partitions import claims_what_it_owns, reads_its_own
from kipcheck.conformance.protocols.client.invariants.positions import (
    commits_what_it_read,
    starts_at_the_committed_offset,
)
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import observed

SUBSCRIPTION = {"version": 0, "topics": ["t"]}


def history(*events: tuple[Any, ...], script: str = "stop") -> History:
    """Of events of the script's last step: what, milliseconds, and more."""
    steps = OPERATIONS.parse_shorthand(script)
    actions = [{"what": what, "ms": ms, "connection": 1, **more} for what, ms, more in events]
    answer = observed({"status": "accepted", "actions": [*actions, {"what": "idle", "ms": 9999, "late_ms": 0}]})
    case = Case("client/groups", "apache", Role.CLIENT, steps)
    nothing = observed({"status": "accepted", "actions": []})
    answers = [*(nothing for _ in steps[1:]), answer]
    return History(case, "it", tuple(Op(at, *each, at + 1) for at, each in enumerate(zip(steps, answers, strict=True))))


def joined(ms: int, generation: int = 1) -> tuple[Any, ...]:
    members = [{"id": "m", "instance": None, "subscription": SUBSCRIPTION}]
    return ("answer", ms, {"api": "JoinGroup", "error": 0, "generation": generation, "member": "m", "leads": True,
                           "protocol": "range", "members": members, "sizes": {"t": 1}})  # fmt: skip


def synced(ms: int, *partitions: str, generation: int = 1) -> tuple[Any, ...]:
    return ("request", ms, {"api": "SyncGroup", "version": 5, "member": "m", "generation": generation,
                            "assignments": [["m", [*partitions]]]})  # fmt: skip


def metadata(ms: int, error: int = 0) -> tuple[Any, ...]:
    return "answer", ms, {"api": "Metadata", "error": error, "sizes": {} if error else {"t": 1}}


def rejoins(ms: int) -> tuple[Any, ...]:
    return "request", ms, {"api": "JoinGroup", "version": 5, "member": "m", "protocols": [], "subscriptions": []}


def test_metadata_that_comes_with_the_assignment_was_not_read_before_it() -> None:
    """kafka-python 3.0.12: Metadata was answered 0 ms before its SyncGroup; it joined again 34 ms later."""
    assert not [*assigns_each_partition_once(history(joined(100), metadata(130), synced(130), rejoins(164)))]
    assert [*assigns_each_partition_once(history(metadata(20), joined(100), synced(130), rejoins(164)))]


def test_a_leader_that_may_not_describe_a_topic_does_not_know_its_partitions() -> None:
    """aiokafka 0.14.0: Metadata was refused with TOPIC_AUTHORIZATION_FAILED 1 ms before it sent an empty assignment."""
    leads = [joined(100), synced(130), rejoins(164)]
    assert not [*assigns_each_partition_once(history(metadata(20), metadata(129, error=29), *leads))]
    assert [*assigns_each_partition_once(history(metadata(10, error=29), metadata(20), *leads))]


def test_a_leader_that_was_just_sent_that_a_topic_does_not_exist_need_not_assign_it() -> None:
    """kafka-python 3.0.12: Metadata said so 40 ms before its JoinGroup; it joined again when it was there."""
    lacks = "answer", 50, {"api": "Metadata", "sizes": {}, "missing": True}
    assert not [*assigns_each_partition_once(history(metadata(20), lacks, joined(100), synced(230), rejoins(264)))]
    assert [*assigns_each_partition_once(history(lacks, metadata(80), joined(150), synced(230), rejoins(264)))]


def beat(ms: int, member: str, generation: int) -> tuple[Any, ...]:
    return "request", ms, {"api": "Heartbeat", "version": 4, "member": member, "generation": generation}


def test_a_heartbeat_without_a_member_id_is_legal_once_the_membership_is_over() -> None:
    """Java 3.9.2: its heartbeat thread reads an answer that fences it, and then sends the heartbeat that was due."""
    given = {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    fenced = {"api": "OffsetCommit", "error": 25, "to": ["m", 1]}
    member = [joined(100), synced(110, "t-0"), ("answer", 110, given)]
    assert not [*names_itself(history(*member, ("answer", 200, fenced), beat(201, "", -1)))]
    assert [*names_itself(history(*member, beat(201, "", -1)))]


def test_a_client_whose_session_is_over_joins_without_its_id() -> None:
    """librdkafka 2.16.1: 3 s after its last successful heartbeat, although a commit was answered since."""
    joins = "request", 3300, {**rejoins(0)[2], "member": "", "session_ms": 3000}
    begins = "request", 90, {**rejoins(0)[2], "member": "", "session_ms": 3000}
    refused = {"api": "OffsetCommit", "error": 15, "to": ["m", 1]}
    assert not [*joins_with_its_id(history(begins, joined(100), ("answer", 3200, refused), joins))]
    beaten = {"api": "Heartbeat", "error": 0, "to": ["m", 1]}
    assert [*joins_with_its_id(history(begins, joined(100), ("answer", 3200, beaten), joins))]


def test_a_client_that_just_lost_its_connection_need_not_leave() -> None:
    """Java 4.4.0: it had found its coordinator again, and was not connected to it yet, when it was closed."""
    given = {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(100), synced(110, "t-0"), ("answer", 110, given), beat(150, "m", 1)]
    end: list[tuple[Any, ...]] = [("signalled", 1100, {}), ("ended", 1200, {"code": 0, "stderr": ""})]
    assert [*leaves(history(*member, *end))]
    assert not [*leaves(history(*member, ("closed", 900, {"why": "by the script"}), *end))]
    assert [*leaves(history(*member, ("closed", 900, {"why": "by the script"}), beat(950, "m", 1), *end))]
    assert [*leaves(history(*member, ("closed", 90, {"why": "by the script"}), *end))]


def test_a_client_that_is_refused_while_it_closes_need_not_leave() -> None:
    """Our own consumer, on a busy machine: its last heartbeat was refused after SIGTERM, and it ended."""
    given = {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(100), synced(110, "t-0"), ("answer", 110, given), beat(150, "m", 1), ("signalled", 1100, {})]
    ended: tuple[Any, ...] = ("ended", 1200, {"code": 1, "stderr": ""})
    refused = {"api": "Heartbeat", "to": ["m", 1]}
    assert not [*leaves(history(*member, ("answer", 1150, {**refused, "error": 30}), ended))]
    assert [*leaves(history(*member, ("answer", 1150, {**refused, "error": 0}), ended))]


def test_a_broker_that_closes_the_connection_may_not_have_read_that_a_member_leaves() -> None:
    """platformatic-kafka 2.12.1: its LeaveGroup waited behind a ListOffsets that was never answered."""
    given = {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(100), synced(110, "t-0"), ("answer", 110, given), beat(150, "m", 1), ("signalled", 1100, {})]
    ended: tuple[Any, ...] = ("ended", 1200, {"code": 0, "stderr": ""})
    assert not [*leaves(history(*member, ("closed", 1150, {"why": "by the script"}), ended))]
    assert [*leaves(history(*member, ("closed", 1150, {"why": ""}), ended))]


def test_shapes_name_what_a_breach_came_after() -> None:
    """So that an entry about one cause does not match another one."""
    fenced = {"api": "OffsetCommit", "error": 82, "to": ["m", 1]}
    given = {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    fetch = "request", 2500, {"api": "Fetch", "version": 16, "partitions": ["t-0"]}
    member = [joined(100), synced(110, "t-0"), ("answer", 110, given), ("answer", 200, fenced), fetch]
    assert [each.shape for each in reads_its_own(history(*member))] == [
        ("taken away", "OffsetCommit FENCED_INSTANCE_ID")
    ]
    taken = "answer", 1100, {"api": "SyncGroup", "error": 0, "to": ["m", 2], "partitions": []}
    looked_up = "request", 1200, {"api": "ListOffsets", "version": 7, "partitions": ["t-0"]}
    again = [
        joined(100),
        synced(110, "t-0"),
        ("answer", 110, given),
        joined(1090, 2),
        synced(1095, generation=2),
        taken,
    ]
    for more, shape in ((), ("taken away",)), ((looked_up,), ("taken away", "offset looked up")):
        assert [each.shape for each in reads_its_own(history(*again, *more, fetch))] == [shape]
    killed: tuple[Any, ...] = ("signalled", 100, {})
    for text, cause in {
        "stop": (), "reset SyncGroup amid; pass 200; stop": ("reset amid",), "move; stop": ("move",),
        "reset Heartbeat; answer OffsetCommit NOT_COORDINATOR; stop": ("answer NOT_COORDINATOR",),
    }.items():  # fmt: skip
        found = ends_when_stopped(history(killed, ("killed", 10_100, {}), script=text))
        assert [each.shape for each in found] == [("hangs", *cause)]
        lost = comes_back(history(("unsettled", 9000, {"waited_ms": 9000}), script=text))
        assert [each.shape for each in lost] == [("lost", "", *(cause if cause == ("reset amid",) else ()))]


def test_a_client_that_knows_its_new_coordinator_need_not_look_it_up_again() -> None:
    """sarama 1.61.1: its heartbeat found the new coordinator before its commit was refused by the old one."""
    refused = "answer", 200, {"api": "OffsetCommit", "error": 16, "to": ["m", 1]}
    there = "request", 600, {**beat(0, "m", 1)[2], "connection": 2}
    assert not [*finds_its_coordinator(history(joined(100), refused, there))]
    assert [*finds_its_coordinator(history(joined(100), refused, beat(600, "m", 1)))]


def test_a_look_up_that_waits_behind_a_late_answer_was_sent() -> None:
    """librdkafka 2.16.1: its FindCoordinator waited behind a ListOffsets that was answered late."""
    refused = "answer", 200, {"api": "Heartbeat", "error": 16, "to": ["m", 1]}
    late = "request", 150, {"api": "ListOffsets", "version": 7, "connection": 2}
    behind = {"version": 2, "connection": 2, "pipelined": True}
    waited = ("request", 900, {"api": "ListOffsets", **behind}), ("request", 900, {"api": "FindCoordinator", **behind})
    assert not [*finds_its_coordinator(history(joined(100), late, refused, beat(600, "m", 1), *waited))]
    answer = "answer", 160, {"api": "ListOffsets", "connection": 2}
    assert [*finds_its_coordinator(history(joined(100), late, answer, refused, beat(600, "m", 1)))]


def test_a_look_up_behind_a_request_that_is_never_answered_is_never_read() -> None:
    """librdkafka 2.16.1: it sent its FindCoordinator behind a Fetch whose connection was then closed."""
    refused = "answer", 200, {"api": "Heartbeat", "error": 16, "to": ["m", 1]}
    silent = "request", 150, {"api": "Fetch", "version": 16, "connection": 2}
    for closed, breaches in {900: 0, 500: 1}.items():
        closing = "closed", closed, {"connection": 2, "why": ""}
        events = sorted([joined(100), silent, refused, beat(600, "m", 1), closing], key=lambda each: int(each[1]))
        assert len([*finds_its_coordinator(history(*events))]) == breaches
    assert [*finds_its_coordinator(history(joined(100), refused, beat(600, "m", 1), beat(650, "m", 1)))]


def test_members_without_an_assignment_and_groups_that_wait_are_told_apart() -> None:
    other = {"id": "o", "instance": None, "subscription": {"version": 0, "topics": []}}
    what, ms, found = joined(100)
    joins = what, ms, {**found, "members": [*found["members"], other]}
    assert [each.shape for each in assigns_to_everybody(history(joins, synced(110, "t-0")))] == [
        ("member missing", "no topics")
    ]
    waits = "unsettled", 9000, {"waited_ms": 9000, "unsent": []}
    for script, more in {"member reads t,gone; stop": ("missing topic",), "member reads t; stop": ()}.items():
        assert [each.shape for each in comes_back(history(waits, script=script))] == [("lost", "", *more)]
    ended: tuple[Any, ...] = ("ended", 9000, {"code": 1, "stderr": ""})
    for script, more in {"member reads gone; stop": ("missing topic",), "member reads t; stop": ()}.items():
        assert [each.shape for each in ends_when_stopped(history(ended, script=script))] == [
            ("ended", "exit code 1", *more)
        ]


def fetches(ms: int, offset: int) -> tuple[Any, ...]:
    return "request", ms, {"api": "Fetch", "version": 17, "partitions": ["t-0"], "offsets": [offset]}


def test_an_answer_to_an_earlier_fetch_is_used_if_it_begins_at_the_committed_offset() -> None:
    """Java 3.9.2: its Fetch waits for records while the client joins anew, and is answered after OffsetFetch."""
    given = "answer", 300, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(250), synced(260, "t-0"), given, ("answer", 310, {"api": "OffsetFetch", "committed": {"t-0": 10}})]
    answer = "answer", 600, {"api": "Fetch", "error": 0, "records": 70}
    assert not [*starts_at_the_committed_offset(history(fetches(100, 10), *member, answer, fetches(601, 11)))]
    assert [*starts_at_the_committed_offset(history(fetches(100, 9), *member, answer, fetches(601, 11)))]


def test_a_fetch_that_waits_behind_another_one_was_sent_before_the_committed_offset_was_read() -> None:
    """aiokafka 0.14.0: its Fetch was read 200 ms after the offset, and waited behind one for 500 ms."""
    given = "answer", 300, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(250), synced(260, "t-0"), given, ("answer", 310, {"api": "OffsetFetch", "committed": {"t-0": 7}})]
    what, ms, found = fetches(600, 10)
    for fetch, breaches in {(what, ms, True): 0, (what, ms, False): 1}.items():
        events = fetches(100, 10), *member, (*fetch[:2], {**found, "connection": 2, "pipelined": fetch[2]})
        before = "request", 90, {**found, "connection": 2}
        assert len([*starts_at_the_committed_offset(history(before, *events))]) == breaches


def commits(ms: int, offset: int) -> tuple[Any, ...]:
    return "request", ms, {"api": "OffsetCommit", "version": 7, "member": "m", "generation": 1, "partitions": ["t-0"],
                           "offsets": [offset]}  # fmt: skip


def test_a_position_may_be_committed_whatever_the_client_has_it_from() -> None:
    """Java 3.9.2 commits what it looked up before its first Fetch; another process may have read what comes next."""
    sources: list[tuple[Any, ...]] = [
        ("answer", 100, {"api": "Fetch", "error": 0, "ends": {"t-0": 12}}),
        ("answer", 100, {"api": "OffsetFetch", "committed": {"t-0": 12, "t-1": -1}}),
        ("answer", 100, {"api": "ListOffsets", "offsets": {"t-0": 12}}),
        fetches(100, 12),
    ]
    for source in sources:
        assert not [*commits_what_it_read(history(source, commits(110, 12), commits(120, 3)))]
        (found,) = commits_what_it_read(history(source, commits(110, 13)))
        assert (found.expected, found.observed, found.shape) == ("at most 12", "offset 13", ("ahead",))
    assert not [*commits_what_it_read(history(commits(110, 0)))]
    assert [*commits_what_it_read(history(commits(110, 1), sources[0]))]


def claims(ms: int, generation: int, *owned: str, member: str | None = "m") -> tuple[Any, ...]:
    subscription = {"version": 3, "topics": ["t"], "owned": [*owned], "generation": generation}
    who = {} if member is None else {"member": member}
    return ("request", ms, {"api": "JoinGroup", "version": 5, **who, "protocols": [["cooperative-sticky", ""]],
                            "subscriptions": [subscription]})  # fmt: skip


def given(ms: int, *partitions: str, error: int = 0, generation: int = 1) -> tuple[Any, ...]:
    return "answer", ms, {"api": "SyncGroup", "error": error, "to": ["m", generation], "partitions": [*partitions]}


def test_a_member_whose_sync_failed_may_claim_the_generation_of_its_last_assignment() -> None:
    """librdkafka 2.16.1: the leader had joined again when the SyncGroup of a new member came, which was refused."""
    failed = joined(100, 2), given(110, error=27, generation=2)
    for generation, breaches in {-1: 0, 2: 0, 1: 1}.items():
        assert len([*claims_what_it_owns(history(*failed, claims(120, generation)))]) == breaches
    before = joined(10), given(20, "t-0")
    twice = *before, *failed, claims(120, 1, "t-0"), joined(130, 3), given(140, error=27, generation=3)
    for generation, breaches in {-1: 1, 3: 0, 2: 1, 1: 0}.items():
        assert len([*claims_what_it_owns(history(*twice, claims(150, generation, "t-0")))]) == breaches


def test_a_history_that_begins_amid_a_membership_does_not_say_what_the_member_has() -> None:
    """A member that was there before the proxy: its first SyncGroup there fails, and it claims what it had before."""
    failed = joined(100, 5), given(110, error=27, generation=5)
    assert not [*claims_what_it_owns(history(claims(90, 4, member=None), *failed, claims(120, 4, "t-0")))]
    assert [*claims_what_it_owns(history(claims(90, -1, member=""), *failed, claims(120, 4, "t-0")))]
    complete = joined(100, 5), given(110, "t-0", generation=5)
    assert [*claims_what_it_owns(history(claims(90, 4, member=None), *complete, claims(220, 5)))]


def test_a_client_that_is_lost_is_so_once() -> None:
    """sarama 1.61.1: lost since a topic is missing, it was called lost for a later error of JoinGroup too."""

    def unsettled(ms: int) -> tuple[Any, ...]:
        return "unsettled", ms, {"waited_ms": 1000, "unsent": []}

    error = "answer", 1500, {"api": "JoinGroup", "error": 16}
    settled = "settled", 1800, {"waited_ms": 800, "unsent": []}
    restarted: tuple[Any, ...] = ("restarted", 1800, {})
    assert [each.shape for each in comes_back(history(unsettled(1000), error, unsettled(2500)))] == [("lost", "")]
    for between in settled, restarted:
        assert len([*comes_back(history(unsettled(1000), between, unsettled(3500)))]) == 2
