"""Builds the programs of Go clients with one file of their module changed, in a cache folder of their own.

A release of a module is copied from Go's module cache once. A change is an overlay of that copy for the compiler, so
that a build compiles one package and links, and several builds do not disturb each other.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache as once
from pathlib import Path
from typing import Final

from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.live.coordinator.compatible_brokers import LIBRARIES
from kipcheck.conformance.recall import go_changes
from kipcheck.conformance.recall.change import Change
from kipcheck.conformance.recall.python_copies import REACHED, linked
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.target_entries import target_entries
from kipcheck.conformance.targets.toolchains import build, go
from kipcheck.conformance.targets.toolchains.maven import cache
from kipcheck.conformance.targets.transport import process_tree

MODULES: Final[Mapping[str, str]] = {
    "franz-go": "github.com/twmb/franz-go",
    "sarama": "github.com/IBM/sarama",
    "kafka-go": "github.com/segmentio/kafka-go",
    "kfake": "github.com/twmb/franz-go/pkg/kfake",
}
"""Client -> the module whose files are changed."""
MORE: Final[Mapping[str, tuple[str, ...]]] = {"franz-go": ("pkg/kmsg",)}
"""Target -> folders of its module that are modules of their own, and are changed too: the codec of franz-go."""
COVERS: Final = "covers.go"
"""Added to a program that counts lines: it may be killed, and counters are written at its end alone otherwise."""
EVERY_MS: Final = 100
NOTE: Final = "kipcheckReached()"
COUNTER_FILE: Final = "kipcheck_reached.go"
"""Added to the package that is changed."""


class DoesNotBuild(Exception):
    """A change to a client that Go refuses. The message is the first line of its reason."""


@dataclass(frozen=True, slots=True)
class GoCopy:
    """A release of a Go client whose files can be changed."""

    client: str
    release: str
    program: Path
    """The folder of its program in the real cache, as ``kipcheck run`` has built it."""
    module: Path
    """The files of its module, which nothing changes."""
    name: str
    """Of the module: that of ``MODULES``, or of an old release."""
    more: tuple[str, ...] = ()
    """Of ``MORE``."""

    def build(
        self, place: Path, change: Change | None, counts_lines: bool = False, more: Sequence[Change] = ()
    ) -> Path:
        """The cache folder ``place``, made anew, in which the program has the change, ``instrumented``.
        ``counts_lines``: it writes which lines of the module were run to ``GOCOVERDIR``. ``more``: changes to other
        files; the last one to a file stands.

        Errors: ``DoesNotBuild``; OSError.
        """
        shutil.rmtree(place, ignore_errors=True)
        apart = self.program.relative_to(cache())
        linked(cache(), place, apart)
        built = place / apart
        for each in self.program.iterdir():
            if each.name != go.PROGRAM:
                shutil.copy(each, built / each.name)
        with (built / "go.mod").open("a", encoding="utf-8") as file:
            for folder in ("", *self.more):
                name = "/".join(filter(None, (self.name, folder)))
                file.write(f"\nreplace {name} => {json.dumps(str(self.module / folder))}\n")
        # Without optimisation the largest module compiles in two thirds of the time; the unchanged one is built alike.
        options = [
            f"-gcflags={self.name}/...=-N -l",
            *self._overlay(built, [*filter(None, (change, *more))]),
            *(self._counting(built) if counts_lines else ()),
        ]
        argv = [str(go.go()), "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", go.PROGRAM, *options, "."]
        done = process_tree.run(argv, build.SECONDS, cwd=built, env=build.environment(go.ENVIRONMENT))
        if done.returncode:
            raise DoesNotBuild(_first_reason(done.stderr + done.stdout))
        return place

    def _overlay(self, built: Path, changes: Sequence[Change]) -> Sequence[str]:
        if not changes:
            return ()
        overlay, files = built / "overlay.json", dict[str, str]()
        for number, change in enumerate(changes):
            changed, counter, path = built / f"changed{number}", built / f"counter{number}", self.module / change.path
            files[str(path)] = str(changed)
            if (counting := instrumented(change)) is not None:
                package = re.search(r"^package \w+", change.before, re.MULTILINE)
                assert package is not None
                counter.write_text(_COUNTER.format(package=package[0], variable=REACHED), "utf-8")
                files[str(path.with_name(COUNTER_FILE))] = str(counter)
            changed.write_text(counting or change.after, "utf-8")
        overlay.write_text(json.dumps({"Replace": files}), "utf-8")
        return ("-overlay", str(overlay))

    def _counting(self, built: Path) -> Sequence[str]:
        (built / COVERS).write_text(_COUNTING % EVERY_MS, "utf-8")
        own = _go(self.program, "list", "-m").strip()  # without the program itself nothing is counted
        return ("-cover", "-covermode=atomic", f"-coverpkg={own},{self.name}/...")

    def sources(self) -> dict[str, str]:
        """The files of the packages of the module that the program has, by their paths in the module, without tests."""
        pattern = "{{$path := .ImportPath}}{{range .GoFiles}}{{$path}}/{{.}}\n{{end}}"
        listed = _go(self.program, "list", "-mod=mod", "-deps", "-f", pattern, ".").split()
        inside = f"{self.name}/"
        found = sorted(each.removeprefix(inside) for each in listed if each.startswith(inside))
        return {each: (self.module / each).read_text("utf-8") for each in found if (self.module / each).exists()}


def copied(target: str) -> GoCopy:
    """The copy of the client of a target like ``client:sarama``, ``franz-go@1.22.2`` or ``kfake``; it is downloaded and
    built first if needed.

    Errors: LookupError for a target of another kind; ``Unavailable``.
    """
    prefix, _, rest = target.rpartition(":")
    client, _, release = rest.partition("@")
    if client not in MODULES or prefix not in ("", "client"):
        raise LookupError(f"{target} is not a client in Go: use client:NAME or NAME, of {', '.join(MODULES)}")
    if prefix:
        release = built_in.release(rest)
        program = Path(built_in.command(rest)[0])
    else:
        release = release or target_entries()[client].default
        program = Path(LIBRARIES[client].command(release)[0]) if client in LIBRARIES else go.build(client, release)
    more = MORE.get(target.partition("@")[0], ())
    name = _name(client, program.parent)
    names = ["/".join(filter(None, (name, each))) for each in ("", *more)]
    found = [_module_folder(program.parent, each) for each in names]
    versions = "+".join(each.name.rpartition("@")[2] for each in found)
    module = cache() / "recall" / "go" / f"{client}@{versions}"
    if not module.is_dir():
        _copy(dict(zip(("", *more), found, strict=True)), module)
    return GoCopy(client, release, program.parent, module, name, more)


def instrumented(change: Change) -> str | None:
    """The changed text, with a call that counts before the statement that changes, in the file that the variable
    ``REACHED`` names, as in a client in Python; None where the change is in no function."""
    at = go_changes.statement(change.before, change.start)
    return None if at is None else f"{change.after[:at]}{NOTE}; {change.after[at:]}"


def _copy(found: Mapping[str, Path], module: Path) -> None:
    """Modules by their folders, without tests, and writable: files of Go's module cache are not."""
    module.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{module.name}.", dir=module.parent))
    try:
        for folder, path in found.items():
            left_out = shutil.ignore_patterns("*_test.go", "testdata")
            shutil.copytree(path, building / "copy" / folder, copy_function=shutil.copyfile, ignore=left_out)
            (building / "copy" / folder).chmod(0o755)
        for each in (building / "copy", *(building / "copy").rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
        if not module.exists():
            (building / "copy").rename(module)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _name(client: str, program: Path) -> str:
    """Of the module that the program requires: old releases have that of their former owner."""
    required = (program / "go.mod").read_text("utf-8")
    former = re.search(rf"(\S+/{re.escape(client)}) v", required)
    return MODULES[client] if f"{MODULES[client]} v" in required or former is None else former[1]


def _module_folder(program: Path, module: str) -> Path:
    """Errors: ``Unavailable``."""
    _go(program, "mod", "download", module)
    return Path(_go(program, "list", "-mod=mod", "-m", "-f", "{{.Dir}}", module).strip())


@once
def _go(folder: Path, *arguments: str) -> str:
    """What Go prints. Errors: ``Unavailable``."""
    argv = [str(go.go()), *arguments]
    try:
        done = process_tree.run(argv, build.SECONDS, cwd=folder, env=build.environment(go.ENVIRONMENT))
    except (OSError, subprocess.TimeoutExpired) as wrong:
        raise Unavailable(f"go {arguments[0]} fails in {folder}: {wrong}") from None
    if done.returncode:
        raise Unavailable(f"go {arguments[0]} fails in {folder}: {build.last_line(done.stderr)}")
    return done.stdout


def _first_reason(output: str) -> str:
    """The first line of a compiler's output that names a place."""
    lines = [each for each in output.splitlines() if re.search(r"\.go:\d+", each)]
    return lines[0].strip() if lines else build.last_line(output)


_COUNTER: Final = """{package}

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// In memory that the processes of a case share.
var kipcheckCount = func() *uint64 {{
	file, err := os.OpenFile(os.Getenv("{variable}"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {{
		return new(uint64)
	}}
	defer file.Close()
	if about, err := file.Stat(); err == nil && about.Size() < 8 {{
		file.Truncate(8)
	}}
	memory, err := syscall.Mmap(int(file.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {{
		return new(uint64)
	}}
	return (*uint64)(unsafe.Pointer(&memory[0]))
}}()

func kipcheckReached() {{ atomic.AddUint64(kipcheckCount, 1) }}
"""
_COUNTING: Final = """package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strings"
	"time"
)

// Replaces one file, so that a killed program leaves a whole one.
func init() {
	folder := os.Getenv("GOCOVERDIR")
	place, isWritten := "", false
	go func() {
		for range time.Tick(%d * time.Millisecond) {
			isWritten = isWritten || coverage.WriteMetaDir(folder) == nil // fails until all packages are initialized
			if metas, _ := filepath.Glob(filepath.Join(folder, "covmeta.*")); isWritten && len(metas) > 0 {
				place = fmt.Sprintf("%%s.%%d.1", strings.Replace(metas[0], "covmeta", "covcounters", 1), os.Getpid())
				data := bytes.Buffer{}
				if coverage.WriteCounters(&data) == nil && os.WriteFile(place+".part", data.Bytes(), 0o644) == nil {
					os.Rename(place+".part", place)
				}
			}
		}
	}()
}
"""
