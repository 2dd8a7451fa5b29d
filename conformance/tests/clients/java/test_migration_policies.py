"""Each ``group.consumer.migration.policy`` of the coordinators in jars: what it forbids, and with which error."""

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.migration_policies import OWED, RELEASES, cases, expected, observed


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 1))
def test_a_released_coordinator_follows_its_policy(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    edition = f"apache@{release}"
    for policy in OWED:
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Dkipcheck.broker.group.consumer.migration.policy={policy}")
        with registry.target(f"java:kafka-group-coordinator:{release}").open(edition, Role.COORDINATOR) as session:
            found = session.run(cases(edition))
        assert tuple(observed(each[-1]) for each in found) == expected(release, policy), policy
