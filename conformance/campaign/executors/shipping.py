"""Packs what workers of a cluster need into one archive, which Spark sends with the job: ``kipcheck campaign --ship``.

It holds this kipcheck and the installed libraries of its extras ``spark`` and ``targets``, kipcheck's cache, and the
jars that kipcheck has a digest of. A worker then needs only Python of the same minor version, with the platform of this
machine, and a JDK, Go or Node.js for the targets that are written for them.
"""

import re
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Final

from kipcheck.conformance.campaign.executors.spark_worker import OUTSIDE, PACKAGE
from kipcheck.conformance.core.files.install import EXTRA, NAME
from kipcheck.conformance.targets.toolchains import jar_digests, maven

FOLDER: Final = "kipcheck-shipped"
"""In the working folder of an executor."""
ARCHIVE: Final = "kipcheck.tar.gz"
EXTRAS: Final = frozenset({"spark", "targets"})
PROVIDED: Final = frozenset({"pyspark", "py4j"})
"""Spark has them for its Python workers."""
PYTHON: Final = f"python{sys.version_info[0]}.{sys.version_info[1]}"
"""The command on a worker, unless the variable ``PYSPARK_PYTHON`` names another."""


def pack(folder: Path) -> Path:
    """The archive, in ``folder``. Errors: OSError."""
    archive = folder / ARCHIVE
    with tarfile.open(archive, "w:gz", compresslevel=1, dereference=True) as written:
        written.add(str(files(PACKAGE)), f"lib/{PACKAGE}", filter=_own)  # a checkout's package consists of links
        for distribution in _distributions():
            for each in distribution.files or ():
                if ".." not in each.parts and "__pycache__" not in each.parts and each.suffix != ".pth":
                    written.add(str(distribution.locate_file(each)), f"lib/{each}", recursive=False)
        written.dereference = False  # an environment of a client has a link to its Python
        if maven.cache().is_dir():
            written.add(str(maven.cache()), "cache", filter=_cached)
        for path, jar in _jars():
            written.add(str(jar), f"cache/maven/{path}")
    return archive


def settings(archive: Path) -> Mapping[str, str]:
    """Spark's settings that send the archive, and make executors use it."""
    return {
        "spark.archives": f"{archive}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"{FOLDER}/lib",
        f"spark.executorEnv.{maven.CACHE}": f"{FOLDER}/cache",
    }


def _distributions() -> Iterator[metadata.Distribution]:
    """kipcheck, and what is installed of its requirements and of theirs."""
    waiting, seen = [PACKAGE], set(PROVIDED)
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # an extra that is not installed, or a requirement of another platform
            continue
        yield found
        for requirement, _, marker in (line.partition(";") for line in found.requires or ()):
            extras = {*EXTRA.findall(marker)}
            if not extras or (name == PACKAGE and extras & EXTRAS):
                waiting.append(re.sub(r"[-_.]+", "-", NAME.findall(requirement)[0]).lower())


def _own(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = Path(member.name).parts
    return None if OUTSIDE.intersection(parts) or parts[2:4] == ("reports", "out") else member


def _cached(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Locks and what was being made when the archive was packed stay here."""
    name = Path(member.name).name
    is_special = member.isdev()  # a FIFO, or a device
    return None if name.endswith(".lock") or name == "__pycache__" or is_special else member


def _jars() -> Iterator[tuple[str, Path]]:
    """The jars that are in Maven's folder and not in kipcheck's, by their path in every repository."""
    own, maven_folder = maven.roots()
    for path in jar_digests.locked():
        if (maven_folder / path).is_file() and not (own / path).is_file():
            yield path, maven_folder / path
