"""``client:streams-group@RELEASE``: a released application of Kafka Streams in a streams group (KIP-1071)."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, final

from kipcheck.conformance.core.files.releases_table import since
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.live.client import built_in, compiled
from kipcheck.conformance.live.client.built_in import PREFIX, Settings
from kipcheck.conformance.live.client.launch import Commands, Program
from kipcheck.conformance.targets.toolchains.temporary import temporary_folder

IN_STREAMS_GROUPS: Final = "streams-group"
"""The name of the client."""
OF_APPLICATIONS: Final = frozenset({"client_id", "session_ms", "heartbeat_ms", "rebalance_ms", "protocol"})
"""The optional settings that the program reads."""


@final
@dataclass(frozen=True, slots=True)
class StreamsGroupMembers:
    """Starts applications of a release, each with a state directory of its own."""

    release: str
    ends_on_errors = True

    def __post_init__(self) -> None:
        """Errors: LookupError for a release without streams groups."""
        try:
            is_old = Release.parse(self.release) < Release.parse(since("kip-1071"))
        except ValueError as wrong:
            raise LookupError(str(wrong)) from None
        if is_old:
            raise LookupError(f"Kafka Streams {self.release} has no streams groups: use {since('kip-1071')} or later")

    def given(self, settings: Settings) -> Mapping[str, str]:
        return self._commands.given(settings)

    @property
    def _commands(self) -> Commands:
        """Errors: ``Unavailable``."""
        words = compiled.streams(self.release, built_in.program("StreamsMember.java"))
        return Commands(words, OF_APPLICATIONS, self.ends_on_errors)

    async def start(self, settings: Settings) -> Program:
        """Errors: OSError; ``Unavailable``."""
        made = ExitStack()
        folder = made.enter_context(temporary_folder("streams"))
        program = await self._commands.start(settings, {f"{PREFIX}STATE": str(folder)})
        program.ended.add_done_callback(lambda _: made.close())
        return program
