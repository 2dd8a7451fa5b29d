"""The folder that ``--out`` names. kipcheck removes and replaces only those files in it that kipcheck wrote.

``.kipcheck`` in the folder lists them, as JSON Lines: a header, then one path below the folder a line. A path is listed
before its file is written, so that a kill at any time leaves no unlisted file of kipcheck's. Temporary files
(``.NAME.part``) and damaged files set aside (``NAME.damaged``) belong to the file of that name.

The list is untrusted data: an entry counts only if it has the form of a file that kipcheck writes there, and no file
behind a symbolic link is ever removed or replaced.
"""

import fcntl
import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

from kipcheck.conformance.core.ledger import NAME as LEDGER_NAME

LIST: Final = ".kipcheck"
FORMAT: Final = 1
SHORT_LIST: Final = 1_024
"""Entries of a list that is written again whenever some of them are forgotten."""
LONGEST_LINE: Final = 4_096
_BESIDE: Final = re.compile(r"\.(?P<base>.+)\.(?:part|[0-9a-f]{8})|(?P<whole>.+?)(?:\.\d+)?\.damaged", re.DOTALL)
"""Names of files that belong to another file."""
UNLISTED: Final = "kipcheck did not write it"
LINK: Final = "it is a symbolic link"


class Unusable(Exception):
    """kipcheck may not write into a folder. The message names the file in the way, the reason, and what to do."""

    @classmethod
    def by(cls, path: Path, why: str, others: bool = False) -> "Unusable":
        """``others``: more files are in the way."""
        more = " (and so are other files there)" if others else ""
        return cls(f"{path} is in the way{more}: {why}. Move it elsewhere, or name another folder with --out")


@dataclass(frozen=True, slots=True)
class Kind:
    """Files of one kind that kipcheck writes below an output folder."""

    tops: tuple[str, ...]
    """Their names, or the name of the folder that contains them."""
    pattern: re.Pattern[str]
    """Matches their paths below the output folder, with slashes."""


def _files(*names: str) -> Kind:
    return Kind(names, re.compile("|".join(map(re.escape, names))))


def _below(folder: str, pattern: str) -> Kind:
    return Kind((folder,), re.compile(f"{folder}/{pattern}"))


LEDGER: Final = _files(LEDGER_NAME)
REPORTS: Final = _files("report.html", "junit.xml", "results.json", "summary.md", "results.sarif")
FAILURES: Final = _below("failures", r"[0-9a-f]{12}\.json")
FLAKY: Final = _below("failures", r"flaky/[0-9a-f]{12}\.json")
REGRESSIONS: Final = _below("failures", r"regressions/[0-9a-f]{12}\.json")
MANIFEST: Final = _files("manifest.json")
ROWS: Final = _below("ledger", r"round=\d+/wave-\d+\.(?:parquet|jsonl)")
CORPUS: Final = _below("corpus", r"(?:(?:[0-9a-f]{16}|empty)\.jsonl\.gz|latest)")
MATRIX: Final = _files("matrix.json", "matrix.html", "matrix.md")
FEATURE_MATRIX: Final = _files("feature-matrix.json", "feature-matrix.html")
RECORD_MATRIX: Final = _files("records.json", "records.html")
STORE_MATRIX: Final = _files("store-upgrade.json", "store-upgrade.html")
LONE_MATRICES: Final = (FEATURE_MATRIX, RECORD_MATRIX, STORE_MATRIX)
"""Of scenarios that are played alone: the results, and their page."""
HISTORIES: Final = _below("histories", r"[0-9A-Za-z-]+\.(?:json|html)")
INPUTS: Final = _files("index.tsv", "kipcheck.dict")
OF_A_RUN: Final = (LEDGER, REPORTS, FAILURES)
OF_A_CAMPAIGN: Final = (*OF_A_RUN, FLAKY, REGRESSIONS, MANIFEST, ROWS, CORPUS)
OF_A_MATRIX: Final = (MATRIX, HISTORIES)
_EXPLORED: Final = re.compile(r"explore-[0-9A-Za-z_-]+\.(?:jsonl|html)")
_PATTERNS: Final = (*(each.pattern for each in (*OF_A_CAMPAIGN, *OF_A_MATRIX, *LONE_MATRICES, INPUTS)), _EXPLORED)
_FOLDERS: Final = ("failures", "ledger", "corpus", "histories")


def of_a_search(model: str) -> Kind:
    """The files of a counter-example that ``explore`` writes."""
    return _files(f"explore-{model}.jsonl", f"explore-{model}.html")


def _is_ours(entry: str) -> bool:
    """Whether it is the path of a file that kipcheck writes. Absolute paths and those with ``..`` are not."""
    return any(pattern.fullmatch(entry) for pattern in _PATTERNS)


def _base(entry: str) -> str:
    """The file to which a file belongs: itself, unless it is a temporary or damaged copy."""
    folder, slash, name = entry.rpartition("/")
    found = _BESIDE.fullmatch(name)
    return entry if found is None else f"{folder}{slash}{found['base'] or found['whole']}"


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """Reads the list again where it has changed, since several parts of kipcheck write into one folder.

    Every method raises ``Unusable`` if the list is damaged, and OSError if a file cannot be read or written.
    """

    path: Path

    # ---- before anything is written

    def check(self, *kinds: Kind) -> None:
        """Errors: ``Unusable`` if a file that kipcheck did not write has the name of a file of these kinds."""
        listed = self._listed()
        tops = dict.fromkeys(top for kind in kinds for top in kind.tops)
        temporary = [f".{top}.part" for top in tops if _is_ours(top)]
        wrong = (found for top in (*tops, *temporary) for found in self._in_the_way(top, listed))
        if first := [*islice(wrong, 2)]:
            entry, why = first[0]
            raise Unusable.by(self.path / entry, why, others=len(first) > 1)

    @contextmanager
    def trial(self, *names: str) -> Iterator[None]:
        """Creates the folder and tests whether it, and the files of these names, can be written. Within the block no
        other process writes its results there.

        Changes no existing file. At the end it removes the folder again, if it created it and it is empty. Errors:
        ``Unusable`` if another process writes there; OSError.
        """
        made: list[Path] = []
        opened = None
        try:
            for each in reversed([self.path, *self.path.parents]):
                try:
                    if not each.is_dir():
                        each.mkdir()
                        made.append(each)
                except FileExistsError:
                    if not each.is_dir():  # otherwise another process created it just now
                        raise
            opened = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            self._lock(opened)
            self._write(b"", lasting=False)
            for name in names:
                if (self.path / name).exists():
                    (self.path / name).open("ab").close()
            yield
        finally:
            for each in reversed(made):
                with suppress(OSError):
                    each.rmdir()
            if opened is not None:
                os.close(opened)

    def _lock(self, opened: int) -> None:
        """Until the file descriptor is closed, also by the end of the process. Errors: ``Unusable``."""
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"{self.path} is in use: another kipcheck writes its results there"
            raise Unusable(f"{why}. Wait until it has ended, or name another folder with --out") from None
        except OSError:
            pass  # a file system without locks

    # ---- writing and removing

    def claim(self, *entries: str, durable: bool = False) -> Path:
        """Lists files before they are written and creates their folders; returns the path of the first.

        ``durable``: the list reaches the disk before this returns, so it survives a power failure. Errors: as
        ``check``; then no file is listed.
        """
        listed = self._listed()  # of any length: nothing here reads all of it again
        for entry in entries:
            if not _is_ours(entry):
                raise Unusable(f"{entry!r} is not the name of a file that kipcheck writes to {self.path}")
            self._require_free(entry, listed)
        new = [entry for entry in dict.fromkeys(entries) if entry not in listed]
        for folder in {(self.path / entry).parent for entry in entries}:
            folder.mkdir(parents=True, exist_ok=True)
        if new and not self._is_marked:
            self._replace_list([*listed, *new])
        elif new:
            self._append(new, durable)
        return self.path / entries[0]

    def remove(self, *kinds: Kind, but: Collection[str] = ()) -> None:
        """Removes the listed files of these kinds, except ``but``, and the folders that are then empty."""
        listed = self._listed()
        if listed and not self._is_marked:
            self._replace_list(listed)
        removed: set[str] = set()
        for kind in kinds:
            matching = {each for each in listed if kind.pattern.fullmatch(each) and each not in but}
            removed |= matching
            for top in (*kind.tops, *(f".{each}.part" for each in kind.tops)):
                for entry, mode in self._walk(top):
                    if stat.S_ISREG(mode) and _base(entry) in matching:
                        (self.path / entry).unlink(missing_ok=True)
        remaining = [each for each in listed if each not in removed]
        if removed and remaining:
            self._replace_list(remaining)
        elif removed:
            (self.path / LIST).unlink(missing_ok=True)
        for folder in sorted({folder for each in removed for folder in Path(each).parents}, reverse=True)[:-1]:
            with suppress(OSError):
                (self.path / folder).rmdir()

    def forget(self, entries: Collection[str]) -> None:
        """Removes listed files whose content is in other ones by now, and their names: of a long list, many at once,
        so that the time for a file does not grow with the list.
        """
        for entry in entries:
            (self.path / entry).unlink(missing_ok=True)
        listed = self._listed()
        known = _KNOWN[self.path] if self._is_marked else None
        if known is None or len(listed) < SHORT_LIST:
            self._replace_list([each for each in listed if each not in entries])
            return
        for entry in entries:
            known.entries.pop(entry, None)
        known.stale += len(entries)
        if known.stale > len(known.entries):
            self._replace_list(known.entries)

    def remove_all(self) -> None:
        """Removes every listed file, the list, and the folder. Errors: ``Unusable`` if the folder contains other
        files.
        """
        listed = self._listed()
        for name in sorted(os.listdir(self.path)):
            for entry, why in self._in_the_way(name, listed) if name not in (LIST, f"{LIST}.part") else ():
                raise Unusable.by(self.path / entry, why)
        for name in sorted(os.listdir(self.path)):
            for entry, mode in self._walk(name):
                if stat.S_ISREG(mode) and entry not in (LIST, f"{LIST}.part"):
                    (self.path / entry).unlink(missing_ok=True)
        for below in (each for top in _FOLDERS for each in (*(self.path / top).glob("*"), self.path / top)):
            with suppress(OSError):
                below.rmdir()
        for name in (LIST, f"{LIST}.part"):
            (self.path / name).unlink(missing_ok=True)
        self.path.rmdir()

    # ---- what is there

    def _walk(self, entry: str) -> Iterator[tuple[str, int]]:
        """Yields all files at and below a path with their modes; does not follow links."""
        try:
            mode = (self.path / entry).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return
        if stat.S_ISDIR(mode) and not _is_ours(entry):
            for name in sorted(os.listdir(self.path / entry)):
                yield from self._walk(f"{entry}/{name}")
        else:
            yield entry, mode

    def _in_the_way(self, top: str, listed: Collection[str]) -> Iterator[tuple[str, str]]:
        for entry, mode in self._walk(top):
            if why := _objection(mode, _base(entry) in listed):
                yield entry, why

    def _require_free(self, entry: str, listed: Collection[str]) -> None:
        """Errors: ``Unusable`` if kipcheck may not write the file or a folder of it."""
        *folders, _ = Path(entry).parents
        for each in folders:
            if (self.path / each).is_symlink():
                raise Unusable.by(self.path / each, LINK)
        for found, why in self._in_the_way(entry, listed):
            raise Unusable.by(self.path / found, why)

    # ---- the list

    @property
    def _is_marked(self) -> bool:
        return os.path.lexists(self.path / LIST)

    def _listed(self) -> Collection[str]:
        """The files that kipcheck wrote, in their order. Without a list: those with the form of such files, if another
        file identifies the folder as kipcheck's.
        """
        if self._is_marked:
            known = _KNOWN.get(self.path)
            signature = _signature(self.path / LIST)
            if known is None or known.signature != signature:
                _KNOWN[self.path] = known = _Known(signature, dict.fromkeys(filter(_is_ours, self._entries())))
            return known.entries.keys()
        if not any(_is_sign(self.path / name, holds) for name, holds in _SIGNS.items()):
            return []
        tops = [*_FOLDERS, *(name for name in sorted(os.listdir(self.path)) if _is_ours(name))]
        found = [entry for top in tops for entry, mode in self._walk(top) if stat.S_ISREG(mode)]
        return list(dict.fromkeys(base for base in map(_base, found) if _is_ours(base)))

    def _entries(self) -> Iterator[str]:
        path = self.path / LIST
        if not stat.S_ISREG(path.lstat().st_mode):
            raise Unusable.by(path, "it is not a regular file")
        *lines, _ = path.read_bytes().split(b"\n")  # a cut-off last line means that its file was never written
        header = _plain(lines[0]) if lines else None
        if not isinstance(header, dict) or "kipcheck" not in header:
            raise self._damaged("it does not begin with kipcheck's header")
        if header.get("format") != FORMAT:
            raise self._damaged(f"its format is {header.get('format')!r}, and this kipcheck reads format {FORMAT}")
        for number, line in enumerate(lines[1:], 2):
            entry = _plain(line)
            if not isinstance(entry, str):
                raise self._damaged(f"line {number} is not a path")
            yield entry

    def _damaged(self, why: str) -> Unusable:
        return Unusable(
            f"{self.path / LIST} is damaged: {why}. kipcheck cannot know which files in {self.path} it wrote: move "
            f"the files to keep elsewhere and remove the folder, or name another folder with --out"
        )

    def _append(self, entries: Collection[str], durable: bool) -> None:
        path = self.path / LIST
        with path.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            begin = max(0, size - LONGEST_LINE)
            file.seek(begin)
            if (last := file.read().rfind(b"\n")) < 0:
                begin = file.seek(0)
                last = file.read().rfind(b"\n")
            file.seek(begin + last + 1)
            file.truncate()
            file.write(b"".join(map(_line, entries)))
            file.flush()
            if durable:
                os.fsync(file.fileno())
        if (known := _KNOWN.get(self.path)) is not None:
            known.entries.update(dict.fromkeys(entries))
            known.signature = _signature(path)

    def _replace_list(self, entries: Collection[str]) -> None:
        header = _line({"format": FORMAT, "kipcheck": metadata.version("kipcheck")})
        self._write(header + b"".join(map(_line, entries)))
        _KNOWN.pop(self.path, None)

    def _write(self, data: bytes, lasting: bool = True) -> None:
        """Writes the list atomically; not ``lasting``: only tests that it can be written, and keeps the list."""
        aside = self.path / f"{LIST}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with open(aside, "wb", opener=lambda name, _: os.open(name, flags, 0o666)) as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        if lasting:
            os.replace(aside, self.path / LIST)
        else:
            aside.unlink()


Signature: TypeAlias = tuple[int, int, int]


@dataclass(slots=True)
class _Known:
    """The content of a list that this process has read or written."""

    signature: Signature
    entries: dict[str, None]
    stale: int = 0
    """How many lines of the list are of forgotten files."""


_KNOWN: Final[dict[Path, _Known]] = {}


def _signature(path: Path) -> Signature:
    """Inode, size and time of the last change."""
    found = path.lstat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _objection(mode: int, listed: bool) -> str:
    """The reason why a file is not kipcheck's; empty if it is."""
    if stat.S_ISLNK(mode):
        return LINK
    if stat.S_ISDIR(mode):
        return "it is a folder"
    if not stat.S_ISREG(mode):
        return "it is not a regular file"
    return "" if listed else UNLISTED


def _line(plain: Any) -> bytes:
    return json.dumps(plain).encode() + b"\n"


def _plain(line: bytes) -> Any:
    """The JSON value; None if the line is not JSON."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


_SIGNS: Final = {
    LEDGER_NAME: ("type", "format", "kipcheck"),
    "manifest.json": ("format", "kipcheck", "plan"),
    "matrix.json": ("cells", "kipcheck"),
    "index.tsv": (),
}
"""Files that identify a folder without a list as kipcheck's, and the keys of their first value.

Older versions wrote no list, and services that store CI artifacts leave out hidden files."""
_INDEX_ROW: Final = re.compile(rb"[\w./+-]+/[0-9a-f]{20}(?:\.json)?\t.*\n")


def _is_sign(path: Path, keys: Collection[str]) -> bool:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            if not keys:
                return _INDEX_ROW.fullmatch(file.readline()) is not None
            found = _plain(file.readline() if path.suffix == ".jsonl" else file.read())
    except OSError:
        return False
    is_header = path.suffix != ".jsonl" or (isinstance(found, dict) and found.get("type") == "header")
    return isinstance(found, dict) and all(key in found for key in keys) and is_header
