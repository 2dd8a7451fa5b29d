"""What a Python worker of Spark does with a shard: what every executor does, in a nursery that lives as long as it.

It is called by what travels there by value (``spark``), with nothing but plain values and bytes: nothing is unpacked
before the kipcheck there is known to be the one that packed it.
"""

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
from kipcheck.conformance.campaign.process.shard_pool import Barren, Nursery

GIVES_UP: Final = 2
"""The attempt that is not made: a shard that took down what ran it so often is run apart."""
PACKAGE: Final = "kipcheck"
LIBRARIES: Final = ("kipcheck", "hypothesis", "construct", "kafka-python")
"""A say in what is drawn, held and judged."""
SHARED: Final = ("KIPCHECK_CACHE", "KIPCHECK_MAVEN_REPOSITORY")
"""Where workers find jars and adapters, unless their own environment says it."""
CODE: Final = (".py", ".toml", ".json", ".java", ".go", ".mjs")
OUTSIDE: Final = {"tests", "benchmarks", "docs", "__pycache__"}
"""Folders that decide nothing, and that a wheel may lack."""


def common(snapshot: bytes) -> dict[str, Any]:
    """What all shards of a wave are sent with."""
    return {
        "snapshot": snapshot,
        "likeness": likeness(),
        "environment": {name: os.environ[name] for name in SHARED if name in os.environ},
        "folder": os.getcwd(),
    }


def answer(sent: Mapping[str, Any], packed: bytes, attempt: int, bounds: BoundsOf = usual) -> tuple[str, str]:
    """``row`` and its JSON; or ``lost``, ``failed`` or ``unlike``, and why. Empty ``packed``: only the question whether
    a shard could be held here.
    """
    if attempt >= GIVES_UP:
        return "lost", f"what ran it went down {attempt} times"
    if differs := unlike(sent["likeness"]):
        return "unlike", differs
    if not packed:
        return "row", ""
    try:
        nursery = _nursery(sent["folder"], tuple(sent["environment"].items()), bounds)
        row = nursery.hold(pickle.loads(packed), sent["snapshot"])
    except (Barren, OSError, subprocess.SubprocessError) as why:
        return "failed", str(why)
    return "row", json.dumps(replace(row, attempt=row.attempt + attempt).plain)


@cache
def _nursery(folder: str, environment: tuple[tuple[str, str], ...], bounds: BoundsOf) -> Nursery:
    """Of this process. Nothing ends it but the end of the process: Spark kills its workers."""
    for name, value in environment:
        os.environ.setdefault(name, value)
    path = _travelled()
    if os.path.isdir(folder):  # the command of a target may name files beside it
        os.chdir(folder)
    return _LIFE.enter_context(Nursery(bounds=bounds, path=path))


_LIFE: Final = ExitStack()


def _travelled() -> list[str]:
    """Where modules are that came with the job: on the path of this process, and of no other Python."""
    asked = subprocess.run(
        [sys.executable, "-P", "-c", "import json, sys; print(json.dumps(sys.path))"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    usual = {*json.loads(asked.stdout), os.getcwd()}
    return [each for each in map(os.path.abspath, sys.path) if each not in usual]


# ---- likeness


@cache
def likeness() -> Mapping[str, str]:
    """Of this process: what has to be the same wherever shards of one campaign run."""
    versions = {name: _version(name) for name in LIBRARIES}
    return {
        "Python": f"{sys.version_info[0]}.{sys.version_info[1]}",
        **versions,
        "the code of kipcheck": _code(files(PACKAGE)),
    }


def unlike(there: Mapping[str, str]) -> str:
    """In what this process differs from another; empty: in nothing."""
    here = likeness()
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
    """Digest of our own modules and tables: two checkouts may bear one version."""
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
