"""Each ``group.consumer.migration.policy`` of released brokers: which conversions and joins it forbids, and with which
error. The machine does the same, and no law is broken."""

from pathlib import Path

import pytest

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import Observation, Refused, Replied
from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.operations import declared
from kipcheck.conformance.engine.run import Options, run
from kipcheck.conformance.protocols.consumer_group.rules import Config, Rules
from kipcheck.conformance.protocols.migration.checks import FORMED
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.loops import for_each

UPGRADE = f"{FORMED}; join a on t none"
MIXED = "join a on t none; classic-join x on t"
DOWNGRADE = f"{MIXED}; classic-sync x; leave a; classic-join x on t told"
TAKEOVER = "join a on t none as i; classic-join x on t as i; join b on t none"
"""Of the only consumer: with downgrades the group is a classic one, which a consumer then has to upgrade."""
OWED = {
    "bidirectional": ("accepted", "NONE", "NONE leader", "accepted"),
    "upgrade": ("accepted", "NONE", "NONE", "accepted"),
    "downgrade": ("GROUP_ID_NOT_FOUND", "NONE", "NONE leader", "GROUP_ID_NOT_FOUND"),
    "disabled": ("GROUP_ID_NOT_FOUND", "NONE", "NONE", "accepted"),
}
"""The last answers of the four conversations, up to 4.2."""
SHUT: dict[str, tuple[str, ...]] = {
    "disabled": ("GROUP_ID_NOT_FOUND", "INCONSISTENT_GROUP_PROTOCOL", "parked", "accepted")
}
"""Those that differ from 4.3 on: no client of the classic protocol joins a consumer group, unless it is empty."""


def expected(release: str, policy: str) -> tuple[str, ...]:
    return SHUT.get(policy, OWED[policy]) if Rules.of(release).refuses_classic_members else OWED[policy]


def named(answer: dict[str, object]) -> str:
    received = str(answer.get("received", answer.get("class", "accepted")))
    return f"{received} leader" if answer.get("led") else received


def observed(found: Observation) -> str:
    assert isinstance(found, Replied | Refused), found
    return named(dict(found.payload)) if isinstance(found, Replied) else found.error


@for_each([(release, policy) for release in ("4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0") for policy in OWED])
def test_the_machine_follows_the_policy(release: str, policy: str) -> None:
    machine = MixedGroup(Rules.of(release), Config(policy=policy))
    last = []
    for text in (UPGRADE, MIXED, DOWNGRADE, TAKEOVER):
        state = machine.initial()
        for step in OPERATIONS.parse_shorthand(text):
            state, actions = machine.step(state, OPERATIONS.event_of(step))
            answers = [declared(type(each)).written(each) for each in actions]
        last.append(named(answers[0]))
    assert tuple(last) == expected(release, policy)


@pytest.mark.all_jars
@pytest.mark.parametrize("policy", [*OWED])
@pytest.mark.parametrize("release", ["4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"])
def test_a_released_broker_follows_its_policy(release: str, policy: str, tmp_path: Path) -> None:
    try:
        kafka_broker.class_path(release)
    except Unavailable as why:
        pytest.skip(str(why))
    edition = f"apache@{release}"
    settings = {
        "group.consumer.migration.policy": policy, "group.coordinator.append.linger.ms": "0",
        "group.consumer.assignor.offload.enable": "false",
    }  # fmt: skip
    cases = [
        Case("migration/members", edition, Role.COORDINATOR, OPERATIONS.parse_shorthand(text))
        for text in (UPGRADE, MIXED, DOWNGRADE, TAKEOVER)
    ]
    with kafka_broker.running(release, settings) as broker:
        name = f"broker:{kafka_broker.HOST}:{broker.port}"
        with registry.target(name).open(edition, Role.COORDINATOR) as session:
            found = session.run(cases)
        assert tuple(observed(each[-1]) for each in found) == expected(release, policy)
        options = Options(targets=(name,), edition=edition, checks=("migration/*",), cases=10, workers=1, out=tmp_path)
        outcome = run(options)
    assert outcome.ledger is not None, outcome.text
    broken = {each.invariant for each in read(outcome.ledger).failures}
    # conformance/docs/findings: a consumer in the first join phase, and a takeover that makes the group a classic one.
    assert broken <= {"migration/upgrades", "migration/one-owner-after-takeover"}, outcome.text
