"""What arrived at a broker of a test, by the names of the requests, and what a test expects of it."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, final

from kipcheck.conformance.core.values.kafka_errors import KafkaError
from kipcheck.conformance.core.values.nearest import hint
from kipcheck.conformance.live.recording.received import Received
from kipcheck.conformance.live.recording.traffic import Observer

KEPT: Final = 10_000
"""Requests that are remembered, the newest."""
LISTED: Final = 40
"""Requests that a failure lists, the newest."""
NONE: Final = "NONE"
"""The error of an answer without one."""


@final
@dataclass(slots=True)
class Request:
    """A request that arrived, and how it was answered."""

    number: int
    """From 1 on, in the order in which they came."""
    name: str
    """``JoinGroup``."""
    version: int
    at_s: float
    """Seconds since the broker started."""
    client_id: str | None
    connection: int
    """The number of the connection, from 1 on."""
    fields: Mapping[str, Any]
    """The request, by the names of Kafka's message definitions: ``{"groupId": "g", ...}``."""
    answer: Mapping[str, Any] | None = field(default=None, repr=False)
    """The same of the answer; None: there was none yet."""

    @property
    def error(self) -> str | None:
        """The name of the first error in the answer, ``NONE`` without one; None: there was no answer yet."""
        if self.answer is None:
            return None
        code = next(_codes(self.answer), 0)
        return KafkaError(code).name if code in set(KafkaError) else str(code)

    @property
    def line(self) -> str:
        """For people."""
        answered = "no answer" if self.error is None else "" if self.error == NONE else self.error
        return f"{self.at_s:8.3f} s  {self.name} v{self.version}  {self.client_id or '-'}  {answered}".rstrip()


def _codes(value: Any) -> Iterator[int]:
    """The error codes in an answer, but for those of no error."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name == "errorCode" or name.endswith("ErrorCode"):
                yield from (each,) if each else ()
            else:
                yield from _codes(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _codes(each)


@final
@dataclass(frozen=True, slots=True)
class Expected:
    """What a test expects of one request."""

    name: str
    version: int | None = None
    error: str | None = None
    """In its answer; ``NONE``: no error."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The least that its fields have to be: of a structure some of its fields, of an array some of its elements."""

    def check(self, names: Sequence[str]) -> None:
        """Errors: ValueError for what no request can be. ``names``: of the requests of the broker."""
        if self.name not in names:
            raise ValueError(f"unknown request {self.name!r}{hint(self.name, names) or '; known: ' + ', '.join(names)}")
        errors = KafkaError.__members__
        if self.error is not None and self.error not in errors:
            raise ValueError(f"unknown error {self.error!r}{hint(self.error, errors)}")

    def suits(self, request: Request) -> bool:
        return (
            request.name == self.name
            and self.version in (None, request.version)
            and self.error in (None, request.error)
            and contains(request.fields, self.fields)
        )

    @property
    def text(self) -> str:
        version = "" if self.version is None else f" v{self.version}"
        error = "" if self.error is None else f" answered with {self.error}"
        fields = f" with {dict(self.fields)}" if self.fields else ""
        return f"{self.name}{version}{error}{fields}"


def contains(found: Any, wanted: Any) -> bool:
    """Whether a value is that which is wanted; of a structure some fields are enough, of an array some elements."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            name in found and contains(found[name], each) for name, each in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return isinstance(found, list | tuple) and all(any(contains(one, each) for one in found) for each in wanted)
    return bool(found == wanted) or (isinstance(wanted, str) and str(found) == wanted and not isinstance(found, bytes))


class Arrivals(Observer):
    """Remembers requests and their answers. The requests that are expected come in order: after each other, and after
    the last script was played."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.expected = 0
        """The number of the last request that no later expectation looks at."""
        self._open: dict[Received, Request] = {}
        self._changed = asyncio.Event()
        self._count = 0

    def received(self, request: Received) -> None:
        self._count += 1
        found = Request(
            self._count, request.api, request.version, request.at_s, request.client_id, request.connection, request.body
        )
        self.requests.append(found)
        self._open[request] = found
        del self.requests[: -KEPT if len(self.requests) > 2 * KEPT else 0]
        self._changed.set()

    def answered(self, at_s: float, request: Received, body: Mapping[str, Any]) -> None:
        if (found := self._open.pop(request, None)) is not None:
            found.answer = body
            self._changed.set()

    def closed(self, at_s: float, connection: int, why: str) -> None:
        self._open = {request: each for request, each in self._open.items() if request.connection != connection}

    def pass_all(self) -> None:
        """Later expectations are about what arrives from now on."""
        self.expected = self._count

    def find(self, wanted: Expected) -> Request | None:
        """The first one that suits, after those that were expected."""
        return next((each for each in self.requests if each.number > self.expected and wanted.suits(each)), None)

    async def expect(self, wanted: Expected, within_s: float) -> Request | None:
        """The next request that suits, which may have arrived; None: none did in that time. Later expectations are
        about what comes after it."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + within_s
        while True:
            self._changed.clear()
            if (found := self.find(wanted)) is not None:
                self.expected = found.number
                return found
            try:
                await asyncio.wait_for(self._changed.wait(), until_s - loop.time())
            except TimeoutError:
                return None

    def listing(self) -> str:
        """The last requests by name and time, and which of them were expected already."""
        shown = self.requests[-LISTED:]
        before = [f"  {each.line}" for each in shown if each.number <= self.expected]
        after = [f"  {each.line}" for each in shown if each.number > self.expected]
        more = [f"  ... {self._count - len(shown)} before these"] if self._count > len(shown) else []
        passed = ["  ---- expected, or before the last script, up to here"] if self.expected else []
        return "\n".join([*more, *before, *passed, *(after or ["  nothing"])])
