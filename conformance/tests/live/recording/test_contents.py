"""What requests and answers say that laws read."""

from typing import Any

from kipcheck.conformance.core.edition import APACHE
from kipcheck.conformance.live.recording.contents import Contents
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.server.topics import Topics


def to(api: str, version: int, **body: Any) -> Any:
    """The member id and generation of the request that an answer is to."""
    request = Received(f"{api}Request", version, 1, "c", body, 1, "127.0.0.1", 0.0)
    joined = {"generationId": -1, "leader": "", "protocolName": "", "members": []}
    answer = {"errorCode": 25, "memberId": "", **joined, "assignment": b"", "topics": []}
    return Contents(APACHE, Topics.of((("t", 1),))).answered(request, answer)["to"]


def test_the_answer_to_each_request_of_a_member_names_it() -> None:
    """Brokers from 4.0 on send no member id in an answer to JoinGroup with UNKNOWN_MEMBER_ID."""
    assert to("JoinGroup", 5, memberId="m") == ["m", -1]
    assert to("LeaveGroup", 1, memberId="m") == ["m", -1]
    assert to("LeaveGroup", 4, members=[{"memberId": "m", "groupInstanceId": None}]) == ["m", -1]
    for api in "SyncGroup", "Heartbeat":
        assert to(api, 3, memberId="m", generationId=7) == ["m", 7]
    assert to("OffsetCommit", 8, memberId="m", generationIdOrMemberEpoch=7) == ["m", 7]
