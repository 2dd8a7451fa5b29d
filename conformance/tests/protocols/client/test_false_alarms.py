"""What released clients do, and no law forbids: traffic that was once taken for a breach."""

from typing import Any

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import History, Op
from kipcheck.conformance.protocols.client.invariants.identity import joins_with_its_id, names_itself
from kipcheck.conformance.protocols.client.invariants.leading import assigns_each_partition_once
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import observed

SUBSCRIPTION = {"version": 0, "topics": ["t"]}


def history(*events: tuple[Any, ...]) -> History:
    """Of events: what, milliseconds, and more."""
    (step,) = OPERATIONS.parse_shorthand("stop")
    actions = [{"what": what, "ms": ms, "connection": 1, **more} for what, ms, more in events]
    answer = observed({"status": "accepted", "actions": [*actions, {"what": "idle", "ms": 9999, "late_ms": 0}]})
    case = Case("client/groups", "apache", Role.CLIENT, (step,))
    return History(case, "it", (Op(0, step, answer, 1),))


def joined(ms: int, generation: int = 1) -> tuple[Any, ...]:
    members = [{"id": "m", "instance": None, "subscription": SUBSCRIPTION}]
    return ("answer", ms, {"api": "JoinGroup", "error": 0, "generation": generation, "member": "m", "leads": True,
                           "protocol": "range", "members": members, "sizes": {"t": 1}})  # fmt: skip


def synced(ms: int, *partitions: str, generation: int = 1) -> tuple[Any, ...]:
    return ("request", ms, {"api": "SyncGroup", "version": 5, "member": "m", "generation": generation,
                            "assignments": [["m", [*partitions]]]})  # fmt: skip


def metadata(ms: int) -> tuple[Any, ...]:
    return "answer", ms, {"api": "Metadata", "sizes": {"t": 1}}


def rejoins(ms: int) -> tuple[Any, ...]:
    return "request", ms, {"api": "JoinGroup", "version": 5, "member": "m", "protocols": [], "subscriptions": []}


def test_metadata_that_comes_with_the_assignment_was_not_read_before_it() -> None:
    """kafka-python 3.0.12: Metadata was answered 0 ms before its SyncGroup; it joined again 34 ms later."""
    assert not [*assigns_each_partition_once(history(joined(100), metadata(130), synced(130), rejoins(164)))]
    assert [*assigns_each_partition_once(history(metadata(20), joined(100), synced(130), rejoins(164)))]


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
