"""Folders for temporary files, which the next process removes if theirs was killed."""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

PREFIX: Final = "kipcheck-"
LOCK: Final = ".lock"
"""The process that made the folder, and processes forked from it, keep a lock on this file. The system gives it back
when they end, in whatever way; a number of a process would say nothing in another container."""

FILES: Final = "files"
OF_JAVA: Final = re.compile(r"kipcheck-(?:store|file)-(?P<pid>\d+)-(?P<space>\d+)-\d+")
"""Folders that kipcheck's programs in Java make (``Temporary.java``)."""


@contextmanager
def temporary_folder(kind: str) -> Iterator[Path]:
    """An empty folder below ``kipcheck-KIND-...`` in the folder for temporary files, removed at the end.

    Errors: OSError.
    """
    _remove_orphans_once()
    path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}-"))
    lock = os.open(path / f"{LOCK}.part", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(path / f"{LOCK}.part", path / LOCK)  # another process never finds it without the lock
        (path / FILES).mkdir()
        yield path / FILES
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


@cache
def _remove_orphans_once() -> None:
    """In this process."""
    remove_orphans()


def remove_orphans(*places: Path) -> list[Path]:
    """Removes the folders of this user whose processes have ended. Returns them. ``places``: default: the folder for
    temporary files, and that of Java."""
    found = []
    for each in {
        path for place in places or (Path(tempfile.gettempdir()), Path("/tmp")) for path in place.glob(f"{PREFIX}*")
    }:
        with suppress(OSError):
            about = each.lstat()
            if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid() and _is_orphan(each):
                shutil.rmtree(each, ignore_errors=True)
                found.append(each)
    return sorted(found)


def _is_orphan(path: Path) -> bool:
    """Errors: OSError."""
    if named := OF_JAVA.fullmatch(path.name):
        space = "".join(filter(str.isdigit, os.readlink("/proc/self/ns/pid")))
        return named["space"] == space and not Path("/proc", named["pid"]).exists()
    opened = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(opened)
    return True
