"""Archives the loaded classes of the Java consumer, so that its next starts take about half the processor time.

An archive (JEP 350) is written when the JVM ends, here after a script in which nothing is judged. The JVM ignores one
that does not fit it or its class path.
"""

import asyncio
import fcntl
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.client.launch import Commands
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import Broken

SCRIPT: Final = OPERATIONS.parse_shorthand(
    "others 1 lead; pass 500; rebalance; answer Heartbeat NOT_COORDINATOR; pass 500; stop"
)
"""In which the consumer loads what it needs in most scripts."""
CLASS_PATH: Final = "-cp"


def archived(command: Sequence[str], edition: Edition) -> tuple[str, ...]:
    """The command with an archive, made now or earlier. The last jar of its class path is the program's own.

    Where none can be made, the command works as before; that is tried once.
    """
    at = command.index(CLASS_PATH)
    jars = [Path(each) for each in command[at + 1].split(os.pathsep)]
    place = jars[-1].with_name(f"{jars[-1].stem}-{_key(command[0], jars)}.jsa")
    with suppress(OSError):
        if not place.exists():
            with place.with_name(f".{place.name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not place.exists():  # another process may have made it meanwhile
                    _make(place, command[:at], command[at:], edition)
    return (*command[:at], f"-XX:SharedArchiveFile={place}", *command[at:])


def _key(java: str, jars: Sequence[Path]) -> str:
    """Of what an archive is bound to: the JVM, and path, size and time of each jar."""

    def parts() -> Iterator[str]:
        yield str(Path(java).resolve())
        for jar in jars:
            found = jar.stat()
            yield f"{jar} {found.st_size} {found.st_mtime_ns}"

    return hashlib.sha256("\n".join(parts()).encode()).hexdigest()[:16]


def _make(place: Path, options: Sequence[str], rest: Sequence[str], edition: Edition) -> None:
    """Errors: OSError. An empty file, which the JVM ignores, if the consumer cannot be played."""
    made = place.with_name(f".{place.name}.new")
    made.unlink(missing_ok=True)
    with suppress(Broken):
        asyncio.run(play(edition, Commands((*options, f"-XX:ArchiveClassesAtExit={made}", *rest)), SCRIPT))
    made.touch()
    made.replace(place)
