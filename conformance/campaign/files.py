"""Writes files of a campaign atomically, and sets damaged ones aside."""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The disk is full, or a quota or the limit on file sizes is reached."""
DAMAGED: Final = ".damaged"


class Full(OSError):
    """There is no space for a file. An earlier version of the file is unchanged."""

    def __init__(self, number: int, path: Path, size: int) -> None:
        super().__init__(number, os.strerror(number), str(path))
        self.size = size

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror} ({self.size} bytes are needed)"


@dataclass(frozen=True, slots=True)
class SetAside:
    """A damaged file. Its readable rows are kept."""

    path: Path
    """Its original path."""
    why: str
    now: Path | None
    """Its new path; None: it could not be moved."""
    saved: int = 0
    """The number of rows that could be read."""

    def __str__(self) -> str:
        moved = f"set aside as {self.now.name}" if self.now else "not set aside, because files cannot be moved there"
        saved = f"; {self.saved} of its rows are kept" if self.saved else ""
        return f"{self.path} is damaged ({self.why}): {moved}{saved}"


def put(path: Path, data: bytes) -> Path:
    """Writes a file atomically, also in case of a power failure: to a temporary file that replaces it once it is on the
    disk.

    A temporary file of a killed writer is overwritten. Errors: ``Full``; OSError.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
        _sync(path.parent)
    except OSError as denied:
        with suppress(OSError):
            beside.unlink(missing_ok=True)  # a full disk needs the space
        if denied.errno in NO_ROOM:
            raise Full(denied.errno or 0, path, len(data)) from None
        raise
    return path


def set_aside(path: Path, why: str, saved: int = 0) -> SetAside:
    """Moves a damaged file away, so that it is not read again; if files cannot be moved, it stays."""
    now = path.with_name(path.name + DAMAGED)
    number = 1
    while now.exists():
        number += 1
        now = path.with_name(f"{path.name}.{number}{DAMAGED}")
    try:
        os.replace(path, now)
    except OSError:
        return SetAside(path, why, None, saved)
    return SetAside(path, why, now, saved)


def _sync(folder: Path) -> None:
    """Flushes a folder, so that new file names reach the disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
