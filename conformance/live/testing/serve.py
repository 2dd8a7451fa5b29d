"""Serves a scripted broker until the process is interrupted."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import final

from kipcheck.conformance.live.interrupted import interrupted
from kipcheck.conformance.live.recording.capture import Capture
from kipcheck.conformance.live.server.serve import summary
from kipcheck.conformance.live.testing.http_api import Brokers, HttpServer
from kipcheck.conformance.live.testing.stage import Setting, Stage


@final
@dataclass(frozen=True, slots=True)
class ServedScript:
    setting: Setting
    host: str
    port: int
    http: int | None = None
    """The port at which other languages play scripts, 0 for a free one; None: none."""
    log: bool = False
    pcap: Path | None = None


def serve(served: ServedScript, print_line: Callable[[str], None], note: Callable[[str], object]) -> str:
    """Serves until SIGINT or SIGTERM; returns a summary. ``print_line`` gets the address first, then that of HTTP, then
    the log; ``note`` gets what differs from a broker of the release.

    Errors: ValueError for a script or a setting, LookupError for a release without groups, OSError for an address or
    file that cannot be used.
    """
    with asyncio.Runner() as runner:
        return runner.run(_serve(served, print_line, note))


async def _serve(served: ServedScript, print_line: Callable[[str], None], note: Callable[[str], object]) -> str:
    ended = interrupted()
    with ExitStack() as stack:
        captures = [stack.enter_context(closing(Capture(served.pcap)))] if served.pcap is not None else []
        stage = Stage(served.setting, observers=tuple(captures))
        brokers, http = Brokers(served.host, stage), None
        try:
            address = await stage.open(served.host, served.port)
            settings = stage.broker.settings
            note(f"differs from the settings of {settings.release}: {', '.join(settings.differences)}")
            print_line(f"listening {address}")
            if served.http is not None:
                http = HttpServer(brokers, served.host, served.http)
                print_line(f"scripts at {http.url}")
            if served.log:
                for line in stage.lines:
                    print_line(line)
                stage.print_line = print_line
            await ended.wait()
        finally:
            if http is not None:
                await http.close()
            await brokers.close()
        stage.script.check()
        return summary(stage.traffic)
