"""A broker of a test in an event loop: its addresses, its script, what arrived, and the log of all that."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from kipcheck.conformance.core.values.edition import edition as edition_of
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.live.client.directions import NODES, Directions
from kipcheck.conformance.live.recording.log import Log
from kipcheck.conformance.live.recording.traffic import Observer, Traffic
from kipcheck.conformance.live.server.connection import Limits
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.live.server.topics import parse_topic
from kipcheck.conformance.live.testing import script
from kipcheck.conformance.live.testing.arrivals import Arrivals, Expected, Request
from kipcheck.conformance.live.testing.shared_broker import TOPICS, SharedBroker
from kipcheck.conformance.wire.framing import requests

WITHIN_S: Final = 5.0
"""The longest wait for a request, where a test states none."""
KEPT: Final = 500
"""Lines of the log, the newest."""
LOOPBACK: Final = "127.0.0.1"


class Unexpected(AssertionError):
    """What a test expects did not arrive, or what it does not expect did: with all that arrived, by name and time."""


@final
@dataclass(frozen=True, slots=True)
class Setting:
    """The broker of a test."""

    edition: str = f"apache@{NEWEST}"
    topics: tuple[tuple[str, int], ...] = TOPICS
    """By name and number of partitions; steps call the first two of them t and u."""
    config: tuple[str, ...] = ()
    """Settings besides those of the release, as ``KEY=VALUE``."""
    script: str = ""
    """Played from the start on."""

    @classmethod
    def of(
        cls,
        release: str | None = None,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, Any] | None = None,
        script: str = "",
    ) -> "Setting":
        """``topics``: partitions by name, or names; none: t with three partitions. Errors: ValueError."""
        named = topics if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)
        parsed = tuple(parse_topic(f"{name}:{number}") for name, number in named.items())
        settings = tuple(f"{name}={value}" for name, value in (config or {}).items())
        return cls(f"apache@{release or NEWEST}", parsed or TOPICS, settings, script)


class Stage:
    """``open`` has to be called, and ``close``, which leaves no connection."""

    def __init__(
        self,
        setting: Setting,
        limits: Limits | None = None,
        observers: tuple[Observer, ...] = (),
    ) -> None:
        """Errors: LookupError for an edition or a release without groups; ValueError for a setting or a script."""
        edition = edition_of(setting.edition)
        self.setting = setting
        self.steps = script.read(setting.script) if setting.script else ()
        self.broker = SharedBroker(edition, setting.topics, setting.config)
        self.arrivals = Arrivals()
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.print_line: Callable[[str], object] = lambda line: None
        """Gets each line of the log, from now on."""
        log = Log(setting.edition, self._add)
        self.traffic = Traffic((self.arrivals, log, *observers))
        self.front = Front(self.broker, edition, limits, self.traffic)
        self.directions = Directions(self.broker, self.front, lambda event: None)
        self.script = script.Script(self.broker, self.directions, self._note)

    def _add(self, line: str) -> None:
        self.lines.append(line)
        self.print_line(line)

    def _note(self, what: str) -> None:
        self._add(f"{self.front.now():9.3f} {what}")

    async def open(self, host: str = LOOPBACK, port: int = 0) -> str:
        """The address for ``bootstrap.servers``; the second node has a free port. Errors: OSError."""
        ports = [port, *(NODES - 1) * [0]]
        self.broker.nodes = [await self.front.listen(host, each) for each in ports]
        if self.steps:
            await self.script.play(self.steps)
        return self.address

    @property
    def address(self) -> str:
        host, port = self.broker.nodes[0]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def close(self) -> None:
        self.script.close()
        await self.front.close()
        self.broker.close()

    async def play(self, text: str) -> None:
        """Plays a script after what is left of those before; later expectations are about what arrives from now on.
        Returns as soon as a step waits, or all are over. Errors: ``Unplayable``."""
        steps = script.read(text)
        self.arrivals.pass_all()
        await self.script.play(steps)

    async def expect(self, wanted: Expected, within_s: float = WITHIN_S) -> Request:
        """The next request that suits, after those that were expected. Errors: ``Unexpected``; ``Unplayable``;
        ValueError for what no request can be."""
        wanted.check(self.names)
        found = await self.arrivals.expect(wanted, within_s)
        if found is None:
            self.script.check()
            raise Unexpected(f"no {wanted.text} within {within_s:g} s; what arrived:\n{self.report()}")
        return found

    async def expect_none(self, wanted: Expected, within_s: float = 0.0) -> None:
        """That no such request has arrived after those that were expected, nor does in that time. Errors: as of
        ``expect``."""
        wanted.check(self.names)
        before = self.arrivals.expected
        found = await self.arrivals.expect(wanted, within_s)
        if found is not None:
            self.arrivals.expected = before
            raise Unexpected(f"{wanted.text} arrived at {found.at_s:.3f} s; what arrived:\n{self.report()}")

    async def end(self, within_s: float = WITHIN_S) -> None:
        """Waits until all steps are over. Errors: ``Unexpected``; ``Unplayable``."""
        if not await self.script.end(within_s):
            raise Unexpected(f"the script is not over after {within_s:g} s; what arrived:\n{self.report()}")

    @property
    def names(self) -> list[str]:
        """Of the requests that the broker serves."""
        declared = requests(self.broker.edition)
        return sorted(declared[key].name.removesuffix("Request") for key in self.broker.versions)

    def report(self) -> str:
        left = self.script.state
        return self.arrivals.listing() + (f"\nscript: {left}" if left else "")
