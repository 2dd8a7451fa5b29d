"""Plays damaged and outdated requests to a broker, and watches how it serves others meanwhile."""

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final

from kipcheck.conformance.core.operations.field_annotations import wire
from kipcheck.conformance.core.operations.wire_form import SAME, Context, message
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed, NotOpened, Opened, open_secured
from kipcheck.conformance.live.coordinator.exchange import answer_of
from kipcheck.conformance.live.damage.requests import CORRELATION, damaged, nearest, sound
from kipcheck.conformance.live.damage.resources import Resources, used
from kipcheck.conformance.protocols.damage import invariants
from kipcheck.conformance.protocols.damage.ops import OPERATIONS, UNFINISHED, Old, Others, Send, Served, Treated
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group.ops import NO_MORE, VALUES, Commit, Committed, Fetched
from kipcheck.conformance.wire.bodies import key_of
from kipcheck.conformance.wire.framing import frame

WAITS_S: Final = 1.0
UNFINISHED_S: Final = 0.1
ENDS_S: Final = 5.0
OTHERS_S: Final = 10.0
SETTLES_S: Final = 3.0
TIMES: Final = 3
"""The most times that a case is played to see whether it costs something each time."""
SHOWN: Final = 48
VERSIONS: Final = "versions"
COMMIT_MOST, FETCH_MOST = 5, 5


@dataclass(slots=True)
class Damage:
    """One broker. ``patience``: a factor of all waits."""

    connections: Connections
    versions: Mapping[int, tuple[int, int]]
    group: str
    topic: str
    pids: Callable[[], Sequence[int]]
    patience: float = 1.0
    _offset: int = 0
    _sent: list[Send] = field(default_factory=list)
    """Of the case."""
    _before: Resources = field(default_factory=Resources)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """One case at a time: what it costs is seen at the process of the broker."""
        async with self._lock:
            await self.begin()
            return tuple([await self.step(each) for each in steps])

    async def begin(self) -> None:
        """Begins a case."""
        await self._others()
        self._sent.clear()
        self._before = used(self.pids())

    async def step(self, step: Step) -> Observation:
        match OPERATIONS.event_of(step):
            case Send() as send:
                self._sent.append(send)
                return await self._send(send)
            case Old(api, version):
                data = _sound(api, version)
                return await self._alone(data, data, Send(api, version, "body", "trailing"), ENDS_S)
            case Others():
                old, new = await self._others()
                cost = await self._cost() if (old, new) == (invariants.SERVED, invariants.SERVED) else Resources()
                return replied(Served(old, new, *(getattr(cost, each) for each in cost.__slots__)))

    async def _cost(self) -> Resources:
        """What the requests since the begin cost, each time: what a process takes once may be a cache."""
        cost = await self._settled(self._before)
        for _ in range(TIMES - 1):
            if not self._is_much(cost):
                break
            before = used(self.pids())
            for each in self._sent:
                await self._send(each)
            cost = cost.least(await self._settled(before))
        return cost

    async def _settled(self, before: Resources) -> Resources:
        """What is used more than before, once it no longer falls."""
        until = now() + SETTLES_S * self.patience
        while self._is_much(found := used(self.pids()).since(before)) and now() < until:
            await asyncio.sleep(0.1)
        return found

    def _is_much(self, found: Resources) -> bool:
        return (
            found.descriptors > invariants.MOST_DESCRIPTORS
            or found.threads > invariants.MOST_THREADS
            or found.memory_mib > invariants.MOST_MEMORY_MIB
            or found.processor_ms > invariants.MOST_PROCESSOR_MS * max(1, len(self._sent))
        )

    # The client with damaged requests

    async def _send(self, send: Send) -> Observation:
        version = nearest(send.api, send.version, self.versions)
        if version is None:
            return Unsupported(f"the broker does not announce {send.api}", VERSIONS)
        data = damaged(send, version)
        unfinished = send.end == "waits" and send.kind in UNFINISHED
        wait_s = UNFINISHED_S if unfinished else ENDS_S if send.end == "half-closes" else WAITS_S
        return await self._alone(_sound("ApiVersions", 0, 1) * send.before + data, data, send, wait_s)

    async def _alone(self, data: bytes, shown: bytes, send: Send, wait_s: float) -> Observation:
        """Sends data over a connection of its own. ``send``: how it ends; ``shown``: what the observation has."""
        try:
            opened = await open_secured(self.connections.host, self.connections.port, self.connections.security)
        except NotOpened as why:
            return replied(Treated("closed", 0, str(why)[:SHOWN]))
        try:
            end, answers = await self._exchange(opened, data, send, wait_s)
        finally:
            opened.writer.transport.abort()
        return replied(Treated(end, answers, shown[:SHOWN].hex()))

    async def _exchange(self, opened: Opened, data: bytes, send: Send, wait_s: float) -> tuple[str, int]:
        """What became of the connection, and the number of responses."""
        try:
            opened.writer.write(data)
            if send.end == "closes":
                return "closed", 0
            if send.end == "half-closes" and opened.writer.can_write_eof():
                opened.writer.write_eof()
        except OSError:
            return "closed", 0
        answers = 0
        try:
            async with asyncio.timeout(wait_s * self.patience):
                while True:
                    size = int.from_bytes(await opened.reader.readexactly(4), "big")
                    await opened.reader.readexactly(size)
                    answers += 1
                    if answers > send.before and send.end == "waits":
                        return "answered", answers
        except TimeoutError:
            return ("answered" if answers > send.before else "silent"), answers
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return "closed", answers

    # The others

    async def _others(self) -> tuple[str, str]:
        """Commits an offset over a connection from before, and reads it over a new one."""
        self._offset += 1
        opened = self.connections.opened
        old = await self._judged(self.connections, self._commit)
        if opened and self.connections.opened > opened and self.connections.security.sasl is None:
            old = "closed: the broker closed a connection without a request in progress"
        old_one = self.connections
        new = Connections(old_one.host, old_one.port, old_one.security, old_one.answered_s)
        try:
            return old, await self._judged(new, self._fetch)
        finally:
            await new.close()

    async def _judged(self, over: Connections, request: Callable[[Connections], Any]) -> str:
        try:
            async with asyncio.timeout(OTHERS_S * self.patience):
                wrong: str = await request(over)
                return f"wrong: {wrong}" if wrong else invariants.SERVED
        except TimeoutError:
            return "silent"
        except Closed as why:
            return f"closed: {why}"
        except (Garbled, KeyError, IndexError, struct.error) as why:
            return f"wrong: {why}"

    async def _commit(self, over: Connections) -> str:
        version = self._version(Commit, COMMIT_MOST)
        request = Commit(version, "", None, -1, ((self.topic, 0, self._offset, *NO_MORE),))
        found = await answer_of(over, SentRequest("kipcheck", request, Committed), version, self._context, to=0)
        return f"OffsetCommit is answered with error {int(found.error)}" if found.error else ""

    async def _fetch(self, over: Connections) -> str:
        sent = SentRequest("kipcheck", FetchOne(((self.topic, 0),)), Fetched)
        found: Fetched = await answer_of(over, sent, self._version(FetchOne, FETCH_MOST), self._context, to=0)
        offset = found.offsets[0][2]
        return "" if offset == self._offset else f"the committed offset is {offset} in place of {self._offset}"

    @property
    def _context(self) -> Context:
        return Context({**VALUES, "topic": SAME}, {"group": self.group})

    def _version(self, made: type, most: int) -> int:
        low, high = self.versions[key_of(made)]
        return max(low, min(high, most))


@message("OffsetFetchRequest", "groupId = group")
@dataclass(frozen=True, slots=True)
class FetchOne:
    """OffsetFetch of one partition."""

    topics: Annotated[tuple[tuple[str, int], ...], wire("topics[].name", "topics[].partitionIndexes[]")]


def _sound(api: str, version: int, correlation: int = CORRELATION) -> bytes:
    """A frame with a sound request."""
    header, head, layout, body = sound(api, version, correlation)
    return frame(header.encode(head) + layout.encode(body))


def replied(answer: Treated | Served) -> Replied:
    return Replied(tuple(asdict(answer).items()))
