"""The list of running brokers: each entry of ``group/*`` has a conversation that shows it, in the releases it names."""

from functools import cache

import pytest

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.verdict import Grade, Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.engine.known.lists import everything
from kipcheck.conformance.engine.known.rules import is_release_in
from kipcheck.conformance.protocols.group.ops import OPERATIONS
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.loops import some_by_default
from kipcheck.conformance.tests.support.sessions import history_of, played

LAWS = [each for each in all_invariants(Role.COORDINATOR) if each.id.startswith("group/")]
OLD_LEADERS, REPLACED = "2.5.0-3.3.1", "2.3.0-2.4.1"
HALF_WAY = ("2.5.0", OLD_LEADERS, REPLACED)
"""Where coordinators fail half-way, and machines do not model what follows: responses with static members cannot be
encoded, and members are answered in the order of a hash map; a static member lacks the protocol of the group."""
EQUAL_IDS = "(KAFKA-8715)"
"""Machines give out no id twice."""
LISTED = [each for known in everything(["default"]) for each in known.entries if each.target == "kafka"]
ENTRIES = [
    each for each in LISTED
    if each.invariant.startswith("group/") and each.versions not in HALF_WAY and EQUAL_IDS not in each.reason
]  # fmt: skip
TWO, THREE = "join a v2; join b v2; elapse 9000", "join a v2; join b v2; join c v2; elapse 9000"
ALONE = "join a; elapse 3000; sync a"
SLOW = "join a session=30000 rebalance=4000 v2; join b session=30000 rebalance=4000 v2; elapse 4000"
FULL = "join a v3; join a v3; join a v3; join d v4; join a v3; join a id=d v3"
REFUSED = (
    "join a rebalance=60000; join b v5; elapse 3000; rejoin b v5; join c session=6000 v6; join a session=6000 v6; "
    "join a id=a-old; join c session=6000; rejoin c session=6000 v6; rejoin a; elapse 10001; fetch c"
)
LATE = (
    "join e lists=p:x,q:x session=30000 v2; elapse 1500; elapse 29650; join e lists=q:x,p:x session=30000 v2; "
    "join a lists=q:,p: v0; elapse 3000; rejoin e lists=p:x,q:x session=30000 v2; "
    "join c lists=q:x,p:x session=6000 v4; rejoin a lists=q:,p: rebalance=60000 v0; "
    "join b lists=q:x,p:x session=6000 v4; rejoin c lists=q:x,p:x session=6000 v4; join d lists=q:,p: session=6000 v2; "
    "rejoin b lists=p:x,q:x session=6000 v4"
)
LAPSING = (
    "join a lists=q:x,p:x session=30000 rebalance=4000 v0; elapse 3000; "
    "join b lists=q:,p: session=30000 rebalance=4000 v0; beat a v0; elapse 15000; elapse 15000; sync b v0"
)
SHOWN = (
    f"{TWO}; rejoin a lists=p:y v2; rejoin a lists=p:y v2",
    f"{TWO}; sync b v1; sync b v1",
    f"{TWO}; sync b v1; leave b v1",
    f"{TWO}; rejoin b v2 lists=p:y; leave b v1",
    "join a v5; join a id=a as i v5",
    "join a session=6000 v4; elapse 5000; join b v3; elapse 1000",
    REFUSED,
    f"{ALONE}; beat a as i",
    "join a; elapse 3000; beat a as i",
    f"{ALONE}; sync a as i",
    "join a; elapse 3000; sync a as i",
    "join a; join b; elapse 6000; sync b as i",
    f"{ALONE}; commit a t:0:1 as i",
    f"{ALONE}; join b v2; commit a t:0:1 as i",
    f"{ALONE}; leave a a/i",
    f"{SLOW}; sync b v1; elapse 2000; beat a v1; elapse 3000",
    "join a session=30000 rebalance=4000 v2; elapse 3000; elapse 5000; sync a v1",
    f"{SLOW}; sync a v1; elapse 5000; beat b v1",
    "join a v2; elapse 3000; sync a v1; describe v1",
    "join a v2; elapse 3000; beat a v1",
    "join a v2; elapse 3000; beat a behind=1 v1",
    "beat a v1 nameless",
    "sync a v1 nameless",
    "leave a v1 nameless",
    FULL,
    f"{FULL}; elapse 9000",
    f"{THREE}; join d v2; join e v2; rejoin a v2",
    "join a v2; join b v2; elapse 6000; join c v2; join d v2; join e v2 lists=q:x",
    "join a v2; join b v2; elapse 6000; join c v2; join d v2; join e v4",
    "join a as i lists=q:x,p:x v5; elapse 3000; sync a as i v3; join a as i lists=p:x v5; describe v3; describe v3",
    LATE,
    "join a v2; join a v2; join b v4; join a v2; join d v2; rejoin b v4; elapse 9000; rejoin b lists=q:x,p:x v4",
    LAPSING,
    "join a v0; elapse 3000; sync a v0; join b v0; beat a v0",
)
"""Conversations that show the entries in the machines of the releases."""
RELEASES = (
    "0.11.0.3", "1.1.1", "2.0.0", "2.0.1", "2.1.0", "2.1.1", "2.2.0", "2.2.2", "2.3.0", "2.3.1", "2.4.0", "2.5.1",
    "2.6.0", "2.6.1", "2.8.0", "2.8.1", "2.8.2", "3.0.0", "3.9.2", "4.0.0", "4.4.0",
)  # fmt: skip
"""The ends of the spans in the list, and the releases before and after them. 0.10 has no JoinGroup v2."""


@cache
def shown(release: str) -> frozenset[tuple[str, tuple[str, ...], str]]:
    """Invariant, shape and reason of what the machine of the release breaks."""
    reference, edition = Reference(), f"apache@{release}"
    assert reference.configure(edition) is None
    found = set()
    for text in SHOWN:
        case = Case("group/errors", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
        for verdict in judge(history_of(reference, case), LAWS):
            if verdict.result is Result.FAIL:
                found |= {(verdict.invariant, each.shape, each.why) for each in verdict.violations}
    return frozenset(found)


@pytest.mark.parametrize("release", some_by_default(RELEASES, 3))
def test_a_release_has_the_deviations_that_are_listed_for_it_and_no_others(release: str) -> None:
    matched = {
        (invariant, shape): [each for each in ENTRIES if each.invariant == invariant and each.matches_shape(shape, why)]
        for invariant, shape, why in shown(release)
    }
    of_release = {each.at for each in ENTRIES if is_release_in(release, each.versions)}
    assert {entry.at for entries in matched.values() for entry in entries} == of_release
    assert all(matched.values()), [failure for failure, entries in matched.items() if not entries]


HEADS = (
    "join a v1; join b as i v5; elapse 6000",
    "join a v2; join b as i v5; join c v1; elapse 6000",
    "join a v4; rejoin a v4; join b as i v5; elapse 6000",
    "join a v1; elapse 3000; sync a v1 a=x; join b as i v5; rejoin a v1",
)
TAILS = (
    "join c as j v5; beat b as i v3; leave b /i v3; sync a v1 a=x b=y", "commit b as i t:0:1 v7; describe v3",
    "sync b as i v3", "elapse 30000", "beat b as i v3", "join b as i v5; join c as j v5; rejoin a v1; elapse 3000",
)  # fmt: skip
STATIC = "join a as i lists=q:x,p:x v5; elapse 3000; sync a as i v3"
CONVERSATIONS = {
    OLD_LEADERS: [f"{head}; {tail}" for head in HEADS for tail in TAILS] * 3,  # who is answered differs
    REPLACED: [
        f"{STATIC}; join a as i lists=p:x v5; describe v3; sync a as i v3; describe v3",
        f"{STATIC}; join a as i lists=p:x v5; rejoin a as i lists=p:x v5; sync a v2",
        "join a as i lists=q:x,p:x v5; elapse 3000; join a as i lists=p:x v5; sync a v2; rejoin a as i lists=p:x v5",
    ],
}


@pytest.mark.all_jars
@pytest.mark.parametrize(
    ("release", "span"),
    [
        *((each, OLD_LEADERS) for each in ("2.4.1", "2.5.0", "2.8.2", "3.3.1", "3.3.2")),
        *((each, REPLACED) for each in ("2.3.1", "2.4.1", "2.5.1")),
    ],
)
def test_a_broker_that_fails_half_way_has_the_deviations_that_are_listed(release: str, span: str) -> None:
    edition = f"apache@{release}"
    cases = [
        Case("group/parked", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(each))
        for each in CONVERSATIONS[span]
    ]  # fmt: skip
    laws = [each for each in all_invariants(Role.COORDINATOR) if each.id in ("survives", *(law.id for law in LAWS))]
    with registry.target(f"kafka:{release}").open(edition, Role.COORDINATOR) as session:
        found = [*map(played, cases, session.run(cases))]
    broken = {
        (verdict.invariant, each.shape, each.why)
        for history in found
        for verdict in judge(history, [each for each in laws if each.grade is not Grade.INFO])
        if verdict.result is Result.FAIL
        for each in verdict.violations
    }
    of_release = [each for each in LISTED if is_release_in(release, each.versions)]
    unlisted = {
        (invariant, shape) for invariant, shape, why in broken
        if not any(each.invariant == invariant and each.matches_shape(shape, why) for each in of_release)
    }  # fmt: skip
    assert unlisted == set()
    shown = {each.at for each in LISTED if each.versions == span for invariant, shape, why in broken
             if each.invariant == invariant and each.matches_shape(shape, why)}  # fmt: skip
    assert bool(shown) is is_release_in(release, span)
