"""Sentences of requests and answers of classic groups."""

import pytest

from kipcheck.conformance.protocols.group.errors import Error
from kipcheck.conformance.protocols.group.ops import OPERATIONS, By, Described, Joined, Left, Listed, Synced


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "rejoin a as i type=t pv=1",
            "JoinGroup v5, member a, instance i, t p:x, session 10000 ms, rebalance 30000 ms, protocol version 1",
        ),
        (
            "join a type= lists=",
            "JoinGroup v3, no member id, no type without protocols, session 10000 ms, rebalance 30000 ms",
        ),
        ("sync a a=x", "SyncGroup v3, member a, generation -1, gives a 'x'"),
        ("leave a b/i /", "LeaveGroup v3, b as i, no member"),
        ("commit a 5 u:1:3", "OffsetCommit v7, member a, generation -1, t-0 at 5, u-1 at 3"),
        ("list", "ListGroups v2"),
    ],
)
def test_requests(text: str, sentence: str) -> None:
    (step,) = OPERATIONS.parse_shorthand(text)
    event = OPERATIONS.event_of(step)
    assert isinstance(event, By) and OPERATIONS.describe_request(event.request) == sentence


def test_answers() -> None:
    described = OPERATIONS.describe_answer
    assert described(Joined(0, Error.MEMBER_ID_REQUIRED, member="a.1")) == "MEMBER_ID_REQUIRED, member a.1"
    follows = Joined(0, Error.NONE, 2, "consumer", "p", "b.1", "a.1")
    assert described(follows) == "generation 2, protocol p, member a.1, led by b.1"
    assert described(Synced(0, Error.NONE, assignment="x")) == "assigned 'x'"
    assert described(Left(0, Error.NONE, (("a.1", "i", Error.NONE),))) == "a.1 as i: NONE"
    assert described(Described(0, Error.NONE, "Dead")) == "Dead, no members"
    assert described(Listed(0, Error.NONE)) == "no groups"


def test_other_events() -> None:
    steps = OPERATIONS.parse_shorthand("elapse 30; fail NOT_ENOUGH_REPLICAS; load")
    texts = [OPERATIONS.sentence(each) for each in steps]
    assert texts == ["30 ms pass", "the next append fails: NOT_ENOUGH_REPLICAS", "the partition comes back"]
