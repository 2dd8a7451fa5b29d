"""``client:streams@RELEASE``: a released application of Kafka Streams in a group whose other members are models.

The members of the release are processes on a broker of kipcheck's. The others are the small consumer with the model of
an assignor, of a release or of the future, which does what is owed.
"""

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import APACHE, Edition, edition as edition_of
from kipcheck.conformance.core.values.release import NEWEST, Release
from kipcheck.conformance.live.members import group as groups, session
from kipcheck.conformance.live.members.scripted_cluster import scripted
from kipcheck.conformance.live.members.streams import LIMITS, SIZES, StreamsScript
from kipcheck.conformance.live.members.streams_history import TOPIC
from kipcheck.conformance.live.members.streams_models import ModelledMember
from kipcheck.conformance.protocols.streams import ops
from kipcheck.conformance.protocols.streams.blobs import EncodedBinary
from kipcheck.conformance.protocols.streams.model.group_model import BROKERS
from kipcheck.conformance.protocols.streams.model.members import OWN, Settings
from kipcheck.conformance.protocols.streams.model.release_members import owed_beside
from kipcheck.conformance.protocols.upgrade.ops import Expire
from kipcheck.conformance.targets.protocol import Claims, Session, Unavailable
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

NAME: Final = "streams"
"""The name of the client."""
ALONE: Final = "alone"
OWN_LIMITS: Final = {**LIMITS, ALONE: "no member of the script is of the release of the application"}
CLAIMS: Final = Claims(machines=(ops.STREAMS_MIXED,), limits=OWN_LIMITS)


def application(name: str, release: str) -> "Application":
    """Errors: LookupError for an invalid release."""
    try:
        return Application(name, str(Release.parse(release or NEWEST)))
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None


@final
@dataclass(frozen=True, slots=True)
class Application:
    name: str
    release: str

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        """Errors: ``NotPlayed``; ``Unavailable`` in the edition of another release, or of a draft."""
        info = session.info_of(self.name, self.release, CLAIMS, role)
        own = edition_of(f"{APACHE.name}@{self.release}")
        if edition_of(edition) not in (APACHE, own):
            raise Unavailable(f"{self.name}: its own release is {self.release}: use --edition {own} or {APACHE}")
        with temporary_folder("streams") as state, asyncio.Runner() as runner:
            broker = (
                own if Release.parse(self.release) > Release.parse(BROKERS) else edition_of(f"{APACHE.name}@{BROKERS}")
            )
            script = lambda group: ApplicationScript(group, state, own=own)
            yield session.ScriptSession(info, lambda: scripted(broker, SIZES), script, runner)


@final
@dataclass(slots=True)
class ApplicationScript(StreamsScript):
    """``own``: the edition of the application's release."""

    own: Edition = APACHE
    limits = OWN_LIMITS

    def limit_of(self, event: Any) -> str | None:
        match event:
            case Expire():
                return None
            case _:
                return StreamsScript.limit_of(self, event)

    def limit_of_script(self, events: list[Any]) -> str | None:
        starts = (event for event in events if isinstance(event, ops.Start))
        return None if any(map(self._is_own, starts)) else ALONE

    def has_release(self, release: str) -> bool:
        return True

    def _is_own(self, start: ops.Start) -> bool:
        return start.release in (OWN, self.own.release)

    async def take(self, event: Any) -> None:
        match event:
            case Expire(member):
                assert self.group.cluster.expire is not None
                self.group.cluster.expire(self.group.id, self.group.name_of(member))
            case _:
                await StreamsScript.take(self, event)

    async def start_process(self, start: ops.Start) -> None:
        if self._is_own(start):
            return await StreamsScript.start_process(self, replace(start, release=self.own.release))
        await self._start_model(start)

    async def _start_model(self, start: ops.Start) -> None:
        settings = {
            "bootstrap": self.group.cluster.bootstrap, "group": self.group.id, "topics": TOPIC,
            "session_ms": groups.SESSION_MS, "rebalance_ms": groups.REBALANCE_MS,
        }  # fmt: skip

        async def begin(name: str, take: Any) -> ModelledMember:
            self.starts[name] = start
            process = str(uuid.uuid5(uuid.NAMESPACE_OID, f"kipcheck/{self.group.id}/{name}"))
            made = Settings(start.release, ops.STATELESS, process, start.upgrade_from)
            binary = EncodedBinary(owed_beside(made, self.own))
            return await ModelledMember.start(name, binary, settings, take)

        await self.group.begin(start.member, begin)
