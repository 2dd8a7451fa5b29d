"""``drill:KIND@N[,once=PATH]``: our own reference, which at its N-th case does what no target should.

To see what a campaign makes of a bad target, and what is lost by it: nothing but the shard, whose row names the case.
It is held in the very process of the shard, and does its worst there only: everywhere else it breaks off.

    kipcheck campaign --target drill:segfault@40 --cases 2000

With ``once=PATH`` it does so a single time, whoever holds it: the file PATH says that it did. What it does:
"""

import ctypes
import itertools
import os
import re
import signal
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.history import Observation
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Broken, Session, Target, TargetInfo
from kipcheck.conformance.targets.registry import adapter
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.transport import process_tree

SHARD: Final = "KIPCHECK_SHARD"
"""Variable of the environment of a process that holds a shard, and may be taken down."""
GARBAGE: Final = b"\x00\xffno row at all\n"


def _hang() -> None:
    # In C, and with the lock of the interpreter held: no thread and no handler of Python runs any more.
    deque(itertools.repeat(0), maxlen=0)


def _sleep() -> None:
    while True:
        time.sleep(3600)


def _segfault() -> None:
    ctypes.string_at(0)


def _exit() -> None:
    os._exit(0)


def _raise() -> None:
    raise RuntimeError("a drill")


def _allocate() -> None:
    held = []
    while True:
        held.append(bytes(64 << 20))  # by calloc: what is promised by the machine, and never touched


def _garbage() -> None:
    """Into every pipe that is open for writing, but for what it has to say."""
    for fd in range(3, 256):
        with suppress(OSError):
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, GARBAGE)


def _parent() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    _sleep()


def _worker() -> None:
    os.kill(process_tree.parent_of(os.getppid()), signal.SIGKILL)
    _sleep()


KINDS: Final[Mapping[str, Callable[[], None]]] = {
    "hang": _hang,
    "sleep": _sleep,
    "segfault": _segfault,
    "exit": _exit,
    "raise": _raise,
    "allocate": _allocate,
    "garbage": _garbage,
    "parent": _parent,
    "worker": _worker,
}
"""``hang``: without end, with the lock of the interpreter held; ``sleep``: without end, and without taking processor
time; ``segfault``; ``exit``: leaves with code 0; ``raise``: an exception; ``allocate``: memory without end;
``garbage``: writes it where the result of the shard goes; ``parent``: kills the process that started that of the shard;
``worker``: kills the one above it, which is the campaign itself where it is not run by Spark.
"""
__doc__ += "".join(f"\n* {each}" for each in KINDS)


@dataclass(frozen=True, slots=True)
class Plan:
    kind: str
    at: int
    """Number of the case, from 1 on."""
    once: Path | None = None


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Limits are for whoever can be stopped. Errors: LookupError with what would do."""
    found = re.fullmatch(r"(\w+)@([1-9][0-9]*)(?:,once=(.+))?", rest)
    if found is None or found[1] not in KINDS:
        kinds = ", ".join(KINDS)
        raise LookupError(f"{name!r} is no drill: drill:KIND@N or drill:KIND@N,once=PATH would be, KIND one of {kinds}")
    return Drill(name, Plan(found[1], int(found[2]), Path(found[3]) if found[3] else None))


def rows() -> Iterator[dict[str, Any]]:
    """None: there are as many as numbers of cases."""
    return iter(())


class Drill(InProcess):
    """Cases are counted over all its sessions."""

    def __init__(self, name: str, plan: Plan) -> None:
        reference = adapter("reference")
        reference.name = name
        super().__init__(reference)
        self._plan = plan
        self._cases = 0

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        with super().open(edition, role) as session:
            yield _Session(session, self._count)

    def _count(self) -> None:
        self._cases += 1
        if self._cases == self._plan.at and self._is_due():
            if SHARD not in os.environ:
                raise Broken(f"{self.name} does its worst only where a campaign holds it: nothing else survives it")
            KINDS[self._plan.kind]()

    def _is_due(self) -> bool:
        if self._plan.once is None:
            return True
        try:
            self._plan.once.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class _Session:
    session: Session
    count: Callable[[], None]

    @property
    def info(self) -> TargetInfo:
        return self.session.info

    @property
    def troubles(self) -> Sequence[str]:
        return self.session.troubles

    @property
    def breaches(self) -> Sequence[str]:
        return self.session.breaches

    def hold(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        held: list[tuple[Observation, ...]] = []
        for case in cases:
            self.count()
            held += self.session.hold([case])
        return held
