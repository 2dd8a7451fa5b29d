"""``client:...``: a program that consumes, run against a scripted broker, one process for each case.

What follows is a command if it contains ``{bootstrap}``, else the name of a built-in client.
"""

import asyncio
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from kipcheck.conformance.core.case import Case, Role
from kipcheck.conformance.core.edition import Edition, edition as edition_of
from kipcheck.conformance.core.history import History, Observation, Op, Unsupported
from kipcheck.conformance.core.release import NEWEST
from kipcheck.conformance.live.client import built_in
from kipcheck.conformance.live.client.built_in import OPTIONAL
from kipcheck.conformance.live.client.class_archive import archived
from kipcheck.conformance.live.client.launch import NEEDED, Commands, Launcher, missing, optional, short, unknown
from kipcheck.conformance.live.client.play import play
from kipcheck.conformance.protocols.client.model import needs
from kipcheck.conformance.protocols.client.ops import CLIENT
from kipcheck.conformance.protocols.client.trace import was_late
from kipcheck.conformance.protocols.invariants import all_invariants
from kipcheck.conformance.targets.protocol import (
    Broken,
    Claims,
    NotPlayed,
    Session,
    Target,
    TargetInfo,
    Unavailable,
    observed,
)
from kipcheck.conformance.targets.session import LONGEST_NAME, Limits
from kipcheck.conformance.targets.toolchains import environments

TOGETHER: Final = 8
"""Scripts that are played at once: they mostly wait."""
ALONE: Final = 6
"""The most times that a script is played again alone: a busy machine is late in every second run."""
JAVA: Final = "java"
"""The built-in client whose classes are archived."""
CLAIMS: Final = Claims(machines=(CLIENT,))


def target(name: str, rest: str, limits: Limits | None) -> Target:
    """Errors: LookupError for a bad command line or an unknown client; ``Unavailable``."""
    return _command(name, rest) if "{" in rest else _built_in(name, rest)


def _built_in(name: str, rest: str) -> "LiveClient":
    client, at, version = rest.partition("@")
    if at and not environments.RELEASE.fullmatch(version):
        raise LookupError(f"invalid release {version!r} of {client}: use a form like {client}@2.3.0")
    try:
        command = built_in.command(rest)
    except LookupError as other:
        raise LookupError(f"{other}; a command contains {', '.join(NEEDED)}") from None
    if client == JAVA:
        command = archived(command, served("apache"))
    return LiveClient(name, Commands(command), built_in.release(rest), built_in.taken(rest))


def _command(name: str, rest: str) -> "LiveClient":
    if needed := missing(rest):
        raise LookupError(f"{name!r} lacks {', '.join(needed)}: kipcheck puts address, group and topics there")
    if strange := unknown(rest):
        known = f"the others are {', '.join(f'{{{each}}}' for each in OPTIONAL)}"
        raise LookupError(f"{name!r} has {', '.join(strange)}, which kipcheck does not know; {known}")
    try:
        named = f"client:{short(rest)}"[:LONGEST_NAME]
        return LiveClient(named, Commands.of(rest), "0", optional(rest), command=name)
    except ValueError as wrong:
        raise LookupError(f"invalid command line {name!r}: {wrong}") from None


def rows() -> Iterator[dict[str, Any]]:
    """No rows: any command line is a target."""
    return iter(())


class LiveClient:
    """A program, started anew for each case."""

    def __init__(self, name: str, launcher: Launcher, version: str, taken: frozenset[str], command: str = "") -> None:
        """``taken``: the optional placeholders of its command."""
        self.name = name
        self.launcher = launcher
        self.taken = taken
        limits = {_braced(each): f"the command lacks {_braced(each)}" for each in OPTIONAL if each not in taken}
        claims = replace(CLAIMS, limits=limits)
        self.info = TargetInfo(name, version, "", "", claims.roles, claims, command)

    @contextmanager
    def open(self, edition: str, role: Role, /) -> Iterator[Session]:
        if role is not Role.CLIENT:
            raise NotPlayed(self.info, role)
        yield LiveSession(self.info, self.launcher, self.taken, served(edition))


class LiveSession:
    troubles: Sequence[str] = ()

    def __init__(self, info: TargetInfo, launcher: Launcher, taken: frozenset[str], edition: Edition) -> None:
        self.info = info
        self._taken = taken
        self.breaches: list[str] = []
        self._launcher = launcher
        self._edition = edition
        self._confirmed_ways: set[tuple[str, tuple[str, ...]]] = set()
        """In which scripts that were played alone, in time, broke bounds: the next one is believed."""
        self._plays = ALONE
        """The most plays alone of the next script: half as many after one for which this machine was always late."""

    def run(self, cases: Sequence[Case], /) -> list[tuple[Observation, ...]]:
        """The traffic of each step, of several cases at once. Errors: ``Broken`` where the program is no consumer."""
        with uncollected(), asyncio.Runner() as runner:
            return runner.run(self._run(cases))

    async def _run(self, cases: Sequence[Case]) -> list[tuple[Observation, ...]]:
        room = asyncio.Semaphore(TOGETHER)

        async def one(case: Case) -> tuple[Observation, ...]:
            async with room:
                return await self._played(case)

        tasks = [asyncio.ensure_future(one(each)) for each in cases]
        try:
            found = list(await asyncio.gather(*tasks))
            return [await self._confirmed(case, each, len(cases) == 1) for case, each in zip(cases, found, strict=True)]
        except Broken as why:
            self.breaches.append(str(why))
            raise
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _played(self, case: Case) -> tuple[Observation, ...]:
        """All steps are unsupported if the command lacks what the script needs."""
        needed = sorted(needs(case.steps))
        lacking = [_braced(each) for each in needed if each not in self._taken]
        if lacking:
            return (Unsupported(f"the command lacks {', '.join(lacking)}", lacking[0]),) * len(case.steps)
        found = tuple(observed(each) for each in await play(self._edition, self._launcher, case.steps))
        # A value that this client does not have, as librdkafka has no assignor "sticky".
        limit = _braced(needed[0]) if needed else ""
        return tuple(replace(each, limit=limit) if isinstance(each, Unsupported) else each for each in found)

    async def _confirmed(self, case: Case, found: tuple[Observation, ...], alone: bool) -> tuple[Observation, ...]:
        """What breaks a bound in time, in a way that is not confirmed or while this machine was late, is played again,
        alone, until this machine is in time itself."""
        for left in reversed(range(self._plays + 1)):
            history = _history(self.info.name, case, found)
            ways, late = _ways(history), was_late(history)
            if alone and not late:
                self._confirmed_ways |= ways
                self._plays = ALONE
            if not ways or (not late and ways <= self._confirmed_ways):
                break
            if not left:
                self._plays = max(1, self._plays // 2)
                break
            found, alone = await self._played(case), True
        return found


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


def _braced(name: str) -> str:
    return f"{{{name}}}"


def _history(target: str, case: Case, found: Sequence[Observation]) -> History:
    return History(
        case, target, tuple(Op(at, *each, at + 1) for at, each in enumerate(zip(case.steps, found, strict=True)))
    )


def _ways(history: History) -> set[tuple[str, tuple[str, ...]]]:
    """The ways in which a history breaks bounds in time: laws and shapes."""
    timed = [each for each in all_invariants(Role.CLIENT) if each.unsure is not None]
    return {(law.id, each.shape) for law in timed for each in law.search(history)}


def served(name: str) -> Edition:
    """The edition of the broker: the newest release where a run names none. Errors: ``Unavailable``."""
    found = edition_of(name)
    if "@" not in name and name == "apache":
        return edition_of(f"apache@{NEWEST}")
    if not name.startswith("apache"):
        raise Unavailable(f"edition {name}: live clients are tested in editions of Apache Kafka")
    return found
