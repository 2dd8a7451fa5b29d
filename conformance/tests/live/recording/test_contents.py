"""What requests and answers say that laws read."""

from typing import Any

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.recording.contents import Contents
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.client.events import AnswerSeen


def to(api: str, version: int, **body: Any) -> Any:
    """The member id and generation of the request that an answer is to."""
    request = Received(f"{api}Request", version, 1, "c", body, 1, "127.0.0.1", 0.0)
    joined = {"generationId": -1, "leader": "", "protocolName": "", "members": []}
    answer = {"errorCode": 25, "memberId": "", **joined, "assignment": b"", "topics": []}
    return Contents(APACHE, Topics.of((("t", 1),))).answered(0.0, request, answer).to


def test_the_answer_to_each_request_of_a_member_names_it() -> None:
    """Brokers from 4.0 on send no member id in an answer to JoinGroup with UNKNOWN_MEMBER_ID."""
    assert to("JoinGroup", 5, memberId="m") == ("m", -1)
    assert to("LeaveGroup", 1, memberId="m") == ("m", -1)
    assert to("LeaveGroup", 4, members=[{"memberId": "m", "groupInstanceId": None}]) == ("m", -1)
    for api in "SyncGroup", "Heartbeat":
        assert to(api, 3, memberId="m", generationId=7) == ("m", 7)
    assert to("OffsetCommit", 8, memberId="m", generationIdOrMemberEpoch=7) == ("m", 7)


PARTITIONS = "0000000100017400000001" + "00000000"
"""The array of assignments with partition 0 of topic t."""


def synced(assignment: bytes) -> AnswerSeen:
    request = Received("SyncGroupRequest", 0, 1, "c", {"memberId": "m", "generationId": 1}, 1, "127.0.0.1", 0.0)
    return Contents(APACHE, Topics.of((("t", 1),))).answered(0.0, request, {"errorCode": 0, "assignment": assignment})


def test_an_assignment_without_user_data_has_partitions() -> None:
    """pykafka 2.8.0 writes version 1 and no user data, which client/embeds-strictly alone judges."""
    assert synced(bytes.fromhex("0001" + PARTITIONS)).partitions == ("t-0",)
    whole = synced(bytes.fromhex("0001" + PARTITIONS + "ffffffff"))
    assert whole.partitions == ("t-0",) and not whole.unread


def test_an_assignment_that_nobody_can_read_is_unread() -> None:
    damaged = synced(bytes.fromhex("0001" + PARTITIONS)[:-2])
    assert damaged.partitions == () and damaged.unread
    assert not synced(b"").unread


def test_list_offsets_0_has_the_latest_offset_first() -> None:
    request = Received("ListOffsetsRequest", 0, 1, "c", {}, 1, "127.0.0.1", 0.0)
    parts = [
        {"partitionIndex": 0, "errorCode": 0, "oldStyleOffsets": [10, 0]},
        {"partitionIndex": 1, "errorCode": 0, "oldStyleOffsets": []},
    ]
    body = {"topics": [{"name": "t", "partitions": parts}]}
    found = Contents(APACHE, Topics.of((("t", 2),))).answered(0.0, request, body)
    assert found.offsets == {"t-0": 10}
