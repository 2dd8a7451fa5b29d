"""``group.max.size`` and ``group.consumer.max.size`` of the coordinators in jars, with members of both protocols: the
machine with the same limits answers alike."""

import pytest

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.protocols.consumer_group.rules import Config, Rules
from kipcheck.conformance.protocols.group.model.answers import Config as ClassicConfig
from kipcheck.conformance.protocols.group.model.rules import Rules as ClassicRules
from kipcheck.conformance.protocols.migration.checks import FORMED
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.protocols.migration.search_model import ReleasedGroup
from kipcheck.conformance.targets import registry
from kipcheck.conformance.tests.clients.java.test_mixed_groups import RELEASES, alike
from kipcheck.conformance.tests.support.loops import some_by_day
from kipcheck.conformance.tests.support.machines import differences, session_answers

SIZES = ((1, 3), (2, 1), (2, 2), (1, 1))
"""Of classic groups, and of consumer groups."""
CONVERSATIONS = (
    f"{FORMED}; classic-join y on t; join a on t none; receive y; classic-join x on t told; receive y",
    f"{FORMED}; join a on t none; join b on t none; classic-join y on t; classic-join y v4; leave a; join b on t none",
    "join a on t none; classic-join x on t; classic-join y on t; leave a; classic-beat x; classic-join x on t told",
    "join a on t none as i; classic-join x on t; classic-join y on t as i; classic-join x on t told; classic-beat y",
    "join a on t none as i; classic-join x on t as i; classic-join y on t as i; join b on t none as i; classic-beat x",
    "join a on t none as i; away a as i; join b on t none as i; join a on t none; beat a told; beat c told",
)
"""Upgrades, downgrades, takeovers and joins at the limit."""


@pytest.mark.jars
@pytest.mark.parametrize("release", some_by_day(RELEASES, 1))
def test_a_released_coordinator_limits_its_groups_as_the_machine(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    edition, talks = f"apache@{release}", [*map(OPERATIONS.parse_shorthand, CONVERSATIONS)]
    refused = 0
    for classic, consumer in SIZES:
        settings = {"group.max.size": classic, "group.consumer.max.size": consumer}
        stated = " ".join(f"-Dkipcheck.broker.{key}={value}" for key, value in settings.items())
        monkeypatch.setenv("JAVA_TOOL_OPTIONS", stated)
        with registry.target(f"java:kafka-group-coordinator:{release}").open(edition, Role.COORDINATOR) as session:
            answers = session_answers(session, edition, Role.COORDINATOR, talks)
        machine = ReleasedGroup(
            Rules.of(release), Config(max_size=consumer), ClassicRules.of(release), ClassicConfig(max_size=classic)
        )
        found = differences(OPERATIONS, machine, talks, answers, lambda step, ours, theirs: alike(ours, theirs))
        assert found == [], (classic, consumer)
        refused += str(answers).count("GROUP_MAX_SIZE_REACHED")
    assert refused > len(SIZES)
