"""The current case of a shard, in memory shared between processes, so that it survives a sudden death of the shard."""

import mmap
import struct
from dataclasses import dataclass
from typing import Final

ROOM: Final = 4 << 20
"""Bytes. Of a case that needs more, only the number is recorded."""
HEAD: Final = struct.Struct("=qd?I")
"""Number of the case, start time, whether it has its own limit, and the length of its text."""
NOTHING: Final = -1


@dataclass(frozen=True, slots=True)
class Entry:
    number: int
    """The number of the case in its shard."""
    since: float
    """``time.monotonic()``, which all processes of a machine share."""
    watched: bool
    """Whether the limit on processor time applied to this case, and not to the shard as a whole."""
    text: str
    """JSON of the case; empty if it did not fit."""


class Journal:
    """One entry in an unnamed file that processes share. One process writes at a time."""

    def __init__(self, fd: int) -> None:
        """``fd``: an empty file, or one that another journal uses."""
        self._memory = mmap.mmap(fd, ROOM)

    def clear(self) -> None:
        self.write(Entry(NOTHING, 0.0, False, ""))

    def write(self, entry: Entry) -> None:
        data = entry.text.encode()
        if len(data) > ROOM - HEAD.size:
            data = b""
        # The length is 0 while the text is written: a process killed in between leaves no partial case.
        HEAD.pack_into(self._memory, 0, entry.number, entry.since, entry.watched, 0)
        self._memory[HEAD.size : HEAD.size + len(data)] = data
        HEAD.pack_into(self._memory, 0, entry.number, entry.since, entry.watched, len(data))

    def read(self) -> Entry | None:
        """None: no case was started."""
        number, since, watched, length = HEAD.unpack_from(self._memory)
        if number == NOTHING:
            return None
        text = self._memory[HEAD.size : HEAD.size + length].decode()
        return Entry(number, since, watched, text)

    def close(self) -> None:
        self._memory.close()
