"""Released clients of Java in groups of their own kinds: ``client:streams-group@RELEASE`` is an application of Kafka
Streams in a streams group (KIP-1071), ``client:share-group@RELEASE`` a share consumer (KIP-932)."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import ClassVar, Final, final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.live.client import built_in, compiled
from kipcheck.conformance.live.client.built_in import PREFIX, Settings
from kipcheck.conformance.live.client.launch import Commands, Program
from kipcheck.conformance.protocols.client.ops import SHARE_CLIENT, STREAMS_CLIENT
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder


@dataclass(frozen=True, slots=True)
class OfRelease:
    """Starts programs of a release."""

    release: str
    kip: ClassVar[str]
    """The behaviour of the table of releases from which on there are such groups."""
    machine: ClassVar[str]
    """Of the scripts that they play."""
    taken: ClassVar[frozenset[str]]
    """The optional settings that the program reads."""
    ends_on_errors: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Errors: LookupError for a release without such groups."""
        try:
            is_old = Release.parse(self.release) < Release.parse(since(self.kip))
        except ValueError as wrong:
            raise LookupError(str(wrong)) from None
        if is_old:
            raise LookupError(f"Kafka {self.release} has no groups of {self.kip}: use {since(self.kip)} or later")

    def given(self, settings: Settings) -> Mapping[str, str]:
        return self.commands.given(settings)

    @property
    def commands(self) -> Commands:
        """Errors: ``Unavailable``."""
        return Commands(self.words(), self.taken, self.ends_on_errors)

    def words(self) -> tuple[str, ...]:
        raise NotImplementedError

    async def start(self, settings: Settings) -> Program:
        """Errors: OSError; ``Unavailable``."""
        return await self.commands.start(settings)


@final
@dataclass(frozen=True, slots=True)
class StreamsGroupMembers(OfRelease):
    """Each application has a state directory of its own."""

    kip = "kip-1071"
    machine = STREAMS_CLIENT
    taken = frozenset({"client_id", "session_ms", "heartbeat_ms", "rebalance_ms", "protocol"})

    def words(self) -> tuple[str, ...]:
        return compiled.streams(self.release, built_in.program("StreamsMember.java"))

    async def start(self, settings: Settings) -> Program:
        made = ExitStack()
        folder = made.enter_context(temporary_folder("streams"))
        program = await self.commands.start(settings, {f"{PREFIX}STATE": str(folder)})
        program.ended.add_done_callback(lambda _: made.close())
        return program


@final
@dataclass(frozen=True, slots=True)
class ShareConsumers(OfRelease):
    kip = "kip-932"
    machine = SHARE_CLIENT
    taken = frozenset({"client_id", "max_poll_ms", "commit", "pause_ms", "protocol"})

    def words(self) -> tuple[str, ...]:
        return compiled.java(self.release, built_in.program("ShareConsume.java"))


GROUPS_OF_THEIR_OWN: Final[Mapping[str, Callable[[str], StreamsGroupMembers | ShareConsumers]]] = {
    "streams-group": StreamsGroupMembers, "share-group": ShareConsumers,
}  # fmt: skip
"""By the name of the client."""
