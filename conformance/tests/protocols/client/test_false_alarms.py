"""What released clients do, and no law forbids: traffic that was once taken for a breach."""

from dataclasses import replace
from typing import Any

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op
from kipcheck.conformance.core.values.verdict import Violation
from kipcheck.conformance.protocols.client.consequences import after_a_fault
from kipcheck.conformance.protocols.client.invariants.commits import (
    commits_before_it_leaves,
    commits_in_time,
    commits_its_position,
)
from kipcheck.conformance.protocols.client.invariants.connections import (
    asks_what_is_offered,
    does_not_spin,
    paces_itself,
)
from kipcheck.conformance.protocols.client.invariants.consumer_groups import leaves_with_its_epoch
from kipcheck.conformance.protocols.client.invariants.identity import (
    joins_with_its_id,
    keeps_its_settings,
    names_its_topics,
    names_itself,
)
from kipcheck.conformance.protocols.client.invariants.leading import (
    assigns_each_partition_once,
    assigns_to_everybody,
    leads_other_clients,
)
from kipcheck.conformance.protocols.client.invariants.leaving import ends_with_its_leave, stays
from kipcheck.conformance.protocols.client.invariants.membership import (
    beats,
    comes_back,
    comes_back_soon,
    ends_when_stopped,
    finds_its_coordinator,
    leaves,
    stops_when_fenced,
    syncs,
)
from kipcheck.conformance.protocols.client.invariants.pace import (
    asks_for_offsets_again,
    beats_at_its_interval,
    joins_once,
    keeps_its_coordinator,
    pauses_before_it_repeats,
    waits_for_the_others,
)
from kipcheck.conformance.protocols.client.invariants.partitions import (
    claims_what_it_owns,
    reads_its_own,
    reads_what_it_is_assigned,
    rejoins_after_revoking,
    stops_reading_to_join,
)
from kipcheck.conformance.protocols.client.invariants.positions import (
    commits_what_it_read,
    reads_in_order,
    reads_on,
    starts_at_the_committed_offset,
    waits_for_offsets,
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


def rejoins(ms: int, *assignors: str) -> tuple[Any, ...]:
    offered = [[each, ""] for each in assignors]
    return "request", ms, {"api": "JoinGroup", "version": 5, "member": "m", "protocols": offered, "subscriptions": []}


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


def test_an_error_of_the_generation_does_not_give_back_an_id_that_is_unknown() -> None:
    """sarama 1.61.1: its commit was answered ILLEGAL_GENERATION after its heartbeat was answered UNKNOWN_MEMBER_ID."""
    errors = [
        refuses(ms, api, error, ["m", 1]) for ms, api, error in ((900, "Heartbeat", 25), (1200, "OffsetCommit", 22))
    ]
    (found,) = joins_with_its_id(history(*MEMBER, *errors, rejoins(1500)))
    assert found.shape == ("an id", "UNKNOWN_MEMBER_ID")


def test_a_static_member_that_does_not_poll_in_time_forgets_its_id() -> None:
    """librdkafka 2.16.1, as Java in maybeLeaveGroup: it is none any more, and sends no LeaveGroup."""
    asks = {**rejoins(0)[2], "member": "", "instance": "i", "session_ms": 3000}
    traffic = ("request", 90, asks), joined(100), ("request", 2900, asks)
    for pause_ms, is_broken in ((6000, False), (500, True)):
        begins = "launched", 0, {"max_poll_ms": 3000, "pause_ms": pause_ms}
        assert bool([*joins_with_its_id(history(begins, *traffic))]) is is_broken


def test_a_client_that_just_lost_its_connection_need_not_leave() -> None:
    """Java 4.4.0: it had found its coordinator again, and was not connected to it yet, when it was closed."""
    given = {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(100), synced(110, "t-0"), ("answer", 110, given), beat(150, "m", 1)]
    end: list[tuple[Any, ...]] = [("signalled", 1100, {}), ("ended", 1200, {"code": 0, "stderr": ""})]
    assert [*leaves(history(*member, *end))]
    assert not [*leaves(history(*member, ("closed", 900, {"why": "by the script"}), *end))]
    assert [*leaves(history(*member, ("closed", 900, {"why": "by the script"}), beat(950, "m", 1), *end))]
    assert [*leaves(history(*member, ("closed", 90, {"why": "by the script"}), *end))]


def test_a_client_whose_session_is_over_need_not_leave() -> None:
    """kafka-go 0.4.51: its JoinGroup was refused, and it was closed 3.4 s later, in its back-off of 5 s."""
    member = [joined(100), synced(110, "t-0"), ("answer", 110, GIVEN[2])]
    joins = "request", 400, {**rejoins(0)[2], "session_ms": 3000}
    loading = "answer", 410, {"api": "JoinGroup", "error": 14, "to": ["m", -1], "member": "", "generation": -1}
    for ms, breaches in {3300: 1, 3500: 0}.items():
        end: list[tuple[Any, ...]] = [("signalled", ms, {}), ("ended", ms + 10, {"code": 0, "stderr": ""})]
        assert len([*leaves(history(*member, joins, loading, *end))]) == breaches, ms
        assert [*leaves(history(*member, joins, loading, beat(2000, "m", 1), *end))]


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
        lost = comes_back_soon(history(("unsettled", 9000, {"waited_ms": 9000}), script=text))
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
        assert [each.shape for each in comes_back_soon(history(waits, script=script))] == [("lost", "", *more)]
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


def test_a_log_that_was_cut_off_below_the_committed_offset_is_read_from_there() -> None:
    """franz-go 1.22.2 asks for the end of the epoch of a committed offset before it reads."""
    given = "answer", 300, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(250), synced(260, "t-0"), given, ("answer", 310, {"api": "OffsetFetch", "committed": {"t-0": 10}})]
    ends = "answer", 320, {"api": "OffsetForLeaderEpoch", "error": 0, "offsets": {"t-0": 7}}
    assert not [*starts_at_the_committed_offset(history(*member, ends, fetches(601, 7)))]
    assert [*starts_at_the_committed_offset(history(*member, ends, fetches(601, 6)))]


def test_a_fetch_that_waits_behind_another_one_was_sent_before_the_committed_offset_was_read() -> None:
    """aiokafka 0.14.0: its Fetch was read 200 ms after the offset, and waited behind one for 500 ms."""
    given = "answer", 300, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(250), synced(260, "t-0"), given, ("answer", 310, {"api": "OffsetFetch", "committed": {"t-0": 7}})]
    what, ms, found = fetches(600, 10)
    for fetch, breaches in {(what, ms, True): 0, (what, ms, False): 1}.items():
        events = fetches(100, 10), *member, (*fetch[:2], {**found, "connection": 2, "pipelined": fetch[2]})
        before = "request", 90, {**found, "connection": 2}
        assert len([*starts_at_the_committed_offset(history(before, *events))]) == breaches


def test_a_fetch_of_no_partitions_ends_a_session_and_reads_nothing() -> None:
    """franz-go 1.22.2: one that is stopped while its JoinGroup is refused forgets its fetch sessions (KIP-227)."""
    again = rejoins(500, "range")
    ends = "request", 900, {"api": "Fetch", "version": 18, "partitions": []}
    reads = "request", 900, {"api": "Fetch", "version": 18, "partitions": ["t-0"]}
    assert not [*stops_reading_to_join(history(*MEMBER, again, ends))]
    assert [*stops_reading_to_join(history(*MEMBER, again, reads))]


def test_the_first_fetch_is_named_also_if_it_came_too_soon_to_be_certain() -> None:
    """afkak 21.5.0 begins one record late, 10 ms after the answer, and goes on from there."""
    given = "answer", 300, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(250), synced(260, "t-0"), given, ("answer", 310, {"api": "OffsetFetch", "committed": {"t-0": 7}})]
    (late,) = starts_at_the_committed_offset(history(*member, fetches(320, 8), fetches(601, 10)))
    assert late.why == "the client begins to read t-0 at 8, and goes on at 10; the committed offset is 7"
    assert not [*starts_at_the_committed_offset(history(*member, fetches(320, 8), fetches(601, 7)))]


def commits(ms: int, offset: int) -> tuple[Any, ...]:
    return "request", ms, {"api": "OffsetCommit", "version": 7, "member": "m", "generation": 1, "partitions": ["t-0"],
                           "offsets": [offset]}  # fmt: skip


def test_a_user_that_commits_late_may_say_where_the_client_begins() -> None:
    """sarama 1.61.1: an offset that the user commits after OffsetFetch and before the first Fetch is its position."""
    given = "answer", 300, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]}
    member = [joined(250), synced(260, "t-0"), given, ("answer", 310, {"api": "OffsetFetch", "committed": {"t-0": 10}})]
    for mode, offset, breaches in (("late", 12, 0), ("late", 9, 1), ("auto", 12, 1)):
        late = commits(320, offset), ("answer", 325, {"api": "OffsetCommit", "error": 0})
        launched: tuple[Any, ...] = "launched", 0, {"commit": mode}
        assert (
            len([*starts_at_the_committed_offset(history(launched, *member, *late, fetches(601, offset)))]) == breaches
        )


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


def test_a_position_may_go_back_where_an_answer_takes_it_back() -> None:
    """Only an OffsetFetch that is not answered yet does not: kafka-python 2.2.8 read all from the beginning then."""
    read = "answer", 100, {"api": "Fetch", "error": 0, "ends": {"t-0": 12}}
    accepted = read, commits(110, 12), ("answer", 111, {"api": "OffsetCommit", "error": 0, "to": ["m", 1]})
    (found,) = reads_on(history(*accepted, fetches(400, 10)))
    assert (found.expected, found.observed, found.shape) == ("offset 12 or later", "offset 10", ("back",))
    reasons: list[tuple[Any, ...]] = [
        ("answer", 300, {"api": "OffsetFetch", "committed": {"t-0": 10}}),
        ("answer", 300, {"api": "Fetch", "error": 1}),
        ("answer", 300, {"api": "OffsetForLeaderEpoch", "error": 0}),
        ("restarted", 300, {}),
    ]
    for reason in reasons:
        assert not [*reads_on(history(*accepted, reason, fetches(400, 10)))]
    # aiokafka 0.14.0 asks for one partition at a time: the answer to another one says nothing of this one.
    asked = [each for at, name, error in ((300, "t-0", 14), (310, "t-1", 0))
             for each in (("request", at, {"api": "OffsetFetch", "version": 3, "partitions": [name]}),
                          ("answer", at + 1, {"api": "OffsetFetch", "error": error}))]  # fmt: skip
    (found,) = reads_on(history(*accepted, *asked, fetches(400, 10)))
    assert found.shape == ("back", "OffsetFetch refused")
    # kafka-python 3.0.12: an automatic commit while it looked up where to begin after OFFSET_OUT_OF_RANGE.
    again = commits(320, 12), ("answer", 321, {"api": "OffsetCommit", "error": 0, "to": ["m", 1]})
    assert not [*reads_on(history(*accepted, reasons[1], *again, fetches(600, 0)))]
    # Java 4.4.0: its program held records over a rebalance, and committed them when the client knew where to begin.
    assert not [*reads_on(history(*accepted, reasons[0], *again, fetches(600, 10)))]
    refused = "answer", 111, {"api": "OffsetCommit", "error": 27, "to": ["m", 1]}
    is_refused = read, commits(110, 12), refused, fetches(400, 10)
    for events in ((*accepted, fetches(150, 10)), (*accepted, fetches(400, 12)), is_refused):
        assert not [*reads_on(history(*events))]


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


def test_a_member_that_was_not_told_where_to_begin_may_give_its_partitions_up() -> None:
    """sarama 1.61.1: a claim whose ListOffsets is refused twice, or whose Fetch is out of range, ends the session, and
    Consume joins anew."""
    before = joined(10), given(20, "t-0")
    read: tuple[Any, ...] = ("request", 700, {"api": "Fetch", "version": 11, "partitions": ["t-0"]})
    for refused in ("answer", 100, {"api": "ListOffsets", "error": 78}), ("answer", 100, {"api": "Fetch", "error": 1}):
        assert not [*claims_what_it_owns(history(*before, refused, claims(120, 1)))]
        assert [*claims_what_it_owns(history(*before, refused, read, claims(800, 1)))]
    assert [*claims_what_it_owns(history(*before, ("answer", 100, {"api": "Fetch", "error": 6}), claims(800, 1)))]
    assert [*claims_what_it_owns(history(*before, claims(800, 1)))]


def test_a_sync_group_behind_a_fetch_may_be_lost_unread() -> None:
    """sarama 1.61.1: its SyncGroup waited behind a Fetch on a connection that was then closed; its session ended."""
    before = joined(10), given(20, "t-0")
    again = claims(100, 1, "t-0"), joined(110, 2)
    closed = "closed", 600, {"why": "by the script"}
    assert not [*claims_what_it_owns(history(*before, *again, closed, claims(620, 1)))]
    assert [*claims_what_it_owns(history(*before, *again, claims(620, 1)))]
    assert [*claims_what_it_owns(history(*before, *again, given(120, "t-0"), closed, claims(620, 2)))]


def test_a_member_whose_request_to_its_group_failed_may_give_its_partitions_up() -> None:
    """franz-go 1.22.2: it repeats no FindCoordinator, and no JoinGroup four times, calls OnPartitionsLost, and claims
    nothing."""
    before = joined(10), given(20, "t-0")
    asked = "request", 100, {"api": "FindCoordinator", "version": 4, "connection": 7}
    answer = "answer", 110, {"api": "FindCoordinator", "error": 0, "connection": 7}
    closed = "closed", 500, {"connection": 7, "why": "by the script"}

    def broken(*events: tuple[Any, ...]) -> list[tuple[str, ...]]:
        return [each.shape for each in claims_what_it_owns(history(*before, *events))]

    assert not broken(asked, closed, claims(800, 1))
    assert not broken(claims(4000, -1, member="")), (
        "librdkafka 2.16.1: silent for its session, it joins as a new member"
    )
    for error, shapes in ((14, []), (15, []), (16, []), (27, [("owned", "too few")])):
        refused: tuple[Any, ...] = ("answer", 110, {"api": "Heartbeat", "error": error})
        assert broken(refused, claims(800, 1)) == shapes, error
    assert broken(asked, answer, closed, claims(800, 1)) == [("owned", "too few")], "nothing failed"
    cut_off = claims(100, 1, "t-0"), (*joined(110, 2)[:2], {**joined(110, 2)[2], "connection": 7})
    assert not broken(*cut_off, ("closed", 111, {"connection": 7, "why": "by the script"}), claims(800, 1))
    assert broken(asked, claims(400, 1), closed) == [("owned", "too few")], "not yet"
    assert not broken(asked, closed, fetches(510, 3), claims(800, 1)), "a fetch of another thread"
    assert broken(asked, closed, fetches(700, 3), claims(800, 1)) == [("owned", "too few")], "it reads on"
    again = claims(800, 1), joined(810, 2), given(820, "t-0", generation=2), claims(1500, 2)
    assert broken(asked, closed, *again) == [("owned", "too few")], "it was given partitions since"
    assert broken(asked, closed, claims(800, 1, "t-1")) == [("owned", "too many")], "it claims some"


def test_a_client_that_is_lost_is_so_once() -> None:
    """sarama 1.61.1: lost since a topic is missing, it was called lost for a later error of JoinGroup too."""

    def unsettled(ms: int) -> tuple[Any, ...]:
        return "unsettled", ms, {"waited_ms": 1000, "unsent": []}

    error = "answer", 1500, {"api": "JoinGroup", "error": 16}
    settled = "settled", 1800, {"waited_ms": 800, "unsent": []}
    restarted: tuple[Any, ...] = ("restarted", 1800, {})
    assert [each.shape for each in comes_back_soon(history(unsettled(1000), error, unsettled(2500)))] == [("lost", "")]
    for between in settled, restarted:
        assert len([*comes_back_soon(history(unsettled(1000), between, unsettled(3500)))]) == 2


def test_a_client_that_was_never_disturbed_did_not_come_back_late() -> None:
    """platformatic-kafka 1.35.0: a step awaits a heartbeat for 10 s; it was called back after 10 s."""
    for unsent, breaches in {(): 1, ("Heartbeat",): 0}.items():
        settled = "settled", 10100, {"waited_ms": 10002, "unsent": [*unsent]}
        assert len([*comes_back_soon(history(joined(10), GIVEN, settled))]) == breaches
    lasts = "unsettled", 10100, {"waited_ms": 10002, "unsent": ["Heartbeat"]}
    assert [*comes_back_soon(history(joined(10), GIVEN, lasts))]


GIVEN: tuple[Any, ...] = ("answer", 110, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": ["t-0"]})
END: list[tuple[Any, ...]] = [("signalled", 5000, {}), ("ended", 5010, {"code": 0, "stderr": ""})]


def refuses(ms: int, api: str, error: int, to: list[Any]) -> tuple[Any, ...]:
    return "answer", ms, {"api": api, "error": error, "to": to, "connection": 2, "member": "", "generation": -1}


def test_a_join_that_is_answered_unknown_member_id_ends_the_membership() -> None:
    """kafka-go 0.4.51: it closed the connection 2 ms later, and was called a member that ended without LeaveGroup."""
    member = [joined(100), synced(110, "t-0"), GIVEN, beat(4400, "m", 1)]
    again = "request", 4500, {**rejoins(0)[2], "connection": 2}
    read = "closed", 4512, {"connection": 2, "why": ""}
    for api, error, to in (
        ("JoinGroup", 25, ["m", -1]), ("JoinGroup", 82, ["m", -1]), ("JoinGroup", 22, ["m", -1]),
        ("SyncGroup", 25, ["m", 1]), ("SyncGroup", 22, ["m", 1]), ("Heartbeat", 25, ["m", 1]),
        ("Heartbeat", 82, ["m", 1]), ("OffsetCommit", 22, ["m", 1]), ("OffsetCommit", 25, ["m", 0]),
        ("LeaveGroup", 25, ["m", -1]),
    ):  # fmt: skip
        over = refuses(4510, api, error, to)
        for more in (), (read,):
            assert not [*leaves(history(*member, again, over, *more, *END))], (api, error, more)
    for api, error, to in (
        ("JoinGroup", 15, ["m", -1]), ("JoinGroup", 25, ["n", -1]), ("Heartbeat", 27, ["m", 1]),
        ("Heartbeat", 16, ["m", 1]), ("OffsetCommit", 22, ["m", 0]), ("OffsetCommit", 25, ["n", 1]),
    ):  # fmt: skip
        assert [*leaves(history(*member, again, refuses(4510, api, error, to), *END))], (api, error)


def test_an_error_to_a_heartbeat_of_kip_848_ends_the_membership() -> None:
    named = {"api": "ConsumerGroupHeartbeat", "member": "m"}
    sent: list[tuple[Any, ...]] = [
        ("request", 100, {**named, "version": 1, "generation": 0}),
        ("answer", 110, {**named, "generation": 1, "interval_ms": 300, "partitions": ["t-0"], "to": ["m", 0]}),
        ("request", 400, {**named, "version": 1, "generation": 1}),
    ]
    for error, breaches in {0: 1, 16: 1, 25: 0, 69: 0, 82: 0, 110: 0}.items():
        answer = "answer", 410, {**named, "generation": 1 if not error else 0, "error": error, "to": ["m", 1]}
        assert len([*leaves_with_its_epoch(history(*sent, answer, *END))]) == breaches, error
    # Java 4.4.0: its last commit is answered late, and a heartbeat before its leave is fenced.
    ok = "answer", 410, {**named, "generation": 1, "error": 0, "to": ["m", 1]}
    closing = [("signalled", 4500, {}), ("request", 4600, {**named, "version": 1, "generation": 1})]
    for error, breaches in {0: 1, 110: 0}.items():
        answer = "answer", 4610, {**named, "generation": 1 if not error else 0, "error": error, "to": ["m", 1]}
        ended: tuple[Any, ...] = ("ended", 5000, {"code": 143, "stderr": ""})
        assert len([*leaves_with_its_epoch(history(*sent, ok, *closing, answer, ended))]) == breaches, error


def test_what_a_client_need_not_have_read_forbids_nothing_and_demands_nothing() -> None:
    """A connection ends 2 ms after UNKNOWN_MEMBER_ID: the client may go on as a member, and may also not."""
    member = [joined(100), synced(110, "t-0"), GIVEN]
    over, closed = refuses(200, "Heartbeat", 25, ["m", 1]), ("closed", 202, {"connection": 2, "why": ""})
    assert [*stops_when_fenced(history(*member, over, beat(1300, "m", 1)))]
    assert not [*stops_when_fenced(history(*member, over, closed, beat(1300, "m", 1)))]
    silent: tuple[Any, ...] = ("opened", 4400, {})
    assert not [*beats(history(*member, over, closed, silent))]
    assert [*beats(history(*member, over, closed, beat(1300, "m", 1), silent))], "it goes on as a member"
    assert [*leaves(history(*member, over, closed, beat(2100, "m", 1), *END))]


def test_a_client_that_gave_its_membership_up_owes_no_heartbeat_before_it_joins_again() -> None:
    """kafka-go 0.4.51: a LeaveGroup that is refused, or is not answered, and a back-off of 5 s before a new join."""
    member = [joined(100), synced(110, "t-0"), GIVEN, *beating(400)]
    leave = "request", 500, {"api": "LeaveGroup", "version": 0, "member": "m"}
    silent: tuple[Any, ...] = ("opened", 5600, {})
    assert [*beats(history(*member, silent))]
    refused = refuses(510, "LeaveGroup", 16, ["m", -1])
    for given_up in ([leave], [leave, refused], [("request", 500, {**rejoins(0)[2], "member": ""})]):
        assert not [*beats(history(*member, *given_up, silent))]
    assert not [*beats(history(*member, rejoins(500), ("closed", 510, {"why": "by the script"}), silent))]
    again = joined(520, 2), ("answer", 530, {**GIVEN[2], "to": ["m", 2]})
    assert [*beats(history(*member, rejoins(500), *again, silent))], "it is a stable member again"
    told = "answer", 450, {"api": "Heartbeat", "error": 27, "to": ["m", 1]}
    assert [*beats(history(*member, told, silent))], "its session ends though the group rebalances"


def waits(ms: int, *attempts: int, api: str = "FindCoordinator", **more: int) -> list[tuple[Any, ...]]:
    """A client that is refused at 100 ms, and is not back so long after that; it sends requests meanwhile."""
    sent = {"api": api, "version": 1, "member": "m", "generation": 1, "session_ms": 3000}
    return [
        ("launched", 0, more), ("answer", 100, {"api": "Heartbeat", "error": 16, "to": ["m", 1]}),
        *(("request", 100 + each, sent) for each in attempts),
        ("unsettled", 100 + ms, {"waited_ms": ms, "unsent": []}),
    ]  # fmt: skip


def test_a_client_does_not_return_only_if_it_was_watched_for_a_session_and_ten_of_its_intervals() -> None:
    """kafka-go 0.4.51 tries every 5 s, as it documents; it was said not to return after 10 s."""
    slow, fast = waits(10_000, 5000, 9990), waits(10_000, *range(500, 10_000, 500))
    (shown,) = comes_back_soon(history(*slow))
    assert "has not come back within 10000 ms" in shown.why and shown.shape == ("lost", "Heartbeat 16")
    assert not [*comes_back(history(*slow))]
    assert [each.shape for each in comes_back(history(*fast))] == [shown.shape]
    assert not [*comes_back_soon(history(*fast))], "one breach, which is one failure"
    assert [*comes_back(history(*waits(54_000, *range(5000, 54_000, 5000))))]
    # A back-off that grows, and one that is silent, show no interval that has passed ten times.
    for attempts in ([100, 200, 400, 800, 1600, 3200, 6400], []):
        assert not [*comes_back(history(*waits(10_000, *attempts)))]
        assert [*comes_back_soon(history(*waits(10_000, *attempts)))]
    beating = waits(10_000, *range(300, 10_000, 300), api="Heartbeat")
    assert [*comes_back(history(*beating))], "it goes on, and does not try"


def test_the_back_off_that_a_user_states_is_awaited() -> None:
    fast = waits(10_000, *range(500, 10_000, 500), patience_ms=5000)
    assert not [*comes_back(history(*fast))] and [*comes_back_soon(history(*fast))]
    assert [*comes_back(history(*waits(54_000, patience_ms=5000)))]
    assert not [*comes_back(history(*waits(52_000, patience_ms=5000)))]
    for waited_ms, late in {14_900: 0, 15_100: 1}.items():
        back = ("launched", 0, {"patience_ms": 5000}), ("settled", 20_000, {"waited_ms": waited_ms, "unsent": []})
        assert len([*comes_back_soon(history(*back))]) == late


def test_the_time_in_which_an_answer_is_held_back_is_none_of_the_client() -> None:
    """kafka-go 0.4.51 was back 8.7 s after a rebalance, but for SyncGroup, which the broker answered 1.5 s later."""
    back = ("settled", 20_000, {"waited_ms": 11_400, "unsent": []})
    for script, late in {
        "late SyncGroup 1500": 0,
        "silent SyncGroup 1500": 0,
        "late SyncGroup 400": 1,
        "move": 1,
    }.items():
        assert len([*comes_back_soon(history(back, script=script))]) == late, script


def requests(number: int, connections: int, error: int | None, api: str = "ApiVersions") -> list[tuple[Any, ...]]:
    """Within a second. ``error``: with which each is answered; None: its connection is closed instead."""
    found: list[tuple[Any, ...]] = []
    for at in range(number):
        more = {"connection": at % connections, "api": api, "version": 0, "digest": 7}
        ms = at * 900 // number
        found.append(("request", ms, more))
        found.append(("closed", ms, {**more, "why": ""}) if error is None else ("answer", ms, {**more, "error": error}))
    return found


def test_what_is_sent_behind_a_request_that_is_never_answered_is_no_silence() -> None:
    """kafka-node 5.0.0: it sent OffsetCommit behind its Heartbeat, 1.3 s later, and joined again after 2 s more."""
    member = [joined(100), synced(110, "t-0"), GIVEN, beat(400, "m", 1)]
    closed = "closed", 1900, {"connection": 1, "why": "by the script"}
    commit = [commits(3710, 0), ("signalled", 3720, {})]
    assert not [*beats(history(*member, closed, *commit))]
    assert [each.why for each in beats(history(*member, closed, commits(5000, 0)))] == [
        "a stable member sent nothing to its group for 3100 ms"
    ]
    answer = "answer", 410, {"api": "Heartbeat", "error": 0, "to": ["m", 1]}
    assert [*beats(history(*member, answer, closed, *commit))], "it was answered"
    other = "request", 450, {"api": "Fetch", "version": 2, "connection": 7}
    elsewhere = "closed", 1900, {"connection": 7, "why": "by the script"}
    assert [*beats(history(*member, answer, other, elsewhere, *commit))], "not the connection of its group"


def test_commits_right_before_a_member_joins_again_or_leaves_do_not_show_that_it_goes_on() -> None:
    """kafka-node 5.0.0: 1 s after ILLEGAL_GENERATION it commits with its old generation, and then joins again."""
    over = [joined(100), synced(110, "t-0"), GIVEN, refuses(200, "Heartbeat", 22, ["m", 1])]
    commit, refused = commits(1210, 0), refuses(2700, "OffsetCommit", 22, ["m", 1])
    leave = "request", 1220, {"api": "LeaveGroup", "version": 0, "member": "m"}
    for last in ([rejoins(1220)], [leave], [commits(1220, 0), rejoins(1230)], [refused, rejoins(2710)]):
        assert not [*stops_when_fenced(history(*over, commit, *last))]
    for more in ([], [beat(1220, "m", 1), rejoins(1230)], [rejoins(2300)], [refused, rejoins(3800)]):
        apis = [each.shape[0] for each in stops_when_fenced(history(*over, commit, *more))]
        assert apis == ["OffsetCommit", "Heartbeat"][: 2 if len(more) == 2 and more[0][0] == "request" else 1]
    often = [commits(ms, 0) for ms in (1210, 2300, 3400)]
    assert len([*stops_when_fenced(history(*over, *often, rejoins(3410)))]) == 2


def test_a_commit_right_before_a_member_joins_again_does_not_show_that_it_skips_the_sync() -> None:
    """kafka-node 5.0.0: its SyncGroup is refused; it backs off 3.2 s, commits, and joins again at once."""
    failed = [joined(100), synced(110, "t-0"), refuses(120, "SyncGroup", 22, ["m", 1])]
    assert not [*syncs(history(*failed, commits(3400, 0), rejoins(3410)))]
    for goes_on in ([commits(3400, 0)], [commits(3400, 0), beat(3410, "m", 1), rejoins(3420)], [beat(3400, "m", 1)]):
        assert [each.shape for each in syncs(history(*failed, *goes_on))] == [("no SyncGroup",)]


def broken(*events: tuple[Any, ...]) -> list[Violation]:
    return [*paces_itself(history(*events)), *does_not_spin(history(*events))]


def test_connections_that_each_ask_once_repeat_nothing() -> None:
    """kafka-go 0.4.51: 100 partitions, with a connection and an ApiVersions for each; all were answered."""
    assert not broken(*requests(82, 82, 0))
    assert not broken(*requests(300, 300, 0)) and not broken(*requests(300, 300, 0, api="Metadata"))
    for error in 15, None:
        assert [each.shape for each in broken(*requests(82, 82, error))] == [("ApiVersions",)]


def test_requests_of_each_partition_that_fail_in_turns_with_metadata_are_a_busy_loop() -> None:
    """librdkafka 2.2.0: Metadata, then OffsetForLeaderEpoch of each of four partitions, which is refused, and so on."""
    events = []
    for at in range(70):
        for digest in range(4):
            about = {"api": "OffsetForLeaderEpoch", "connection": 1}
            events += [("request", at * 12, {**about, "version": 2, "digest": digest}),
                       ("answer", at * 12, {**about, "error": 74})]  # fmt: skip
    assert [each.shape for each in does_not_spin(history(*events))] == [("OffsetForLeaderEpoch",)]
    answered = [(*each[:2], {**each[2], "error": 0}) if each[0] == "answer" else each for each in events]
    assert not [*does_not_spin(history(*answered))], "each partition has its own"


def test_each_reader_of_a_partition_may_ask_once_though_the_others_were_refused() -> None:
    """kafka-go 0.4.51: 100 partitions with a reader each, 63 of which were refused Metadata; none had asked before."""
    begins: list[tuple[Any, ...]] = [
        joined(0), ("answer", 0, {**GIVEN[2], "partitions": [f"t-{each}" for each in range(100)]}),
    ]  # fmt: skip
    for connections, breaches in {64: 0, 4: 1, 1: 1}.items():
        assert len(broken(*begins, *requests(64, connections, 29, "Metadata"))) == breaches, connections
    (found,) = broken(*begins, *requests(180, 180, 29, "Metadata"))
    assert found.shape == ("Metadata",) and found.observed == "80", "it has not so many partitions"
    few = joined(0), GIVEN
    assert broken(*few, *requests(64, 64, 29, "Metadata")) and broken(*begins, *requests(64, 64, 15, "FindCoordinator"))


def test_what_a_rebalance_refuses_is_repeated_for_no_disturbance() -> None:
    """kafkajs 2.2.4: a heartbeat for each of 100 partitions; one failure had a name for each disturbance before it."""
    for error, shape in {27: ("Heartbeat",), 16: ("Heartbeat", "together")}.items():
        events = requests(82, 1, error, api="Heartbeat")
        (found,) = paces_itself(history(*events, script="together JoinGroup; rebalance; stop"))
        assert found.shape == shape


def test_a_join_that_succeeds_is_repeated_because_of_what_fails_after_it() -> None:
    """librdkafka 2.16.1 joins again at once when SyncGroup is refused; each generation is another SyncGroup."""

    def loop(number: int, error: int) -> list[tuple[Any, ...]]:
        found = []
        for at in range(number):
            ms = at * 900 // number
            join = {"api": "JoinGroup", "version": 5, "digest": 7}
            sync = {"api": "SyncGroup", "version": 3, "digest": at, "generation": at, "member": "m"}
            found += [("request", ms, join), joined(ms, at), ("request", ms, sync)]
            found.append(("answer", ms, {"api": "SyncGroup", "error": error, "to": ["m", at], "partitions": []}))
        return found

    refused = "answer", 0, {"api": "SyncGroup", "error": 30, "to": ["m", 0], "partitions": []}
    assert [each.shape for each in broken(refused, *loop(40, 30))] == [("JoinGroup",)]
    assert not broken(*loop(40, 0))


def test_a_client_that_spins_on_answers_without_an_error_still_spins() -> None:
    assert not broken(*requests(82, 1, 0, api="Fetch"))
    assert [each.shape for each in broken(*requests(300, 1, 0, api="Fetch"))] == [("Fetch",)]
    assert [each.shape for each in broken(*requests(300, 300, 0, api="FindCoordinator"))] == [("FindCoordinator",)]
    assert len(broken(*requests(300, 300, None))) == 1, "it spins, which is not said twice"


def test_a_version_that_is_not_served_breaks_a_law_whether_or_not_the_client_asked() -> None:
    """kafka-go 0.4.47 sends JoinGroup 1 to a broker of 4.0.0, and no ApiVersions before it."""
    closed = "closed", 10, {"why": "key 11 version 1 is not served"}
    offered = "answer", 5, {"api": "ApiVersions", "error": 0}
    for events, wanted in (((closed,), "ApiVersions first"), ((offered, closed), "that ApiVersions offered")):
        (found,) = asks_what_is_offered(history(*events))
        assert wanted in found.expected and found.shape == ("not offered", "key 11 version 1 is not served")


def test_an_unread_assignment_says_nothing_of_what_the_client_reads() -> None:
    def reads(**more: Any) -> list[Violation]:
        given = ("answer", 140, {"api": "SyncGroup", "error": 0, "to": ["m", 1], "partitions": [], **more})
        fetch = ("request", 200, {"api": "Fetch", "version": 4, "partitions": ["t-0"], "offsets": [0]})
        return [*reads_its_own(history(joined(100), given, fetch))]

    assert reads()
    assert not reads(unread=True)


def test_a_broker_that_answers_nothing_keeps_a_client_from_reading() -> None:
    """sarama 1.61.1 and kafkajs 2.2.4 send no Fetch behind a commit that is not answered."""
    fetched = [("request", 120, {"api": "Fetch", "version": 4, "partitions": ["t-0"], "offsets": [0]}),
               ("answer", 130, {"api": "Fetch", "error": 0, "records": 10})]  # fmt: skip
    commit: tuple[Any, ...] = ("request", 140, {"api": "OffsetCommit", "version": 7, "member": "m", "generation": 1})
    answer: tuple[Any, ...] = ("answer", 4200, {"api": "OffsetCommit", "error": 0})
    member = joined(100), given(110, "t-0"), *fetched
    settled: tuple[Any, ...] = ("settled", 4190, {"waited_ms": 0})

    def broken(*events: tuple[Any, ...]) -> bool:
        return any(reads_what_it_is_assigned(history(*member, *events, ("signalled", events[-1][1] + 10, {}))))

    assert not broken(commit, answer) and not broken(commit, settled, answer)
    assert broken(beat(3500, "m", 1), settled)
    assert broken(commit, answer, beat(6500, "m", 1), ("settled", 7300, {"waited_ms": 0}))


def test_a_client_that_sends_nothing_at_all_is_not_blamed_for_what_it_does_not_read() -> None:
    """franz-go 1.3.4 ends its membership without a word, where a commit is cancelled while it looks its coordinator up
    (franz-go 7d050fc8): it sends neither heartbeats nor Fetch, and its coordinator gives its partitions away."""
    read = *MEMBER, fetches(140, 0), is_sent(150, "Fetch", records=70, ends={"t-0": 10})
    beats_once, ends = (beat(600, "m", 1), is_sent(610, "Heartbeat")), ("settled", 3600, {"waited_ms": 0})
    assert not [*reads_what_it_is_assigned(history(*read, *beats_once, ends))]
    assert [*reads_what_it_is_assigned(history(*read, *beats_once, beat(2900, "m", 1), ends))]


def test_a_member_that_is_fenced_by_its_last_commit_need_not_leave() -> None:
    """aiokafka 0.14.0: the commit of its close was answered UNKNOWN_MEMBER_ID, or ILLEGAL_GENERATION."""
    member = [joined(100), synced(110, "t-0"), GIVEN, beat(150, "m", 1), ("signalled", 1100, {})]
    for error, breaches in {25: 0, 22: 0, 16: 1}.items():
        assert len([*leaves(history(*member, refuses(1150, "OffsetCommit", error, ["m", 1]), *END[1:]))]) == breaches


def test_a_program_that_ends_with_an_error_that_was_raised_to_it_need_not_leave() -> None:
    """aiokafka 0.14.0: its commit was answered TOPIC_AUTHORIZATION_FAILED, which getmany raises."""
    member = [joined(100), synced(110, "t-0"), GIVEN, beat(150, "m", 1), ("signalled", 1100, {})]
    refused = refuses(1150, "OffsetCommit", 29, ["m", 1])
    for code, breaches in {1: 0, 0: 1}.items():
        assert len([*leaves(history(*member, refused, ("ended", 1200, {"code": code, "stderr": ""})))]) == breaches


def test_records_wait_for_the_next_poll_of_a_program_that_works() -> None:
    paced = [(commits(ms, 10), is_sent(ms, "OffsetCommit", to=["m", 1])) for ms in range(200, 900, 100)]
    read = is_sent(150, "Fetch", ends={"t-0": 10})
    events = *MEMBER, read, *(each for pair in paced for each in pair), is_sent(880, "Fetch", ends={"t-0": 11})
    for pause_ms, breaches in {None: 1, 2000: 0}.items():
        launched: tuple[Any, ...] = ("launched", 90, {} if pause_ms is None else {"pause_ms": pause_ms})
        assert len([*commits_in_time(history(launched, *events, beat(3000, "m", 1), ENDED))]) == breaches


def test_a_coordinator_that_cannot_be_looked_up_is_sent_nothing() -> None:
    """aiokafka 0.14.0: its look-ups were cut off six times in a row, for 3.3 s."""
    beaten: tuple[Any, ...] = ("answer", 151, {"api": "Heartbeat", "error": 0, "to": ["m", 1]})
    member = [joined(100), synced(110, "t-0"), GIVEN, beat(150, "m", 1), beaten]
    silent = [("request", 4000, {"api": "Fetch", "version": 11}), ("signalled", 4100, {})]
    lookup: tuple[Any, ...] = ("request", 900, {"api": "FindCoordinator", "version": 1})
    closed: tuple[Any, ...] = ("closed", 910, {"why": "by the script"})
    cut_off = [("answer", 910, {"api": "FindCoordinator", "error": 0}), closed]
    for failed in [("answer", 910, {"api": "FindCoordinator", "error": 15})], cut_off, [closed]:
        assert not [*beats(history(*member, lookup, *failed, *silent))]
    assert [*beats(history(*member, lookup, ("answer", 910, {"api": "FindCoordinator", "error": 0}), *silent))]


def test_a_prepared_step_whose_request_was_not_sent_is_no_cause() -> None:
    script = "reset OffsetCommit at stop; answer LeaveGroup UNKNOWN_MEMBER_ID at stop; stop"
    for api, cause in ("OffsetCommit", "reset before"), ("LeaveGroup", "answer UNKNOWN_MEMBER_ID"):
        sent: tuple[Any, ...] = ("request", 2000, {"api": api, "version": 3})
        (found,) = ends_when_stopped(history(sent, ("killed", 32_000, {}), script=script))
        assert found.shape == ("hangs", cause)


def test_a_step_whose_request_was_not_sent_is_no_cause() -> None:
    """pykafka 2.8.0: its heartbeats ended with a reset connection; the errors of later steps never reached it."""
    script = "reset Heartbeat; answer JoinGroup UNKNOWN_MEMBER_ID"
    waits = {"waited_ms": 2000, "unsent": ["JoinGroup"]}
    killed: tuple[Any, ...] = ("killed", 9000, {})
    for unsent, cause in (waits, "reset"), ({**waits, "unsent": []}, "answer UNKNOWN_MEMBER_ID"):
        found = [*ends_when_stopped(history(("unsettled", 4000, unsent), killed, script=script))]
        assert [each.shape[:1] for each in found] == [("hangs",)] and found[0].shape[1].startswith(cause)


def test_what_silenced_a_client_keeps_it_from_its_end_too() -> None:
    """kafkajs 2.2.4: half an answer stays in its buffer; what the script did at the end had another name each time."""
    amid, script = "reset Heartbeat amid", "reset Heartbeat amid; answer LeaveGroup UNKNOWN_MEMBER_ID at stop; stop"
    leave: tuple[Any, ...] = ("request", 9000, {"api": "LeaveGroup", "version": 3})
    for beat_ms, cause in (1000, "reset amid"), (7000, "answer UNKNOWN_MEMBER_ID"):
        first = history(beat(beat_ms, "m", 1), script=amid)
        rest = history(("signalled", 8000, {}), leave, ("killed", 38_000, {}), script=script)
        (found,) = ends_when_stopped(replace(rest, ops=(first.ops[0], *rest.ops[1:])))
        assert found.shape == ("hangs", cause)


def test_a_program_that_does_not_handle_sigterm_has_one_failure_whatever_the_script_did() -> None:
    """samsa 0.1.8, whose consumer has no way to be closed: three failures of one cause."""

    def ends(code: int) -> list[Violation]:
        end: tuple[Any, ...] = ("signalled", 2000, {}), ("ended", 2010, {"code": code, "stderr": ""})
        return [*leaves(history(joined(100), synced(105, "t-0"), GIVEN, *end, script="move; stop"))]

    assert [each.shape for each in ends(-15)] == [("no LeaveGroup",)]
    assert [each.shape for each in ends(1)] == [("no LeaveGroup", "move")]
    assert "does not handle SIGTERM" in ends(-15)[0].why and "SIGTERM" not in ends(1)[0].why


def test_a_setting_that_the_program_is_given_names_its_placeholder() -> None:
    """pykafka 2.8.0 has no session timeout that a user can set, and its command had {session_ms}."""
    launched = "launched", 0, {"session_ms": 3000}
    joins = "request", 50, {**rejoins(0)[2], "type": "consumer", "session_ms": 30000, "protocols": [["range", ""]]}
    (found,) = keeps_its_settings(history(launched, joins))
    assert found.why.endswith("30000, and the program is started with 3000 as {session_ms}")
    again = "request", 90, {**joins[2], "session_ms": 3000}
    (found,) = keeps_its_settings(history(joins, again))
    assert found.why == "JoinGroup has the session timeout 3000"


def test_a_client_that_was_not_disturbed_did_not_come_back() -> None:
    """platformatic-kafka 1.35.0, pykafka 2.8.0: neither sent the heartbeat that was to fail, in 10 s."""
    for unsent, number in (["Heartbeat"], 0), ([], 1):
        settled = "settled", 12_000, {"waited_ms": 10_008, "unsent": unsent}
        assert len([*comes_back_soon(history(settled))]) == number


def shown(ms: int, *others: dict[str, Any] | None) -> tuple[Any, ...]:
    """JoinGroup is answered with these subscriptions of other members."""
    what, at, found = joined(ms)
    more = [{"id": f"o{number}", "instance": None, "subscription": each} for number, each in enumerate(others)]
    return what, at, {**found, "members": [*found["members"], *more]}


def test_a_leader_that_reads_no_later_version_does_not_assign() -> None:
    """sarama-cluster 2.1.15 joined 27 times in 10 s: its reader wants no bytes after the user data."""
    later = {"version": 3, "topics": ["t"]}
    leave = "request", 200, {"api": "LeaveGroup", "version": 0, "member": "m"}
    begins = joined(0), synced(10, "t-0")

    def gives_up(*members: dict[str, Any] | None, between: tuple[Any, ...] = ("opened", 150, {})) -> list[Violation]:
        turn = shown(100, *members), between, rejoins(200)
        return [*leads_other_clients(history(*begins, *turn, *turn))]

    (found,) = gives_up(later)
    assert found.shape == ("no assignment",) and "of version 3, and sends no SyncGroup, 2 times in a row" in found.why
    assert [*leads_other_clients(history(*begins, shown(100, later), leave, shown(150, later), leave))]
    # Members that no one can read, that need more than a subscription, or whose topics do not exist; and none at all.
    for members in ([None], [later, None], [{**later, "data": "00"}], [{**later, "topics": ["gone"]}], []):
        assert not gives_up(*members), members
    for between in (
        metadata(150, error=29), ("answer", 150, {"api": "Metadata", "sizes": {}, "missing": True}),
        ("answer", 150, {"api": "Heartbeat", "error": 27, "to": ["m", 1]}), ("closed", 150, {"why": "by the script"}),
        ("signalled", 150, {}), synced(150, "t-0"),
    ):  # fmt: skip
        assert not gives_up(later, between=between), between
    turn = shown(100, later), rejoins(200)
    assert not [*leads_other_clients(history(*begins, *turn))], "once"
    assert not [*leads_other_clients(history(*turn, *turn))], "it never assigned"


def test_a_leader_that_cannot_read_is_not_said_not_to_return() -> None:
    turns = [each for ms in range(500, 10_000, 500) for each in (shown(100 + ms, {"version": 3, "topics": ["t"]}),)]
    ((what, ms, launched), *rest) = waits(10_000, *range(600, 10_000, 500), api="JoinGroup")
    events = sorted([*turns, *rest], key=lambda each: each[1])
    made = history((what, ms, launched), joined(10), synced(20, "t-0"), *events)
    (lost,) = comes_back(made)
    assert [*leads_other_clients(made)]
    follows = after_a_fault(made, lost)
    assert follows is not None and follows.invariant == "client/leads-other-clients"
    alone = history(*waits(10_000, *range(600, 10_000, 500), api="JoinGroup"))
    assert after_a_fault(alone, next(comes_back(alone))) is None


def subscribes(ms: int, *topics: str) -> tuple[Any, ...]:
    found = {"version": 0, "topics": [*topics]}
    return "request", ms, {"api": "JoinGroup", "version": 5, "protocols": [["range", ""]], "subscriptions": [found]}


def beats_with(ms: int, epoch: int, *topics: str) -> tuple[Any, ...]:
    return (
        "request",
        ms,
        {"api": "ConsumerGroupHeartbeat", "version": 1, "member": "m", "generation": epoch, "topics": [*topics]},
    )


def test_a_subscription_need_not_name_what_the_client_was_not_shown_to_exist() -> None:
    """franz-go joins with the topics that Metadata described, and again once the others are there."""
    launched = "launched", 0, {"topics": ["t", "u"]}
    missing = "answer", 10, {"api": "Metadata", "error": 3, "sizes": {"t": 1}}
    described = "answer", 30, {"api": "Metadata", "error": 0, "sizes": {"t": 1, "u": 1}}
    assert not [*names_its_topics(history(launched, missing, subscribes(20, "t")))]
    assert not [*names_its_topics(history(launched, missing, subscribes(20, "u", "t")))]
    assert len([*names_its_topics(history(launched, missing, described, subscribes(40, "t")))]) == 1
    assert len([*names_its_topics(history(launched, missing, subscribes(20, "t", "v")))]) == 1


def test_topics_are_compared_with_those_of_the_program_that_runs() -> None:
    """A capture names no program, a restart may name other topics, and one that is closed may unsubscribe."""
    launched = "launched", 0, {"topics": ["t", "u"]}
    restarted: tuple[Any, ...] = "restarted", 50, {}
    again = "launched", 51, {"topics": ["t"]}
    assert not [*names_its_topics(history(subscribes(20, "t"), subscribes(30, "u")))]
    assert not [*names_its_topics(history(launched, subscribes(20, "t", "u"), restarted, again, subscribes(60, "t")))]
    assert not [*names_its_topics(history(launched, ("signalled", 10, {}), beats_with(20, 3)))]
    assert not [*names_its_topics(history(launched, beats_with(20, -1), beats_with(30, 0, "t", "u")))]
    assert len([*names_its_topics(history(launched, beats_with(20, 3, "t")))]) == 1


def beating(*times: int, connection: int = 1, error: int = 0) -> list[tuple[Any, ...]]:
    """Heartbeats, each answered at once."""
    asked = {**beat(0, "m", 1)[2], "connection": connection}
    answer = {"api": "Heartbeat", "error": error, "to": ["m", 1], "connection": connection}
    return [each for ms in times for each in (("request", ms, asked), ("answer", ms, answer))]


def in_order(*events: tuple[Any, ...], script: str = "stop") -> History:
    return history(*sorted(events, key=lambda each: int(each[1])), script=script)


STOPS: tuple[Any, ...] = ("signalled", 1950, {})
STABLE: list[tuple[Any, ...]] = [("launched", 0, {"heartbeat_ms": 300}), joined(100), synced(110, "t-0"), GIVEN]


def test_heartbeats_that_something_else_holds_up_keep_their_interval() -> None:
    """sarama 1.61.1 sends them behind a Fetch of 500 ms; kafkajs 2.2.4 between two of them, and after its offsets."""
    slow = beating(710, 1310, 1910)
    assert [*beats_at_its_interval(in_order(*STABLE, *slow))]
    assert not [*beats_at_its_interval(in_order(*STABLE, *beating(610, 1110, 1610), STOPS))], "1.67 intervals"
    assert not [*beats_at_its_interval(in_order(("launched", 0, {}), *STABLE[1:], *slow))], "it was given none"
    working = "launched", 0, {"heartbeat_ms": 300, "pause_ms": 400}
    assert not [*beats_at_its_interval(in_order(working, *STABLE[1:], *slow, STOPS))]
    reads = "request", 120, {**fetches(120, 10)[2], "connection": 1}
    assert not [*beats_at_its_interval(in_order(*STABLE, reads, *slow, STOPS))]
    assert [*beats_at_its_interval(in_order(*STABLE, (*reads[:2], {**reads[2], "connection": 2}), *slow))]
    for connection, breaches in {1: 0, 2: 1}.items():
        first = "request", 420, {**fetches(420, 10)[2], "connection": connection}
        found = [*beats_at_its_interval(in_order(*STABLE, *beating(410), first, ("opened", 1900, {})))]
        assert len(found) == breaches, "what is sent behind the first Fetch is not read"
    throttled = is_sent(115, "OffsetFetch", connection=1, throttle_ms=1800)
    assert not [*beats_at_its_interval(in_order(*STABLE, throttled, *beating(1915), STOPS))]
    asked = "request", 720, {"api": "OffsetFetch", "version": 4, "connection": 3}
    late = "answer", 1200, {"api": "OffsetFetch", "committed": {"t-0": 1}, "connection": 3}
    assert not [*beats_at_its_interval(in_order(*STABLE, asked, late, *slow, STOPS))]
    for other in ("closed", 900, {"connection": 1}), beating(900, error=27)[1], ("signalled", 900, {}):
        assert not [*beats_at_its_interval(in_order(*STABLE, other, *slow, STOPS))]


def test_a_client_that_waits_for_the_answer_to_a_heartbeat_is_not_silent() -> None:
    """aiokafka 0.14.0 and kafka-python 3.0.12 send no further heartbeat while one waits for its answer."""
    asked, answer = beating(400)
    late: tuple[Any, ...] = (answer[0], 4900, answer[2])
    ends: tuple[Any, ...] = ("signalled", 5400, {})
    assert not [*beats(in_order(*STABLE, asked, late, *beating(5200), ("opened", 4000, {}), ends))]
    assert [*beats(in_order(*STABLE, asked, late, ("opened", 8000, {})))], "it was answered"
    closed = "closed", 4900, {"connection": 1, "why": "by the script"}
    assert not [*beats(in_order(*STABLE, asked, closed, ("opened", 4000, {}), *beating(5200, connection=2), ends))]
    assert [*beats(in_order(*STABLE, asked, closed, ("opened", 8000, {})))], "its connection is closed"


def test_a_process_that_is_stopped_owes_nothing() -> None:
    """It sends nothing, and reads late what came meanwhile."""
    stopped: list[tuple[Any, ...]] = [("frozen", 900, {}), ("thawed", 4900, {})]
    beaten = [*beating(400, 700, 5000, 5300), ("signalled", 5400, {})]
    assert not [*beats_at_its_interval(in_order(*STABLE, *stopped, *beaten))]
    assert not [*beats(in_order(*STABLE, *stopped, *beaten))]
    assert [*beats(in_order(*STABLE, *stopped, *beating(400, 700), ("opened", 8000, {})))], "it goes on"
    assert [*beats(in_order(*STABLE, *beaten))]
    over = refuses(1000, "Heartbeat", 25, ["m", 1])
    goes_on = [*STABLE, over, ("request", 2500, {**beat(0, "m", 1)[2], "connection": 2})]
    broken: list[tuple[Any, ...]] = [("frozen", 900, {}), ("thawed", 2450, {})]
    assert [*stops_when_fenced(in_order(*goes_on))] and not [*stops_when_fenced(in_order(*goes_on, *broken))]
    joins = "request", 2500, {**rejoins(0)[2], "connection": 2}
    assert [*joins_with_its_id(in_order(*STABLE, over, joins))]
    assert not [*joins_with_its_id(in_order(*STABLE, over, joins, *broken))]


def test_a_request_that_was_sent_before_leave_group_may_come_after_it() -> None:
    leave = "request", 500, {"api": "LeaveGroup", "version": 3, "members": ["m"], "connection": 2}
    for ms, more, breaches in (550, {}, 0), (650, {}, 1), (650, {"pipelined": True}, 0):
        late = "request", ms, {**beat(0, "m", 1)[2], **more}
        assert len([*ends_with_its_leave(history(*STABLE, leave, late))]) == breaches
    assert not [*ends_with_its_leave(history(*STABLE, leave, rejoins(600), beat(700, "m", 2)))]


def test_a_member_whose_join_fails_in_a_rebalance_may_leave() -> None:
    """kafka-go 0.4.51 leaves after each failure but a rebalance, and joins as a new member."""
    told = "answer", 400, {"api": "Heartbeat", "error": 27, "to": ["m", 1]}
    leave = "request", 500, {"api": "LeaveGroup", "version": 0, "member": "m"}
    assert [*stays(history(*STABLE, told, leave))]
    reasons: list[tuple[Any, ...]] = [
        ("closed", 450, {"connection": 1}), refuses(450, "JoinGroup", 15, ["m", -1]), ("signalled", 450, {}),
        joined(450, 2),
    ]  # fmt: skip
    for reason in reasons:
        assert not [*stays(history(*STABLE, told, reason, leave))]


def test_a_look_up_that_is_repeated_after_an_error_has_a_reason() -> None:
    """Java 4.4.0 repeats it each 100 ms after NOT_COORDINATOR; a part of sarama 1.61.1 looks up for itself."""
    look_ups: list[tuple[Any, ...]] = [
        ("request", ms, {"api": "FindCoordinator", "version": 4}) for ms in (150, 350, 550, 750, 950)
    ]
    assert not [*keeps_its_coordinator(in_order(*STABLE, *beating(130), *look_ups))], "nothing was sent meanwhile"
    often = in_order(*STABLE, *beating(130, 300, 500, 700), *look_ups)
    assert [each.observed for each in keeps_its_coordinator(often)] == ["3"]
    moved = refuses(520, "Heartbeat", 16, ["m", 1])
    assert not [*keeps_its_coordinator(in_order(*STABLE, *beating(130, 300, 500, 700), *look_ups, moved))]


def test_repeats_at_the_same_time_of_several_parts_of_a_client_are_no_loop() -> None:
    """aiokafka 0.14.0 asks three times at once for the committed offsets, and waits then."""

    def repeats(*times: int, error: int = 14) -> list[tuple[Any, ...]]:
        asked = {"api": "OffsetFetch", "version": 3, "connection": 2}
        answer = {**asked, "error": error, "committed": {}}
        return [each for ms in times for each in (("request", ms, asked), ("answer", ms, answer))]

    at_once = 200, 201, 201, 202, 203, 204
    assert [*pauses_before_it_repeats(history(*repeats(*at_once)))]
    assert not [*pauses_before_it_repeats(history(*repeats(200, 201, 201, 503, 504, 504, 806)))]
    assert not [*pauses_before_it_repeats(history(*repeats(*at_once, error=25)))], "it joins anew"
    between = repeats(202, error=0)
    assert not [*pauses_before_it_repeats(in_order(*repeats(200, 201, 201), *between, *repeats(203, 204)))]


def test_a_request_about_each_partition_is_no_repeat_of_the_others() -> None:
    """sarama 1.61.1 looks up the end of each partition alone; all of a node that leads no more fail at once."""

    def looks_up(*partitions: str) -> list[tuple[Any, ...]]:
        asked = {"api": "ListOffsets", "version": 6, "connection": 2}
        answer = {**asked, "error": 6, "offsets": {}}
        return [
            each
            for name in partitions
            for each in (("request", 200, {**asked, "partitions": [name], "offsets": [-1]}), ("answer", 200, answer))
        ]

    assert not [*pauses_before_it_repeats(history(*looks_up("t-0", "t-1", "t-2", "t-3", "t-0")))]
    assert [*pauses_before_it_repeats(history(*looks_up("t-0", "t-1", "t-0", "t-0", "t-0", "t-0")))]


def test_a_client_that_looks_for_its_coordinator_has_none_to_send_heartbeats_to() -> None:
    """franz-go 1.22.2: six look-ups failed, or lost their connection. kafka-go 0.4.51: one, and a back-off of 5 s."""
    moved = refuses(400, "Heartbeat", 16, ["m", 1])
    found = [*STABLE, beating(400, connection=2)[0], moved, *beating(5700, connection=2), ("signalled", 5800, {})]
    assert [*beats(in_order(*found))]
    asked = {"api": "FindCoordinator", "version": 4, "connection": 7}
    look_up, closed = ("request", 500, asked), ("closed", 510, {"connection": 7})
    for error, breaches in {15: 0, 0: 1}.items():
        assert len([*beats(in_order(*found, look_up, ("answer", 510, {**asked, "error": error})))]) == breaches
    assert not [*beats(in_order(*found, look_up, closed))]


def test_a_member_that_is_closed_while_it_joins_may_leave_at_once() -> None:
    """aiokafka 0.14.0 and franz-go 1.22.2: the answer to SyncGroup came after SIGTERM, and LeaveGroup next."""
    leave = "request", 500, {"api": "LeaveGroup", "version": 3, "members": ["m"]}
    assert [each.shape for each in stays(in_order(*STABLE, leave))] == [("LeaveGroup", "no reason")]
    for signalled in 90, 450:
        assert not [*stays(in_order(*STABLE, ("signalled", signalled, {}), leave))]
    assert not [*stays(in_order(("launched", 0, {"pause_ms": 900}), *STABLE[1:], leave))]


def test_a_client_joins_again_if_its_join_or_its_sync_may_be_lost() -> None:
    assert [*joins_once(history(joined(100), rejoins(150)))]
    between: list[tuple[Any, ...]] = [
        synced(110, "t-0"), ("closed", 120, {"connection": 2}), refuses(120, "Heartbeat", 27, ["m", 1]),
    ]  # fmt: skip
    for event in between:
        assert not [*joins_once(history(joined(100), event, rejoins(150)))]
    assert not [*joins_once(history(joined(100), rejoins(150), ("closed", 102, {"connection": 1})))], "perhaps unread"


def test_the_longest_time_between_two_polls_is_the_rebalance_timeout() -> None:
    """It is what Kafka's consumer sends; a program may have a setting of its own for it."""
    joins = "request", 90, {**rejoins(0)[2], "rebalance_ms": 4000, "member": ""}
    for more, breaches in (
        ({"max_poll_ms": 4000}, 0), ({"max_poll_ms": 6000}, 1), ({"max_poll_ms": 6000, "rebalance_ms": 4000}, 0),
        ({}, 0),
    ):  # fmt: skip
        found = [each.shape for each in keeps_its_settings(history(("launched", 0, more), joins))]
        assert found.count(("setting", "rebalance timeout")) == breaches


def sends(ms: int, api: str, *partitions: str, **more: Any) -> tuple[Any, ...]:
    return "request", ms, {"api": api, "version": 5, "partitions": [*partitions], **more}


def is_sent(ms: int, api: str, **more: Any) -> tuple[Any, ...]:
    return "answer", ms, {"api": api, "error": 0, **more}


ENDED: tuple[Any, ...] = ("ended", 3100, {"code": 0, "stderr": ""})
MEMBER = joined(100), synced(105, "t-0"), given(110, "t-0")


def test_a_member_that_keeps_a_partition_may_read_on_while_it_asks_for_its_offset() -> None:
    """Go clients ask for the offsets of all partitions after each rebalance, and keep their positions of some."""
    asks = sends(120, "OffsetFetch", "t-0"), is_sent(130, "OffsetFetch", committed={"t-0": 7})
    read = *MEMBER, *asks, fetches(140, 7), is_sent(150, "Fetch", records=70, ends={"t-0": 12})
    again = *read, joined(200, 2), synced(205, "t-0", generation=2), given(210, "t-0", generation=2)
    asks_again = sends(220, "OffsetFetch", "t-0")
    assert not [*waits_for_offsets(history(*again, asks_again, fetches(400, 12)))]
    assert not [*waits_for_offsets(history(*again, asks_again, fetches(400, 9)))]
    assert [*waits_for_offsets(history(*again, asks_again, fetches(400, 0)))]
    new = joined(100), synced(105, "t-0"), given(110, "t-0"), sends(120, "OffsetFetch", "t-0")
    assert [each.shape for each in waits_for_offsets(history(*new, fetches(400, 0)))] == [("not answered yet",)]
    refused = refuses(130, "OffsetFetch", 16, ["", -1])
    assert [each.shape[0] for each in waits_for_offsets(history(*new, refused, fetches(400, 0)))] == ["refused"]
    assert not [*waits_for_offsets(history(*new, refused, fetches(200, 0)))]  # another thread had sent it


def test_records_that_were_not_handed_over_are_fetched_again() -> None:
    """librdkafka 2.16.1 purges what it has fetched of a partition in a rebalance, and fetches it again from there."""
    asks = sends(120, "OffsetFetch", "t-0"), is_sent(130, "OffsetFetch", committed={"t-0": -1})
    looked_up = is_sent(135, "ListOffsets", offsets={"t-0": 4})
    read = *MEMBER, *asks, looked_up, fetches(140, 4), is_sent(150, "Fetch", records=70, ends={"t-0": 12})
    for offset, shapes in {4: [], 9: [], 12: [], 13: [("skipped",)], 3: [("unknown",)], 0: []}.items():
        assert [each.shape for each in reads_in_order(history(*read, fetches(400, offset)))] == shapes, offset
    latest = "launched", 90, {"offset_reset": "latest"}
    assert [*reads_in_order(history(latest, *MEMBER, *asks, fetches(140, 0)))]
    ends = is_sent(160, "OffsetForLeaderEpoch", offsets={"t-0": 3})
    assert not [*reads_in_order(history(*read, ends, fetches(400, 3)))]


def test_a_client_whose_process_is_stopped_or_that_waits_for_records_reads() -> None:
    """aiokafka 0.14.0: its process got SIGSTOP; and no Fetch follows one that a broker answers late."""
    read = *MEMBER, fetches(140, 0), is_sent(150, "Fetch", records=70, ends={"t-0": 10})
    beats_on: tuple[tuple[Any, ...], ...] = beat(3500, "m", 1), ("signalled", 3600, {})
    assert [*reads_what_it_is_assigned(history(*read, *beats_on))]
    reasons: list[tuple[Any, ...]] = [
        fetches(200, 10),
        sends(200, "ListOffsets", "t-0"),
        ("closed", 1000, {"why": ""}),
        ("frozen", 200, {}),
        is_sent(1000, "Metadata", sizes={}, missing=True),
        refuses(300, "Heartbeat", 27, ["m", 1]),  # sarama 1.61.1 waits for a topic that was deleted
    ]
    for reason in reasons:
        assert not [*reads_what_it_is_assigned(history(*read, reason, *beats_on))], reason
    slow = "launched", 90, {"pause_ms": 500}
    assert not [*reads_what_it_is_assigned(history(slow, *read, *beats_on))]


def test_a_program_that_commits_late_says_itself_what_it_commits() -> None:
    """Its user names the offsets, which may be those of before a rebalance."""
    accepted = commits(140, 7), is_sent(141, "OffsetCommit", to=["m", 1])
    asks = sends(120, "OffsetFetch", "t-0"), is_sent(130, "OffsetFetch", committed={"t-0": 7})
    for how, breaches in {"late": 0, "auto": 1}.items():
        launched = "launched", 90, {"commit": how}
        events = launched, *MEMBER, *asks, fetches(135, 7), *accepted, commits(400, 5)
        assert len([*commits_its_position(history(*events))]) == breaches
    back = is_sent(300, "OffsetFetch", committed={"t-0": 5})
    assert not [*commits_its_position(history(*MEMBER, *asks, fetches(135, 7), *accepted, back, commits(401, 5)))]


def test_a_process_that_was_stopped_need_not_have_committed() -> None:
    """aiokafka 0.14.0: its process got SIGSTOP 20 ms after a record was sent to it."""
    paced = [(commits(ms, 10), is_sent(ms, "OffsetCommit", to=["m", 1])) for ms in range(200, 900, 100)]
    read = is_sent(150, "Fetch", ends={"t-0": 10})
    events = *MEMBER, read, *(each for pair in paced for each in pair), is_sent(880, "Fetch", ends={"t-0": 11})
    assert [*commits_in_time(history(*events, beat(3000, "m", 1)))]
    assert not [
        *commits_in_time(history(*events, ("frozen", 900, {}), beat(3000, "m", 1), ("thawed", 3001, {}), ENDED))
    ]
    launched = "launched", 90, {"commit": "auto"}
    assert not [*commits_in_time(history(launched, *events, ("signalled", 1000, {}), beat(3000, "m", 1)))]
    assert not [*commits_in_time(history(launched, *events, ("signalled", 1000, {}), ("killed", 31_000, {})))]
    end = "request", 2500, {"api": "LeaveGroup", "version": 1, "member": "m"}
    assert [*commits_before_it_leaves(history(launched, *events, end))]
    # librdkafka 2.16.1: records came with the heartbeat that asked it to join, and the join was refused for 2 s.
    assert not [
        *commits_before_it_leaves(history(launched, *events, rejoins(881, "range"), rejoins(2500, "range"), end))
    ]
    assert not [*commits_before_it_leaves(history(launched, *events, ("thawed", 2400, {}), end))]
    assert not [*commits_before_it_leaves(history(("launched", 90, {"commit": "async"}), *events, end))]


def test_the_error_that_ended_a_program_is_shown_in_any_language() -> None:
    shown = {
        "Traceback:\n  a\nKeyError: 'u'\n": "KeyError: 'u'",
        "panic: kafka server: x\n\ngoroutine 1 [running]:\nmain.main()\n\t/x:1\n": "panic: kafka server: x",
        'Exception in thread "main" a.b.XException: y\n\tat a.b\n': 'Exception in thread "main" a.b.XException: y',
        "file:1\nUserError: Unknown topic gone.\n    at x {\n}\n\nNode.js v20.20.2\n": "UserError: Unknown topic gone.",
        "no error\nat all\n": "at all", "": "",
    }  # fmt: skip
    for stderr, line in shown.items():
        (found,) = ends_when_stopped(history(("launched", 0, {}), ("ended", 900, {"code": 2, "stderr": stderr})))
        assert found.why == f"the program ended by itself, exit code 2: {line}"


def test_only_a_cooperative_member_that_lost_what_it_claimed_owes_a_rejoin() -> None:
    cooperative = "answer", 200, {**joined(200, 2)[2], "protocol": "cooperative-sticky"}
    asks = "request", 190, claims(190, 1, "t-0", "t-1")[2]
    had = joined(100), given(110, "t-0", "t-1")
    lost = *had, asks, cooperative, given(210, "t-1", generation=2)

    def broken(*events: tuple[Any, ...]) -> bool:
        return bool([*rejoins_after_revoking(history(*events))])

    late, again = beat(3500, "m", 2), claims(3600, 2, "t-1")
    assert broken(*lost, late, again)
    assert not broken(*lost, beat(3000, "m", 2), claims(3100, 2, "t-1"))
    assert not broken(*lost, refuses(900, "Heartbeat", 25, ["m", 2]), late), "it is no member any more"
    assert not broken(*lost, refuses(900, "Heartbeat", 15, ["m", 2]), late, again), "its coordinator is away"
    assert not broken(*lost, ("signalled", 900, {}), late), "it is closed"
    assert not broken(("launched", 0, {"pause_ms": 500}), *lost, late, again), "its program works"
    assert not broken(*had, ("request", 190, claims(190, 1)[2]), cooperative, given(210, "t-1", generation=2), late)
    eager = "answer", 200, joined(200, 2)[2]
    assert not broken(*had, asks, eager, given(210, "t-1", generation=2), late), "its group chose an eager assignor"


def test_a_member_joins_for_an_offset_fetch_only_if_there_is_no_other_reason() -> None:
    refused = is_sent(300, "OffsetFetch", error=14)

    def broken(*events: tuple[Any, ...]) -> bool:
        return bool([*asks_for_offsets_again(history(*MEMBER, *events))])

    assert broken(refused, rejoins(310))
    assert broken(metadata(200), refused, metadata(305), rejoins(310))
    again = sends(305, "OffsetFetch", "t-0"), is_sent(308, "OffsetFetch", error=14)
    assert not broken(refused, again[0], rejoins(310)), "it asks again"
    assert not broken(refused, *again, rejoins(310)), "sarama 1.50.0: it gives up after three attempts"
    assert not broken(refused, refuses(305, "Heartbeat", 27, ["m", 1]), rejoins(310)), "it is asked to join"
    assert not broken(metadata(200), refused, ("answer", 305, {"api": "Metadata", "sizes": {"t": 2}}), rejoins(310))
    assert not broken(refused, rejoins(1400)), "a later one has another reason"
    assert not broken(is_sent(300, "OffsetFetch", error=25), rejoins(310)), "it is no member any more"


def test_a_join_may_be_given_up_for_a_reason() -> None:
    asks = "request", 300, {**rejoins(300)[2], "rebalance_ms": 6000, "connection": 7}
    gives_up = "closed", 5300, {"connection": 7, "why": ""}

    def broken(*events: tuple[Any, ...]) -> bool:
        return bool([*waits_for_the_others(history(*MEMBER, asks, *events))])

    assert broken(gives_up)
    assert not broken(("closed", 6300, {"connection": 7, "why": ""})), "its rebalance timeout has passed"
    assert not broken(("closed", 5300, {"connection": 7, "why": "by the script"})), "the broker closed it"
    assert not broken(("closed", 5300, {"connection": 8, "why": ""})), "another connection"
    assert not broken(joined(400, 2), gives_up), "it was answered"
    assert not broken(("signalled", 5200, {}), gives_up), "its user closes it"
    assert not broken(metadata(5200), gives_up), "the node may be gone"
    assert not broken(refuses(5200, "OffsetCommit", 16, ["m", 1]), gives_up), "it is no coordinator any more"
