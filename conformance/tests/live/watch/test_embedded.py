"""Records inside requests and answers: a damaged one is reported once, with its writer, its place and its readers."""

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.cli.main import run
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.live.watch.watcher import UNSEEN, Watcher
from kipcheck.conformance.tests.support.captures import exchange, packets, watched
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.wire import layout
from kipcheck.conformance.wire.pcap import Sent

EMBEDS: Final = "client/embeds-strictly"
SOUND: Final = layout("apache", "ConsumerProtocolSubscription", 0).encode({"topics": ["t"], "userData": None})
SHORT: Final = b"\0\1" + SOUND[2:]
"""Version 1 without the owned partitions."""
TASKS: Final = struct.pack(">ii", 11, 11) + bytes(16) + b"\0\0"
"""User data of Streams that ends in a length."""
FUTURE: Final = struct.pack(">ii", 12, 12) + b"fields of version 12"


def subscribed(user_data: bytes, version: int = 1) -> bytes:
    value = {"topics": ["t"], "userData": user_data, "ownedPartitions": []}
    return layout("apache", "ConsumerProtocolSubscription", version).encode(value)


def assigned(user_data: bytes | None = None, cut: int = 0) -> bytes:
    value = {"assignedPartitions": [{"topic": "t", "partitions": [0]}], "userData": user_data}
    data = layout("apache", "ConsumerProtocolAssignment", 1).encode(value)
    return data[: len(data) - cut]


def joins(
    metadata: bytes, name: str = "range", kind: str = "consumer", others: Mapping[str, bytes] | None = None
) -> list[Sent]:
    """A member joins without an id and then with one, and leads."""
    asked: dict[str, Any] = {
        "groupId": "g", "sessionTimeoutMs": 6000, "rebalanceTimeoutMs": 6000, "protocolType": kind,
        "protocols": [{"name": name, "metadata": metadata}],
    }  # fmt: skip
    members = [{"memberId": id, "metadata": each} for id, each in {"m": metadata, **(others or {})}.items()]
    joined = {"errorCode": 0, "generationId": 1, "protocolName": name, "leader": "m", "memberId": "m"}
    first = exchange("JoinGroup", 5, 1, asked, {**joined, "errorCode": 79, "members": []})
    return [*first, *exchange("JoinGroup", 5, 2, {**asked, "memberId": "m"}, {**joined, "members": members})]


def syncs(sent: Mapping[str, bytes], got: bytes) -> list[Sent]:
    """In version 3, which names neither type nor assignor."""
    rows = [{"memberId": id, "assignment": each} for id, each in sent.items()]
    asked = {"groupId": "g", "generationId": 1, "memberId": "m", "assignments": rows}
    return [*exchange("SyncGroup", 3, 3, asked, {"assignment": got})]


def described(metadata: bytes, assignment: bytes, name: str = "range", kind: str = "consumer") -> list[Sent]:
    member = {
        "memberId": "x",
        "clientId": "c",
        "clientHost": "/h",
        "memberMetadata": metadata,
        "memberAssignment": assignment,
    }
    group = {
        "errorCode": 0,
        "groupId": "other",
        "groupState": "Stable",
        "protocolType": kind,
        "protocolData": name,
        "members": [member],
    }
    return [*exchange("DescribeGroups", 5, 4, {"groups": ["other"]}, {"groups": [group]})]


def found(path: Path, *parts: list[Sent], of: str = "apache") -> tuple[list[tuple[str, str, str]], Watcher, list[str]]:
    """Group, client and text of each violation."""
    watcher, lines = watched(packets(each for part in parts for each in part), path / "traffic.pcap", of=edition(of))
    assert not watcher.counts["our bugs"]
    reported = [each for each in watcher.reported if each.law.id == EMBEDS]
    return [(each.member.group, each.member.software, each.violation.why) for each in reported], watcher, lines


def test_a_subscription_without_a_field_of_its_version_is_reported_once_with_its_bytes(tmp_path: Path) -> None:
    reported, watcher, lines = found(
        tmp_path, joins(SHORT), syncs({"m": assigned()}, assigned()), described(SHORT, assigned())
    )
    assert [(group, client) for group, client, _ in reported] == [("g", "me"), ("other", UNSEEN)]
    start = 2 + 2 + 4 + 4 + 3 + 8 + 2 + 2 + 10 + 4 + 7 + 4
    why = reported[0][2]
    assert why.startswith(
        "JoinGroupRequest v5 / protocols[0].metadata: ConsumerProtocolSubscription v1 / ownedPartitions at byte 13 "
        f"(byte {start + 13} of JoinGroupRequest): "
    )
    assert why.endswith(
        "; leaders with kafka-clients 2.4.0 to 4.4.0 fail at it, 0.10.0.0 to 2.3.1 accept it; "
        "other clients were not tried"
    )
    assert any(line.split()[:2] == [str(start), "0001"] for line in lines), lines
    assert {each.law.id for each in watcher.reported} == {EMBEDS}


CUT: Final = assigned(b"abc", cut=1)
SUBSCRIPTION, ASSIGNMENT = "ConsumerProtocolSubscription", "ConsumerProtocolAssignment"
DESCRIBED: Final = "DescribeGroupsResponse v5 / groups[0].members[0]"
ROWS: Final[list[tuple[tuple[list[Sent], ...], list[tuple[str, str]]]]] = [
    ((joins(SOUND), syncs({"m": CUT}, CUT)),
     [("me", f"SyncGroupRequest v3 / assignments[0].assignment of m: {ASSIGNMENT} v1 / userData")]),
    ((joins(SOUND), syncs({}, CUT)),
     [(UNSEEN, f"SyncGroupResponse v3 / assignment: {ASSIGNMENT} v1 / userData")]),
    ((joins(SOUND, others={"y": SHORT}),),
     [(UNSEEN, f"JoinGroupResponse v5 / members[1].metadata of y: {SUBSCRIPTION} v1 / ownedPartitions")]),
    ((described(SOUND, CUT),),
     [(UNSEEN, f"{DESCRIBED}.memberAssignment of x: {ASSIGNMENT} v1 / userData")]),
    ((joins(subscribed(TASKS), "stream"),),
     [("me", "JoinGroupRequest v5 / protocols[0].metadata.userData: SubscriptionInfo v11 / userEndPoint")]),
    ((joins(subscribed(FUTURE), "stream"), syncs({"m": assigned(TASKS[:10])}, b"")),
     [("me", "SyncGroupRequest v3 / assignments[0].assignment.userData of m: AssignmentInfo v11 / activeTasks")]),
    ((described(subscribed(b""), assigned(TASKS[:12]), "stream"),),
     [(UNSEEN, f"{DESCRIBED}.memberMetadata.userData of x: SubscriptionInfo v0"),
      (UNSEEN, f"{DESCRIBED}.memberAssignment.userData of x: AssignmentInfo v11 / standbyTasks")]),
    ((joins(b""),),
     [("me", f"JoinGroupRequest v5 / protocols[0].metadata: {SUBSCRIPTION} v0")]),
    ((joins(SOUND), syncs({"m": b""}, b"")),
     [("me", f"SyncGroupRequest v3 / assignments[0].assignment of m: {ASSIGNMENT} v0")]),
]  # fmt: skip
"""What passes -> the client and the field of each damaged record."""


@for_each(ROWS)
def test_each_place_of_damage_is_judged(
    parts: tuple[list[Sent], ...], expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    reported, _, _ = found(tmp_path, *parts)
    assert [(client, why.partition(" at byte ")[0]) for _, client, why in reported] == expected


def test_the_offset_of_user_data_counts_from_the_header(tmp_path: Path) -> None:
    (only,), _, _ = found(tmp_path, joins(subscribed(TASKS), "stream"))
    start = 2 + 2 + 4 + 4 + 3 + 8 + 2 + 2 + 10 + 4 + 8 + 4 + len(subscribed(b"")) - 4
    assert f"at byte 24 (byte {start + 24} of JoinGroupRequest)" in only[2]
    assert "leaders with kafka-streams 0.10.0.0 to 1.1.1, 3.2.0 to 4.3.1 fail at it" in only[2]


LATER: Final = b"\0\5" + layout("apache", SUBSCRIPTION, 3).encode({"topics": ["t"], "ownedPartitions": []})[2:]
LONG: Final = subscribed(struct.pack(">i", 1) + bytes(16 + 8 + 4))
"""Streams of 0.10.1 to 1.1: version 1, with the end point of version 2 behind it."""
SOUND_ROWS: Final[list[tuple[tuple[list[Sent], ...], str]]] = [
    ((joins(SOUND + b"more"),), ""),
    ((joins(LATER + b"more"),), f"{SUBSCRIPTION} v5: only the fields of v3 are known, and judged"),
    ((joins(b"\0\1", "compatible", "connect"),), "assignments of protocol type connect are not judged"),
    ((joins(subscribed(FUTURE), "stream"),), "v11 is the newest that is known; its fields are not judged"),
    ((joins(subscribed(b"\xff"), "sticky"),), ""),
    ((joins(LONG, "stream"),), ""),
    ((described(b"", b""),), ""),  # a group that rebalances
    ((described(assigned(), assigned()),), ""),  # KAFKA-9150
    ((described(b"\0", b"\0", "compatible", "connect"),), ""),
    ((joins(SOUND), syncs({}, b"")), ""),
]
"""What passes -> the sentence about what is not judged."""


@for_each(SOUND_ROWS)
def test_what_the_protocol_allows_is_no_damage_and_what_is_not_judged_is_named(
    parts: tuple[list[Sent], ...], note: str, tmp_path: Path
) -> None:
    reported, watcher, lines = found(tmp_path, *parts)
    assert not reported and not watcher.reported
    assert [line for line in lines if "reading" not in line and note in line] or not note, lines
    assert note or len(lines) <= 1, lines


def test_a_member_is_judged_by_its_own_version_whatever_the_edition(tmp_path: Path) -> None:
    """An edition without version 1 reads it all the same."""
    reported, watcher, _ = found(tmp_path, joins(subscribed(b"")), of="apache@2.3.1")
    assert not reported and not watcher.reported
    reported, _, _ = found(tmp_path, joins(SHORT), of="apache@2.3.1")
    assert len(reported) == 1


def test_the_exit_code_and_the_report(tmp_path: Path, capsys: Any) -> None:
    found(tmp_path, joins(SHORT))
    assert run(["watch", "--pcap", str(tmp_path / "traffic.pcap"), "--out", str(tmp_path / "out")]) == 1
    assert f"FAIL {EMBEDS} (MUST): group g" in capsys.readouterr().out
    assert "ownedPartitions" in (tmp_path / "out" / "report.html").read_text()
