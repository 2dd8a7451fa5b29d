"""Files of a campaign: whole or absent when they are written, named and set aside when they are damaged."""

import errno
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""On the disk, in a quota, below the limit on the size of files."""
DAMAGED: Final = ".damaged"


class Full(OSError):
    """There is no room for a file. What was there before is there still."""

    def __init__(self, number: int, path: Path, size: int) -> None:
        super().__init__(number, os.strerror(number), str(path))
        self.size = size

    def __str__(self) -> str:
        return f"{self.filename} cannot be written: {self.strerror} ({self.size} bytes are wanted)"


@dataclass(frozen=True, slots=True)
class SetAside:
    """A file that was damaged. What could be read of it is kept."""

    path: Path
    """Where it was."""
    why: str
    now: Path | None
    """Where it is; None: it could not be moved."""
    saved: int = 0
    """Rows that could be read."""

    def __str__(self) -> str:
        moved = f"set aside as {self.now.name}" if self.now else "not set aside, for nothing may be moved there"
        saved = f"; {self.saved} of its rows are kept" if self.saved else ""
        return f"{self.path} is damaged ({self.why}): {moved}{saved}"


def put(path: Path, data: bytes) -> Path:
    """Whole or absent, also when the power fails: it is written beside its place, and put there when it is on the disk.

    What a writer that was killed left beside it is written over. Errors: ``Full``; OSError.
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
            beside.unlink(missing_ok=True)  # a full disk needs the room
        if denied.errno in NO_ROOM:
            raise Full(denied.errno or 0, path, len(data)) from None
        raise
    return path


def set_aside(path: Path, why: str, saved: int = 0) -> SetAside:
    """Moves it out of the way, so that nobody meets it again; where nothing can be moved, it stays."""
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
    """The name of a file is kept by its folder, which has to reach the disk as well."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
