"""Has the RocksDB of a release verify the checksums in the tables of a store, without a change of its directory."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kipcheck.conformance.clients.java import programs
from kipcheck.conformance.clients.java.store_process import library, library_jar
from kipcheck.conformance.core.values.release import version_numbers
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder
from kipcheck.conformance.targets.transport import process_tree
from kipcheck.conformance.wire.rocksdb_files import Damaged, written_by

BLOCK: Final = re.compile(r"(?:Footer at (\d+) .*?)?([^/\s]+\.sst)(?: offset (\d+) size \d+)?")
"""The table, and mostly the footer or block, that an error of RocksDB names; a guess at the MANIFEST may
follow."""


class Unread(Exception):
    """The RocksDB of the release cannot read the store: another one wrote it, or it is not to be opened as it is."""


@dataclass(frozen=True, slots=True)
class Verified:
    rocksdb: str
    families: int
    tables: int
    every_block: bool
    """False before RocksDB 6: blocks of keys and values, and the indexes that lead there, but not filters and
    properties."""


def verify(release: str, directory: Path) -> Verified:
    """Errors: ``Damaged``; ``Unread``; ``Unavailable`` without a JDK or the jar; LookupError before 1.0."""
    version = library(release)
    java = programs.tool("java")  # before any download: the jar needs a JDK
    jar = library_jar(release).resolve()  # other processes have other working directories
    path = os.pathsep.join(map(str, (programs.table_verifier(version, jar).resolve(), jar)))
    with temporary_folder("storedir") as folder:
        done = process_tree.run(
            [
                # The jar unpacks its library into the folder for temporary files.
                java, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
                "-Dfile.encoding=UTF-8", f"-Djava.io.tmpdir={folder}", "-cp", path, "kipcheck.VerifyTables",
                str(directory.resolve()), str(folder),
            ],
            cwd=folder,
        )  # fmt: skip
    own = f"RocksDB {version} of kafka-streams {release}"
    started, *lines = done.stdout.split("\n")
    if started != "ready":
        reason = done.stderr.strip().split("\n")[0][:300] or "no reason"
        raise Unavailable(f"{own} does not start: {reason}")
    kind, _, rest = (lines or [""])[0].partition("\t")
    if kind == "verified":
        families, tables, how = rest.split("\t")
        return Verified(version, int(families), int(tables), how == "all")
    code, _, why = rest.partition("\t") if kind == "refused" else ("", "", f"its process ended with {done.returncode}")
    writer = written_by(directory)
    # The store has three numbers; the jar of a release may have a fourth.
    if writer is not None and version_numbers(writer) > version_numbers(version):
        raise Unread(f"RocksDB {writer} wrote {directory}, and the older {own} does not read it ({why}): "
                     "give --release of the application that uses the store")  # fmt: skip
    if code != "Corruption":
        raise Unread(f"{own} does not read {directory}: {why}")
    block = BLOCK.search(why)
    if block is None:
        raise Damaged(directory, None, f"{own} says: {why}")
    offset = block[1] or block[3]
    raise Damaged(directory / block[2], int(offset) if offset else None, f"{own} says: {why[: block.end()]}")
