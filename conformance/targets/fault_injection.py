"""``drill:KIND@N[,once=PATH]``: the reference target, with a fault injected at its N-th case.

It shows how a campaign handles a bad target, and what is lost: only the shard, whose row names the case. The fault
happens in the process of the shard, and only there: in any other process the target raises an error.

    kipcheck campaign --target drill:segfault@40 --cases 2000

With ``once=PATH`` the fault happens once over all processes: the file PATH records that it did. Kinds:
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

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.history import Observation
from kipcheck.conformance.targets.in_process import InProcess
from kipcheck.conformance.targets.protocol import Broken, Session, Target, TargetInfo
from kipcheck.conformance.targets.registry import REFERENCE, adapter
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.transport import process_tree

SHARD: Final = "KIPCHECK_SHARD"
"""Environment variable, set in a process that runs a shard and may be killed."""
GARBAGE: Final = b"\x00\xffno row at all\n"


def _hang() -> None:
    # In C, and while holding the interpreter lock: no thread and no handler of Python runs any more.
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
    blocks = []
    while True:
        blocks.append(bytes(64 << 20))  # by calloc: reserved by the machine and never touched


def _garbage() -> None:
    """Writes to every pipe that is open for writing, except the standard streams."""
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
"""``hang``: loops for ever and holds the interpreter lock; ``sleep``: sleeps for ever, without using processor time;
``segfault``; ``exit``: exits with code 0; ``raise``: raises an exception; ``allocate``: allocates memory for ever;
``garbage``: writes it into the pipe of the shard's result; ``parent``: kills the process that started the shard's
process; ``worker``: kills the process above that, which is the campaign itself unless Spark runs it.
"""
__doc__ += "".join(f"\n* {each}" for each in KINDS)


@dataclass(frozen=True, slots=True)
class Plan:
    kind: str
    at: int
    """The case at which the fault happens, from 1."""
    once: Path | None = None


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """``limits`` are not used: the target has no process to stop. Errors: LookupError with the valid forms."""
    found = re.fullmatch(r"(\w+)@([1-9][0-9]*)(?:,once=(.+))?", rest)
    if found is None or found[1] not in KINDS:
        kinds = ", ".join(KINDS)
        raise LookupError(f"invalid target {name!r}: use drill:KIND@N or drill:KIND@N,once=PATH, KIND one of {kinds}")
    return FaultInjector(name, Plan(found[1], int(found[2]), Path(found[3]) if found[3] else None))


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any number of a case is a target."""
    return iter(())


class FaultInjector(InProcess):
    """Counts cases over all its sessions."""

    def __init__(self, name: str, plan: Plan) -> None:
        reference = adapter(REFERENCE)
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
                raise Broken(f"{self.name} injects its fault only into a shard of a campaign: nothing else survives it")
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

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        blocks: list[tuple[Observation, ...]] = []
        for case in cases:
            self.count()
            blocks += self.session.run([case])
        return blocks
