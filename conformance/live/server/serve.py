"""Serves a broker until the process is interrupted."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.live.interrupted import interrupted
from kipcheck.conformance.live.recording.capture import Capture
from kipcheck.conformance.live.recording.log import Log
from kipcheck.conformance.live.recording.traffic import Observer, Traffic
from kipcheck.conformance.live.server.broker import Broker
from kipcheck.conformance.live.server.connection import Limits
from kipcheck.conformance.live.server.feature_broker import FeatureBroker
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import Topics


@final
@dataclass(frozen=True, slots=True)
class Serving:
    """What to serve, and where."""

    edition: Edition
    host: str = "127.0.0.1"
    port: int = 0
    topics: tuple[tuple[str, int], ...] = (("t", 3),)
    config: tuple[str, ...] = ()
    """Settings besides those of the edition, as ``KEY=VALUE``."""
    limits: Limits = field(default_factory=Limits)
    log: bool = False
    pcap: Path | None = None
    features: bool = False
    """Serves a controller of feature versions in place of a coordinator of groups."""


def serve(serving: Serving, print_line: Callable[[str], None], note: Callable[[str], object]) -> str:
    """Serves until SIGINT or SIGTERM; returns a summary. ``print_line`` gets the address first, then the log; ``note``
    gets what differs from a broker of the release.

    Errors: LookupError for an edition without what is served, ValueError for a setting that is not served, OSError for
    an address or file that cannot be used.
    """
    with asyncio.Runner() as runner:
        return runner.run(_serve(serving, print_line, note))


async def _serve(serving: Serving, print_line: Callable[[str], None], note: Callable[[str], object]) -> str:
    ended = interrupted()
    with ExitStack() as stack:
        broker = stack.enter_context(closing(_broker(serving)))
        observers: list[Observer] = [Log(str(serving.edition), print_line)] if serving.log else []
        if serving.pcap is not None:
            observers.append(stack.enter_context(closing(Capture(serving.pcap))))
        traffic = Traffic(tuple(observers))
        front = Front(broker, serving.edition, serving.limits, traffic)
        host, port = await front.listen(serving.host, serving.port)
        shown = f"[{host}]" if ":" in host else host
        if isinstance(broker, Broker):
            settings = broker.settings
            note(f"differs from the settings of {settings.release}: {', '.join(settings.differences)}")
        print_line(f"listening {shown}:{port}")
        await ended.wait()
        await front.close()
        return summary(traffic)


def _broker(serving: Serving) -> Broker | FeatureBroker:
    if serving.features:
        return FeatureBroker(serving.edition)
    return Broker(serving.edition, Topics.of(serving.topics), serving.config)


def summary(traffic: Traffic) -> str:
    """Counts of connections, requests and findings, and the connections that were closed, by reason."""
    counts = traffic.counts
    closed = [f"{number} {name}" for name, number in sorted(counts.items()) if name.startswith("closed: ")]
    found = [f"{counts['connections']} connections, {counts['requests']} requests"]
    found.append(f"{counts['findings']} requests that strict decoding refuses")
    return "; ".join([*found, *closed])
