"""``client:...``: a program that consumes, run against a scripted broker, one process for each case.

What follows is a command if it contains ``{bootstrap}``, else the name of a built-in client.
"""

import asyncio
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from kipcheck.conformance.core.values.case import Case, Role
from kipcheck.conformance.core.values.edition import APACHE, Edition, edition as edition_of
from kipcheck.conformance.core.values.history import History, Observation, Unsupported
from kipcheck.conformance.core.values.release import NEWEST
from kipcheck.conformance.core.values.target_title import UNSTATED
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.live.client.built_in import OPTIONAL
from kipcheck.conformance.live.client.class_archive import archived
from kipcheck.conformance.live.client.launch import CASE, NEEDED, Commands, Launcher, missing, optional, short, unknown
from kipcheck.conformance.live.client.other_groups import GROUPS_OF_THEIR_OWN
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.live.client.played_release import Played, played
from kipcheck.conformance.live.coordinator.concurrency import gathered
from kipcheck.conformance.live.members.application import (
    NAME as APPLICATION,
    Application,
    application,
    is_application,
    of_command,
)
from kipcheck.conformance.protocols.client.events import EVENTS, Confirmed
from kipcheck.conformance.protocols.client.model import needs
from kipcheck.conformance.protocols.client.ops import CLIENT, OPERATIONS, SETTINGS
from kipcheck.conformance.protocols.client.trace import is_in_time
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets import protocol
from kipcheck.conformance.targets.command import PATIENCE
from kipcheck.conformance.targets.session import LONGEST_NAME, Limits
from kipcheck.conformance.targets.toolchains import environments

T = TypeVar("T")
TOGETHER: Final = 16
"""Scripts that are played at once: they mostly wait."""
PROCESSORS: Final = os.cpu_count() or 1
STARTS: Final = 2 * PROCESSORS
"""Programs that start at once, which is most of their work."""
MOST_ALONE_S: Final = 90.0
"""So long scripts are played again alone for each way in which they break a bound in time."""
ALONE: Final = 6
"""The most times that a script is played again alone: a busy machine is late in every second run."""
JAVA: Final = "java"
"""The built-in client whose classes are archived."""
FEATURE: Final = "feature"
"""The limit of a client that does not join, and joins where a script needs less."""
Way: TypeAlias = tuple[str, tuple[str, ...]]
"""The id of a law, and the shape of a breach."""
_PLAYED: Final[dict[Launcher, Played]] = {}
"""What was found out about the programs of a launcher, which is asked for several times in a run."""


def target(name: str, rest: str, limits: Limits | None) -> protocol.Target:
    """Errors: LookupError for a bad command line or an unknown client; ``Unavailable``."""
    if is_application(rest):
        return of_command(name, rest)
    stated = PATIENCE.search(rest)
    rest = PATIENCE.sub("", rest)
    found = _command(name, rest) if "{" in rest else _built_in(PATIENCE.sub("", name), rest)
    if stated is not None and isinstance(found, LiveClient):
        found.patience_s = float(stated[1])
        found.info = replace(found.info, command=name)
    return found


def _built_in(name: str, rest: str) -> "LiveClient | Application":
    client, at, version = rest.partition("@")
    if at and not environments.RELEASE.fullmatch(version):
        raise LookupError(f"invalid release {version!r} of {client}: use a form like {client}@2.3.0")
    if client == APPLICATION:
        return application(name, version)
    if client in GROUPS_OF_THEIR_OWN:
        made = GROUPS_OF_THEIR_OWN[client](version or NEWEST)
        return LiveClient(name, made, version or NEWEST, made.taken, machine=made.machine)
    try:
        command = built_in.command(rest)
    except LookupError as other:
        raise LookupError(f"{other}; a command contains {', '.join(NEEDED)}") from None
    if client == JAVA:
        command = archived(command, served("apache"))
    taken = built_in.taken(rest)
    ends_on_errors = client in built_in.ENDS_ON_ERRORS
    return LiveClient(name, Commands(command, taken, ends_on_errors), built_in.release(rest), taken)


def _command(name: str, rest: str) -> "LiveClient":
    if needed := missing(rest):
        raise LookupError(f"{name!r} lacks {', '.join(needed)}: kipcheck puts address, group and topics there")
    if strange := unknown(rest):
        known = f"the others are {', '.join(f'{{{each}}}' for each in OPTIONAL)}"
        raise LookupError(f"{name!r} has {', '.join(strange)}, which kipcheck does not know; {known}")
    try:
        named = f"client:{short(rest)}"[:LONGEST_NAME]
        return LiveClient(named, Commands.of(rest), UNSTATED, optional(rest), command=name)
    except ValueError as wrong:
        raise LookupError(f"invalid command line {name!r}: {wrong}") from None


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any command line is a target."""
    return iter(())


class LiveClient:
    """A program, started anew for each case."""

    def __init__(
        self,
        name: str,
        launcher: Launcher,
        version: str,
        taken: frozenset[str],
        command: str = "",
        machine: str = CLIENT,
    ) -> None:
        """``taken``: the optional placeholders of its command; ``machine``: that of the scripts that it plays."""
        self.name = name
        self.launcher = launcher
        self.taken = taken
        self.machine = machine
        self.patience_s = 0.0
        """Its longest back-off, as its user states it; 0: it is not stated."""
        limits = {_braced(each): f"the command lacks {_braced(each)}" for each in OPTIONAL if each not in taken}
        limits[FEATURE] = "the client may lack what a script needs, such as the versions of an older broker"
        claims = protocol.Claims(machines=(machine,), limits=limits)
        self.info = protocol.TargetInfo(name, version, "", "", claims.roles, claims, command)

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[protocol.Session]:
        if role is not Role.CLIENT:
            raise protocol.NotPlayed(self.info, role)
        chosen = self.played(edition)
        exact = served(chosen.edition)
        version = chosen.software if self.info.version == UNSTATED and chosen.software else self.info.version
        info = replace(self.info, version=version, played=chosen.release, unserved=chosen.unserved)
        yield LiveSession(info, self.launcher, self.taken, exact, chosen.broken, self.patience_s)

    def played(self, edition: str) -> Played:
        """The release of the broker: that of an exact edition, else the newest one that the client's versions fit, for
        which its program is started once. Errors: ``Unavailable`` for another edition."""
        exact = served(edition)
        if edition != APACHE.name or self.machine != CLIENT:
            return Played(exact.release)
        if self.launcher not in _PLAYED:
            with asyncio.Runner() as runner:
                _PLAYED[self.launcher] = runner.run(played(self.launcher))
        return _PLAYED[self.launcher]


class LiveSession:
    at_once = 1
    searches_at_once = TOGETHER // 4  # a round of one of them has some four scripts

    def __init__(
        self,
        info: protocol.TargetInfo,
        launcher: Launcher,
        taken: frozenset[str],
        edition: Edition,
        broken: str = "",
        patience_s: float = 0.0,
    ) -> None:
        """``broken``: why the program is no consumer with its own settings, if that is known already."""
        self.info = info
        self._broken = broken
        self._taken = taken
        self._patience_s = patience_s
        self.breaches: list[str] = []
        self.troubles: list[str] = []
        self._launcher = launcher
        self._edition = edition
        self._confirmed_ways: set[Way] = set()
        """In which scripts that were played alone, in time, broke bounds: the next one is believed."""
        self._starts = self._room = asyncio.Semaphore()
        self._judging = asyncio.Lock()
        self._plays = ALONE
        """The most plays alone of the next script: half as many after one for which this machine was always late."""

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """The traffic of each step, of several cases at once. Errors: ``Broken`` where the program is no consumer."""
        with self._running() as runner:
            return runner.run(self._run(cases))

    def run_plans(self, plans: Sequence[protocol.Plan[T]], /) -> list[T]:
        """Errors: as ``run``."""
        with self._running() as runner:
            return runner.run(self._run_plans(plans))

    def lasts_s(self, case: Case, /) -> float:
        """Unknown: programs take time to start, and to join."""
        return 0.0

    @contextmanager
    def _running(self) -> Iterator[asyncio.Runner]:
        """An event loop, with what belongs to it."""
        with uncollected(), asyncio.Runner() as runner:
            self._room, self._starts = asyncio.Semaphore(TOGETHER), asyncio.Semaphore(STARTS)
            self._judging = asyncio.Lock()
            yield runner

    async def _run_plans(self, plans: Sequence[protocol.Plan[T]]) -> list[T]:
        async def one(plan: protocol.Plan[T]) -> T:
            going = await self._judged(partial(_sent, plan, None))
            while not isinstance(going, _Ended):
                going = await self._judged(partial(_sent, plan, await self._run(going)))
            return going.value

        return await gathered([one(each) for each in plans])

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        async def one(case: Case) -> tuple[float, tuple[Observation, ...]]:
            async with self._room:
                begun = time.monotonic()
                found = await self._played(case)
                return time.monotonic() - begun, found

        order = sorted(range(len(cases)), key=lambda at: _may_last(cases[at]), reverse=True)
        begun = {at: asyncio.ensure_future(one(cases[at])) for at in order}
        tasks = [begun[at] for at in range(len(cases))]
        try:
            plays = await asyncio.gather(*tasks)
            shown = [_Shown(self.info.name, case, found) for case, (_, found) in zip(cases, plays, strict=True)]
            shortest = sorted(range(len(cases)), key=lambda at: plays[at][0])  # which confirms a way
            await self._play_again(shown, shortest)
            return [await self._judged(partial(self._with_confirmed, each)) for each in shown]
        except protocol.Broken as why:
            self.breaches.append(str(why))
            raise
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _played(self, case: Case) -> tuple[Observation, ...]:
        """All steps are unsupported if the command lacks what the script needs: the steps that need it say so."""
        needed = sorted(needs(case.steps))
        lacking = [_braced(each) for each in needed if each not in self._taken]
        if lacking:
            unmet = Unsupported(f"the command lacks {', '.join(lacking)}", lacking[0])
            return tuple(unmet if needs([step]) - self._taken else replace(unmet, reason="") for step in case.steps)
        found = tuple(protocol.observed(each) for each in await self._play(case))
        # A value that this client does not have, as librdkafka has no assignor "sticky", or no versions so old.
        limit = _braced(needed[0]) if needed else FEATURE
        return tuple(replace(each, limit=limit) if isinstance(each, Unsupported) else each for each in found)

    async def _play(self, case: Case) -> list[dict[str, Any]]:
        CASE.set(case.id)
        settings = (each for each in case.steps if isinstance(OPERATIONS.event_of(each), SETTINGS))
        if self._broken and next(settings, None) is None:
            raise protocol.Broken(self._broken)
        return await play(self._edition, self._launcher, case.steps, starts=self._starts, patience_s=self._patience_s)

    async def _play_again(self, shown: list["_Shown"], order: Iterable[int]) -> None:
        """Replaces what is played again, as many scripts at once as the machine has processors: those whose ways of
        breaking bounds are not looked at already."""
        until_s, left, alone = time.monotonic() + MOST_ALONE_S, [*order], len(shown) == 1
        while left:
            chosen, later, ways = list[int](), list[int](), set[Way]()
            for at in left:
                unconfirmed = (await self._unconfirmed(shown[at], alone)).keys()
                if unconfirmed and len(chosen) < PROCESSORS and ways.isdisjoint(unconfirmed):
                    chosen.append(at)
                    ways |= unconfirmed
                elif unconfirmed:
                    later.append(at)
            again = await gathered([self._played_again(shown[at], alone, until_s) for at in chosen])
            for at, each in zip(chosen, again, strict=True):
                shown[at] = each
            left = later

    async def _played_again(self, shown: "_Shown", alone: bool, until_s: float) -> "_Shown":
        """What breaks a bound in time in a way that is not confirmed is played again, alone, until this machine is in
        time itself while it is broken.

        Up to the last such breach, first; whole if that does not show them, and the last time: what a script breaks
        beside others counts only in ways that are confirmed, so its play alone takes the place of that one.

        ``until_s``: from then on, what breaks a law of which some way is confirmed is not played again: a client that
        never comes back breaks one in many ways, and each takes its time.
        """
        case, missing = shown.case, await self._unconfirmed(shown, alone)
        for left in reversed(range(self._plays)):
            if time.monotonic() > until_s:
                laws = {law for law, _ in self._confirmed_ways}
                missing = {way: step for way, step in missing.items() if way[0] not in laws}
            if not missing:
                return shown
            part = replace(case, steps=case.steps[: max(missing.values()) + 1])
            if not alone and left and part != case:
                beginning = _Shown(self.info.name, part, await self._played(part))
                await self._unconfirmed(beginning, True)
                missing = {way: step for way, step in missing.items() if way not in self._confirmed_ways}
                if missing.keys() <= {way for way, *_ in beginning.ways}:
                    continue
            shown, alone = _Shown(self.info.name, case, await self._played(case)), True
            missing = await self._unconfirmed(shown, alone)
        if missing:
            self._plays = max(1, self._plays // 2)
        return shown

    async def _unconfirmed(self, shown: "_Shown", alone: bool) -> dict[Way, int]:
        """The ways that are not confirmed, also not by this play, with the step of each breach."""
        ways = await self._judged(lambda: shown.ways)
        if alone and (in_time := {way for way, _, in_time in ways if in_time}):
            self._confirmed_ways |= in_time
            self._plays = ALONE
        return {way: step for way, step, _ in ways if way not in self._confirmed_ways}

    async def _judged(self, judge: Callable[[], T]) -> T:
        """What is judged, one after the other in a thread, so that no script that is played meanwhile is late."""
        async with self._judging:
            return await asyncio.to_thread(judge)

    def _with_confirmed(self, shown: "_Shown") -> tuple[Observation, ...]:
        """With an event for each confirmed way in which a bound is broken while this machine was late."""
        case, found = shown.case, shown.found
        every = {way for way, *_ in shown.ways}
        proven = self._confirmed_ways | {way for way, _, in_time in shown.ways if in_time}
        ways = {way for way, _, in_time in shown.ways if not in_time}
        for law, shape in sorted(ways - proven):
            if any(each == law for each, _ in proven & every):  # else the law itself is undecided
                why = f"{law}: whether {', '.join(shape)} breaks it in {case.id} is undecided, since kipcheck was late"
                self.troubles.append(why)
        ways &= self._confirmed_ways
        if not ways:
            return found
        *_, (step, last) = shown.history.actions()
        confirmed = [EVENTS.to_json(Confirmed(last["ms"], law, shape)) for law, shape in sorted(ways)]
        answer = dict(found[step].payload)  # type: ignore[union-attr]  # it has actions
        more = protocol.observed({"status": "accepted", **answer, "actions": [*answer["actions"], *confirmed]})
        return (*found[:step], more, *found[step + 1 :])


@contextmanager
def uncollected() -> Iterator[None]:
    """Without automatic garbage collection: one among the events of a client that spins stops the loop for 0.3 s, and
    the script would be played again because this machine was late."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _may_last(case: Case) -> tuple[int, int]:
    """The longest scripts come first, so that none of them is waited for at the end: those that disturb a program that
    is to end, which is awaited for 30 s, and those with many steps."""
    return sum(step.body.get("at") == "stop" for step in case.steps), len(case.steps)


def _braced(name: str) -> str:
    return f"{{{name}}}"


@dataclass
class _Ended(Generic[T]):
    """What a plan returned."""

    value: T


def _sent(plan: protocol.Plan[T], found: Any) -> "Sequence[Case] | _Ended[T]":
    """The next cases of a plan, after it was sent what the last ones showed; None: it begins."""
    try:
        return plan.send(found)
    except StopIteration as ended:
        return _Ended(ended.value)


@dataclass
class _Shown:
    """What a client did in a script."""

    target: str
    case: Case
    found: tuple[Observation, ...]

    @property
    def history(self) -> History:
        return History.of(self.case, self.target, self.found)

    @cached_property
    def ways(self) -> list[tuple[Way, int, bool]]:
        """The ways in which it breaks bounds in time: the step of each breach, and whether this machine was in time."""
        history, timed = self.history, (each for each in all_invariants(Role.CLIENT) if each.unsure is not None)
        return [
            ((law.id, each.shape), each.at[-1], is_in_time(history, each))
            for law in timed for each in law.own_violations(history)[0]
        ]  # fmt: skip


def served(name: str) -> Edition:
    """The edition of the broker: the newest release where a run names none. Errors: ``Unavailable``."""
    found = edition_of(name)
    if "@" not in name and name == "apache":
        return edition_of(f"apache@{NEWEST}")
    if not name.startswith("apache"):
        raise protocol.Unavailable(f"edition {name}: live clients are tested in editions of Apache Kafka")
    return found
