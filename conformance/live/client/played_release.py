"""Chooses the release that the broker of scripts plays for a client: the newest one that the client's versions fit.

An old client may send versions that the newest release does not serve any more (KIP-896), whether it sends ApiVersions
or not: kafka-node does, and sends ListOffsets 0 to every broker. A short script, against a broker with every version
a release ever served, shows which. One that sends ApiVersions is watched until its first Fetch only. A version that
no release serves beside the others changes nothing: the newest release is played, and laws judge the request.
"""

import asyncio
import re
from dataclasses import dataclass, field
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import patches
from kipcheck.conformance.core.values.edition import APACHE
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.client.failed_start import UNSERVED
from kipcheck.conformance.live.client.launch import Launcher
from kipcheck.conformance.live.client.play import Play
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.recording.traffic import Observer
from kipcheck.conformance.protocols.client.events import Event
from kipcheck.conformance.protocols.client.ops import OPERATIONS
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.wire.schema import stable_versions

SCRIPT: Final = OPERATIONS.parse_shorthand("pass 500; answer Fetch OFFSET_OUT_OF_RANGE; stop")
"""In which a consumer sends each kind of request that it has; with an offset out of range, ListOffsets."""
API_VERSIONS: Final = "ApiVersions"
RELEASE: Final = re.compile(r"v?\d+(?:\.\d+)*(?:-[a-zA-Z0-9.-]{1,40})?")
"""A version of a library, which lists of known deviations can name."""


@final
@dataclass(frozen=True, slots=True)
class Played:
    release: str
    broken: str = ""
    """Why the program is no consumer; empty: it is one, or it was not watched for so long."""
    events: tuple[Event, ...] = ()
    """What was observed of a program that is none."""
    unserved: str = ""
    """What it sends that the newest release does not serve: ``ListOffsets 0, Fetch 1``."""
    software: str = ""
    """The version of its client library that it states in ApiVersions; empty: none."""

    @property
    def edition(self) -> str:
        return f"{APACHE.name}@{self.release}"


@dataclass(slots=True)
class _OwnVersions(Observer):
    """What a client sends."""

    sent: set[tuple[str, int]] = field(default_factory=set)
    """APIs with versions."""
    unserved: bool = False
    """Whether a request had a version or key of no release."""
    asked: bool = False
    """Whether it sent ApiVersions."""
    software: str = ""
    """The version that it states of its library, since ApiVersions 3."""
    enough: asyncio.Event = field(default_factory=asyncio.Event)
    """Whether its other versions are those that it was offered."""

    def closed(self, at_s: float, connection: int, why: str) -> None:
        self.unserved |= why.endswith(UNSERVED)

    def received(self, request: Received) -> None:
        self.asked |= request.api == API_VERSIONS
        if RELEASE.fullmatch(stated := request.body.get("clientSoftwareVersion", "")):
            self.software = stated
        self.sent.add((request.api, request.version))
        if self.asked and request.api == "Fetch":
            self.enough.set()


async def played(launcher: Launcher) -> Played:
    """The release for the programs of a launcher, one of which is started, and ended."""
    versions = _OwnVersions()
    script = Play(APACHE, launcher, observers=(versions,))
    playing = asyncio.ensure_future(_played(script))
    waiting = asyncio.ensure_future(versions.enough.wait())
    try:
        await asyncio.wait({playing, waiting}, return_when=asyncio.FIRST_COMPLETED)
        broken = playing.result() if playing.done() else ""
        release = NEWEST if versions.unserved else newest_with(versions.sent)
        events = tuple(script.recorder.take()) if broken else ()
        unserved = "" if release == NEWEST else _unserved(versions.sent)
        return Played(release, broken, events, unserved, versions.software)
    finally:
        for each in (playing, waiting):
            each.cancel()
        await asyncio.gather(playing, waiting, return_exceptions=True)
        await script.close()


async def _played(script: Play) -> str:
    """Why the program is no consumer; empty: it is one."""
    try:
        for step in SCRIPT:
            await script.step(step)
    except Broken as why:
        return str(why)
    return ""


def newest_with(versions: set[tuple[str, int]]) -> str:
    """The newest release that serves all these APIs and versions; if there is none, the newest of all."""
    for release in reversed(patches()):
        if all(_is_served(api, version, release) for api, version in versions):
            return release
    return NEWEST


def _unserved(versions: set[tuple[str, int]]) -> str:
    return ", ".join(f"{api} {version}" for api, version in sorted(versions) if not _is_served(api, version, NEWEST))


def _is_served(api: str, version: int, release: str) -> bool:
    served = stable_versions(api, release)
    return served is not None and version in served
