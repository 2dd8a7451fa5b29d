"""Releases of Python clients, each in an environment of its own, made once and kept.

An environment is ``$KIPCHECK_CACHE/environments/<name>-<version>-<python tag>``: exactly that release and what it
depends on, and nothing of kipcheck's. It is made beside its place and moved there when it is whole, so that what lies
in its place can be used without asking.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.maven import cache
from kipcheck.conformance.targets.transport import process_tree

SECONDS: Final = 300
"""What the making of one may take."""
TAG: Final = sys.implementation.cache_tag or f"python{sys.version_info.major}{sys.version_info.minor}"
RELEASE: Final = re.compile(r"[0-9][0-9A-Za-z.+!_]*")
"""What may follow the ``@`` in the name of a target."""
SAME: Final = {"PYTHONHASHSEED": "0"}
"""Variables of every child that plays a client: assignors go through sets of names, in the order of their hashes."""
ALONE: Final = Path(__file__).absolute().parents[1] / "transport" / "bootstrap.py"


def command(distribution: str, version: str, target: str) -> tuple[str, ...]:
    """Runs the adapter of ``target`` with that release, in ``surroundings``. Errors: ``Unavailable``."""
    return (str(interpreter(distribution, version)), "-s", "-P", str(ALONE), target)


def surroundings() -> dict[str, str]:
    """The environment variables of a child that shall import nothing of the user's, and do the same each time."""
    return {**_unguided(), **SAME}


def interpreter(distribution: str, version: str) -> Path:
    """Of the environment, which is made if it is not there yet. Errors: ``Unavailable``, in one line."""
    place = _place(distribution, version)
    python = place / "bin" / "python"
    if not python.exists():  # nor is it where the Python that it was made with is gone
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with _lock(place):
                if not python.exists():  # somebody else may have made it while this one waited
                    _make(place, f"{distribution}=={version}")
        except OSError as denied:
            raise Unavailable(f"an environment for {distribution} {version} cannot be made: {denied}") from None
    return python


def made() -> Iterator[tuple[str, str]]:
    """Name and version of those that are there, for this Python."""
    for python in sorted((cache() / "environments").glob(f"*-{TAG}/bin/python")):
        name, _, version = python.parents[1].name.removesuffix(f"-{TAG}").rpartition("-")
        if python.exists():
            yield name, version


def _place(distribution: str, version: str) -> Path:
    return cache() / "environments" / f"{distribution}-{version}-{TAG}"


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(place: Path, wanted: str) -> None:
    building = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _run(wanted, [sys.executable, "-m", "venv", "--clear", str(building)])
        pip = [str(building / "bin" / "python"), "-I", "-m", "pip", "--no-input", "--disable-pip-version-check"]
        _run(wanted, [*pip, "install", "--quiet", "--retries", "1", "--timeout", "15", wanted])
        if place.exists():
            shutil.rmtree(place)
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _run(wanted: str, argv: Sequence[str]) -> None:
    try:
        done = process_tree.run(argv, SECONDS, env=_unguided())
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{wanted} was not installed within {SECONDS} s") from None
    if done.returncode:
        raise Unavailable(f"{wanted} cannot be installed: {_reason(wanted, done.stdout + done.stderr)}")


def _unguided() -> dict[str, str]:
    """Ours, but for those of Python: what is said to pip by its own variables and files still counts."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def _reason(wanted: str, said: str) -> str:
    """The one line that counts in what pip says."""
    version = wanted.partition("==")[2]
    python = ".".join(map(str, sys.version_info[:2]))
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    for pattern in (rf"\b{re.escape(version)} Requires-Python ([^;\n]*)", r"different Python: \S+ not in '([^']*)'"):
        if needs := re.search(pattern, said):
            return f"it needs Python {needs.group(1)}, and this is {python}"
    if any("(from versions: none)" in line for line in lines):
        unreached = any("connection" in line.lower() or "Retrying" in line for line in lines)
        return "the package index cannot be reached" if unreached else "no release of it is to be had"
    if any("(from versions:" in line for line in lines):
        return f"there is no release {version} for Python {python}"
    errors = [line for line in lines if "ERROR" in line] or lines or ["no reason was given"]
    return errors[-1][:300]
