"""Plays conversations of ``kraft-quorum`` with three nodes of a release, which pause, are killed, and start.

Each node is a controller and a broker, which shows what its own log has; a node of another release is a controller
alone. Updates go to the listener of the leading controller. A leader without followers has accepted an update once its
log of metadata contains the names of the features.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Final, TypeVar, assert_never

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.history import Died, Lost, Observation, Refused, Replied, Unsupported
from kipcheck.conformance.live import metadata_snapshots
from kipcheck.conformance.live.connections.connections import Connections, Garbled
from kipcheck.conformance.live.connections.secure_connection import Closed
from kipcheck.conformance.live.controller import requests
from kipcheck.conformance.live.controller.forms import Form, form_of
from kipcheck.conformance.live.coordinator.admin import versions_of
from kipcheck.conformance.protocols.features.model.kraft import NONE
from kipcheck.conformance.protocols.features.model.kraft_rules import METADATA, Rules
from kipcheck.conformance.protocols.features.ops import quorum
from kipcheck.conformance.protocols.features.ops.kraft import UNSAFE_DOWNGRADE, UPGRADE, Declared, Level, TypedUpdate
from kipcheck.conformance.targets.protocol import Broken, observed
from kipcheck.conformance.targets.toolchains import kafka_broker, kafka_nodes
from kipcheck.conformance.wire.errors import Refused as Inexpressible

MAJORITY: Final = 2
SETTLES_S: Final = 90.0
"""How long a quorum may take to have a leader, and nodes to read what is committed, on a busy machine."""
ALONE_S: Final = 8.0
"""How long a leader without followers may take to write an update into its log."""
ANSWERS_S: Final = 60.0
"""How long an update may take; a controller gives up after 15 s."""
POLLS_S: Final = 0.1
VERSION: Final = 1
SETTINGS: Final = {"broker.session.timeout.ms": "6000", **metadata_snapshots.SOON}
"""A node that was killed registers again only when its session has ended."""
REGISTERS_MS: Final = 180_000
T = TypeVar("T")


class Quorum:
    """Three nodes, and the request that has no answer so far."""

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.started_clusters = 0
        self._stack = ExitStack()
        self._nodes: kafka_nodes.Nodes | None = None
        self._beside: str | None = None
        self._leader = -1
        """The last known one."""
        self._paused: set[int] = set()
        self._killed: set[int] = set()
        self._open: dict[int, Connections] = {}
        self._pending: asyncio.Task[requests.Updated] | None = None

    @property
    def nodes(self) -> kafka_nodes.Nodes:
        assert self._nodes is not None, "no quorum was formatted"
        return self._nodes

    @property
    def active(self) -> list[int]:
        return [each for each in quorum.NODES if each not in self._paused | self._killed]

    async def played(self, steps: Sequence[Step]) -> tuple[Observation, ...]:
        """After a step without an answer, none is sent."""
        found: list[Observation] = []
        if not isinstance(quorum.OPERATIONS.event_of(steps[0]), quorum.QuorumFormat):
            await self.format(quorum.QuorumFormat(self.rules.newest))
        for step in steps:
            if found and isinstance(found[-1], Died | Lost | Unsupported):
                found.append(Lost("an earlier step had no answer"))
                continue
            found.append(await self._observed(quorum.OPERATIONS.event_of(step)))
        return tuple(found)

    async def _observed(self, event: quorum.Event) -> Observation:
        try:
            return await self._step(event)
        except (Closed, Garbled, Broken) as why:
            return Lost(str(why))
        except Inexpressible as why:
            return Unsupported(f"the version cannot express the request: {why}", "versions")

    async def _step(self, event: quorum.Event) -> Observation:
        match event:
            case quorum.QuorumFormat():
                await self.format(event)
            case quorum.QuorumPause(which):
                return await self._hit(which, kill=False)
            case quorum.QuorumKill(which):
                return await self._hit(which, kill=True)
            case quorum.QuorumResume():
                for each in sorted(self._paused):
                    self.nodes.resume(each)
                self._paused.clear()
            case quorum.QuorumStart():
                await self._start()
            case quorum.QuorumSend(updates):
                return await self._send(updates)
            case quorum.QuorumAwait():
                return await self._awaited(
                    ANSWERS_S if len(self.active) >= MAJORITY else 2 * requests.TIMEOUT_MS / 1000
                )
            case quorum.QuorumRead():
                return replied(await self._views())
            case quorum.QuorumSnapshot():
                await self._snapshots()
            case _:
                assert_never(event)
        return Replied(())

    # Nodes

    async def format(self, event: quorum.QuorumFormat) -> None:
        """A new cluster, or the one of the last conversation with these levels. Errors: ``Broken``."""
        if await self._restored(event):
            return
        await self.close()
        self._beside = event.beside
        form = form_of(self.rules, event.level, {each.feature: each.level for each in event.levels})
        await self._blocking(self._form, form)
        self.started_clusters += 1

    async def _restored(self, event: quorum.QuorumFormat) -> bool:
        """Takes back what the last conversation changed. False: there was none, or something stays."""
        if self._nodes is None or self._beside is not None or event.beside is not None:
            return False
        try:
            await self._step(quorum.QuorumResume())
            await self._start()
            if self._pending is not None:
                await self._awaited(ANSWERS_S)
            wanted = {METADATA: event.level, **{each.feature: each.level for each in event.levels if each.level}}
            updates = [
                TypedUpdate(name, wanted.get(name, 0), UPGRADE if level < wanted.get(name, 0) else UNSAFE_DOWNGRADE)
                for name, level in {**dict.fromkeys(wanted, 0), **await self._levels()}.items()
                if level != wanted.get(name, 0)
            ]
            if updates:
                await self._send(updates)
            return await self._levels() == wanted
        except (Closed, Garbled, Broken):
            return False

    async def _levels(self) -> dict[str, int]:
        views = await self._views()
        return {each.feature: each.level for each in views.nodes[0].levels or ()}

    def _form(self, form: Form) -> None:
        roles = dict.fromkeys(quorum.NODES, kafka_nodes.BOTH)
        if self._beside is not None:
            roles[quorum.NODES[-1]] = kafka_nodes.CONTROLLER
        made = kafka_nodes.cluster(form.level, roles, form.options, form.dynamic, SETTINGS)
        self._nodes = self._stack.enter_context(made)
        for number in quorum.NODES[:-1]:
            self._nodes.start(number, self.rules.release, REGISTERS_MS)
        for number in quorum.NODES[:-1]:
            self._nodes.wait(number)
        last = quorum.NODES[-1]  # one of another release follows
        self._nodes.start(last, self._release(last), REGISTERS_MS, plain=self._beside is not None)
        self._nodes.wait(last)

    def _release(self, number: int) -> str:
        return self._beside if self._beside and number == quorum.NODES[-1] else self.rules.release

    async def _hit(self, which: str, kill: bool) -> Observation:
        leader = await self._known_leader()
        alive = [each for each in quorum.NODES if each not in self._killed]
        followers = [each for each in alive if each != leader]
        chosen = {"leader": [leader] if leader in alive else [], "follower": followers[-1:], "followers": followers}
        hit = tuple(chosen.get(which, alive))
        for number in hit:
            await self._forget(number)
            if kill:
                self.nodes.kill(number)
                self._killed.add(number)
                self._paused.discard(number)
            elif number not in self._paused:
                self.nodes.pause(number)
                self._paused.add(number)
        return replied(quorum.QuorumHit(hit))

    async def _start(self) -> None:
        def start() -> None:
            for number in sorted(self._killed):
                self.nodes.start(number, self._release(number), REGISTERS_MS)
            for number in sorted(self._killed):
                self.nodes.wait(number)

        await self._blocking(start)
        self._killed.clear()

    async def _snapshots(self) -> None:
        """Errors: ``Broken``, ``Closed``, ``Garbled``."""
        end = await self._end()
        folders = [self.nodes.nodes[each].folder / "data" for each in self.active]

        async def written() -> bool | None:
            found = [max(metadata_snapshots.ends(each), default=0) for each in folders]
            return True if all(each >= end for each in found) else None

        await self._until(written, f"no snapshot of the metadata up to {end} on each node")

    # Requests

    def _connected(self, number: int, controller: bool = False) -> Connections:
        """To a broker, or to the listener of controllers."""
        key = number + len(quorum.NODES) * controller
        if key not in self._open:
            node = self.nodes.nodes[number]
            port = node.controller if controller else node.port
            self._open[key] = Connections(kafka_broker.HOST, port, answered_s=ANSWERS_S if controller else 10.0)
        return self._open[key]

    async def _forget(self, number: int) -> None:
        """Ends the connection to a broker. That to its controller stays: an answer may come on it."""
        if (found := self._open.pop(number, None)) is not None:
            await found.close()

    def _brokers(self) -> list[int]:
        return [each for each in self.active if self._beside is None or each != quorum.NODES[-1]]

    async def _quorum(self) -> requests.Quorum | None:
        """What a broker reports of the quorum; None: none reports a leader."""
        for number in self._brokers():
            with suppress(Closed, Garbled, OSError):
                found = await asyncio.wait_for(requests.quorum_of(self._connected(number)), 5)
                if found.leader >= 0:
                    return found
            await self._forget(number)
        return None

    async def _leading(self) -> int | None:
        found = await self._quorum()
        if found is None or found.leader not in self.active:
            return None
        self._leader = found.leader
        return found.leader

    async def _end(self) -> int:
        """The end of what a leader had when it was first asked, once all of that is committed. Errors: ``Broken``."""
        ends: dict[int, int] = {}

        async def committed() -> int | None:
            found = await self._quorum()
            if found is None or found.leader not in self.active:
                return None
            end = ends.setdefault(found.leader, found.log_end)
            return end if found.end >= end else None

        return await self._until(committed, "no controller leads")

    async def _known_leader(self) -> int:
        """The leader; without a majority the last known one."""
        if len(self.active) >= MAJORITY:
            return await self._until(self._ready, "no controller leads")
        return self._leader

    async def _ready(self) -> int | None:
        """The leader, once its controller is active: one that was just elected refuses what it is asked."""
        if (leader := await self._leading()) is None:
            return None
        nothing = requests.update(self._connected(leader, controller=True), VERSION, (), validate_only=True)
        with suppress(Closed, Garbled, OSError, TimeoutError):
            if (await asyncio.wait_for(nothing, 5)).error != "NOT_CONTROLLER":
                return leader
        return None

    async def _send(self, updates: Sequence[TypedUpdate]) -> Observation:
        """Errors: ``Broken``, ``Closed``, ``Garbled``."""
        alone = len(self.active) < MAJORITY
        leader = await self._known_leader()
        if leader not in self.active:
            return replied(quorum.QuorumSent(quorum.LOST, accepted=False))
        if self._pending is not None:
            self._pending.cancel()
        written = len(self.nodes.log_of(leader))
        asked = requests.update(self._connected(leader, controller=True), VERSION, updates, validate_only=False)
        self._pending = asyncio.get_running_loop().create_task(asked)
        if not alone:
            return await self._awaited(ANSWERS_S)
        names = [each.feature.encode() for each in updates]
        until = asyncio.get_running_loop().time() + ALONE_S
        while asyncio.get_running_loop().time() < until and not self._pending.done():
            new = self.nodes.log_of(leader)[written:]
            if all(each in new for each in names):
                return replied(quorum.QuorumSent(quorum.PENDING, accepted=True))
            await asyncio.sleep(POLLS_S / 5)
        return await self._awaited(0)

    async def _awaited(self, within_s: float) -> Observation:
        """The answer to the pending request, if it comes in time."""
        if self._pending is None:
            return replied(quorum.QuorumSent(quorum.PENDING, accepted=False))
        await asyncio.wait([self._pending], timeout=within_s)
        if not self._pending.done():
            return replied(quorum.QuorumSent(quorum.PENDING, accepted=False))
        done, self._pending = self._pending, None
        try:
            found = done.result()
        except (Closed, Garbled):
            return replied(quorum.QuorumSent(quorum.LOST, accepted=False))
        errors = [found.error, *(each.error for each in found.results)]
        wrong = next((each for each in errors if each != NONE), None)
        return replied(quorum.QuorumSent(quorum.APPLIED, accepted=True)) if wrong is None else Refused(wrong, found.why)

    # Views

    async def _views(self) -> quorum.QuorumViews:
        if len(self.active) < MAJORITY:
            await asyncio.sleep(1)  # what is not committed would be shown by now
            return quorum.QuorumViews(-1, False, tuple([each async for each in self._shown(0)]))
        end = await self._end()
        loop = asyncio.get_running_loop()
        until = loop.time() + SETTLES_S
        while True:
            leader = await self._leading()
            found = [each async for each in self._shown(end - 1)]
            if leader is not None and len(found) == len(self.active):
                return quorum.QuorumViews(leader, True, tuple(found))
            if loop.time() > until:
                return quorum.QuorumViews(-1 if leader is None else leader, bool(found), tuple(found))
            await asyncio.sleep(POLLS_S)

    async def _shown(self, epoch: int) -> AsyncIterator[quorum.NodeView]:
        """The nodes that answer, and have read up to an epoch."""
        for number in self.active:
            controller = number not in self._brokers()
            try:
                connection = self._connected(number, controller)
                versions = await asyncio.wait_for(versions_of(connection), 5)
                picture = await asyncio.wait_for(requests.picture_of(connection, versions), 5)
            except (Closed, Garbled, OSError, TimeoutError):
                await self._forget(number)
                continue
            supported = tuple(Declared(name, *span) for name, span in sorted(picture.supported.items()))
            if controller:
                yield quorum.NodeView(number, -1, None, supported)
            elif picture.epoch >= epoch:
                levels = sorted((name, high) for name, (_, high) in picture.finalized.items() if high)
                yield quorum.NodeView(number, picture.epoch, tuple(Level(*each) for each in levels), supported)

    async def _until(self, ask: Callable[[], Awaitable[T | None]], why: str) -> T:
        """The first answer that is not None. Errors: ``Broken`` if none comes in time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + SETTLES_S
        while (found := await ask()) is None:
            if loop.time() > until:
                raise Broken(f"{why} after {SETTLES_S:.0f} s")
            await asyncio.sleep(POLLS_S)
        return found

    async def _blocking(self, call: Callable[..., None], *arguments: object) -> None:
        await asyncio.get_running_loop().run_in_executor(None, call, *arguments)

    async def close(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        for each in self._open.values():
            await each.close()
        self._open.clear()
        for number in sorted(self.nodes.running) if self._nodes is not None else ():
            self.nodes.kill(number)  # a paused one would not end
        self._stack.close()
        self._nodes, self._leader = None, -1
        self._paused.clear()
        self._killed.clear()


def replied(answer: quorum.Action) -> Observation:
    return observed(quorum.OPERATIONS.answer_of([answer]))
