"""Plays one script: starts a client against a scripted broker, takes each step, and returns what passed meanwhile."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast, get_args

from kipcheck.conformance.core.values.case import Step
from kipcheck.conformance.core.values.edition import Edition
from kipcheck.conformance.core.values.release import Release
from kipcheck.conformance.live.client.directions import NODES, Directions
from kipcheck.conformance.live.client.failed_start import describe, sent_what_is_gone, unserved, was_a_member
from kipcheck.conformance.live.client.launch import Launcher, Program
from kipcheck.conformance.live.client.program_settings import FIRST, SESSION_MS, changed, launched, wanted
from kipcheck.conformance.live.client.scripted import HEARTBEAT_MS, ScriptedBroker
from kipcheck.conformance.live.recording.contents import ms_of
from kipcheck.conformance.live.recording.observed import Idle, Recorder
from kipcheck.conformance.live.recording.traffic import Observer, Traffic
from kipcheck.conformance.live.server.listener import Front
from kipcheck.conformance.protocols.client import events, log_ops, ops
from kipcheck.conformance.protocols.client.model import UNSENT, is_possible
from kipcheck.conformance.protocols.client.ops import held_in_all_ms, held_ms
from kipcheck.conformance.protocols.client.terms import HEARTBEATS, INTERVALS_OF_ITS_OWN, LATE_MS
from kipcheck.conformance.protocols.client.trace import longest_absence_ms
from kipcheck.conformance.targets.protocol import Broken
from kipcheck.conformance.targets.transport.pipe import why_no_program

CONNECT_S: Final = 30.0
START_S: Final = 5.0
"""After this time another program may start though this one has not joined."""
SETTLE_S: Final = 10.0
"""The time in which a client is awaited that is no stable member; longer for one whose user states a back-off."""
MOST_WATCHED_S: Final = 30.0
"""So long a client is awaited that shows by its attempts in what time it is back; longer if its user states it."""
UNSENT_S: Final = 1.0
"""The longest wait for a request that a client need not send."""
BEATS: Final = 3
"""So many heartbeats a client may need to be a stable member: that time is longer if their interval is."""
LOST_S: Final = 2.0
"""The same for one that was none in a step before: it may still come back, and is not judged if it does not."""
CERTAIN: Final = frozenset({"JoinGroup", "SyncGroup", "Heartbeat"})
"""The requests that each client sends, if it uses their protocol."""
RAISED: Final = frozenset({"JoinGroup", "SyncGroup"})
"""The requests whose refusal a client raises to its user."""
RETRIES: Final = 3
"""So many more of them show that it does not."""
JOINS: Final = frozenset({"JoinGroup", *HEARTBEATS})
"""The requests by which it takes part in a rebalance."""
FENCED_S: Final = 0.6
"""Time for a client to notice that another one has its instance id."""
REFUSED_S: Final = 1.5
"""So long a client is watched that is refused: a law counts its requests in a second."""
RETRIED_S: Final = 7.0
"""So long a program is watched that was refused its group, and ends if its client says so: sarama tries every 2 s."""
NOTICED_S: Final = 0.3
"""Time for a client to notice what happens to a log: its Fetch waits for records, but not for other leaders."""
STOP_S: Final = 30.0
"""The default timeout of ``KafkaConsumer.close``."""
CLOSED_S: Final = 3.0
"""The longest wait for the connections of a program that has ended: a busy machine reads them late."""
AFTER_S: Final = 0.15
"""A step lasts so much longer, so that an answer to its last message belongs to it."""


BEFORE: Final = (ops.Others, ops.Assign, ops.Grow, ops.Committed, *log_ops.EVENTS, *ops.SETTINGS)
"""The steps that a program need not run for."""


class Unsuited(Exception):
    """The client may lack what the script needs of it: an assignor, a protocol, an older release of the broker."""


class Play:
    """One script. ``close`` has to be called, and leaves no process and no connection."""

    def __init__(
        self,
        edition: Edition,
        launcher: Launcher,
        settle_s: float = SETTLE_S,
        starts: asyncio.Semaphore | None = None,
        observers: tuple[Observer, ...] = (),
        patience_s: float = 0.0,
    ) -> None:
        """``starts``: of the programs that start at the same time, in several scripts. ``observers``: of the traffic,
        besides the recorder. ``patience_s``: the longest back-off of the client, as its user states it; 0: it is not
        stated."""
        self._starts = starts or asyncio.Semaphore()
        self.settle_s = settle_s
        self.patience_s = patience_s
        self.edition = edition
        self.broker = ScriptedBroker(edition)
        self.recorder = Recorder(edition, self.broker.topics)
        self.front = Front(self.broker, edition, traffic=Traffic((self.recorder, *observers)))
        self.directions = Directions(self.broker, self.front, self.recorder.add)
        self.launcher = launcher
        self.program: Program | None = None
        self.idle = Idle(LATE_MS, self._note_idle)
        self.settings = FIRST
        """Of the program's next start."""
        self._due: dict[ops.Phase, list[Any]] = {"start": [], "stop": [], "next": []}
        """The steps that change answers when the program starts or stops next."""
        self.shut_out = False
        """Whether the client may have ended: another program has its instance id, or the broker refuses it."""
        self._lost = False
        """Whether it was no stable member at the end of the longest time."""
        self._suited = ""
        """What was needed of the program when it joined last."""
        self._over = False

    async def step(self, step: Step) -> dict[str, Any]:
        """The answer to a step, whose events ``in_json`` writes.

        Errors: ``Broken`` where the program is no consumer; LookupError, TypeError.
        """
        event: ops.Event = ops.OPERATIONS.event_of(step)
        if not is_possible(event):
            return {"status": "unsupported", "message": "a broker does not answer that"}
        if self._over:
            return {"status": "accepted", "actions": []}
        if isinstance(event, (*ops.TIMED, ops.Rebalance)) and event.at != "now":
            self._due[event.at].append(event)
            if event.at == "next" and not isinstance(event, ops.Rebalance):
                self.directions.change_answers(event)
            return {"status": "accepted", "actions": []}
        try:
            if not isinstance(event, BEFORE) and self.program is None:
                await self._start()
            await self._take(event)
        except Unsuited as why:
            return {"status": "unsupported", "message": str(why)}
        self._note_idle()
        return {"status": "accepted", "actions": self.recorder.take()}

    def _note_idle(self) -> None:
        self.recorder.add(events.Idle(self._now_ms(), self.idle.late_ms()))

    def _called_back(self, called: str) -> None:
        what, *partitions = called.split()
        if what in get_args(events.Callback):
            self.recorder.add(events.CalledBack(self._now_ms(), cast(events.Callback, what), tuple(partitions)))

    def _now_ms(self) -> int:
        return ms_of(self.front.now())

    async def close(self) -> None:
        self.idle.close()
        if self.program is not None:
            await self.program.kill()
        await self.front.close()
        self.broker.close()

    async def _take(self, event: ops.Event) -> None:
        match event:
            case ops.Committed() if self.program is not None:
                raise Unsuited("committed offsets are reset only while the group has no members: put it first")
            case ops.Down():
                await self._go_down(event)
            case ops.Refuse():
                if self._provoked(event):
                    await self._be_refused(event.kind)
            case _ if isinstance(event, ops.TIMED):
                if self._provoked(event):
                    await self._settle(event.kind, held_ms(event))
            case ops.Pass(ms):
                await self._wait(ms / 1000)
            case ops.Fence():
                self.shut_out = self.broker.instance is not None
                self.directions.take(event)
                await self._wait(FENCED_S)
            case ops.Restart():
                await self._restart()
            case ops.Stop():
                await self._stop()
            case ops.Freeze(ms):
                await self._freeze(ms)
            case _ if isinstance(event, ops.SETTINGS):
                self._set(event)
            case _:
                self.directions.take(event)
                await self._notice(event)

    def _provoked(self, event: ops.Timed) -> bool:
        """Changes the answers to a request, and does what lets the client send one; False: it never does."""
        if event.kind in UNSENT[self.broker.protocol]:
            return False
        self.directions.change_answers(event)
        self.broker.provoke(event.kind)
        return True

    async def _notice(self, event: ops.Event) -> None:
        """Waits until a client that runs has noticed what happened to its group, or, if it notices it soon, to a
        log."""
        if isinstance(event, ops.Rebalance | ops.Move | ops.Disband):
            await self._settle()
        if isinstance(event, log_ops.EVENTS) and self.program is not None:
            await self._settle("Metadata" if isinstance(event, log_ops.Lags) else None)
            await self._wait(NOTICED_S + (event.ms / 1000 if isinstance(event, log_ops.Elect) else 0.0))

    async def _go_down(self, event: ops.Down) -> None:
        """The client has its time once the nodes are back. Errors: ``Unsuited``."""
        if lacked := self.directions.lacks(event):
            raise Unsuited(lacked)
        try:
            await self.directions.go_down(event, self.settings.heartbeat_ms, self._wait)
        except LookupError as why:
            raise Unsuited(str(why)) from None
        await self._settle()

    def _set(self, event: ops.Setting) -> None:
        """What is different when the program starts next."""
        self.settings = changed(self.settings, event)
        match event:
            case ops.Older(release):
                self.directions.release = release if Release.parse(release) < self._own_release else ""
            case ops.Newer(release):
                self.directions.release = release if Release.parse(release) > self._own_release else ""
            case ops.Offer(kind, low, high):
                self.directions.offered[kind] = range(low, high + 1)

    def _change_due(self, phase: ops.Phase) -> list[Any]:
        """The same for the steps of a phase, which begins. Returns them."""
        due, self._due[phase] = self._due[phase], []
        for event in due:
            self.directions.change_answers(event)
            self.shut_out |= isinstance(event, ops.Refuse)
        return due

    def _take_prepared(self) -> list[ops.Timed]:
        """The steps whose answers are changed when the client sends such a request by itself, once."""
        prepared, self._due["next"] = self._due["next"], []
        return prepared

    def _wanted(self) -> str:
        return wanted(self.settings, self.directions.release, self.directions.offered, self._missing)

    @property
    def _own_release(self) -> Release:
        return Release.parse(self.edition.release)

    async def _restart(self) -> None:
        await self._stop()
        if self.shut_out or self.broker.has_refused:
            return
        self._over = False
        self.recorder.add(events.Restarted(self._now_ms()))
        await self._start(again=True)

    async def _start(self, again: bool = False) -> None:
        """Errors: ``Broken``; ``Unsuited``. ``again``: a client that does not come back breaks a law."""
        if not self.broker.nodes:
            self.broker.nodes = [await self.front.listen("127.0.0.1", 0) for _ in range(NODES)]
            host, port = self.broker.nodes[0]
            self.settings = replace(self.settings, bootstrap=f"{host}:{port}")
        self._become()
        self.broker.others.subscribed = self.settings.topics
        self.broker.has_joined = self.broker.stable = False
        given = self.launcher.given(self.settings)
        due = [*self._change_due("start"), *self._take_prepared()]
        held_s = sum(map(held_in_all_ms, due)) / 1000
        async with self._starts:
            first = len(self.recorder.events)
            patience_ms = round(self.patience_s * 1000)  # recorded before it may send anything:
            ends = self.launcher.ends_on_errors
            self.recorder.add(launched(self._now_ms(), given, self.settings.topics, patience_ms, ends))
            try:
                self.program = await self.launcher.start(self.settings)
                self.program.on_call = self._called_back
            except OSError as wrong:
                raise Broken(f"the program cannot be started: {why_no_program(str(wrong.filename), wrong)}") from None
            begun = self.front.now()
            joined = await self._joins(begun + START_S)
        if not joined and (self.shut_out or self.broker.has_refused):
            return await self._be_refused(due[-1].kind, CONNECT_S)
        if not (joined or (not self._missing and await self._joins(begun + CONNECT_S + held_s))):
            self._over = True
            return self._not_joined(again or bool(due))
        if self.settings.protocol not in ("", self.broker.protocol):
            raise Unsuited(f"the client joins a {self.broker.protocol} group with protocol {self.settings.protocol}")
        self._suited = self._wanted()
        self._lost = False
        self.recorder.add(events.FirstJoined(self._now_ms()))
        if due:
            return await self._settle(due[-1].kind, held_ms(due[-1]))
        await self._wait(AFTER_S)
        self.idle.late_ms()
        self.recorder.forget_idle(first)  # no law about time looks at the start, in which much is loaded

    async def _joins(self, until_s: float) -> bool:
        """Waits for it, or the end of the program, or a refusal."""
        assert self.program is not None
        while not (self.broker.has_joined and self.broker.stable):
            if self.program.ended.done() or self.front.now() > until_s or self.broker.has_refused:
                return False
            await asyncio.wait([self.program.ended], timeout=0.02)
        return True

    def _become(self) -> None:
        """The broker has the release and the versions of the next start. Errors: ``Unsuited``."""
        try:
            self.directions.become(self.settings.heartbeat_ms)
        except LookupError as why:
            raise Unsuited(str(why)) from None

    @property
    def _missing(self) -> tuple[str, ...]:
        """The topics of the program that do not exist. A client may wait for them before it joins."""
        return tuple(name for name in self.settings.topics if name not in self.broker.topics.by_name)

    def _not_joined(self, again: bool) -> None:
        needed = self._wanted()
        if sent_what_is_gone(self.recorder.events, self.broker.versions):
            return  # a law is broken; the script ends here
        assert self.program is not None
        is_lost = bool(needed) and not self.program.ended.done() and was_a_member(self.recorder.events)
        if needed and not is_lost and not (again and needed == self._suited):
            raise Unsuited(f"the client does not join with {needed}: {self._never_joined()}")
        if not (again or is_lost):
            if unserved(self.recorder.events):
                return  # a law is broken; the script ends here
            raise Broken(self._never_joined())
        self._over = False
        if not self._has_ended():
            self.recorder.add(events.Unsettled(self._now_ms(), round(CONNECT_S * 1000)))

    def _never_joined(self) -> str:
        assert self.program is not None
        ended = self.program.ended
        ran_s = START_S if self._missing else CONNECT_S
        how = f"ended with code {ended.result()}" if ended.done() else f"ran for {ran_s:.0f} s"
        return describe(self.recorder.events, how, self.program.output)

    async def _settle(self, kind: ops.Kind | None = None, held_ms: int = 0) -> None:
        """Waits until the client is a stable member, and the answers that the script changes were sent.

        ``held_ms``: how long the script holds each of them back. Of several, each is provoked, and the client has its
        time again after each: it has to come back after the last one, also of those that were prepared."""
        self.shut_out |= self.broker.has_refused
        if self.shut_out or kind == "LeaveGroup":
            return await self._wait(AFTER_S)
        broker, prepared = self.broker, self._take_prepared()
        held_s = sum([held_ms, *map(held_in_all_ms, prepared)]) / 1000
        begun = changed = self.front.now()
        longest_s = self._longest_s + held_s
        awaited = {api for api, _ in (*broker.faults, *broker.disturbances)}
        unsent_s = longest_s if awaited <= CERTAIN else UNSENT_S
        kinds = {each.kind for each in prepared} if kind is None else {kind}
        first = left = broker.waiting(kinds)
        is_provoked = True
        while (broker.pending or not broker.stable) and not self._has_ended():
            if (now_left := broker.waiting(kinds)) < left:
                changed, is_provoked = self.front.now(), False
                begun, longest_s = (begun, longest_s) if left == first else (changed, self._longest_s + held_s)
                left = now_left
            if kind is not None and left and broker.stable and not is_provoked:
                broker.provoke(kind)
                is_provoked = True
            if broker.pending and broker.stable and self.front.now() - changed > unsent_s:
                break
            waited_s = self.front.now() - begun
            if waited_s > longest_s and waited_s > (longest_s := self._watched_s(begun, longest_s)):
                break
            await asyncio.sleep(0.01)
        unsent = [api for api in broker.drop_pending() if api != kind or left == first]
        if self._over:
            return  # which is recorded
        if unsent and not broker.rebalancing and broker.is_member:
            broker.stable = True  # nothing was sent that could disturb the client
        self._lost = not broker.stable
        made = events.Unsettled if self._lost else events.Settled
        now = self.front.now()
        self.recorder.add(made(ms_of(now), ms_of(now - begun), tuple(unsent)))
        await self._wait(AFTER_S)

    @property
    def _longest_s(self) -> float:
        """The longest time until a client is a stable member. For one that is lost already it has passed."""
        if self._lost:
            return LOST_S
        return self.settle_s + BEATS * (self.settings.heartbeat_ms - HEARTBEAT_MS) / 1000

    def _watched_s(self, begun_s: float, longest_s: float) -> float:
        """The time in which a client is awaited that was not back in the longest time: that after which it can be said
        not to return, unless it is too long, and its user states no back-off."""
        begun_ms, now_ms = round(begun_s * 1000), round(self.front.now() * 1000)
        session_ms, patience_ms = self.broker.session_ms or SESSION_MS, round(self.patience_s * 1000)
        if self._lost:
            return longest_s
        if patience_ms:
            return max((session_ms + INTERVALS_OF_ITS_OWN * patience_ms) / 1000 + AFTER_S, longest_s)
        shown_s = (longest_absence_ms(self.recorder.events, begun_ms, now_ms, session_ms, 0) or 0) / 1000
        return max(shown_s + AFTER_S, longest_s) if shown_s <= MOST_WATCHED_S else longest_s

    async def _freeze(self, ms: int) -> None:
        """Stops the process for a time. A member whose session ends meanwhile is removed."""
        assert self.program is not None
        session_ms = min(self.broker.left_ms, ms)
        self.recorder.add(events.Frozen(self._now_ms()))
        self.program.freeze()
        try:
            await self._wait(session_ms / 1000)
            if ms > session_ms:
                self.broker.expire()
                await self._wait((ms - session_ms) / 1000)
        finally:
            self.program.thaw()
        if not self._over:
            self.recorder.add(events.Thawed(self._now_ms()))
            self.broker.stable = False
            await self._settle()

    async def _be_refused(self, kind: ops.Kind, longest_s: float = 0.0) -> None:
        """Waits for the first request that is refused, and looks on for a while.

        ``longest_s``: the longest time until that request; 0: that of a member."""
        begun = self.front.now()
        longest_s = longest_s or (self._longest_s if kind in CERTAIN else UNSENT_S)
        self.shut_out = True
        if kind == "LeaveGroup":
            return await self._wait(AFTER_S)
        while not (self.broker.has_refused or self._has_ended()):
            waited_s = self.front.now() - begun
            if self.broker.stable and waited_s > UNSENT_S:
                return  # it sent none, or one of a version to which no broker gives that answer
            if waited_s > longest_s:
                if kind in CERTAIN:
                    self.recorder.add(events.Unsettled(self._now_ms(), ms_of(waited_s), (kind,)))
                return
            await asyncio.sleep(0.01)
        begun, seen = self.front.now(), len(self.recorder.events)
        await self._wait(REFUSED_S)
        if kind not in RAISED or not self.launcher.ends_on_errors:
            return
        while not self._has_ended() and self.front.now() - begun < RETRIED_S:
            answers = (each for each in self.recorder.events[seen:] if isinstance(each, events.AnswerSeen))
            if sum(each.api == kind for each in answers) > RETRIES:
                return
            await asyncio.sleep(0.05)

    async def _wait(self, seconds: float) -> None:
        assert self.program is not None
        await asyncio.wait([self.program.ended], timeout=seconds)
        self._has_ended()

    def _has_ended(self) -> bool:
        assert self.program is not None
        if self.program.ended.done() and not self._over:
            self._over = True
            code = self.program.ended.result()
            self.recorder.add(events.Ended(self._now_ms(), code, self.program.output[-2000:]))
        return self._over

    async def _takes_part(self) -> None:
        """Waits until the client takes part in a rebalance, and not for its end."""
        seen, until_s = len(self.recorder.events), self.front.now() + self._longest_s
        while not self._has_ended() and self.front.now() < until_s:
            if any(isinstance(each, events.RequestSeen) and each.api in JOINS for each in self.recorder.events[seen:]):
                return
            await asyncio.sleep(0.005)

    async def _stop(self) -> None:
        assert self.program is not None
        if any(isinstance(each, ops.Rebalance) for each in self._change_due("stop")):
            await self._takes_part()
        self.recorder.add(events.Signalled(self._now_ms()))
        self.program.stop()
        await self._wait(STOP_S)
        if not self._over:
            self.recorder.add(events.Killed(self._now_ms(), self.program.output[-2000:]))
        self._over = True
        self.broker.drop_pending()
        await self.program.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSED_S):  # what it sent last belongs to it, not to its next start
                while self.front.connections:
                    await asyncio.sleep(0.005)


async def play(
    edition: Edition,
    launcher: Launcher,
    steps: Sequence[Step],
    settle_s: float = SETTLE_S,
    starts: asyncio.Semaphore | None = None,
    patience_s: float = 0.0,
) -> list[dict[str, Any]]:
    """The answers to the steps of a whole script. Errors as ``Play.step``."""
    script = Play(edition, launcher, settle_s, starts, patience_s=patience_s)
    try:
        answers = [await script.step(each) for each in steps]
    finally:
        await script.close()
    return [*map(in_json, answers)]


def in_json(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer with its events as JSON. For many of them this takes time in which a script would be late."""
    found = dict(answer)
    return found | {"actions": [*map(events.EVENTS.to_json, found["actions"])]} if "actions" in found else found
