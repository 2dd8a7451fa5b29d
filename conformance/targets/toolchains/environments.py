"""Creates an environment for each release of a Python client, once, and keeps it.

An environment is ``$KIPCHECK_CACHE/environments/<name>-<version>-<python tag>``: exactly that release and its
dependencies, and nothing of kipcheck's. It is created under another name and renamed when it is complete, so that an
environment under its final name can be used without a check.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains.lock_files import differs, lock, of_python, warn
from kipcheck.conformance.targets.toolchains.maven import cache
from kipcheck.conformance.targets.transport import process_tree

SECONDS: Final = 300
"""How long creating one may take."""
WHEELS: Final = ("--only-binary", ":all:")
REQUIREMENTS: Final = "requirements.txt"
NO_WHEEL: Final = "no release of it was found"
NO_RELEASE: Final = "there is no release"
OLDER: Final = ("python3.10", "python3.9", "python3.8")
"""Commands of Pythons for which old releases have wheels."""
TAG: Final = sys.implementation.cache_tag or f"python{sys.version_info.major}{sys.version_info.minor}"
RELEASE: Final = re.compile(r"[0-9][0-9A-Za-z.+!_-]*")
"""What may follow the ``@`` in a target's name."""
MISMATCH: Final = re.compile(
    r"^ +(\S+)(?: \(from .*\)| from .*):\n +Expected sha256 ([0-9a-f]+)(?:\n.*or .*)*\n +Got +([0-9a-f]+)", re.MULTILINE
)
DETERMINISTIC: Final = {"PYTHONHASHSEED": "0"}
"""Variables of every child that runs a client: assignors iterate over sets of names, in the order of their hashes."""
BOOTSTRAP: Final = Path(__file__).absolute().parents[1] / "transport" / "bootstrap.py"


def command(distribution: str, version: str, target: str) -> tuple[str, ...]:
    """The command that runs the adapter of ``target`` with that release, with the variables of the next function.

    Errors: ``Unavailable``.
    """
    return (str(interpreter(distribution, version)), "-s", "-P", str(BOOTSTRAP), target)


def child_environment() -> dict[str, str]:
    """Environment variables for a child that imports none of the user's packages and has deterministic hashes."""
    return {**_without_python_variables(), **DETERMINISTIC}


def program(distribution: str, version: str) -> tuple[str, ...]:
    """Python of the environment for a program of its own, with options: an older Python of the user's, if the release
    has no wheel for this one. Errors: ``Unavailable``."""
    older = [(shutil.which(name), _place(distribution, version, name)) for name in OLDER]
    for _, place in older:
        if (python := place / "bin" / "python").exists():
            return str(python), "-s"
    try:
        return str(interpreter(distribution, version)), "-s", "-P"
    except Unavailable as why:
        if NO_RELEASE not in str(why):
            raise
        missing = why
    for found, place in older:
        if found is not None:
            with suppress(Unavailable):
                return str(_interpreter(place, distribution, version, found)), "-s"
    raise missing


def interpreter(distribution: str, version: str) -> Path:
    """Python of the environment, which is created if needed. Errors: ``Unavailable``, in one line."""
    return _interpreter(_place(distribution, version), distribution, version, sys.executable)


def _interpreter(place: Path, distribution: str, version: str, of: str) -> Path:
    """``of``: the Python that creates it."""
    python = place / "bin" / "python"
    if not python.exists():  # it is missing too where the Python that created it is gone
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with _lock(place):
                if not python.exists():  # another process may have created it meanwhile
                    _make(place, distribution, version, of)
        except OSError as denied:
            raise Unavailable(f"cannot create an environment for {distribution} {version}: {denied}") from None
    return python


def made() -> Iterator[tuple[str, str]]:
    """Name and version of the environments that exist for this Python."""
    for python in sorted((cache() / "environments").glob(f"*-{TAG}/bin/python")):
        name, _, version = python.parents[1].name.removesuffix(f"-{TAG}").rpartition("-")
        if python.exists():
            yield name, version


def _place(distribution: str, version: str, tag: str = TAG) -> Path:
    return cache() / "environments" / f"{distribution}-{version}-{tag}"


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    with place.with_name(f".{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(place: Path, distribution: str, version: str, of: str) -> None:
    wanted = f"{distribution}=={version}"
    building = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        _run(wanted, [of, "-m", "venv", "--clear", str(building)])
        pip = [str(building / "bin" / "python"), "-I", "-m", "pip", "--no-input", "--disable-pip-version-check"]
        install = [*pip, "install", "--quiet", "--retries", "1", "--timeout", "15"]
        locked = lock(of_python(distribution, version))
        if locked is None:
            _install(wanted, install)
        else:
            (building / REQUIREMENTS).write_text(locked, "utf-8")
            _run(wanted, [*install, *WHEELS, "--require-hashes", "-r", str(building / REQUIREMENTS)])
        if place.exists():
            shutil.rmtree(place)
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _install(wanted: str, install: Sequence[str]) -> None:
    """Installs a release without a lock file, which pip compares with the hashes of the index. Wheels run no code."""
    try:
        _run(wanted, [*install, *WHEELS, wanted])
    except Unavailable as without:
        if NO_WHEEL not in str(without):
            raise
        _run(wanted, [*install, wanted])
        warn(wanted, "or a package that it needs has no wheel: pip ran the code of its source distribution")


def _run(wanted: str, argv: Sequence[str]) -> None:
    try:
        done = process_tree.run(argv, SECONDS, env=_without_python_variables())
    except subprocess.TimeoutExpired:
        raise Unavailable(f"installing {wanted} took more than {SECONDS} s") from None
    if done.returncode:
        raise Unavailable(f"{wanted} cannot be installed: {_reason(wanted, done.stdout + done.stderr)}")


def _without_python_variables() -> dict[str, str]:
    """The current variables without Python's; pip's own variables and files still apply."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def _reason(wanted: str, output: str) -> str:
    """The relevant line of pip's output."""
    if wrong := MISMATCH.search(output):
        return differs(wrong[1], wrong[3], wrong[2])
    version = wanted.partition("==")[2]
    python = ".".join(map(str, sys.version_info[:2]))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for pattern in (rf"\b{re.escape(version)} Requires-Python ([^;\n]*)", r"different Python: \S+ not in '([^']*)'"):
        if needs := re.search(pattern, output):
            return f"it needs Python {needs.group(1)}, and this is {python}"
    if any("(from versions: none)" in line for line in lines):
        unreached = any("connection" in line.lower() or "Retrying" in line for line in lines)
        return "the package index cannot be reached" if unreached else NO_WHEEL
    if any("(from versions:" in line for line in lines):
        return f"{NO_RELEASE} {version} for Python {python}"
    errors = [line for line in lines if "ERROR" in line] or lines or ["pip gave no reason"]
    return errors[-1][:300]
