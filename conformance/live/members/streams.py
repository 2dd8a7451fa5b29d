"""``kafka-streams:BROKER``: applications of released Kafka Streams as the members of a group, on a broker of a release.

With ``?protocol=streams`` they are members of a streams group (KIP-1071), and of a classic group without it.

A script names the release of each member, and its ``upgrade.from``. A member is a process with one thread; it ends
without a LeaveGroup, by SIGTERM if another release follows it and by SIGKILL otherwise, and each script has a group of
its own.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import APACHE, edition as edition_of
from kipcheck.conformance.core.values.release import Release, known_release
from kipcheck.conformance.live.client import built_in, compiled
from kipcheck.conformance.live.members import session
from kipcheck.conformance.live.members.group import SETTINGS, STREAMS_SETTINGS
from kipcheck.conformance.live.members.history import Observed
from kipcheck.conformance.live.members.streams_group_history import StreamsGroupHistory
from kipcheck.conformance.live.members.streams_history import TOPIC, StreamsHistory
from kipcheck.conformance.protocols.streams import ops
from kipcheck.conformance.protocols.streams.model.members import FUTURE, OWN
from kipcheck.conformance.protocols.upgrade.ops import Restart
from kipcheck.conformance.targets.protocol import Claims, Session, Target, Unavailable
from kipcheck.conformance.targets.session import Limits
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

APPLICATION, RELEASES, STREAMS_GROUPS, INSIDE = "application", "releases", "streams-groups", "inside"
UNOBSERVABLE: Final = frozenset({"streams/mixed"})
"""The checks with laws of what only a model shows, or an assignor that kipcheck itself calls."""
BY_HEARTBEATS: Final = "?protocol=streams"
STREAMS_GROUPS_SINCE: Final = Release.parse(since("kip-1071"))
LIMITS: Final = {
    **session.LIMITS,
    APPLICATION: "the application has one subtopology without state, and a thread for each instance",
    RELEASES: "a member is of an exact release",
    INSIDE: "processes do not show what a member makes of an assignment inside itself",
    STREAMS_GROUPS: f"members of streams groups are of {STREAMS_GROUPS_SINCE} or later, and have no upgrade.from",
}
CLAIMS: Final = Claims(machines=(ops.STREAMS_MIXED,), limits=LIMITS)
SIZES: Final = {topic.name: topic.partitions for topic in ops.TOPICS}


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Errors: LookupError for an unknown release, and one that has no streams groups where they are wanted."""
    release = rest.removesuffix(BY_HEARTBEATS)
    known = known_release(release)
    if release != rest and known < STREAMS_GROUPS_SINCE:
        raise LookupError(f"{name}: a broker of {release} has no streams groups: use {STREAMS_GROUPS_SINCE} or later")
    return Applications(name, release, release != rest)


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any release of a broker is a target."""
    return iter(())


@final
@dataclass(frozen=True, slots=True)
class Applications:
    """``by_heartbeats``: whether they are members of streams groups."""

    name: str
    release: str
    by_heartbeats: bool = False

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        """Errors: ``NotPlayed``; ``Unavailable`` without a JDK or the jars, and in other editions."""
        info = session.info_of(self.name, self.release, CLAIMS, role)
        if edition_of(edition) != APACHE:
            raise Unavailable(f"{self.name}: the releases of members are in its scripts: use --edition {APACHE}")
        with temporary_folder("streams") as state:
            made = StreamsGroupScript if self.by_heartbeats else StreamsScript
            settings = {**SETTINGS, **(STREAMS_SETTINGS if self.by_heartbeats else {})}
            with session.opened(info, self.release, SIZES, lambda group: made(group, state), settings) as opened:
                yield opened


@lru_cache(maxsize=100)
def command(release: str) -> tuple[str, ...]:
    """Errors: ``Unavailable``."""
    return compiled.streams(release, built_in.program("StreamsMember.java"))


@dataclass(slots=True)
class StreamsScript(session.Script):
    """``state``: the folder of the state directories of processes."""

    state: Path
    starts: dict[str, ops.Start] = field(default_factory=dict)
    """By process."""
    last: dict[str, ops.Start] = field(default_factory=dict)
    """By member."""
    operations = ops.OPERATIONS
    limits = LIMITS

    def limit_of(self, event: ops.Event) -> str | None:
        match event:
            case ops.Deploy():
                return None if (event.topology, event.topics) == (ops.STATELESS, ops.TOPICS) else APPLICATION
            case ops.Start(member, release, _, instance):
                unlike = APPLICATION if instance not in (None, member) else None
                return unlike if self.has_release(release) else RELEASES
            case ops.ShutDown():
                return APPLICATION
            case _:
                return session.Script.limit_of(self, event)

    def limit_of_script(self, check: str, events: list[Any]) -> str | None:
        return INSIDE if check in UNOBSERVABLE else None

    def has_release(self, release: str) -> bool:
        """Whether a member can be of it."""
        return release not in (OWN, FUTURE)

    def history(self, observed: Sequence[Observed]) -> StreamsHistory:
        return StreamsHistory(observed, self.starts)

    async def take(self, event: ops.Event) -> None:
        match event:
            case ops.Start(member):
                await self.group.stop(member)
                await self._start(event)
            case Restart(member):
                if not self.group.runs(member) and member in self.last:
                    await self._start(self.last[member])

    async def _start(self, start: ops.Start) -> None:
        self.last[start.member] = start
        await self.start_process(start)

    async def start_process(self, start: ops.Start) -> None:
        """Starts an application of the release. Errors: ``Unavailable``."""
        argv = await asyncio.to_thread(command, str(Release.parse(start.release)))
        await self.group.start(start.member, lambda name: (argv, self.environment(start, name)))

    def environment(self, start: ops.Start, name: str) -> Mapping[str, str]:
        """That of a process, whose state directory is made."""
        self.starts[name] = start
        state = self.state / self.group.id / name
        state.mkdir(parents=True)  # 0.10.0 makes only the last folder of a path
        own = {"CLIENT_ID": name, "STATE": str(state)}
        if start.upgrade_from is not None:
            own["UPGRADE_FROM"] = start.upgrade_from
        return {**self.settings((TOPIC,)), **{built_in.PREFIX + key: value for key, value in own.items()}}


@final
@dataclass(slots=True)
class StreamsGroupScript(StreamsScript):
    """Of members of a streams group."""

    def limit_of(self, event: ops.Event) -> str | None:
        limit = StreamsScript.limit_of(self, event)
        if limit is None and isinstance(event, ops.Start):
            old = Release.parse(event.release) < STREAMS_GROUPS_SINCE
            return STREAMS_GROUPS if old or event.upgrade_from is not None else None
        return limit

    def history(self, observed: Sequence[Observed]) -> StreamsHistory:
        return StreamsGroupHistory(observed, self.starts)

    def settings(self, topics: tuple[str, ...], assignors: str = "") -> Mapping[str, str]:
        """The broker states the times of its members."""
        made = built_in.Settings(self.group.cluster.bootstrap, self.group.id, topics, protocol="streams")
        return made.environment
