"""Folders for temporary files, which the next process removes if theirs was killed."""

import fcntl
import os
import shutil
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


def remove_orphans() -> list[Path]:
    """Removes the folders of this user whose processes have ended. Returns them."""
    found = []
    for lock in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError):
            about = lock.parent.lstat()
            if about.st_uid != os.getuid() or lock.parent.is_symlink() or lock.is_symlink():
                continue
            opened = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
                found.append(lock.parent)
            finally:
                os.close(opened)
    return found
