"""Clusters of released brokers as targets: their names, and a coordinator that is killed."""

import asyncio

import pytest

from kipcheck.conformance.core.operations.wire_form import Context
from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import History, Op, Replied
from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.verdict import Result
from kipcheck.conformance.engine.execution.judge import judge
from kipcheck.conformance.live.coordinator.admin import partition_of
from kipcheck.conformance.live.failover.brokers import OFFSETS_PARTITIONS
from kipcheck.conformance.live.failover.journal import Journal
from kipcheck.conformance.live.failover.members import Cluster
from kipcheck.conformance.live.failover.protocols import ClassicMember, ConsumerMember
from kipcheck.conformance.live.failover.target import StartedCluster
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.protocols.declare.invariant import INVARIANTS
from kipcheck.conformance.protocols.failover import ops
from kipcheck.conformance.protocols.failover.invariants import GROUPS
from kipcheck.conformance.targets import registry


@pytest.mark.parametrize(
    ("group", "partition"), [("", 0), ("a", 97 % 3), ("polygenelubricants", 0), ("kipcheck", 498_157_194 % 3)]
)
def test_a_group_has_the_partition_that_kafka_gives_it(group: str, partition: int) -> None:
    """By the hash of a Java string; that of the third one has no positive counterpart, for which Kafka takes 0."""
    assert partition_of(group, OFFSETS_PARTITIONS) == partition


@pytest.mark.parametrize("name", ["kafka:4.4.0?nodes=3", "kafka:4.4.0?nodes=3&from=4.0.2"])
def test_a_cluster_has_three_nodes_of_one_or_two_releases(name: str) -> None:
    found = registry.target(name)
    assert isinstance(found, StartedCluster)
    assert (found.name, found.release, found.older) == (name, "4.4.0", name.partition("from=")[2] or "4.4.0")


@pytest.mark.parametrize(
    "options", ["nodes=2", "from=4.0.2", "nodes=3&to=4.0.2", "nodes=3&from=9.9.9", "nodes=3&from=3.2.3"]
)
def test_other_clusters_are_refused_with_what_to_write(options: str) -> None:
    with pytest.raises(LookupError, match=r"nodes=3|release"):
        registry.target(f"kafka:4.4.0?{options}")


@pytest.mark.integration
@pytest.mark.jars
def test_a_group_outlives_the_node_that_coordinates_it() -> None:
    text = "join a classic; join b classic; settle; kill coordinator; settle"
    case = Case(GROUPS, "apache@4.4.0", Role.COORDINATOR, ops.OPERATIONS.parse_shorthand(text))
    with registry.target("kafka:4.4.0?nodes=3").open(case.edition, Role.COORDINATOR) as session:
        (found,) = session.run([case])
    assert all(isinstance(each, Replied) for each in found), found
    history = History(
        case, "kafka", tuple(Op(i, step, each) for i, (step, each) in enumerate(zip(case.steps, found, strict=True)))
    )
    # 4.x breaks the law of first answers at times: see docs/brokers.md.
    laws = [INVARIANTS[each] for each in CHECKS[GROUPS].invariants if each != "failover/reads-commits-at-once"]
    assert {each.result for each in judge(history, laws)} == {Result.PASS}
    whats = [each["what"] for _, each in history.actions()]
    assert whats.count("rests") == 2 and "hit" in whats and whats[-1] == "fetched"


def test_members_join_anew_after_the_errors_of_their_protocol() -> None:
    assert KafkaError.UNKNOWN_MEMBER_ID in ClassicMember.removing & ConsumerMember.removing
    assert KafkaError.FENCED_MEMBER_EPOCH in ConsumerMember.removing


def test_what_ends_a_member_is_raised_and_is_no_verdict() -> None:
    async def ended() -> None:
        found = ClassicMember("a", Cluster("g", "t", {1: 1}, Context({}, {}), Journal()))
        found.cluster.ports = None  # type: ignore[assignment]
        found.start()
        await asyncio.sleep(0.01)
        found.check()

    with pytest.raises(AttributeError):
        asyncio.run(ended())
