"""``client:streams@RELEASE``: a released application of Kafka Streams in a group whose other members are models.

A command with ``{upgrade_from}`` starts one too, whose release is that of the edition.

The members of the release are processes on a broker of kipcheck's. The others are the small consumer with the model of
an assignor, of a release or of the future, which does what is owed.
"""

import asyncio
import shlex
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from kipcheck.conformance.core.values.case import Role
from kipcheck.conformance.core.values.edition import APACHE, Edition, Standing, edition as edition_of
from kipcheck.conformance.core.values.release import NEWEST, Release
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.live.client.launch import PLACEHOLDER, named
from kipcheck.conformance.live.members import group as groups, session
from kipcheck.conformance.live.members.history import Observed
from kipcheck.conformance.live.members.scripted_cluster import scripted
from kipcheck.conformance.live.members.silent_history import SilentHistory
from kipcheck.conformance.live.members.streams import LIMITS, SIZES, StreamsScript
from kipcheck.conformance.live.members.streams_history import TOPIC, StreamsHistory
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
UPGRADE_FROM: Final = "{upgrade_from}"
COMMAND_NEEDS: Final = ("{bootstrap}", "{group}", "{topics}", "{client_id}", "{state}", UPGRADE_FROM)
NOTICED_S: Final = 5.0
"""The time in which members notice that one of them was removed: many heartbeats."""
CLAIMS: Final = Claims(machines=(ops.STREAMS_MIXED,), limits=OWN_LIMITS)


def application(name: str, release: str) -> "Application":
    """That of kipcheck. Errors: LookupError for an invalid release."""
    try:
        return Application(name, str(Release.parse(release or NEWEST)))
    except ValueError as wrong:
        raise LookupError(str(wrong)) from None


def is_application(command: str) -> bool:
    """Whether a command starts an application of Streams."""
    return UPGRADE_FROM in named(command)


def of_command(name: str, command: str) -> "Application":
    """Errors: LookupError for a command without a placeholder that is needed, and with unbalanced quotes."""
    missing = [each for each in COMMAND_NEEDS if each not in named(command)]
    if missing:
        raise LookupError(f"{name!r} lacks {', '.join(missing)}, which an application of Streams needs")
    try:
        shlex.split(command)
    except ValueError as wrong:
        raise LookupError(f"invalid command line {name!r}: {wrong}") from None
    return Application(name, "", command)


def words(command: str, environment: Mapping[str, str]) -> list[str]:
    """Those of a command, with the settings of a process in place of its placeholders. A word with a placeholder of the
    form ``{upgrade_from?}`` is left out where that is not given."""
    given = {key.removeprefix(built_in.PREFIX).lower(): value for key, value in environment.items()}
    return [
        PLACEHOLDER.sub(lambda mark: given.get(mark[1], ""), word)
        for word in shlex.split(command)
        if not any(is_optional and name not in given for name, is_optional in PLACEHOLDER.findall(word))
    ]


@final
@dataclass(frozen=True, slots=True)
class Application:
    """``release``: empty for a command."""

    name: str
    release: str
    command: str = ""

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        """Errors: ``NotPlayed``; ``Unavailable`` in the edition of another release, or of a draft."""
        here = edition_of(edition)
        release = self.release or (here.release if here.standing is Standing.RELEASED else NEWEST)
        info = session.info_of(self.name, release, CLAIMS, role)
        info = replace(info, command=self.name if self.command else "")
        own = edition_of(f"{APACHE.name}@{release}")
        if here not in (APACHE, own):
            raise Unavailable(f"{self.name}: its own release is {release}: use --edition {own} or {APACHE}")
        with temporary_folder("streams") as state, asyncio.Runner() as runner:
            broker = own if Release.parse(release) > Release.parse(BROKERS) else edition_of(f"{APACHE.name}@{BROKERS}")
            script = lambda group: ApplicationScript(group, state, own=own, command=self.command)
            yield session.ScriptSession(info, lambda: scripted(broker, SIZES), script, runner)


@dataclass(slots=True)
class ApplicationScript(StreamsScript):
    """``own``: the edition of the application's release; ``command``: which starts it, or none."""

    own: Edition = APACHE
    command: str = ""
    silent: set[str] = field(default_factory=set)
    """The processes that the command started."""
    limits = OWN_LIMITS

    def limit_of(self, event: Any) -> str | None:
        match event:
            case Expire():
                return None
            case _:
                return StreamsScript.limit_of(self, event)

    def limit_of_script(self, check: str, events: list[Any]) -> str | None:
        starts = (event for event in events if isinstance(event, ops.Start))
        return StreamsScript.limit_of_script(self, check, events) or (None if any(map(self._is_own, starts)) else ALONE)

    def has_release(self, release: str) -> bool:
        return True

    def _is_own(self, start: ops.Start) -> bool:
        return start.release in (OWN, self.own.release)

    async def take(self, event: Any) -> None:
        match event:
            case Expire(member):
                await self._expire(member)
            case _:
                await StreamsScript.take(self, event)

    async def _expire(self, member: str) -> None:
        """Waits until the others, and the member itself, have joined again; not if it was in no group."""
        assert self.group.cluster.expire is not None
        before, until_s = self._generation, time.monotonic() + NOTICED_S
        self.group.cluster.expire(self.group.id, self.group.name_of(member))
        while self._generation == before and time.monotonic() < until_s:
            await asyncio.sleep(session.POLL_S)

    @property
    def _generation(self) -> int:
        return self.history([*self.group.observed, *self.marks]).generation

    def history(self, observed: Sequence[Observed]) -> StreamsHistory:
        return SilentHistory(observed, self.starts, frozenset(self.silent))

    async def start_process(self, start: ops.Start) -> None:
        if not self._is_own(start):
            return await self._start_model(start)
        own = replace(start, release=self.own.release)
        if not self.command:
            return await StreamsScript.start_process(self, own)

        def made(name: str) -> tuple[Sequence[str], Mapping[str, str]]:
            self.silent.add(name)
            environment = self.environment(own, name)
            return words(self.command, environment), environment

        await self.group.start(start.member, made)

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
