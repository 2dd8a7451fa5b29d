"""Released applications of Kafka Streams in a streams group on the broker of scripts."""

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Replied
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.client import target
from kipcheck.conformance.protocols.client.invariants.law import SURVIVES_STREAMS
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import Unavailable

SCRIPT = (
    "protocol streams; assign 0,1; pass 1500; assign 1,2; rebalance; pass 600; "
    "answer StreamsGroupHeartbeat FENCED_MEMBER_EPOCH; pass 1200; stop"
)
JUDGED = {
    "client/names-its-epoch", "client/joins-anew-when-fenced", "client/joins-in-full", "client/leaves-with-its-epoch",
    "client/owns-what-it-is-assigned",
}  # fmt: skip


@pytest.mark.parametrize(("name", "error"), [("4.1.2", "no streams groups"), ("4", "4")])
def test_a_release_without_streams_groups_is_refused(name: str, error: str) -> None:
    with pytest.raises(LookupError, match=error):
        target.target("client:streams-group", f"streams-group@{name}", None)


@pytest.mark.long
@pytest.mark.jars
@pytest.mark.timeout(200)
def test_a_released_application_keeps_the_laws_of_its_group() -> None:
    case = Case(SURVIVES_STREAMS, "apache", Role.CLIENT, OPERATIONS.parse_shorthand(SCRIPT))
    try:
        with target.target("client:streams-group@4.2.1", "streams-group@4.2.1", None).open(
            "apache", Role.CLIENT
        ) as session:
            (found,) = session.run([case])
    except Unavailable as missing:
        pytest.skip(str(missing))
    assert all(isinstance(each, Replied) for each in found), found
    laws = [each for each in all_invariants(Role.CLIENT) if SURVIVES_STREAMS in each.checks]
    history = target._history("client:streams-group", case, found)
    verdicts = judge(history, laws)
    assert {each.invariant for each in verdicts if each.violations} == set()
    assert {law.id for law in laws if law.premise is not None and law.premise(history)} >= JUDGED
