"""Released jars as targets of the gate: their names, what they claim, and what becomes of code that misbehaves."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kipcheck.conformance.clients.java import programs, target as the_java_target
from kipcheck.conformance.core.values.case import Case, Role, step
from kipcheck.conformance.core.values.edition import edition
from kipcheck.conformance.core.values.history import Died, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.engine.execution.run import Options, run
from kipcheck.conformance.protocols.codec.checks.example_values import extreme
from kipcheck.conformance.targets import registry
from kipcheck.conformance.targets.protocol import NotPlayed, Session, Unavailable
from kipcheck.conformance.targets.testee import Limits, Testee as Program
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.wire.schema import messages, spec

pytestmark = pytest.mark.integration

CLIENTS = {
    "0.10.0.1": {"JoinGroupRequest": (0, 0), "ConsumerProtocolSubscription": (0, 0), "RequestHeader": (1, 1)},
    "1.1.1": {"JoinGroupRequest": (0, 2), "ConsumerProtocolSubscription": (0, 0), "StickyAssignorUserData": (0, 0)},
    "2.2.2": {"JoinGroupRequest": (0, 4), "ConsumerProtocolSubscription": (0, 0), "StickyAssignorUserData": (0, 0)},
    "2.4.1": {"JoinGroupRequest": (0, 6), "ConsumerProtocolSubscription": (0, 1), "StickyAssignorUserData": (1, 1)},
    "2.8.1": {"JoinGroupRequest": (0, 7), "ConsumerProtocolSubscription": (0, 1), "UpdateFeaturesRequest": (0, 0)},
    "3.9.2": {"JoinGroupRequest": (0, 9), "ConsumerProtocolSubscription": (0, 3), "UpdateFeaturesRequest": (0, 1)},
    "4.0.0": {"JoinGroupRequest": (2, 9), "OffsetCommitRequest": (2, 9)},
    "4.3.1": {"JoinGroupRequest": (0, 9), "ConsumerProtocolSubscription": (0, 3), "UpdateFeaturesRequest": (0, 2)},
    "4.4.0": {"JoinGroupRequest": (0, 9), "ApiVersionsRequest": (0, 5), "StreamsGroupHeartbeatRequest": (0, 1)},
}
"""One release of each manner in which values are made and read, and a few of its messages."""
ASSIGNORS = {"0.10.0.1": ("range", "roundrobin"), "1.1.1": ("range", "roundrobin", "sticky")}
ALL_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")


def executed(session: Session, *steps: Any) -> tuple[Observation, ...]:
    (answers,) = session.run([Case("test", "apache", Role.CODEC, steps)])
    return answers


def asked(verb: str, message: str, version: int, **body: Any) -> Any:
    return step("codec", verb, message=message, version=version, **body)


# -- names, and what is not here


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("java:", "for released jars use java:kafka-clients:RELEASE"),
        ("java:kafka-clients", "for released jars use java:kafka-clients:RELEASE"),
        ("java:kafka-brokers:3.9.2", "for released jars use java:kafka-clients:RELEASE"),
        ("java:kafka-clients:3.9", "use an exact patch, for example 3.9.2"),
        ("java:kafka-clients:latest", "use an exact patch, for example 3.9.2"),
        ("java:kafka-clients:0.9.0.1", "unknown release; kafka-clients has 0.10.0.0+"),
        ("java:kafka-streams:4.2.2", "unknown release; kafka-streams has 0.10.0.0-4.2.1, 4.3.0+"),
    ],
)
def test_a_wrong_name_is_wrong_usage_and_says_what_would_do(name: str, why: str) -> None:
    with pytest.raises(LookupError) as wrong:
        registry.target(name)
    assert why in str(wrong.value)


@pytest.fixture
def nothing_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a cache nor in reach."""
    monkeypatch.setenv("KIPCHECK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KIPCHECK_MAVEN_REPOSITORY", (tmp_path / "none").as_uri())


@pytest.mark.usefixtures("nothing_here")
def test_without_the_jar_and_offline_it_is_unavailable_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "program", lambda: Path("compiled"))
    with pytest.raises(Unavailable, match=r"org\.apache\.kafka:kafka-clients:3\.9\.2.*No such file"):
        registry.target("java:kafka-clients:3.9.2")


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)


@pytest.mark.usefixtures("no_java")
def test_without_a_jdk_it_is_unavailable_with_what_to_do() -> None:
    with pytest.raises(Unavailable, match="javac was not found in JAVA_HOME or on the PATH: install a JDK"):
        registry.target("java:kafka-clients:3.9.2")


@pytest.mark.usefixtures("no_java")
def test_a_target_that_is_not_here_is_an_error_and_the_others_are_run(tmp_path: Path) -> None:
    both = ("java:kafka-clients:3.9.2", "reference")
    few: dict[str, Any] = {
        "checks": ("wire/two-readings",),
        "messages": ("HeartbeatRequest",),
        "cases": 1,
        "workers": 1,
    }
    outcome = run(Options(targets=both, out=tmp_path / "both", **few))
    lines = [json.loads(line) for line in (tmp_path / "both" / "ledger.jsonl").read_text().splitlines()]
    (skipped,) = (each for each in lines if each.get("target") == both[0] and "why" in each)
    assert "javac was not found" in skipped["why"]
    assert outcome.exit_code == 3
    assert not [each for each in lines if each.get("target") == both[0] and each.get("result") == "PASS"]
    assert run(Options(targets=both[:1], out=tmp_path / "alone", **few)).exit_code == 3


def test_jars_that_are_here_are_listed_and_no_jvm_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_here: None
) -> None:
    for coordinate in (*programs.coordinates("3.9.2"), "org.apache.kafka:kafka-streams:2.0.1"):
        path = tmp_path / "cache" / "maven" / maven.Coordinate.parse(coordinate).path
        path.parent.mkdir(parents=True)
        path.write_bytes(b"a jar")
    beside = tmp_path / "cache" / "maven" / "org" / "apache" / "kafka" / "kafka-clients" / "3.9.1"
    beside.mkdir(parents=True)
    (beside / "kafka-clients-3.9.1-sources.jar").write_bytes(b"no classes in it")
    for tool in ("java", "javac"):
        (tmp_path / tool).write_text(f"#!{sys.executable}\nraise SystemExit('it was started')\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    clients, streams = the_java_target.rows()
    named = {"name": "java:kafka-clients:3.9.2", "version": "3.9.2", "roles": ["codec", "leader"]}
    assert clients == {**named, "available": True, "why": ""}
    assert (streams["name"], streams["available"]) == ("java:kafka-streams:2.0.1", False)
    assert streams["roles"] == ["codec", "leader", "member", "operator-tool"]
    assert streams["why"].startswith("org.apache.kafka:kafka-clients:2.0.1: not cached yet")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert {each["why"] for each in the_java_target.rows()} == {"java was not found in JAVA_HOME or on the PATH"}


@pytest.mark.usefixtures("nothing_here")
def test_where_there_is_no_jar_the_newest_client_shows_how_they_are_named() -> None:
    (row,) = the_java_target.rows()
    assert (row["name"], row["available"]) == (f"java:kafka-clients:{NEWEST}", False) and row["why"]


# -- what releases claim and do


@pytest.mark.jars
@pytest.mark.parametrize(
    ("release", "span"), [("1.1.1", None), ("2.4.1", None), ("2.8.1", (0, 12)), ("4.4.0", (4, 18))]
)
def test_messages_with_records_are_claimed_where_the_release_uses_its_generated_classes(
    release: str, span: tuple[int, int] | None
) -> None:
    with registry.target(f"java:kafka-clients:{release}").open("apache", Role.CODEC) as session:
        claimed = session.info.claims.messages
    assert claimed.get("FetchRequest") == claimed.get("FetchResponse") == span
    assert ("ListOffsetsRequest" in claimed) == (span is not None)
    assert "JoinGroupRequest" in claimed


@pytest.mark.jars
@pytest.mark.parametrize("release", CLIENTS)
def test_every_manner_of_release_claims_what_it_has_and_reads_what_it_writes(release: str) -> None:
    with registry.target(f"java:kafka-clients:{release}").open("apache", Role.CODEC) as session:
        assert session.info.version == release and session.info.roles == {Role.CODEC, Role.LEADER}
        claimed = session.info.claims.messages
        assert {message: claimed.get(message) for message in CLIENTS[release]} == CLIENTS[release]
        assert "SubscriptionInfo" not in claimed and "GroupMetadataValue" not in claimed
        assert ("CooperativeStickyAssignorUserData" in claimed) == (
            release in ("2.8.1", "3.9.2", "4.0.0", "4.3.1", "4.4.0")
        )
        assert session.info.claims.assignors == ASSIGNORS.get(
            release, ALL_ASSIGNORS if release > "2.4" else ALL_ASSIGNORS[:3]
        )
        low, _ = claimed["JoinGroupRequest"]
        value = {
            "groupId": "g", "sessionTimeoutMs": 7, "memberId": "m", "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": "00ff"}], **({"rebalanceTimeoutMs": 9} if low else {}),
        }  # fmt: skip
        data = "00016700000007" + ("00000009" if low else "") + "00016d0008636f6e73756d657200000001"
        data += "000572616e67650000000200ff"
        theirs = "0000000000020001740001750000000201ff".replace("0001740001750000", "0001740001750000")
        subscription = {"topics": ["t", "u"], "userData": "01ff"}
        written, read, again, cut, sent, reported = executed(
            session,
            asked("encode", "JoinGroupRequest", low, value=value),
            asked("decode", "JoinGroupRequest", low, hex=data),
            asked("recode", "JoinGroupRequest", low, hex=data),
            asked("decode", "JoinGroupRequest", low, hex=data[:-2]),
            asked("encode", "ConsumerProtocolSubscription", 0, value=subscription),
            asked("decode", "ConsumerProtocolSubscription", 0, hex=theirs),
        )
        assert written == Replied((("hex", data),)) == again
        assert isinstance(read, Replied) and {key: read["value"][key] for key in value} == value
        assert isinstance(cut, Refused) and "." in cut.error
        assert sent == Replied((("hex", theirs),))
        assert isinstance(reported, Replied) and reported["value"] == subscription


@pytest.mark.jars
@pytest.mark.parametrize(
    ("name", "claims"),
    [
        ("kafka-streams:2.0.1", {"SubscriptionInfo": (1, 3), "AssignmentInfo": (1, 3)}),
        ("kafka-streams:4.3.1", {"SubscriptionInfo": (1, 11), "AssignmentInfo": (1, 11), "ValueAndTimestamp": (0, 0)}),
        ("kafka-group-coordinator:4.3.1", {"GroupMetadataValue": (0, 4), "OffsetCommitKey": (0, 1)}),
        ("kafka-metadata:4.3.1", {"FeatureLevelRecord": (0, 0)}),
        ("kafka-transaction-coordinator:3.9.2", {"TransactionLogKey": (0, 0), "TransactionLogValue": (0, 1)}),
        ("kafka_2.13:3.4.1", {"GroupMetadataKey": (2, 2), "ProducerSnapshot": (1, 1), "TransactionLogValue": (0, 1)}),
        ("kafka_2.13:3.2.3", {"FeatureZNode": (1, 1), "BrokerIdZNode": (1, 5)}),
        ("kafka_2.13:3.3.2", {"FeatureZNode": (1, 2), "BrokerIdZNode": (1, 5)}),
        ("kafka-storage:4.4.0", {"CleanerCheckpoint": (0, 0), "PartitionMetadata": (0, 0)}),
    ],
)
def test_an_artifact_claims_what_is_in_its_own_jar(name: str, claims: dict[str, tuple[int, int]]) -> None:
    target = registry.target(f"java:{name}")
    with target.open("apache", Role.CODEC) as session:
        claimed = session.info.claims.messages
        assert {message: claimed.get(message) for message in claims} == claims
        machines = {
            "kafka-group-coordinator:4.3.1": {Role.COORDINATOR, Role.BROKER}, "kafka-metadata:4.3.1": {Role.CONTROLLER},
        }  # fmt: skip
        plays = {Role.BROKER, Role.CONTROLLER} if name.startswith("kafka_2.13") else machines.get(name, set())
        if streams := name.startswith("kafka-streams"):
            plays = {Role.LEADER, Role.MEMBER, Role.OPERATOR_TOOL}
            plays |= set() if name.endswith(":2.0.1") else {Role.STORE}  # stores have timestamps since 2.3.0
            assert session.info.claims.assignors == ("stream",)
        assert "JoinGroupRequest" not in claimed and session.info.roles == {Role.CODEC, *plays}
        message, (_, high) = next(iter(claims.items()))
        (read,) = executed(session, asked("decode", message, high, hex="ff"))
        assert isinstance(read, Refused)
    with pytest.raises(NotPlayed), target.open("apache", Role.CONTROLLER if streams else Role.LEADER):
        pass


@pytest.mark.jars
def test_streams_metadata_comes_from_the_classes_of_its_release() -> None:
    with registry.target("java:kafka-streams:2.0.1").open("apache", Role.CODEC) as session:
        value = {
            "version": 3,
            "commonlySupportedVersion": 3,
            "activeTasks": [],
            "standbyTasks": [],
            "partitionsByHost": [],
        }
        data = "0000000300000003000000000000000000000000"
        written, read, two = executed(
            session,
            asked("encode", "AssignmentInfo", 3, value=value),
            asked("decode", "AssignmentInfo", 3, hex=data),
            asked(
                "encode", "AssignmentInfo", 3,
                value={**value, "standbyTasks": [{"topicGroupId": 1, "partition": 1, "partitions": []}] * 2},
            ),
        )  # fmt: skip
        assert (written, read) == (Replied((("hex", data),)), Replied((("value", value),)))
        assert isinstance(two, Unsupported) and two.limit == "values"


@pytest.mark.jars
@pytest.mark.parametrize(("release", "claimed"), [("3.6.2", None), ("3.7.2", (0, 0)), ("4.4.0", (0, 1))])
def test_a_version_that_a_release_calls_unstable_is_not_claimed(release: str, claimed: tuple[int, int] | None) -> None:
    """ConsumerGroupHeartbeat v0 had another form before 3.7."""
    with registry.target(f"java:kafka-clients:{release}").open("apache", Role.CODEC) as session:
        assert session.info.claims.messages.get("ConsumerGroupHeartbeatRequest") == claimed


@pytest.mark.jars
def test_a_draft_is_not_played_and_releases_are() -> None:
    target = registry.target("java:kafka-clients:3.9.2")
    draft = "kip-584 is a draft, but a jar contains a release"
    with pytest.raises(Unavailable, match=draft), target.open("kip-584", Role.CODEC):
        pass
    with target.open("apache@4.4.0", Role.LEADER) as session:
        assert session.info.version == "3.9.2"


@pytest.mark.jars
def test_the_newest_names_are_put_in_those_of_the_release() -> None:
    """2.4.1 knows the first of these fields by another name, and of ApiVersions no tagged field."""
    with registry.target("java:kafka-clients:2.4.1").open("apache", Role.CODEC) as session:
        commit = {"groupId": "g", "generationIdOrMemberEpoch": 5, "memberId": "m", "topics": []}
        written, read, versions, knows, beyond = executed(
            session,
            asked("encode", "OffsetCommitRequest", 6, value=commit),
            asked("decode", "OffsetCommitRequest", 6, hex="0001670000000500016d00000000"),
            asked("decode", "ApiVersionsResponse", 3, hex="0000010000000000"),
            asked("decode", "ApiVersionsResponse", 3, hex="000001000000000101080000000000000009"),
            asked("encode", "ApiVersionsResponse", 3, value={"finalizedFeaturesEpoch": 9}),
        )
        assert written == Replied((("hex", "0001670000000500016d00000000"),))
        assert read == Replied((("value", commit),))
        assert isinstance(versions, Replied) and versions["value"]["finalizedFeaturesEpoch"] == -1
        assert isinstance(knows, Unsupported) and isinstance(beyond, Unsupported)
        assert (knows.limit, beyond.limit) == ("fields", "fields")


@pytest.mark.jars
@pytest.mark.parametrize("release", ["0.10.0.1", "0.11.0.3", "2.3.1"])
def test_releases_without_definitions_read_and_write_every_version_under_lent_names(release: str) -> None:
    own = edition(f"apache@{release}")
    with registry.target(f"java:kafka-clients:{release}").open(str(own), Role.CODEC) as session:
        seen = 0
        for message, (low, high) in session.info.claims.messages.items():
            if message not in messages(own) or not message.endswith(("Request", "Response", "ResponseHeader")):
                continue
            for at in spec(own, message):
                assert low <= at.version <= high, str(at)
                value = extreme(at)
                data, plain = at.encode(value).hex(), at.codec.to_json(value)
                written, read, again, less, more = executed(
                    session,
                    asked("encode", message, at.version, value=plain),
                    asked("decode", message, at.version, hex=data),
                    asked("recode", message, at.version, hex=data),
                    asked("encode", message, at.version, value={}),
                    asked("encode", message, at.version, value={**plain, "nosuch": 1}),
                )
                assert (written, again) == (Replied((("hex", data),)),) * 2, str(at)
                assert read == Replied((("value", plain),)), str(at)
                assert less == Replied((("hex", at.encode(at.defaults()).hex()),)), str(at)
                assert isinstance(more, Unsupported) and more.limit == "fields"
                seen += 1
    assert seen >= 30


@pytest.mark.jars
def test_releases_answer_differently_in_one_process() -> None:
    """2^31-1 elements: 2.8.0 asks for the memory, 2.8.2 looks at what is left. Each has its own classes."""
    found = maven.fetch({each: None for release in ("2.8.0", "2.8.2") for each in programs.coordinates(release)})
    jars = {release: [found[each] for each in programs.coordinates(release)] for release in ("2.8.0", "2.8.2")}
    with programs.judge_of(jars) as judge:
        orders = [
            programs.Order("decode", "LeaveGroupRequest", 3, hex="00007fffffff", release=release)
            for release in ("2.8.0", "2.8.2", "2.8.0")
        ]
        reported = [(each.status, each.thrown) for each in judge.answers(orders)]
    exhausted = ("internal", "java.lang.OutOfMemoryError")
    assert reported == [exhausted, ("rejected", "java.lang.RuntimeException"), exhausted]


# -- code that misbehaves


MISBEHAVING = """
package org.apache.kafka.clients.consumer;

public class StickyAssignor {
    static final java.util.List<Object> KEPT = new java.util.ArrayList<>();

    private static Object deserializeTopicPartitionAssignment(java.nio.ByteBuffer bytes) throws Exception {
        switch (bytes.get()) {
            case 1: while (true) { KEPT.add(new long[1 << 20]); }
            case 2: return deserializeTopicPartitionAssignment(bytes.rewind());
            case 3: System.out.println("{ a jar that prints"); return new java.util.ArrayList<Object>();
            case 4: throw new java.io.IOException("refused");
            case 5: System.exit(3);
            case 6: while (true) { }
            case 7: Thread.sleep(1 << 30);
            case 8: KEPT.clear(); return new java.util.ArrayList<Object>();
            case 9: while (true) { try { while (true) { } } catch (Throwable stubborn) { } }
            case 11: throw new RuntimeException() {
                @Override public String getMessage() { throw new IllegalStateException("never said"); }
            };
            default: return Thread.currentThread().getContextClassLoader() == StickyAssignor.class.getClassLoader()
                ? new java.util.ArrayList<Object>() : null;
        }
    }
}
"""
FILLS, RECURS, PRINTS, REFUSES, LEAVES, LOOPS, SLEEPS, CLEARS, STUBBORN, ANSWERS, SILENT = range(1, 12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release that holds one class, which misbehaves."""
    root = tmp_path_factory.mktemp("release")
    (root / "StickyAssignor.java").write_text(MISBEHAVING)
    subprocess.run(
        [programs.tool("javac"), "-d", str(root), str(root / "StickyAssignor.java")], check=True, timeout=120
    )
    return root


@pytest.fixture
def session(folder: Path) -> Iterator[Session]:
    limits = Limits(batch_s=6, cpu_s=0.4, restarts=3)
    with Program("test", programs.command({"0.11.0.0": [folder]}), limits).open("apache", Role.CODEC) as opened:
        yield opened


def seen(session: Session, *bytes_: int) -> list[Observation]:
    """Each of these in a case of its own, all in one batch."""
    steps = [asked("decode", "StickyAssignorUserData", 0, hex=f"{each:02x}") for each in bytes_]
    return [answer for (answer,) in session.run([Case("test", "apache", Role.CODEC, (each,)) for each in steps])]


@pytest.mark.jars
def test_what_goes_wrong_in_one_case_is_told_and_the_others_are_answered(session: Session) -> None:
    found = seen(session, ANSWERS, RECURS, REFUSES, LOOPS, PRINTS, FILLS, CLEARS, ANSWERS)
    answers, recurs, refuses, loops, prints, fills, _, after = found
    assert answers == prints == after == Replied((("value", {"previousAssignment": []}),))
    assert isinstance(recurs, Died) and (recurs.cause, recurs.detail) == (
        "crashed",
        "java.lang.StackOverflowError: null",
    )
    assert isinstance(refuses, Refused) and (refuses.error, refuses.why) == ("java.io.IOException", "refused")
    assert isinstance(loops, Died) and loops.cause == "timeout"
    assert "more than 400 ms of processor time" in loops.detail
    assert "StickyAssignor.deserializeTopicPartitionAssignment" in loops.evidence
    assert isinstance(fills, Died) and fills.cause == "memory" and "java.lang.OutOfMemoryError" in fills.detail
    assert not session.troubles


@pytest.mark.jars
def test_an_exception_that_cannot_be_told_is_a_crash_of_its_case(session: Session) -> None:
    silent, after = seen(session, SILENT, ANSWERS)
    assert isinstance(silent, Died) and "the thread of this case has ended" in silent.detail
    assert isinstance(after, Replied)


@pytest.mark.jars
def test_one_that_waits_is_a_time_out_too(session: Session) -> None:
    waits, after = seen(session, SLEEPS, ANSWERS)
    assert isinstance(waits, Died) and waits.cause == "timeout" and "Thread.sleep" in waits.evidence
    assert isinstance(after, Replied)


@pytest.mark.jars
def test_one_that_ends_the_process_costs_a_restart_and_no_verdict(session: Session) -> None:
    before, leaves, after = seen(session, ANSWERS, LEAVES, ANSWERS)
    assert isinstance(leaves, Died) and (leaves.cause, leaves.detail) == ("crashed", "left with exit code 3")
    assert isinstance(before, Replied) and isinstance(after, Replied)


@pytest.mark.jars
def test_threads_that_cannot_be_stopped_are_left_until_there_are_too_many(session: Session) -> None:
    """As none can be on a newer Java: the process is started again, and each case is still blamed for what it did."""
    found = seen(session, STUBBORN, ANSWERS, STUBBORN)
    assert [type(each) for each in found] == [Died, Replied, Died]
    assert {each.cause for each in found if isinstance(each, Died)} == {"timeout"}


# -- the gate


@pytest.mark.jars
def test_a_release_is_conformant_to_itself(tmp_path: Path) -> None:
    registry.target("java:kafka-clients:3.9.2")  # if it cannot be had, this says so
    options = Options(
        targets=("java:kafka-clients:3.9.2",), messages=("JoinGroupRequest",), checks=("wire/*",), cases=1, workers=1,
        out=tmp_path,
    )  # fmt: skip
    outcome = run(options)
    assert (outcome.exit_code, outcome.failures, outcome.warnings) == (0, 0, 0)


BROKERS = {
    "kafka_2.12": ("1.1.1", "2.0.1", "2.1.1", "2.2.2", "2.3.1"),
    "kafka_2.13": ("2.4.1", "2.8.2", "3.0.2", "3.3.2", "3.4.0", "3.4.1", "3.6.2", "3.9.2"),
    "kafka-storage": ("3.5.2", "3.9.2", "4.0.2", "4.4.0"),
    "kafka-group-coordinator": ("4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0"),
}
"""Jars whose classes write what brokers persist."""


@pytest.mark.all_jars
@pytest.mark.parametrize(("artifact", "release"), [(each, one) for each, of in BROKERS.items() for one in of])
def test_what_a_broker_of_a_release_persists_keeps_to_the_laws(artifact: str, release: str, tmp_path: Path) -> None:
    target = f"java:{artifact}:{release}"
    registry.target(target)
    checks = {
        "kafka-storage": ("log-files/*",), "kafka-group-coordinator": ("stored-records/*",),
        "kafka_2.13": ("log-files/*", "stored-records/*", "nodes/*"),
    }  # fmt: skip
    options = Options(
        targets=(target,), edition=f"apache@{release}", known=("default",), workers=1, out=tmp_path,
        checks=checks.get(artifact, ("log-files/*", "stored-records/*")),
    )  # fmt: skip
    outcome = run(options)
    assert (outcome.exit_code, outcome.failures) == (0, 0)
