"""What a shard is at, in memory that outlives its process: so that no death, however sudden, takes its case with it."""

import mmap
import struct
from dataclasses import dataclass
from typing import Final

ROOM: Final = 4 << 20
"""Bytes. A case that needs more is named by its number only."""
HEAD: Final = struct.Struct("=qd?I")
"""Number of the case, since when, whether it is watched alone, and the length of its text."""
NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    """Of the case in its shard."""
    since: float
    """``time.monotonic()``, which all processes of a machine share."""
    watched: bool
    """Was there a limit on the processor time of this case, and not of the shard as a whole?"""
    text: str
    """JSON of the case; empty where there was no room for it."""


class Journal:
    """One entry, in a file without a name that processes share. Written by one of them at a time."""

    def __init__(self, fd: int) -> None:
        """``fd``: of an empty file, or of one that another journal was made of."""
        self._memory = mmap.mmap(fd, ROOM)

    def clear(self) -> None:
        self.write(Entry(NOTHING, 0.0, False, ""))

    def write(self, entry: Entry) -> None:
        data = entry.text.encode()
        if len(data) > ROOM - HEAD.size:
            data = b""
        # No length while the text is being written: whoever is killed in between leaves no half of a case.
        HEAD.pack_into(self._memory, 0, entry.number, entry.since, entry.watched, 0)
        self._memory[HEAD.size : HEAD.size + len(data)] = data
        HEAD.pack_into(self._memory, 0, entry.number, entry.since, entry.watched, len(data))

    def read(self) -> Entry | None:
        """None: no case was begun."""
        number, since, watched, length = HEAD.unpack_from(self._memory)
        if number == NOTHING:
            return None
        text = self._memory[HEAD.size : HEAD.size + length].decode()
        return Entry(number, since, watched, text)

    def close(self) -> None:
        self._memory.close()
