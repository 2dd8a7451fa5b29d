"""Released applications of Kafka Streams in streams groups, and share consumers, on the broker of scripts."""

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Replied
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.client import target
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_SHARES, SURVIVES_STREAMS
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Unavailable

BEATS = {
    "client/names-its-epoch", "client/joins-anew-when-fenced", "client/joins-in-full", "client/leaves-with-its-epoch",
}  # fmt: skip
PLAYED = {
    SURVIVES_STREAMS: (
        "streams-group@4.2.1",
        ("protocol streams; assign 0,1; pass 1500; assign 1,2; rebalance; pass 600; "
        "answer StreamsGroupHeartbeat FENCED_MEMBER_EPOCH; pass 1200; stop"),
        BEATS | {"client/owns-what-it-is-assigned"},
    ),
    SURVIVES_SHARES: (
        "share-group@4.2.1",
        ("protocol share; commit sync; assign 0,1; pass 900; answer ShareFetch SHARE_SESSION_NOT_FOUND; pass 300; "
        "answer ShareGroupHeartbeat FENCED_MEMBER_EPOCH; pass 3600; stop"),
        BEATS | {
            "client/acknowledges-what-it-acquired", "client/acknowledges-once", "client/numbers-its-share-sessions",
            "client/ends-its-share-sessions", "client/shares-what-it-is-assigned",
        },
    ),
}  # fmt: skip
"""Check -> client, script, and the laws that read something in it."""


@pytest.mark.parametrize(("name", "error"), [
    ("streams-group@4.1.2", "kip-1071"), ("share-group@4.0.0", "kip-932"), ("streams-group@4", "4"),
])  # fmt: skip
def test_a_release_without_such_groups_is_refused(name: str, error: str) -> None:
    with pytest.raises(LookupError, match=error):
        target.target(f"client:{name}", name, None)


@pytest.mark.long
@pytest.mark.jars
@pytest.mark.timeout(200)
@pytest.mark.parametrize("check", PLAYED)
def test_a_released_client_keeps_the_laws_of_its_group(check: str) -> None:
    name, script, judged = PLAYED[check]
    case = Case(check, "apache", Role.CLIENT, OPERATIONS.parse_shorthand(script))
    try:
        with target.target(f"client:{name}", name, None).open("apache", Role.CLIENT) as session:
            (found,) = session.run([case])
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert all(isinstance(each, Replied) for each in found), found
    laws = [each for each in all_invariants(Role.CLIENT) if check in each.checks]
    history = target._Shown(name, case, found).history
    assert {each.invariant for each in judge(history, laws) if each.violations} == set()
    assert judged <= {law.id for law in laws if law.premise is not None and law.premise(history)}
