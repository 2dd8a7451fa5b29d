"""Runs a shard in a Python worker of Spark, through a ``ShardRunner`` that lives as long as the worker.

The function that Spark ships by value (``spark``) calls it with plain values and bytes only: nothing is unpickled
before the worker's kipcheck is known to match the driver's.
"""

import base64
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from kipcheck.conformance.campaign.process.child_outcome import BoundsOf, usual
from kipcheck.conformance.campaign.process.shard_pool import CannotRunShards, ShardRunner
from kipcheck.conformance.campaign.summary import RoundSummary

MOST_ATTEMPTS: Final = 2
"""The attempt that is not made: a shard that crashed its worker this often is run apart."""
PACKAGE: Final = "kipcheck"
LIBRARIES: Final = ("kipcheck", "hypothesis", "construct", "kafka-python")
"""They influence what is drawn, run and judged."""
SHARED: Final = ("KIPCHECK_CACHE", "KIPCHECK_MAVEN_REPOSITORY")
"""Where workers find jars and adapters, unless their own environment sets it."""
SHIPPED: Final = (SHARED[0], "PYTHONPATH")
CODE: Final = (".py", ".toml", ".json", ".java", ".go", ".mjs")
OUTSIDE: Final = {"tests", "benchmarks", "docs", "__pycache__"}
"""Folders that do not influence results, and that a wheel may lack."""


def common(snapshot: bytes) -> dict[str, Any]:
    """The data that all shards of a wave share."""
    return {
        "snapshot": snapshot,
        "likeness": fingerprint(),
        "environment": {name: os.environ[name] for name in SHARED if name in os.environ},
        "folder": os.getcwd(),
    }


def answer(sent: Mapping[str, Any], packed: bytes, attempt: int, bounds: BoundsOf = usual) -> tuple[str, str]:
    """``row`` and its JSON; or ``lost``, ``failed`` or ``unlike``, and the reason. Empty ``packed``: tests only whether
    shards can run here.
    """
    if attempt >= MOST_ATTEMPTS:
        return "lost", f"its worker crashed {attempt} times"
    if differs := fingerprint_differences(sent["likeness"]):
        return "unlike", differs
    if not packed:
        return "row", ""
    try:
        runner = _runner(sent["folder"], tuple(sent["environment"].items()), bounds)
        row = runner.run_shard(pickle.loads(packed), sent["snapshot"])
    except (CannotRunShards, OSError, subprocess.SubprocessError) as why:
        return "failed", str(why)
    return "row", json.dumps(replace(row, attempt=row.attempt + attempt).plain)


def fold(sent: Mapping[str, Any], packed: bytes, attempt: int) -> tuple[str, str]:
    """``summary`` and the summary of the rows of some files of a ledger, with the files that cannot be read here:
    pickled, in base64. Otherwise as ``answer``.
    """
    if differs := fingerprint_differences(sent["likeness"]):
        return "unlike", differs
    campaign, round_, parts = pickle.loads(packed)
    summary, unread = RoundSummary(campaign, round_), []
    for part in parts:
        rows = part.rows()
        if rows is None:
            unread.append(part)
        else:
            summary.add_final(rows)
    return "summary", base64.b64encode(pickle.dumps((summary, unread))).decode()


@cache
def _runner(folder: str, environment: tuple[tuple[str, str], ...], bounds: BoundsOf) -> ShardRunner:
    """One for this process. It ends with the process only: Spark kills its workers."""
    for name, value in environment:
        os.environ.setdefault(name, value)
    for name in SHIPPED:  # what is sent with the job is named from the folder of the executor
        if named := os.environ.get(name):
            os.environ[name] = os.pathsep.join(map(os.path.abspath, named.split(os.pathsep)))
    path = _shipped_paths()
    if os.path.isdir(folder):  # the command of a target may contain relative paths
        os.chdir(folder)
    return _PROCESS_STACK.enter_context(ShardRunner(bounds=bounds, path=path))


_PROCESS_STACK: Final = ExitStack()


def _shipped_paths() -> list[str]:
    """The paths of modules that came with the job: on the path of this process, but not of Python itself."""
    listed = subprocess.run(
        [sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sys.path))"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    usual = {*json.loads(listed.stdout), os.getcwd()}
    return [each for each in map(os.path.abspath, sys.path) if each not in usual]


# ---- matching versions


@cache
def fingerprint() -> Mapping[str, str]:
    """The versions in this process that must be equal wherever shards of one campaign run."""
    versions = {name: _version(name) for name in LIBRARIES}
    return {
        "Python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        **versions,
        "the code of kipcheck": _code(files(PACKAGE)),
    }


def fingerprint_differences(there: Mapping[str, str]) -> str:
    """The differences between this process and another; empty if there are none."""
    here = fingerprint()
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    if len(names) > 1 and "kipcheck" in names:
        names.remove("the code of kipcheck")
    return ", ".join(f"{name} {here.get(name)} instead of {there.get(name)}" for name in names)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def _code(package: Traversable) -> str:
    """Digest of kipcheck's own modules and tables: two checkouts may have the same version."""
    digest = hashlib.blake2b(digest_size=6)
    _feed(digest, package.name, package)
    return digest.hexdigest()


def _feed(digest: "hashlib.blake2b", path: str, folder: Traversable) -> None:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{path}/{each.name}"
        if each.is_dir():
            if each.name not in OUTSIDE and name != "kipcheck/reports/out":
                _feed(digest, name, each)
        elif each.name.endswith(CODE):
            digest.update(name.encode() + b"\0" + each.read_bytes())
