"""Lists the lines of a client that the default cases of a check run, in copies of the client that write them down.

A client in Python gets a tracer in a copy of its environment; one in Go is built by ``go build -cover``.
"""

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeAlias

from kipcheck.conformance.core.values.exits import BROKEN, OURS, USAGE
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.protocols.checks import CHECKS
from kipcheck.conformance.recall import go_copies, python_copies, trace_lines
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import build, go
from kipcheck.conformance.targets.toolchains.maven import CACHE, cache, placing
from kipcheck.conformance.targets.transport import process_tree

Lines: TypeAlias = Mapping[str, frozenset[int]]
"""File of a client, by its path in the package or module -> lines."""
SECONDS: Final = 3600
"""How long the cases of one check may take."""
BLOCK: Final = re.compile(r"(?P<path>.+):(?P<first>\d+)\.\d+,(?P<last>\d+)\.\d+ \d+ (?P<count>\d+)")
"""A line of ``go tool covdata textfmt``."""


@dataclass(frozen=True, slots=True)
class _Traced:
    """A cache folder with a client that writes down which lines it runs."""

    cache: Path
    variable: str
    """With the folder of what it writes."""
    read: Callable[[Path], Lines]


def reached(target: str, globs: Iterable[str], digest: str) -> Mapping[str, Lines]:
    """For each check of the target. ``globs``: over the ids of checks. ``digest``: of kipcheck's sources, whose results
    are kept in kipcheck's cache, check by check.

    Errors: ``Unavailable`` where the client cannot be had, or the run of a check ends without a result.
    """
    globs = tuple(globs)
    checks = [each for each in CHECKS if any(fnmatchcase(each, glob) for glob in globs)]
    place = cache() / "recall" / "reached" / f"{re.sub('[^-A-Za-z0-9.@]', '-', target)}-{digest}"
    files = {each: place / f"{each.replace('/', '-')}.json" for each in checks}
    if missing := [each for each in checks if not files[each].exists()]:
        with TemporaryDirectory(prefix="kipcheck-traced-") as folder:
            traced = _traced(target, Path(folder) / "cache")
            for check in missing:
                lines = _run(target, check, traced)
                with placing(files[check]) as staged:
                    staged.write_text(json.dumps({path: sorted(each) for path, each in lines.items()}), "utf-8")
    found = {check: json.loads(path.read_text("utf-8")) for check, path in files.items()}
    return {
        check: {path: frozenset(each) for path, each in lines.items()} for check, lines in found.items() if lines
    }  # fmt: skip


def _run(target: str, check: str, traced: _Traced) -> Lines:
    """Empty where the target has no case of the check."""
    with TemporaryDirectory(prefix="kipcheck-lines-") as folder:
        written = Path(folder) / "lines"
        written.mkdir()
        argv = [sys.executable, "-m", "kipcheck", "run", "--target", target, "--check", check, "--least", "0",
                "--out", str(Path(folder) / "out")]  # fmt: skip
        variables = build.environment({CACHE: str(traced.cache), traced.variable: str(written)})
        try:
            done = process_tree.run(argv, SECONDS, env=variables)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{check} took more than {SECONDS} s against {target}") from None
        if done.returncode in (BROKEN, OURS):
            raise Unavailable(f"{check} cannot be run against {target}: {build.last_line(done.stderr + done.stdout)}")
        if done.returncode == USAGE:
            return {}
        if not (found := traced.read(written)):
            raise Unavailable(f"the run of {check} against {target} wrote no lines of the client")
        return found


def _traced(target: str, place: Path) -> _Traced:
    name, _, release = target.removeprefix("client:").partition("@")
    if name not in python_copies.PACKAGES:
        copy = go_copies.copied(target)
        copy.build(place, None, counts_lines=True)
        return _Traced(place, "GOCOVERDIR", lambda folder: _blocks(folder, copy.name))
    python = python_copies.copied(name, release or built_in.release(name), place)
    tracer = Path(trace_lines.__file__).read_text("utf-8")
    (python.package.parent / "kipcheck_lines.py").write_text(tracer, "utf-8")
    begins = f"import kipcheck_lines; kipcheck_lines.start({str(python.package) + '/'!r})\n"
    (python.package.parent / "kipcheck_lines.pth").write_text(begins, "utf-8")
    return _Traced(place, trace_lines.FOLDER, _lines)


def _lines(folder: Path) -> Lines:
    """Without the files of which no function is run: a client imports many files that it does not use."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    used: set[str] = set()
    for file in folder.iterdir():
        for line in file.read_text("utf-8").splitlines():
            path, _, number = line.rpartition(":")
            if path and number.isdigit():  # a process that is killed may leave a part of a line
                found[path.removeprefix(trace_lines.AT_IMPORT)].add(int(number))
                used.add(path)
    return {path: frozenset(each) for path, each in found.items() if path in used}


def _blocks(folder: Path, module: str) -> Lines:
    """Errors: ``Unavailable``."""
    text = folder.parent / "blocks.txt"
    argv = [str(go.go()), "tool", "covdata", "textfmt", f"-i={folder}", f"-o={text}"]
    done = process_tree.run(argv, SECONDS, env=build.environment(go.ENVIRONMENT))
    if done.returncode:
        raise Unavailable(f"the lines that a program ran cannot be read: {build.last_line(done.stderr)}")
    found: defaultdict[str, set[int]] = defaultdict(set)
    for block in map(BLOCK.fullmatch, text.read_text("utf-8").splitlines()):
        if block is not None and int(block["count"]) and block["path"].startswith(f"{module}/"):
            found[block["path"].removeprefix(f"{module}/")].update(range(int(block["first"]), int(block["last"]) + 1))
    return {path: frozenset(each) for path, each in found.items()}
