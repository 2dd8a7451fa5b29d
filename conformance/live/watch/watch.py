"""Watches a running cluster through a proxy until the process is interrupted."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.connections.secure_connection import Closed, open_secured
from kipcheck.conformance.live.connections.security import OPEN, Security
from kipcheck.conformance.live.interrupted import interrupted
from kipcheck.conformance.live.recording.observed import Idle
from kipcheck.conformance.live.watch.proxy import Proxy
from kipcheck.conformance.live.watch.rewrite import Address
from kipcheck.conformance.live.watch.watcher import Watcher

TICK_S: Final = 0.2
LATE_FOR_S: Final = 60.0
"""Laws about time say nothing for so long after this machine was late."""


@final
@dataclass(frozen=True, slots=True)
class Watching:
    """What to watch, and where."""

    edition: Edition
    upstream: Address
    listen: Address = ("127.0.0.1", 0)
    security: Security = OPEN
    """Of connections to the brokers; clients connect to the proxy without TLS."""


class Unreachable(Exception):
    """The broker does not answer; the text says which, why, and what to do."""


def watch(watching: Watching, print_line: Callable[[str], None]) -> Watcher:
    """Watches until SIGINT or SIGTERM. ``print_line`` gets the address first.

    Errors: LookupError for an unknown edition; OSError for an address that cannot be used; ``Unreachable``.
    """
    with asyncio.Runner() as runner:
        return runner.run(_watch(watching, print_line))


async def _watch(watching: Watching, print_line: Callable[[str], None]) -> Watcher:
    ended = interrupted()
    watcher = Watcher(watching.edition, print_line)
    await _reach(watching.upstream, watching.security)
    proxy = Proxy(watching.upstream, watcher, watching.security)
    host, port = await proxy.listen(*watching.listen)
    print_line(f"listening {f'[{host}]' if ':' in host else host}:{port}")
    print_line(f"watching {watching.upstream[0]}:{watching.upstream[1]}; Ctrl-C ends it and writes the reports")
    idle, lateness = Idle(), Lateness()
    try:
        while not ended.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), TICK_S)
            lateness.note(proxy.now(), idle.late_ms())
            watcher.tick(proxy.now(), lateness.ms(proxy.now()))
    finally:
        idle.close()
        await proxy.close()
    watcher.end(proxy.now(), lateness.ms(proxy.now()))
    return watcher


class Lateness:
    """How late this machine was, of late."""

    def __init__(self) -> None:
        self._late: list[tuple[float, int]] = []

    def note(self, now_s: float, late_ms: int) -> None:
        if late_ms:
            self._late = [each for each in self._late if each[0] > now_s - LATE_FOR_S and each[1] > late_ms]
            self._late.append((now_s, late_ms))

    def ms(self, now_s: float) -> int:
        return max((late for at_s, late in self._late if at_s > now_s - LATE_FOR_S), default=0)


async def _reach(upstream: Address, security: Security) -> None:
    try:
        opened = await open_secured(*upstream, security)
    except Closed as why:
        raise Unreachable(
            f"no broker can be reached: {why}; start it, or name another with --upstream HOST:PORT"
        ) from None
    opened.writer.close()
