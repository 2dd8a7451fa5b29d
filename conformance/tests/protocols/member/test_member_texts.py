"""Sentences of the requests of consumers, and of what their users see."""

import pytest

from kipcheck.conformance.protocols.assignment.model.membership import Assigned, Subscription
from kipcheck.conformance.protocols.group.model.messages import EMPTY, Commit, Heartbeat, Join, Leave, Sync
from kipcheck.conformance.protocols.member.ops import (
    ACTIONS,
    CommitEnded,
    Given,
    Lost,
    Metric,
    Raised,
    Reads,
    Request,
    Revoked,
)

T0 = (("t", 0),)
OWNS = Subscription(("t", "u"), 3, T0, 2, "r", T0, 1)


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Join(9, "", None, "consumer", (("range", Subscription(("t",))),)), "JoinGroup, no member id, range: t"),
        (
            Join(9, "m1", "i", "consumer", (("range", OWNS), ("sticky", OWNS))),
            ("JoinGroup, member m1, instance i, range, sticky: "
            "t u, owns t-0, of generation 2, had t-0 of generation 1, rack r"),
        ),
        (Join(9, "m1", None, "consumer", ()), "JoinGroup, member m1, no protocol: "),
        (Sync(5, "m1", None, 2), "SyncGroup, member m1, generation 2"),
        (
            Sync(5, "m1", None, 2, (("m1", Assigned(T0)), ("m2", Assigned(error=1)), ("m3", EMPTY))),
            "SyncGroup, member m1, generation 2, assigns m1: t-0; m2: error 1; m3: no bytes",
        ),
        (Heartbeat(4, "m1", "i", 2), "Heartbeat, member m1, instance i, generation 2"),
        (Leave(4, (("m1", None), ("", "i"))), "LeaveGroup, member m1, no member id"),
        (Commit(7, "m1", None, 2, (("t", 0, 5, -1, ""), ("u", 1, 6, -1, ""))),
         "OffsetCommit, member m1, generation 2, t-0 at 5, u-1 at 6"),
        (Commit(7, "", None, -1, ()), "OffsetCommit, no member id, generation -1"),
    ],
)  # fmt: skip
def test_a_request_in_a_diagram(request_: Request, sentence: str) -> None:
    assert ACTIONS.describe(request_) == sentence


def test_what_the_user_sees() -> None:
    events = (
        Revoked(T0),
        Lost(()),
        Given(T0),
        Reads(T0),
        Raised("A"),
        Raised("A", "B"),
        CommitEnded("NONE"),
        Metric(2),
    )
    assert [*map(ACTIONS.describe, events)] == [
        "revoked t-0", "lost nothing", "given t-0", "reads t-0", "raised A", "raised A (B)", "commit ended NONE",
        "metric 2",
    ]  # fmt: skip
