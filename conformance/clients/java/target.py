"""``java:ARTIFACT:RELEASE``: a released jar of Apache Kafka as a target of a run, in a JVM of its own."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.coordinators import CoordinatorSession
from kipcheck.conformance.clients.java.field_names import Translated, names
from kipcheck.conformance.clients.java.streams_group import StreamsJar
from kipcheck.conformance.core.files.releases_table import broker_jars, jar, patches, rocksdb, span
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.release import NEWEST, Release, releases
from kipcheck.conformance.targets.protocol import Target, Unavailable
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.toolchains import kafka_broker, maven

GROUP: Final = "org.apache.kafka"
PARTS: Final[Mapping[str, str]] = {jar(part): part for part in programs.PARTS if jar(part) not in broker_jars()}
"""The name of the jar -> the part of Kafka in it."""
ARTIFACTS: Final[Mapping[str, str]] = {
    **{name: programs.PARTS[part] for name, part in PARTS.items()}, **broker_jars()
}  # fmt: skip
"""The name of the jar -> its releases."""
STREAMS: Final = "kafka-streams"
SCALA_2_13: Final = "kafka_2.13"
COORDINATOR: Final = "kafka-group-coordinator"
CONTROLLER: Final = "kafka-metadata"
RUN: Final = releases(span("java-coordinator-runs"))
"""The releases whose group coordinator is run; of the others only the records are used: before 3.9 it was a preview."""
STORES: Final = releases("4.0.0+")
"""The releases whose brokers store records of groups with the classes of that jar."""
PREVIEW: Final = "preview"
PREVIEWS: Final = releases("4.1.0-4.1.2")
"""The releases whose streams groups are a preview with the messages of later ones."""
TRANSACTIONS_IN_SCALA: Final = releases("4.0.0-4.2.1")
LOGGING_APART: Final = releases("4.1.0-4.1.2")
"""The logging of what is in Scala loads classes of further jars."""
CONTROLS: Final = releases(span("java-controller-runs"))
"""The releases whose controller of feature versions is run."""
USED: Final = releases(span("generated-records"))
UNUSED: Final = ("Fetch", "ListOffsets", "OffsetForLeaderEpoch", "Produce")
"""Messages of which an older release has generated classes that it does not use, or schemas with records in them."""
FIRST: Final = Release.parse(patches()[0])
"""Clients before it have no Streams, and classes that the program does not know."""


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Errors: LookupError with the valid forms; ``Unavailable`` without a JDK or the jar."""
    artifact, _, given = rest.partition(":")
    version, _, option = given.partition("?")
    if artifact not in ARTIFACTS or not version:
        known = ", ".join(f"java:{each}:RELEASE" for each in ARTIFACTS)
        raise LookupError(f"unknown target {name!r}; for released jars use {known}")
    _exists(artifact, version)
    if option and (option, artifact, Release.parse(version) in PREVIEWS) != (PREVIEW, COORDINATOR, True):
        raise LookupError(f"{name}: only java:{COORDINATOR}:4.1.x has an option, ?{PREVIEW}")
    programs.program()  # before any download: the jars need a JDK
    jars = _jars(artifact, version)
    rocks = _rocksdb(artifact, version)
    watch = _flush_watch(version, [*jars, *rocks]) if rocks else []
    command = programs.command({version: jars + watch}, artifact, names(version), rocks, option == PREVIEW)
    omits = () if Release.parse(version) in USED else UNUSED
    testee = Testee(name, command, limits, omits=omits, sessions={Role.COORDINATOR: CoordinatorSession})
    translated = Translated(testee, version)
    return StreamsJar(translated, version) if artifact == STREAMS else translated


def rows() -> Iterator[dict[str, Any]]:
    """For each artifact the releases whose jars are cached; for kafka-clients the newest where none is."""
    missing = next((each for each in ("java", "javac") if not _has(each)), "")
    for artifact in ARTIFACTS:
        cached = maven.local_releases(GROUP, artifact)
        known = sorted((each for each in cached if _known(artifact, each)), key=Release.parse)
        if not known and artifact == "kafka-clients":
            known = [NEWEST]
        for version in known:
            lacking = [each for each in _needed(artifact, version) if maven.cached(each) is None]
            why = f"{', '.join(lacking)}: not cached yet, downloaded when the target is used" if lacking else ""
            if missing:
                why = f"{missing} was not found in JAVA_HOME or on the PATH"
            yield {
                "name": f"java:{artifact}:{version}", "version": version, "available": not why, "why": why,
                "roles": _roles(artifact, version),
            }  # fmt: skip


def _roles(artifact: str, version: str) -> list[str]:
    if artifact == "kafka-clients":
        return ["codec", "leader"]
    if artifact in broker_jars():
        controls = artifact == SCALA_2_13 and Release.parse(version) in releases(span("feature-znode"))
        return ["codec"] if artifact == "kafka-storage" else ["codec", *(["controller"] if controls else []), "broker"]
    if artifact == STREAMS:
        stored = _store(artifact, version)
        store = ["store"] if stored and maven.cached(stored) else []
        return ["codec", "leader", "member", "operator-tool", *store]
    if _controls(artifact, version):
        return ["codec", "controller"]
    plays = ["coordinator"] if _runs(artifact, version) else []
    keeps = ["broker"] if artifact == COORDINATOR and Release.parse(version) in STORES else []
    return ["codec", *plays, *keeps]


def _has(tool: str) -> bool:
    try:
        return bool(programs.tool(tool))
    except Unavailable:
        return False


def _known(artifact: str, version: str) -> bool:
    try:
        _exists(artifact, version)
    except LookupError:
        return False
    return True


def _exists(artifact: str, version: str) -> None:
    """Errors: LookupError for an invalid release, and for one that the artifact does not have."""
    try:
        release = Release.parse(version)
    except ValueError as wrong:
        raise LookupError(f"java:{artifact}:{version}: {wrong}") from None
    span = ARTIFACTS[artifact]
    if release < FIRST or release not in releases(span):
        has = f"{FIRST}+" if span == "all" else span
        raise LookupError(f"java:{artifact}:{version}: unknown release; {artifact} has {has}")


def _jars(artifact: str, version: str) -> list[Path]:
    """The class path, the artifact itself first. Errors: ``Unavailable``."""
    if artifact not in broker_jars():
        needed = coordinates(artifact, version)
        found = maven.fetch({each: None for each in needed})
        return [found[each] for each in needed]
    paths = map(Path, kafka_broker.class_path(version).split(os.pathsep))
    return sorted(paths, key=lambda each: each.name != f"{artifact}-{version}.jar")


def _needed(artifact: str, version: str) -> list[str]:
    """What is known, without a download, to be on the class path."""
    return [f"{GROUP}:{artifact}:{version}"] if artifact in broker_jars() else coordinates(artifact, version)


def coordinates(artifact: str, version: str) -> list[str]:
    """The jars on the class path, the artifact itself first; not for jars of brokers, whose path Maven resolves."""
    needed = [*programs.coordinates(version, (PARTS[artifact],))]
    if _runs(artifact, version):
        needed += _running(version)
    if artifact == COORDINATOR and Release.parse(version) in STORES:
        needed += _transactions(version)
    if _controls(artifact, version):
        needed += [f"{GROUP}:kafka-{part}:{version}" for part in ("server-common", "raft")]
    return sorted(needed, key=lambda each: not each.startswith(f"{GROUP}:{artifact}:"))


def _transactions(version: str) -> list[str]:
    """The jars with the classes that store records of transactions."""
    needed = [f"{GROUP}:kafka-transaction-coordinator:{version}"]
    if Release.parse(version) in TRANSACTIONS_IN_SCALA:
        needed += [
            f"{GROUP}:kafka_2.13:{version}", "org.scala-lang:scala-library:2.13.6",
            "com.typesafe.scala-logging:scala-logging_2.13:3.9.2", "commons-validator:commons-validator:1.7",
        ]  # fmt: skip
        if Release.parse(version) in LOGGING_APART:
            log4j = "org.apache.logging.log4j:log4j"
            needed += [f"{GROUP}:kafka-server:{version}", f"{log4j}-api:2.25.3", f"{log4j}-core:2.25.3"]
    return needed


def _runs(artifact: str, version: str) -> bool:
    return artifact == COORDINATOR and Release.parse(version) in RUN


def _rocksdb(artifact: str, version: str) -> list[Path]:
    """The library of the persistent stores of Streams. Without it the jar plays all roles but store."""
    wanted = _store(artifact, version)
    try:
        return [*maven.fetch([wanted]).values()] if wanted else []
    except Unavailable:
        return []


def _flush_watch(version: str, jars: list[Path]) -> list[Path]:
    reports = Release.parse(version) in releases(span("stores-report-flushes"))
    return [programs.flush_watch(version, jars)] if reports else []


def _store(artifact: str, version: str) -> str | None:
    library = rocksdb(version) if artifact == STREAMS else None
    return library and f"org.rocksdb:rocksdbjni:{library}"


def _controls(artifact: str, version: str) -> bool:
    return artifact == CONTROLLER and Release.parse(version) in CONTROLS


def _running(version: str) -> list[str]:
    """The jars that the group coordinator calls, in addition to those of its records."""
    release = Release.parse(version)
    parts = ["group-coordinator-api", "server-common", "storage", "storage-api", "metadata"]
    others = ["com.yammer.metrics:metrics-core:2.2.0", "org.pcollections:pcollections:4.0.2"]
    if release in releases("4.0.0+"):
        parts.append("coordinator-common")
        others.append("com.google.re2j:re2j:1.8")
    if release in releases("4.1.0+"):
        others.append("com.dynatrace.hash4j:hash4j:0.22.0")
    return [*(f"{GROUP}:kafka-{part}:{version}" for part in parts), *others]
