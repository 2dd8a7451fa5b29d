"""Plays a conversation with the coordinator of a classic group of a running broker, in real time."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import takewhile
from typing import Any, Final

from kipcheck.conformance.core.operations.wire_form import Context, Unfit
from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Replied, Unsupported
from kipcheck.conformance.live.clock import now
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.coordinator.classic_requests import (
    Scale,
    Topics,
    context_of,
    unknown_partition,
    why_inexpressible,
)
from kipcheck.conformance.live.coordinator.classic_time import Schedule
from kipcheck.conformance.live.coordinator.time_windows import Span
from kipcheck.conformance.protocols.declare.real_time import DOUBT, SETTINGS
from kipcheck.conformance.protocols.group.model.answers import DEFAULT, Config
from kipcheck.conformance.protocols.group.model.messages import (
    Commit,
    Delete,
    Describe,
    Fetch,
    Heartbeat,
    Joined,
    ListGroups,
    Reply,
    Request,
)
from kipcheck.conformance.protocols.group.model.names import Names
from kipcheck.conformance.protocols.group.model.rules import Rules
from kipcheck.conformance.protocols.group.model.service import By, Elapse, canonical_reply, resolved
from kipcheck.conformance.protocols.group.ops import ANSWERS, OPERATIONS
from kipcheck.conformance.wire.bodies import api_of, body_of, key_of, read_body

PATIENCE_S: Final = 2.0
"""How long an answer is awaited that the machine of the edition would give at once, or has given by then."""
PARKS_S: Final = 0.02
"""How long a request may take to the coordinator if nothing shows that it is there."""
AFTER_S: Final = 0.003
"""Between two answers of one step that go to different connections."""
REQUEST_S: Final = 0.03
"""What a request takes, for the plan of a wait before it."""
SUSPECT: Final = "a member was answered in the moment in which its session would have ended without the request"
VERSIONS: Final = "versions"
BROKER: Final = "broker"
NAMELESS: Final = "nameless"
TIME: Final = "time"
LIMITS: Final = {
    VERSIONS: "the broker does not announce the version, or the version cannot express the request",
    BROKER: "no client can make a broker lose its log or move a partition; or the topic lacks the partition",
    NAMELESS: "the offsets of the group with the empty name are not those of one conversation",
    TIME: "the wait is longer than a conversation in real time may last",
}
_OF_NAMELESS: Final = (Commit, Fetch, Describe, ListGroups, Delete)
"""Requests whose answers depend on the group with the empty name, or that change it."""
LOST: Final = Lost("the broker did not answer an earlier step")


@dataclass(frozen=True, slots=True)
class Setting:
    """What all conversations with one broker share."""

    rules: Rules
    config: Config
    topics: Topics
    scale: Scale
    versions: dict[int, tuple[int, int]]
    """By API key."""
    margin_s: float
    longest_ms: int
    """Of one ``elapse``."""
    most_ms: int
    """Of a conversation, in all."""
    nameless: bool = False
    """Whether the group with the empty name is this conversation's own."""
    pause_s: float = 0.0
    """Before each request, so that timers of one moment of the conversation expire one after the other."""


@dataclass(slots=True)
class Conversation:
    setting: Setting
    group: str
    connections: Connections
    waited_s: float = 0.0
    names: Names = field(default_factory=Names)
    _actors: dict[int, str] = field(default_factory=dict)
    _replies: list[Reply] = field(default_factory=list)
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
        return tuple(id for id, _ in self.names.ids)

    async def play(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """What was observed at each step; the ids of members are canonical."""
        found: list[Observation] = []
        try:
            for index, step in enumerate(steps):
                if self._failed is not None:
                    found.append(LOST)
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
                request = self._resolved(event, index)
                if (lacking := self._lacking(event, request)) is not None:
                    self._schedule.skip()
                    return lacking
                return await self._ask(index, event, request)
            case Elapse(ms):
                total = self._schedule.now_ms + ms
                if ms > self.setting.longest_ms or total > self.setting.most_ms:
                    self._schedule.skip()
                    return Unsupported(LIMITS[TIME], TIME)
                observed = await self._elapse(ms, steps[index + 1 :])
                if self._schedule.suspect and self._suspect is None:
                    self._suspect = index
                return observed
            case _:
                self._schedule.skip()
                return Unsupported(LIMITS[BROKER], BROKER)

    def _resolved(self, event: By, index: int) -> Request:
        generation = self.names.generation(event.actor, event.behind)
        return resolved(event.request, self.names, generation, number=index)

    def _lacking(self, event: By, request: Request) -> Unsupported | None:
        """Why the broker cannot, or must not, be sent the request."""
        if event.nameless and not self.setting.nameless and isinstance(request, _OF_NAMELESS):
            return Unsupported(LIMITS[NAMELESS], NAMELESS)
        key = key_of(type(request))
        low, high = self.setting.versions.get(key, (0, -1))
        if not low <= request.version <= high:
            return Unsupported(f"the broker announces versions {low} to {high} of API {key}", VERSIONS)
        if why := unknown_partition(request, self.setting.topics):
            return Unsupported(why, BROKER)
        if why := why_inexpressible(request, self._context(event)):
            return Unsupported(why, VERSIONS)
        return None

    def _context(self, event: By) -> Context:
        return context_of("" if event.nameless else self.group, self.setting.topics, self.setting.scale)

    async def _ask(self, index: int, event: By, request: Request) -> Observation:
        self._actors[index] = event.actor
        await asyncio.sleep(self.setting.pause_s)
        wanted, began = self._schedule.ask(event), now()
        self._begin(event, request)
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
        wait = self._schedule.elapse(ms, began, requests * (REQUEST_S + self.setting.pause_s))
        await asyncio.sleep(wait.until_s - began)
        late = min(now() + PATIENCE_S, wait.latest_s)
        await self._until(wait.answered, max(now() + self.setting.margin_s, late))
        await self._fence()
        ended = now()
        self.waited_s += ended - began
        answers = self._collected()
        doubt = self._schedule.elapsed(ms, answers, ended)
        return self._replied(answers, wait.doubt or doubt)

    def _begin(self, event: By, request: Request) -> None:
        task = asyncio.ensure_future(self._exchange(event, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _exchange(self, event: By, request: Request) -> None:
        api, version, context = api_of(type(request)), request.version, self._context(event)
        try:
            found = await self.connections.ask(api, version, event.actor, body_of(request, version, context))
            self._replies.append(read_body(ANSWERS[type(request)], version, found, context, to=request.request))
        except Closed as why:
            self._failed = Died("crashed", f"{api} v{version}: {why}")
        except (Garbled, Unfit) as why:
            self._failed = Died("garbled", f"{api} v{version}: {why}")
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
            version = self.setting.versions.get(key_of(Heartbeat), (0, 0))[0]
            context = context_of(self.group, self.setting.topics, self.setting.scale)
            body = body_of(Heartbeat(version, "?", None, 0), version, context)
            with suppress(Closed, Garbled):
                await self.connections.ask("Heartbeat", version, "kipcheck", body)
            await asyncio.sleep(AFTER_S)

    def _collected(self) -> tuple[Reply, ...]:
        """The answers of this step, with canonical ids."""
        replies, self._replies = sorted(self._replies, key=lambda each: each.to), []
        joined = [(self._actors[each.to], each) for each in replies if isinstance(each, Joined)]
        self.names = self.names.after_answers(joined)
        return tuple(canonical_reply(each, self.names) for each in replies)

    def _replied(self, answers: Sequence[Reply], doubt: str) -> Replied:
        payload: list[tuple[str, Any]] = [("answers", [*map(OPERATIONS.answer_to_json, answers)])]
        if doubt:
            payload.append((DOUBT, doubt))
        if self.setting.config != DEFAULT:
            payload.append((SETTINGS, asdict(self.setting.config)))
        return Replied(tuple(payload))
