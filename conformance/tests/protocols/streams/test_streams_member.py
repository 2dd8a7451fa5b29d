"""What a member of a Streams group does with an assignment, and what it subscribes with."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kipcheck.conformance.protocols.streams.model.group_model import process_of
from kipcheck.conformance.protocols.streams.model.members import (
    LATEST_OFFSET,
    NO_VERSION,
    AssignmentInfo,
    Fatal,
    Memory,
    Settings,
    Share,
    SubscriptionInfo,
    TaskId,
)
from kipcheck.conformance.protocols.streams.model.release_members import binary
from kipcheck.conformance.protocols.streams.ops import STATELESS
from kipcheck.conformance.tests.support.streams_members import NEW, NEWEST, OLD, STATEFUL, assignment_result


@pytest.mark.parametrize(("release", "used", "received", "after", "when", "active"), [
    # Up to 1.1 nobody asks for versions.
    ("0.10.0.1", 1, (1,), 1, "never", NEW), ("1.1.1", 2, (1,), 2, "never", NEW), ("1.1.1", 1, (2,), 1, "never", NEW),
    # 2.0 and those with the leader's version.
    ("2.1.1", 4, (3, 3), 3, "again", OLD), ("2.1.1", 4, (3, 4), 4, "again", OLD), ("2.0.1", 3, (3, 4), 4, "never", NEW),
    ("2.1.1", 3, (3, 4), 4, "never", NEW), ("2.3.0", 4, (4, 4), 4, "never", NEW), ("2.3.0", 4, (2,), 4, "never", NEW),
    # Those with the common version.
    ("2.2.2", 4, (3, 3), 3, "again", OLD), ("2.2.2", 3, (3, 4), 4, "again", OLD), ("2.3.1", 4, (3, 4), 4, "again", OLD),
    ("2.3.1", 4, (4, 4), 4, "never", NEW), ("2.3.1", 4, (1,), 4, "never", NEW),
    # It is applied, and then they leave;
    ("2.4.1", 5, (4, 4), 4, "again", NEW), ("2.5.1", 4, (4, 6), 6, "again", NEW), ("2.5.1", 6, (4, 6), 6, "again", NEW),
    ("2.4.1", 5, (2,), 5, "never", NEW),
    # or stay.
    ("2.6.0", 7, (4, 4), 4, "now", NEW), ("3.9.2", 9, (9, 11), 11, "now", NEW), ("3.9.2", 11, (9, 11), 11, "now", NEW),
    ("4.3.1", 11, (11, 11), 11, "never", NEW), ("3.9.2", 11, (1,), 11, "never", NEW),
])  # fmt: skip
def test_a_member_hears_in_which_version_to_go_on(
    release: str, used: int, received: tuple[int, ...], after: int, when: str, active: tuple[TaskId, ...]
) -> None:
    """268-17, 268-33, 268-35 to 268-37, 268-44, 268-48."""
    result = assignment_result(
        release, used, AssignmentInfo(received[0], received[-1] if len(received) > 1 else NO_VERSION)
    )
    assert (result.memory.used, result.rejoin.when, result.memory.active) == (after, when, active)
    assert result.applied is (active == NEW)


@pytest.mark.parametrize(("release", "used", "received", "kind"), [
    ("0.10.0.1", 1, (2,), "TaskAssignment"), ("1.1.1", 2, (3, 3), "TaskAssignment"),
    ("2.0.1", 3, (4, 4), "TaskAssignment"), ("2.1.1", 3, (4, 4), "IllegalState"),
    ("2.3.1", 3, (4, 4), "TaskAssignment"), ("2.3.1", 4, (4, 5), "TaskAssignment"),
    ("3.9.2", 9, (11, 11), "TaskAssignment"), ("3.9.2", 9, (9, 12), "TaskAssignment"),
])  # fmt: skip
def test_a_member_refuses_what_it_cannot_read_or_use(
    release: str, used: int, received: tuple[int, ...], kind: str
) -> None:
    with pytest.raises(Fatal) as thrown:
        assignment_result(release, used, AssignmentInfo(received[0], received[-1] if len(received) > 1 else NO_VERSION))
    assert kind in thrown.value.kind


@pytest.mark.parametrize("fitted", [True, False])
def test_partitions_and_tasks_are_as_many(fitted: bool) -> None:
    few = Share((("t", 0), ("t", 1)), AssignmentInfo(2, active=(TaskId(0, 0),)))
    many = Share((), AssignmentInfo(2, active=(TaskId(0, 0),)))
    for release, share, fine in (("1.1.1", few, False), ("1.1.1", many, False), ("0.10.1.1", many, fitted)):
        member = binary(Settings(release, STATELESS, process_of("a")), NEWEST, fitted)
        if fine:
            assert member.assigned(Memory(2), share).memory.active == ()
        else:
            with pytest.raises(Fatal, match="active tasks"):
                member.assigned(Memory(2), share)


def test_what_was_scheduled_is_done_unless_something_is_more_urgent() -> None:
    later = AssignmentInfo(11, 11, next_ms=5000)
    assert assignment_result("3.9.2", 11, later).rejoin == ("later", 5000)
    assert assignment_result("3.9.2", 11, replace(later, next_ms=0)).rejoin == ("now", 0)
    assert assignment_result("3.9.2", 9, AssignmentInfo(9, 11, next_ms=5000)).rejoin == ("now", 0)
    assert assignment_result("2.5.1", 6, AssignmentInfo(6, 6, next_ms=5000)).rejoin.when == "never"


def test_a_member_whose_end_point_is_not_known_comes_back() -> None:
    """KAFKA-9568."""
    share = Share((), AssignmentInfo(6, 6, hosts=(("b:9092", ()),)))
    for release, when in (("2.5.1", "never"), ("2.6.0", "now"), ("3.9.2", "now")):
        member = binary(Settings(release, STATELESS, process_of("a"), end_point="a:9092"), NEWEST)
        version = member.latest
        result = replace(share, data=AssignmentInfo(version, version, hosts=(("b:9092", ()),)))
        assert member.assigned(Memory(version), result).rejoin.when == when
        alone = replace(share, data=AssignmentInfo(version, version))
        assert member.assigned(Memory(version), alone).rejoin.when == "never"


@pytest.mark.parametrize(
    ("release", "used", "result"),
    [
        ("1.1.1", 2, {"active": (TaskId(0, 1),), "standby": (TaskId(0, 2),)}),
        ("2.3.1", 4, {"active": (TaskId(0, 1),), "standby": (TaskId(0, 2),), "latest": 4}),
        ("2.4.1", 5, {"active": (), "standby": (TaskId(0, 2),), "latest": 5}),
        ("2.6.1", 6, {"active": (TaskId(0, 1),), "standby": (TaskId(0, 2),), "latest": 8}),
        ("2.6.0", 7, {"active": (), "standby": (), "sums": ((TaskId(0, 1), LATEST_OFFSET), (TaskId(0, 2), 5))}),
        ("2.6.1", 8, {"unique": 4, "sums": ((TaskId(0, 1), LATEST_OFFSET), (TaskId(0, 2), 5))}),
        ("2.8.0", 9, {"unique": 4, "error": 4, "tags": ()}),
        ("3.9.2", 11, {"unique": 4, "error": 4, "tags": (("zone", "x"),), "end_point": "a:1"}),
        ("0.10.0.1", 1, {"end_point": None, "latest": NO_VERSION}),
    ],
)
def test_a_member_tells_what_its_version_has_a_place_for(release: str, used: int, result: Mapping[str, object]) -> None:
    settings = Settings(release, STATEFUL, process_of("a"), end_point="a:1", tags=(("zone", "x"),))
    memory = Memory(used, 3, (TaskId(0, 1),), (TaskId(0, 1), TaskId(0, 2)), ((TaskId(0, 2), 5),), error=4)
    _, info = binary(settings, NEWEST).subscribe(memory, ("t",))
    assert isinstance(info, SubscriptionInfo)
    assert {name: getattr(info, name) for name in result} == result


def test_tasks_without_state_have_no_offsets() -> None:
    memory = Memory(9, active=(TaskId(0, 0),), standby=(TaskId(0, 1),))
    _, info = binary(Settings("2.8.0", STATELESS, process_of("a")), NEWEST).subscribe(memory, ("t",))
    assert isinstance(info, SubscriptionInfo) and info.sums == ()


def test_the_unique_byte_goes_round() -> None:
    """268-45."""
    member = binary(Settings("2.8.0", STATELESS, process_of("a")), NEWEST)
    memory, seen = member.initial(), []
    for _ in range(257):
        memory, info = member.subscribe(memory, ("t",))
        assert isinstance(info, SubscriptionInfo)
        seen.append(info.unique)
    assert seen[:2] == [1, 2] and seen[126:129] == [127, -128, -127] and seen[256] == 1
