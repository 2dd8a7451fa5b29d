"""Each ``group.consumer.migration.policy`` of released brokers: which conversions and joins it forbids, and with which
error. The machine does the same, and no law is broken."""

from pathlib import Path

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.operations.declaration import declared
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.protocols.consumer_group.rules import Config, Rules
from kipcheck.conformance.protocols.migration.model import MixedGroup
from kipcheck.conformance.protocols.migration.ops import OPERATIONS
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.loops import for_each
from kipcheck.conformance.tests.support.migration_policies import (
    CONVERSATIONS,
    OWED,
    RELEASES,
    cases,
    expected,
    named,
    observed,
)


@for_each([(release, policy) for release in RELEASES for policy in OWED])
def test_the_machine_follows_the_policy(release: str, policy: str) -> None:
    machine = MixedGroup(Rules.of(release), Config(policy=policy))
    last = []
    for text in CONVERSATIONS:
        state = machine.initial()
        for step in OPERATIONS.parse_shorthand(text):
            state, actions = machine.step(state, OPERATIONS.event_of(step))
            answers = [declared(type(each)).written(each) for each in actions]
        last.append(named(answers[0]))
    assert tuple(last) == expected(release, policy)


@pytest.mark.all_jars
@pytest.mark.parametrize("policy", [*OWED])
@pytest.mark.parametrize("release", RELEASES)
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
    with kafka_broker.running(release, settings) as broker:
        name = f"broker:{kafka_broker.HOST}:{broker.port}"
        with registry.target(name).open(edition, Role.COORDINATOR) as session:
            found = session.run(cases(edition))
        assert tuple(observed(each[-1]) for each in found) == expected(release, policy)
        options = Options(targets=(name,), edition=edition, checks=("migration/*",), cases=10, workers=1, out=tmp_path)
        outcome = run(options)
    assert outcome.ledger is not None, outcome.text
    broken = {each.invariant for each in read(outcome.ledger).failures}
    # conformance/docs/findings: a consumer in the first join phase, and a takeover that makes the group a classic one.
    assert broken <= {"migration/upgrades", "migration/one-owner-after-takeover"}, outcome.text
