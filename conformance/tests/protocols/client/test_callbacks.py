"""Callbacks, user data and new partitions: what clients may do, and no law forbids."""

from typing import Any

from kipcheck.conformance.protocols.assignment.ops import user_data
from kipcheck.conformance.protocols.client.invariants.callbacks import (
    calls_back_in_time,
    calls_back_once,
    calls_them_lost,
    revokes_when_it_closes,
)
from kipcheck.conformance.protocols.client.invariants.identity import names_its_instance
from kipcheck.conformance.protocols.client.invariants.leading import joins_for_new_partitions
from kipcheck.conformance.protocols.client.invariants.leaving import stays
from kipcheck.conformance.protocols.client.invariants.pace import pauses_before_it_repeats
from kipcheck.conformance.protocols.client.invariants.partitions import claims_in_its_user_data
from kipcheck.conformance.tests.protocols.client.test_false_alarms import history, joined, metadata

REBALANCE, UNKNOWN_MEMBER, LOADS = 27, 25, 14


def called(ms: int, callback: str, *partitions: str) -> tuple[Any, ...]:
    return "called", ms, {"callback": callback, "partitions": [*partitions]}


def given(ms: int, *partitions: str, generation: int = 1) -> tuple[Any, ...]:
    return "answer", ms, {"api": "SyncGroup", "error": 0, "to": ["m", generation], "partitions": [*partitions]}


def beat(ms: int, error: int = 0) -> tuple[tuple[Any, ...], ...]:
    request = {"api": "Heartbeat", "version": 3, "member": "m", "generation": 1}
    return (
        ("request", ms, request),
        ("answer", ms + 1, {"api": "Heartbeat", "error": error, "to": ["m", 1]}),
    )


def joins(ms: int, assignor: str = "range", data: bytes | None = None, **more: Any) -> tuple[Any, ...]:
    subscription = {"version": 1, "topics": ["t"], **({} if data is None else {"data": data.hex()})}
    body = {"protocols": [[assignor, ""]], "subscriptions": [subscription], "session_ms": 3000}
    return "request", ms, {"api": "JoinGroup", "version": 5, "member": "m", **body, **more}


def test_a_user_is_called_for_what_changes() -> None:
    changes = called(60, "assigned", "t-0"), called(70, "revoked", "t-0"), called(80, "assigned", "t-0", "t-1")
    assert not [*calls_back_once(history(*changes, called(90, "lost", "t-0", "t-1"), called(95, "revoked")))]
    assert [*calls_back_once(history(*changes, called(90, "assigned", "t-1")))]
    assert [*calls_back_once(history(*changes, called(90, "lost", "t-2")))]
    again: tuple[Any, ...] = ("restarted", 100, {}), called(200, "assigned", "t-0")
    assert not [*calls_back_once(history(*changes, *again))]


def test_a_callback_may_come_a_second_after_the_assignment_or_never_if_the_group_goes_on() -> None:
    assigned = joins(90), joined(100), given(130, "t-0"), called(1000, "assigned", "t-0")
    assert not [*calls_back_in_time(history(*assigned, *beat(1500)))]
    assert [*calls_back_in_time(history(*assigned[:3], called(110, "assigned"), *beat(1500)))]
    asked = *assigned[:3], called(110, "assigned"), *beat(400, REBALANCE), *beat(1500)
    assert not [*calls_back_in_time(history(*asked))]
    works = "launched", 0, {"pause_ms": 5000}
    assert not [*calls_back_in_time(history(works, *assigned[:3], called(110, "assigned"), *beat(1500)))]


def test_a_program_that_ends_by_itself_takes_back_what_its_user_had() -> None:
    """kafka-python 3.0.12 ended in a second without a broker, and had given its partitions back."""
    assigned = joins(90), joined(100), given(130, "t-0"), called(140, "assigned", "t-0")
    ended: tuple[Any, ...] = "ended", 1500, {"code": 1}
    assert not [*calls_back_in_time(history(*assigned, ended))]
    assert not [*calls_back_in_time(history(*assigned, called(1490, "revoked", "t-0"), ended))]
    assert [*calls_back_in_time(history(*assigned, called(600, "revoked", "t-0"), *beat(1500)))]


def test_without_an_offset_to_begin_at_there_may_be_no_call() -> None:
    """sarama 1.61.1 calls its user with readers of partitions; its OffsetFetch was never answered."""
    begun = called(10, "assigned"), joins(90), joined(100), given(130, "t-0")
    asks = "request", 140, {"api": "OffsetFetch", "version": 7, "member": "m", "generation": 1}
    found = "answer", 150, {"api": "OffsetFetch", "committed": {"t-0": 7}}
    assert not [*calls_back_in_time(history(*begun, asks, *beat(1500)))]
    assert [*calls_back_in_time(history(*begun, asks, found, *beat(1500)))]


def test_a_program_that_reports_no_callback_is_not_judged() -> None:
    assert not [*calls_back_in_time(history(joins(90), joined(100), given(130, "t-0"), *beat(1500)))]


def test_a_call_without_partitions_is_one() -> None:
    nothing = joins(90), joined(100), given(130)
    assert not [*calls_back_in_time(history(*nothing, called(140, "assigned"), *beat(1500)))]
    assert [*calls_back_in_time(history(called(10, "assigned"), *nothing, *beat(1500)))]


def test_a_member_that_was_to_join_may_have_begun_to_revoke() -> None:
    member: tuple[Any, ...] = joined(100), given(130, "t-0"), called(140, "assigned", "t-0")
    removed = beat(400, UNKNOWN_MEMBER)
    assert [*calls_them_lost(history(*member, *removed, called(410, "revoked", "t-0")))]
    assert [*calls_them_lost(history(*member, *removed, joins(405, member=""), called(410, "revoked", "t-0")))]
    assert not [*calls_them_lost(history(*member, *removed, called(410, "lost", "t-0")))]
    assert not [*calls_them_lost(history(*member, *removed, called(410, "given-up", "t-0")))]
    asked = *member, *beat(300, REBALANCE), *removed, called(410, "revoked", "t-0")
    assert not [*calls_them_lost(history(*asked))]


def test_a_program_that_was_killed_calls_nobody() -> None:
    member: tuple[Any, ...] = joined(100), given(130, "t-0"), called(140, "assigned", "t-0"), ("signalled", 500, {})
    assert [*revokes_when_it_closes(history(*member, ("ended", 600, {"code": 0})))]
    assert not [*revokes_when_it_closes(history(*member, ("ended", 600, {"code": -15})))]
    assert not [*revokes_when_it_closes(history(*member, called(550, "revoked", "t-0"), ("ended", 600, {"code": 0})))]


def test_a_member_that_followed_may_have_no_user_data() -> None:
    """sarama takes it from its leader, and kafka-python writes a version in front."""
    leads = ("answer", 100, {**joined(100)[2], "protocol": "sticky"}), given(130, "t-0")
    follows = ("answer", 100, {**leads[0][2], "leads": False}), given(130, "t-0")
    right, old = user_data([("t", 0)], 1), user_data([("t", 0)], 0)
    assert not [*claims_in_its_user_data(history(*leads, joins(900, "sticky", right)))]
    assert not [*claims_in_its_user_data(history(*leads, joins(900, "sticky", bytes(1) + b"\1" + right)))]
    assert [*claims_in_its_user_data(history(*leads, joins(900, "sticky", old)))]
    assert [*claims_in_its_user_data(history(*leads, joins(900, "sticky")))]
    assert not [*claims_in_its_user_data(history(*follows, joins(900, "sticky")))]


def test_a_leader_has_its_session_timeout_to_join_for_new_partitions() -> None:
    more = "answer", 1000, {"api": "Metadata", "error": 0, "sizes": {"t": 2}}
    leads = metadata(20), joins(90), joined(100), given(130, "t-0"), more
    assert not [*joins_for_new_partitions(history(*leads, *beat(3900), ("signalled", 3950, {})))]
    assert [*joins_for_new_partitions(history(*leads, *beat(4100)))]
    assert not [*joins_for_new_partitions(history(*leads, joins(3900), *beat(4100)))]
    follows = "answer", 100, {**joined(100)[2], "members": None, "leads": False}
    assert not [*joins_for_new_partitions(history(*leads[:2], follows, *leads[3:], *beat(4100)))]


def test_a_program_has_one_instance_id_or_none() -> None:
    again: tuple[Any, ...] = ("restarted", 500, {}), joins(600, instance="i", member="")
    assert not [*names_its_instance(history(joins(90, instance="i", member=""), *again))]
    assert not [*names_its_instance(history(joins(90, member=""), *again))]
    assert [*names_its_instance(history(joins(90, instance="j", member=""), *again))]


def test_a_program_that_works_shorter_than_it_may_stays() -> None:
    leaves = joined(100), given(130, "t-0"), ("request", 900, {"api": "LeaveGroup", "version": 3, "member": "m"})
    for pause_ms, is_right in ((500, False), (6000, True)):
        launched = "launched", 0, {"pause_ms": pause_ms, "max_poll_ms": 3000}
        assert bool([*stays(history(launched, *leaves))]) is not is_right


def test_a_join_has_one_sender() -> None:
    """kafkajs sends its heartbeats from several parts."""

    def refused(ms: int) -> tuple[tuple[Any, ...], ...]:
        return joins(ms), ("answer", ms + 1, {"api": "JoinGroup", "error": LOADS})

    assert [*pauses_before_it_repeats(history(*refused(100), *refused(110), joins(120)))]
    assert not [*pauses_before_it_repeats(history(*refused(100), *refused(200), joins(300)))]
    assert not [*pauses_before_it_repeats(history(*beat(100, LOADS), *beat(110, LOADS), *beat(120)))]
