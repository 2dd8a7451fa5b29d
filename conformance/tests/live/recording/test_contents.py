"""What requests and answers say that laws read."""

from typing import Any

from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.live.recording.contents import Contents
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.topics import Topics
from kipcheck.conformance.protocols.client.events import AnswerSeen


def answered(api: str, version: int, asked: dict[str, Any], answer: dict[str, Any], partitions: int = 1) -> AnswerSeen:
    request = Received(f"{api}Request", version, 1, "c", asked, 1, "127.0.0.1", 0.0)
    contents = Contents(APACHE, Topics.of((("t", partitions),)))
    return contents.answered(0.0, request, answer, contents.sent(request), contents.reply(request, answer))


def to(api: str, version: int, **body: Any) -> Any:
    """The member id and generation of the request that an answer is to."""
    joined = {"generationId": -1, "leader": "", "protocolName": "", "members": []}
    answer = {"errorCode": 25, "memberId": "", **joined, "assignment": b"", "topics": []}
    return answered(api, version, body, answer).to


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
    return answered("SyncGroup", 0, {"memberId": "m", "generationId": 1}, {"errorCode": 0, "assignment": assignment})


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
    parts = [
        {"partitionIndex": 0, "errorCode": 0, "oldStyleOffsets": [10, 0]},
        {"partitionIndex": 1, "errorCode": 0, "oldStyleOffsets": []},
    ]
    found = answered("ListOffsets", 0, {}, {"topics": [{"name": "t", "partitions": parts}]}, 2)
    assert found.offsets == {"t-0": 10}
