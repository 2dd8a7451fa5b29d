"""The digests of all jars that kipcheck downloads: ``python -m kipcheck.golden.jar_digests [--check]``.

``conformance/targets/toolchains/locks/jars.sha256`` has the SHA-256 of each jar, by its path in a Maven repository, as
``sha256sum`` writes it. A jar is added if the checksum that is beside it, as its repository stated it, is right.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from os import pathsep
from pathlib import Path
from typing import Final

from kipcheck.conformance.clients.java import programs, store_process, stored_records, target
from kipcheck.conformance.core.files.releases_table import broker_jars, patches, since
from kipcheck.conformance.core.values.release import Release, releases
from kipcheck.conformance.live.controller import tool
from kipcheck.conformance.targets.toolchains import jar_digests, kafka_broker, maven
from kipcheck.golden.record_types import JARS

FIRST_STORE: Final = Release.parse(since("stores-open"))


def needed(release: str) -> Iterator[str]:
    """The coordinates of the jars that kipcheck fetches for a release, apart from those that Maven finds for its
    broker."""
    at = Release.parse(release)
    yield from programs.coordinates(release, programs.parts(release))
    for artifact, span in target.ARTIFACTS.items():
        if artifact not in broker_jars() and at in releases(span):
            yield from target.coordinates(artifact, release)
    if at >= FIRST_STORE:
        yield f"org.rocksdb:rocksdbjni:{store_process.library(release)}"
    if at >= tool.IN_TOOLS:
        yield f"org.apache.kafka:kafka-tools:{release}"
    if at >= stored_records.FIRST:
        yield from stored_records.coordinates(release)
    yield from (f"org.apache.kafka:{name}:{release}" for name, span in JARS.values() if at in releases(span))


def jars() -> Iterator[Path]:
    """All jars, which are downloaded where they are missing. Errors: ``Unavailable``."""
    yield from maven.fetch(dict.fromkeys(each for release in patches() for each in needed(release))).values()
    for release in patches():
        yield from map(Path, kafka_broker.class_path(release).split(pathsep))


def name_of(jar: Path) -> str:
    """Its path in a repository. Errors: ValueError for a jar in no repository."""
    for root in maven.roots():
        if jar.is_relative_to(root):
            return jar.relative_to(root).as_posix()
    raise ValueError(f"{jar} is in none of {', '.join(map(str, maven.roots()))}")


def digest_of(jar: Path) -> str:
    """Of a jar that was compared with its repository. Errors: ValueError for another one."""
    if not any(jar.with_name(jar.name + each).is_file() for each in jar_digests.LEFT):
        raise ValueError(f"{jar} has no checksum of a repository beside it: remove it, and it is downloaded again")
    return jar_digests.sha256(jar)


def made() -> str:
    """The contents of the file. An entry never changes: a jar with another digest is ``Unavailable``."""
    found = dict(jar_digests.locked())
    for jar in jars():
        if not jar_digests.is_locked(jar):
            found[name_of(jar)] = digest_of(jar)
    return "".join(f"{digest}  {name}\n" for name, digest in sorted(found.items()))


def main(argv: Sequence[str]) -> int:
    """Exit code 1: with ``--check``, the file would change."""
    with as_file(files("kipcheck.conformance.targets.toolchains") / "locks" / jar_digests.LOCK) as path:
        wanted = made()
        changed = path.read_text("utf-8") != wanted
        if changed and "--check" not in argv:
            path.write_text(wanted, "utf-8")
    print(f"{jar_digests.LOCK}: {'changed' if changed else 'unchanged'}, {wanted.count(chr(10)):,} jars")
    return int(changed and "--check" in argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
