"""Plays a conversation with the coordinator of a classic group of a running broker, in real time."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Context, Inexpressible
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections
from kipcheck.conformance.live.coordinator import settings
from kipcheck.conformance.live.coordinator.classic_time import Schedule
from kipcheck.conformance.live.coordinator.exchange import check_form, exchange
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.protocols.declare.real_time import DOUBT, SETTINGS
from kipcheck.conformance.protocols.declare.sent_requests import SentRequest
from kipcheck.conformance.protocols.group.clients import GroupClients
from kipcheck.conformance.protocols.group.model import messages
from kipcheck.conformance.protocols.group.model.answers import DEFAULT
from kipcheck.conformance.protocols.group.ops import OPERATIONS, By, Elapse
from kipcheck.conformance.wire.bodies import key_of

PATIENCE_S: Final = 2.0
"""How long an answer is awaited that the machine of the edition would give at once, or has given by then."""
PARKS_S: Final = 0.02
"""How long a request may take to the coordinator if nothing shows that it is there."""
AFTER_S: Final = 0.003
"""Between two answers of one step that go to different connections."""
SUSPECT: Final = "a member was answered in the moment in which its session would have ended without the request"
_OF_NAMELESS: Final = (messages.Commit, messages.Fetch, messages.Describe, messages.ListGroups, messages.Delete)
"""Requests whose answers depend on the group with the empty name, or that change it."""


@dataclass(slots=True)
class Conversation:
    setting: settings.Setting
    group: str
    connections: Connections
    waited_s: float = 0.0
    _clients: GroupClients = field(default_factory=GroupClients)
    _replies: list[messages.Reply] = field(default_factory=list)
    _failed: Died | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: set["asyncio.Task[None]"] = field(default_factory=set)
    _schedule: Schedule = field(init=False)
    _suspect: int | None = None
    """The first step at which the coordinator may have removed a member by chance."""

    def __post_init__(self) -> None:
        given = self.setting
        self._schedule = Schedule(given.rules, given.config, given.scale.times, given.margin_s)

    @property
    def ids(self) -> tuple[str, ...]:
        """Of members, as the coordinator gave them, also those that never joined with them."""
        return self._clients.ids

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step; the ids of members are canonical."""
        found: list[Observation] = []
        try:
            for index, step in enumerate(steps):
                if self._failed is not None:
                    found.append(settings.LOST)
                    continue
                found.append(await self._step(index, step, steps))
                if self._failed is not None:
                    found[-1] = self._failed
            return tuple(self._suspected(found))
        finally:
            for each in self._tasks:
                each.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _suspected(self, found: list[Observation]) -> list[Observation]:
        """With doubt where a member may have been removed by chance, if the coordinator answered otherwise since."""
        if self._schedule.apart and self._suspect is not None:
            index, answer = self._suspect, found[self._suspect]
            if isinstance(answer, Replied) and DOUBT not in dict(answer.payload):
                found[index] = Replied((*answer.payload, (DOUBT, SUSPECT)))
        return found

    async def _step(self, index: int, step: Step, steps: Sequence[Step]) -> Observation:
        match OPERATIONS.event_of(step):
            case By() as event:
                sent = self._clients.sent(index, event)
                if (lacking := self._lacking(sent)) is not None:
                    self._schedule.skip()
                    return lacking
                return await self._ask(index, event, sent)
            case Elapse(ms):
                if self.setting.is_too_long(ms, self._schedule.now_ms):
                    self._schedule.skip()
                    return Unsupported(settings.LIMITS[settings.TIME], settings.TIME)
                observed = await self._elapse(ms, steps[index + 1 :])
                if self._schedule.suspect and self._suspect is None:
                    self._suspect = index
                return observed
            case _:
                self._schedule.skip()
                return Unsupported(settings.LIMITS[settings.BROKER], settings.BROKER)

    def _lacking(self, sent: SentRequest) -> Unsupported | None:
        """Why the broker cannot, or must not, be sent the request."""
        request, setting = sent.request, self.setting
        if sent.nameless and not setting.nameless and isinstance(request, _OF_NAMELESS):
            return Unsupported(settings.LIMITS[settings.NAMELESS], settings.NAMELESS)
        low, high = setting.announced(type(request))
        if not low <= request.version <= high:
            return Unsupported(
                f"the broker announces versions {low} to {high} of API {key_of(type(request))}", settings.VERSIONS
            )
        for topic, partition, *_ in request.offsets if isinstance(request, messages.Commit) else ():
            if partition >= setting.topics.partitions.get(setting.topics.names.get(topic, ""), 0):
                return Unsupported(f"the broker has no partition {partition} for topic {topic}", settings.BROKER)
        try:
            check_form(sent, request.version, self._context(sent))
        except Inexpressible as why:
            return Unsupported(str(why), settings.VERSIONS)
        return None

    def _context(self, sent: SentRequest) -> Context:
        return self.setting.context("" if sent.nameless else self.group)

    async def _ask(self, index: int, event: By, sent: SentRequest) -> Observation:
        await asyncio.sleep(self.setting.pause_s)
        wanted, began = self._schedule.ask(event), now()
        self._begin(sent)
        await self._until(wanted, began + PATIENCE_S)
        if not any(each.to == index for each in self._replies):
            await asyncio.sleep(PARKS_S)
        await self._fence()
        ended = now()
        answers = self._collected()
        doubt = self._schedule.asked(event, answers, Span(began, ended))
        return self._replied(answers, doubt)

    async def _elapse(self, ms: int, after: Sequence[Step]) -> Observation:
        began = now()
        requests = len([*takewhile(lambda each: each.verb != "elapse", after)])
        wait = self._schedule.elapse(ms, began, requests * (settings.REQUEST_S + self.setting.pause_s))
        await asyncio.sleep(wait.until_s - began)
        late = min(now() + PATIENCE_S, wait.latest_s)
        await self._until(wait.answered, max(now() + self.setting.margin_s, late))
        await self._fence()
        ended = now()
        self.waited_s += ended - began
        answers = self._collected()
        doubt = self._schedule.elapsed(ms, answers, ended)
        return self._replied(answers, wait.doubt or doubt)

    def _begin(self, sent: SentRequest) -> None:
        task = asyncio.ensure_future(self._exchange(sent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, sent: SentRequest) -> None:
        request = sent.request
        found = await exchange(self.connections, sent, request.version, self._context(sent), to=request.request)
        if isinstance(found, Died):
            self._failed = found
        else:
            self._replies.append(found)
        self._news.set()

    async def _until(self, wanted: frozenset[int], end: float) -> None:
        """Until these requests are answered, for a while."""
        while self._failed is None and not wanted <= {each.to for each in self._replies} and (left := end - now()) > 0:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), left)

    async def _fence(self) -> None:
        """Until the coordinator has handled what was sent: it handles the requests of a group one after the other."""
        if self._failed is None:
            version, _ = self.setting.announced(messages.Heartbeat)
            sent = SentRequest("kipcheck", messages.Heartbeat(version, "?", None, 0), messages.Beat)
            await exchange(self.connections, sent, version, self.setting.context(self.group), to=0)
            await asyncio.sleep(AFTER_S)

    def _collected(self) -> tuple[messages.Reply, ...]:
        """The answers of this step, with canonical ids."""
        replies, self._replies = self._replies, []
        return self._clients.observed(replies)

    def _replied(self, answers: Sequence[messages.Reply], doubt: str) -> Replied:
        payload: list[tuple[str, Any]] = [("answers", [*map(OPERATIONS.answer_to_json, answers)])]
        if doubt:
            payload.append((DOUBT, doubt))
        if self.setting.config != DEFAULT:
            payload.append((SETTINGS, asdict(self.setting.config)))
        return Replied(tuple(payload))
