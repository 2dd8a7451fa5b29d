"""Copies the environment of a release of a Python client, so that single files of it can be changed.

A copy is a cache folder of its own (``KIPCHECK_CACHE``): all of the real cache as symbolic links, except the
environment of the client, in which the files of the client's package are real. Installed packages never change.
"""

import ast
import os
import shutil
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kipcheck.conformance.recall.change import Change
from kipcheck.conformance.targets.protocol import Unavailable
from kipcheck.conformance.targets.toolchains import environments
from kipcheck.conformance.targets.toolchains.maven import cache

PACKAGES: Final[Mapping[str, str]] = {"kafka-python": "kafka", "aiokafka": "aiokafka"}
"""Client -> the package whose files are changed."""
REACHED: Final = "KIPCHECK_REACHED"
"""The variable with the file in which a changed client counts how often the changed line was run."""
NOTE: Final = '__import__("kipcheck_reached").note()'
COUNTER: Final = struct.Struct("<Q")
MODULE: Final = f'''\
"""Counts how often a changed line was run, in memory that the processes of a case share."""

import mmap
import os
import struct

_count = struct.Struct("<Q")
_place = os.environ.get("{REACHED}", "")


def _opened():
    with open(_place, "a+b") as file:
        if os.fstat(file.fileno()).st_size < _count.size:
            file.write(bytes(_count.size))
            file.flush()
        return mmap.mmap(file.fileno(), _count.size)


_memory = _opened() if _place else None


def note():
    if _memory is not None:
        _memory[:] = _count.pack(_count.unpack(_memory[:])[0] + 1)
'''
"""Two threads may count one run for two: whether there was one is what matters."""


@dataclass(frozen=True, slots=True)
class PythonCopy:
    """A cache folder with a client that can be changed. One process uses it at a time."""

    cache: Path
    package: Path

    @contextmanager
    def changed(self, change: Change) -> Iterator[Path]:
        """The cache folder with the change in place, instrumented; the original file stands there again afterwards."""
        path = self.package / change.path
        self._write(path, instrumented(change))
        try:
            yield self.cache
        finally:
            self._write(path, change.before)

    def _write(self, path: Path, text: str) -> None:
        """A compiled file is taken for the source's by time and size, and both may be those of the last change."""
        path.write_text(text, "utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            compiled.unlink()


def sources(client: str, release: str) -> dict[str, str]:
    """The files of the package, by their paths in it. Errors: ``Unavailable``."""
    package = _installed(client, release)
    found = sorted(each for each in package.rglob("*.py") if "vendor" not in each.parts)
    return {str(each.relative_to(package)): each.read_text("utf-8") for each in found}


def copied(client: str, release: str, place: Path) -> PythonCopy:
    """A copy in the folder ``place``, which is made anew. Errors: ``Unavailable``; OSError."""
    package = _installed(client, release)
    environment = package.parents[3]
    shutil.rmtree(place, ignore_errors=True)
    linked(cache(), place, environment.relative_to(cache()))
    copy = place / environment.relative_to(cache())
    inside = package.relative_to(environment)
    linked(environment, copy, inside)
    (copy / "bin").unlink()  # Python looks for its environment beside the folder that it was started from
    shutil.copytree(environment / "bin", copy / "bin", symlinks=True)
    shutil.copytree(package, copy / inside, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    ((copy / inside).parent / "kipcheck_reached.py").write_text(MODULE, "utf-8")
    return PythonCopy(place, copy / inside)


def linked(original: Path, place: Path, apart: Path) -> None:
    """Fills ``place`` with symbolic links to what is in ``original``, except the folders on the path ``apart``, which
    are real and filled likewise, and the last one, which is real and empty."""
    place.mkdir(parents=True, exist_ok=True)
    first, *rest = apart.parts
    for each in original.iterdir():
        if each.name != first and not each.name.startswith("."):
            (place / each.name).symlink_to(each)
    if rest:
        linked(original / first, place / first, Path(*rest))
    else:
        (place / first).mkdir()


def _installed(client: str, release: str) -> Path:
    """The package of the release, in its environment. Errors: ``Unavailable``."""
    python = environments.interpreter(client, release)
    found = sorted((python.parents[1] / "lib").glob(f"python*/site-packages/{PACKAGES[client]}"))
    if not found:
        raise Unavailable(f"{client} {release} has no package {PACKAGES[client]}")
    return found[0]


def instrumented(change: Change) -> str:
    """The changed text, with a call that counts before the statement that changes: the innermost one that begins at or
    before the changed line in the original, so that the text up to it is the same in both.

    Where no call can stand before it, as before ``elif``, the call is a part of it, or stands before the statement
    around it. The changed text as it is if there is none.
    """
    lines = change.after.splitlines(keepends=True)
    for line, column, _ in _statements(change):
        before, text = lines[: line - 1], lines[line - 1] if line <= len(lines) else ""
        indent, after = text[:column], lines[line:]
        for made in (
            [*before, " " * column, NOTE, "\n", text, *after] if not indent.strip() else None,
            [*before, indent, NOTE, "; ", text[column:], *after],
            [*before, indent, f"elif {NOTE} or ", text[column:].removeprefix("elif "), *after]
            if text[column:].startswith("elif ") else None,
        ):  # fmt: skip
            if made is not None and _compiles(whole := "".join(made)):
                return whole
    return change.after


def statement(change: Change) -> tuple[int, int]:
    """The first and last line of the innermost statement around the change, in the original."""
    return next(((first, last) for first, _, last in _statements(change)), (change.line, change.line))


def _statements(change: Change) -> list[tuple[int, int, int]]:
    """The statements around the change in the original, the innermost first: first line, its column in characters, and
    last line."""
    found: list[tuple[int, int, int]] = []
    text, lines, start = change.before, change.before.splitlines(), change.start
    while text[start : start + 1].isspace():  # a dropped line begins with its indentation
        start += 1
    place = text.count("\n", 0, start) + 1, len(text[text.rfind("\n", 0, start) + 1 : start].encode())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.end_lineno is not None and node.end_col_offset is not None:
            first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
            if (first, node.col_offset) <= place <= (node.end_lineno, node.end_col_offset):
                column = len(lines[first - 1].encode()[: node.col_offset].decode())
                found.append((first, column, node.end_lineno))
    return [*reversed(found)]


def _compiles(text: str) -> bool:
    try:
        compile(text, "changed", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def count(path: Path) -> int:
    """How often the changed line was run so far; 0 if there is no file yet."""
    data = path.read_bytes() if path.exists() else b""
    return int(COUNTER.unpack(data)[0]) if len(data) == COUNTER.size else 0


def environment(copy: Path) -> dict[str, str]:
    """The variables of a process that uses the copy."""
    return {**os.environ, "KIPCHECK_CACHE": str(copy)}
