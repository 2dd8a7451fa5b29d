"""The functions with which the brokers of some releases write and read the records in __consumer_offsets, and the
files beside a log."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.programs import Answer, JavaCodec, Order
from kipcheck.conformance.core.files.releases_table import broker_jars
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.wire.log_files import VERSIONS

KAFKA: Final = "org.apache.kafka"
IN_JAVA: Final = releases("4.0.0+")
SCALA_2_12: Final = releases("0.0.0-2.3.1")
"""The releases whose broker is not on Maven Central for Scala 2.13."""
FIRST: Final = Release.parse(broker_jars()["kafka_2.12"].partition("-")[0])
UNREADABLE: Final = ("KafkaException", "IllegalStateException", "UnknownRecordVersionException")
"""Exceptions for a version that is not known."""


def coordinates(release: str) -> list[str]:
    """The jars on the class path. Errors: LookupError for a release before 1.1.1, or an invalid one."""
    try:
        at = Release.parse(release)
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None
    if at < FIRST:
        raise LookupError(f"records of {release}: the brokers that are read begin with {FIRST}")
    own = ["kafka-clients"]
    others = ["org.slf4j:slf4j-api:1.7.36"]
    if at in IN_JAVA:
        own += ["kafka-group-coordinator", "kafka-coordinator-common", "kafka-server-common"]
    else:
        scala = "2.12" if at in SCALA_2_12 else "2.13"
        own.append(f"kafka_{scala}")
        others.append(f"org.scala-lang:scala-library:{'2.12.10' if scala == '2.12' else '2.13.6'}")
        logging = "3.9.0" if scala == "2.12" else "3.9.2"
        others.append(f"com.typesafe.scala-logging:scala-logging_{scala}:{logging}")
        if at in releases("3.2.0+"):
            own.append("kafka-server-common")
        if at in releases("3.5.0+"):
            own.append("kafka-group-coordinator")
        if at in releases("3.6.0+"):
            # The logging of these brokers, and the configuration that a group refers to, load them.
            others += ["ch.qos.reload4j:reload4j:1.2.25", "commons-validator:commons-validator:1.7"]
    return [*(f"{KAFKA}:{each}:{release}" for each in own), *others]


class Brokers:
    """The records of some releases' brokers."""

    def __init__(self, judge: JavaCodec) -> None:
        self._judge = judge

    def inter_broker_versions(self, release: str) -> list[str]:
        """All that the release knows: ``2.1-IV0``, in the oldest releases ``0.8.1.X``."""
        return list(self._judge.one(Order("inter-broker-versions", "", release=release)).value)

    def transaction_versions(self, release: str) -> list[int]:
        """By level of transaction.version, the version of TransactionLogValue."""
        return list(self._judge.one(Order("transaction-versions", "", release=release)).value)

    def write(
        self, message: str, release: str, inter_broker: str = "", expiring: bool = False, level: int | None = None
    ) -> bytes:
        """The bytes of a small record. Errors: ValueError where the broker cannot write it."""
        chosen = {"inter_broker": inter_broker or None, "level": level, "expires": expiring}
        answer = self._judge.one(Order("write-record", message, release=release, body=chosen))
        if answer.hex is None:
            raise ValueError(f"{release} does not write {message}: {answer.thrown or ''} {answer.message}".strip())
        return bytes.fromhex(answer.hex)

    def recode_file(self, kind: str, data: bytes, releases: Sequence[str]) -> list[Answer]:
        """What each release writes after it has read a file of ``wire.log_files``; rejected if it cannot read it."""
        orders = (Order("recode", kind, VERSIONS[kind], hex=data.hex(), release=each) for each in releases)
        return list(self._judge.answers(orders))

    def read(self, message: str, data: bytes, releases: Sequence[str]) -> list[Answer]:
        """What each release does with the bytes of a value, or of a key."""
        return list(
            self._judge.answers(Order("read-record", message, hex=data.hex(), release=each) for each in releases)
        )


def unreadable(answer: Answer) -> bool:
    """Whether the release refuses the version of a record, and so cannot load its partition."""
    return answer.status == "rejected" and str(answer.thrown).rpartition(".")[2].rpartition("$")[2] in UNREADABLE


def skipped(answer: Answer) -> bool:
    """Whether the release skips a record, because it does not know its kind."""
    return answer.loaded is False


@contextmanager
def brokers(wanted: Iterable[str]) -> Iterator[Brokers]:
    """The brokers of these releases in one JVM. Errors: ``Unavailable`` without JDK or jars; LookupError."""
    needed = {release: coordinates(release) for release in wanted}
    programs.program()  # before any download: the jars need a JDK
    found = maven.fetch({each: None for group in needed.values() for each in group})
    with programs.judge_of({release: [found[each] for each in group] for release, group in needed.items()}) as judge:
        yield Brokers(judge)
