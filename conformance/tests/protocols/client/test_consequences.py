"""What follows from a closed connection is no failure of its own, and nothing else vanishes behind it."""

from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.failure_group import FailureGroup
from kipcheck.conformance.core.values.history import History
from kipcheck.conformance.core.values.verdict import Result, Verdict
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.execution.worker import Finding, Unit, judged
from kipcheck.conformance.engine.findings.failure_records import described
from kipcheck.conformance.engine.findings.failures import DistinctFailure, united
from kipcheck.conformance.protocols.client.terms import BY_SCRIPT
from kipcheck.conformance.protocols.declare.check import Sample
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import TargetInfo
from kipcheck.conformance.tests.protocols.client.test_false_alarms import history
from kipcheck.reports.text import block

UNSERVED: Final = "key 13 version 99 is not served"
OFFERED: Final = ("answer", 10, {"api": "ApiVersions", "highest": {}})


def closed(ms: int, why: str) -> tuple[Any, ...]:
    return "closed", ms, {"why": why}


def ended(ms: int) -> tuple[Any, ...]:
    return "ended", ms, {"code": 1, "stderr": ""}


def beaten(ms: int) -> tuple[Any, ...]:
    return "answer", ms, {"api": "Heartbeat", "to": ["m", 1]}


def ends(*events: tuple[Any, ...]) -> Verdict:
    judged = judge(history(OFFERED, *events), all_invariants(Role.CLIENT))
    return next(each for each in judged if each.invariant == "client/ends-when-stopped")


def test_what_follows_from_a_closed_connection_names_what_it_follows_from() -> None:
    found = ends(closed(1000, UNSERVED), ended(12_000))
    assert (found.result, found.violations) == (Result.SKIP, ())
    (each,) = found.consequences
    assert (each.invariant, each.shape) == ("client/asks-what-is-offered", ("not offered", UNSERVED))
    assert each.violation.at_ms == 12_000
    unreadable = {"message": "HeartbeatRequest", "version": 4, "why": "truncated", "kind": "truncated", "hex": ""}
    found = ends(("refused", 1000, unreadable), closed(1001, "a request that cannot be read"), ended(12_000))
    assert [each.invariant for each in found.consequences] == ["client/encodes-strictly"]


def test_a_connection_that_the_script_or_the_client_closed_excuses_nothing() -> None:
    for why in ("", BY_SCRIPT, "idle"):
        assert ends(closed(1000, why), ended(12_000)).result is Result.FAIL
    # What was observed before it does not follow from it.
    assert ends(ended(900), closed(1000, UNSERVED)).result is Result.FAIL


def test_a_client_that_was_in_touch_with_its_group_since_fails_by_itself() -> None:
    assert ends(closed(1000, UNSERVED), beaten(1500), ended(12_000)).result is Result.SKIP
    assert ends(closed(1000, UNSERVED), beaten(2500), ended(12_000)).result is Result.FAIL
    # It goes on with such closings: a later one is no reason either.
    again = closed(1000, UNSERVED), beaten(2500), closed(3000, UNSERVED), ended(12_000)
    assert ends(*again).result is Result.FAIL
    other = closed(1000, UNSERVED), beaten(2500), closed(3000, "key 12 version 99 is not served"), ended(12_000)
    assert ends(*other).result is Result.SKIP
    assert ends(closed(1000, UNSERVED), ("restarted", 2000, {}), ended(12_000)).result is Result.FAIL


def findings(*histories: History) -> list[Finding]:
    unit = Unit("it", "apache", "client/groups", "client", None, 0, None)
    samples = [Sample(each.case, None, number, "") for number, each in enumerate(histories)]
    return judged(unit, samples, histories).findings


def test_a_failure_has_what_follows_from_it_and_what_occurs_without_it_is_one_of_its_own() -> None:
    follows = history(OFFERED, closed(1000, UNSERVED), ended(12_000), script="rebalance; stop")
    found = findings(follows, history(OFFERED, ended(12_000), script="move; stop"))
    assert [each.invariant for each in found] == ["client/asks-what-is-offered", "client/ends-when-stopped"]
    info = TargetInfo("it", "0", "", "", frozenset({Role.CLIENT}))
    leading, own = (described(info, [each]) for each in found)
    assert own.line.followed_by is None
    assert leading.line.followed_by is not None
    (follower,) = leading.line.followed_by
    assert (follower.invariant, follower.cases) == ("client/ends-when-stopped", 1)
    start = "  followed  client/ends-when-stopped in 1 case: the program ended"
    assert any(line.startswith(start) for line in lines(leading))
    both = united(FailureGroup((leading, leading)))
    assert both.line.followed_by == (follower.update(cases=2),)


def test_a_failure_whose_search_was_cut_says_so() -> None:
    (found,) = findings(history(OFFERED, ended(12_000), script="move; stop"))
    info = TargetInfo("it", "0", "", "", frozenset({Role.CLIENT}))
    for cut in (True, False):
        failure = described(info, [replace(found, cut=cut)])
        assert failure.line.cut_early is (cut or None)
        assert any("a smaller one may" in " ".join(line.split()) for line in lines(failure)) is cut


def lines(failure: DistinctFailure) -> list[str]:
    return [*block(failure.line, set())]
