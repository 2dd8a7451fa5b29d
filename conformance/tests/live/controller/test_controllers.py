"""Running brokers as controllers of feature versions: kipcheck's own, and released ones beside the machine."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from kipcheck.conformance.core.ledger import read
from kipcheck.conformance.core.values.case import Role, Step
from kipcheck.conformance.core.values.history import Observation, Refused, Replied, Unsupported
from kipcheck.conformance.engine.execution.converse import converse
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.controller.forms import Form, form_of
from kipcheck.conformance.live.controller.target import release_of
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.features.invariants.kraft import UPDATES, error_changes_nothing
from kipcheck.conformance.protocols.features.model.kraft_rules import Rules
from kipcheck.conformance.protocols.features.model.zookeeper import ZooKeeperController
from kipcheck.conformance.protocols.features.ops.kraft import OPERATIONS, Declared, DeclareNode
from kipcheck.conformance.protocols.features.ops.zookeeper import (
    OPERATIONS as ZK_OPERATIONS,
    StartController,
    ZkTopLevel,
    ZkUpdate,
)
from kipcheck.conformance.protocols.features.strategies.zookeeper import zookeeper_updates
from kipcheck.conformance.protocols.reference import Reference
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import NotPlayed
from kipcheck.conformance.targets.toolchains import kafka_broker
from kipcheck.conformance.tests.support.wire_features import cases, drawn, feature_broker, parted

RELEASES = ("3.3.2", "3.7.2", "3.9.2", "4.0.2", "4.3.1", "4.4.0")


def played(target: str, release: str, *talks: str) -> list[tuple[Observation, ...]]:
    with registry.target(target).open(f"apache@{release}", Role.CONTROLLER) as session:
        return session.run(cases(release, *talks))


def levels(answer: Observation) -> dict[str, int]:
    assert isinstance(answer, Replied), answer
    return {each["feature"]: each["level"] for each in answer["levels"]}


def test_a_release_without_feature_versions_plays_no_controller() -> None:
    with pytest.raises(NotPlayed) as other, registry.target("kafka:2.6.3").open("apache@2.6.3", Role.CONTROLLER):
        pass
    assert other.value.info.roles == {Role.COORDINATOR}


def test_a_broker_that_does_not_run_kraft_plays_no_controller() -> None:
    with feature_broker("apache@2.8.2") as address:
        asked = registry.target(f"broker:{address}").open("apache@2.8.2", Role.CONTROLLER)
        with pytest.raises(NotPlayed) as other, asked:
            pass
    assert other.value.info.roles == {Role.COORDINATOR}


def test_clusters_are_formatted_at_exactly_the_levels_of_a_conversation() -> None:
    assert form_of(Rules.of("3.3.2"), 5, {}) == Form("3.3-IV1", (), False)
    old = form_of(Rules.of("3.9.2"), 21, {"kraft.version": 1})
    assert old == Form("3.9-IV0", ("--feature", "kraft.version=1"), True)
    new = form_of(Rules.of("4.0.2"), 25, {"group.version": 1})
    assert {"group.version=1", "transaction.version=0"} <= {*new.options} and not new.dynamic


@pytest.mark.jars
def test_a_started_broker_is_formatted_and_answers_as_a_controller() -> None:
    """An upgrade of kraft.version stays in a request that fails at top level, from 4.1 on."""
    release = "4.3.1"
    failed, formatted, refused = played(
        f"kafka:{release}", release,
        "kraft-update v2 kraft.version:1,x:1; levels",
        "format 29 group.version:1; levels; broker 1 metadata.version:7-29,group.version:0-1; "
        "kraft-update v1 metadata.version:30; broker 1 gone; kraft-update v1 metadata.version:30; levels",
        "format 30 kraft.version:1 with 1; levels",
    )  # fmt: skip
    assert isinstance(failed[0], Refused) and failed[0].error == "INVALID_UPDATE_VERSION"
    assert levels(failed[1]) == {"metadata.version": 30, "kraft.version": 1}
    assert levels(formatted[1]) == {"metadata.version": 29, "group.version": 1}
    assert isinstance(formatted[3], Refused) and isinstance(formatted[5], Replied)
    assert levels(formatted[6]) == {"metadata.version": 30, "group.version": 1}
    assert all(isinstance(each, Unsupported) and each.limit == "quorum" for each in refused)


@pytest.mark.jars
def test_a_running_broker_only_validates_unless_changes_are_allowed() -> None:
    release, talk = (
        "3.9.2",
        "kraft-update v1 metadata.version:20! validate; kraft-update v1 metadata.version:20!; levels",
    )
    with kafka_broker.running(release, coordinates=False) as broker:
        ((validated, sent, read_),) = played(f"broker:{broker.address}", release, talk)
        assert isinstance(validated, Replied)
        assert all(isinstance(each, Unsupported) and each.limit == "changes" for each in (sent, read_))
        ((_, sent, read_),) = played(f"broker:{broker.address}?allow-changes", release, talk)
        assert isinstance(sent, Replied) and levels(read_) == {"metadata.version": 20}
        ((_, now),) = played(f"broker:{broker.address}", release, "levels; levels")
        assert levels(now) == {"metadata.version": 21}  # it was restored


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", RELEASES)
def test_each_release_judges_hundreds_of_updates_over_the_wire_as_our_machine_does(release: str) -> None:
    found, compared = parted(release, [*drawn(release, 0, 250, False), *drawn(release, 1, 50, True)])
    assert found == [] and compared > 150


@pytest.mark.all_jars
@pytest.mark.jars
def test_the_machine_of_another_release_is_told_apart_over_the_wire() -> None:
    found, _ = parted("3.9.2", drawn("3.9.2", 0, 120, False), "3.7.2")
    assert found


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_a_released_broker_breaks_no_law_of_controllers(release: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    options = Options(
        targets=(f"kafka:{release}",), edition=f"apache@{release}", checks=("kraft-features/*",), cases=12, workers=1,
        out=tmp_path_factory.mktemp("out"),
    )  # fmt: skip
    outcome = run(options)
    assert outcome.ledger is not None and outcome.exit_code in (0, 6, 7), outcome.text  # some need another quorum
    counts = read(outcome.ledger).footer
    assert counts is not None and outcome.failures == 0
    passed = sum(each.get("PASS", 0) for each in counts.counts[f"kafka:{release}"].values())
    assert passed > 3, outcome.text


def quorums(old: str, level: int) -> list[tuple[Step, ...]]:
    """Conversations in quorums with a controller of an older release, whose newest level is finalized."""
    ranges = ",".join(f"{name}:{each.low}-{each.high}" for name, each in Rules.of(old).declares())
    begun = f"format {level} with 1; kraft-update v1 metadata.version:{level + 1}; levels; "
    ended = "levels; fail-over; levels"
    texts = (
        f"format {level} with 1; controller 1 {ranges}; kraft-update v1 metadata.version:{level + 1}; levels",
        f"{begun}controller 1 metadata.version:7-{level + 1}; kraft-update v1 metadata.version:{level + 1}; {ended}",
    )
    return [tuple(OPERATIONS.parse_shorthand(each)) for each in texts]


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize(
    ("release", "old", "level"), [("3.7.2", "3.6.2", 14), ("3.9.2", "3.8.1", 20), ("4.3.1", "4.0.2", 25)]
)
def test_quorums_of_two_releases_judge_levels_as_our_machine_does(release: str, old: str, level: int) -> None:
    """Below level 15 a controller that is behind is not asked; from there on it forbids levels, also before it runs."""
    found, compared = parted(release, quorums(old, level))
    assert found == [] and compared == 3


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize("release", ["3.3.2", "3.9.2", "4.3.1"])
def test_levels_outlive_the_controller_that_leads(release: str) -> None:
    newest = Rules.of(release).newest
    ((before, changed, _, led, after),) = played(
        f"kafka:{release}", release, f"levels; kraft-update v1 metadata.version:{newest}; levels; fail-over; levels"
    )
    assert isinstance(changed, Replied) and isinstance(led, Replied) and led["controller"] == 0
    assert levels(before) == levels(after) == {"metadata.version": newest}


def test_levels_that_a_release_has_are_those_of_a_controller_to_start() -> None:
    def wanted(text: str) -> Sequence[Declared]:
        (event,) = map(OPERATIONS.event_of, OPERATIONS.parse_shorthand(f"controller 1 {text}"))
        assert isinstance(event, DeclareNode) and event.supported is not None
        return event.supported

    assert release_of(wanted("metadata.version:1-14"), 14, False) == "3.6.2"
    assert release_of(wanted("metadata.version:1-14"), 15, True) is None
    assert release_of(wanted("metadata.version:1-20"), 15, True) == "3.8.1"
    assert release_of(wanted("metadata.version:1-16"), 14, False) is None


def seed_of_the_breach(release: str, cases: int) -> int:
    """With it a case raises kraft.version in a refused request, and nothing but requests came before."""
    (subject,) = CHECKS[UPDATES].family.subjects(f"apache@{release}")
    for seed in range(500):
        drawn_ = [each.case for each in CHECKS[UPDATES].samples(subject, seed, cases)]
        with InProcess(Reference()).open(subject.edition, Role.CONTROLLER) as session:
            for case, history in zip(drawn_, converse(drawn_, session), strict=True):
                found = next(error_changes_nothing(history), None)
                before = case.steps[: found.at[0]] if found is not None else ()
                if found is not None and {each.verb for each in before} <= {"kraft-update", "kraft-levels"}:
                    return seed
    raise AssertionError("no case shows the breach")


@pytest.mark.all_jars
@pytest.mark.jars
def test_the_kraft_version_of_a_refused_request_is_a_known_deviation_of_brokers(tmp_path: Path) -> None:
    release, cases = "4.3.1", 4
    options = Options(
        targets=(f"kafka:{release}",), edition=f"apache@{release}", checks=(UPDATES,), cases=cases, workers=1,
        seed=seed_of_the_breach(release, cases), known=("default",), out=tmp_path / "out",
    )  # fmt: skip
    outcome = run(options)
    assert (outcome.failures, outcome.known, outcome.warnings) == (0, 1, 0), outcome.text


@pytest.mark.all_jars
@pytest.mark.jars
@pytest.mark.parametrize(("release", "inter_broker"), [("2.7.2", "2.7"), ("2.8.2", "2.7"), ("2.8.2", "2.6")])
def test_with_zookeeper_updates_are_refused_as_by_our_machine(release: str, inter_broker: str) -> None:
    machine = ZooKeeperController(release)
    state = machine.step(machine.initial(), StartController(inter_broker)).state  # type: ignore[arg-type]

    async def ask(port: int) -> None:
        connections = Connections(kafka_broker.HOST, port)
        versions = await versions_of(connections)
        assert versions[requests.UPDATE_FEATURES] == (0, 0) and requests.DESCRIBE_QUORUM not in versions
        for each in events:
            found = await requests.update(connections, 0, each.updates, False)
            _, (ours,) = machine.step(state, each)
            if isinstance(ours, ZkTopLevel):
                assert found.error == ours.error, each
                continue
            assert {one.feature: one.error for one in found.results} == {
                one.feature: one.error
                for one in ours.results  # type: ignore[union-attr]
            }, each
        await connections.close()

    events = zookeeper_updates_of_version_0(release, 60)
    settings = {"inter.broker.protocol.version": inter_broker}
    with kafka_broker.running(release, settings, coordinates=False) as broker:
        asyncio.run(ask(broker.port))


def zookeeper_updates_of_version_0(release: str, count: int) -> list[ZkUpdate]:
    """Brokers before 3.3 have no other version."""
    talk, random, found = zookeeper_updates(f"apache@{release}"), Random(f"zookeeper {release}"), list[ZkUpdate]()
    while len(found) < count:
        events = map(ZK_OPERATIONS.event_of, talk.draw(random, talk.swarm(random)))
        found += (each for each in events if isinstance(each, ZkUpdate) and each.version == 0)
    return found
