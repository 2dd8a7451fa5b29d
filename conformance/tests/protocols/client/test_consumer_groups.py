"""What members of KIP-848's groups do, and no law forbids, beside what the laws find."""

from typing import Any

from kipcheck.conformance.protocols.client.invariants.consumer_groups import (
    commits_with_its_epoch,
    joins_in_full,
    leaves_when_it_does_not_poll,
    leaves_with_its_epoch,
    names_its_epoch,
    owns_what_it_is_assigned,
    repeats_in_full,
    revokes_before_it_acknowledges,
    subscribes_by_its_pattern,
)
from kipcheck.conformance.protocols.client.invariants.fatal_errors import raises_fatal_errors, stops_at_an_ending
from kipcheck.conformance.tests.protocols.client.test_false_alarms import history

BEAT = "ConsumerGroupHeartbeat"


def beat(ms: int, epoch: int = 1, **more: Any) -> tuple[Any, ...]:
    """A short heartbeat, but for ``more``."""
    return "request", ms, {"api": BEAT, "version": 1, "member": "m", "generation": epoch, "rebalance_ms": -1, **more}


def whole(ms: int, epoch: int = 0, *owned: str, **more: Any) -> tuple[Any, ...]:
    return beat(ms, epoch, **{"rebalance_ms": 6000, "topics": ["t"], "owned": [*owned], **more})


def answered(ms: int, epoch: int = 1, *partitions: str, **more: Any) -> tuple[Any, ...]:
    given = {"partitions": [*partitions]} if partitions else {}
    return "answer", ms, {"api": BEAT, "error": 0, "member": "m", "generation": epoch, "interval_ms": 300,
                          "to": ["m", 0], **given, **more}  # fmt: skip


def refused(ms: int, error: int) -> tuple[Any, ...]:
    return "answer", ms, {"api": BEAT, "error": error, "member": "m", "generation": 0, "to": ["m", 1]}


def sends(ms: int, api: str, *partitions: str, epoch: int = 1, **more: Any) -> tuple[Any, ...]:
    carried = {"member": "m", "generation": epoch} if api == "OffsetCommit" else {"connection": 2}
    return "request", ms, {"api": api, "version": 9, "partitions": [*partitions], "offsets": [1] * len(partitions),
                           **carried, **more}  # fmt: skip


JOINED = whole(100), answered(110, 1, "t-0")


def test_later_heartbeats_are_short() -> None:
    assert not [*joins_in_full(history(*JOINED, beat(400), beat(700, -1)))]
    (found,) = joins_in_full(history(*JOINED, beat(400, 0, owned=[])))
    assert found.shape == ("without", "rebalance timeout", "subscription")


def test_librdkafka_sends_an_empty_expression_beside_the_names_of_topics() -> None:
    """librdkafka 2.16.1; and platformatic 1.35.0 sends the expression alone."""
    assert not [*joins_in_full(history(whole(100, regex="")))]
    assert not [*joins_in_full(history(whole(100, topics=None, regex="t.*")))]


def test_a_heartbeat_is_short_after_an_answer_that_came_right_before_its_connection_was_closed() -> None:
    cut_off = "closed", 405, {"why": "by the script"}
    assert not [*repeats_in_full(history(*JOINED, beat(400), answered(401), cut_off, beat(700)))]
    assert not [*repeats_in_full(history(*JOINED, beat(400), cut_off, whole(700, 1, "t-0"), beat(1000)))]
    assert [*repeats_in_full(history(*JOINED, beat(400), cut_off, beat(700)))]


def test_a_connection_of_others_says_nothing_of_the_answer_to_a_heartbeat() -> None:
    other = "closed", 405, {"connection": 2}
    assert not [*repeats_in_full(history(*JOINED, beat(400), other, answered(450), beat(700)))]


def test_a_member_that_left_joins_again_with_epoch_0() -> None:
    left = beat(400, -1), answered(410, -1)
    assert not [*names_its_epoch(history(*JOINED, *left, whole(900), answered(910, 2), beat(1200, 2)))]
    assert [*names_its_epoch(history(*JOINED, *left, beat(900)))]
    # An answer to a heartbeat of before the leave is no new membership.
    assert [*names_its_epoch(history(*JOINED, beat(390), beat(400, -1), answered(405), answered(410, -1), beat(900)))]


def test_a_partition_is_owned_until_a_heartbeat_leaves_it_out() -> None:
    taken = *JOINED, beat(400, 1, owned=["t-0"]), answered(410, 1, "t-1")
    acknowledged = *taken, beat(500, 1, owned=["t-1"]), answered(510, 2)
    assert not [*owns_what_it_is_assigned(history(*taken, beat(500, 1, owned=["t-0"])))]
    assert [*owns_what_it_is_assigned(history(*acknowledged, beat(800, 2, owned=["t-0", "t-1"])))]
    again = answered(510, 2, "t-0", "t-1")
    assert not [*owns_what_it_is_assigned(history(*taken, beat(500, 1, owned=["t-1"]), again, whole(800, 2, "t-0")))]


def test_a_partition_is_fetched_and_committed_until_its_loss_is_acknowledged() -> None:
    owns = *JOINED, beat(120, 1, owned=["t-0"]), answered(410, 1, "t-1")
    last = sends(2000, "Fetch", "t-0"), sends(2010, "OffsetCommit", "t-0")
    gone = beat(2100, 1, owned=["t-1"])
    assert not [*revokes_before_it_acknowledges(history(*owns, *last, gone, sends(2150, "Fetch", "t-0", "t-1")))]
    (found,) = revokes_before_it_acknowledges(history(*owns, gone, sends(2500, "OffsetCommit", "t-0")))
    assert found.shape == ("OffsetCommit", "given up")
    # One that is given it back has it; one that was fenced is judged by other laws.
    back = answered(2110, 2, "t-0", "t-1")
    assert not [*revokes_before_it_acknowledges(history(*owns, gone, back, sends(2500, "Fetch", "t-0")))]
    anew = refused(2100, 110), whole(2110), answered(2120, 3, "t-1")
    assert not [*revokes_before_it_acknowledges(history(*owns, *anew, sends(2500, "Fetch", "t-0")))]


def test_a_commit_that_was_built_before_its_epoch_rose_carries_the_old_one() -> None:
    rose = *JOINED, beat(400), answered(410, 2)
    assert not [*commits_with_its_epoch(history(*rose, sends(450, "OffsetCommit", "t-0")))]
    assert [*commits_with_its_epoch(history(*rose, sends(1500, "OffsetCommit", "t-0")))]
    stale = "answer", 455, {"api": "OffsetCommit", "error": 113, "to": ["m", 1]}
    assert [*commits_with_its_epoch(history(*rose, stale, sends(600, "OffsetCommit", "t-0")))]
    assert not [*commits_with_its_epoch(history(*rose, stale, sends(600, "OffsetCommit", "t-0", epoch=2)))]


def test_a_commit_is_repeated_with_the_epoch_that_the_client_still_has() -> None:
    """The coordinator raised the epoch, and the heartbeat that says so is not answered yet."""
    stale = "answer", 455, {"api": "OffsetCommit", "error": 113, "to": ["m", 1]}
    first = sends(450, "OffsetCommit", "t-0")
    assert not [*commits_with_its_epoch(history(*JOINED, first, stale, sends(1700, "OffsetCommit", "t-0")))]


def test_an_error_for_a_topic_may_pass_and_one_that_ends_a_membership_is_followed_by_a_join_or_a_leave() -> None:
    """Java 4.4.0 raises TOPIC_AUTHORIZATION_FAILED, and sends its heartbeats on."""
    assert not [*stops_at_an_ending(history(*JOINED, beat(400), refused(410, 29), beat(700)))]
    assert not [*stops_at_an_ending(history(*JOINED, beat(400), refused(410, 69), whole(700)))]
    assert not [*stops_at_an_ending(history(*JOINED, beat(400), refused(410, 30), beat(700, -1)))]
    assert [*stops_at_an_ending(history(*JOINED, beat(400), refused(410, 69), beat(700)))]


def launched(**more: Any) -> tuple[Any, ...]:
    return "launched", 0, more


def refusals(api: str, *times: int, error: int = 23) -> list[tuple[Any, ...]]:
    return [("answer", ms, {"api": api, "error": error}) for ms in times]


def test_a_program_that_may_go_on_after_an_error_tries_again() -> None:
    many = refusals("JoinGroup", 100, 600, 1100, 1600)
    assert [*raises_fatal_errors(history(launched(ends_on_errors=True), *many))]
    assert not [*raises_fatal_errors(history(launched(), *many))]


def test_a_client_that_raises_an_error_may_have_sent_the_request_again() -> None:
    raises = launched(ends_on_errors=True)
    assert not [*raises_fatal_errors(history(raises, *refusals("JoinGroup", 100, 600, 1200)))]
    passing = refusals("JoinGroup", 100, 600, 1100, 1600, error=14)
    assert not [*raises_fatal_errors(history(raises, *passing))]
    assert not [*raises_fatal_errors(history(raises, *refusals("Heartbeat", 100, 600, 1100, 1600, error=30)))]


def metadata(ms: int, *topics: str) -> tuple[Any, ...]:
    return "answer", ms, {"api": "Metadata", "sizes": dict.fromkeys(topics, 1)}


def test_a_pattern_is_sent_in_another_form_or_resolved() -> None:
    """franz-go 1.22.2 groups it, and Java resolves a java.util.regex.Pattern, as soon as it has metadata."""
    begins = launched(pattern="^[a-z]$"), metadata(50, "t", "u", "long")
    for subscription in ({"topics": [], "regex": "(?:^[a-z]$)"}, {"topics": ["t", "u"]}, {"regex": "[tu]"}):
        assert not [*subscribes_by_its_pattern(history(*begins, whole(100, **subscription), beat(1500)))]
    late = whole(100, topics=[]), whole(400, 1, topics=["t", "u"])
    assert not [*subscribes_by_its_pattern(history(*begins, *late, beat(1500)))]
    (found,) = subscribes_by_its_pattern(history(*begins, whole(100, topics=["t"]), beat(1500)))
    assert found.shape == ("omits", "topics")
    assert [*subscribes_by_its_pattern(history(*begins, whole(100, topics=[], regex="(t"), beat(1500)))]


def test_a_program_that_works_for_too_long_is_judged_while_it_works() -> None:
    works = launched(max_poll_ms=3000, pause_ms=6000)
    reads = "answer", 200, {"api": "Fetch", "records": 10, "connection": 2}
    assert [*leaves_when_it_does_not_poll(history(works, *JOINED, reads, beat(4300)))]
    assert not [*leaves_when_it_does_not_poll(history(works, *JOINED, reads, beat(3900), beat(6300)))]
    assert not [*leaves_when_it_does_not_poll(history(works, *JOINED, reads, beat(3250, -1), whole(6300)))]
    # What it read may never have reached the program, whose membership changed.
    anew = beat(400), answered(410, 2, "t-1")
    assert not [*leaves_when_it_does_not_poll(history(works, *JOINED, reads, *anew, beat(4300, 2)))]
    quick = launched(max_poll_ms=3000, pause_ms=3500)
    assert not [*leaves_when_it_does_not_poll(history(quick, *JOINED, reads, beat(4300)))]


def test_a_member_that_lost_its_coordinator_as_it_was_closed_need_not_leave() -> None:
    """librdkafka 2.16.1 and Java 4.4.0: the script reset the connection after the last commit."""
    closes: list[tuple[Any, ...]] = [*JOINED, ("signalled", 2000, {}), sends(2010, "OffsetCommit", "t-0")]
    ends = "ended", 2100, {"code": 0}
    reset = "closed", 2020, {"why": "by the script"}
    assert not [*leaves_with_its_epoch(history(*closes, reset, ends))]
    assert not [*leaves_with_its_epoch(history(*JOINED, ("closed", 1500, {}), ("signalled", 2000, {}), ends))]
    moved = "answer", 2020, {"api": "ConsumerGroupHeartbeat", "error": 16, "to": ["m", 1], "member": "m"}
    assert not [*leaves_with_its_epoch(history(*closes, moved, ends))], "Java 4.4.0: NOT_COORDINATOR"
    (found,) = leaves_with_its_epoch(history(*closes, ("closed", 2020, {}), ends))
    assert found.shape == ("no leave",)
    assert [*leaves_with_its_epoch(history(*closes, ("closed", 2020, {"why": "by the script", "connection": 2}), ends))]
