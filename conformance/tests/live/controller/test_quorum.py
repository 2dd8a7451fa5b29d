"""Quorums of released controllers, one of which is killed in the middle of an update."""

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.features.invariants.quorum import QUORUM
from kipcheck.conformance.protocols.features.ops.quorum import OPERATIONS
from kipcheck.conformance.protocols.features.strategies.quorum import given
from kipcheck.conformance.targets import registry


@pytest.mark.parametrize(("release", "beside"), [("3.6.2", "3.5.2"), ("3.7.2", None), ("3.9.2", "3.8.1")])
def test_a_controller_of_another_release_runs_where_a_leader_knows_its_levels(release: str, beside: str | None) -> None:
    """3.7.2 passes over one of 3.6.2, which does not register."""
    (subject,) = CHECKS[QUORUM].family.subjects(f"apache@{release}")
    starts = {each.steps[0].body.get("beside") for each in given(subject)}
    assert starts - {None} == {beside} - {None}


@pytest.mark.jars
def test_an_update_that_its_leader_did_not_commit_is_applied_as_a_whole_or_not_at_all() -> None:
    """The leader is killed when it alone has the update; the others lead on, and all show the same levels."""
    release = "4.4.0"
    text = (
        "quorum 33; views; pause followers; send group.version:1,transaction.version:1; kill leader; resume; views; "
        "send share.version:1; views"
    )
    case = Case(QUORUM, f"apache@{release}", Role.CONTROLLER, tuple(OPERATIONS.parse_shorthand(text)))
    with registry.target(f"kafka:{release}").open(case.edition, Role.CONTROLLER) as session:
        (found,) = session.run([case])
    assert all(isinstance(each, Replied) for each in found), found
    sent, acknowledged = found[3], found[7]
    assert isinstance(sent, Replied) and (sent["outcome"], sent["accepted"]) == ("pending", True)
    assert isinstance(acknowledged, Replied) and acknowledged["outcome"] == "applied"
    history = History(
        case, "kafka", tuple(Op(i, step, each) for i, (step, each) in enumerate(zip(case.steps, found, strict=True)))
    )
    laws = [INVARIANTS[each] for each in CHECKS[QUORUM].invariants]
    assert {each.result for each in judge(history, laws)} == {Result.PASS}
